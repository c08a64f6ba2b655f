//! `cargo xtask bench`: linerate against the iperf3 of this machine, interleaved, over loopback.
//!
//! A machine's speed drifts from minute to minute, so runs of the programs alternate and only runs of the same round
//! are compared. Each run has a fresh server on a fresh port. CPU time is the kernel's account of the two processes,
//! not their own.

mod arguments;
mod cell;
mod lab;
mod machine;
mod process;
mod report;
mod result;
mod run;
mod statistics;

use std::fs;
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use self::arguments::BenchArguments;
use self::cell::BenchCell;
use self::machine::TestMachine;
use self::report::CellReport;
use self::run::{BenchProgram, BenchRun, ProgramPair};
use crate::workspace;

/// Measures the requested cells, prints the table and writes the report; returns true if every run succeeded.
pub(crate) fn run(arguments: &[String]) -> Result<bool> {
    if let Some((_, remaining)) = arguments.split_first().filter(|(first, _)| *first == "lab") {
        return lab::run(remaining);
    }
    let arguments = BenchArguments::parse(arguments)?;
    let baseline = BenchProgram::iperf3()?;
    let candidate = match &arguments.linerate {
        Some(path) => BenchProgram::linerate(path)?,
        None => BenchProgram::linerate(&build()?)?,
    };
    let machine = TestMachine::read(arguments.date.clone())?;
    let pairs = ProgramPair::all(&baseline, &candidate, arguments.mixed);
    let mut reports = Vec::new();
    for cell in arguments.cells() {
        let report = measure(cell, &pairs, &arguments);
        println!("{}", report.line());
        reports.push(report);
    }
    let document = report::document(&machine, &arguments, &[&baseline, &candidate], &reports);
    println!("\n{}", report::tables(&reports));
    let out = workspace::root().join(&arguments.out);
    fs::write(&out, document).with_context(|| format!("cannot write {}", out.display()))?;
    println!("written: {}", out.display());
    Ok(reports.iter().all(CellReport::is_complete))
}

/// Builds the binary as it is shipped and returns its path.
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

/// Runs all rounds of one cell: a warm-up of each pair, then rounds whose order alternates (A B, B A, A B, …).
fn measure<'a>(cell: &'static BenchCell, pairs: &'a [ProgramPair<'a>], arguments: &BenchArguments) -> CellReport<'a> {
    let mut report = CellReport::new(cell, pairs);
    for pair in pairs {
        if let Err(error) = pair.run(cell, 1) {
            report.fail(pair, &format!("warm-up: {error:#}"));
        }
    }
    for round in 0..arguments.rounds {
        let mut results: Vec<Option<BenchRun>> = vec![None; pairs.len()];
        let forward: Vec<usize> = (0..pairs.len()).collect();
        let order: Vec<usize> = if round % 2 == 0 { forward } else { forward.into_iter().rev().collect() };
        for index in order {
            progress(&format!("{} round {}/{} {}", cell.name, round + 1, arguments.rounds, pairs[index].name()));
            match pairs[index].run(cell, arguments.seconds) {
                Ok(run) => results[index] = Some(run),
                Err(error) => report.fail(&pairs[index], &format!("round {}: {error:#}", round + 1)),
            }
        }
        report.add_round(results);
    }
    progress("");
    report
}

/// Shows the progress on a terminal, in one line that is overwritten.
fn progress(text: &str) {
    if std::io::stderr().is_terminal() {
        eprint!("\r{text:70}\r");
    }
}
