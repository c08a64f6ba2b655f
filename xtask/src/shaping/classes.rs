//! Thousands of classes of devices: set-up, memory, fairness between three of them, and undo.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

const SCRIPT: &str = include_str!("classes.sh");

/// Name for `--bed`.
pub(super) const NAME: &str = "classes";

/// Largest deviation of a host from the mean of the three.
const MAX_UNFAIRNESS: f64 = 0.05;

/// One measurement.
#[derive(Clone, Copy, Debug)]
struct ClassesRun {
    back_end: &'static str,
    count: u32,
    /// True in the lab, whose time does not pass while a program computes.
    in_the_lab: bool,
}

const RUNS: [ClassesRun; 4] = [
    ClassesRun { back_end: "htb+bfifo", count: 200, in_the_lab: false },
    ClassesRun { back_end: "htb+bfifo", count: 2000, in_the_lab: false },
    ClassesRun { back_end: "htb+fq_codel", count: 200, in_the_lab: true },
    ClassesRun { back_end: "htb+fq_codel", count: 2000, in_the_lab: true },
];

/// Values of the script by name.
pub(super) type Values = BTreeMap<String, Vec<f64>>;

impl ClassesRun {
    fn name(self) -> String {
        format!("{NAME}.{}.{}", self.back_end, self.count)
    }

    /// Output from the kept file, or of a new measurement with `linerate`.
    fn output(self, linerate: Option<&Path>, kept: &Path) -> Result<Option<String>> {
        let file = kept.join(format!("{}.txt", self.name()));
        if let Ok(text) = fs::read_to_string(&file) {
            return Ok(Some(text));
        }
        let Some(linerate) = linerate else { return Ok(None) };
        let script = kept.join("classes.sh");
        fs::write(&script, SCRIPT)?;
        let mut command = if self.in_the_lab { Command::new(linerate) } else { Command::new("unshare") };
        if self.in_the_lab {
            command.args(["--no-history", "lab", "run", "lan-1g", "--", "sh"]);
        } else {
            command.args(["-n", "sh"]);
        }
        let output = command.arg(&script).arg(linerate).args([&self.count.to_string(), self.back_end, "8"]).output();
        let output = output.with_context(|| format!("cannot start {command:?}"))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let stderr = String::from_utf8_lossy(&output.stderr);
        ensure!(text.contains("undo: exact"), "{}: {text}{stderr}", self.name());
        fs::write(&file, &text).with_context(|| format!("cannot write {}", file.display()))?;
        Ok(Some(text))
    }

    fn row(self, text: &str) -> (String, bool) {
        let values: Values = text.lines().filter_map(value).collect();
        let one = |name: &str| values.get(name).and_then(|values| values.first().copied());
        let took = |name: &str| values.get(name).map(|values| values.iter().sum::<f64>());
        let time =
            |name| took(name).filter(|_| !self.in_the_lab).map_or("–".to_owned(), |time| format!("{time:.1} s"));
        let megabytes = |name| one(name).map_or("–".to_owned(), |kilobytes| format!("{:.0} MB", kilobytes / 1e3));
        let unfair =
            ["up", "down"].map(|direction| unfairness([1, 2, 3].map(|host| one(&format!("{direction} {host}")))));
        let shown = unfair.map(|share| share.map_or("–".to_owned(), |share| format!("{:.1} %", share * 100.0)));
        let kernel = if self.in_the_lab { "the lab's" } else { "this host's" };
        let row = format!(
            "| {} | `{}` | {kernel} | {} | {} | {} | {} | {} | {} |\n",
            self.count,
            self.back_end,
            time("set-up"),
            time("off"),
            megabytes("memory"),
            megabytes("kernel"),
            shown[0],
            shown[1],
        );
        (row, unfair.iter().all(|share| share.is_some_and(|share| share <= MAX_UNFAIRNESS)))
    }
}

/// Line `name: value value`.
pub(super) fn value(line: &str) -> Option<(String, Vec<f64>)> {
    let (name, values) = line.split_once(": ")?;
    Some((name.to_owned(), values.split(' ').filter_map(|value| value.parse().ok()).collect()))
}

/// Largest deviation from the mean, as a share of it.
fn unfairness(rates: [Option<f64>; 3]) -> Option<f64> {
    let [Some(first), Some(second), Some(third)] = rates else { return None };
    let mean = (first + second + third) / 3.0;
    [first, second, third].into_iter().map(|rate| (rate - mean).abs() / mean).reduce(f64::max)
}

/// Measures, or takes the kept figures where there is no program, and formats the section; also returns the misses.
pub(super) fn section(linerate: Option<&Path>, kept: &Path) -> (String, Vec<String>) {
    let (mut text, mut missed) = (HEADING.to_owned(), Vec::new());
    for run in RUNS {
        let output = run.output(linerate, kept).unwrap_or_else(|error| {
            eprintln!("{error:#}");
            None
        });
        let (row, is_met) = run.row(&output.unwrap_or_default());
        let _ = write!(text, "{row}");
        if !is_met {
            missed.push(format!("{}: {}", run.name(), row.trim_end()));
        }
    }
    (text, missed)
}

const HEADING: &str = "
## Classes of devices

`linerate shape v0 --up 100M --down 100M --classes FILE` with one address a line, guaranteed 10 kbit/s each and a ceiling of 100
Mbit/s. Three devices fill the link for eight seconds, the third with 20 connections: each one's largest deviation from a third,
at most 5 % (`crates/cli/tests/shape_lab/classes.rs` in CI). Memory: of the process at most, and what the kernel's slabs and
per-processor areas grew by. Times are processor time of the command and its programs; in the lab none passes while a program
computes. `off` restored the previous state byte for byte in all of them.

| devices | back end | kernel | set-up | off | process | kernel | unfair, up | down |
|---:|---|---|---:|---:|---:|---:|---:|---:|
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_from_the_script() {
        let text = "set-up: 1.5 1.0\nmemory: 45000\nkernel: 9000\noff: 0.3 0.2\nup 1: 100\nup 2: 100\nup 3: 103\n\
                    down 1: 100\ndown 2: 100\ndown 3: 130\nundo: exact\n";
        let (row, is_met) = RUNS[1].row(text);
        let expected = "| 2000 | `htb+bfifo` | this host's | 2.5 s | 0.5 s | 45 MB | 9 MB | 2.0 % | 18.2 % |\n";
        assert_eq!((row.as_str(), is_met), (expected, false));
        assert!(!RUNS[0].row("").1);
    }
}
