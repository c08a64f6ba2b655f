//! The command line of `cargo xtask bench`.

use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};

use super::cell::{CELLS, Cell};

/// What was asked for.
#[derive(Debug, PartialEq)]
pub(super) struct Arguments {
    /// Compared runs of each pair in each cell.
    pub(super) rounds: usize,
    /// Length of a run in seconds.
    pub(super) seconds: u64,
    /// Names of the cells to measure; empty for all.
    only: Vec<String>,
    /// Whether to measure the pairs of two different programs as well.
    pub(super) mixed: bool,
    /// Where the report goes, from the root of the workspace.
    pub(super) out: PathBuf,
    /// The binary to measure; built when not given.
    pub(super) linerate: Option<PathBuf>,
    /// The date to write in the report; the system's when not given.
    pub(super) date: Option<String>,
}

impl Default for Arguments {
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

impl Arguments {
    /// Reads the arguments after `bench`.
    pub(super) fn parse(arguments: &[String]) -> Result<Self> {
        let mut parsed = Self::default();
        let mut rest = arguments.iter();
        while let Some(option) = rest.next() {
            if option == "--mixed" {
                parsed.mixed = true;
                continue;
            }
            let value = rest.next().with_context(|| format!("{option} is unknown or lacks its value"))?;
            match option.as_str() {
                "--rounds" => parsed.rounds = value.parse().context("--rounds takes a whole number")?,
                "--seconds" => parsed.seconds = value.parse().context("--seconds takes a whole number")?,
                "--only" => parsed.only.push(value.clone()),
                "--out" => parsed.out = PathBuf::from(value),
                "--linerate" => parsed.linerate = Some(PathBuf::from(value)),
                "--date" => parsed.date = Some(value.clone()),
                _ => bail!("unknown option {option}"),
            }
        }
        parsed.validated()
    }

    fn validated(self) -> Result<Self> {
        ensure!((1..=100).contains(&self.rounds), "--rounds must be 1 to 100");
        ensure!((1..=60).contains(&self.seconds), "--seconds must be 1 to 60");
        let known: Vec<&str> = CELLS.iter().map(|cell| cell.name).collect();
        for name in &self.only {
            ensure!(known.contains(&name.as_str()), "no cell {name}; there are {}", known.join(", "));
        }
        Ok(self)
    }

    /// The cells to measure.
    pub(super) fn cells(&self) -> impl Iterator<Item = &'static Cell> {
        CELLS.iter().filter(|cell| self.only.is_empty() || self.only.iter().any(|name| name == cell.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Arguments> {
        Arguments::parse(&text.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn nothing_asked_is_everything_seven_times_two_seconds() {
        let arguments = parse("").expect("nothing is valid");
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
    fn what_is_not_understood_is_refused() {
        for text in ["--rounds", "--rounds x", "--rounds 0", "--seconds 61", "--only nothing", "--fast 1"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
