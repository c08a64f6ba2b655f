//! Cost of encryption: `linerate test` with and without `--tls-data`, and handshakes next to bare connections, over loopback.
//!
//! `bench tls [ROUNDS] [--linerate FILE]` runs all of them in random order against one server with a shared key, and compares only the
//! figures of one round. Processor time is that of both ends together, as linerate reports it: of their processes for data, of the
//! threads that send and answer for handshakes. Clear data is discarded in the receiving kernel, encrypted data cannot be.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::process::RunningChild;
use super::run::{free_port, wait_until_listening};
use super::statistics::{XorShift64, bootstrap_median, median, ratios};

const USAGE: &str = "usage: cargo xtask bench tls [ROUNDS] [--linerate FILE]";

/// Time of a run.
const TIME: &str = "2s";

/// Content of the key that both ends have.
const KEY: &str = "a key of the bench: 0123456789abcdef";

/// Cells: their name, the options, and the index of the cell that they are compared with.
const CELLS: [(&str, &[&str], usize); 9] = [
    ("up, clear", &["test", "--up", "-P", "1"], 0),
    ("up, --tls-data", &["test", "--up", "-P", "1", "--tls-data"], 0),
    ("down, clear", &["test", "--down", "-P", "1"], 2),
    ("down, --tls-data", &["test", "--down", "-P", "1", "--tls-data"], 2),
    ("rr --connect", &["rr", "--connect"], 4),
    ("rr --handshake tls", &["rr", "--handshake", "tls"], 4),
    ("rr --handshake quic", &["rr", "--handshake", "quic"], 4),
    ("rr --handshake tls -P 4", &["rr", "--handshake", "tls", "-P", "4"], 4),
    ("rr --handshake quic -P 4", &["rr", "--handshake", "quic", "-P", "4"], 4),
];

/// Figures of a run.
#[derive(Clone, Copy, Debug)]
struct CostFigures {
    /// Gbit/s of payload, or transactions per second.
    rate: f64,
    /// Processor seconds of both ends per Gbit, or per transaction.
    cpu: f64,
}

/// Runs the comparison and prints a line for each cell.
pub(super) fn run(arguments: &[String]) -> Result<bool> {
    let (mut rounds, mut linerate) = (10, None);
    let mut remaining = arguments.iter();
    while let Some(argument) = remaining.next() {
        match argument.as_str() {
            "--linerate" => linerate = Some(PathBuf::from(remaining.next().context(USAGE)?)),
            number => rounds = number.parse().context(USAGE)?,
        }
    }
    let linerate = linerate.map_or_else(super::build, Ok)?;
    let key = std::env::temp_dir().join(format!("linerate-bench-key-{}", std::process::id()));
    std::fs::write(&key, KEY)?;
    let mut figures: [Vec<Option<CostFigures>>; CELLS.len()] = Default::default();
    for round in 0..rounds {
        let mut order: [usize; CELLS.len()] = core::array::from_fn(|index| index);
        XorShift64::new(round + 1).shuffle(&mut order);
        for cell in order {
            let run = measure(&linerate, &key, CELLS[cell].1);
            if let Err(error) = &run {
                println!("round {}: {}: {error:#}", round + 1, CELLS[cell].0);
            }
            figures[cell].push(run.ok());
        }
    }
    std::fs::remove_file(&key)?;
    report(&figures)?;
    Ok(figures.iter().flatten().all(Option::is_some))
}

fn report(figures: &[Vec<Option<CostFigures>>; CELLS.len()]) -> Result<()> {
    let of = |cell: usize, figure: fn(&CostFigures) -> f64| -> Vec<Option<f64>> {
        figures[cell].iter().map(|run| run.as_ref().map(figure)).collect()
    };
    let middle = |values: &[Option<f64>]| median(&values.iter().copied().flatten().collect::<Vec<_>>());
    for (cell, (name, options, base)) in CELLS.iter().enumerate() {
        let (rate, cpu) = (of(cell, |run| run.rate), of(cell, |run| run.cpu));
        let (Some(middle_rate), Some(middle_cpu)) = (middle(&rate), middle(&cpu)) else {
            println!("{name:26} no run");
            continue;
        };
        if options[0] == "test" {
            print!("{name:26} {middle_rate:7.2} Gbit/s  {middle_cpu:.4} CPU s/Gbit");
        } else {
            print!("{name:26} {middle_rate:7.0}/s       {:.1} CPU us each", middle_cpu * 1e6);
        }
        if cell != *base {
            let ratio = |own: &[Option<f64>], other: Vec<Option<f64>>| {
                bootstrap_median(&ratios(own, &other)).context("no round with both")
            };
            let cpu = ratio(&cpu, of(*base, |run| run.cpu))?;
            let rate = ratio(&rate, of(*base, |run| run.rate))?;
            print!("  CPU x {:.3} ({:.3} to {:.3})", cpu.median, cpu.low, cpu.high);
            print!("  rate x {:.3} ({:.3} to {:.3})", rate.median, rate.low, rate.high);
        }
        println!("  {} rounds", rate.iter().flatten().count());
    }
    Ok(())
}

fn measure(linerate: &Path, key: &Path, options: &[&str]) -> Result<CostFigures> {
    let port = free_port()?;
    let text = port.to_string();
    let [program, file] = [linerate, key].map(|path| path.display().to_string());
    let line = [&program, "serve", "--no-stamp", "-B", "127.0.0.1", "-p", &text, "--shared-key-file", &file];
    let mut server = RunningChild::start(&line.map(str::to_owned))?;
    wait_until_listening(&mut server, port)?;
    let (command, options) = options.split_first().context(USAGE)?;
    let mut client = Command::new(linerate);
    client.args(["--no-history", command, "127.0.0.1", "-p", &text, "-t", TIME, "--json", "--quiet"]);
    let done = client.args(options).arg("--shared-key-file").arg(key).stderr(Stdio::inherit()).output()?;
    ensure!(done.status.success(), "{command} {options:?} ended with {}", done.status);
    let document: Value = serde_json::from_slice(&done.stdout)?;
    figures(&document).context("a figure is missing")
}

fn figures(document: &Value) -> Option<CostFigures> {
    let result = &document["result"];
    if let Some(run) = result.pointer("/throughput/runs/0") {
        let rate = run["bits_per_second"].as_f64()? / 1e9;
        let percent = run["client_cpu_percent"].as_f64()? + run["server_cpu_percent"].as_f64()?;
        return Some(CostFigures { rate, cpu: percent / 100.0 / rate });
    }
    let rr = &result["rr"];
    let cpu = rr["near_processor_ns"].as_f64()? + rr["far_processor_ns"].as_f64()?;
    Some(CostFigures { rate: rr["transactions_per_second"].as_f64()?, cpu: cpu / 1e9 })
}
