//! The fuzz targets on stable: every seed of the corpora, and seeded mutations of them.

#![expect(clippy::disallowed_methods, reason = "the seeds are files; the crate itself does no IO")]

use std::path::{Path, PathBuf};

use linerate_wire::fuzzing::{TARGETS, Target};

/// Random numbers that are the same every time (xorshift64*).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit.max(1) as u64).expect("below a usize")
    }

    fn byte(&mut self) -> u8 {
        self.next().to_le_bytes()[7]
    }
}

/// Bytes that parsers stumble over.
const DICTIONARY: [&[u8]; 22] = [
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
];

fn mutate(random: &mut Random, seeds: &[Vec<u8>]) -> Vec<u8> {
    let mut data = seeds[random.below(seeds.len())].clone();
    for _ in 0..=random.below(4) {
        let at = random.below(data.len() + 1);
        match random.below(6) {
            0 => data.insert(at, random.byte()),
            1 => data.truncate(at),
            2 => {
                let word = DICTIONARY[random.below(DICTIONARY.len())];
                data.splice(at..at, word.iter().copied());
            }
            3 => {
                let other = &seeds[random.below(seeds.len())];
                data.truncate(at);
                data.extend_from_slice(&other[random.below(other.len() + 1)..]);
            }
            4 if at < data.len() => {
                let end = (at + 1 + random.below(8)).min(data.len());
                data.drain(at..end);
            }
            _ if at < data.len() => data[at] ^= 1 << random.below(8),
            _ => data.push(random.byte()),
        }
    }
    data
}

fn corpus(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<_> = entries.map(|entry| entry.expect("readable").path()).collect();
    files.sort();
    assert!(!files.is_empty(), "{} is empty", folder.display());
    files.into_iter().map(|file| (file.clone(), std::fs::read(file).expect("readable"))).collect()
}

/// Runs a target; says on what it failed.
fn run(name: &str, target: Target, data: &[u8], origin: &str) {
    let passed = std::panic::catch_unwind(|| target(data)).is_ok();
    assert!(passed, "{name} failed on {origin}: {}", data.escape_ascii());
}

fn run_target(name: &str) {
    let (_, target) = TARGETS.iter().find(|(target, _)| *target == name).expect("a target");
    let seeds = corpus(name);
    for (file, data) in &seeds {
        run(name, *target, data, &file.display().to_string());
    }
    let seeds: Vec<_> = seeds.into_iter().map(|(_, data)| data).collect();
    // A token that is long enough costs two RSA decryptions.
    let rounds = if name == "auth_token" { 2_000 } else { 20_000 };
    let seed = 0x6C69_6E65_7261_7465;
    let mut random = Random(seed);
    for round in 0..rounds {
        let data = mutate(&mut random, &seeds);
        run(name, *target, &data, &format!("mutation {round} of seed {seed:#x}"));
    }
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
fn every_corpus_has_a_target() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let mut corpora: Vec<_> = std::fs::read_dir(folder)
        .expect("the corpora are there")
        .map(|entry| entry.expect("readable").file_name().into_string().expect("a name"))
        .collect();
    corpora.sort();
    let mut targets: Vec<_> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    targets.sort();
    assert_eq!(corpora, targets);
}
