//! Markdown page: figures over all repetitions, with their bounds.

use std::fmt::Write as _;
use std::time::Duration;

use linerate_shape::policy::TrafficImportance;
use linerate_shape::prediction::ClassPrediction;
use serde_json::Value;

use super::beds::{CaseBounds, LoadCase, SaturatedDirections, TestBed};
use super::run::{mean, plan};

/// Class of probes without a DSCP.
const IMPORTANCE: TrafficImportance = TrafficImportance::Default;

/// Repetitions of one case with one back end.
#[derive(Debug)]
pub(super) struct CaseRow {
    pub(super) bed: &'static TestBed,
    pub(super) case: LoadCase,
    pub(super) back_end: &'static str,
    pub(super) runs: Vec<Value>,
}

/// Median, minimum and maximum of a figure over its runs.
#[derive(Clone, Copy, Debug, PartialEq)]
struct RunSpread {
    median: f64,
    least: f64,
    most: f64,
}

fn spread(mut values: Vec<f64>) -> Option<RunSpread> {
    values.sort_by(f64::total_cmp);
    let (least, most) = (*values.first()?, *values.last()?);
    let (low, high) = (values[(values.len() - 1) / 2], values[values.len() / 2]);
    Some(RunSpread { median: f64::midpoint(low, high), least, most })
}

fn pings(run: &Value) -> Vec<f64> {
    let mut all: Vec<f64> =
        run["pings_ms"].as_array().map_or(&[][..], Vec::as_slice).iter().filter_map(Value::as_f64).collect();
    all.sort_by(f64::total_cmp);
    all
}

/// Returns a percentile by nearest rank.
fn percentile(sorted: &[f64], percent: usize) -> Option<f64> {
    sorted.get((sorted.len() * percent).div_ceil(100).checked_sub(1)?).copied()
}

impl CaseRow {
    fn spread_over_runs(&self, figure: impl Fn(&Value) -> Option<f64>) -> Option<RunSpread> {
        spread(self.runs.iter().filter_map(figure).collect())
    }

    fn mean(&self) -> Option<RunSpread> {
        self.spread_over_runs(|run| mean(&pings(run)))
    }

    fn p99(&self) -> Option<RunSpread> {
        self.spread_over_runs(|run| percentile(&pings(run), 99))
    }

    fn longest(&self) -> Option<RunSpread> {
        self.spread_over_runs(|run| pings(run).last().copied())
    }

    fn directions(&self) -> &'static [&'static str] {
        match self.case.mode {
            SaturatedDirections::Up => &["up"],
            SaturatedDirections::Down => &["down"],
            SaturatedDirections::Both => &["up", "down"],
        }
    }

    /// Share of the configured rate on the wire. No device counts the traffic that a policer passes: its payload plus
    /// headers is used instead.
    fn wire(&self, direction: &str) -> Option<RunSpread> {
        let set = 1e3 * if direction == "up" { self.bed.rates.0 } else { self.bed.rates.1 };
        let size = f64::from(self.bed.mtu.unwrap_or(1500));
        // The counters have the bytes of the host, the rate those of the link.
        let more = self.bed.packet.1 / self.bed.packet.0;
        self.spread_over_runs(|run| {
            let policed = direction == "down" && run["policed"] == true;
            let bits = if policed {
                run["down"]["goodput"].as_f64()? * (size + 14.0) / (size - 52.0)
            } else {
                run[format!("wire_{direction}")].as_f64()? * more
            };
            Some(bits / set)
        })
    }

    fn goodput(&self, direction: &str) -> Option<RunSpread> {
        self.spread_over_runs(|run| Some(run[direction]["goodput"].as_f64()? / 1e6))
    }

    fn probe(&self, class: &str, key: &str) -> Option<RunSpread> {
        self.spread_over_runs(|run| run["probes"][class][key].as_f64())
    }

    /// Predicted mean delay of a probe without a DSCP, and of the load's own connections, in ms.
    fn predicted(&self) -> Option<(f64, f64)> {
        let (_, plan) = plan(self.bed, self.back_end).ok()??;
        let is_it =
            |entry: &&ClassPrediction| entry.load.name() == self.case.mode.name() && entry.importance == IMPORTANCE;
        let entry = plan.prediction.classes.iter().find(is_it)?;
        let above_idle = |time: Duration| self.bed.idle + time.as_secs_f64() * 1e3;
        Some((above_idle(entry.mean), above_idle(entry.own_queue)))
    }

    /// Processor time of the whole lab per full packet on the wire, in µs.
    fn processor(&self) -> Option<RunSpread> {
        let seconds = f64::from(self.bed.durations.0 + self.bed.durations.1 + 3);
        let direction = self.directions()[0];
        self.spread_over_runs(|run| {
            let packets = run[direction]["goodput"].as_f64()? / (1448.0 * 8.0) * seconds;
            Some(run["ticks"].as_f64()? * 1e4 / packets)
        })
    }

    /// Returns the bounds that the medians miss; `None` when this back end has no bounds.
    pub(super) fn missed(&self) -> Option<Vec<String>> {
        let bounds = self.case.bounds;
        if bounds == CaseBounds::default() || !has_bounds(self.bed, self.back_end) {
            return None;
        }
        let mut missed = Vec::new();
        let slack = if self.bed.name.starts_with("cake-") && self.back_end == "htb+bfifo" { 5.0 } else { 0.0 };
        let most = [
            ("mean", bounds.mean, self.mean()),
            ("longest", bounds.longest, self.longest()),
            ("p99", bounds.p99, self.p99()),
        ];
        for (what, bound, measured) in most {
            if let Some(bound) = bound
                && measured.is_none_or(|measured| measured.median > bound + slack)
            {
                missed.push(what.to_owned());
            }
        }
        for (probe, name) in [("udp_best_effort", "UDP"), ("tcp_info", "TCP")] {
            for (key, bound) in [("mean", bounds.mean), ("p99", bounds.p99), ("max", bounds.longest)] {
                if let Some(bound) = bound
                    && self.probe(probe, key).is_none_or(|measured| measured.median > bound + slack)
                {
                    missed.push(format!("{name} {key}"));
                }
            }
        }
        for direction in self.directions() {
            let least =
                [("rate", bounds.wire, self.wire(direction)), ("goodput", bounds.goodput, self.goodput(direction))];
            for (what, bound, measured) in least {
                if let Some(bound) = bound
                    && measured.is_none_or(|measured| measured.median < bound)
                {
                    missed.push(format!("{what} {direction}"));
                }
            }
        }
        Some(missed)
    }
}

