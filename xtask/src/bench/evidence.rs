//! `cargo xtask bench evidence`: cost of `--kernel-events`, in pairs of transfers with and without over loopback.
//!
//! One end traces, so that one watch is active on the machine, as on any host of a measurement. Three figures: goodput,
//! processor time of the transferring threads per byte, and the run time of the programs by the kernel's own account, in
//! rounds of their own, since that account costs time as well.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::process::RunningChild;
use super::run::{free_port, wait_until_listening};
use super::statistics::{MedianEstimate, XorShift64, bootstrap_median};

const ROUNDS: usize = 60;
const SECONDS: &str = "1";
/// Number of rounds after which the account of the programs is read in one more transfer.
const ROUNDS_PER_ACCOUNT: usize = 6;
/// Largest share of goodput, or of processor time, that the events may cost.
const MAX_COST: f64 = 0.01;

const ACCOUNT: &str = "/proc/sys/kernel/bpf_stats_enabled";

/// Account of the run time of BPF programs, on until this is dropped.
struct ProgramAccount {
    before: String,
}

impl ProgramAccount {
    fn start() -> Result<Self> {
        let before = fs::read_to_string(ACCOUNT).with_context(|| format!("cannot read {ACCOUNT}"))?;
        fs::write(ACCOUNT, "1").with_context(|| format!("cannot write {ACCOUNT}: run as root"))?;
        Ok(Self { before })
    }
}

impl Drop for ProgramAccount {
    fn drop(&mut self) {
        let _ = fs::write(ACCOUNT, self.before.trim());
    }
}

/// Figures of one transfer.
struct TransferFigures {
    /// Bits per second.
    goodput: f64,
    /// Processor seconds of both transferring threads per byte.
    processor_time: f64,
    /// Sender's events, where it traced.
    events: Option<Value>,
}

/// Runs the pairs in random order, and prints the medians of their ratios; returns true if the whole interval of the
/// goodput's cost is below one percent.
pub(super) fn run(arguments: &[String]) -> Result<bool> {
    let (rounds, linerate) = parse(arguments)?;
    let linerate = linerate.map_or_else(super::build, Ok)?;
    let port = free_port()?;
    let program = linerate.display().to_string();
    // Without privileges the server traces nothing.
    let line = [program.as_str(), "serve", "--no-stamp", "--user", "daemon", "--port", &port.to_string()];
    let mut server = RunningChild::start(&line.map(str::to_owned))?;
    wait_until_listening(&mut server, port)?;
    let mut random = XorShift64::new(20);
    let (mut goodputs, mut times, mut accounts) = (Vec::new(), Vec::new(), Vec::new());
    for round in 1..=rounds {
        let mut order = [false, true];
        random.shuffle(&mut order);
        let mut pair = [None, None];
        for traced in order {
            pair[usize::from(traced)] = Some(transfer(&linerate, port, traced)?);
        }
        let [Some(plain), Some(traced)] = pair else { bail!("a transfer is missing") };
        let (goodput, time) = (traced.goodput / plain.goodput, traced.processor_time / plain.processor_time);
        println!(
            "{round:3}  {:6.2} Gbit/s  traced {:6.2} Gbit/s  goodput {goodput:.4}  processor time per byte {time:.4}",
            plain.goodput / 1e9,
            traced.goodput / 1e9
        );
        goodputs.push(goodput);
        times.push(time);
        if round % ROUNDS_PER_ACCOUNT == 0 {
            let _account = ProgramAccount::start()?;
            accounts.extend(transfer(&linerate, port, true)?.events);
        }
    }
    let goodput = bootstrap_median(&goodputs).context("no rounds")?;
    let time = bootstrap_median(&times).context("no rounds")?;
    print_ratio("goodput with kernel events", &goodput, goodput.low >= 1.0 - MAX_COST, rounds);
    print_ratio("processor time per byte with kernel events", &time, time.high <= 1.0 + MAX_COST, rounds);
    print_account(&accounts)?;
    Ok(goodput.low >= 1.0 - MAX_COST)
}

fn print_ratio(name: &str, ratio: &MedianEstimate, is_below: bool, rounds: usize) {
    println!(
        "{name}: {:.2} % of that without ({:.2} to {:.2} %, {rounds} pairs of {SECONDS} s): {}",
        ratio.median * 100.0,
        ratio.low * 100.0,
        ratio.high * 100.0,
        if is_below { "the cost is below 1 %" } else { "not shown to be below 1 %" }
    );
}

/// Prints the run time of the programs as a share of the time of all processors, and that of each program.
fn print_account(accounts: &[Value]) -> Result<()> {
    let processors = f64::from(u32::try_from(std::thread::available_parallelism()?.get())?);
    let (mut shares, mut programs) = (Vec::new(), BTreeMap::<String, (f64, f64, f64)>::new());
    for events in accounts {
        let traced = events["traced_ns"].as_f64().context("no traced time")?;
        let list = events["programs"].as_array().context("no programs")?;
        let mut all = 0.0;
        for program in list {
            let figure = |key: &str| program[key].as_f64().unwrap_or_default();
            let name = program["tracepoint"].as_str().unwrap_or_default().to_owned();
            let sums = programs.entry(name).or_default();
            *sums = (sums.0 + figure("runs"), sums.1 + figure("time_ns"), sums.2 + traced);
            all += figure("time_ns");
        }
        shares.push(all / traced / processors);
    }
    let Some(share) = bootstrap_median(&shares) else { return Ok(()) };
    println!(
        "run time of the programs: {:.2} % of the processors ({:.2} to {:.2} %, {} transfers, the account included): {}",
        share.median * 100.0,
        share.low * 100.0,
        share.high * 100.0,
        shares.len(),
        if share.high < MAX_COST { "below 1 %" } else { "not shown to be below 1 %" }
    );
    for (name, (runs, time, traced)) in programs {
        println!(
            "  {name:28} {:9.0} runs/s  {:5.0} ns each  {:.3} %",
            runs * 1e9 / traced,
            time / runs.max(1.0),
            time / traced / processors * 100.0
        );
    }
    Ok(())
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

fn transfer(linerate: &Path, port: u16, traced: bool) -> Result<TransferFigures> {
    let mut command = Command::new(linerate);
    command.args(["--no-history", "diagnose", "127.0.0.1", "--no-path", "--json", "--port", &port.to_string()]);
    command.args(traced.then_some("--kernel-events")).args(["--", "-C", "cubic", "-t", SECONDS]);
    // Goodput depends on the processors on which both threads happen to run more than on anything else.
    if std::thread::available_parallelism()?.get() > 1 {
        command.args(["-A", "0,1"]);
    }
    let output = command.output().context("cannot start linerate diagnose")?;
    let run: Value = serde_json::from_slice(&output.stdout)
        .with_context(|| format!("no document: {}", String::from_utf8_lossy(&output.stderr)))?;
    let document = &run["result"]["diagnose"];
    let events = document["kernel_events"].as_array().and_then(|hosts| hosts.first()).cloned();
    ensure!(events.is_some() == traced, "the sender's events are missing: {}", document["unknown"]);
    let goodput = document["goodput_bits_per_second"].as_f64().context("the document has no goodput")?;
    let thread = |end: &str| document["figures"][format!("{end}_processor_share")].as_f64();
    let threads = thread("sender").zip(thread("receiver")).context("the document has no processor shares")?;
    Ok(TransferFigures { goodput, processor_time: (threads.0 + threads.1) / (goodput / 8.0), events })
}
