//! Many connections as one line: what they carry, hold or need together.

use std::borrow::Cow;
use std::collections::BTreeMap;

use linerate_model::schema::run::{Panel, Series};
use linerate_model::schema::throughput::Direction;

use super::charts::{Phase, TimeSeries};
use super::direction;
use super::quantity::real;

/// A reading stands for at most so many usual distances: a sampler skips some on a busy machine.
const SKIPPED: u64 = 16;

/// What connections are together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whole {
    /// The sum of what each has at a time.
    Sum,
    /// The sum of what each counted meanwhile.
    Total,
    /// The mean.
    Mean,
}

impl Whole {
    /// `None` where single connections are not what a panel shows.
    const fn of(panel: Panel) -> Option<Self> {
        match panel {
            Panel::Throughput | Panel::CongestionWindow | Panel::Queue => Some(Self::Sum),
            Panel::Retransmissions => Some(Self::Total),
            Panel::Rtt => Some(Self::Mean),
            Panel::Latency | Panel::OneWayDelay | Panel::Limits | Panel::Loss => None,
        }
    }

    const fn word(self) -> &'static str {
        match self {
            Self::Sum | Self::Total => "together",
            Self::Mean => "mean",
        }
    }
}

/// One line for each direction in which `series` has several connections.
pub(super) fn together(panel: Panel, series: &[&Series], phases: &[Phase]) -> Vec<TimeSeries<'static>> {
    let Some(whole) = Whole::of(panel) else { return Vec::new() };
    let of = |wanted: Direction| {
        let single = |one: &&&Series| one.stream.is_some() && one.direction == Some(wanted);
        let connections: Vec<&Series> = series.iter().filter(single).copied().collect();
        (connections.len() > 1).then(|| {
            let (times, values) = line(whole, &connections, phases).into_iter().unzip();
            let name = format!("{} {}", whole.word(), direction(wanted));
            TimeSeries { name, times_ns: Cow::Owned(times), values: Cow::Owned(values) }
        })
    };
    [Direction::Down, Direction::Up].into_iter().filter_map(of).collect()
}

/// A part of the time.
#[derive(Debug, Default)]
struct Part {
    /// Readings, each times how long it held (or, of a total, its share of what was counted).
    sum: f64,
    /// How long all connections were read within it, in all.
    read: u64,
    /// The same of the connection that was looked at last, and its number.
    own: (usize, u64),
    /// The most that any one was.
    most: u64,
    /// When the last reading of it ended.
    end: u64,
}

/// Connections are not read at once, so each part of the time has what of each reading falls into it. A part belongs to
/// one phase, as the connections of the next one are others.
fn line(whole: Whole, series: &[&Series], phases: &[Phase]) -> Vec<(u64, Option<f64>)> {
    let width = series.iter().filter_map(|one| spacing(&one.times_ns)).max().unwrap_or(1).max(1);
    let mut parts = BTreeMap::<(u64, u64), Part>::new();
    for (number, one) in series.iter().enumerate() {
        let mut last = None;
        for (&time, value) in one.times_ns.iter().zip(&one.values) {
            let origin =
                phases.iter().filter(|phase| phase.start_ns < time).map(|phase| phase.start_ns).max().unwrap_or(0);
            // The first reading of a phase holds for the usual time, not for the pause before it.
            let begin = last.filter(|last| *last >= origin).unwrap_or_else(|| time.saturating_sub(width));
            let begin = begin.max(origin).max(time.saturating_sub(width.saturating_mul(SKIPPED)));
            last = Some(time);
            if let Some(value) = value {
                add(&mut parts, whole, width, origin, (begin, time), *value, number);
            }
        }
    }
    let mut line: Vec<(u64, Option<f64>)> = Vec::new();
    let mut next = None;
    for ((origin, index), part) in parts {
        // The edge of a phase, where hardly anything was read, says nothing of all connections.
        if part.most < width / 2 {
            continue;
        }
        if let Some(end) = line.last().map(|(end, _)| *end).filter(|_| next.is_some_and(|next| next != (origin, index)))
        {
            line.push((end.saturating_add(1), None));
        }
        next = Some((origin, index + 1));
        let value = match whole {
            Whole::Sum => part.sum / real(part.most),
            Whole::Total => part.sum,
            Whole::Mean => part.sum / real(part.read),
        };
        line.push((part.end, Some(value)));
    }
    line
}

