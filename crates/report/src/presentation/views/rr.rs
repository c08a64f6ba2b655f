//! Tables and charts of requests and responses.

use linerate_documents::rr::{LatencyBucket, LatencySummary, RrDocument, RrSchedule};
use linerate_documents::run::FigureUnit;

use crate::presentation::reasons::UnknownReasons;
use crate::presentation::{BarChart, BarGroup, Chart, ChartPlot, Presentation, Quantity, ReportTable, TableCell};

/// Share below which a bucket at either end of the histogram is left to the table.
const MIN_SHOWN_SHARE: f64 = 0.0001;

/// Longest list of seconds in the table.
const MAX_SECONDS: usize = 120;

pub(super) fn complete(presentation: &mut Presentation<'_>, document: &RrDocument) {
    presentation.lead(histogram(document));
    let tables = [latency(document), Some(transactions(document)), intervals(document)];
    presentation.tables.extend(tables.into_iter().flatten());
    super::add_notes(presentation, &document.notes, &document.unknown);
    let failures = document.failures.iter().map(|reason| format!("Failed flow: {reason}."));
    presentation.notes.extend(failures);
}

fn latency(document: &RrDocument) -> Option<ReportTable> {
    let columns = ["Latency", "min", "mean", "p50", "p90", "p99", "p99.9", "max"];
    let mut table = ReportTable::new("latency", "Latency", &columns);
    let (first, note) = if document.schedule == RrSchedule::Closed {
        ("From sending", "From sending a request to the last byte of its response.")
    } else {
        (
            "From the intended time",
            "A request that waits for the previous one of its flow is counted from the time at which it was due; the \
             service time is counted from its sending, and hides that wait (coordinated omission).",
        )
    };
    let rows = [(first, &document.latency), ("Service time", &document.service_time)];
    for (label, summary) in rows {
        if let Some(summary) = summary {
            table.push_row(label, cells(summary));
        }
    }
    table.note = Some(note.to_owned());
    table.non_empty()
}

fn cells(summary: &LatencySummary) -> Vec<TableCell> {
    let times = [summary.min_ns, summary.mean_ns].into_iter().chain(summary.percentiles().map(|(_, time)| time));
    times.map(|time| TableCell::Value(Quantity::nanoseconds(time))).collect()
}

fn transactions(document: &RrDocument) -> ReportTable {
    let reasons = UnknownReasons::of(&document.unknown);
    let mut table = ReportTable::new("transactions", "Transactions", &["Figure", "Value"]);
    let rate = |key: &str, value: Option<f64>| {
        reasons.cell(key, value.map(|value| Quantity::new(value, FigureUnit::PerSecond)))
    };
    table.push_row("Kind", vec![TableCell::text(document.mode.title())]);
    if let Some(handshake) = &document.handshake {
        table.push_row("Handshake", vec![TableCell::text(handshake.text())]);
    }
    let sizes = [document.request_bytes, document.response_bytes].map(|size| Quantity::bytes(size).display_text());
    table.push_row("Request, response", vec![TableCell::text(sizes.join(", "))]);
    table.push_row("Flows", vec![TableCell::Value(Quantity::count(document.flows.into()))]);
    table.push_row("Schedule", vec![TableCell::text(document.schedule.title())]);
    if document.scheduled_per_second.is_some() {
        table.push_row("Scheduled rate", vec![rate("scheduled_per_second", document.scheduled_per_second)]);
    }
    table.push_row("Rate", vec![rate("transactions_per_second", document.transactions_per_second)]);
    table.push_row("Completed", vec![TableCell::Value(Quantity::count(document.transactions))]);
    if let Some(lost) = document.lost {
        table.push_row("Lost", vec![TableCell::Value(Quantity::count(lost))]);
    }
    if document.unfinished > 0 {
        table.push_row("Not complete at the end", vec![TableCell::Value(Quantity::count(document.unfinished))]);
    }
    let time = |key: &str, value: Option<f64>| {
        reasons.cell(key, value.map(|value| Quantity::new(value, FigureUnit::Nanoseconds)))
    };
    table.push_row("Processor time here, each", vec![time("near_processor_ns", document.near_processor_ns)]);
    table.push_row("Processor time of the server, each", vec![time("far_processor_ns", document.far_processor_ns)]);
    table
}

fn intervals(document: &RrDocument) -> Option<ReportTable> {
    let mut table = ReportTable::new("intervals", "Second by second", &["Second", "Completed", "Mean", "Largest"]);
    let time = |value: Option<u64>| {
        value.map_or_else(
            || TableCell::Unknown("no transaction was completed in this second".to_owned()),
            |value| TableCell::Value(Quantity::nanoseconds(value)),
        )
    };
    for (number, interval) in document.intervals.iter().take(MAX_SECONDS).enumerate() {
        let completed = TableCell::Value(Quantity::count(interval.transactions));
        table.push_row((number + 1).to_string(), vec![completed, time(interval.mean_ns), time(interval.max_ns)]);
    }
    let more = document.intervals.len().saturating_sub(MAX_SECONDS);
    table.note = (more > 0).then(|| format!("{more} more seconds are in the document (--json)."));
    table.non_empty()
}

/// Bound of the 1-2-5 series, which has no decimals.
fn bound(nanoseconds: u64) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1000, "µs"), (1, "ns")];
    let (size, unit) = units.into_iter().find(|(size, _)| nanoseconds >= *size).unwrap_or((1, "ns"));
    format!("{} {unit}", nanoseconds / size)
}

/// Shares of the transactions by latency, without the rare ones at either end.
fn histogram<'a>(document: &RrDocument) -> Option<Chart<'a>> {
    let total: u64 = document.histogram.iter().map(|bucket| bucket.count).sum();
    #[expect(clippy::cast_precision_loss, reason = "fewer than 2^53 transactions")]
    let share = |bucket: &LatencyBucket| bucket.count as f64 / total.max(1) as f64;
    let is_shown = |bucket: &LatencyBucket| share(bucket) >= MIN_SHOWN_SHARE;
    let first = document.histogram.iter().position(is_shown)?;
    let last = document.histogram.iter().rposition(is_shown)?;
    let shown = &document.histogram[first..=last];
    let bounds = |bucket: &LatencyBucket| format!("{}–{}", bound(bucket.from_ns), bound(bucket.below_ns));
    let row = |bucket: &LatencyBucket| BarGroup { label: bounds(bucket), bars: vec![(Some(share(bucket)), None)] };
    let text = |bucket: &LatencyBucket| format!("{} {}", bounds(bucket), Quantity::share(share(bucket)).display_text());
    let title = "Transactions by latency";
    Some(Chart {
        name: "histogram".to_owned(),
        title: title.to_owned(),
        summary: format!("{title}: {}.", shown.iter().map(text).collect::<Vec<_>>().join("; ")),
        plot: ChartPlot::Bars(BarChart {
            unit: FigureUnit::Share,
            legend: vec!["share".to_owned()],
            rows: shown.iter().map(row).collect(),
        }),
    })
}
