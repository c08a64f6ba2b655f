//! The fuzz targets on stable: every seed of the corpora, and seeded mutations of them.

#![expect(clippy::disallowed_methods, reason = "the seeds are files; the crate itself does no IO")]

#[path = "common/corpus.rs"]
mod corpus;

use linerate_wire::fuzzing::TARGETS;

/// Byte sequences that are difficult for parsers.
const DICTIONARY: [&[u8]; 26] = [
    b"null",
    b"true",
    b"1e400",
    b"-1",
    b"9223372036854775808",
    b"\"\\u\"",
    b"\"\\ud83d\"",
    b"[[[[[[[[",
    b"{}",
    b"\"id\":1,",
    b"\xFF\xFF\xFF\xFF",
    b"\x80\0\0\0",
    b"\0\0\0\0",
    b"\0\0\x20\x01",
    b"\x09",
    b"\x0A\x01\x02",
    b"\x0D",
    b"\x0C",
    b"\xFE",
    b"L\0\0\0\x02{}",
    b"\x04",
    b"\x10",
    b"\x80\x01\0\x04",
    b"\x80\x04\0\x04\xB8\0\0\0",
    b"\x80\x07\0\x10",
    b"\x80\x08\0\x10",
];

fn run_target(name: &str) {
    let (_, target) = TARGETS.iter().find(|(target, _)| *target == name).expect("a target");
    // A token that is long enough costs two RSA decryptions.
    let rounds = if name == "auth_token" { 2_000 } else { 20_000 };
    corpus::run_target(name, *target, rounds, &DICTIONARY);
}

#[test]
fn control_client() {
    run_target("control_client");
}

#[test]
fn control_server() {
    run_target("control_server");
}

#[test]
fn parameters() {
    run_target("parameters");
}

#[test]
fn results() {
    run_target("results");
}

#[test]
fn udp_header() {
    run_target("udp_header");
}

#[test]
fn auth_token() {
    run_target("auth_token");
}

#[test]
fn stamp_sender() {
    run_target("stamp_sender");
}

#[test]
fn stamp_reflector() {
    run_target("stamp_reflector");
}

#[test]
fn probe_messages() {
    run_target("probe_messages");
}

#[test]
fn probe_load() {
    run_target("probe_load");
}

#[test]
fn rr_datagrams() {
    run_target("rr_datagrams");
}

#[test]
fn quic_messages() {
    run_target("quic_messages");
}

#[test]
fn every_corpus_has_a_target() {
    let mut targets: Vec<_> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    targets.sort();
    // The targets of exports, of the lab, of fleets, of the model, of responsiveness over HTTP, of shaping, of the system's
    // files, of TLS and of the units run in their own crates.
    let elsewhere = ["export_", "lab_", "fleet_", "model_", "responsiveness_", "shape_", "sys_", "tls_", "units_"];
    let is_ours = |name: &str| !elsewhere.iter().any(|prefix| name.starts_with(prefix));
    assert_eq!(corpus::corpora(is_ours), targets);
}
