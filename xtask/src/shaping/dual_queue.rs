//! An L4S flow next to a classic one through a dual queue and through other back ends: delay and goodput of each.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::classes::{Values, value};
use super::page::{format_spread, percentile, spread};
use super::run::mean;

const SCRIPT: &str = include_str!("dual-queue.sh");

/// Name for `--bed`.
pub(super) const NAME: &str = "dual-queue";

/// Back ends with their options; the first one's L4S queue is judged.
const BACK_ENDS: [&str; 4] = ["htb+dualpi2", "htb+dualpi2 --dualpi2 step=4ms", "htb+fq_codel", "htb+bfifo"];

/// Runs of each, with different seeds of the lab.
const SEEDS: core::ops::RangeInclusive<u32> = 1..=3;

/// Idle round-trip time in ms.
const IDLE: f64 = 20.0;

/// Largest 99th percentile of probes with ECT(1) above the idle round trip, in ms.
const MAX_L4S_DELAY: f64 = 2.0;

/// Output from the kept file, or of a new measurement with `linerate`.
fn output(options: &str, seed: u32, linerate: Option<&Path>, kept: &Path) -> Result<Option<String>> {
    let file = kept.join(format!("{NAME}.{}.{seed}.txt", options.replace(' ', "_")));
    if let Ok(text) = fs::read_to_string(&file) {
        return Ok(Some(text));
    }
    let Some(linerate) = linerate else { return Ok(None) };
    let script = kept.join("dual-queue.sh");
    fs::write(&script, SCRIPT)?;
    let output = Command::new(linerate)
        .args(["--no-history", "lab", "run", "--seed", &seed.to_string(), "lan-1g", "--", "sh"])
        .args([&script, linerate])
        .args([options, "10", "30"])
        .output()
        .with_context(|| format!("cannot start {}", linerate.display()))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(text.contains("undo: exact"), "{options}: {text}{}", String::from_utf8_lossy(&output.stderr));
    fs::write(&file, &text).with_context(|| format!("cannot write {}", file.display()))?;
    Ok(Some(text))
}

/// Row of a back end in a direction; false where the L4S queue of a dual queue is longer than its bound.
fn row(options: &str, direction: &str, runs: &[Values]) -> (String, bool) {
    let over_runs = |figure: &dyn Fn(&Values) -> Option<f64>| spread(runs.iter().filter_map(figure).collect());
    let of = |flow: &str, name: &str| format!("{direction} {flow} {name}");
    let first =
        |key: &str, unit: f64| format_spread(over_runs(&|values: &Values| Some(values.get(key)?.first()? / unit)), 1);
    let p99 = |values: &Values, flow: &str| {
        let mut sorted = values.get(&of(flow, "pings"))?.clone();
        sorted.sort_by(f64::total_cmp);
        percentile(&sorted, 99)
    };
    let mut text = format!("| {direction} | `{options}` | {} |", runs.len());
    for flow in ["l4s", "classic"] {
        let pings = over_runs(&|values: &Values| mean(values.get(&of(flow, "pings"))?));
        let _ = write!(
            text,
            " {} | {} | {} | {} |",
            format_spread(pings, 1),
            format_spread(over_runs(&|values: &Values| p99(values, flow)), 1),
            first(&of(flow, "own"), 1e3),
            first(&of(flow, "goodput"), 1e6),
        );
    }
    text.push('\n');
    let is_short = |values: &Values| p99(values, "l4s").is_some_and(|time| time <= IDLE + MAX_L4S_DELAY);
    let is_met = options != BACK_ENDS[0] || (!runs.is_empty() && runs.iter().all(is_short));
    (text, is_met)
}

/// Measures, or takes the kept figures where there is no program, and formats the section; also returns the misses.
pub(super) fn section(linerate: Option<&Path>, kept: &Path) -> (String, Vec<String>) {
    let (mut text, mut missed) = (HEADING.to_owned(), Vec::new());
    for direction in ["up", "down"] {
        for options in BACK_ENDS {
            let run = |seed| {
                output(options, seed, linerate, kept).unwrap_or_else(|error| {
                    eprintln!("{error:#}");
                    None
                })
            };
            let runs: Vec<Values> =
                SEEDS.filter_map(run).map(|text| text.lines().filter_map(value).collect()).collect();
            let (row, is_met) = row(options, direction, &runs);
            text.push_str(&row);
            if !is_met {
                missed.push(format!("{NAME}: {}", row.trim_end()));
            }
        }
    }
    text.push_str(REMARK);
    (text, missed)
}

const REMARK: &str = "
At 20 Mbit/s a full packet takes 0.6 ms. A step of 1 ms then marks from the second packet on, which leaves DCTCP the smaller part of
the rate; `--dualpi2 up:step=4ms` gives it more, and probes wait as long as before. With a queue for each flow (`htb+fq_codel`,
`htb+bfifo`) probes wait for no flow and both flows get the same, but the L4S flow waits in its own queue.
";

const HEADING: &str = "
## A dual queue for L4S

`linerate shape v0 --up 20M --down 50M` in the lab, between two network namespaces that are 20 ms apart, with one L4S flow and one
classic flow at a time, 30 s after 10 s: DCTCP, whose packets leave with ECT(1), as no congestion control of Linux sends that, and
CUBIC without ECN. Pings with ECT(1) and without ECN every 50 ms; *own* is the round trip of the flow's own packets. Times in ms,
goodput in Mbit/s. Bound: with `htb+dualpi2` 99 % of the pings with ECT(1) take at most 22 ms. `off` restored the previous
queueing disciplines.

| loaded | back end | runs | L4S ping, mean | 99 % | own | goodput | classic ping, mean | 99 % | own | goodput |
|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_and_the_bound_of_the_l4s_queue() {
        let values = |longest: &str| -> Values {
            let text = format!(
                "up l4s goodput: 9000000\nup l4s own: 21000\nup l4s pings: 20.0 {longest} \nup classic goodput: \
                 10000000\nup classic own: 34000\nup classic pings: 30.0 40.0 \n"
            );
            text.lines().filter_map(value).collect()
        };
        let (text, is_met) = row("htb+dualpi2", "up", &[values("21.0")]);
        assert_eq!(text, "| up | `htb+dualpi2` | 1 | 20.5 | 21.0 | 21.0 | 9.0 | 35.0 | 40.0 | 34.0 | 10.0 |\n");
        assert!(is_met && !row("htb+dualpi2", "up", &[values("21.0"), values("22.1")]).1);
        assert!(row("htb+bfifo", "up", &[values("90.0")]).1, "judged for a dual queue only");
        assert!(!row("htb+dualpi2", "up", &[]).1, "unmeasured is not met");
    }
}
