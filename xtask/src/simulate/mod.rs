//! `cargo xtask simulate`: simulates the judge of `linerate tune` and the comparison of `linerate history compare`, compares
//! equal runs of the lab, and writes docs/statistics.md.
//!
//! The simulated paths and the bounds are those of the tests `judge_rates` (rules) and `compare_rates` (documents), which
//! run a sample of these cells.

mod comparisons;
mod lab;
#[path = "../../../crates/documents/tests/simulation/mod.rs"]
mod run_simulation;
mod table;
#[path = "../../../crates/rules/tests/simulation/mod.rs"]
mod trial_simulation;
mod trials;

use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;

use anyhow::{Context, Result, bail, ensure};

use self::table::RateTable;
use crate::workspace;

/// Parsed arguments.
#[derive(Debug, PartialEq)]
struct SimulationArguments {
    /// Simulated runs of each cell.
    runs: u32,
    /// Seed of all simulations.
    seed: u64,
    /// Output file, relative to the root of the workspace.
    out: PathBuf,
    /// Binary for the runs of the lab; built when not given.
    linerate: Option<PathBuf>,
    /// True to simulate only, and to print the tables without writing the page.
    is_without_lab: bool,
}

impl SimulationArguments {
    fn parse(arguments: &[String]) -> Result<Self> {
        let out = PathBuf::from("docs/statistics.md");
        let mut parsed = Self { runs: 2000, seed: 1, out, linerate: None, is_without_lab: false };
        let mut remaining = arguments.iter();
        while let Some(option) = remaining.next() {
            if option == "--without-lab" {
                parsed.is_without_lab = true;
                continue;
            }
            let value =
                remaining.next().with_context(|| format!("unknown option '{option}', or its value is missing"))?;
            match option.as_str() {
                "--runs" => parsed.runs = value.parse().context("--runs takes a whole number")?,
                "--seed" => parsed.seed = value.parse().context("--seed takes a whole number")?,
                "--out" => parsed.out = PathBuf::from(value),
                "--linerate" => parsed.linerate = Some(PathBuf::from(value)),
                _ => bail!("unknown option '{option}'"),
            }
        }
        ensure!((100..=1_000_000).contains(&parsed.runs), "--runs must be 100 to 1000000");
        Ok(parsed)
    }
}

/// Simulates, prints the tables and writes the page; returns true if all bounds hold.
pub(crate) fn run(arguments: &[String]) -> Result<bool> {
    let arguments = SimulationArguments::parse(arguments)?;
    let SimulationArguments { runs, seed, .. } = arguments;
    let mut tables: Vec<RateTable> = Vec::new();
    let mut show = |table: RateTable| {
        println!("{table}");
        tables.push(table);
    };
    for table in trials::TABLES {
        show(table(runs, seed));
    }
    for table in comparisons::TABLES {
        show(table(runs.div_ceil(10), seed));
    }
    if !arguments.is_without_lab {
        show(lab::equal_runs(arguments.linerate.as_deref())?);
        let out = workspace::root().join(&arguments.out);
        fs::write(&out, table::page(&tables, runs, seed)).with_context(|| format!("cannot write {}", out.display()))?;
        println!("written: {}", arguments.out.display());
    }
    let missed: Vec<String> = tables.iter().flat_map(RateTable::missed).collect();
    for cell in &missed {
        println!("missed: {cell}");
    }
    Ok(missed.is_empty())
}

/// Computes each item on one of the processors; returns the results in the order of the items.
fn in_parallel<T: Sync, R: Send>(items: &[T], compute: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let jobs = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let (next, done) = (Mutex::new(items.iter().enumerate()), Mutex::new(Vec::new()));
    let work = || {
        loop {
            let Some((place, item)) = next.lock().expect("no panic").next() else { break };
            let result = compute(item);
            done.lock().expect("no panic").push((place, result));
        }
    };
    std::thread::scope(|scope| (0..jobs).for_each(|_| drop(scope.spawn(work))));
    let mut done = done.into_inner().expect("no panic");
    done.sort_by_key(|(place, _)| *place);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<SimulationArguments> {
        SimulationArguments::parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn arguments_are_parsed_or_refused() {
        assert_eq!(parse("").expect("no arguments are valid").runs, 2000);
        let parsed = parse("--runs 300 --seed 7 --without-lab").expect("known");
        assert_eq!((parsed.runs, parsed.seed, parsed.is_without_lab), (300, 7, true));
        for wrong in ["--runs 99", "--runs", "--seed x", "--what 1"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_tables() {
        let tables = || trials::TABLES.iter().map(|table| table(5, 3).to_string()).collect::<Vec<_>>();
        assert_eq!(tables(), tables());
    }
}
