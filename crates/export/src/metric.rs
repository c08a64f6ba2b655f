//! Metrics of a result: names and units of the figures outside linerate.

use linerate_documents::fleet_result::FleetResult;
use linerate_documents::rfc6349::LoadedDirections;
use linerate_documents::run::{FigureUnit, RunFigure};

/// Largest number of figures of one result that are exported: a run has fewer, and a longer list is another program's.
const MAX_FIGURES: usize = 64;

/// Bits of a byte: rates leave linerate in bytes per second.
const BITS: f64 = 8.0;

/// Metric, as OpenTelemetry and Prometheus name it.
#[derive(Debug, PartialEq, Eq)]
pub struct ExportedMetric {
    /// First word of the figures' names.
    stem: &'static str,
    /// Unit of the figures.
    figure_unit: FigureUnit,
    /// Name in OpenTelemetry.
    pub name: &'static str,
    /// Unit in OpenTelemetry (UCUM).
    pub unit: &'static str,
    /// Name in Prometheus, with the base unit.
    pub prometheus: &'static str,
    /// Description.
    pub help: &'static str,
}

const fn metric(
    (stem, figure_unit): (&'static str, FigureUnit),
    name: &'static str,
    unit: &'static str,
    prometheus: &'static str,
    help: &'static str,
) -> ExportedMetric {
    ExportedMetric { stem, figure_unit, name, unit, prometheus, help }
}

use FigureUnit::{BitsPerSecond, Bytes, Nanoseconds, One, Packets, PerSecond, RoundTripsPerMinute, Segments, Share};

/// Metrics of known figures.
const KNOWN: [ExportedMetric; 13] = [
    metric(
        ("goodput", BitsPerSecond),
        "linerate.goodput",
        "By/s",
        "linerate_goodput_bytes_per_second",
        "Payload that arrived.",
    ),
    metric(
        ("capacity", BitsPerSecond),
        "linerate.capacity",
        "By/s",
        "linerate_capacity_bytes_per_second",
        "Capacity of the path.",
    ),
    metric(
        ("bandwidth", BitsPerSecond),
        "linerate.bandwidth",
        "By/s",
        "linerate_bandwidth_bytes_per_second",
        "Bandwidth of the bottleneck (RFC 6349).",
    ),
    metric(("rtt", Nanoseconds), "linerate.rtt", "s", "linerate_rtt_seconds", "Round-trip time."),
    metric(
        ("added", Nanoseconds),
        "linerate.load.added_delay",
        "s",
        "linerate_load_added_delay_seconds",
        "Delay that load adds.",
    ),
    metric(("jitter", Nanoseconds), "linerate.jitter", "s", "linerate_jitter_seconds", "Variation of the delay."),
    metric(
        ("rpm", RoundTripsPerMinute),
        "linerate.responsiveness",
        "{round_trip}/min",
        "linerate_responsiveness_rpm",
        "Round trips per minute under load.",
    ),
    metric(
        ("transactions", PerSecond),
        "linerate.rr.transactions",
        "{transaction}/s",
        "linerate_rr_transactions_per_second",
        "Requests answered per second.",
    ),
    metric(
        ("latency", Nanoseconds),
        "linerate.rr.latency",
        "s",
        "linerate_rr_latency_seconds",
        "Time from the intended request to its response.",
    ),
    metric(("loss", Share), "linerate.loss.ratio", "1", "linerate_loss_ratio", "Lost packets / sent packets."),
    metric(
        ("reordering", Share),
        "linerate.reordering.ratio",
        "1",
        "linerate_reordering_ratio",
        "Reordered packets / received packets.",
    ),
    metric(
        ("retransmissions", Segments),
        "linerate.retransmissions",
        "{segment}",
        "linerate_retransmissions",
        "Segments retransmitted in the test.",
    ),
    metric(("mtu", Bytes), "linerate.mtu", "By", "linerate_mtu_bytes", "Path MTU."),
];

/// Metrics of other figures, one per unit: their names are bounded whatever a document has.
const OTHERS: [ExportedMetric; 9] = [
    metric(
        ("", BitsPerSecond),
        "linerate.figure.rate",
        "By/s",
        "linerate_figure_bytes_per_second",
        "Other figures that are rates.",
    ),
    metric(("", Bytes), "linerate.figure.size", "By", "linerate_figure_bytes", "Other figures that are sizes."),
    metric(("", Nanoseconds), "linerate.figure.time", "s", "linerate_figure_seconds", "Other figures that are times."),
    metric(("", Share), "linerate.figure.ratio", "1", "linerate_figure_ratio", "Other figures that are shares."),
    metric(
        ("", Packets),
        "linerate.figure.packets",
        "{packet}",
        "linerate_figure_packets",
        "Other figures that are packets.",
    ),
    metric(
        ("", Segments),
        "linerate.figure.segments",
        "{segment}",
        "linerate_figure_segments",
        "Other figures that are segments.",
    ),
    metric(
        ("", RoundTripsPerMinute),
        "linerate.figure.responsiveness",
        "{round_trip}/min",
        "linerate_figure_rpm",
        "Other figures that are round trips per minute.",
    ),
    metric(
        ("", PerSecond),
        "linerate.figure.frequency",
        "1/s",
        "linerate_figure_per_second",
        "Other figures that are numbers per second.",
    ),
    metric(("", One), "linerate.figure.number", "1", "linerate_figure_value", "Other figures without a unit."),
];

impl ExportedMetric {
    /// All metrics, in a fixed order.
    pub fn all() -> impl Iterator<Item = &'static Self> {
        KNOWN.iter().chain(&OTHERS)
    }

    /// Metric of a figure.
    fn of(figure: &RunFigure) -> &'static Self {
        let stem = figure.name.split('_').next().unwrap_or_default();
        let known = KNOWN.iter().find(|metric| metric.stem == stem && metric.figure_unit == figure.unit);
        known.or_else(|| OTHERS.iter().find(|metric| metric.figure_unit == figure.unit)).unwrap_or(&OTHERS[0])
    }

    /// Value of a figure in this metric's unit.
    fn convert(&self, value: f64) -> f64 {
        match self.figure_unit {
            BitsPerSecond => value / BITS,
            Nanoseconds => value / 1e9,
            Bytes | Share | Packets | Segments | RoundTripsPerMinute | PerSecond | One => value,
        }
    }
}

