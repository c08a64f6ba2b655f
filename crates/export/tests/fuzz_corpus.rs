//! The fuzz target on stable: every seed of its corpus, and seeded mutations of them.

#![expect(clippy::disallowed_methods, reason = "the seeds are files; the crate itself does no IO")]

#[path = "../../wire/tests/common/corpus.rs"]
mod corpus;

use linerate_export::fuzzing::TARGETS;

/// Parts of requests.
const DICTIONARY: [&[u8]; 12] = [
    b"GET ",
    b"/probe?",
    b"target=",
    b"&module=",
    b"%2",
    b"%ff",
    b"%41",
    b"+",
    b"\r\n",
    b"x-prometheus-scrape-timeout-seconds:",
    b"1e300",
    b"-1",
];

#[test]
fn export_http_request() {
    let (name, target) = TARGETS[0];
    corpus::run_target(name, target, 20_000, &DICTIONARY);
}

#[test]
fn every_corpus_has_a_target() {
    let targets: Vec<_> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(corpus::corpora(|name| name.starts_with("export_")), targets);
}
