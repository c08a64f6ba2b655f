//! Command line of `cargo xtask bench`.

use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};

use super::cell::{BenchCell, cells};

/// Parsed arguments.
#[derive(Debug, PartialEq)]
pub(super) struct BenchArguments {
    /// Number of compared runs of each contender in each cell.
    pub(super) rounds: usize,
    /// Length of a run in seconds.
    pub(super) seconds: u64,
    /// Seed of the order of the runs.
    pub(super) seed: u64,
    /// Rounds after which programs far behind in a cell are left out of it; `None` for never.
    pub(super) narrow_after: Option<usize>,
    /// Beginnings of the names of the cells to measure; empty for all.
    pub(super) only: Vec<String>,
    /// Names of the programs to compare with; empty for all.
    pub(super) peers: Vec<String>,
    /// True for the cells that show most, shortly.
    pub(super) quick: bool,
    /// True to forget the runs of an interrupted bench.
    pub(super) fresh: bool,
    /// Report file, relative to the root of the workspace.
    pub(super) out: PathBuf,
    /// Binary to measure; built when not given.
    pub(super) linerate: Option<PathBuf>,
    /// A newer iperf3 than that of the distribution.
    pub(super) iperf3_newest: Option<PathBuf>,
    /// Date of the report; the system's when not given.
    pub(super) date: Option<String>,
}

impl Default for BenchArguments {
    fn default() -> Self {
        Self {
            rounds: 30,
            seconds: 2,
            seed: 1,
            narrow_after: None,
            only: Vec::new(),
            peers: Vec::new(),
            quick: false,
            fresh: false,
            out: PathBuf::from("BENCHMARKS.md"),
            linerate: None,
            iperf3_newest: None,
            date: None,
        }
    }
}

impl BenchArguments {
    /// Parses the arguments after `bench`.
    pub(super) fn parse(arguments: &[String]) -> Result<Self> {
        let mut parsed = Self::default();
        if arguments.iter().any(|option| option == "--quick") {
            (parsed.quick, parsed.rounds, parsed.seconds) = (true, 3, 1);
        }
        let mut remaining = arguments.iter();
        while let Some(option) = remaining.next() {
            match option.as_str() {
                "--quick" => continue,
                "--fresh" => {
                    parsed.fresh = true;
                    continue;
                }
                _ => {}
            }
            let value =
                remaining.next().with_context(|| format!("unknown option '{option}', or its value is missing"))?;
            parsed.set(option, value)?;
        }
        parsed.validated()
    }

    fn set(&mut self, option: &str, value: &str) -> Result<()> {
        match option {
            "--rounds" => self.rounds = value.parse().context("--rounds takes a whole number")?,
            "--seconds" => self.seconds = value.parse().context("--seconds takes a whole number")?,
            "--seed" => self.seed = value.parse().context("--seed takes a whole number")?,
            "--narrow-after" => {
                self.narrow_after = Some(value.parse().context("--narrow-after takes a whole number")?);
            }
            "--only" => self.only.push(value.to_owned()),
            "--peer" => self.peers.push(value.to_owned()),
            "--out" => self.out = PathBuf::from(value),
            "--linerate" => self.linerate = Some(PathBuf::from(value)),
            "--iperf3-newest" => self.iperf3_newest = Some(PathBuf::from(value)),
            "--date" => self.date = Some(value.to_owned()),
            _ => bail!("unknown option '{option}'"),
        }
        Ok(())
    }

    fn validated(self) -> Result<Self> {
        ensure!((1..=1000).contains(&self.rounds), "--rounds must be 1 to 1000");
        ensure!((1..=60).contains(&self.seconds), "--seconds must be 1 to 60");
        ensure!(self.narrow_after != Some(0), "--narrow-after must be 1 or more");
        let cells = cells();
        for name in &self.only {
            let known: Vec<&str> = cells.iter().map(|cell| cell.name.as_str()).collect();
            ensure!(
                known.iter().any(|cell| cell.starts_with(name)),
                "no cell begins with '{name}' (there are: {})",
                known.join(", ")
            );
        }
        Ok(self)
    }

    /// Returns the cells to measure.
    pub(super) fn cells(&self) -> Vec<BenchCell> {
        let is_wanted = |cell: &BenchCell| match self.only.as_slice() {
            [] => !self.quick || cell.is_quick,
            names => names.iter().any(|name| cell.name.starts_with(name.as_str())),
        };
        cells().into_iter().filter(is_wanted).collect()
    }

    /// True when a program of this name is to be compared with.
    pub(super) fn wants(&self, program: &str) -> bool {
        self.peers.is_empty() || self.peers.iter().any(|name| name == program)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<BenchArguments> {
        BenchArguments::parse(&text.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn no_arguments_mean_all_cells_thirty_times_two_seconds() {
        let arguments = parse("").expect("no arguments are valid");
        assert_eq!((arguments.rounds, arguments.seconds), (30, 2));
        assert_eq!(arguments.cells().len(), cells().len());
    }

    #[test]
    fn every_option_is_read() {
        let arguments = parse(
            "--rounds 3 --seconds 1 --seed 7 --narrow-after 2 --only tcp-p1- --only udp-200 --peer xfr --fresh --out x.md --linerate l \
             --iperf3-newest i --date d",
        )
        .expect("all options are valid");
        let names: Vec<_> = arguments.cells().into_iter().map(|cell| cell.name).collect();
        let tcp = ["tcp-p1-up", "tcp-p1-down", "tcp-p1-both"];
        assert_eq!(names, [&tcp[..], &["udp-200", "udp-200-1M", "udp-200-100M", "udp-200-1G"]].concat());
        assert_eq!((arguments.rounds, arguments.seconds, arguments.seed, arguments.fresh), (3, 1, 7, true));
        assert_eq!(arguments.narrow_after, Some(2));
        assert!(arguments.wants("xfr") && !arguments.wants("iperf3"));
        assert_eq!(arguments.linerate, Some(PathBuf::from("l")));
        assert_eq!(arguments.iperf3_newest, Some(PathBuf::from("i")));
        assert_eq!(arguments.date.as_deref(), Some("d"));
    }

    #[test]
    fn quick_is_short_unless_told_otherwise() {
        let quick = parse("--rounds 2 --quick").expect("valid");
        assert_eq!((quick.rounds, quick.seconds), (2, 1));
        assert!(quick.cells().iter().all(|cell| cell.is_quick));
    }

    #[test]
    fn invalid_arguments_are_refused() {
        for text in
            ["--rounds", "--rounds x", "--rounds 0", "--seconds 61", "--only nothing", "--fast 1", "--narrow-after 0"]
        {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
