//! Tables and pictures of the procedure of RFC 6349.

use linerate_model::schema::rfc6349::{Flows, Rfc6349Document, TcpTest, WindowTest};
use linerate_model::schema::run::Unit;
use linerate_model::schema::throughput::Direction;

use super::path;
use crate::presentation::reasons::Reasons;
use crate::presentation::{Bars, BarsRow, Cell, Chart, Plot, Presentation, Quantity, Table, direction};

pub(super) fn complete(presentation: &mut Presentation<'_>, document: &Rfc6349Document) {
    let sweeps = [Direction::Up, Direction::Down].map(|direction| sweep(document, direction));
    presentation.charts.extend(sweeps.into_iter().flatten());
    let reasons = Reasons::of(&document.unknown);
    let tables = [
        metrics(document),
        windows(document),
        Some(baseline(document, reasons)),
        traffic_management(document),
        transfers(document),
    ];
    presentation.tables.extend(tables.into_iter().flatten());
    presentation.tables.extend(path::tables(&document.path));
    presentation.notes.extend(document.notes.iter().chain(&document.path.notes).cloned());
}

const fn flows(flows: Flows) -> &'static str {
    match flows {
        Flows::Up => "up alone",
        Flows::Down => "down alone",
        Flows::Both => "both ways at once",
    }
}

fn label(test: &TcpTest) -> String {
    let noun = if test.connections == 1 { "connection" } else { "connections" };
    format!("{}, {} {noun}, {}", direction(test.direction), test.connections, flows(test.flows))
}

/// `value`, or why the test does not know it.
fn known(test: &TcpTest, value: Option<Quantity>) -> Cell {
    let reason = test.problem.as_deref().unwrap_or("only the sender's kernel knows it, and the far end does not tell");
    value.map_or_else(|| Cell::Unknown(reason.to_owned()), Cell::Value)
}

fn metrics(document: &Rfc6349Document) -> Option<Table> {
    let columns =
        ["Test", "Transfer time ratio", "TCP efficiency", "Buffer delay", "Goodput", "of achievable", "Meaning"];
    let mut table = Table::new("metrics", "The three metrics", &columns);
    for test in &document.tests {
        let meaning = test.problem.clone().unwrap_or_else(|| test.meaning.clone());
        table.row(
            label(test),
            vec![
                known(test, test.transfer_time_ratio.map(|ratio| Quantity::new(ratio, Unit::One))),
                known(test, test.efficiency.map(Quantity::share)),
                known(test, test.buffer_delay.map(Quantity::share)),
                known(test, test.goodput_bits_per_second.map(Quantity::bits_per_second)),
                known(test, test.share_of_achievable.map(Quantity::share)),
                Cell::Text(meaning),
            ],
        );
    }
    let note = "Transfer time ratio: actual over ideal time, 1 is best. TCP efficiency: bytes that were not sent again. \
                Buffer delay: round trip under load over the baseline, minus one.";
    table.note = Some(note.to_owned());
    table.filled()
}

fn transfers(document: &Rfc6349Document) -> Option<Table> {
    let mut table = Table::new("transfers", "The transfers", &["Test", "Bytes", "Time", "Mean RTT"]);
    for test in &document.tests {
        table.row(
            label(test),
            vec![
                known(test, test.bytes.map(Quantity::bytes)),
                known(test, test.duration_ns.map(Quantity::nanoseconds)),
                known(test, test.mean_rtt_ns.map(Quantity::nanoseconds)),
            ],
        );
    }
    table.filled()
}

fn windows(document: &Rfc6349Document) -> Option<Table> {
    let columns = ["Window", "of the BDP", "Window seen", "Expected", "Achieved", "Ratio"];
    let mut table = Table::new("windows", "The sweep over window sizes", &columns);
    for test in &document.windows {
        let known = |value: Option<Quantity>| {
            value.map_or_else(|| Cell::Unknown("this window's transfer did not tell".to_owned()), Cell::Value)
        };
        table.row(
            format!("{} {}", Quantity::bytes(test.window_bytes).shown(), direction(test.direction)),
            vec![
                known(test.share_of_bdp.map(Quantity::share)),
                known(test.observed_window_bytes.map(Quantity::bytes)),
                known(test.expected_bits_per_second.map(Quantity::bits_per_second)),
                known(test.achieved_bits_per_second.map(Quantity::bits_per_second)),
                known(test.ratio.map(|ratio| Quantity::new(ratio, Unit::One))),
            ],
        );
    }
    table.note = Some("Expected: window over round trip, at most what the path carries.".to_owned());
    table.filled()
}

