//! Aggregates many connections into one series: their sum, total or mean.

use linerate_model::direction::Direction;
use std::borrow::Cow;
use std::collections::BTreeMap;

use linerate_analysis::statistics::ordered_percentile;
use linerate_documents::run::{ChartPanel, SampleSeries};
use linerate_units::Ratio;

use super::charts::{ChartPhase, TimeSeries};
use super::direction_label;
use super::quantity::as_f64;

/// Maximum duration of a sample, in median intervals: a sampler skips some on a busy machine.
const MAX_SAMPLE_INTERVALS: u64 = 16;

/// Aggregation of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Aggregation {
    /// Sum of the values at a time.
    Sum,
    /// Sum of the counts since the sample before.
    Total,
    /// Mean.
    Mean,
}

impl Aggregation {
    /// `None` for panels that do not show single connections.
    const fn of(panel: ChartPanel) -> Option<Self> {
        match panel {
            ChartPanel::Throughput | ChartPanel::CongestionWindow | ChartPanel::Queue => Some(Self::Sum),
            ChartPanel::Retransmissions => Some(Self::Total),
            ChartPanel::Rtt => Some(Self::Mean),
            ChartPanel::Latency | ChartPanel::OneWayDelay | ChartPanel::Limits | ChartPanel::Loss => None,
        }
    }

    const fn word(self) -> &'static str {
        match self {
            Self::Sum | Self::Total => "together",
            Self::Mean => "mean",
        }
    }
}

/// One series for each direction in which `series` has several connections.
pub(super) fn together(panel: ChartPanel, series: &[&SampleSeries], phases: &[ChartPhase]) -> Vec<TimeSeries<'static>> {
    let Some(whole) = Aggregation::of(panel) else { return Vec::new() };
    let of = |wanted: Direction| {
        let single = |one: &&&SampleSeries| one.stream.is_some() && one.direction == Some(wanted);
        let connections: Vec<&SampleSeries> = series.iter().filter(single).copied().collect();
        (connections.len() > 1).then(|| {
            let (times, values) = line(whole, &connections, phases).into_iter().unzip();
            let name = format!("{} {}", whole.word(), direction_label(wanted));
            TimeSeries { name, times_ns: Cow::Owned(times), values: Cow::Owned(values) }
        })
    };
    [Direction::Down, Direction::Up].into_iter().filter_map(of).collect()
}

/// A time slice.
#[derive(Debug, Default)]
struct TimeSlice {
    /// Sum of the samples, each times its duration (for a total: its share of the count).
    sum: f64,
    /// Sum of the time covered by samples of all connections.
    read: u64,
    /// Number of the latest connection, and the time covered by its samples.
    own: (usize, u64),
    /// Maximum time covered by samples of one connection.
    most: u64,
    /// End of the last sample within the slice.
    end: u64,
}

/// Divides the samples of all connections into time slices, as connections are not sampled at once. A slice belongs to
/// one phase, as the next phase has other connections.
fn line(whole: Aggregation, series: &[&SampleSeries], phases: &[ChartPhase]) -> Vec<(u64, Option<f64>)> {
    let width = series.iter().filter_map(|one| median_interval(&one.times_ns)).max().unwrap_or(1).max(1);
    let mut parts = BTreeMap::<(u64, u64), TimeSlice>::new();
    for (number, one) in series.iter().enumerate() {
        let mut last = None;
        for (&time, value) in one.times_ns.iter().zip(&one.values) {
            let origin =
                phases.iter().filter(|phase| phase.start_ns < time).map(|phase| phase.start_ns).max().unwrap_or(0);
            // The first sample of a phase covers the usual interval, not the pause before it.
            let begin = last.filter(|last| *last >= origin).unwrap_or_else(|| time.saturating_sub(width));
            let begin = begin.max(origin).max(time.saturating_sub(width.saturating_mul(MAX_SAMPLE_INTERVALS)));
            last = Some(time);
            if let Some(value) = value {
                add(&mut parts, whole, width, origin, (begin, time), *value, number);
            }
        }
    }
    let mut line: Vec<(u64, Option<f64>)> = Vec::new();
    let mut next = None;
    for ((origin, index), part) in parts {
        // The edge of a phase has too few samples to represent all connections.
        if part.most < width / 2 {
            continue;
        }
        if let Some(end) = line.last().map(|(end, _)| *end).filter(|_| next.is_some_and(|next| next != (origin, index)))
        {
            line.push((end.saturating_add(1), None));
        }
        next = Some((origin, index + 1));
        let value = match whole {
            Aggregation::Sum => part.sum / as_f64(part.most),
            Aggregation::Total => part.sum,
            Aggregation::Mean => part.sum / as_f64(part.read),
        };
        line.push((part.end, Some(value)));
    }
    line
}

