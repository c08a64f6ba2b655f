//! Metrics in Prometheus' text format, with a bounded number of series: the fastest flows individually, the others as
//! sums.

use std::collections::{BTreeMap, HashMap};

use linerate_export::Exposition;
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
        let mut page = Exposition::default();
        self.expose_processes(&mut page, rows);
        expose_limits(&mut page, rows);
        expose_flows(&mut page, &rows[..top.min(rows.len())]);
        expose_other_flows(&mut page, &rows[top.min(rows.len())..]);
        page.finish()
    }

    fn expose_processes(&self, page: &mut Exposition, rows: &[FlowRow<'_>]) {
        let counters: [CounterMetric; 3] = [
            ("linerate_sent_bytes_total", "Payload acknowledged by the remote hosts.", |sums| sums.acknowledged),
            ("linerate_received_bytes_total", "Payload received.", |sums| sums.received),
            ("linerate_retransmitted_segments_total", "Segments retransmitted.", |sums| sums.retransmitted),
        ];
        for (name, help, value) in counters {
            page.family(name, help, "counter");
            for (process, sums) in &self.processes {
                page.series(name, &[("process", process)], value(sums));
            }
        }
        let mut counts: HashMap<&str, u64> = HashMap::new();
        for row in rows {
            let name = row.owner.known().map_or(UNKNOWN, |owner| owner.name.as_str());
            let name = if self.processes.contains_key(name) { name } else { OTHER_PROCESSES };
            *counts.entry(name).or_default() += 1;
        }
        let counts: BTreeMap<_, _> = counts.into_iter().collect();
        page.family("linerate_flows", "Open TCP flows.", "gauge");
        for (process, count) in counts {
            page.series("linerate_flows", &[("process", process)], count);
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

/// Adds the number of flows per limit.
fn expose_limits(page: &mut Exposition, rows: &[FlowRow<'_>]) {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for state in rows.iter().filter_map(|row| row.flow.state) {
        *counts.entry(state.limit.kind().name()).or_default() += 1;
    }
    page.family("linerate_limited_flows", "TCP flows by their present limit.", "gauge");
    for (limit, count) in counts {
        page.series("linerate_limited_flows", &[("limit", limit)], count);
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

fn expose_flows(page: &mut Exposition, rows: &[FlowRow<'_>]) {
    for (name, help, value) in GAUGES {
        page.family(name, help, "gauge");
        for row in rows {
            // Unknown values have no series.
            if let Some(value) = value(row.flow) {
                expose_flow(page, name, row, value);
            }
        }
    }
}

/// Adds the sums over the flows without their own series.
fn expose_other_flows(page: &mut Exposition, rows: &[FlowRow<'_>]) {
    let sums: [SumMetric; 2] = [
        ("linerate_other_flows_send_bytes_per_second", "Sum over the flows without their own series.", |change| {
            change.send_rate
        }),
        ("linerate_other_flows_receive_bytes_per_second", "Sum over the flows without their own series.", |change| {
            change.receive_rate
        }),
    ];
    for (name, help, rate) in sums {
        page.family(name, help, "gauge");
        let sum: BitRate = rows.iter().filter_map(|row| rate(row.flow.change.as_ref()?)).sum();
        page.series(name, &[], bytes_per_second(sum));
    }
    page.family("linerate_other_flows", "Number of flows without their own series.", "gauge");
    page.series("linerate_other_flows", &[], rows.len());
}

/// Prometheus' base unit of data is the byte.
fn bytes_per_second(rate: BitRate) -> f64 {
    rate.bits_per_second() / 8.0
}

/// Adds a series of a flow.
fn expose_flow(page: &mut Exposition, name: &str, row: &FlowRow<'_>, value: f64) {
    let key = &row.flow.reading.key;
    let (process, number) = row
        .owner
        .known()
        .map_or_else(|| (UNKNOWN, String::new()), |owner| (owner.name.as_str(), owner.process.to_string()));
    let SocketCookie(cookie) = key.cookie;
    let (local, peer, cookie) = (key.local.to_string(), columns::peer(&key.remote), format!("{cookie:x}"));
    let labels = [("process", process), ("pid", &number), ("local", &local), ("peer", &peer), ("cookie", &cookie)];
    page.series(name, &labels, value);
}
