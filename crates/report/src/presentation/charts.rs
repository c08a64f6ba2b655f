//! Charts of a report.

use std::borrow::Cow;

use linerate_documents::run::{ChartPanel, FigureUnit, PhaseSpan, RunDocument, SampleSeries};

use super::aggregate::together;
use super::{Quantity, direction_label, panel_properties, panel_title};

/// A chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart<'a> {
    /// Stable name in snake case, unique within the presentation.
    pub name: String,
    /// Display title.
    pub title: String,
    /// One-sentence summary for readers who do not see the chart.
    pub summary: String,
    /// The plot.
    pub plot: ChartPlot<'a>,
}

/// Kinds of plots.
#[derive(Clone, Debug, PartialEq)]
pub enum ChartPlot<'a> {
    /// Several quantities over time, one panel above the other, which together answer the run's question.
    Overview(Overview<'a>),
    /// Quantities over time.
    Lines(LineChart<'a>),
    /// Shares of time over time, stacked.
    Ribbon(StackedShares<'a>),
    /// Cumulative distributions.
    Distribution(DistributionPlot),
    /// Single values side by side.
    Bars(BarChart),
}

/// Quantities over time.
#[derive(Clone, Debug, PartialEq)]
pub struct LineChart<'a> {
    /// Unit of all values.
    pub unit: FigureUnit,
    /// In the order of the legend.
    pub series: Vec<TimeSeries<'a>>,
    /// Number of series drawn, from the first, at most `MAX_SERIES`; the table has the others.
    pub shown: usize,
    /// Phases of the measurement.
    pub phases: Vec<ChartPhase>,
    /// Curve through the samples; `None` where the samples are the curve.
    pub smoothing: Option<Smoothing>,
}

/// Largest number of series of a chart: more are indistinguishable.
pub(crate) const MAX_SERIES: usize = 8;

/// Panels with one time axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Overview<'a> {
    /// From the top down.
    pub panels: Vec<OverviewPanel<'a>>,
    /// Phases of the measurement.
    pub phases: Vec<ChartPhase>,
}

/// One panel of an overview.
#[derive(Clone, Debug, PartialEq)]
pub struct OverviewPanel<'a> {
    /// Display title.
    pub title: String,
    /// Unit of all values.
    pub unit: FigureUnit,
    /// Series, each with its look (colour and pattern), an index below `MAX_SERIES`.
    pub series: Vec<(usize, TimeSeries<'a>)>,
    /// True for shares of time that are stacked.
    pub stacked: bool,
    /// Curve through the samples.
    pub smoothing: Option<Smoothing>,
    /// Levels to be named.
    pub marks: Vec<LevelMark>,
}

/// Level of a quantity during a time.
#[derive(Clone, Debug, PartialEq)]
pub struct LevelMark {
    /// Nanoseconds since the run began.
    pub start_ns: u64,
    /// Nanoseconds since the run began.
    pub end_ns: u64,
    /// Level.
    pub value: f64,
    /// Name of the time and of the level, for example `down median`.
    pub name: String,
    /// Text at the level, short enough for a phone.
    pub text: String,
}

/// Curve through samples that scatter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Smoothing {
    /// Averaging time in nanoseconds.
    pub window_ns: u64,
    /// True for the median, which single outliers do not move; false for the mean.
    pub is_median: bool,
}

/// Samples of one quantity. Times are nanoseconds since the run began, ascending.
#[derive(Clone, Debug, PartialEq)]
pub struct TimeSeries<'a> {
    /// Legend entry.
    pub name: String,
    /// Nanoseconds since the run began, ascending.
    pub times_ns: Cow<'a, [u64]>,
    /// One for each time; `None` where no value was available.
    pub values: Cow<'a, [Option<f64>]>,
}

/// A phase of the measurement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChartPhase {
    /// Name.
    pub name: String,
    /// Nanoseconds since the run began.
    pub start_ns: u64,
    /// Nanoseconds since the run began.
    pub end_ns: u64,
}

/// Shares of time, stacked: at each time they add up to at most 1.
#[derive(Clone, Debug, PartialEq)]
pub struct StackedShares<'a> {
    /// From the bottom up.
    pub series: Vec<TimeSeries<'a>>,
    /// Phases of the measurement.
    pub phases: Vec<ChartPhase>,
}