/// Figure as others read it.
#[derive(Clone, Debug, PartialEq)]
pub struct ExportedFigure {
    /// Metric.
    pub metric: &'static ExportedMetric,
    /// Name of the figure in linerate's documents, which distinguishes the figures of one metric.
    pub figure: String,
    /// Directions of the data; `None` for a figure without a direction.
    pub direction: Option<LoadedDirections>,
    /// Value in the metric's unit: a finite number.
    pub value: f64,
}

/// Figures of a result that have a value, each name once.
#[must_use]
pub fn exported_figures(result: &FleetResult) -> Vec<ExportedFigure> {
    let mut exported: Vec<ExportedFigure> = Vec::new();
    for figure in &result.figures {
        let metric = ExportedMetric::of(figure);
        let value = figure.value.map(|value| metric.convert(value)).filter(|value| value.is_finite());
        let is_new = !exported.iter().any(|known| known.metric == metric && known.figure == figure.name);
        if let Some(value) = value.filter(|_| is_new && exported.len() < MAX_FIGURES) {
            let direction = direction(&figure.name);
            exported.push(ExportedFigure { metric, figure: figure.name.clone(), direction, value });
        }
    }
    exported
}

/// Direction in the name of a figure: `up` of `goodput_up_parallel`.
fn direction(name: &str) -> Option<LoadedDirections> {
    let of = |word| LoadedDirections::ALL.into_iter().find(|direction| direction.name() == word);
    name.split('_').skip(1).find_map(of)
}
