//! Readings of a series of throughput tests over time.

use core::time::Duration;

use linerate_units::{ByteCount, Ratio, SegmentCount, WallTime};

use super::counting_since;
use crate::limit::LimitShares;
use crate::sample::{IntervalReport, StreamInterval, TcpInterval};
use crate::schema::nanoseconds;
use crate::schema::run::{Panel, Series, Unit};
use crate::schema::throughput::Direction;
use crate::stream::Role;
use crate::throughput::{Flow, ThroughputResult, ThroughputRun};

/// A panel, its unit, and what is read of a stream that sends.
type OfSender = (Panel, Unit, fn(&TcpInterval) -> Option<f64>);

const OF_SENDERS: [OfSender; 4] = [
    (Panel::Rtt, Unit::Nanoseconds, |tcp| {
        let median = tcp.rtt_samples.as_ref().map(|samples| samples.median);
        median.or(tcp.rtt).map(|time| time.as_secs_f64() * 1e9)
    }),
    (Panel::CongestionWindow, Unit::Bytes, |tcp| tcp.congestion_window.map(ByteCount::as_f64)),
    (Panel::Retransmissions, Unit::Segments, |tcp| tcp.retransmits.map(SegmentCount::as_f64)),
    (Panel::Queue, Unit::Bytes, |tcp| tcp.not_sent.map(ByteCount::as_f64)),
];

