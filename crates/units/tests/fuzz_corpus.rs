//! The fuzz target on stable: every seed of its corpus, and seeded mutations of them.

#![expect(clippy::disallowed_methods, reason = "the seeds are files; the crate itself does no IO")]

#[path = "../../wire/tests/common/corpus.rs"]
mod corpus;

use linerate_units::fuzzing::TARGETS;

/// Parts of quantities, and input that is difficult to parse.
const DICTIONARY: [&[u8]; 24] = [
    b"10",
    b"1.5",
    b".",
    b"0",
    b" ",
    b"k",
    b"Ki",
    b"M",
    b"Gi",
    b"T",
    b"bit/s",
    b"bps",
    b"B/s",
    b"B",
    b"ms",
    b"us",
    "µs".as_bytes(),
    b"min",
    b"h",
    b"%",
    b"e308",
    b"18446744073709551615",
    b"-",
    b"NaN",
];

#[test]
fn units_parse() {
    let (name, target) = TARGETS[0];
    corpus::run_target(name, target, 50_000, &DICTIONARY);
}

#[test]
fn every_corpus_has_a_target() {
    let targets: Vec<_> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(corpus::corpora(|name| name.starts_with("units_")), targets);
}
