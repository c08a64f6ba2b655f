//! QUIC: `linerate test --quic` next to xfr and to bare loops over quinn, over loopback and over an emulated path.
//!
//! `bench quic [ROUNDS] [--only CELL]` runs all of them in random order, in both directions, with one stream and with four, and
//! compares only the figures of one round; `bench quic --lab [ROUNDS]` runs them over a long and fast path (`quic_lab`).
//! `--linerate FILE` and `--bare FILE` are programs that need not be built. The bare loops are `crates/quic/src/bin/bare_quic.rs`
//! with the settings of linerate, and with those of quinn's `perf` tool, which is not in the registry: datagrams of 1452 bytes,
//! buffers of 2 MiB, quinn's windows.
//! Processor time is of both ends together: that of the threads of the connection for linerate, whose processes also measure TCP,
//! and that of the processes for the others.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::process::{CpuAccount, RunningChild};
use super::program::Dialect;
use super::run::{free_port, wait_until_bound, wait_until_listening};
use super::statistics::{XorShift64, bootstrap_median, median, ratios};
use super::{peers, quic_lab, result};
use crate::workspace;

/// Payload seconds of a run.
const SECONDS: &str = "3";

/// Longest run, with its TCP part and its start.
const FINISH_TIMEOUT: Duration = Duration::from_secs(60);

const USAGE: &str =
    "usage: cargo xtask bench quic [--lab] [ROUNDS] [--only up-1|down-1|up-4|down-4] [--linerate FILE] [--bare FILE]";

/// Direction and streams of the cells.
const CELLS: [(&str, &str); 4] = [("up", "1"), ("down", "1"), ("up", "4"), ("down", "4")];

/// Program that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Candidate {
    Linerate,
    Bare,
    Xfr,
    QuinnDefaults,
}

impl Candidate {
    const ALL: [Self; 4] = [Self::Linerate, Self::Bare, Self::Xfr, Self::QuinnDefaults];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Linerate => "linerate",
            Self::Bare => "bare quinn loop, the same settings",
            Self::Xfr => "xfr",
            Self::QuinnDefaults => "bare quinn loop, settings of quinn's perf",
        }
    }

    /// True for the programs that the goal names: linerate is to be as fast as the best of them.
    const fn is_peer(self) -> bool {
        matches!(self, Self::Xfr | Self::QuinnDefaults)
    }
}

/// Figures of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct QuicFigures {
    /// Goodput in bit/s.
    pub(super) goodput: f64,
    /// Processor seconds of both ends per Gbit.
    cpu: f64,
}

/// Programs of the comparison.
pub(super) struct Programs {
    pub(super) linerate: PathBuf,
    pub(super) bare: PathBuf,
    /// `None` where it cannot be installed.
    pub(super) xfr: Option<PathBuf>,
}

/// Arguments of the command.
#[derive(Debug, Default)]
struct QuicArguments {
    rounds: Option<u64>,
    is_lab: bool,
    only: Option<String>,
    linerate: Option<PathBuf>,
    bare: Option<PathBuf>,
}

impl QuicArguments {
    fn parse(arguments: &[String]) -> Result<Self> {
        let mut parsed = Self::default();
        let mut remaining = arguments.iter();
        while let Some(argument) = remaining.next() {
            let mut value = || remaining.next().context(USAGE);
            match argument.as_str() {
                "--lab" => parsed.is_lab = true,
                "--only" => parsed.only = Some(value()?.clone()),
                "--linerate" => parsed.linerate = Some(value()?.into()),
                "--bare" => parsed.bare = Some(value()?.into()),
                number => parsed.rounds = Some(number.parse().context(USAGE)?),
            }
        }
        let is_cell =
            |only: &String| CELLS.iter().any(|(direction, streams)| *only == format!("{direction}-{streams}"));
        ensure!(parsed.only.as_ref().is_none_or(is_cell), USAGE);
        Ok(parsed)
    }
}

/// Runs the comparison and prints a line for each program and cell; false unless linerate is shown to be at least as fast as the peers.
pub(super) fn run(arguments: &[String]) -> Result<bool> {
    let arguments = QuicArguments::parse(arguments)?;
    let programs = Programs::find(arguments.linerate, arguments.bare)?;
    if arguments.is_lab {
        return quic_lab::run(&programs, arguments.rounds.unwrap_or(3));
    }
    let rounds = arguments.rounds.unwrap_or(10);
    let mut is_first = true;
    for (number, (direction, streams)) in (0..).zip(CELLS) {
        if arguments.only.as_ref().is_some_and(|only| *only != format!("{direction}-{streams}")) {
            continue;
        }
        let mut figures: [Vec<Option<QuicFigures>>; 4] = Default::default();
        for round in 0..rounds {
            let mut order = Candidate::ALL;
            XorShift64::new(round * 4 + number + 1).shuffle(&mut order);
            for candidate in order.into_iter().filter(|one| *one != Candidate::Xfr || programs.xfr.is_some()) {
                let run = programs.measure(candidate, direction, streams);
                if let Err(error) = &run {
                    println!("{direction}, {streams}, round {}: {}: {error:#}", round + 1, candidate.name());
                }
                figures[candidate as usize].push(run.ok());
            }
        }
        is_first &= report(direction, streams, &figures)?;
    }
    Ok(is_first)
}