/// Divides a sample among the time slices that it covers.
fn add(
    parts: &mut BTreeMap<(u64, u64), TimeSlice>,
    whole: Aggregation,
    width: u64,
    origin: u64,
    (begin, end): (u64, u64),
    value: f64,
    number: usize,
) {
    let mut from = begin;
    while from < end {
        let index = (from - origin) / width;
        let to = origin.saturating_add((index + 1).saturating_mul(width)).min(end);
        let part = parts.entry((origin, index)).or_default();
        let length = to - from;
        part.sum += match whole {
            Aggregation::Sum | Aggregation::Mean => value * as_f64(length),
            Aggregation::Total => value * as_f64(length) / as_f64(end - begin),
        };
        part.read = part.read.saturating_add(length);
        part.own = (number, length.saturating_add(if part.own.0 == number { part.own.1 } else { 0 }));
        part.most = part.most.max(part.own.1);
        part.end = part.end.max(to);
        from = to;
    }
}

/// Usual interval between samples: the median.
pub(crate) fn median_interval(times: &[u64]) -> Option<u64> {
    let distances = times.windows(2).filter_map(|pair| pair[1].checked_sub(pair[0]));
    ordered_percentile(distances, Ratio::from_percent(50.0)?)
}

#[cfg(test)]
mod tests {
    use linerate_documents::run::FigureUnit;

    use super::*;

    fn connection(panel: ChartPanel, flow: Direction, number: u32, readings: &[(u64, f64)]) -> SampleSeries {
        SampleSeries {
            panel,
            name: format!("connection {number}"),
            direction: Some(flow),
            stream: Some(number),
            unit: FigureUnit::One,
            times_ns: readings.iter().map(|(time, _)| *time).collect(),
            values: readings.iter().map(|(_, value)| Some(*value)).collect(),
        }
    }

    /// Two connections, of which the second is sampled a little after the first.
    fn values(panel: ChartPanel) -> Vec<f64> {
        let one = connection(panel, Direction::Up, 1, &[(1000, 4.0), (2000, 4.0), (3000, 4.0)]);
        let other = connection(panel, Direction::Up, 2, &[(1010, 2.0), (2010, 2.0), (3010, 2.0)]);
        let lines = together(panel, &[&one, &other], &[]);
        assert_eq!(lines.len(), 1);
        lines[0].values.iter().copied().map(|value| value.expect("no gap")).collect()
    }

    fn close(found: &[f64], expected: &[f64]) {
        let is_close = |(one, other): (&f64, &f64)| (one - other).abs() < 0.05;
        assert!(found.len() == expected.len() && found.iter().zip(expected).all(is_close), "{found:?}");
    }

    #[test]
    fn rates_add_up_and_times_have_a_mean() {
        close(&values(ChartPanel::Throughput), &[6.0; 3]);
        close(&values(ChartPanel::Rtt), &[3.0; 3]);
        close(&values(ChartPanel::Retransmissions), &[6.0; 3]);
    }

    #[test]
    fn phases_are_kept_apart() {
        let panel = ChartPanel::Throughput;
        let early = connection(panel, Direction::Down, 1, &[(1000, 4.0), (2000, 4.0)]);
        let late = connection(panel, Direction::Down, 2, &[(6000, 5.0), (7000, 5.0)]);
        let phase = |start_ns, end_ns| ChartPhase { name: "x".to_owned(), start_ns, end_ns };
        let lines = together(panel, &[&early, &late], &[phase(0, 2000), phase(5000, 7000)]);
        assert_eq!(lines[0].name, "together down");
        assert_eq!(lines[0].times_ns.as_ref(), [1000, 2000, 2001, 6000, 7000]);
        assert_eq!(lines[0].values.as_ref(), [Some(4.0), Some(4.0), None, Some(5.0), Some(5.0)]);
    }

    #[test]
    fn one_connection_is_itself() {
        let one = connection(ChartPanel::Rtt, Direction::Up, 1, &[(1000, 4.0), (2000, 4.0)]);
        let other = connection(ChartPanel::Rtt, Direction::Down, 2, &[(1000, 4.0), (2000, 4.0)]);
        assert_eq!(together(ChartPanel::Rtt, &[&one, &other], &[]), []);
    }

    /// A document from elsewhere may have any times.
    #[test]
    fn odd_times_end() {
        let last = u64::MAX;
        let one = connection(ChartPanel::Queue, Direction::Up, 1, &[(last, 1.0), (0, 1.0), (1, 1.0), (last, 1.0)]);
        let other = connection(ChartPanel::Queue, Direction::Up, 2, &[(5, f64::NAN), (5, 1.0)]);
        let lines = together(ChartPanel::Queue, &[&one, &other], &[]);
        assert!(lines[0].times_ns.len() <= 64, "{}", lines[0].times_ns.len());
    }
}
