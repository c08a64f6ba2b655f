//! Samples of a series of throughput tests over time.

use core::time::Duration;
use linerate_model::direction::Direction;

use linerate_units::{ByteCount, CompactSort, Ratio, SegmentCount, WallTime};

use super::counting_since;
use crate::nanoseconds;
use crate::run::{ChartPanel, FigureUnit, SampleSeries};
use linerate_model::limit::LimitShares;
use linerate_model::sample::{IntervalReport, StreamInterval, TcpInterval};
use linerate_model::stream::StreamRole;
use linerate_model::throughput::{ThroughputResult, ThroughputRun};

/// Panel, unit, and value of a sending stream.
type SenderSeries = (ChartPanel, FigureUnit, fn(&TcpInterval) -> Option<f64>);

const SENDER_SERIES: [SenderSeries; 4] = [
    (ChartPanel::Rtt, FigureUnit::Nanoseconds, |tcp| {
        let median = tcp.rtt_samples.as_ref().map(|samples| samples.median);
        median.or(tcp.rtt).map(|time| time.as_secs_f64() * 1e9)
    }),
    (ChartPanel::CongestionWindow, FigureUnit::Bytes, |tcp| tcp.congestion_window.map(ByteCount::as_f64)),
    (ChartPanel::Retransmissions, FigureUnit::Segments, |tcp| tcp.retransmits.map(SegmentCount::as_f64)),
    (ChartPanel::Queue, FigureUnit::Bytes, |tcp| tcp.not_sent.map(ByteCount::as_f64)),
];