/// Prints a cell; false unless the whole interval of each ratio to a peer is at least 1.
fn report(direction: &str, streams: &str, figures: &[Vec<Option<QuicFigures>>; 4]) -> Result<bool> {
    println!("{direction}, streams: {streams}, rounds: {}", figures[0].len());
    let of = |candidate: Candidate, figure: fn(&QuicFigures) -> f64| -> Vec<Option<f64>> {
        figures[candidate as usize].iter().map(|run| run.as_ref().map(figure)).collect()
    };
    let middle = |values: &[Option<f64>]| median(&values.iter().copied().flatten().collect::<Vec<_>>());
    let ours = of(Candidate::Linerate, |run| run.goodput);
    let mut is_first = true;
    for candidate in Candidate::ALL {
        let (goodput, cpu) = (of(candidate, |run| run.goodput), of(candidate, |run| run.cpu));
        let (Some(rate), Some(seconds)) = (middle(&goodput), middle(&cpu)) else {
            println!("  {:42} no run", candidate.name());
            is_first &= !candidate.is_peer();
            continue;
        };
        print!("  {:42} {:6.2} Gbit/s  {seconds:.3} CPU s/Gbit", candidate.name(), rate / 1e9);
        if candidate == Candidate::Linerate {
            println!();
            continue;
        }
        let ratio = bootstrap_median(&ratios(&ours, &goodput)).context("no round")?;
        println!("  linerate: x {:.3} ({:.3} to {:.3})", ratio.median, ratio.low, ratio.high);
        is_first &= !candidate.is_peer() || ratio.low >= 1.0;
    }
    Ok(is_first)
}

impl Programs {
    fn find(linerate: Option<PathBuf>, bare: Option<PathBuf>) -> Result<Self> {
        let linerate = linerate.map_or_else(super::build, Ok)?;
        let xfr = peers::install_program("xfr");
        if let Err(error) = &xfr {
            println!("xfr is not measured: {error:#}");
        }
        Ok(Self { linerate, bare: bare.map_or_else(build_bare, Ok)?, xfr: xfr.ok() })
    }

    fn measure(&self, candidate: Candidate, direction: &str, streams: &str) -> Result<QuicFigures> {
        match candidate {
            Candidate::Linerate => linerate(&self.linerate, direction, streams),
            Candidate::Bare => bare(&self.bare, "own", direction, streams),
            Candidate::QuinnDefaults => bare(&self.bare, "defaults", direction, streams),
            Candidate::Xfr => xfr(self.xfr.as_deref().context("it is not installed")?, direction, streams),
        }
    }
}

/// Builds the bare loop as linerate is built.
fn build_bare() -> Result<PathBuf> {
    let root = workspace::root();
    let status = Command::new(workspace::cargo())
        .args(["build", "--release", "--locked", "--package", "linerate-cli", "--package", "linerate-quic"])
        .args(["--features", "linerate-quic/bare", "--bin", "bare_quic"])
        .current_dir(&root)
        .stdin(Stdio::null())
        .status()
        .context("cannot start cargo build")?;
    ensure!(status.success(), "cargo build of crates/quic/src/bin/bare_quic.rs ended with {status}");
    Ok(root.join("target/release/bare_quic"))
}

fn line(program: &Path, arguments: &[&str]) -> Vec<String> {
    std::iter::once(program.display().to_string()).chain(arguments.iter().map(|one| (*one).to_owned())).collect()
}

/// Runs a client to its end.
fn finish(line: &[String]) -> Result<String> {
    let finished = RunningChild::start(line)?.finish(FINISH_TIMEOUT)?;
    ensure!(finished.success, "the client failed: {}", finished.output.trim());
    Ok(finished.output)
}

fn linerate(program: &Path, direction: &str, streams: &str) -> Result<QuicFigures> {
    let port = free_port()?;
    let text = port.to_string();
    let mut server = RunningChild::start(&line(program, &["serve", "--no-stamp", "-B", "127.0.0.1", "-p", &text]))?;
    wait_until_listening(&mut server, port)?;
    let direction = format!("--{direction}");
    let options = ["--quic", "-C", "cubic", "-P", streams, &direction, "-t", SECONDS, "--json", "--quiet"];
    let client = [&["--no-history", "test", "127.0.0.1", "-p", &text][..], &options].concat();
    let output = finish(&line(program, &client))?;
    linerate_figures(&output, streams.parse()?)
}

