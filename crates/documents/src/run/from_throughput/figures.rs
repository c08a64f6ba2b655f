//! Figures of a series of throughput tests.

use core::time::Duration;
use linerate_model::direction::Direction;

use linerate_units::{BitRate, ByteCount, MonotonicTime, SegmentCount, StreamCount};

use crate::run::{FigureUnit, ImprovementDirection, RunFigure};
use linerate_analysis::statistics::{
    BlockSample, BootstrapSettings, DEFAULT_BLOCK, SampleStatistic, StatisticalQuantity,
};
use linerate_model::quic::{QuicHandshakeKind, QuicResult, QuicRun};
use linerate_model::sample::IntervalReport;
use linerate_model::stream::StreamRole;
use linerate_model::summary::DurationDistribution;
use linerate_model::throughput::{ThroughputResult, ThroughputRun};

/// Seed of all resampling: a result can be reproduced from its samples.
const RESAMPLING_SEED: u64 = 6349;

/// Minimum number of samples for which the smallest and the largest contain the true median in at least 95 of 100
/// cases, whatever the distribution: all are on one side of it with probability 2^(1 − n) (David and Nagaraja, Order
/// Statistics, §7.1).
const MIN_MEDIAN_SAMPLES: u64 = 6;

/// Figures in display order: rates, round trips, retransmissions.
pub(super) fn of(result: &ThroughputResult) -> Vec<RunFigure> {
    let runs: Vec<FigureNames<'_>> =
        result.runs.iter().filter(|run| run.start.is_some()).map(FigureNames::of).collect();
    let mut figures: Vec<RunFigure> = runs.iter().map(FigureNames::goodput).collect();
    figures.extend(idle_rtt(result.idle_rtt.as_ref()));
    figures.extend(runs.iter().map(FigureNames::loaded_rtt));
    figures.extend(runs.iter().map(FigureNames::retransmissions));
    figures.extend(result.quic.iter().flat_map(of_quic));
    figures
}

/// Figures over QUIC: the median time of the full handshakes, and the goodput of each transfer.
fn of_quic(quic: &QuicResult) -> Vec<RunFigure> {
    let full = quic.handshakes.iter().filter(|handshake| handshake.kind == QuicHandshakeKind::Full);
    let mut times: Vec<Duration> = full.map(|handshake| handshake.complete).collect();
    let handshake = DurationDistribution::of(&mut times).map(|times| RunFigure {
        name: "quic_handshake_median".to_owned(),
        title: "QUIC handshake".to_owned(),
        unit: FigureUnit::Nanoseconds,
        value: Some(times.median.number()),
        low: None,
        high: None,
        count: Some(times.count),
        better: ImprovementDirection::Lower,
        note: None,
    });
    handshake.into_iter().chain(quic.runs.iter().map(quic_goodput)).collect()
}

fn quic_goodput(run: &QuicRun) -> RunFigure {
    let (suffix, streams) = match run.streams {
        1 => ("", "1 stream".to_owned()),
        number => ("_parallel", format!("{number} streams")),
    };
    let direction = run.direction.name();
    RunFigure {
        name: format!("goodput_quic_{direction}{suffix}"),
        title: format!("Goodput over QUIC {direction}, {streams}"),
        unit: FigureUnit::BitsPerSecond,
        value: run.rate().map(BitRate::bits_per_second),
        low: None,
        high: None,
        count: None,
        better: ImprovementDirection::Higher,
        note: run.rate().is_none().then(|| "nothing was counted".to_owned()),
    }
}

/// Run with the names of its figures.
struct FigureNames<'a> {
    run: &'a ThroughputRun,
    name: &'static str,
    title: String,
}

/// Confidence interval and number of independent samples.
#[derive(Clone, Copy, Default)]
struct FigureInterval {
    ends: Option<(f64, f64)>,
    count: Option<u64>,
}

impl<'a> FigureNames<'a> {
    fn of(run: &'a ThroughputRun) -> Self {
        let single = run.streams == StreamCount::new(1);
        let (name, direction) = match (run.direction, single) {
            (Direction::Up, true) => ("up", "up"),
            (Direction::Up, false) => ("up_parallel", "up"),
            (Direction::Down, true) => ("down", "down"),
            (Direction::Down, false) => ("down_parallel", "down"),
        };
        let streams = if single { "1 stream".to_owned() } else { format!("{} streams", run.streams) };
        Self { run, name, title: format!("{direction}, {streams}") }
    }

