//! Tables and charts of the procedure of RFC 6349.

use linerate_documents::rfc6349::{LoadedDirections, Rfc6349Document, TcpTest, WindowTest};
use linerate_documents::run::FigureUnit;
use linerate_model::direction::Direction;
use linerate_units::display;

use super::path;
use crate::presentation::reasons::UnknownReasons;
use crate::presentation::{
    BarChart, BarGroup, Chart, ChartPlot, Presentation, Quantity, ReportTable, TableCell, direction_label,
};

pub(super) fn complete(presentation: &mut Presentation<'_>, document: &Rfc6349Document) {
    presentation.lead(transfers_chart(document));
    let sweeps = [Direction::Up, Direction::Down].map(|direction| sweep(document, direction));
    presentation.charts.extend(sweeps.into_iter().flatten());
    let reasons = UnknownReasons::of(&document.unknown);
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

const fn flows(flows: LoadedDirections) -> &'static str {
    match flows {
        LoadedDirections::Up => "up alone",
        LoadedDirections::Down => "down alone",
        LoadedDirections::Both => "both directions at once",
    }
}

fn label(test: &TcpTest) -> String {
    let connections = display::counted(test.connections, "connection");
    format!("{}, {connections}, {}", direction_label(test.direction), flows(test.flows))
}

/// Cell of `value`, or of the reason why the test does not know it.
fn known(test: &TcpTest, value: Option<Quantity>) -> TableCell {
    let reason = test.problem.as_deref().unwrap_or("known only to the sender's kernel; not reported by the far end");
    value.map_or_else(|| TableCell::Unknown(reason.to_owned()), TableCell::Value)
}

fn metrics(document: &Rfc6349Document) -> Option<ReportTable> {
    let columns =
        ["Test", "Transfer time ratio", "TCP efficiency", "Buffer delay", "Goodput", "of achievable", "Meaning"];
    let mut table = ReportTable::new("metrics", "RFC 6349 metrics", &columns);
    for test in &document.tests {
        let meaning = test.problem.clone().unwrap_or_else(|| test.meaning.clone());
        table.push_row(
            label(test),
            vec![
                known(test, test.transfer_time_ratio.map(|ratio| Quantity::new(ratio, FigureUnit::One))),
                known(test, test.efficiency.map(Quantity::share)),
                known(test, test.buffer_delay.map(Quantity::share)),
                known(test, test.goodput_bits_per_second.map(Quantity::bits_per_second)),
                known(test, test.share_of_achievable.map(Quantity::share)),
                TableCell::Text(meaning),
            ],
        );
    }
    let note = "Transfer time ratio: actual over ideal time, 1 is best. TCP efficiency: bytes not retransmitted. \
                Buffer delay: round trip under load over the baseline, minus one.";
    table.note = Some(note.to_owned());
    table.non_empty()
}

/// Goodput of each transfer, next to the largest payload rate of its direction.
fn transfers_chart<'a>(document: &Rfc6349Document) -> Option<Chart<'a>> {
    let base = &document.baseline;
    let achievable = |test: &TcpTest| match test.direction {
        Direction::Up => base.achievable_up_bits_per_second,
        Direction::Down => base.achievable_down_bits_per_second,
    };
    let known = || document.tests.iter().filter(|test| test.goodput_bits_per_second.is_some());
    let shown = |test: &TcpTest| {
        let rate = test.goodput_bits_per_second.map(|rate| Quantity::bits_per_second(rate).display_text());
        format!("{} {}", label(test), rate.unwrap_or_default())
    };
    let row = |test: &TcpTest| BarGroup {
        label: label(test),
        bars: vec![(achievable(test), None), (test.goodput_bits_per_second, None)],
    };
    let title = "Goodput against the largest payload rate";
    known().next().is_some().then(|| Chart {
        name: "transfers".to_owned(),
        title: title.to_owned(),
        summary: format!("{title}: {}.", known().map(shown).collect::<Vec<_>>().join("; ")),
        plot: ChartPlot::Bars(BarChart {
            unit: FigureUnit::BitsPerSecond,
            legend: vec!["largest".to_owned(), "achieved".to_owned()],
            rows: known().map(row).collect(),
        }),
    })
}

fn transfers(document: &Rfc6349Document) -> Option<ReportTable> {
    let mut table = ReportTable::new("transfers", "Transfers", &["Test", "Bytes", "Time", "Mean RTT"]);
    for test in &document.tests {
        table.push_row(
            label(test),
            vec![
                known(test, test.bytes.map(Quantity::bytes)),
                known(test, test.duration_ns.map(Quantity::nanoseconds)),
                known(test, test.mean_rtt_ns.map(Quantity::nanoseconds)),
            ],
        );
    }
    table.non_empty()
}

