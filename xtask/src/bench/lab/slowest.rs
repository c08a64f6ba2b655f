//! The slowest paths of the library: times of their own transfers.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::{LabArguments, LabSpeed, format_estimate};
use crate::bench::statistics::bootstrap_median;

/// Number of paths that are shown.
const SHOWN: usize = 10;

/// Path of the library with its own transfer.
struct LibraryPath {
    name: String,
    command: Vec<String>,
}

/// Measured path: the transfer over it, here and with an earlier linerate.
struct MeasuredPath {
    path: LibraryPath,
    now: Vec<LabSpeed>,
    before: Vec<LabSpeed>,
}

/// Section of the page on the slowest paths. A transfer that fails by its path's nature is left out.
pub(super) fn section(linerate: &Path, arguments: &LabArguments) -> Result<String> {
    let mut found: Vec<(LibraryPath, LabSpeed)> = Vec::new();
    for path in library(linerate)? {
        match speed(linerate, &path) {
            Ok(speed) => found.push((path, speed)),
            Err(error) => println!("{}: left out: {}", path.name, format!("{error:#}").lines().next().unwrap_or("")),
        }
    }
    found.sort_by(|one, other| one.1.ratio().total_cmp(&other.1.ratio()));
    let (all, real_time) = (found.len(), found.iter().filter(|(_, speed)| speed.ratio() >= 1.0).count());
    let mut slowest: Vec<MeasuredPath> = found
        .into_iter()
        .take(SHOWN)
        .map(|(path, first)| MeasuredPath { path, now: vec![first], before: Vec::new() })
        .collect();
    for round in 1..=arguments.rounds {
        for measured in &mut slowest {
            if round > 1 {
                measured.now.push(speed(linerate, &measured.path)?);
            }
            if let Some(before) = &arguments.before {
                measured.before.push(speed(before, &measured.path)?);
            }
            println!("round {round}: {}", measured.row());
        }
    }
    Ok(text(&slowest, (all, real_time)))
}

fn library(linerate: &Path) -> Result<Vec<LibraryPath>> {
    let output = Command::new(linerate).args(["lab", "list", "--json"]).output().context("cannot start linerate")?;
    ensure!(output.status.success(), "`linerate lab list` ended with {}", output.status);
    let document: Value = serde_json::from_slice(&output.stdout).context("`lab list --json` is not JSON")?;
    let paths = document["paths"].as_array().context("the list has no paths")?;
    let read = |path: &Value| {
        let words = path["scenario"].as_array()?.iter().map(|word| Some(word.as_str()?.to_owned()));
        Some(LibraryPath { name: path["name"].as_str()?.to_owned(), command: words.collect::<Option<_>>()? })
    };
    paths.iter().map(|path| read(path).context("a path of the list has no name or scenario")).collect()
}

fn speed(linerate: &Path, path: &LibraryPath) -> Result<LabSpeed> {
    let command: Vec<&str> = path.command.iter().map(String::as_str).collect();
    LabSpeed::measure(linerate, &path.name, &command)
}

impl MeasuredPath {
    fn row(&self) -> String {
        let of = |speeds: &[LabSpeed], value: fn(&LabSpeed) -> f64| {
            let values: Vec<f64> = speeds.iter().map(value).collect();
            bootstrap_median(&values).map_or_else(|| "–".to_owned(), format_estimate)
        };
        format!(
            "| `{}` | `{}` | {} | {} | {} | {} | {} | {} |",
            self.path.name,
            self.path.command.join(" "),
            of(&self.now, |speed| speed.guest_seconds),
            of(&self.now, |speed| speed.real_seconds),
            of(&self.before, |speed| speed.real_seconds),
            of(&self.now, |speed| speed.processor_use),
            of(&self.before, |speed| speed.processor_use),
            of(&self.now, LabSpeed::ratio),
        )
    }
}

/// Text of the section; the counts are those of all paths, and of the paths that are not slower than real time.
fn text(slowest: &[MeasuredPath], (all, real_time): (usize, usize)) -> String {
    let mut lines = vec![
        String::new(),
        "## The slowest paths of the library".to_owned(),
        String::new(),
        format!(
            "Of {all} paths, each with its own transfer; {real_time} are at least as fast as real time. \"Before\" is an \
             earlier linerate, in"
        ),
        "the same rounds. Processor seconds are those of the whole run, with the boot.".to_owned(),
        String::new(),
        "| path | command | seconds of the guest | seconds here | before | processor seconds | before | guest per second \
         here |"
            .to_owned(),
        "|---|---|---|---|---|---|---|---|".to_owned(),
    ];
    lines.extend(slowest.iter().map(MeasuredPath::row));
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_without_an_earlier_time_has_a_dash() {
        let path = LibraryPath { name: "adsl".to_owned(), command: vec!["iperf3".to_owned(), "-c".to_owned()] };
        let now = vec![LabSpeed { guest_seconds: 10.0, real_seconds: 4.0, processor_use: 3.0 }];
        let row = MeasuredPath { path, now, before: Vec::new() }.row();
        assert!(
            row.starts_with(
                "| `adsl` | `iperf3 -c` | 10.00 (10.00–10.00) | 4.00 (4.00–4.00) | – | 3.00 (3.00–3.00) | – | 2.50"
            ),
            "{row}"
        );
    }
}
