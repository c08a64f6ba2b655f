//! Metrics in Prometheus' text format, with a bounded number of series: the fastest flows one by one, everything else
//! in sums.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use linerate_model::flow::FlowChange;
use linerate_model::socket::SocketCookie;
use linerate_units::{BitRate, ByteCount, SegmentCount};

use super::columns;
use super::flows::{Flow, Flows, Row};
use super::limit;

/// Names of processes that have series of their own; those that come later are counted as `other`.
const MOST_PROCESSES: usize = 100;
/// What stands for them, and for processes that are not known.
const OTHER: &str = "other";
const UNKNOWN: &str = "unknown";

/// Sums since the start: what Prometheus calls counters. They only grow, though flows come and go.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    processes: BTreeMap<String, Sums>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    acknowledged: u64,
    received: u64,
    retransmitted: u64,
}

impl Metrics {
    /// Counts what happened since the reading before.
    pub(crate) fn count(&mut self, flows: &Flows) {
        for row in flows.rows() {
            let Some(change) = &row.flow.change else { continue };
            let full = self.processes.len() >= MOST_PROCESSES;
            let name = row.owner.known().map_or(UNKNOWN, |owner| owner.name.as_str());
            let name = if full && !self.processes.contains_key(name) { OTHER } else { name };
            if !self.processes.contains_key(name) {
                self.processes.insert(name.to_owned(), Sums::default());
            }
            if let Some(sums) = self.processes.get_mut(name) {
                sums.add(change);
            }
        }
    }

    /// The whole text: of these rows, the first `top` by themselves.
    pub(crate) fn text(&self, rows: &[Row<'_>], top: usize) -> String {
        let mut text = String::new();
        self.processes_text(&mut text, rows);
        limits_text(&mut text, rows);
        flows_text(&mut text, &rows[..top.min(rows.len())]);
        rest_text(&mut text, &rows[top.min(rows.len())..]);
        text
    }

    fn processes_text(&self, text: &mut String, rows: &[Row<'_>]) {
        let counters: [Counter; 3] = [
            ("linerate_sent_bytes_total", "Payload that far ends acknowledged.", |sums| sums.acknowledged),
            ("linerate_received_bytes_total", "Payload that was received.", |sums| sums.received),
            ("linerate_retransmitted_segments_total", "Segments that were sent again.", |sums| sums.retransmitted),
        ];
        for (name, help, value) in counters {
            head(text, name, help, "counter");
            for (process, sums) in &self.processes {
                let _ = writeln!(text, "{name}{{process=\"{}\"}} {}", escaped(process), value(sums));
            }
        }
        let mut counts: HashMap<&str, u64> = HashMap::new();
        for row in rows {
            let name = row.owner.known().map_or(UNKNOWN, |owner| owner.name.as_str());
            let name = if self.processes.contains_key(name) { name } else { OTHER };
            *counts.entry(name).or_default() += 1;
        }
        let counts: BTreeMap<_, _> = counts.into_iter().collect();
        head(text, "linerate_flows", "TCP flows that are open.", "gauge");
        for (process, count) in counts {
            let _ = writeln!(text, "linerate_flows{{process=\"{}\"}} {count}", escaped(process));
        }
    }
}

impl Sums {
    fn add(&mut self, change: &FlowChange) {
        self.acknowledged += change.acknowledged.map_or(0, ByteCount::get);
        self.received += change.received.map_or(0, ByteCount::get);
        self.retransmitted += change.retransmitted.map_or(0, SegmentCount::get);
    }
}

type Counter = (&'static str, &'static str, fn(&Sums) -> u64);
type Sum = (&'static str, &'static str, fn(&FlowChange) -> Option<BitRate>);

fn head(text: &mut String, name: &str, help: &str, kind: &str) {
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

/// How many flows each limit holds back.
fn limits_text(text: &mut String, rows: &[Row<'_>]) {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for state in rows.iter().filter_map(|row| row.flow.state) {
        *counts.entry(limit::slug(&state.limit)).or_default() += 1;
    }
    head(text, "linerate_limited_flows", "TCP flows by what limits them now.", "gauge");
    for (limit, count) in counts {
        let _ = writeln!(text, "linerate_limited_flows{{limit=\"{limit}\"}} {count}");
    }
}

type Gauge = (&'static str, &'static str, fn(&Flow) -> Option<f64>);

const GAUGES: [Gauge; 7] = [
    ("linerate_flow_send_bits_per_second", "Payload acknowledged per time.", |flow| {
        Some(flow.change?.send_rate?.bits_per_second())
    }),
    ("linerate_flow_receive_bits_per_second", "Payload received per time.", |flow| {
        Some(flow.change?.receive_rate?.bits_per_second())
    }),
    ("linerate_flow_round_trip_seconds", "Smoothed round-trip time.", |flow| Some(flow.change?.rtt?.as_secs_f64())),
    ("linerate_flow_queueing_seconds", "Round-trip time above the smallest one.", |flow| {
        Some(flow.change?.queueing?.as_secs_f64())
    }),
    ("linerate_flow_congestion_window_bytes", "Congestion window.", |flow| {
        Some(flow.change?.congestion_window?.as_f64())
    }),
    ("linerate_flow_retransmission_ratio", "Bytes sent again as a share of those sent.", |flow| {
        Some(flow.change?.retransmission_share?.get())
    }),
    ("linerate_flow_in_flight_bytes", "Sent and not acknowledged.", |flow| Some(flow.change?.in_flight?.as_f64())),
];

fn flows_text(text: &mut String, rows: &[Row<'_>]) {
    for (name, help, value) in GAUGES {
        head(text, name, help, "gauge");
        for row in rows {
            // What is not known has no series: there is no number for it.
            if let Some(value) = value(row.flow) {
                let _ = writeln!(text, "{name}{{{}}} {value}", labels(row));
            }
        }
    }
}

/// The flows that have no series of their own, together.
fn rest_text(text: &mut String, rows: &[Row<'_>]) {
    let sums: [Sum; 2] = [
        ("linerate_other_flows_send_bits_per_second", "Sum over the flows that are not named.", |change| {
            change.send_rate
        }),
        ("linerate_other_flows_receive_bits_per_second", "Sum over the flows that are not named.", |change| {
            change.receive_rate
        }),
    ];
    for (name, help, rate) in sums {
        head(text, name, help, "gauge");
        let sum: BitRate = rows.iter().filter_map(|row| rate(row.flow.change.as_ref()?)).sum();
        let _ = writeln!(text, "{name} {}", sum.bits_per_second());
    }
    head(text, "linerate_other_flows", "How many flows are not named.", "gauge");
    let _ = writeln!(text, "linerate_other_flows {}", rows.len());
}

fn labels(row: &Row<'_>) -> String {
    let key = &row.flow.reading.key;
    let (process, number) = row
        .owner
        .known()
        .map_or_else(|| (UNKNOWN.to_owned(), String::new()), |owner| (escaped(&owner.name), owner.process.to_string()));
    let SocketCookie(cookie) = key.cookie;
    format!(
        "process=\"{process}\",pid=\"{number}\",local=\"{}\",peer=\"{}\",cookie=\"{cookie:x}\"",
        key.local,
        columns::peer(&key.remote)
    )
}

/// Backslashes, quotes and line ends, as the format wants them.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