fn windows(document: &Rfc6349Document) -> Option<ReportTable> {
    let columns = ["Window", "of the BDP", "Observed window", "Expected", "Achieved", "Ratio"];
    let mut table = ReportTable::new("windows", "Sweep of window sizes", &columns);
    for test in &document.windows {
        let known = |value: Option<Quantity>| {
            value.map_or_else(
                || TableCell::Unknown("not reported by this window's transfer".to_owned()),
                TableCell::Value,
            )
        };
        table.push_row(
            format!("{} {}", Quantity::bytes(test.window_bytes).display_text(), direction_label(test.direction)),
            vec![
                known(test.share_of_bdp.map(Quantity::share)),
                known(test.observed_window_bytes.map(Quantity::bytes)),
                known(test.expected_bits_per_second.map(Quantity::bits_per_second)),
                known(test.achieved_bits_per_second.map(Quantity::bits_per_second)),
                known(test.ratio.map(|ratio| Quantity::new(ratio, FigureUnit::One))),
            ],
        );
    }
    table.note = Some("Expected: window over round trip, at most the path capacity.".to_owned());
    table.non_empty()
}

fn sweep<'a>(document: &Rfc6349Document, flow: Direction) -> Option<Chart<'a>> {
    let windows: Vec<&WindowTest> = document.windows.iter().filter(|test| test.direction == flow).collect();
    let rows: Vec<BarGroup> = windows
        .iter()
        .map(|test| BarGroup {
            label: Quantity::bytes(test.window_bytes).display_text(),
            bars: vec![(test.expected_bits_per_second, None), (test.achieved_bits_per_second, None)],
        })
        .collect();
    let shown = |rate: Option<f64>| {
        rate.map_or_else(|| "unknown".to_owned(), |rate| Quantity::bits_per_second(rate).display_text())
    };
    let parts: Vec<String> = windows
        .iter()
        .map(|test| {
            let window = Quantity::bytes(test.window_bytes).display_text();
            format!("{window} {} of {}", shown(test.achieved_bits_per_second), shown(test.expected_bits_per_second))
        })
        .collect();
    let title = format!("Achieved against expected by window, {}", direction_label(flow));
    (!rows.is_empty()).then(|| Chart {
        name: format!("windows_{}", direction_label(flow)),
        summary: format!("{title}: {}.", parts.join("; ")),
        title,
        plot: ChartPlot::Bars(BarChart {
            unit: FigureUnit::BitsPerSecond,
            legend: vec!["expected".to_owned(), "achieved".to_owned()],
            rows,
        }),
    })
}

fn baseline(document: &Rfc6349Document, reasons: UnknownReasons<'_>) -> ReportTable {
    let base = &document.baseline;
    let mut table = ReportTable::new("baseline", "Baseline", &["Figure", "Up", "Down"]);
    let cell = |key: &str, value: Option<Quantity>| reasons.cell(&format!("baseline.{key}"), value);
    let rate = |key: &str, value: Option<f64>| cell(key, value.map(Quantity::bits_per_second));
    let size = |key: &str, value: Option<u64>| cell(key, value.map(Quantity::bytes));
    let rtt = base.rtt_ns.map(Quantity::nanoseconds);
    table.push_row("Smallest round trip without load", vec![cell("rtt_ns", rtt), cell("rtt_ns", rtt)]);
    table.push_row(
        "Bottleneck bandwidth (IP)",
        vec![
            rate("bandwidth_up_bits_per_second", base.bandwidth_up_bits_per_second),
            rate("bandwidth_down_bits_per_second", base.bandwidth_down_bits_per_second),
        ],
    );
    let mtu = |key: &str, bytes: Option<u64>| match bytes {
        Some(bytes) => TableCell::Qualified(Quantity::bytes(bytes), format!("{bytes} B")),
        None => cell(key, None),
    };
    table
        .push_row("Path MTU", vec![mtu("mtu_up_bytes", base.mtu_up_bytes), mtu("mtu_down_bytes", base.mtu_down_bytes)]);
    table.push_row(
        "Bandwidth-delay product",
        vec![size("bdp_up_bytes", base.bdp_up_bytes), size("bdp_down_bytes", base.bdp_down_bytes)],
    );
    table.push_row(
        "Largest TCP payload rate",
        vec![
            rate("achievable_up_bits_per_second", base.achievable_up_bits_per_second),
            rate("achievable_down_bits_per_second", base.achievable_down_bits_per_second),
        ],
    );
    table
}

fn traffic_management(document: &Rfc6349Document) -> Option<ReportTable> {
    let columns = ["Direction", "Verdict", "Rate", "Bucket", "Evidence"];
    let mut table = ReportTable::new("traffic_management", "Traffic management", &columns);
    for test in &document.traffic_management {
        let of = |value: Option<Quantity>| value.map_or(TableCell::Nothing, TableCell::Value);
        let policer = test.policer.as_ref();
        table.push_row(
            direction_label(test.direction),
            vec![
                TableCell::text(test.verdict.name()),
                of(policer.and_then(|policer| policer.bits_per_second).map(Quantity::bits_per_second)),
                of(policer.and_then(|policer| policer.burst_bytes).map(Quantity::bytes)),
                TableCell::text(&test.evidence),
            ],
        );
    }
    table.non_empty()
}