/// Cumulative distributions of one quantity.
#[derive(Clone, Debug, PartialEq)]
pub struct DistributionPlot {
    /// Unit of the quantity.
    pub unit: FigureUnit,
    /// In the order of the legend.
    pub curves: Vec<DistributionCurve>,
}

/// One cumulative distribution.
#[derive(Clone, Debug, PartialEq)]
pub struct DistributionCurve {
    /// Legend entry.
    pub name: String,
    /// Values and the share of samples at or below them, ascending.
    pub points: Vec<(f64, f64)>,
    /// Colour index from 0; curves that belong together share it.
    pub colour: usize,
    /// True for a dashed line: of two curves that belong together, the earlier one.
    pub dashed: bool,
}

/// Single values side by side.
#[derive(Clone, Debug, PartialEq)]
pub struct BarChart {
    /// Unit of all values.
    pub unit: FigureUnit,
    /// Meaning of each bar of a row, for example `before` and `after`.
    pub legend: Vec<String>,
    /// From the top down.
    pub rows: Vec<BarGroup>,
}

/// Bars that belong together.
#[derive(Clone, Debug, PartialEq)]
pub struct BarGroup {
    /// Row label.
    pub label: String,
    /// One for each entry of the legend: the value and its 95 % confidence interval.
    pub bars: Vec<(Option<f64>, Option<[f64; 2]>)>,
}

/// Charts of all panels that `run` has samples for, in the order of the report.
pub(super) fn series_charts(run: &RunDocument) -> Vec<Chart<'_>> {
    const ORDER: [ChartPanel; 9] = [
        ChartPanel::Throughput,
        ChartPanel::Latency,
        ChartPanel::Rtt,
        ChartPanel::CongestionWindow,
        ChartPanel::Retransmissions,
        ChartPanel::Limits,
        ChartPanel::Queue,
        ChartPanel::OneWayDelay,
        ChartPanel::Loss,
    ];
    let phases = phases(run);
    let mut charts: Vec<Chart<'_>> = ORDER.iter().flat_map(|&panel| panel_charts(run, panel, &phases)).collect();
    let window_ns = smoothing_window(run);
    for chart in &mut charts {
        if let ChartPlot::Lines(lines) = &mut chart.plot {
            lines.smoothing = match (chart.name.as_str(), lines.unit) {
                (_, FigureUnit::BitsPerSecond) => Some(Smoothing { window_ns, is_median: false }),
                ("latency" | "rtt", _) => Some(Smoothing { window_ns, is_median: true }),
                _ => None,
            };
        }
    }
    charts
}

/// Phases of `run`.
pub(super) fn phases(run: &RunDocument) -> Vec<ChartPhase> {
    run.phases.iter().map(phase).collect()
}

/// Averaging time of the rates of `run`: 1 s or five round trips, and at most a sixteenth of the run.
pub(super) fn smoothing_window(run: &RunDocument) -> u64 {
    const SECOND: u64 = 1_000_000_000;
    let of = |panel: ChartPanel| {
        let series =
            run.series.iter().filter(move |series| series.panel == panel && series.unit == FigureUnit::Nanoseconds);
        series.filter_map(|series| extent(&series.values)).map(|extent| extent.mean).fold(0.0, f64::max)
    };
    let round_trip = if of(ChartPanel::Rtt) > 0.0 { of(ChartPanel::Rtt) } else { of(ChartPanel::Latency) };
    let last = run.series.iter().filter_map(|series| series.times_ns.last().copied()).max().unwrap_or(0);
    super::quantity::whole(5.0 * round_trip).max(SECOND).min(last / 16)
}

/// The charts of one panel: one for each unit that its series have, in practice one.
fn panel_charts<'a>(run: &'a RunDocument, kind: ChartPanel, phases: &[ChartPhase]) -> Vec<Chart<'a>> {
    let series: Vec<&SampleSeries> = run.series.iter().filter(|series| series.panel == kind).collect();
    let (name, _, usual) = panel_properties(kind);
    if kind == ChartPanel::Limits {
        return ribbons(&series, phases);
    }
    let mut units: Vec<FigureUnit> = Vec::new();
    for unit in series.iter().map(|series| series.unit) {
        if !units.contains(&unit) {
            units.push(unit);
        }
    }
    units
        .into_iter()
        .map(|unit| {
            let series: Vec<&SampleSeries> = series.iter().copied().filter(|series| series.unit == unit).collect();
            let name = if unit == usual { name.to_owned() } else { format!("{name}_{}", unit_suffix(unit)) };
            lines((name, panel_title(run, kind)), kind, unit, &series, phases)
        })
        .collect()
}

