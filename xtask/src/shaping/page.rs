//! Markdown page: figures over all repetitions, with their bounds.

use std::fmt::{self, Write as _};
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
pub(super) struct RunSpread {
    median: f64,
    least: f64,
    most: f64,
}

/// Returns the spread of a figure; `None` without values.
pub(super) fn spread(mut values: Vec<f64>) -> Option<RunSpread> {
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
pub(super) fn percentile(sorted: &[f64], percent: usize) -> Option<f64> {
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

    /// Predictions of mean delays above the idle link's that are off by more than [`MAX_FACTOR`], as text.
    fn missed_predictions(&self) -> Vec<String> {
        let Some((probe, own)) = self.predicted().filter(|_| self.bed.name != "gigabit") else { return vec![] };
        let figures = [("UDP", "udp_best_effort", probe), ("loaded TCP", LOADED, own)];
        let case = format!("`{}`, {} loaded, `{}`", self.bed.name, self.case.mode.name(), self.back_end);
        let missed = figures.into_iter().filter_map(|(name, class, predicted)| {
            let measured = self.probe(class, "mean")?.median;
            let (predicted, measured) = (predicted - self.bed.idle, measured - self.bed.idle);
            let is_within =
                predicted <= measured * MAX_FACTOR + RESOLUTION && measured <= predicted * MAX_FACTOR + RESOLUTION;
            (!is_within)
                .then(|| format!("{case}, {name}: {predicted:.1} ms above idle predicted, {measured:.1} measured"))
        });
        missed.collect()
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

    /// Judges the medians of each probe, and the rates, by the bounds; `None` when this back end has no bounds.
    pub(super) fn verdicts(&self) -> Option<Vec<ProbeVerdict>> {
        let bounds = self.case.bounds;
        if bounds == CaseBounds::default() || !has_bounds(self.bed, self.back_end) {
            return None;
        }
        let figures = [("mean", "mean", bounds.mean), ("99 %", "p99", bounds.p99), ("longest", "max", bounds.longest)];
        let loaded = self.bed.loaded_mean(self.case.mode, self.back_end);
        let mut verdicts = Vec::new();
        for (probe, name) in PROBES {
            let mut verdict = ProbeVerdict { name, missed: Vec::new() };
            let of_its_own = [("mean", "mean", Some(loaded))];
            for (what, key, bound) in if probe == Some(LOADED) { &of_its_own[..] } else { &figures } {
                let measured = match probe {
                    Some(class) => self.probe(class, key),
                    None if *key == "mean" => self.mean(),
                    None if *key == "p99" => self.p99(),
                    None => self.longest(),
                };
                verdict.judge((*what).to_owned(), *bound, |bound| measured.is_some_and(|one| one.median <= bound));
            }
            verdicts.push(verdict);
        }
        let mut rates = ProbeVerdict { name: "rate", missed: Vec::new() };
        for direction in self.directions() {
            let least =
                [("rate", bounds.wire, self.wire(direction)), ("goodput", bounds.goodput, self.goodput(direction))];
            for (what, bound, measured) in least {
                let is_met = |bound| measured.is_some_and(|measured| measured.median >= bound);
                rates.judge(format!("{what} {direction}"), bound, is_met);
            }
        }
        if bounds.wire.is_some() || bounds.goodput.is_some() {
            verdicts.push(rates);
        }
        Some(verdicts.into_iter().filter(|verdict| verdict.name == "rate" || bounds.has_delays()).collect())
    }

    /// Verdicts with missed bounds, as text.
    pub(super) fn misses(&self) -> Vec<String> {
        let missed = self.verdicts().unwrap_or_default().into_iter().filter(|verdict| !verdict.missed.is_empty());
        missed.map(|verdict| verdict.to_string()).collect()
    }
}

/// Largest factor between a predicted and a measured delay, and the time in ms that no probe resolves.
const MAX_FACTOR: f64 = 1.5;
const RESOLUTION: f64 = 0.3;

/// Probes whose delays are judged: ping, and classes of `linerate load` without a DSCP.
const PROBES: [(Option<&str>, &str); 4] = [
    (None, "ping"),
    (Some("udp_best_effort"), "UDP"),
    (Some("tcp_handshake"), "new TCP"),
    (Some(LOADED), "loaded TCP"),
];

/// Class of the load's own connections.
const LOADED: &str = "tcp_info";

/// Judgement of one probe.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ProbeVerdict {
    name: &'static str,
    /// Figures that miss their bounds.
    missed: Vec<String>,
}

impl ProbeVerdict {
    fn judge(&mut self, what: String, bound: Option<f64>, is_met: impl Fn(f64) -> bool) {
        if bound.is_some_and(|bound| !is_met(bound)) {
            self.missed.push(what);
        }
    }
}

impl fmt::Display for ProbeVerdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.missed.is_empty() {
            write!(formatter, "{} met", self.name)
        } else {
            write!(formatter, "{} ✗ {}", self.name, self.missed.join(", "))
        }
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

/// Formats the median, with the least and the largest value where they differ.
pub(super) fn format_spread(value: Option<RunSpread>, digits: usize) -> String {
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

const INTRODUCTION: &str = "# Shapers on the test beds

Written by `cargo xtask shaping`, in the lab: a real Linux kernel in exact virtual time. Load: TCP with CUBIC at both ends.
Every shaper is set up by `linerate shape`. Each figure is the median over the runs, with the least and the largest in
brackets; round-trip times in ms. Rates are shares of the configured rate, as bytes on the wire with Ethernet's header;
goodput is payload in Mbit/s.

Each bound is judged for four probes. The given ones hold for `ping`, which some shapers prioritise, for *UDP*, probes of
linerate without a DSCP, and for *new TCP*, handshakes of new connections. *Loaded TCP*, the round trips of the load's own
connections as the kernel measures them, has a bound of its own, as each also waits behind its own packets: with fewer than
four in flight a loss takes a timeout (RFC 5681 §3.2). It is the idle round trip and five full packets of each flow, or with
`htb+bfifo`, which drops at the end of its queues only, 20 ms of each where that is longer; with both directions full the mean
of both, each with a packet of the other one. A bound is met when the median meets it; ✗ names the missed figures.

*Predicted* is what the plan expects of the column before, for the number of flows of the test bed.
";

/// Formats the whole page; `sections` are those on single flows and on classes.
pub(super) fn page(rows: &[CaseRow], sections: &str) -> String {
    let mut text = INTRODUCTION.to_owned();
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
    text.push_str(&predictions(rows));
    text.push_str(sections);
    text.push_str(FURTHER_RESULTS);
    text
}

/// Replaces sections of a written page, which begin with their headings; new ones come last, before the further results.
pub(super) fn updated(written: &str, sections: &str) -> String {
    let end = FURTHER_RESULTS.trim_start().lines().next().and_then(|first| written.find(first));
    let page = written[..end.unwrap_or(written.len())].trim_end();
    let mut chunks: Vec<&str> = page.split("\n## ").map(str::trim_end).collect();
    for section in sections.split("\n## ").skip(1).map(str::trim_end) {
        let heading = section.lines().next();
        match chunks.iter_mut().find(|chunk| chunk.lines().next() == heading) {
            Some(chunk) => *chunk = section,
            None => chunks.push(section),
        }
    }
    format!("{}\n{FURTHER_RESULTS}", chunks.join("\n\n## "))
}

/// Formats the section on predictions.
fn predictions(rows: &[CaseRow]) -> String {
    let missed: Vec<String> = rows.iter().flat_map(CaseRow::missed_predictions).collect();
    let mut text = format!(
        "\n## Predictions\n\nMean delays above the idle link's that are off by more than a factor of {MAX_FACTOR} and \
         {RESOLUTION} ms, of {} cases with UDP and loaded TCP each:\n\n",
        rows.iter().filter(|row| row.predicted().is_some() && row.bed.name != "gigabit").count()
    );
    if missed.is_empty() {
        text.push_str("* none\n");
    }
    for one in missed {
        let _ = writeln!(text, "* {one}");
    }
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
        let own = if case.bounds.has_delays() {
            format!("; loaded TCP at most {:.0} ms on average", bed.loaded_mean(case.mode, ""))
        } else {
            String::new()
        };
        let _ = writeln!(text, "* Bounds, {} loaded: {}{own}.", case.mode.name(), bounds(case.bounds));
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
    let verdict = row
        .verdicts()
        .map_or("–".to_owned(), |verdicts| verdicts.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "));
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
        let quick = json!({ "mean": 20.0, "p99": 20.0, "max": 20.0 });
        let probes = json!({ "udp_best_effort": probe, "tcp_info": quick, "tcp_handshake": quick });
        let run = json!({ "pings_ms": times, "wire_up": wire, "policed": false, "probes": probes });
        CaseRow { bed: &BEDS[0], case: BEDS[0].cases[0], back_end: "htb+fq_codel", runs: vec![run] }
    }

    #[test]
    fn bounds_are_met_or_named() {
        assert_eq!(row(&[18.0, 60.0], 220e3).misses(), [""; 0]);
        assert_eq!(row(&[18.0, 81.0], 220e3).misses(), ["ping ✗ mean, longest", "UDP ✗ mean, longest"]);
        assert_eq!(row(&[18.0, 30.0], 200e3).misses(), ["rate ✗ rate up"]);
        assert_eq!(row(&[], 220e3).misses(), ["ping ✗ mean, longest", "UDP ✗ mean, longest"], "unmeasured is not met");
        assert_eq!(CaseRow { back_end: "lartc-htb", ..row(&[99.0], 0.0) }.verdicts(), None);
    }

    /// 45.6 ms are predicted of a link with 18.1.
    #[test]
    fn predictions_that_are_far_off_are_listed() {
        let far_off =
            |time: f64| row(&[time], 220e3).missed_predictions().iter().any(|one| one.contains(", UDP: 27.5 ms"));
        assert_eq!([34.0, 38.0, 59.0, 61.0].map(far_off), [true, false, false, true]);
        let text = predictions(&[row(&[61.0], 220e3)]);
        assert!(text.contains("of 1 cases") && text.contains("`lartc`, up loaded, `htb+fq_codel`, UDP"), "{text}");
        assert!(predictions(&[]).ends_with("* none\n"));
    }

    #[test]
    fn percentiles_and_medians() {
        assert_eq!(percentile(&[1.0, 2.0, 3.0], 99), Some(3.0));
        assert_eq!(percentile(&[], 99), None);
        assert_eq!(spread(vec![3.0, 1.0, 2.0, 10.0]), Some(RunSpread { median: 2.5, least: 1.0, most: 10.0 }));
    }

    #[test]
    fn sections_of_a_written_page_are_replaced_or_added() {
        let written = page(&[row(&[18.0], 220e3)], "\n## One flow\n\nOld.\n\n## Classes\n\nKept.\n");
        let text = updated(&written, "\n## One flow\n\nNew.\n\n## Third\n\nAdded.\n");
        let expected =
            page(&[row(&[18.0], 220e3)], "\n## One flow\n\nNew.\n\n## Classes\n\nKept.\n\n## Third\n\nAdded.\n");
        assert_eq!(text, expected);
        assert_eq!(updated(&text, ""), text);
    }

    #[test]
    fn the_page_shows_met_bounds() {
        let text = page(&[row(&[18.0, 60.0], 220e3)], "");
        assert!(text.contains("| up | `htb+fq_codel` | 1 | 39.0 | 60.0 | 60.0 | 100.0 % |"), "{text}");
        assert!(text.contains("| ping met; UDP met; new TCP met; loaded TCP met; rate met |\n"), "{text}");
    }
}
