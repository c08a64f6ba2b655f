//! What the pictures of a report hold.

use std::borrow::Cow;

use linerate_model::schema::run::{Panel, PhaseSpan, RunDocument, Series, Unit};

use super::together::together;
use super::{Quantity, direction, panel};

/// A picture.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart<'a> {
    /// Stable name in snake case, unique within the presentation.
    pub name: String,
    /// What a person reads.
    pub title: String,
    /// What the picture says, in a sentence, for those who do not see it.
    pub summary: String,
    /// What is drawn.
    pub plot: Plot<'a>,
}

/// The kinds of pictures.
#[derive(Clone, Debug, PartialEq)]
pub enum Plot<'a> {
    /// Quantities over time.
    Lines(Lines<'a>),
    /// Shares of time over time, stacked.
    Ribbon(Ribbon<'a>),
    /// Cumulative distributions.
    Distribution(Distribution),
    /// Single values side by side.
    Bars(Bars),
}

/// Quantities over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Lines<'a> {
    /// Unit of all values.
    pub unit: Unit,
    /// In the order of the legend.
    pub series: Vec<TimeSeries<'a>>,
    /// How many of them are seen to begin with, from the first; the others when they are asked for.
    pub shown: usize,
    /// What was done when.
    pub phases: Vec<Phase>,
}

/// Readings of one quantity. Times are nanoseconds since the run began, ascending.
#[derive(Clone, Debug, PartialEq)]
pub struct TimeSeries<'a> {
    /// For the legend.
    pub name: String,
    /// Nanoseconds since the run began, ascending.
    pub times_ns: Cow<'a, [u64]>,
    /// One for each time; `None` where nothing could be read.
    pub values: Cow<'a, [Option<f64>]>,
}

/// A phase of the measurement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phase {
    /// Its name.
    pub name: String,
    /// Nanoseconds since the run began.
    pub start_ns: u64,
    /// Nanoseconds since the run began.
    pub end_ns: u64,
}

/// Shares of time, stacked: at each time they add up to at most 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Ribbon<'a> {
    /// From the bottom up.
    pub series: Vec<TimeSeries<'a>>,
    /// What was done when.
    pub phases: Vec<Phase>,
}

/// Cumulative distributions of one quantity.
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution {
    /// Unit of the quantity.
    pub unit: Unit,
    /// In the order of the legend.
    pub curves: Vec<Curve>,
}

/// One cumulative distribution.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// For the legend.
    pub name: String,
    /// Values and the share of readings at or below them, ascending.
    pub points: Vec<(f64, f64)>,
    /// Its colour, as a number from 0: curves that belong together have the same.
    pub colour: usize,
    /// Whether its line is broken: of two curves that belong together, the earlier one.
    pub dashed: bool,
}

/// Single values side by side.
#[derive(Clone, Debug, PartialEq)]
pub struct Bars {
    /// Unit of all values.
    pub unit: Unit,
    /// What each bar of a row is, for example `before` and `after`.
    pub legend: Vec<String>,
    /// From the top down.
    pub rows: Vec<BarsRow>,
}

/// Bars that belong together.
#[derive(Clone, Debug, PartialEq)]
pub struct BarsRow {
    /// What they are of.
    pub label: String,
    /// One for each entry of the legend: the value and its 95 % confidence interval.
    pub bars: Vec<(Option<f64>, Option<[f64; 2]>)>,
}

/// The charts of all panels that `run` has readings for, in the order of the report.
pub(super) fn of_series(run: &RunDocument) -> Vec<Chart<'_>> {
    const ORDER: [Panel; 9] = [
        Panel::Throughput,
        Panel::Latency,
        Panel::Rtt,
        Panel::CongestionWindow,
        Panel::Retransmissions,
        Panel::Limits,
        Panel::Queue,
        Panel::OneWayDelay,
        Panel::Loss,
    ];
    let phases: Vec<Phase> = run.phases.iter().map(phase).collect();
    ORDER.iter().flat_map(|&panel| of_panel(run, panel, &phases)).collect()
}

/// The charts of one panel: one for each unit that its series have, in practice one.
fn of_panel<'a>(run: &'a RunDocument, kind: Panel, phases: &[Phase]) -> Vec<Chart<'a>> {
    let series: Vec<&Series> = run.series.iter().filter(|series| series.panel == kind).collect();
    let (name, _, usual) = panel(kind);
    if kind == Panel::Limits {
        return ribbons(&series, phases);
    }
    let mut units: Vec<Unit> = Vec::new();
    for unit in series.iter().map(|series| series.unit) {
        if !units.contains(&unit) {
            units.push(unit);
        }
    }
    units
        .into_iter()
        .map(|unit| {
            let series: Vec<&Series> = series.iter().copied().filter(|series| series.unit == unit).collect();
            let name = if unit == usual { name.to_owned() } else { format!("{name}_{}", unit_word(unit)) };
            lines(name, kind, unit, &series, phases)
        })
        .collect()
}

