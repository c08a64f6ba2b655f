//! The fuzz target on stable: every seed of its corpus, and seeded mutations of them.

#![expect(clippy::disallowed_methods, reason = "the seeds are files; the crate itself does no IO")]

#[path = "../../wire/tests/common/corpus.rs"]
mod corpus;

use linerate_model::fuzzing::TARGETS;

/// Parts of formats.
const DICTIONARY: [&[u8]; 14] = [
    b"ID: ",
    b"field:",
    b"offset:",
    b"size:",
    b";",
    b"\t",
    b"\n",
    b"print fmt: ",
    b"__print_symbolic(REC->vec,",
    b"{ 0x3, \"NET_RX\" }",
    b"4294967295",
    b"8192",
    b"[16]",
    b"__data_loc char[] name",
];

#[test]
fn model_tracepoint() {
    let (name, target) = TARGETS[0];
    corpus::run_target(name, target, 20_000, &DICTIONARY);
}

#[test]
fn every_corpus_has_a_target() {
    let targets: Vec<_> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(corpus::corpora(|name| name.starts_with("model_")), targets);
}
