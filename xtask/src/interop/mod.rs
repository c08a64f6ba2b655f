//! `cargo xtask interop`: all options of iperf3's client and server in the pairings of linerate with other
//! implementations, each compared with the other implementation against itself.
//!
//! The tests in crates/cli/tests/interop.rs check the figures of the frequent options; this matrix is wider, and checks
//! the exit status, the counted bytes by class, and the keys of the JSON document. `--write` puts the results into
//! docs/compatibility.md.

mod cases;
mod outcome;
mod page;
mod peers;
mod run;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use anyhow::{Context, Result, bail};

use self::cases::{CASES, Case};
use self::outcome::Observation;
use self::peers::Peer;
use self::run::{Cell, Files};
use crate::{bench, workspace};

/// Page with the results.
const PAGE: &str = "docs/compatibility.md";

/// Attempts for a cell that differs: real programs run in real time, and a busy host can spoil a single run.
const ATTEMPTS: u32 = 3;

/// Parsed arguments.
#[derive(Debug, PartialEq)]
struct InteropArguments {
    /// True for every eighth case only.
    quick: bool,
    /// True to write the page.
    write: bool,
    /// The newest iperf3.
    newest: Option<PathBuf>,
    /// linerate's binary; built when not given.
    linerate: Option<PathBuf>,
    /// Concurrent cells.
    jobs: usize,
    /// Text that the arguments of a case must contain.
    only: Option<String>,
}

impl InteropArguments {
    fn parse(arguments: &[String]) -> Result<Self> {
        let mut parsed = Self { quick: false, write: false, newest: None, linerate: None, jobs: 6, only: None };
        let mut remaining = arguments.iter();
        while let Some(option) = remaining.next() {
            let mut value = || remaining.next().with_context(|| format!("the value of '{option}' is missing"));
            match option.as_str() {
                "--quick" => parsed.quick = true,
                "--write" => parsed.write = true,
                "--newest" => parsed.newest = Some(PathBuf::from(value()?)),
                "--linerate" => parsed.linerate = Some(PathBuf::from(value()?)),
                "--jobs" => parsed.jobs = value()?.parse().context("--jobs takes a whole number")?,
                "--only" => parsed.only = Some(value()?.clone()),
                _ => bail!("unknown option '{option}'"),
            }
        }
        if parsed.write && (parsed.quick || parsed.only.is_some()) {
            bail!("--write needs the whole matrix: without --quick and --only");
        }
        Ok(parsed)
    }

    fn cases(&self) -> Vec<&'static Case> {
        let is_wanted = |case: &&Case| self.only.as_ref().is_none_or(|only| case.name().contains(only));
        let wanted = CASES.iter().filter(is_wanted);
        if self.quick { wanted.step_by(8).collect() } else { wanted.collect() }
    }
}

/// Client and server of a comparison with a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pairing {
    ToItself,
    ToPeer,
    FromPeer,
}

impl Pairing {
    const ALL: [Self; 3] = [Self::ToItself, Self::ToPeer, Self::FromPeer];

    fn name(self) -> &'static str {
        match self {
            Self::ToItself => "linerate → linerate",
            Self::ToPeer => "linerate → peer",
            Self::FromPeer => "peer → linerate",
        }
    }
}

/// Result of one case with one peer.
struct CaseResult {
    peer: usize,
    case: &'static Case,
    /// `None` where the peer has no such option.
    pairings: Option<[Comparison; 3]>,
}

/// Result of one cell.
#[derive(Clone, Debug, PartialEq)]
enum Comparison {
    Equal,
    Different(String),
}

/// Runs the matrix; returns true if each difference is a documented one.
pub(crate) fn run(arguments: &[String]) -> Result<bool> {
    let arguments = InteropArguments::parse(arguments)?;
    let linerate = match &arguments.linerate {
        Some(path) => path.clone(),
        None => bench::build()?,
    };
    let found = peers::find(arguments.newest.as_deref());
    for missing in &found.missing {
        println!("{}: not run: {}", missing.name, missing.reason);
    }
    let files = Files::create()?;
    let results = measure(&arguments, &linerate, &found.peers, &files);
    let text = page::results(&found, &results);
    println!("{text}");
    if arguments.write {
        let path = workspace::root().join(PAGE);
        let page = fs::read_to_string(&path).with_context(|| format!("cannot read {PAGE}"))?;
        fs::write(&path, page::replace(&page, &text)?).with_context(|| format!("cannot write {PAGE}"))?;
        println!("written: {PAGE}");
    }
    Ok(page::is_documented(&found, &results))
}

/// Runs all cells, several at a time.
fn measure(arguments: &InteropArguments, linerate: &Path, peers: &[Peer], files: &Files) -> Vec<CaseResult> {
    let cases = arguments.cases();
    let tasks = Mutex::new((0..peers.len()).flat_map(|peer| cases.iter().map(move |case| (peer, *case))));
    let results = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..arguments.jobs.max(1) {
            scope.spawn(|| {
                loop {
                    let task = tasks.lock().ok().and_then(|mut tasks| tasks.next());
                    let Some((peer, case)) = task else { return };
                    let pairings = compare_case(case, linerate, &peers[peer], files);
                    if let Ok(mut results) = results.lock() {
                        results.push(CaseResult { peer, case, pairings });
                    }
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap_or_default();
    let position = |case: &Case| CASES.iter().position(|other| std::ptr::eq(other, case));
    results.sort_by_key(|result| (result.peer, position(result.case)));
    results
}

/// Compares the three pairings of a case with the peer against itself; `None` where the peer lacks the option.
fn compare_case(case: &Case, linerate: &Path, peer: &Peer, files: &Files) -> Option<[Comparison; 3]> {
    let run = |client: &Path, server: &Path| -> Observation {
        Cell { case, client, server, linerate, pads_pkcs1: peer.pads_pkcs1, files }.run()
    };
    let mut reference = run(&peer.program, &peer.program);
    if reference.lacks_option() {
        return None;
    }
    Some(Pairing::ALL.map(|pairing| {
        let mut difference = String::new();
        for attempt in 0..ATTEMPTS {
            if attempt > 0 {
                reference = run(&peer.program, &peer.program);
            }
            let observed = match pairing {
                Pairing::ToItself => run(linerate, linerate),
                Pairing::ToPeer => run(linerate, &peer.program),
                Pairing::FromPeer => run(&peer.program, linerate),
            };
            match reference.difference(&observed) {
                None => return Comparison::Equal,
                Some(found) => difference = found,
            }
        }
        Comparison::Different(difference)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<InteropArguments> {
        InteropArguments::parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn arguments_are_parsed_or_refused() {
        let parsed = parse("--quick --newest /x/iperf3 --jobs 3").expect("known");
        assert_eq!((parsed.quick, parsed.jobs, parsed.newest), (true, 3, Some(PathBuf::from("/x/iperf3"))));
        for wrong in ["--newest", "--jobs many", "--what", "--write --quick", "--write --only -u"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_quick_run_is_a_sample_of_all_cases() {
        let all = parse("").expect("valid").cases().len();
        let quick = parse("--quick").expect("valid").cases().len();
        assert_eq!((all, quick), (CASES.len(), CASES.len().div_ceil(8)));
        assert!(parse("--only --gsro").expect("valid").cases().iter().all(|case| case.client.contains("--gsro")));
    }
}