fn lines<'a>(name: String, kind: Panel, unit: Unit, series: &[&'a Series], phases: &[Phase]) -> Chart<'a> {
    // More lines than there are colours cannot be told apart.
    const READABLE: usize = 8;
    let (_, title, _) = panel(kind);
    let mut all = if series.len() > READABLE { together(kind, series, phases) } else { Vec::new() };
    let whole = all.len();
    all.extend(series.iter().map(|series| borrowed(series)));
    let shown = if whole > 0 { whole } else { all.len() };
    let summary = summary(title, unit, &all);
    let plot = Plot::Lines(Lines { unit, series: all, shown, phases: phases.to_vec() });
    Chart { name, title: title.to_owned(), summary, plot }
}

/// One ribbon for each direction: where there are several streams, the mean of their shares.
fn ribbons<'a>(series: &[&'a Series], phases: &[Phase]) -> Vec<Chart<'a>> {
    let mut directions = Vec::new();
    for series in series {
        if !directions.contains(&series.direction) {
            directions.push(series.direction);
        }
    }
    let (name, title, _) = panel(Panel::Limits);
    directions
        .into_iter()
        .map(|flow| {
            let of_flow: Vec<&Series> = series.iter().copied().filter(|series| series.direction == flow).collect();
            let series = by_state(&of_flow);
            let suffix = flow.map(direction);
            let title = suffix.map_or_else(|| title.to_owned(), |suffix| format!("{title}, {suffix}"));
            Chart {
                name: suffix.map_or_else(|| name.to_owned(), |suffix| format!("{name}_{suffix}")),
                summary: summary(&title, Unit::Share, &series),
                title,
                plot: Plot::Ribbon(Ribbon { series, phases: phases.to_vec() }),
            }
        })
        .collect()
}

/// The series of each state; several streams of one state become their mean at each time.
fn by_state<'a>(series: &[&'a Series]) -> Vec<TimeSeries<'a>> {
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

/// At the times of the first stream: of each stream the reading that is nearest, as streams are not read at once.
fn mean<'a>(name: &str, series: &[&Series]) -> TimeSeries<'a> {
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

fn borrowed(series: &Series) -> TimeSeries<'_> {
    // A document from elsewhere may be of two lengths; what has no partner is not shown.
    let length = series.times_ns.len().min(series.values.len());
    let name = match series.direction.map(direction) {
        Some(direction) if !series.name.contains(direction) => format!("{} {direction}", series.name),
        _ => series.name.clone(),
    };
    TimeSeries {
        name,
        times_ns: Cow::Borrowed(&series.times_ns[..length]),
        values: Cow::Borrowed(&series.values[..length]),
    }
}

fn phase(span: &PhaseSpan) -> Phase {
    Phase { name: span.name.clone(), start_ns: span.start_ns, end_ns: span.end_ns }
}

/// `Round-trip time of probes: UDP best effort 18.1 ms to 960 ms, mean 210 ms; …`.
fn summary(title: &str, unit: Unit, series: &[TimeSeries<'_>]) -> String {
    const NAMED: usize = 4;
    let mut parts: Vec<String> = series.iter().take(NAMED).map(|series| range(unit, series)).collect();
    if series.len() > NAMED {
        parts.push(format!("and {} more", series.len() - NAMED));
    }
    format!("{title}: {}.", parts.join("; "))
}

fn range(unit: Unit, series: &TimeSeries<'_>) -> String {
    let Some(extent) = extent(&series.values) else { return format!("{} without readings", series.name) };
    let shown = |value| Quantity::new(value, unit).shown();
    format!("{} {} to {}, mean {}", series.name, shown(extent.min), shown(extent.max), shown(extent.mean))
}

/// What readings span.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Extent {
    pub(crate) min: f64,
    pub(crate) max: f64,
    pub(crate) mean: f64,
    pub(crate) count: u64,
}

/// Of the readings that are there; `None` when none is.
pub(crate) fn extent(values: &[Option<f64>]) -> Option<Extent> {
    let mut extent: Option<Extent> = None;
    for value in values.iter().flatten().copied().filter(|value| value.is_finite()) {
        let so_far = extent.get_or_insert(Extent { min: value, max: value, mean: 0.0, count: 0 });
        so_far.min = so_far.min.min(value);
        so_far.max = so_far.max.max(value);
        so_far.count += 1;
        so_far.mean += (value - so_far.mean) / super::quantity::real(so_far.count);
    }
    extent
}

const fn unit_word(unit: Unit) -> &'static str {
    match unit {
        Unit::BitsPerSecond => "rate",
        Unit::Bytes => "bytes",
        Unit::Nanoseconds => "time",
        Unit::Share => "share",
        Unit::Packets => "packets",
        Unit::Segments => "segments",
        Unit::RoundTripsPerMinute => "responsiveness",
        Unit::One => "number",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(times_ns: &[u64], values: &[f64]) -> Series {
        Series {
            panel: Panel::Limits,
            name: "network".to_owned(),
            direction: None,
            stream: None,
            unit: Unit::Share,
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
        let odd = Series { times_ns: vec![1, 2, 3], ..series(&[1], &[0.5]) };
        assert_eq!(borrowed(&odd).times_ns.len(), 1);
    }
}
