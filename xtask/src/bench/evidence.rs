//! `cargo xtask bench evidence`: cost of `--kernel-events`, in pairs of transfers with and without over loopback.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::process::RunningChild;
use super::run::{free_port, wait_until_listening};
use super::statistics::{XorShift64, bootstrap_median};

const ROUNDS: usize = 20;
const SECONDS: &str = "3";
/// Largest share of goodput that the events may cost.
const MAX_COST: f64 = 0.01;

/// Runs the pairs in random order, and prints the median of their ratios; returns true if the whole
/// interval of the cost is below one percent.
pub(super) fn run(arguments: &[String]) -> Result<bool> {
    let (rounds, linerate) = parse(arguments)?;
    let linerate = linerate.map_or_else(super::build, Ok)?;
    let port = free_port()?;
    let program = linerate.display().to_string();
    let line = [program.as_str(), "serve", "--no-stamp", "--port", &port.to_string()].map(str::to_owned);
    let mut server = RunningChild::start(&line)?;
    wait_until_listening(&mut server, port)?;
    let mut random = XorShift64::new(20);
    let mut ratios = Vec::new();
    for round in 1..=rounds {
        let mut order = [false, true];
        random.shuffle(&mut order);
        let mut goodput = [0.0; 2];
        for traced in order {
            goodput[usize::from(traced)] = transfer(&linerate, port, traced)?;
        }
        let ratio = goodput[1] / goodput[0];
        println!("{round:3}  {:6.2} Gbit/s  traced {:6.2} Gbit/s  {ratio:.4}", goodput[0] / 1e9, goodput[1] / 1e9);
        ratios.push(ratio);
    }
    let estimate = bootstrap_median(&ratios).context("no rounds")?;
    println!(
        "goodput with kernel events: {:.2} % of that without ({:.2} to {:.2} %, {rounds} pairs of {SECONDS} s)",
        estimate.median * 100.0,
        estimate.low * 100.0,
        estimate.high * 100.0
    );
    Ok(estimate.low >= 1.0 - MAX_COST)
}

fn parse(arguments: &[String]) -> Result<(usize, Option<PathBuf>)> {
    let (mut rounds, mut linerate) = (ROUNDS, None);
    for pair in arguments.chunks(2) {
        match pair {
            [option, value] if option == "--rounds" => rounds = value.parse().context("--rounds")?,
            [option, value] if option == "--linerate" => linerate = Some(PathBuf::from(value)),
            _ => bail!("usage: cargo xtask bench evidence [--rounds N] [--linerate PATH]"),
        }
    }
    Ok((rounds, linerate))
}

/// Goodput of one transfer.
fn transfer(linerate: &Path, port: u16, traced: bool) -> Result<f64> {
    let mut command = Command::new(linerate);
    command.args(["--no-history", "diagnose", "127.0.0.1", "--no-path", "--json", "--port", &port.to_string()]);
    command.args(traced.then_some("--kernel-events")).args(["--", "-C", "cubic", "-t", SECONDS]);
    let output = command.output().context("cannot start linerate diagnose")?;
    let run: Value = serde_json::from_slice(&output.stdout)
        .with_context(|| format!("no document: {}", String::from_utf8_lossy(&output.stderr)))?;
    let document = &run["result"]["diagnose"];
    let hosts = document["kernel_events"].as_array().map_or(0, Vec::len);
    ensure!(hosts == if traced { 2 } else { 0 }, "{hosts} hosts were traced: {}", document["unknown"]);
    document["goodput_bits_per_second"].as_f64().context("the document has no goodput")
}