/// Divides a reading among the parts of the time that it held in.
fn add(
    parts: &mut BTreeMap<(u64, u64), Part>,
    whole: Whole,
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
            Whole::Sum | Whole::Mean => value * real(length),
            Whole::Total => value * real(length) / real(end - begin),
        };
        part.read = part.read.saturating_add(length);
        part.own = (number, length.saturating_add(if part.own.0 == number { part.own.1 } else { 0 }));
        part.most = part.most.max(part.own.1);
        part.end = part.end.max(to);
        from = to;
    }
}

/// The usual distance of two readings: the median.
fn spacing(times: &[u64]) -> Option<u64> {
    let mut distances: Vec<u64> = times.windows(2).filter_map(|pair| pair[1].checked_sub(pair[0])).collect();
    let middle = distances.len() / 2;
    (!distances.is_empty()).then(|| *distances.select_nth_unstable(middle).1)
}

#[cfg(test)]
mod tests {
    use linerate_model::schema::run::Unit;

    use super::*;

    fn connection(panel: Panel, flow: Direction, number: u32, readings: &[(u64, f64)]) -> Series {
        Series {
            panel,
            name: format!("connection {number}"),
            direction: Some(flow),
            stream: Some(number),
            unit: Unit::One,
            times_ns: readings.iter().map(|(time, _)| *time).collect(),
            values: readings.iter().map(|(_, value)| Some(*value)).collect(),
        }
    }

    /// Two connections, of which the second is read a little after the first.
    fn values(panel: Panel) -> Vec<f64> {
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
        close(&values(Panel::Throughput), &[6.0; 3]);
        close(&values(Panel::Rtt), &[3.0; 3]);
        close(&values(Panel::Retransmissions), &[6.0; 3]);
    }

    #[test]
    fn phases_are_kept_apart() {
        let panel = Panel::Throughput;
        let early = connection(panel, Direction::Down, 1, &[(1000, 4.0), (2000, 4.0)]);
        let late = connection(panel, Direction::Down, 2, &[(6000, 5.0), (7000, 5.0)]);
        let phase = |start_ns, end_ns| Phase { name: "x".to_owned(), start_ns, end_ns };
        let lines = together(panel, &[&early, &late], &[phase(0, 2000), phase(5000, 7000)]);
        assert_eq!(lines[0].name, "together down");
        assert_eq!(lines[0].times_ns.as_ref(), [1000, 2000, 2001, 6000, 7000]);
        assert_eq!(lines[0].values.as_ref(), [Some(4.0), Some(4.0), None, Some(5.0), Some(5.0)]);
    }

    #[test]
    fn one_connection_is_itself() {
        let one = connection(Panel::Rtt, Direction::Up, 1, &[(1000, 4.0), (2000, 4.0)]);
        let other = connection(Panel::Rtt, Direction::Down, 2, &[(1000, 4.0), (2000, 4.0)]);
        assert_eq!(together(Panel::Rtt, &[&one, &other], &[]), []);
    }

    /// A document from elsewhere may have any times.
    #[test]
    fn odd_times_end() {
        let last = u64::MAX;
        let one = connection(Panel::Queue, Direction::Up, 1, &[(last, 1.0), (0, 1.0), (1, 1.0), (last, 1.0)]);
        let other = connection(Panel::Queue, Direction::Up, 2, &[(5, f64::NAN), (5, 1.0)]);
        let lines = together(Panel::Queue, &[&one, &other], &[]);
        assert!(lines[0].times_ns.len() <= 64, "{}", lines[0].times_ns.len());
    }
}