/// Figures of the transfer with that number of streams from a document of `linerate test --quic`.
pub(super) fn linerate_figures(output: &str, streams: u64) -> Result<QuicFigures> {
    let run: Value = serde_json::from_str(output).context("no document")?;
    let runs = run.pointer("/result/throughput/quic/runs").and_then(Value::as_array);
    let runs = runs.context("the document has no QUIC runs")?;
    let run = runs.iter().find(|run| run["streams"] == streams).context("no run with these streams")?;
    let receiver = if run["direction"] == "up" { "server" } else { "client" };
    let number = |end: &str, key: &str| run[end][key].as_f64().with_context(|| format!("{end} lacks {key}"));
    let bits = number(receiver, "bytes")? * 8.0;
    let cpu = number("client", "thread_cpu_ns")? + number("server", "thread_cpu_ns")?;
    let time = number(receiver, "duration_ns")?;
    ensure!(bits > 0.0 && time > 0.0, "no payload arrived");
    Ok(QuicFigures { goodput: bits / time * 1e9, cpu: cpu / bits })
}

fn bare(program: &Path, form: &str, direction: &str, streams: &str) -> Result<QuicFigures> {
    let port = free_port()?;
    let text = port.to_string();
    let client = line(program, &["send", &text, form, direction, streams, SECONDS, "/dev/stdout"]);
    let server = line(program, &["serve", &text, form]);
    processes(&server, &client, Dialect::Bare, |server| wait_until_bound(server, port))
}

fn xfr(program: &Path, direction: &str, streams: &str) -> Result<QuicFigures> {
    let port = free_port()?;
    let text = port.to_string();
    let time = format!("{SECONDS}s");
    let mut client = line(program, &["127.0.0.1", "-p", &text, "-Q", "-P", streams, "-t", &time, "--json", "--no-tui"]);
    client.extend((direction == "down").then(|| "-R".to_owned()));
    let server = line(program, &["serve", "-p", &text, "--no-mdns"]);
    processes(&server, &client, Dialect::Xfr, |server| wait_until_listening(server, port))
}

/// Runs a server, which is ended afterwards, and a client, and counts the processor time of both.
fn processes(
    server: &[String],
    client: &[String],
    dialect: Dialect,
    wait: impl FnOnce(&mut RunningChild) -> Result<()>,
) -> Result<QuicFigures> {
    let before = CpuAccount::read()?;
    let mut server = RunningChild::start(server)?;
    wait(&mut server)?;
    let figures = result::figures(dialect, &finish(client)?)?;
    drop(server);
    let used = before.since_then()?;
    Ok(QuicFigures { goodput: figures.goodput, cpu: used.children / (figures.received_bits / 1e9) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_those_of_the_receiver_and_of_both_threads() {
        let document = r#"{"result": {"throughput": {"quic": {"runs": [
            {"direction": "down", "streams": 1, "client": {"bytes": 1, "thread_cpu_ns": 1, "duration_ns": 1}},
            {"direction": "up", "streams": 4,
             "client": {"bytes": 900, "thread_cpu_ns": 1000, "duration_ns": 9},
             "server": {"bytes": 1000, "thread_cpu_ns": 3000, "duration_ns": 4000}}]}}}}"#;
        let figures = linerate_figures(document, 4).expect("complete");
        // 8000 bits in 4 µs, for 4 µs of processor time: 0.5 s per Gbit.
        assert!((figures.goodput - 2e9).abs() < 1.0 && (figures.cpu - 0.5).abs() < 1e-9, "{figures:?}");
        assert!(linerate_figures(document, 2).is_err());
        assert!(linerate_figures("{}", 1).is_err());
    }

    #[test]
    fn a_cell_is_selected_by_its_name() {
        let of = |line: &str| QuicArguments::parse(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        let arguments = of("8 --only down-4 --bare target/bare_quic").expect("a cell");
        assert_eq!((arguments.rounds, arguments.only.as_deref()), (Some(8), Some("down-4")));
        assert_eq!(arguments.bare, Some(PathBuf::from("target/bare_quic")));
        for wrong in ["--only down-3", "--only", "--fast"] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_cell_is_won_only_when_the_whole_interval_is() {
        let runs = |goodput: f64| vec![Some(QuicFigures { goodput, cpu: 1.0 }); 5];
        let of = |xfr: f64| [runs(2e9), runs(9e9), runs(xfr), runs(1e9)];
        assert!(report("up", "1", &of(1.9e9)).expect("all have runs"), "a faster bare loop is no peer");
        assert!(!report("up", "1", &of(2.1e9)).expect("all have runs"));
        assert!(!report("up", "1", &[runs(2e9), runs(2e9), Vec::new(), runs(1e9)]).expect("two"), "xfr has no run");
    }
}
