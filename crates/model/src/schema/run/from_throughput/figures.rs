//! The numbers that stand for a series of throughput tests.

use core::time::Duration;

use linerate_units::{BitRate, ByteCount, MonotonicTime, SegmentCount, StreamCount};

use crate::sample::IntervalReport;
use crate::schema::run::{Better, Figure, Unit};
use crate::statistics::{BLOCK, Bootstrap, Quantity, Sample, Statistic};
use crate::stream::Role;
use crate::summary::Distribution;
use crate::throughput::{Flow, ThroughputResult, ThroughputRun};

/// Of all resampling: a result can be repeated from its readings.
const SEED: u64 = 6349;

/// From this many readings on, the smallest and the largest hold the true median between them in at least 95 of 100
/// cases, whatever the distribution: all fall on one side of it with probability 2^(1 − n) (David and Nagaraja, Order
/// Statistics, §7.1).
const ENOUGH_FOR_MEDIAN: u64 = 6;

/// In the order in which a reader wants them: rates, round trips, retransmissions.
pub(super) fn of(result: &ThroughputResult) -> Vec<Figure> {
    let runs: Vec<Named<'_>> = result.runs.iter().filter(|run| run.start.is_some()).map(Named::of).collect();
    let mut figures: Vec<Figure> = runs.iter().map(Named::goodput).collect();
    figures.extend(idle_rtt(result.idle_rtt.as_ref()));
    figures.extend(runs.iter().map(Named::loaded_rtt));
    figures.extend(runs.iter().map(Named::retransmissions));
    figures
}

/// A run and how its figures are called.
struct Named<'a> {
    run: &'a ThroughputRun,
    name: &'static str,
    title: String,
}

/// An interval of confidence and the independent readings behind it.
#[derive(Clone, Copy, Default)]
struct Confidence {
    ends: Option<(f64, f64)>,
    count: Option<u64>,
}

impl<'a> Named<'a> {
    fn of(run: &'a ThroughputRun) -> Self {
        let single = run.streams == StreamCount::new(1);
        let (name, direction) = match (run.flow, single) {
            (Flow::Up, true) => ("up", "up"),
            (Flow::Up, false) => ("up_parallel", "up"),
            (Flow::Down, true) => ("down", "down"),
            (Flow::Down, false) => ("down_parallel", "down"),
        };
        let streams = if single { "1 stream".to_owned() } else { format!("{} streams", run.streams) };
        Self { run, name, title: format!("{direction}, {streams}") }
    }

    fn figure(&self, name: &str, title: &str, unit: Unit, better: Better, value: Option<f64>) -> Figure {
        Figure {
            name: format!("{name}_{}", self.name),
            title: format!("{title} {}", self.title),
            unit,
            value,
            low: None,
            high: None,
            count: None,
            better,
            note: None,
        }
    }

    fn goodput(&self) -> Figure {
        let measured = self.run.rate();
        let value = measured.map(|measured| measured.rate.bits_per_second());
        let mut figure = self.figure("goodput", "Goodput", Unit::BitsPerSecond, Better::Higher, value);
        let role = measured.map(|measured| measured.at);
        figure = with(figure, confidence(&self.rates(), Statistic::Mean));
        figure.note = match (value, role) {
            (None, _) => Some("nothing was counted".to_owned()),
            (_, Some(Role::Sender)) => Some("by the sender's counters: the receiver did not tell".to_owned()),
            _ => None,
        };
        figure
    }

    fn loaded_rtt(&self) -> Figure {
        let value = self.run.loaded_rtt().map(|rtt| rtt.median.number());
        let mut figure = self.figure("rtt_loaded", "Round trip under load", Unit::Nanoseconds, Better::Lower, value);
        if value.is_none() {
            figure.note = Some("only the sender's kernel knows, and the server is no linerate".to_owned());
        }
        let medians = self.readings(|interval| {
            let mut medians: Vec<Duration> = interval
                .streams
                .iter()
                .filter_map(|stream| stream.tcp.as_ref()?.rtt_samples.as_ref().map(|samples| samples.median))
                .collect();
            medians.sort_unstable();
            medians.get(medians.len().checked_sub(1)? / 2).copied()
        });
        with(figure, confidence(&medians, Statistic::Median))
    }

