//! The page as Markdown: figures over all repetitions, beside their bounds.

use std::fmt::Write as _;

use serde_json::Value;

use super::beds::{Bed, Bounds, Case, Mode};
use super::run::mean;

/// All repetitions of one case with one back end.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) bed: &'static Bed,
    pub(super) case: Case,
    pub(super) back_end: &'static str,
    pub(super) runs: Vec<Value>,
}

/// A figure in its runs: the middle, the least and the largest.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Spread {
    median: f64,
    least: f64,
    most: f64,
}

fn spread(mut values: Vec<f64>) -> Option<Spread> {
    values.sort_by(f64::total_cmp);
    let (least, most) = (*values.first()?, *values.last()?);
    let (low, high) = (values[(values.len() - 1) / 2], values[values.len() / 2]);
    Some(Spread { median: f64::midpoint(low, high), least, most })
}

fn pings(run: &Value) -> Vec<f64> {
    let mut all: Vec<f64> =
        run["pings_ms"].as_array().map_or(&[][..], Vec::as_slice).iter().filter_map(Value::as_f64).collect();
    all.sort_by(f64::total_cmp);
    all
}

/// Nearest rank.
fn percentile(sorted: &[f64], percent: usize) -> Option<f64> {
    sorted.get((sorted.len() * percent).div_ceil(100).checked_sub(1)?).copied()
}

impl Row {
    fn over(&self, figure: impl Fn(&Value) -> Option<f64>) -> Option<Spread> {
        spread(self.runs.iter().filter_map(figure).collect())
    }

    fn mean(&self) -> Option<Spread> {
        self.over(|run| mean(&pings(run)))
    }

    fn p99(&self) -> Option<Spread> {
        self.over(|run| percentile(&pings(run), 99))
    }

    fn longest(&self) -> Option<Spread> {
        self.over(|run| pings(run).last().copied())
    }

