//! Metrics in Prometheus' text format, with a bounded number of series: the fastest flows individually, the others as
//! sums.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use linerate_model::flow::FlowChange;
use linerate_model::socket::SocketCookie;
use linerate_units::{BitRate, ByteCount, SegmentCount};

use super::columns;
use super::flows::{FlowEntry, FlowRow, FlowTable};

/// Largest number of processes with their own series; later ones are counted as `other`.
const MAX_PROCESSES: usize = 100;
/// Labels of the other processes, and of unknown ones.
const OTHER_PROCESSES: &str = "other";
const UNKNOWN: &str = "unknown";

/// Sums since the start (Prometheus counters): they only grow, even when flows close.
#[derive(Debug, Default)]
pub(crate) struct PrometheusMetrics {
    processes: BTreeMap<String, ProcessCounters>,
}

#[derive(Clone, Copy, Debug, Default)]
struct ProcessCounters {
    acknowledged: u64,
    received: u64,
    retransmitted: u64,
}

impl PrometheusMetrics {
    /// Adds the changes since the previous sample.
    pub(crate) fn count(&mut self, flows: &FlowTable) {
        for row in flows.rows() {
            let Some(change) = &row.flow.change else { continue };
            let full = self.processes.len() >= MAX_PROCESSES;
            let name = row.owner.known().map_or(UNKNOWN, |owner| owner.name.as_str());
            let name = if full && !self.processes.contains_key(name) { OTHER_PROCESSES } else { name };
            if !self.processes.contains_key(name) {
                self.processes.insert(name.to_owned(), ProcessCounters::default());
            }
            if let Some(sums) = self.processes.get_mut(name) {
                sums.add(change);
            }
        }
    }