    fn retransmissions(&self) -> Figure {
        let value = self.run.retransmits().map(SegmentCount::as_f64);
        let mut figure = self.figure("retransmissions", "Sent again", Unit::Segments, Better::Lower, value);
        if value.is_none() {
            figure.note = Some("the server did not tell".to_owned());
        }
        let counts = self.readings(|interval| {
            let known: Vec<f64> = interval
                .streams
                .iter()
                .filter_map(|stream| stream.tcp.as_ref()?.retransmits)
                .map(SegmentCount::as_f64)
                .collect();
            (!known.is_empty()).then(|| known.iter().sum::<f64>())
        });
        // The sum is the mean times their number.
        let number = u32::try_from(counts.0.len()).map_or(f64::from(u32::MAX), f64::from);
        let mean = confidence(&counts, Statistic::Mean);
        with(figure, Confidence { ends: mean.ends.map(|(low, high)| (low * number, high * number)), ..mean })
    }

    /// The rate of each interval, all streams together, from the end that receives where that is known.
    fn rates(&self) -> Readings<BitRate> {
        let rate = |interval: &IntervalReport| {
            let bytes = interval.streams.iter().map(|stream| stream.bytes).sum::<ByteCount>();
            Some(bytes.rate_over(interval.length()))
        };
        let far = self.run.report.far.as_ref().map(|far| &far.intervals[..]);
        match (self.run.flow, far) {
            (Flow::Up, Some(far)) if !far.is_empty() => Readings::of(far, rate),
            _ => Readings::of(&self.run.intervals, rate),
        }
    }

    /// One reading for each interval of the end that sends.
    fn readings<Q: Quantity>(&self, read: impl Fn(&IntervalReport) -> Option<Q>) -> Readings<Q> {
        let far = self.run.report.far.as_ref().map_or(&[][..], |far| &far.intervals);
        Readings::of(if self.run.flow == Flow::Up { &self.run.intervals } else { far }, read)
    }
}

/// Readings of whole intervals, with the middle of each interval.
struct Readings<Q>(Vec<(MonotonicTime, Q)>);

impl<Q: Quantity> Readings<Q> {
    /// Of the intervals that count. What is left at the end of a test, less than half an interval, is no reading.
    fn of(intervals: &[IntervalReport], read: impl Fn(&IntervalReport) -> Option<Q>) -> Self {
        let counted = || intervals.iter().filter(|interval| !interval.omitted);
        let mut lengths: Vec<Duration> = counted().map(IntervalReport::length).collect();
        lengths.sort_unstable();
        let usual = lengths.get(lengths.len() / 2).copied().unwrap_or_default();
        let middle = |interval: &IntervalReport| MonotonicTime::default() + interval.start + interval.length() / 2;
        let whole = counted().filter(|interval| interval.length() * 2 > usual);
        Self(whole.filter_map(|interval| Some((middle(interval), read(interval)?))).collect())
    }
}

fn confidence<Q: Quantity>(readings: &Readings<Q>, statistic: Statistic) -> Confidence {
    let sample = Sample::timed(&readings.0, BLOCK);
    let estimate = sample.estimate(statistic, &Bootstrap::with_seed(SEED));
    let interval = estimate.and_then(|estimate| estimate.interval);
    Confidence {
        ends: interval.map(|interval| (interval.low.number(), interval.high.number())),
        count: u64::try_from(sample.blocks()).ok().filter(|blocks| *blocks > 0),
    }
}

/// The figure with its interval. The value is of the whole test, the interval of its parts: where they differ by the last
/// few readings, the interval reaches out to the value.
fn with(mut figure: Figure, confidence: Confidence) -> Figure {
    let Some(value) = figure.value else { return figure };
    if let Some((low, high)) = confidence.ends {
        figure.low = Some(low.min(value));
        figure.high = Some(high.max(value));
    }
    figure.count = confidence.count;
    figure
}

fn idle_rtt(idle: Option<&Distribution>) -> Option<Figure> {
    let idle = idle?;
    let enough = idle.count >= ENOUGH_FOR_MEDIAN;
    Some(Figure {
        name: "rtt_idle_median".to_owned(),
        title: "Round trip, idle".to_owned(),
        unit: Unit::Nanoseconds,
        value: Some(idle.median.number()),
        low: enough.then(|| idle.min.number()),
        high: enough.then(|| idle.max.number()),
        count: Some(idle.count),
        better: Better::Lower,
        note: Some("of the handshakes".to_owned()),
    })
}