    fn figure(
        &self,
        name: &str,
        title: &str,
        unit: FigureUnit,
        better: ImprovementDirection,
        value: Option<f64>,
    ) -> RunFigure {
        RunFigure {
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

    fn goodput(&self) -> RunFigure {
        let measured = self.run.rate();
        let value = measured.map(|measured| measured.rate.bits_per_second());
        let mut figure =
            self.figure("goodput", "Goodput", FigureUnit::BitsPerSecond, ImprovementDirection::Higher, value);
        let role = measured.map(|measured| measured.at);
        figure = with_interval(figure, confidence_interval(&self.rates(), SampleStatistic::Mean));
        figure.note = match (value, role) {
            (None, _) => Some("nothing was counted".to_owned()),
            (_, Some(StreamRole::Sender)) => Some("by the sender's counters: the receiver did not report".to_owned()),
            _ => None,
        };
        figure
    }

    fn loaded_rtt(&self) -> RunFigure {
        let value = self.run.loaded_rtt().map(|rtt| rtt.median.number());
        let mut figure = self.figure(
            "rtt_loaded",
            "Round trip under load",
            FigureUnit::Nanoseconds,
            ImprovementDirection::Lower,
            value,
        );
        if value.is_none() {
            figure.note = Some("known only to the sender's kernel, and the server does not run linerate".to_owned());
        }
        let medians = self.samples(|interval| {
            let mut medians: Vec<Duration> = interval
                .streams
                .iter()
                .filter_map(|stream| stream.tcp.as_ref()?.rtt_samples.as_ref().map(|samples| samples.median))
                .collect();
            medians.sort_unstable();
            medians.get(medians.len().checked_sub(1)? / 2).copied()
        });
        with_interval(figure, confidence_interval(&medians, SampleStatistic::Median))
    }

    fn retransmissions(&self) -> RunFigure {
        let value = self.run.retransmits().map(SegmentCount::as_f64);
        let mut figure =
            self.figure("retransmissions", "Retransmissions", FigureUnit::Segments, ImprovementDirection::Lower, value);
        if value.is_none() {
            figure.note = Some("the server did not report them".to_owned());
        }
        let counts = self.samples(|interval| {
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
        let mean = confidence_interval(&counts, SampleStatistic::Mean);
        with_interval(
            figure,
            FigureInterval { ends: mean.ends.map(|(low, high)| (low * number, high * number)), ..mean },
        )
    }

    /// Rate of each interval, all streams together, from the receiving end where known.
    fn rates(&self) -> IntervalSamples<BitRate> {
        let rate = |interval: &IntervalReport| {
            let bytes = interval.streams.iter().map(|stream| stream.bytes).sum::<ByteCount>();
            Some(bytes.rate_over(interval.length()))
        };
        let far = self.run.report.far.as_ref().map(|far| &far.intervals[..]);
        match (self.run.direction, far) {
            (Direction::Up, Some(far)) if !far.is_empty() => IntervalSamples::of(far, rate),
            _ => IntervalSamples::of(&self.run.intervals, rate),
        }
    }

    /// One sample for each interval of the sending end.
    fn samples<Q: StatisticalQuantity>(&self, read: impl Fn(&IntervalReport) -> Option<Q>) -> IntervalSamples<Q> {
        let far = self.run.report.far.as_ref().map_or(&[][..], |far| &far.intervals);
        IntervalSamples::of(if self.run.direction == Direction::Up { &self.run.intervals } else { far }, read)
    }
}

/// Samples of whole intervals, with the midpoint of each interval.
struct IntervalSamples<Q>(Vec<(MonotonicTime, Q)>);

impl<Q: StatisticalQuantity> IntervalSamples<Q> {
    /// Samples of the counted intervals. A last interval below half the usual length is left out.
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

fn confidence_interval<Q: StatisticalQuantity>(
    readings: &IntervalSamples<Q>,
    statistic: SampleStatistic,
) -> FigureInterval {
    let sample = BlockSample::timed(&readings.0, DEFAULT_BLOCK);
    let estimate = sample.estimate(statistic, &BootstrapSettings::with_seed(RESAMPLING_SEED));
    let interval = estimate.and_then(|estimate| estimate.interval);
    FigureInterval {
        ends: interval.map(|interval| (interval.low.number(), interval.high.number())),
        count: u64::try_from(sample.blocks()).ok().filter(|blocks| *blocks > 0),
    }
}

/// Adds the interval to the figure. The value covers the whole test, the interval its parts: where they differ by the
/// last few samples, the interval is extended to the value.
fn with_interval(mut figure: RunFigure, confidence: FigureInterval) -> RunFigure {
    let Some(value) = figure.value else { return figure };
    if let Some((low, high)) = confidence.ends {
        figure.low = Some(low.min(value));
        figure.high = Some(high.max(value));
    }
    figure.count = confidence.count;
    figure
}

fn idle_rtt(idle: Option<&DurationDistribution>) -> Option<RunFigure> {
    let idle = idle?;
    let enough = idle.count >= MIN_MEDIAN_SAMPLES;
    Some(RunFigure {
        name: "rtt_idle_median".to_owned(),
        title: "Round trip, idle".to_owned(),
        unit: FigureUnit::Nanoseconds,
        value: Some(idle.median.number()),
        low: enough.then(|| idle.min.number()),
        high: enough.then(|| idle.max.number()),
        count: Some(idle.count),
        better: ImprovementDirection::Lower,
        note: Some("of the handshakes".to_owned()),
    })
}
