//! `cargo xtask bench lab`: speed of the lab's virtual time, in guest seconds per second of real time.
//!
//! Both times are those of the command, without the boot and the set-up. The paths alternate, and medians
//! over the rounds are reported with their intervals. Then the slowest paths of the library, each with its own transfer.

mod slowest;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::machine::TestMachine;
use super::process::CpuAccount;
use super::statistics::{MedianEstimate, bootstrap_median};
use crate::workspace;

/// Path with the command that runs over it.
struct LabReference {
    path: &'static str,
    command: &'static str,
    purpose: &'static str,
}

const REFERENCES: &[LabReference] = &[
    LabReference {
        path: "rhel-10g-117ms-large-window",
        command: "iperf3 -c far -t 10 -C cubic -Z -l 1M",
        purpose: "bulk data: 10 s at 10 Gbit/s over 117 ms",
    },
    LabReference {
        path: "300m-20ms-loss-cubic",
        command: "iperf3 -c far -t 30 -C cubic",
        purpose: "single packets: 30 s of a lossy path, without segmentation offload",
    },
    LabReference { path: "xs4all-adsl", command: "ping -c 60 -i 1 far", purpose: "little data: a minute of pings" },
];

const OUTPUT_FILE: &str = "docs/lab-speed.md";

/// Arguments of `cargo xtask bench lab`.
struct LabArguments {
    rounds: u32,
    /// An earlier linerate, whose times stand beside those of this one.
    before: Option<PathBuf>,
    /// Binary to measure; built when not given.
    linerate: Option<PathBuf>,
}

impl LabArguments {
    fn parse(arguments: &[String]) -> Result<Self> {
        let mut parsed = Self { rounds: 5, before: None, linerate: None };
        for pair in arguments.chunks(2) {
            match pair {
                [option, number] if option == "--rounds" => {
                    parsed.rounds = number.parse().context("--rounds takes a whole number")?;
                }
                [option, path] if option == "--before" => parsed.before = Some(path.into()),
                [option, path] if option == "--linerate" => parsed.linerate = Some(path.into()),
                _ => anyhow::bail!("usage: cargo xtask bench lab [--rounds N] [--linerate PATH] [--before LINERATE]"),
            }
        }
        ensure!(parsed.rounds > 0, "--rounds must be at least 1");
        Ok(parsed)
    }
}

/// Measures each reference `rounds` times, and the slowest paths of the library; returns true if all succeeded.
pub(super) fn run(arguments: &[String]) -> Result<bool> {
    let arguments = LabArguments::parse(arguments)?;
    let rounds = arguments.rounds;
    let linerate = arguments.linerate.clone().map_or_else(super::build, Ok)?;
    let machine = TestMachine::read(None)?;
    let mut speeds: Vec<Vec<LabSpeed>> = REFERENCES.iter().map(|_| Vec::new()).collect();
    for round in 1..=rounds {
        for (reference, speeds) in REFERENCES.iter().zip(&mut speeds) {
            let command: Vec<&str> = reference.command.split(' ').collect();
            let speed = LabSpeed::measure(&linerate, reference.path, &command)?;
            println!(
                "round {round}: {}: {:.2} s of the guest in {:.2} s",
                reference.path, speed.guest_seconds, speed.real_seconds
            );
            speeds.push(speed);
        }
    }
    let slowest = slowest::section(&linerate, &arguments)?;
    let document = document(&machine, rounds, &speeds) + &slowest;
    let out = workspace::root().join(OUTPUT_FILE);
    fs::write(&out, &document).with_context(|| format!("cannot write {}", out.display()))?;
    println!("\n{document}\nwritten: {}", out.display());
    Ok(true)
}

/// Seconds of the guest, of real time, and of processors.
struct LabSpeed {
    guest_seconds: f64,
    real_seconds: f64,
    /// Processor seconds of all processes of the run, boot and set-up included: less disturbed by others than `real_seconds`.
    processor_use: f64,
}

impl LabSpeed {
    fn measure(linerate: &Path, path: &str, command: &[&str]) -> Result<Self> {
        let account = CpuAccount::read()?;
        let output = Command::new(linerate)
            .args(["--no-history", "lab", "run", "--verbose", path, "--"])
            .args(command)
            .output()
            .context("cannot start linerate")?;
        let stderr = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "`linerate lab run {path}` ended with {}:\n{stderr}", output.status);
        let speed = Self::read(&stderr).with_context(|| format!("no line with the times in:\n{stderr}"))?;
        Ok(Self { processor_use: account.since_then()?.children, ..speed })
    }

    /// Parses the last line of `lab run --verbose`: `lab: PATH: 12.014 s in the guest, 3.410 s here`.
    fn read(stderr: &str) -> Option<Self> {
        let line = stderr.lines().rev().find(|line| line.contains(" s in the guest, "))?;
        let (guest, here) = line.rsplit_once(" s in the guest, ")?;
        let guest = guest.rsplit_once(' ')?.1.parse().ok()?;
        let here = here.split_once(" s here")?.0.parse().ok()?;
        Some(Self { guest_seconds: guest, real_seconds: here, processor_use: 0.0 })
    }

    fn ratio(&self) -> f64 {
        self.guest_seconds / self.real_seconds
    }
}

fn document(machine: &TestMachine, rounds: u32, speeds: &[Vec<LabSpeed>]) -> String {
    let mut lines = vec![
        "# Speed of the lab's virtual time".to_owned(),
        String::new(),
        "Written by `cargo xtask bench lab`. Both times are those of the command; the boot of the guest and the set-up \
            of the"
            .to_owned(),
        "path come before, a third of a second here. The guest has one processor, whatever the host has.".to_owned(),
        String::new(),
        format!(
            "{}, {} processors, Linux {}, {}; {rounds} rounds, the paths alternating; medians with their 95 % \
                intervals.",
            machine.processor, machine.processors, machine.kernel, machine.date
        ),
        String::new(),
        "| path | command | shows | seconds of the guest | seconds here | guest per second here |".to_owned(),
        "|---|---|---|---|---|---|".to_owned(),
    ];
    for (reference, speeds) in REFERENCES.iter().zip(speeds) {
        let of = |value: fn(&LabSpeed) -> f64| {
            bootstrap_median(&speeds.iter().map(value).collect::<Vec<_>>()).map_or_else(String::new, format_estimate)
        };
        lines.push(format!(
            "| `{}` | `{}` | {} | {} | {} | {} |",
            reference.path,
            reference.command,
            reference.purpose,
            of(|speed| speed.guest_seconds),
            of(|speed| speed.real_seconds),
            of(LabSpeed::ratio),
        ));
    }
    lines.join("\n") + "\n"
}

fn format_estimate(estimate: MedianEstimate) -> String {
    format!("{:.2} ({:.2}–{:.2})", estimate.median, estimate.low, estimate.high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_times_are_found_in_the_last_line() {
        let speed =
            LabSpeed::read("noise\nlab: adsl: 61.250 s in the guest, 0.500 s here\n").expect("a line with times");
        assert!((speed.guest_seconds - 61.25).abs() < 1e-9 && (speed.real_seconds - 0.5).abs() < 1e-9);
        assert!((speed.ratio() - 122.5).abs() < 1e-9);
        assert!(LabSpeed::read("no such line").is_none());
    }
}
