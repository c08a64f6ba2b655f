//! The fuzz targets on stable: every seed of the corpora, and seeded mutations of them.

#[path = "../../wire/tests/common/corpus.rs"]
mod corpus;

use linerate_lab::fuzzing::TARGETS;

fn run_target(name: &str, rounds: u32, dictionary: &[&[u8]]) {
    let (_, target) = TARGETS.iter().find(|(target, _)| *target == name).expect("a target");
    corpus::run_target(name, *target, rounds, dictionary);
}

#[test]
fn lab_frames() {
    let dictionary: [&[u8]; 8] =
        [b"o\x01\0\0\0x", b"e\0\0\0\0", b"m\x02\0\0\0{}", b"o", b"\xFF\xFF\xFF\xFF", b"null", b"-1", b"\\ud800"];
    run_target("lab_frames", 20_000, &dictionary);
}

#[test]
fn lab_description() {
    let dictionary: [&[u8]; 16] = [
        b"\n[[link]]\n",
        b"\n[host.x]\n",
        b"\nmtu = 68\n",
        b"\nqueue = \"cake\"\n",
        b"\ntrace = \"1 2 40\"\nbuffer = \"1 MB\"\n",
        b"\nbuffer = \"1 packet\"\n",
        b"\nlink_layer = { framing = \"atm\", overhead = \"40 B\", minimum = \"64 B\" }\n",
        b"9223372036854775807",
        b"1e308",
        b"nan",
        b" Tbit/s",
        b" %",
        b"\"",
        b"'''",
        b"= {",
        b"#",
    ];
    run_target("lab_description", 3_000, &dictionary);
}

#[test]
fn lab_trace() {
    let dictionary: [&[u8]; 8] = [b"\n", b"0\n", b"1\n1\n", b"100\n", b"86400000\n", b"\r\n", b"-1", b"99999999999"];
    run_target("lab_trace", 5_000, &dictionary);
}

#[test]
fn every_corpus_has_a_target() {
    let mut targets: Vec<_> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    targets.sort();
    assert_eq!(corpus::corpora(|name| name.starts_with("lab_")), targets);
}