/// Name of a limit, and its share of an interval's time.
type LimitShareAccessor = (&'static str, fn(&LimitShares) -> Ratio);

const LIMITS: [LimitShareAccessor; 4] = [
    ("network", |shares| shares.network),
    ("receiver's window", |shares| shares.receive_window),
    ("send buffer", |shares| shares.send_buffer),
    ("application", |shares| shares.application),
];

/// All series, grouped by panel. Runs of one direction follow each other in one series, separated by a time without a
/// value.
pub(super) fn of(start: WallTime, result: &ThroughputResult) -> Vec<SampleSeries> {
    let mut all = AllSeries::default();
    for run in &result.runs {
        let Some(since) = counting_since(start, run) else { continue };
        let timed = RunTiming { since, omit: run.start.as_ref().map_or(Duration::ZERO, |start| start.parameters.omit) };
        add_rates(&mut all, timed, run);
        add_senders(&mut all, timed, run);
        all.end_run(run.direction);
    }
    all.sorted()
}

/// Position of a run's intervals in time.
#[derive(Clone, Copy)]
struct RunTiming {
    /// Start of counting, since the start of the series.
    since: Duration,
    omit: Duration,
}

impl RunTiming {
    /// End of an interval; those of the omitted part have their own zero.
    fn end(self, interval: &IntervalReport) -> u64 {
        let zero = if interval.omitted { self.since.saturating_sub(self.omit) } else { self.since };
        nanoseconds(zero + interval.end)
    }
}

/// Adds the rates of each stream and of all together, from the receiving end where known.
fn add_rates(all: &mut AllSeries, timed: RunTiming, run: &ThroughputRun) {
    let far = run.report.far.as_ref().map_or(&[][..], |far| &far.intervals);
    let received_there = run.direction == Direction::Up && !far.is_empty();
    for interval in if received_there { far } else { &run.intervals } {
        let (time, length) = (timed.end(interval), interval.length());
        if length.is_zero() {
            continue;
        }
        let rate = |bytes: ByteCount| Some(bytes.rate_over(length).bits_per_second());
        let key = |stream| SeriesKey {
            panel: ChartPanel::Throughput,
            direction: run.direction,
            what: SeriesSubject::Stream(stream),
        };
        if interval.streams.len() > 1 {
            let bytes = interval.streams.iter().map(|stream| stream.bytes).sum();
            all.push(SeriesKey { what: SeriesSubject::All, ..key(0) }, FigureUnit::BitsPerSecond, time, rate(bytes));
        }
        for (stream, number) in interval.streams.iter().zip(1..) {
            all.push(key(number), FigureUnit::BitsPerSecond, time, rate(stream.bytes));
        }
    }
}

/// Adds the kernel's values of each sending stream, and the limits over all streams.
fn add_senders(all: &mut AllSeries, timed: RunTiming, run: &ThroughputRun) {
    let far = run.report.far.as_ref().map_or(&[][..], |far| &far.intervals);
    let direction = run.direction;
    for interval in if run.direction == Direction::Up { &run.intervals } else { far } {
        let time = timed.end(interval);
        let senders = || interval.streams.iter().zip(1_u32..).filter_map(sender_interval);
        for (panel, unit, read) in SENDER_SERIES {
            for (tcp, number) in senders() {
                all.push(SeriesKey { panel, direction, what: SeriesSubject::Stream(number) }, unit, time, read(tcp));
            }
        }
        let shares: Vec<LimitShares> = senders().filter_map(|(tcp, _)| tcp.limits).collect();
        for (index, (_, share)) in LIMITS.iter().enumerate() {
            let key = SeriesKey { panel: ChartPanel::Limits, direction, what: SeriesSubject::Limit(index) };
            all.push(key, FigureUnit::Share, time, mean(&shares, *share));
        }
    }
}

fn sender_interval((stream, number): (&StreamInterval, u32)) -> Option<(&TcpInterval, u32)> {
    (stream.role == StreamRole::Sender).then_some(())?;
    Some((stream.tcp.as_ref()?, number))
}

fn mean(shares: &[LimitShares], share: fn(&LimitShares) -> Ratio) -> Option<f64> {
    let (sum, count) = shares.iter().fold((0.0, 0.0), |(sum, count), shares| (sum + share(shares).get(), count + 1.0));
    (count > 0.0).then(|| sum / count)
}

/// Key of a series.
#[derive(Clone, Copy, PartialEq)]
struct SeriesKey {
    panel: ChartPanel,
    direction: Direction,
    what: SeriesSubject,
}

#[derive(Clone, Copy, PartialEq)]
enum SeriesSubject {
    /// All streams together.
    All,
    /// Stream by its position, from 1.
    Stream(u32),
    /// Limit by its index in [`LIMITS`].
    Limit(usize),
}

#[derive(Default)]
struct AllSeries(Vec<(SeriesKey, SampleSeries)>);

impl AllSeries {
    fn push(&mut self, key: SeriesKey, unit: FigureUnit, time: u64, value: Option<f64>) {
        let index = self.0.iter().position(|(known, _)| *known == key).unwrap_or_else(|| {
            self.0.push((key, empty(key, unit)));
            self.0.len() - 1
        });
        let series = &mut self.0[index].1;
        // Times ascend, even if the clock was set between two runs.
        let time = series.times_ns.last().map_or(time, |last| time.max(last.saturating_add(1)));
        series.times_ns.push(time);
        series.values.push(value);
    }

    /// Adds a gap between the end of a run and the start of the next one.
    fn end_run(&mut self, direction: Direction) {
        for (_, series) in self.0.iter_mut().filter(|(key, _)| key.direction == direction) {
            if series.values.last().is_some_and(Option::is_some) {
                let last = series.times_ns.last().map_or(0, |last| last.saturating_add(1));
                series.times_ns.push(last);
                series.values.push(None);
            }
        }
    }

    /// Series with a value, in the order of the panels. The gap after the last run is dropped.
    fn sorted(self) -> Vec<SampleSeries> {
        const PANELS: [ChartPanel; 6] = [
            ChartPanel::Throughput,
            ChartPanel::Rtt,
            ChartPanel::CongestionWindow,
            ChartPanel::Retransmissions,
            ChartPanel::Limits,
            ChartPanel::Queue,
        ];
        let mut all: Vec<SampleSeries> = self.0.into_iter().map(|(_, series)| series).collect();
        all.retain(|series| series.values.iter().any(Option::is_some));
        for series in &mut all {
            while series.values.last().is_some_and(Option::is_none) {
                series.values.pop();
                series.times_ns.pop();
            }
        }
        let place = |series: &SampleSeries| PANELS.iter().position(|panel| *panel == series.panel);
        all.sort_compactly_by_key(place);
        all
    }
}

fn empty(key: SeriesKey, unit: FigureUnit) -> SampleSeries {
    let (name, stream) = match key.what {
        SeriesSubject::All => ("all streams".to_owned(), None),
        SeriesSubject::Stream(number) => (format!("stream {number}"), Some(number)),
        SeriesSubject::Limit(index) => {
            (LIMITS.get(index).map_or_else(String::new, |(name, _)| (*name).to_owned()), None)
        }
    };
    let direction = Some(key.direction);
    SampleSeries { panel: key.panel, name, direction, stream, unit, times_ns: Vec::new(), values: Vec::new() }
}
