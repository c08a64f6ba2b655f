//! Runs fuzz targets on stable: every seed of their corpora in `fuzz/corpus`, and seeded mutations of them.

use std::path::{Path, PathBuf};

/// Fuzz target: accepts any bytes, and panics when an invariant is violated.
pub(crate) type FuzzTarget = fn(&[u8]);

/// Reproducible random numbers (xorshift64*).
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

fn mutate(random: &mut Random, seeds: &[Vec<u8>], dictionary: &[&[u8]]) -> Vec<u8> {
    let mut data = seeds[random.below(seeds.len())].clone();
    for _ in 0..=random.below(4) {
        let at = random.below(data.len() + 1);
        match random.below(6) {
            0 => data.insert(at, random.byte()),
            1 => data.truncate(at),
            2 => {
                let word = dictionary[random.below(dictionary.len())];
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

/// Runs a target; a panic names the input.
fn run(name: &str, target: FuzzTarget, data: &[u8], origin: &str) {
    let passed = std::panic::catch_unwind(|| target(data)).is_ok();
    assert!(passed, "{name} failed on {origin}: {}", data.escape_ascii());
}

/// Runs a target on its seeds, and on `rounds` mutations of them, with byte sequences of `dictionary`.
pub(crate) fn run_target(name: &str, target: FuzzTarget, rounds: u32, dictionary: &[&[u8]]) {
    let seeds = corpus(name);
    for (file, data) in &seeds {
        run(name, target, data, &file.display().to_string());
    }
    let seeds: Vec<_> = seeds.into_iter().map(|(_, data)| data).collect();
    let seed = 0x6C69_6E65_7261_7465;
    let mut random = Random(seed);
    for round in 0..rounds {
        let data = mutate(&mut random, &seeds, dictionary);
        run(name, target, &data, &format!("mutation {round} of seed {seed:#x}"));
    }
}

/// Names of all corpora for which `is_ours` is true, sorted.
pub(crate) fn corpora(is_ours: impl Fn(&str) -> bool) -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let mut corpora: Vec<_> = std::fs::read_dir(folder)
        .expect("the corpora are there")
        .map(|entry| entry.expect("readable").file_name().into_string().expect("a name"))
        .filter(|name| is_ours(name))
        .collect();
    corpora.sort();
    corpora
}