/// A limit's name, and its share of an interval's time.
type ShareOf = (&'static str, fn(&LimitShares) -> Ratio);

const LIMITS: [ShareOf; 4] = [
    ("network", |shares| shares.network),
    ("receiver's window", |shares| shares.receive_window),
    ("send buffer", |shares| shares.send_buffer),
    ("application", |shares| shares.application),
];

/// All series, those of one panel beside each other. Runs of one direction follow each other in one series; between two
/// runs stands a time without a value.
pub(super) fn of(start: WallTime, result: &ThroughputResult) -> Vec<Series> {
    let mut all = AllSeries::default();
    for run in &result.runs {
        let Some(since) = counting_since(start, run) else { continue };
        let timed = Timed { since, omit: run.start.as_ref().map_or(Duration::ZERO, |start| start.parameters.omit) };
        add_rates(&mut all, timed, run);
        add_senders(&mut all, timed, run);
        all.end_run(run.flow.into());
    }
    all.sorted()
}

/// Where a run's intervals lie in time.
#[derive(Clone, Copy)]
struct Timed {
    /// When counting began, since the series began.
    since: Duration,
    omit: Duration,
}

impl Timed {
    /// The end of an interval; those of the omitted part have their own zero.
    fn end(self, interval: &IntervalReport) -> u64 {
        let zero = if interval.omitted { self.since.saturating_sub(self.omit) } else { self.since };
        nanoseconds(zero + interval.end)
    }
}

/// The rates of each stream and of all together, from the end that receives where that is known.
fn add_rates(all: &mut AllSeries, timed: Timed, run: &ThroughputRun) {
    let far = run.report.far.as_ref().map_or(&[][..], |far| &far.intervals);
    let received_there = run.flow == Flow::Up && !far.is_empty();
    for interval in if received_there { far } else { &run.intervals } {
        let (time, length) = (timed.end(interval), interval.length());
        if length.is_zero() {
            continue;
        }
        let rate = |bytes: ByteCount| Some(bytes.rate_over(length).bits_per_second());
        let key = |stream| Key { panel: Panel::Throughput, direction: run.flow.into(), what: What::Stream(stream) };
        if interval.streams.len() > 1 {
            let bytes = interval.streams.iter().map(|stream| stream.bytes).sum();
            all.push(Key { what: What::All, ..key(0) }, Unit::BitsPerSecond, time, rate(bytes));
        }
        for (stream, number) in interval.streams.iter().zip(1..) {
            all.push(key(number), Unit::BitsPerSecond, time, rate(stream.bytes));
        }
    }
}

/// What the sender's kernel says of each stream, and the limits over all streams.
fn add_senders(all: &mut AllSeries, timed: Timed, run: &ThroughputRun) {
    let far = run.report.far.as_ref().map_or(&[][..], |far| &far.intervals);
    let direction = run.flow.into();
    for interval in if run.flow == Flow::Up { &run.intervals } else { far } {
        let time = timed.end(interval);
        let senders = || interval.streams.iter().zip(1_u32..).filter_map(of_sender);
        for (panel, unit, read) in OF_SENDERS {
            for (tcp, number) in senders() {
                all.push(Key { panel, direction, what: What::Stream(number) }, unit, time, read(tcp));
            }
        }
        let shares: Vec<LimitShares> = senders().filter_map(|(tcp, _)| tcp.limits).collect();
        for (index, (_, share)) in LIMITS.iter().enumerate() {
            let key = Key { panel: Panel::Limits, direction, what: What::Limit(index) };
            all.push(key, Unit::Share, time, mean(&shares, *share));
        }
    }
}

fn of_sender((stream, number): (&StreamInterval, u32)) -> Option<(&TcpInterval, u32)> {
    (stream.role == Role::Sender).then_some(())?;
    Some((stream.tcp.as_ref()?, number))
}

fn mean(shares: &[LimitShares], share: fn(&LimitShares) -> Ratio) -> Option<f64> {
    let (sum, count) = shares.iter().fold((0.0, 0.0), |(sum, count), shares| (sum + share(shares).get(), count + 1.0));
    (count > 0.0).then(|| sum / count)
}

/// Which series.
#[derive(Clone, Copy, PartialEq)]
struct Key {
    panel: Panel,
    direction: Direction,
    what: What,
}

#[derive(Clone, Copy, PartialEq)]
enum What {
    /// All streams together.
    All,
    /// A stream, by its place from 1.
    Stream(u32),
    /// One of [`LIMITS`].
    Limit(usize),
}

#[derive(Default)]
struct AllSeries(Vec<(Key, Series)>);

impl AllSeries {
    fn push(&mut self, key: Key, unit: Unit, time: u64, value: Option<f64>) {
        let index = self.0.iter().position(|(known, _)| *known == key).unwrap_or_else(|| {
            self.0.push((key, empty(key, unit)));
            self.0.len() - 1
        });
        let series = &mut self.0[index].1;
        // Times ascend, whatever a clock that was set did between two runs.
        let time = series.times_ns.last().map_or(time, |last| time.max(last.saturating_add(1)));
        series.times_ns.push(time);
        series.values.push(value);
    }

    /// Nothing is drawn between the end of a run and the start of the next one.
    fn end_run(&mut self, direction: Direction) {
        for (_, series) in self.0.iter_mut().filter(|(key, _)| key.direction == direction) {
            if series.values.last().is_some_and(Option::is_some) {
                let last = series.times_ns.last().map_or(0, |last| last.saturating_add(1));
                series.times_ns.push(last);
                series.values.push(None);
            }
        }
    }

    /// Those with a value, in the order of the panels. The gap after the last run is not needed.
    fn sorted(self) -> Vec<Series> {
        const PANELS: [Panel; 6] = [
            Panel::Throughput,
            Panel::Rtt,
            Panel::CongestionWindow,
            Panel::Retransmissions,
            Panel::Limits,
            Panel::Queue,
        ];
        let mut all: Vec<Series> = self.0.into_iter().map(|(_, series)| series).collect();
        all.retain(|series| series.values.iter().any(Option::is_some));
        for series in &mut all {
            while series.values.last().is_some_and(Option::is_none) {
                series.values.pop();
                series.times_ns.pop();
            }
        }
        let place = |series: &Series| PANELS.iter().position(|panel| *panel == series.panel);
        all.sort_by_key(place);
        all
    }
}

fn empty(key: Key, unit: Unit) -> Series {
    let (name, stream) = match key.what {
        What::All => ("all streams".to_owned(), None),
        What::Stream(number) => (format!("stream {number}"), Some(number)),
        What::Limit(index) => (LIMITS.get(index).map_or_else(String::new, |(name, _)| (*name).to_owned()), None),
    };
    let direction = Some(key.direction);
    Series { panel: key.panel, name, direction, stream, unit, times_ns: Vec::new(), values: Vec::new() }
}