fn lines<'a>(
    (name, title): (String, &str),
    kind: ChartPanel,
    unit: FigureUnit,
    series: &[&'a SampleSeries],
    phases: &[ChartPhase],
) -> Chart<'a> {
    let mut all = if series.len() > MAX_SERIES { together(kind, series, phases) } else { Vec::new() };
    let whole = all.len();
    all.extend(series.iter().map(|series| borrowed(series)));
    let shown = if whole > 0 { whole } else { all.len() }.min(MAX_SERIES);
    let summary = summary(title, unit, &all);
    let plot = ChartPlot::Lines(LineChart { unit, series: all, shown, phases: phases.to_vec(), smoothing: None });
    Chart { name, title: title.to_owned(), summary, plot }
}

/// One ribbon for each direction: where there are several streams, the mean of their shares.
fn ribbons<'a>(series: &[&'a SampleSeries], phases: &[ChartPhase]) -> Vec<Chart<'a>> {
    let mut directions = Vec::new();
    for series in series {
        if !directions.contains(&series.direction) {
            directions.push(series.direction);
        }
    }
    let (name, title, _) = panel_properties(ChartPanel::Limits);
    directions
        .into_iter()
        .map(|flow| {
            let of_flow: Vec<&SampleSeries> =
                series.iter().copied().filter(|series| series.direction == flow).collect();
            let series = by_state(&of_flow);
            let suffix = flow.map(direction_label);
            let title = suffix.map_or_else(|| title.to_owned(), |suffix| format!("{title}, {suffix}"));
            Chart {
                name: suffix.map_or_else(|| name.to_owned(), |suffix| format!("{name}_{suffix}")),
                summary: summary(&title, FigureUnit::Share, &series),
                title,
                plot: ChartPlot::Ribbon(StackedShares { series, phases: phases.to_vec() }),
            }
        })
        .collect()
}

/// The series of each state; several streams of one state become their mean at each time.
pub(super) fn by_state<'a>(series: &[&'a SampleSeries]) -> Vec<TimeSeries<'a>> {
    let mut names: Vec<&str> = Vec::new();
    for series in series {
        if !names.contains(&series.name.as_str()) {
            names.push(&series.name);
        }
    }
    let of = |name: &str| series.iter().copied().filter(|series| series.name == name).collect::<Vec<_>>();
    names
        .into_iter()
        .map(|name| match of(name).as_slice() {
            [one] => TimeSeries { name: name.to_owned(), ..borrowed(one) },
            several => mean(name, several),
        })
        .collect()
}

/// Mean at the times of the first stream, from the nearest sample of each stream: streams are not sampled at once.
fn mean<'a>(name: &str, series: &[&SampleSeries]) -> TimeSeries<'a> {
    let all: Vec<TimeSeries<'_>> = series.iter().map(|series| borrowed(series)).collect();
    let times = all.first().map_or(&[][..], |first| &first.times_ns);
    let values = times.iter().map(|&time| {
        let readings: Vec<Option<f64>> = all.iter().map(|series| nearest(series, time)).collect();
        extent(&readings).map(|extent| extent.mean)
    });
    let values = values.collect();
    TimeSeries { name: name.to_owned(), times_ns: Cow::Owned(times.to_vec()), values: Cow::Owned(values) }
}

fn nearest(series: &TimeSeries<'_>, time: u64) -> Option<f64> {
    let after = series.times_ns.partition_point(|&other| other < time);
    let distance = |index: usize| series.times_ns.get(index).map(|other| other.abs_diff(time));
    let before = after.checked_sub(1);
    let closer = match (before.and_then(distance), distance(after)) {
        (Some(back), Some(forth)) if back < forth => before,
        (Some(_), None) => before,
        _ => Some(after),
    };
    series.values.get(closer?).copied().flatten()
}