    fn directions(&self) -> &'static [&'static str] {
        match self.case.mode {
            Mode::Up => &["up"],
            Mode::Down => &["down"],
            Mode::Both => &["up", "down"],
        }
    }

    /// Share of the set rate that was on the wire. What a policer lets pass is not counted by a device: payload then, with
    /// the headers that belong to it.
    fn wire(&self, direction: &str) -> Option<Spread> {
        let set = 1e3 * if direction == "up" { self.bed.rates.0 } else { self.bed.rates.1 };
        let size = f64::from(self.bed.mtu.unwrap_or(1500));
        self.over(|run| {
            let policed = direction == "down" && run["policed"] == true;
            let bits = if policed {
                run["down"]["goodput"].as_f64()? * (size + 14.0) / (size - 52.0)
            } else {
                run[format!("wire_{direction}")].as_f64()?
            };
            Some(bits / set)
        })
    }

    fn goodput(&self, direction: &str) -> Option<Spread> {
        self.over(|run| Some(run[direction]["goodput"].as_f64()? / 1e6))
    }

    fn probe(&self, class: &str, key: &str) -> Option<Spread> {
        self.over(|run| run["probes"][class][key].as_f64())
    }

    /// Processor time of the whole lab for each full packet on the wire, in µs.
    fn processor(&self) -> Option<Spread> {
        let seconds = f64::from(self.bed.times.0 + self.bed.times.1 + 3);
        let direction = self.directions()[0];
        self.over(|run| {
            let packets = run[direction]["goodput"].as_f64()? / (1448.0 * 8.0) * seconds;
            Some(run["ticks"].as_f64()? * 1e4 / packets)
        })
    }

    /// The bounds that the medians miss; `None` when none is set for this back end.
    pub(super) fn missed(&self) -> Option<Vec<String>> {
        let bounds = self.case.bounds;
        if bounds == Bounds::default() || !is_bound(self.bed, self.back_end) {
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

/// For which back ends a bed's bounds are meant.
fn is_bound(bed: &Bed, back_end: &str) -> bool {
    match bed.name {
        // What is taken on such a line.
        "lartc" | "lartc-small-packets" => back_end == "htb+fq_codel",
        "gigabit" => back_end != "none" && back_end != "lartc-htb",
        _ => matches!(back_end, "cake" | "htb+fq_codel" | "htb+bfifo"),
    }
}

fn shown(value: Option<Spread>, digits: usize) -> String {
    value.map_or("–".to_owned(), |one| {
        if (one.most - one.least).abs() < 0.5 * 0.1_f64.powi(i32::try_from(digits).unwrap_or(1)) {
            format!("{:.digits$}", one.median)
        } else {
            format!("{:.digits$} ({:.digits$}–{:.digits$})", one.median, one.least, one.most)
        }
    })
}

fn share(value: Option<Spread>) -> String {
    value.map_or("–".to_owned(), |one| format!("{:.1} %", one.median * 100.0))
}

/// What tests and the controller's own runs have shown.
const REST: &str = include_str!("rest.md");

/// The whole page.
pub(super) fn page(rows: &[Row]) -> String {
    let mut text = "# Shapers on the beds\n\n\
        Made by `cargo xtask shaping`, in the lab: a real Linux kernel in exact virtual time. Load: TCP with CUBIC at both ends. \
        Each figure is the median over the repetitions, with the least and the largest in brackets; round-trip times in ms. \
        `ping` is what a shaper can flatter, because it goes first: beside it stand linerate's own probes of the same bed, UDP \
        without a mark and TCP within the load's kind of flow. Rates are shares of the set rate, as bytes on the wire with \
        Ethernet's header; goodput is payload in Mbit/s. A bound is met when the median meets it; ✗ names those that are not.\n"
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
    text.push_str(REST);
    text
}

fn head(text: &mut String, bed: &Bed) {
    let (up, down) = bed.packet_times();
    let _ = writeln!(
        text,
        "\n## {}\n\n`{}`: {} flow(s) each way, {} s after {} s. One full packet takes {up:.2} ms up and {down:.2} ms down: \
         half of it is what a ping meets on average at best.\n",
        bed.title, bed.name, bed.flows, bed.times.1, bed.times.0
    );
    for case in bed.cases.iter().filter(|case| case.bounds != Bounds::default()) {
        let _ = writeln!(text, "* Bounds, {} full: {}.", case.mode.name(), bounds(case.bounds));
    }
    let last = if bed.name == "gigabit" { "processor, µs a packet" } else { "TCP in band, mean" };
    let _ = writeln!(
        text,
        "\n| full | back end | runs | ping mean | 99 % | longest | rate up | rate down | goodput up | goodput down | UDP \
         mean | UDP 99 % | {last} | bounds |\n|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|"
    );
}

fn bounds(bounds: Bounds) -> String {
    let most = |what: &str, value: Option<f64>| value.map(|value| format!("{what} at most {value} ms"));
    let parts = [
        most("mean", bounds.mean),
        most("99th percentile", bounds.p99),
        most("longest", bounds.longest),
        bounds.wire.map(|share| format!("at least {:.0} % of the set rate", share * 100.0)),
        bounds.goodput.map(|rate| format!("at least {rate} Mbit/s each way")),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn line(text: &mut String, row: &Row) {
    let has = |direction: &&str| row.directions().contains(direction);
    let rate = |direction: &str| Some(direction).filter(has).map_or("–".to_owned(), |way| share(row.wire(way)));
    let goodput = |direction: &str| {
        let digits = if row.bed.rates.1 < 2e3 { 3 } else { 2 };
        Some(direction).filter(has).map_or("–".to_owned(), |way| {
            row.goodput(way).map_or("–".to_owned(), |one| format!("{:.digits$}", one.median))
        })
    };
    let last = if row.bed.name == "gigabit" {
        shown(row.processor(), 1)
    } else {
        shown(row.probe("tcp_in_band", "mean").or_else(|| row.probe("tcp_info", "mean")), 1)
    };
    let verdict = match row.missed() {
        None => "–".to_owned(),
        Some(missed) if missed.is_empty() => "met".to_owned(),
        Some(missed) => format!("✗ {}", missed.join(", ")),
    };
    let _ = writeln!(
        text,
        "| {} | `{}` | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {last} | {verdict} |",
        row.case.mode.name(),
        row.back_end,
        row.runs.len(),
        shown(row.mean(), 1),
        shown(row.p99(), 1),
        shown(row.longest(), 1),
        rate("up"),
        rate("down"),
        goodput("up"),
        goodput("down"),
        shown(row.probe("udp_best_effort", "mean"), 1),
        shown(row.probe("udp_best_effort", "p99"), 1),
    );
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::beds::BEDS;
    use super::*;

    fn row(times: &[f64], wire: f64) -> Row {
        let run = json!({ "pings_ms": times, "wire_up": wire, "policed": false });
        Row { bed: &BEDS[0], case: BEDS[0].cases[0], back_end: "htb+fq_codel", runs: vec![run] }
    }

    #[test]
    fn bounds_are_met_or_named() {
        assert_eq!(row(&[18.0, 60.0], 220e3).missed(), Some(vec![]));
        assert_eq!(row(&[18.0, 81.0], 220e3).missed(), Some(vec!["mean".to_owned(), "longest".to_owned()]));
        assert_eq!(row(&[18.0, 30.0], 200e3).missed(), Some(vec!["rate up".to_owned()]));
        assert_eq!(row(&[], 220e3).missed().map(|missed| missed.len()), Some(2), "nothing measured meets nothing");
        assert_eq!(Row { back_end: "lartc-htb", ..row(&[99.0], 0.0) }.missed(), None);
    }

    #[test]
    fn percentiles_and_medians() {
        assert_eq!(percentile(&[1.0, 2.0, 3.0], 99), Some(3.0));
        assert_eq!(percentile(&[], 99), None);
        assert_eq!(spread(vec![3.0, 1.0, 2.0, 10.0]), Some(Spread { median: 2.5, least: 1.0, most: 10.0 }));
    }

    #[test]
    fn the_page_says_what_is_met() {
        let text = page(&[row(&[18.0, 60.0], 220e3)]);
        assert!(text.contains("| up | `htb+fq_codel` | 1 | 39.0 | 60.0 | 60.0 | 100.0 % |"), "{text}");
        assert!(text.contains("| met |\n\nLARTC's own figures"), "{text}");
    }
}