    /// Renders the metrics, with individual series for the first `top` rows.
    pub(crate) fn text(&self, rows: &[FlowRow<'_>], top: usize) -> String {
        let mut text = String::new();
        self.processes_text(&mut text, rows);
        limits_text(&mut text, rows);
        flows_text(&mut text, &rows[..top.min(rows.len())]);
        other_flows_text(&mut text, &rows[top.min(rows.len())..]);
        text
    }

    fn processes_text(&self, text: &mut String, rows: &[FlowRow<'_>]) {
        let counters: [CounterMetric; 3] = [
            ("linerate_sent_bytes_total", "Payload acknowledged by the remote hosts.", |sums| sums.acknowledged),
            ("linerate_received_bytes_total", "Payload received.", |sums| sums.received),
            ("linerate_retransmitted_segments_total", "Segments retransmitted.", |sums| sums.retransmitted),
        ];
        for (name, help, value) in counters {
            push_header(text, name, help, "counter");
            for (process, sums) in &self.processes {
                let _ = writeln!(text, "{name}{{process=\"{}\"}} {}", escape_label(process), value(sums));
            }
        }
        let mut counts: HashMap<&str, u64> = HashMap::new();
        for row in rows {
            let name = row.owner.known().map_or(UNKNOWN, |owner| owner.name.as_str());
            let name = if self.processes.contains_key(name) { name } else { OTHER_PROCESSES };
            *counts.entry(name).or_default() += 1;
        }
        let counts: BTreeMap<_, _> = counts.into_iter().collect();
        push_header(text, "linerate_flows", "Open TCP flows.", "gauge");
        for (process, count) in counts {
            let _ = writeln!(text, "linerate_flows{{process=\"{}\"}} {count}", escape_label(process));
        }
    }
}

impl ProcessCounters {
    fn add(&mut self, change: &FlowChange) {
        self.acknowledged += change.acknowledged.map_or(0, ByteCount::get);
        self.received += change.received.map_or(0, ByteCount::get);
        self.retransmitted += change.retransmitted.map_or(0, SegmentCount::get);
    }
}

type CounterMetric = (&'static str, &'static str, fn(&ProcessCounters) -> u64);
type SumMetric = (&'static str, &'static str, fn(&FlowChange) -> Option<BitRate>);

fn push_header(text: &mut String, name: &str, help: &str, kind: &str) {
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

/// Pushes the number of flows per limit.
fn limits_text(text: &mut String, rows: &[FlowRow<'_>]) {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for state in rows.iter().filter_map(|row| row.flow.state) {
        *counts.entry(state.limit.kind().name()).or_default() += 1;
    }
    push_header(text, "linerate_limited_flows", "TCP flows by their present limit.", "gauge");
    for (limit, count) in counts {
        let _ = writeln!(text, "linerate_limited_flows{{limit=\"{limit}\"}} {count}");
    }
}

type GaugeMetric = (&'static str, &'static str, fn(&FlowEntry) -> Option<f64>);

const GAUGES: [GaugeMetric; 7] = [
    ("linerate_flow_send_bytes_per_second", "Rate of acknowledged payload.", |flow| {
        Some(bytes_per_second(flow.change?.send_rate?))
    }),
    ("linerate_flow_receive_bytes_per_second", "Rate of received payload.", |flow| {
        Some(bytes_per_second(flow.change?.receive_rate?))
    }),
    ("linerate_flow_round_trip_seconds", "Smoothed round-trip time.", |flow| Some(flow.change?.rtt?.as_secs_f64())),
    ("linerate_flow_queueing_seconds", "Round-trip time above the smallest one.", |flow| {
        Some(flow.change?.queueing?.as_secs_f64())
    }),
    ("linerate_flow_congestion_window_bytes", "Congestion window.", |flow| {
        Some(flow.change?.congestion_window?.as_f64())
    }),
    ("linerate_flow_retransmission_ratio", "Retransmitted bytes / sent bytes.", |flow| {
        Some(flow.change?.retransmission_share?.get())
    }),
    ("linerate_flow_in_flight_bytes", "Bytes in flight.", |flow| Some(flow.change?.in_flight?.as_f64())),
];

fn flows_text(text: &mut String, rows: &[FlowRow<'_>]) {
    for (name, help, value) in GAUGES {
        push_header(text, name, help, "gauge");
        for row in rows {
            // Unknown values have no series.
            if let Some(value) = value(row.flow) {
                let _ = writeln!(text, "{name}{{{}}} {value}", labels(row));
            }
        }
    }
}

/// Pushes the sums over the flows without their own series.
fn other_flows_text(text: &mut String, rows: &[FlowRow<'_>]) {
    let sums: [SumMetric; 2] = [
        ("linerate_other_flows_send_bytes_per_second", "Sum over the flows without their own series.", |change| {
            change.send_rate
        }),
        ("linerate_other_flows_receive_bytes_per_second", "Sum over the flows without their own series.", |change| {
            change.receive_rate
        }),
    ];
    for (name, help, rate) in sums {
        push_header(text, name, help, "gauge");
        let sum: BitRate = rows.iter().filter_map(|row| rate(row.flow.change.as_ref()?)).sum();
        let _ = writeln!(text, "{name} {}", bytes_per_second(sum));
    }
    push_header(text, "linerate_other_flows", "Number of flows without their own series.", "gauge");
    let _ = writeln!(text, "linerate_other_flows {}", rows.len());
}

/// Prometheus' base unit of data is the byte.
fn bytes_per_second(rate: BitRate) -> f64 {
    rate.bits_per_second() / 8.0
}

fn labels(row: &FlowRow<'_>) -> String {
    let key = &row.flow.reading.key;
    let (process, number) = row.owner.known().map_or_else(
        || (UNKNOWN.to_owned(), String::new()),
        |owner| (escape_label(&owner.name), owner.process.to_string()),
    );
    let SocketCookie(cookie) = key.cookie;
    format!(
        "process=\"{process}\",pid=\"{number}\",local=\"{}\",peer=\"{}\",cookie=\"{cookie:x}\"",
        key.local,
        columns::peer(&key.remote)
    )
}

/// Escapes backslashes, quotes and line ends for a label value.
fn escape_label(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