pub(super) fn borrowed(series: &SampleSeries) -> TimeSeries<'_> {
    // A document from elsewhere may have arrays of two lengths; samples without a partner are not shown.
    let length = series.times_ns.len().min(series.values.len());
    let name = match series.direction.map(direction_label) {
        Some(direction) if !series.name.contains(direction) => format!("{} {direction}", series.name),
        _ => series.name.clone(),
    };
    TimeSeries {
        name,
        times_ns: Cow::Borrowed(&series.times_ns[..length]),
        values: Cow::Borrowed(&series.values[..length]),
    }
}

fn phase(span: &PhaseSpan) -> ChartPhase {
    ChartPhase { name: span.name.clone(), start_ns: span.start_ns, end_ns: span.end_ns }
}

/// `Round-trip time of probes: UDP best effort 18.1 ms to 960 ms, mean 210 ms; …`.
pub(super) fn summary(title: &str, unit: FigureUnit, series: &[TimeSeries<'_>]) -> String {
    const MAX_NAMED_SERIES: usize = 4;
    let mut parts: Vec<String> = series.iter().take(MAX_NAMED_SERIES).map(|series| range(unit, series)).collect();
    if series.len() > MAX_NAMED_SERIES {
        parts.push(format!("and {} more", series.len() - MAX_NAMED_SERIES));
    }
    format!("{title}: {}.", parts.join("; "))
}

fn range(unit: FigureUnit, series: &TimeSeries<'_>) -> String {
    let Some(extent) = extent(&series.values) else { return format!("{} without samples", series.name) };
    let shown = |value| Quantity::new(value, unit).display_text();
    format!("{} {} to {}, mean {}", series.name, shown(extent.min), shown(extent.max), shown(extent.mean))
}

/// Range, mean and number of samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ValueRange {
    pub(crate) min: f64,
    pub(crate) max: f64,
    pub(crate) mean: f64,
    pub(crate) count: u64,
}

/// Extent of the known samples; `None` when there are none.
pub(crate) fn extent(values: &[Option<f64>]) -> Option<ValueRange> {
    let mut extent: Option<ValueRange> = None;
    for value in values.iter().flatten().copied().filter(|value| value.is_finite()) {
        let so_far = extent.get_or_insert(ValueRange { min: value, max: value, mean: 0.0, count: 0 });
        so_far.min = so_far.min.min(value);
        so_far.max = so_far.max.max(value);
        so_far.count += 1;
        so_far.mean += (value - so_far.mean) / super::quantity::as_f64(so_far.count);
    }
    extent
}

const fn unit_suffix(unit: FigureUnit) -> &'static str {
    match unit {
        FigureUnit::BitsPerSecond => "rate",
        FigureUnit::Bytes => "bytes",
        FigureUnit::Nanoseconds => "time",
        FigureUnit::Share => "share",
        FigureUnit::Packets => "packets",
        FigureUnit::Segments => "segments",
        FigureUnit::RoundTripsPerMinute => "responsiveness",
        FigureUnit::PerSecond => "frequency",
        FigureUnit::One => "number",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(times_ns: &[u64], values: &[f64]) -> SampleSeries {
        SampleSeries {
            panel: ChartPanel::Limits,
            name: "network".to_owned(),
            direction: None,
            stream: None,
            unit: FigureUnit::Share,
            times_ns: times_ns.to_vec(),
            values: values.iter().copied().map(Some).collect(),
        }
    }

    #[test]
    fn streams_read_one_after_the_other_have_one_mean() {
        let (one, other) = (series(&[10, 20, 30], &[0.2, 0.4, 0.6]), series(&[11, 21], &[0.4, 0.8]));
        let mean = mean("network", &[&one, &other]);
        assert_eq!(mean.times_ns.as_ref(), [10, 20, 30]);
        let values: Vec<f64> = mean.values.iter().flatten().copied().collect();
        for (value, expected) in values.iter().zip([0.3, 0.6, 0.7]) {
            assert!((value - expected).abs() < 1e-12, "{values:?}");
        }
    }

    #[test]
    fn a_document_of_two_lengths_is_cut_to_the_shorter() {
        let odd = SampleSeries { times_ns: vec![1, 2, 3], ..series(&[1], &[0.5]) };
        assert_eq!(borrowed(&odd).times_ns.len(), 1);
    }
}
