//! QUIC over a long and fast path of the lab: `linerate test --quic` next to xfr and a bare loop with the settings of quinn's
//! `perf` tool.
//!
//! Processing takes no time there, so the figures are those of windows and congestion control alone. A round has
//! another seed, and no order: the time of the guest is virtual. The servers of the peers run in the network namespace of the far host.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::program::Dialect;
use super::quic::{Candidate, Programs, linerate_figures};
use super::result;
use super::statistics::{bootstrap_median, median, ratios};

/// Path: 10 Gbit/s, round trip 117 ms.
const PATH: &str = "rhel-10g-117ms-large-window";

/// Address of the far host of a path with one link, and the port of the peers.
const SERVER: &str = "10.0.0.2";
const PORT: &str = "6000";

/// Payload seconds of a run: the start takes two of them.
const SECONDS: &str = "5";

/// Programs of the comparison; the bare loop with linerate's settings has those for loopback.
const CANDIDATES: [Candidate; 3] = [Candidate::Linerate, Candidate::Xfr, Candidate::QuinnDefaults];

/// Runs the comparison and prints a line for each program and direction; false unless linerate is shown to be at least as fast.
pub(super) fn run(programs: &Programs, rounds: u64) -> Result<bool> {
    let mut is_first = true;
    for direction in ["up", "down"] {
        println!("{PATH}, {direction}, streams: 1, {SECONDS} s, rounds: {rounds}");
        let mut rates: [Vec<Option<f64>>; 3] = Default::default();
        for seed in 1..=rounds {
            for (candidate, rates) in CANDIDATES.into_iter().zip(&mut rates) {
                let run = measure(programs, candidate, direction, seed);
                if let Err(error) = &run {
                    println!("  seed {seed}: {}: {error:#}", candidate.name());
                }
                rates.push(run.ok());
            }
        }
        is_first &= report(&rates)?;
    }
    Ok(is_first)
}

fn report(rates: &[Vec<Option<f64>>; 3]) -> Result<bool> {
    let mut is_first = true;
    for (candidate, own) in CANDIDATES.into_iter().zip(rates) {
        let Some(rate) = median(&own.iter().copied().flatten().collect::<Vec<_>>()) else {
            println!("  {:42} no run", candidate.name());
            is_first = false;
            continue;
        };
        print!("  {:42} {:8.1} Mbit/s", candidate.name(), rate / 1e6);
        if candidate == Candidate::Linerate {
            println!();
            continue;
        }
        let ratio = bootstrap_median(&ratios(&rates[0], own)).context("no round with both")?;
        println!("  linerate: x {:.3} ({:.3} to {:.3})", ratio.median, ratio.low, ratio.high);
        is_first &= ratio.low >= 1.0;
    }
    Ok(is_first)
}

/// Rate in bit/s.
fn measure(programs: &Programs, candidate: Candidate, direction: &str, seed: u64) -> Result<f64> {
    let linerate = |command: &[&str]| in_lab(&programs.linerate, seed, command);
    match candidate {
        Candidate::Xfr => {
            let program = programs.xfr.as_deref().context("it is not installed")?;
            let reverse = if direction == "down" { "-R" } else { "" };
            let client = format!("{SERVER} -p {PORT} -Q -P 1 -t {SECONDS}s --json --no-tui {reverse}");
            let output = linerate(
                &peer(program, &format!("serve -p {PORT} --no-mdns"), &client).each_ref().map(String::as_str),
            )?;
            Ok(result::figures(Dialect::Xfr, &output)?.goodput)
        }
        Candidate::Bare | Candidate::QuinnDefaults => {
            let client = format!("send {SERVER}:{PORT} defaults {direction} 1 {SECONDS} /dev/stdout");
            let server = format!("serve {SERVER}:{PORT} defaults");
            let output = linerate(&peer(&programs.bare, &server, &client).each_ref().map(String::as_str))?;
            Ok(result::figures(Dialect::Bare, &output)?.goodput)
        }
        Candidate::Linerate => {
            let direction = format!("--{direction}");
            let options =
                ["test", "far", "--quic", "-C", "cubic", "-P", "1", &direction, "-t", SECONDS, "--json", "--quiet"];
            Ok(linerate_figures(&linerate(&[&["linerate"][..], &options].concat())?, 1)?.goodput)
        }
    }
}

/// Command that starts a peer's server on the far host, and a second later (of the guest, which takes no time here) its client.
fn peer(program: &Path, server: &str, client: &str) -> [String; 4] {
    let script = format!("ip netns exec far \"$0\" {server} >/dev/null 2>&1 & sleep 1; exec \"$0\" {client}");
    ["sh".to_owned(), "-c".to_owned(), script, program.display().to_string()]
}

fn in_lab(linerate: &Path, seed: u64, command: &[&str]) -> Result<String> {
    let mut lab = Command::new(linerate);
    // On a busy host the bytes of a round trip, 146 MB, take long.
    lab.args(["--no-history", "lab", "run", "--stall-limit", "600s", "--seed", &seed.to_string(), PATH, "--"])
        .args(command);
    let done = lab.stdin(Stdio::null()).output().with_context(|| format!("cannot start {}", linerate.display()))?;
    let errors = String::from_utf8_lossy(&done.stderr);
    ensure!(done.status.success(), "`linerate lab run {PATH}` ended with {}: {}", done.status, errors.trim());
    let output = String::from_utf8_lossy(&done.stdout);
    // Some programs write what they do before their document.
    Ok(output.find('{').map_or_else(String::new, |start| output[start..].to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_direction_is_won_only_against_both() {
        let runs = |rate: f64| vec![Some(rate); 3];
        assert!(report(&[runs(6e9), runs(1e8), runs(5e9)]).expect("all have runs"));
        assert!(!report(&[runs(6e9), runs(1e8), runs(7e9)]).expect("all have runs"));
        assert!(!report(&[runs(6e9), vec![None; 3], runs(5e9)]).expect("two have runs"));
    }

    #[test]
    fn a_server_runs_on_the_far_host() {
        let command = peer(Path::new("/opt/xfr"), "serve -p 6000", "10.0.0.2 -Q");
        assert_eq!(
            command[2],
            "ip netns exec far \"$0\" serve -p 6000 >/dev/null 2>&1 & sleep 1; exec \"$0\" 10.0.0.2 -Q"
        );
        assert_eq!(command[3], "/opt/xfr");
    }
}