/// True when a test bed's bounds apply to the back end.
fn has_bounds(bed: &TestBed, back_end: &str) -> bool {
    match bed.name {
        // The default back end on such a link.
        "lartc" | "lartc-small-packets" => back_end == "htb+fq_codel",
        "gigabit" => back_end != "none" && back_end != "lartc-htb",
        _ => matches!(back_end, "cake" | "htb+fq_codel" | "htb+bfifo"),
    }
}

fn format_spread(value: Option<RunSpread>, digits: usize) -> String {
    value.map_or("–".to_owned(), |one| {
        if (one.most - one.least).abs() < 0.5 * 0.1_f64.powi(i32::try_from(digits).unwrap_or(1)) {
            format!("{:.digits$}", one.median)
        } else {
            format!("{:.digits$} ({:.digits$}–{:.digits$})", one.median, one.least, one.most)
        }
    })
}

fn share(value: Option<RunSpread>) -> String {
    value.map_or("–".to_owned(), |one| format!("{:.1} %", one.median * 100.0))
}

/// Results of tests and of the rate controller's own runs.
const FURTHER_RESULTS: &str = include_str!("rest.md");

/// Formats the whole page.
pub(super) fn page(rows: &[CaseRow]) -> String {
    let mut text = "# Shapers on the test beds\n\n\
    Written by `cargo xtask shaping`, in the lab: a real Linux kernel in exact virtual time. Load: TCP with CUBIC at \
    both ends. The shaper is set up by `linerate shape`. Each figure is the median over the repetitions, with the least and the largest in brackets; round-trip \
    times in ms. A shaper may prioritise `ping`: the table also has linerate's own probes of the same test bed, UDP \
    without a DSCP, and the round trips of the load's own TCP connections. Bounds are judged on all three: the load's own \
    connections also wait in their own queues, which the bounds of the sources do not count. *Predicted* is what the plan \
    expects of the column before, for the number of flows of the test bed. Rates are shares of the configured rate, as bytes on the \
    wire with Ethernet's header; goodput is payload in Mbit/s. A bound is met when the median meets it; ✗ names the \
    missed ones.\n"
        .to_owned();
    let mut bed = "";
    for row in rows {
        if row.bed.name != bed {
            bed = row.bed.name;
            head(&mut text, row.bed);
        }
        line(&mut text, row);
        if rows.iter().rfind(|one| one.bed.name == bed).is_some_and(|last| core::ptr::eq(last, row)) {
            let _ = writeln!(text, "\n{}", row.bed.remark);
        }
    }
    text.push_str(FURTHER_RESULTS);
    text
}

fn head(text: &mut String, bed: &TestBed) {
    let (up, down) = bed.packet_times();
    let _ = writeln!(
        text,
        "\n## {}\n\n`{}`: {} flow(s) per direction, {} s after {} s. One full packet takes {up:.2} ms up and {down:.2} \
        ms down: a ping waits for half of it on average at best.\n",
        bed.title, bed.name, bed.flows, bed.durations.1, bed.durations.0
    );
    for case in bed.cases.iter().filter(|case| case.bounds != CaseBounds::default()) {
        let _ = writeln!(text, "* Bounds, {} loaded: {}.", case.mode.name(), bounds(case.bounds));
    }
    let last = if bed.name == "gigabit" { "processor, µs per packet" } else { "TCP in band, mean" };
    let _ = writeln!(
        text,
        "\n| loaded | back end | runs | ping mean | 99 % | longest | rate up | rate down | goodput up | goodput down | \
         UDP mean | predicted | UDP 99 % | {last} | predicted | bounds |\n|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:\
         |---:|---:|---:|---:|---|"
    );
}

