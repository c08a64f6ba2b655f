//! Command line of `cargo xtask bench`.

use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};

use super::cell::{BenchCell, CELLS};

/// Parsed arguments.
#[derive(Debug, PartialEq)]
pub(super) struct BenchArguments {
    /// Number of compared runs of each pair in each cell.
    pub(super) rounds: usize,
    /// Length of a run in seconds.
    pub(super) seconds: u64,
    /// Names of the cells to measure; empty for all.
    only: Vec<String>,
    /// True to measure the pairs of two different programs as well.
    pub(super) mixed: bool,
    /// Report file, relative to the root of the workspace.
    pub(super) out: PathBuf,
    /// Binary to measure; built when not given.
    pub(super) linerate: Option<PathBuf>,
    /// Date of the report; the system's when not given.
    pub(super) date: Option<String>,
}

impl Default for BenchArguments {
    fn default() -> Self {
        Self {
            rounds: 7,
            seconds: 2,
            only: Vec::new(),
            mixed: false,
            out: PathBuf::from("BENCHMARKS.md"),
            linerate: None,
            date: None,
        }
    }
}

impl BenchArguments {
    /// Parses the arguments after `bench`.
    pub(super) fn parse(arguments: &[String]) -> Result<Self> {
        let mut parsed = Self::default();
        let mut remaining = arguments.iter();
        while let Some(option) = remaining.next() {
            if option == "--mixed" {
                parsed.mixed = true;
                continue;
            }
            let value =
                remaining.next().with_context(|| format!("unknown option '{option}', or its value is missing"))?;
            match option.as_str() {
                "--rounds" => parsed.rounds = value.parse().context("--rounds takes a whole number")?,
                "--seconds" => parsed.seconds = value.parse().context("--seconds takes a whole number")?,
                "--only" => parsed.only.push(value.clone()),
                "--out" => parsed.out = PathBuf::from(value),
                "--linerate" => parsed.linerate = Some(PathBuf::from(value)),
                "--date" => parsed.date = Some(value.clone()),
                _ => bail!("unknown option '{option}'"),
            }
        }
        parsed.validated()
    }

    fn validated(self) -> Result<Self> {
        ensure!((1..=100).contains(&self.rounds), "--rounds must be 1 to 100");
        ensure!((1..=60).contains(&self.seconds), "--seconds must be 1 to 60");
        let known: Vec<&str> = CELLS.iter().map(|cell| cell.name).collect();
        for name in &self.only {
            ensure!(known.contains(&name.as_str()), "unknown cell '{name}' (expected one of: {})", known.join(", "));
        }
        Ok(self)
    }

    /// Returns the cells to measure.
    pub(super) fn cells(&self) -> impl Iterator<Item = &'static BenchCell> {
        CELLS.iter().filter(|cell| self.only.is_empty() || self.only.iter().any(|name| name == cell.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<BenchArguments> {
        BenchArguments::parse(&text.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn no_arguments_mean_all_cells_seven_times_two_seconds() {
        let arguments = parse("").expect("no arguments are valid");
        assert_eq!((arguments.rounds, arguments.seconds), (7, 2));
        assert_eq!(arguments.cells().count(), CELLS.len());
    }

    #[test]
    fn every_option_is_read() {
        let arguments =
            parse("--rounds 3 --seconds 1 --only tcp --only udp-200 --mixed --out x.md --linerate l --date d")
                .expect("all options are valid");
        assert_eq!(arguments.rounds, 3);
        assert_eq!(arguments.cells().map(|cell| cell.name).collect::<Vec<_>>(), ["tcp", "udp-200"]);
        assert!(arguments.mixed);
        assert_eq!(arguments.linerate, Some(PathBuf::from("l")));
        assert_eq!(arguments.date.as_deref(), Some("d"));
    }

    #[test]
    fn invalid_arguments_are_refused() {
        for text in ["--rounds", "--rounds x", "--rounds 0", "--seconds 61", "--only nothing", "--fast 1"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
