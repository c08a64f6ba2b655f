//! Runs in the history: storing, listing, comparing, exporting and reporting them.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use linerate_sys::clock;
use serde_json::Value;

use super::curve::{Curve, Section};

const RUNS: [u64; 4] = [100, 1000, 10_000, 100_000];

/// Hosts of the runs.
const HOSTS: u64 = 25;

/// Largest number of runs in a report.
const MAX_REPORTED: u64 = 1000;

/// Result of a command.
pub(super) struct TimedCommand {
    pub(super) output: String,
    /// Seconds.
    pub(super) wall: f64,
    pub(super) processor: f64,
}

/// Runs linerate with `arguments`, on this history.
pub(super) fn timed(linerate: &Path, arguments: &[&str], history: Option<&Path>) -> Result<TimedCommand> {
    let mut command = Command::new(linerate);
    command.args(arguments).env("LINERATE_HISTORY", history.unwrap_or(Path::new("off"))).stdin(Stdio::null());
    let (begun, before) = (Instant::now(), clock::child_usage());
    let output = command.output().with_context(|| format!("cannot start {}", linerate.display()))?;
    let wall = begun.elapsed().as_secs_f64();
    let processor = clock::child_usage().cpu.total().saturating_sub(before.cpu.total()).as_secs_f64();
    let problem = String::from_utf8_lossy(&output.stderr);
    // 1 and 5 are results: a limit was found, a change was not kept.
    let is_result = matches!(output.status.code(), Some(0 | 1 | 5));
    ensure!(is_result, "linerate {}: {problem}", arguments.join(" "));
    Ok(TimedCommand { output: String::from_utf8_lossy(&output.stdout).into_owned(), wall, processor })
}

pub(super) fn measure(linerate: &Path, scratch: &Path) -> Result<Section> {
    let file = scratch.join("history.sqlite");
    let sample = sample(linerate, scratch)?;
    let mut curves = Curves::default();
    let mut stored = 0;
    remove(&file)?;
    for count in RUNS {
        println!("  {count} runs");
        let import = import(linerate, &file, &sample, stored..count)?;
        let added = count - stored;
        stored = count;
        curves.add(linerate, scratch, &file, count, import / as_number(added) * 1e3)?;
    }
    remove(&file)?;
    let size = serde_json::to_string(&sample)?.len();
    Ok(Section {
        name: "history",
        title: "Runs in the history",
        method: format!(
            "Copies of one run of `linerate test -t 1s` ({} kB as JSON) to {HOSTS} hosts, piped into `linerate history import -`; \
             wall times, on a disk that other work shares. A report shows the latest runs, {MAX_REPORTED} at most.",
            size / 1000
        ),
        work: "runs",
        curves: curves.0,
        findings: Vec::new(),
    })
}

/// Curves of the history, in the order of [`Curves::add`].
struct Curves(Vec<Curve>);

impl Default for Curves {
    fn default() -> Self {
        Self(vec![
            Curve::new("import of a run", "ms"),
            Curve::new("file", "MB"),
            Curve::new("list", "ms"),
            Curve::new("list --json", "ms"),
            Curve::new("trend", "ms"),
            Curve::new("trend of one host", "ms"),
            Curve::new("compare", "ms"),
            Curve::new("export as CSV", "s"),
            Curve::new("export as JSON Lines", "s"),
            Curve::informative("report", "s"),
        ])
    }
}

impl Curves {
    fn add(&mut self, linerate: &Path, scratch: &Path, file: &Path, count: u64, import: f64) -> Result<()> {
        let wall = |arguments: &[&str]| timed(linerate, arguments, Some(file)).map(|command| command.wall);
        let [csv, lines, page] = ["export.csv", "export.jsonl", "report.html"].map(|name| scratch.join(name));
        let [csv, lines, page] = [&csv, &lines, &page].map(|path| path.to_string_lossy());
        let runs: Vec<String> = (count - count.min(MAX_REPORTED) + 1..=count).map(|run| run.to_string()).collect();
        let mut reported = vec!["report", "--out", &page];
        reported.extend(runs.iter().map(String::as_str));
        let values = [
            import,
            as_number(fs::metadata(file)?.len()) / 1e6,
            wall(&["history", "list"])? * 1e3,
            wall(&["history", "list", "--json"])? * 1e3,
            wall(&["history", "trend", "goodput_up"])? * 1e3,
            wall(&["history", "trend", "goodput_up", "--host", "host7"])? * 1e3,
            wall(&["history", "compare", "8,33", "58,83"])? * 1e3,
            wall(&["history", "export", "--format", "csv", "--out", &csv])?,
            wall(&["history", "export", "--out", &lines])?,
            wall(&reported)?,
        ];
        for (curve, value) in self.0.iter_mut().zip(values) {
            curve.points.push((as_number(count), value));
        }
        for path in [csv, lines, page] {
            remove(Path::new(path.as_ref()))?;
        }
        Ok(())
    }
}

/// One run, measured in the lab.
fn sample(linerate: &Path, scratch: &Path) -> Result<Value> {
    let file = scratch.join("sample.sqlite");
    remove(&file)?;
    timed(linerate, &["test", "lab:300m-20ms-ecn", "--time", "1s", "-q"], Some(&file))?;
    let exported = timed(linerate, &["history", "export"], Some(&file))?;
    remove(&file)?;
    serde_json::from_str(exported.output.lines().next().context("no run was stored")?).context("the stored run")
}

/// Imports copies of `sample` with these numbers; returns the seconds.
fn import(linerate: &Path, file: &Path, sample: &Value, numbers: std::ops::Range<u64>) -> Result<f64> {
    let mut command = Command::new(linerate);
    command.args(["history", "import", "-"]).env("LINERATE_HISTORY", file).stdin(Stdio::piped()).stderr(Stdio::null());
    let begun = Instant::now();
    let mut child = command.spawn().context("cannot start the import")?;
    let mut pipe = std::io::BufWriter::new(child.stdin.take().context("no pipe")?);
    let start = sample["started_at_unix_ns"].as_u64().context("a run has a time")?;
    let mut run = sample.clone();
    for number in numbers {
        run["started_at_unix_ns"] = (start + number * 1_000_000_000).into();
        run["host"] = format!("host{}", number % HOSTS).into();
        serde_json::to_writer(&mut pipe, &run)?;
        pipe.write_all(b"\n")?;
    }
    drop(pipe);
    ensure!(child.wait()?.success(), "the import failed");
    Ok(begun.elapsed().as_secs_f64())
}

fn remove(file: &Path) -> Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", file.display()))
        }
        _ => Ok(()),
    }
}

fn as_number(count: u64) -> f64 {
    u32::try_from(count).map_or(f64::INFINITY, f64::from)
}
