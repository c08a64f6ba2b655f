//! `cargo xtask test`: the whole test suite from one build, with the wall time of each suite.
//!
//! Tests that `cargo test` leaves out say in their reason why (see [`ignored`]); those that need root run where there is
//! root, and fail the suite elsewhere.

mod build;
mod ignored;
mod options;
mod outcome;
mod schedule;
mod table;

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use self::build::BuiltTests;
use self::outcome::SuiteOutcome;
use crate::workspace;

/// Builds and runs the tests; returns true when all passed.
pub(crate) fn run(arguments: &[String]) -> Result<bool> {
    let options = options::parse(arguments)?;
    let started = Instant::now();
    let tests = build::build(&options.packages)?;
    println!("built in {:.0} s", started.elapsed().as_secs_f64());
    build_lab_kernel(&tests)?;
    let started = Instant::now();
    let mut outcomes = schedule::run_all(&tests.suites, &options);
    if options.has_documentation() {
        outcomes.push(outcome::run_documentation(&options.packages)?);
    }
    outcomes.sort_by_key(|outcome| std::cmp::Reverse(outcome.time));
    let text = table::table(&outcomes);
    let processor_time = outcomes.iter().map(|outcome| outcome.processor_time).sum();
    let (all, busy) = (started.elapsed().as_secs_f64(), Duration::as_secs_f64(&processor_time));
    println!("\n{text}{all:.0} s in all, {busy:.0} s of processor time");
    outcomes.iter().flat_map(|outcome| &outcome.not_run).for_each(|line| println!("not run: {line}"));
    outcomes.iter().flat_map(|outcome| &outcome.unstable).for_each(|test| println!("unstable, passed alone: {test}"));
    if options.write {
        table::write(&text, started.elapsed(), processor_time)?;
    }
    let sum = |count: fn(&SuiteOutcome) -> usize| outcomes.iter().map(count).sum::<usize>();
    let (passed, failed) = (sum(|outcome| outcome.passed), sum(|outcome| outcome.failed));
    println!("{passed} passed, {failed} failed");
    Ok(failed == 0)
}

/// Builds the kernel of the lab with the program under test, unless the cache has it.
fn build_lab_kernel(tests: &BuiltTests) -> Result<()> {
    let Some(linerate) = &tests.linerate else { return Ok(()) };
    let status = Command::new(linerate)
        .args(["lab", "kernel", "build", "--if-missing"])
        .current_dir(workspace::root())
        .status()
        .with_context(|| format!("cannot start {}", linerate.display()))?;
    ensure!(status.success(), "the lab's kernel cannot be built ({status})");
    Ok(())
}