fn bounds(bounds: CaseBounds) -> String {
    let most = |what: &str, value: Option<f64>| value.map(|value| format!("{what} at most {value} ms"));
    let parts = [
        most("mean", bounds.mean),
        most("99th percentile", bounds.p99),
        most("longest", bounds.longest),
        bounds.wire.map(|share| format!("at least {:.0} % of the configured rate", share * 100.0)),
        bounds.goodput.map(|rate| format!("at least {rate} Mbit/s per direction")),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn line(text: &mut String, row: &CaseRow) {
    let has = |direction: &&str| row.directions().contains(direction);
    let rate = |direction: &str| Some(direction).filter(has).map_or("–".to_owned(), |loaded| share(row.wire(loaded)));
    let goodput = |direction: &str| {
        let digits = if row.bed.rates.1 < 2e3 { 3 } else { 2 };
        Some(direction).filter(has).map_or("–".to_owned(), |loaded| {
            row.goodput(loaded).map_or("–".to_owned(), |one| format!("{:.digits$}", one.median))
        })
    };
    let last = if row.bed.name == "gigabit" {
        format_spread(row.processor(), 1)
    } else {
        format_spread(row.probe("tcp_info", "mean"), 1)
    };
    let known = row.predicted().filter(|_| row.bed.name != "gigabit");
    let predicted = |which: usize| {
        known.map_or("–".to_owned(), |(probe, own)| format!("{:.1}", if which == 0 { probe } else { own }))
    };
    let verdict = match row.missed() {
        None => "–".to_owned(),
        Some(missed) if missed.is_empty() => "met".to_owned(),
        Some(missed) => format!("✗ {}", missed.join(", ")),
    };
    let _ = writeln!(
        text,
        "| {} | `{}` | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {last} | {} | {verdict} |",
        row.case.mode.name(),
        row.back_end,
        row.runs.len(),
        format_spread(row.mean(), 1),
        format_spread(row.p99(), 1),
        format_spread(row.longest(), 1),
        rate("up"),
        rate("down"),
        goodput("up"),
        goodput("down"),
        format_spread(row.probe("udp_best_effort", "mean"), 1),
        predicted(0),
        format_spread(row.probe("udp_best_effort", "p99"), 1),
        predicted(1),
    );
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::beds::BEDS;
    use super::*;

    fn row(times: &[f64], wire: f64) -> CaseRow {
        let longest = times.iter().copied().reduce(f64::max);
        let probe = json!({ "mean": mean(times), "p99": longest, "max": longest });
        let probes = json!({ "udp_best_effort": probe, "tcp_info": { "mean": 20.0, "p99": 20.0, "max": 20.0 } });
        let run = json!({ "pings_ms": times, "wire_up": wire, "policed": false, "probes": probes });
        CaseRow { bed: &BEDS[0], case: BEDS[0].cases[0], back_end: "htb+fq_codel", runs: vec![run] }
    }

    #[test]
    fn bounds_are_met_or_named() {
        assert_eq!(row(&[18.0, 60.0], 220e3).missed(), Some(vec![]));
        assert_eq!(
            row(&[18.0, 81.0], 220e3).missed(),
            Some(["mean", "longest", "UDP mean", "UDP max"].map(str::to_owned).into())
        );
        assert_eq!(row(&[18.0, 30.0], 200e3).missed(), Some(vec!["rate up".to_owned()]));
        assert_eq!(row(&[], 220e3).missed().map(|missed| missed.len()), Some(4), "no measurement meets no bound");
        assert_eq!(CaseRow { back_end: "lartc-htb", ..row(&[99.0], 0.0) }.missed(), None);
    }

    #[test]
    fn percentiles_and_medians() {
        assert_eq!(percentile(&[1.0, 2.0, 3.0], 99), Some(3.0));
        assert_eq!(percentile(&[], 99), None);
        assert_eq!(spread(vec![3.0, 1.0, 2.0, 10.0]), Some(RunSpread { median: 2.5, least: 1.0, most: 10.0 }));
    }

    #[test]
    fn the_page_shows_met_bounds() {
        let text = page(&[row(&[18.0, 60.0], 220e3)]);
        assert!(text.contains("| up | `htb+fq_codel` | 1 | 39.0 | 60.0 | 60.0 | 100.0 % |"), "{text}");
        assert!(text.contains("| met |\n\nLARTC's own figures"), "{text}");
    }
}