fn sweep<'a>(document: &Rfc6349Document, flow: Direction) -> Option<Chart<'a>> {
    let windows: Vec<&WindowTest> = document.windows.iter().filter(|test| test.direction == flow).collect();
    let rows: Vec<BarsRow> = windows
        .iter()
        .map(|test| BarsRow {
            label: Quantity::bytes(test.window_bytes).shown(),
            bars: vec![(test.expected_bits_per_second, None), (test.achieved_bits_per_second, None)],
        })
        .collect();
    let shown =
        |rate: Option<f64>| rate.map_or_else(|| "unknown".to_owned(), |rate| Quantity::bits_per_second(rate).shown());
    let said: Vec<String> = windows
        .iter()
        .map(|test| {
            let window = Quantity::bytes(test.window_bytes).shown();
            format!("{window} {} of {}", shown(test.achieved_bits_per_second), shown(test.expected_bits_per_second))
        })
        .collect();
    let title = format!("Achieved against expected by window, {}", direction(flow));
    (!rows.is_empty()).then(|| Chart {
        name: format!("windows_{}", direction(flow)),
        summary: format!("{title}: {}.", said.join("; ")),
        title,
        plot: Plot::Bars(Bars {
            unit: Unit::BitsPerSecond,
            legend: vec!["expected".to_owned(), "achieved".to_owned()],
            rows,
        }),
    })
}

fn baseline(document: &Rfc6349Document, reasons: Reasons<'_>) -> Table {
    let base = &document.baseline;
    let mut table = Table::new("baseline", "What the expectations rest on", &["Figure", "Up", "Down"]);
    let cell = |key: &str, value: Option<Quantity>| reasons.cell(&format!("baseline.{key}"), value);
    let rate = |key: &str, value: Option<f64>| cell(key, value.map(Quantity::bits_per_second));
    let size = |key: &str, value: Option<u64>| cell(key, value.map(Quantity::bytes));
    let rtt = base.rtt_ns.map(Quantity::nanoseconds);
    table.row("Smallest round trip without load", vec![cell("rtt_ns", rtt), cell("rtt_ns", rtt)]);
    table.row(
        "Bottleneck bandwidth (IP)",
        vec![
            rate("bandwidth_up_bits_per_second", base.bandwidth_up_bits_per_second),
            rate("bandwidth_down_bits_per_second", base.bandwidth_down_bits_per_second),
        ],
    );
    let mtu = |key: &str, bytes: Option<u64>| match bytes {
        Some(bytes) => Cell::Qualified(Quantity::bytes(bytes), format!("{bytes} B")),
        None => cell(key, None),
    };
    table.row("Path MTU", vec![mtu("mtu_up_bytes", base.mtu_up_bytes), mtu("mtu_down_bytes", base.mtu_down_bytes)]);
    table.row(
        "Bandwidth-delay product",
        vec![size("bdp_up_bytes", base.bdp_up_bytes), size("bdp_down_bytes", base.bdp_down_bytes)],
    );
    table.row(
        "Largest TCP payload rate",
        vec![
            rate("achievable_up_bits_per_second", base.achievable_up_bits_per_second),
            rate("achievable_down_bits_per_second", base.achievable_down_bits_per_second),
        ],
    );
    table
}

fn traffic_management(document: &Rfc6349Document) -> Option<Table> {
    let columns = ["Direction", "Verdict", "Rate", "Bucket", "because"];
    let mut table = Table::new("traffic_management", "Traffic management", &columns);
    for test in &document.traffic_management {
        let of = |value: Option<Quantity>| value.map_or(Cell::Nothing, Cell::Value);
        let policer = test.policer.as_ref();
        table.row(
            direction(test.direction),
            vec![
                Cell::text(&test.verdict),
                of(policer.and_then(|policer| policer.bits_per_second).map(Quantity::bits_per_second)),
                of(policer.and_then(|policer| policer.burst_bytes).map(Quantity::bytes)),
                Cell::text(&test.evidence),
            ],
        );
    }
    table.filled()
}
