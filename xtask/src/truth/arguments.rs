//! Command line of `cargo xtask truth --random` and `--library`.

use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};

use super::generator::CaseBudget;

/// Paths whose causes are removed in turn.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum TruthPaths {
    /// This number of paths, drawn from each seed.
    Random(u64),
    /// Paths of the library: these, or all.
    Library(Vec<String>),
}

/// Use of what was measured before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeptParts {
    /// Nothing is measured.
    Only,
    /// The truth; the diagnosis is repeated.
    Truth,
    /// All of it; what is missing is measured.
    All,
}

/// Parsed arguments.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TruthArguments {
    pub(super) paths: TruthPaths,
    /// Seeds of the paths.
    pub(super) seeds: Vec<u64>,
    /// Shorter transfers, and no fast path with long ones.
    pub(super) quick: bool,
    /// Case to measure; `None` for all.
    pub(super) only: Option<u64>,
    /// Case to print as TOML, without a measurement.
    pub(super) show: Option<u64>,
    /// Repeat the diagnosis of cases whose truth is kept.
    pub(super) again: bool,
    /// Derive the verdicts from kept observations; no guest is started.
    pub(super) replay: bool,
    /// Number of guests at a time.
    pub(super) jobs: usize,
    /// Page, relative to the root of the workspace.
    pub(super) out: PathBuf,
    /// Binary to run; built when not given.
    pub(super) linerate: Option<PathBuf>,
}

impl TruthArguments {
    /// Parses the arguments after `truth`.
    pub(super) fn parse(arguments: &[String]) -> Result<Self> {
        let (mut count, mut names, mut is_library) = (None, Vec::new(), false);
        let mut parsed = Self {
            paths: TruthPaths::Library(Vec::new()),
            seeds: Vec::new(),
            quick: false,
            only: None,
            show: None,
            again: false,
            replay: false,
            jobs: std::thread::available_parallelism().map_or(1, usize::from),
            out: PathBuf::from("docs/truth-random.md"),
            linerate: None,
        };
        let mut remaining = arguments.iter();
        while let Some(option) = remaining.next() {
            match option.as_str() {
                "--quick" => parsed.quick = true,
                "--again" => parsed.again = true,
                "--replay" => parsed.replay = true,
                "--library" => is_library = true,
                _ => {
                    let value = remaining
                        .next()
                        .with_context(|| format!("unknown option '{option}', or its value is missing"))?;
                    let number = || value.parse::<u64>().with_context(|| format!("{option} takes a whole number"));
                    match option.as_str() {
                        "--random" => count = Some(number()?),
                        "--seed" => parsed.seeds.push(number()?),
                        "--only" if is_library => names.push(value.clone()),
                        "--only" => parsed.only = Some(number()?),
                        "--show" => parsed.show = Some(number()?),
                        "--jobs" => parsed.jobs = value.parse().context("--jobs takes a whole number")?,
                        "--out" => parsed.out = PathBuf::from(value),
                        "--linerate" => parsed.linerate = Some(PathBuf::from(value)),
                        _ => bail!("unknown option '{option}'"),
                    }
                }
            }
        }
        ensure!((1..=64).contains(&parsed.jobs), "--jobs must be 1 to 64");
        ensure!(is_library != count.is_some(), "write either --random N or --library");
        if parsed.seeds.is_empty() {
            parsed.seeds.push(1);
        }
        ensure!(
            parsed.seeds.len() == 1 || parsed.only.or(parsed.show).is_none(),
            "write one --seed with --only or --show"
        );
        parsed.paths = count.map_or(TruthPaths::Library(names), TruthPaths::Random);
        Ok(parsed)
    }

    /// Returns which parts of a kept case are used.
    pub(super) const fn reuse(&self) -> KeptParts {
        match (self.replay, self.again) {
            (true, _) => KeptParts::Only,
            (false, true) => KeptParts::Truth,
            (false, false) => KeptParts::All,
        }
    }

    /// Returns what a case may cost.
    pub(super) const fn budget(&self) -> CaseBudget {
        if self.quick { CaseBudget::QUICK } else { CaseBudget::FULL }
    }

    /// Returns the options that select a path again.
    pub(super) fn repeat(&self, seed: u64, index: u64) -> String {
        format!("--random {} --seed {seed}{} --only {index}", index + 1, self.length())
    }

    /// Returns the options that select all paths.
    pub(super) fn selection(&self) -> String {
        let seeds: Vec<String> = self.seeds.iter().map(|seed| format!(" --seed {seed}")).collect();
        format!("--random N{}{}", seeds.concat(), self.length())
    }

    const fn length(&self) -> &'static str {
        if self.quick { " --quick" } else { "" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<TruthArguments> {
        TruthArguments::parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn paths_are_drawn_or_of_the_library() {
        let drawn = parse("--random 40 --seed 7 --quick --only 3").expect("valid");
        assert_eq!(
            (drawn.paths.clone(), drawn.seeds.as_slice(), drawn.only),
            (TruthPaths::Random(40), &[7][..], Some(3))
        );
        assert_eq!(drawn.repeat(7, 3), "--random 4 --seed 7 --quick --only 3");
        let both = parse("--random 40 --seed 1 --seed 2").expect("valid");
        assert_eq!((both.seeds.as_slice(), both.selection().as_str()), (&[1, 2][..], "--random N --seed 1 --seed 2"));
        assert_eq!(parse("--random 1").expect("valid").seeds, [1]);
        let library = parse("--library --only lte --only wifi").expect("valid");
        assert_eq!(library.paths, TruthPaths::Library(vec!["lte".to_owned(), "wifi".to_owned()]));
    }

    #[test]
    fn invalid_arguments_are_refused() {
        for wrong in [
            "",
            "--seed 1",
            "--random",
            "--random x",
            "--random 1 --library",
            "--random 1 --jobs 0",
            "--what 1",
            "--random 9 --seed 1 --seed 2 --only 3",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
