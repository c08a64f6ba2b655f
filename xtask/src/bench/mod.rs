//! `cargo xtask bench`: linerate against the other programs of its kind, interleaved, over loopback and veth.
//!
//! A machine's speed drifts from minute to minute, so runs of the programs are in random order and only runs of the same
//! round are compared. Each run has a fresh server on a fresh port. CPU time is the kernel's account of the processes,
//! not their own. Every run is kept at once, so that an interrupted bench continues with the same command.

mod arguments;
mod bare;
mod cell;
mod checkpoint;
mod evidence;
mod figures;
mod lab;
pub(crate) mod machine;
mod network;
mod peers;
pub(crate) mod process;
mod program;
mod quic;
mod quic_lab;
mod relay;
mod report;
mod result;
mod rr;
pub(crate) mod run;
mod series;
mod statistics;
mod tables;
mod tls;

use std::fs;
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::json;

use self::arguments::BenchArguments;
use self::cell::BenchCell;
use self::checkpoint::{Checkpoint, RunKey};
use self::machine::TestMachine;
use self::peers::BenchPeers;
use self::program::Contender;
use self::series::{CellSeries, ContenderSeries, FAR_BEHIND, SECOND_NARROWING};
use self::statistics::XorShift64;
use crate::workspace;

/// Kept runs, relative to the root of the workspace.
const CHECKPOINT: &str = "target/bench/runs.jsonl";

/// Measures the requested cells, prints a line for each and writes the report; returns true if every run succeeded.
pub(crate) fn run(arguments: &[String]) -> Result<bool> {
    match arguments.split_first() {
        Some((first, remaining)) if first == "lab" => return lab::run(remaining),
        Some((first, remaining)) if first == "bare" => return bare::run(remaining),
        Some((first, remaining)) if first == "quic" => return quic::run(remaining),
        Some((first, remaining)) if first == "rr" => return rr::run(remaining),
        Some((first, remaining)) if first == "tls" => return tls::run(remaining),
        Some((first, remaining)) if first == "evidence" => return evidence::run(remaining),
        _ => {}
    }
    let arguments = BenchArguments::parse(arguments)?;
    let peers = peers::find(&arguments)?;
    let machine = TestMachine::read(arguments.date.clone())?;
    let path = workspace::root().join(CHECKPOINT);
    let mut checkpoint = Checkpoint::open(&path, &heading(&arguments, &peers, &machine), arguments.fresh)?;
    println!("{} runs are kept in {} (--fresh forgets them)", checkpoint.len(), path.display());
    let cells = arguments.cells();
    measure(&cells, &peers, &arguments, &mut checkpoint)?;
    let series: Vec<CellSeries> =
        cells.into_iter().map(|cell| collect(cell, &peers, arguments.rounds, &checkpoint)).collect();
    for cell in &series {
        println!("{}", tables::line(cell));
    }
    let document = report::document(&machine, &arguments, &peers, &series);
    let out = workspace::root().join(&arguments.out);
    fs::write(&out, document).with_context(|| format!("cannot write {}", out.display()))?;
    println!("written: {}", out.display());
    Ok(series.iter().all(|cell| cell.failures.is_empty()))
}

/// Conditions that runs must have in common to be compared.
fn heading(arguments: &BenchArguments, peers: &BenchPeers, machine: &TestMachine) -> serde_json::Value {
    let programs: Vec<_> =
        peers.programs.iter().map(|program| format!("{}: {}", program.name, program.version)).collect();
    json!({
        "seconds": arguments.seconds,
        "seed": arguments.seed,
        "programs": programs,
        "machine": format!("{} {} {}", machine.processor, machine.kernel, machine.congestion_control),
    })
}

/// Builds the binary as `cargo install` does and returns its path.
pub(crate) fn build() -> Result<PathBuf> {
    let root = workspace::root();
    let status = Command::new(workspace::cargo())
        .args(["build", "--release", "--locked", "--package", "linerate-cli"])
        .current_dir(&root)
        .status()
        .context("cannot start cargo build")?;
    ensure!(status.success(), "cargo build --release --package linerate-cli ended with {status}");
    let metadata = workspace::cargo_metadata(&root)?;
    let target = metadata["target_directory"].as_str().context("cargo metadata names no target folder")?;
    Ok(PathBuf::from(target).join("release/linerate"))
}

/// Runs all rounds, but for the kept runs, in the order of the seed.
fn measure(
    cells: &[BenchCell],
    peers: &BenchPeers,
    arguments: &BenchArguments,
    checkpoint: &mut Checkpoint,
) -> Result<()> {
    for round in 0..arguments.rounds {
        let mut random = XorShift64::new(arguments.seed.wrapping_add(round as u64));
        let mut order: Vec<&BenchCell> = cells.iter().collect();
        random.shuffle(&mut order);
        for cell in order {
            let mut contenders = contenders(cell, peers);
            for (rounds, factor) in narrowings(arguments.narrow_after).filter(|(rounds, _)| round >= *rounds) {
                let first = collect(cell.clone(), peers, rounds, checkpoint);
                let left_out = first.far_behind(factor);
                contenders.retain(|contender| !left_out.contains(&contender.label().as_str()));
            }
            random.shuffle(&mut contenders);
            for contender in contenders {
                let key: RunKey = (cell.name.clone(), contender.label(), round);
                if checkpoint.get(&key).is_some() {
                    continue;
                }
                progress(&format!("round {}/{} {} {}", round + 1, arguments.rounds, cell.name, contender.label()));
                let result = run::run(&contender, cell, arguments.seconds).map_err(|error| format!("{error:#}"));
                checkpoint.add(key, result)?;
            }
        }
    }
    progress("");
    Ok(())
}

/// Returns the rounds after which contenders are left out, each with the factor by which those are behind.
fn narrowings(after: Option<usize>) -> impl Iterator<Item = (usize, f64)> {
    after.into_iter().flat_map(|first| [first, first * SECOND_NARROWING]).zip(FAR_BEHIND)
}

fn contenders<'a>(cell: &BenchCell, peers: &'a BenchPeers) -> Vec<Contender<'a>> {
    peers.programs.iter().flat_map(|program| program.contenders(cell)).collect()
}

/// Collects the kept runs of the first `rounds` of a cell.
fn collect(cell: BenchCell, peers: &BenchPeers, rounds: usize, checkpoint: &Checkpoint) -> CellSeries {
    let mut failures = Vec::new();
    let contenders = contenders(&cell, peers).into_iter().map(|contender| {
        let label = contender.label();
        let runs = (0..rounds).map(|round| match checkpoint.get(&(cell.name.clone(), label.clone(), round))? {
            Ok(run) => Some(*run),
            Err(reason) => {
                failures.push(format!("{}, {label}, round {}: {reason}", cell.name, round + 1));
                None
            }
        });
        let runs = runs.collect();
        ContenderSeries { label, program: contender.program.name, dialect: contender.program.dialect, runs }
    });
    let contenders = contenders.collect();
    CellSeries { cell, contenders, failures }
}

/// Shows the progress on a terminal, in one line that is overwritten.
fn progress(text: &str) {
    if std::io::stderr().is_terminal() {
        eprint!("\r{text:78}\r");
    }
}
