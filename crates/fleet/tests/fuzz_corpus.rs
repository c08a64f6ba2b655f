//! The fuzz target on stable: every seed of its corpus, and seeded mutations of them.

#![expect(clippy::disallowed_methods, reason = "the seeds are files; the crate itself does no IO")]

#[path = "../../wire/tests/common/corpus.rs"]
mod corpus;

use linerate_fleet::fuzzing::TARGETS;

/// Parts of descriptions, and values that are difficult.
const DICTIONARY: [&[u8]; 20] = [
    b"\"addresses\"",
    b"\"groups\"",
    b"\"mesh\"",
    b"\"disjoint\"",
    b"\"disabled\": true,",
    b"\"no-agent\": true,",
    b"\"host\": \"h\",",
    b"\"uplink\"",
    b"\"capacity\": \"0\"",
    b"\"rate\": \"1e308\"",
    b"\"PT0S\"",
    b"\"P99999999W\"",
    b"\"PT584542046090S\"",
    b"\"clock-guard\": \"P1D\",",
    b"\"parallel\": 4294967295,",
    b"\"bandwidth\": 18446744073709551615,",
    b"\"throughput\"",
    b"\"latencybg\"",
    b"null",
    b"{}",
];

#[test]
fn fleet_description() {
    let (name, target) = TARGETS[0];
    corpus::run_target(name, target, 20_000, &DICTIONARY);
}

#[test]
fn every_corpus_has_a_target() {
    let targets: Vec<_> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(corpus::corpora(|name| name.starts_with("fleet_")), targets);
}
