//! Figures of one run over all its streams.

use core::time::Duration;

use linerate_units::serde::Nanoseconds;
use linerate_units::{BitRate, ByteCount, SegmentCount};
use serde::{Deserialize, Serialize};

use crate::limit::LimitShares;
use crate::report::{SideReport, StreamReport, TcpReport};
use crate::sample::IntervalReport;
use crate::stream::StreamRole;
use crate::summary::DurationDistribution;
use crate::throughput::ThroughputRun;

/// Payload rate, and the end that counted it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeasuredRate {
    /// Rate.
    pub rate: BitRate,
    /// Time over which it was measured: the longest of the streams'.
    pub duration: Duration,
    /// Counting end: the receiver where all streams have its counters, else the sender.
    pub at: StreamRole,
}

/// Round-trip times under load, combined from several distributions without their samples.
///
/// The median is the middle of their medians; the 95th percentile is their largest one, so it may be too high but not
/// too low.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadedRtt {
    /// Middle of the medians.
    #[serde(rename = "median_ns", with = "Nanoseconds")]
    pub median: Duration,
    /// Largest of the 95th percentiles.
    #[serde(rename = "p95_ns", with = "Nanoseconds")]
    pub p95: Duration,
}

impl LoadedRtt {
    /// Combines `distributions`; `None` without any.
    #[must_use]
    pub fn of<'a>(distributions: impl IntoIterator<Item = &'a DurationDistribution>) -> Option<Self> {
        let (mut medians, mut p95) = (Vec::new(), Duration::ZERO);
        for distribution in distributions {
            medians.push(distribution.median);
            p95 = p95.max(distribution.p95);
        }
        medians.sort_unstable();
        let median = *medians.get(medians.len().checked_sub(1)? / 2)?;
        Some(Self { median, p95 })
    }
}

impl ThroughputRun {
    /// Payload rate over all streams; `None` when nothing was counted.
    #[must_use]
    pub fn rate(&self) -> Option<MeasuredRate> {
        let received = total(&self.report.streams, |stream| stream.received);
        let sent = || total(&self.report.streams, |stream| stream.sent);
        let (side, at) =
            received.map(|side| (side, StreamRole::Receiver)).or_else(|| Some((sent()?, StreamRole::Sender)))?;
        Some(MeasuredRate { rate: side.bytes.rate_over(side.duration), duration: side.duration, at })
    }

    /// Payload bytes written by the sender; `None` when a stream lacks them.
    #[must_use]
    pub fn sent(&self) -> Option<ByteCount> {
        total(&self.report.streams, |stream| stream.sent).map(|side| side.bytes)
    }

    /// Payload bytes read by the receiver; `None` when a stream lacks them.
    #[must_use]
    pub fn received(&self) -> Option<ByteCount> {
        total(&self.report.streams, |stream| stream.received).map(|side| side.bytes)
    }

    /// Retransmitted segments of all streams; `None` when all streams lack them.
    #[must_use]
    pub fn retransmits(&self) -> Option<SegmentCount> {
        let known: Vec<_> = self.tcp().filter_map(|tcp| tcp.retransmits).collect();
        (!known.is_empty()).then(|| known.into_iter().sum())
    }

    /// Round-trip times of the sender while this run loaded the path: from the local samples where the client sends,
    /// from the intervals of a linerate server where the server sends; `None` for downloads from a stock server.
    #[must_use]
    pub fn loaded_rtt(&self) -> Option<LoadedRtt> {
        let local = LoadedRtt::of(self.tcp().filter_map(|tcp| tcp.rtt_samples.as_ref()));
        let counted = |interval: &&IntervalReport| !interval.omitted;
        let far = || {
            let intervals = self.report.far.as_ref()?.intervals.iter().filter(counted);
            LoadedRtt::of(intervals.flat_map(rtt_samples))
        };
        let intervals = || LoadedRtt::of(self.intervals.iter().filter(counted).flat_map(rtt_samples));
        local.or_else(intervals).or_else(far)
    }

    /// Limits of the sender: the mean over the streams that have them, and the busiest of their threads.
    #[must_use]
    pub fn limits(&self) -> Option<LimitShares> {
        let known: Vec<_> = self.tcp().filter_map(|tcp| tcp.limits).collect();
        LimitShares::mean(&known)
    }

    /// Maximum number of other tests in the server meanwhile; `None` when the server did not report it.
    #[must_use]
    pub fn overlapping_tests(&self) -> Option<u64> {
        self.report.far.as_ref().map(|far| far.overlapping_tests).or(self.report.overlapping_tests)
    }

    fn tcp(&self) -> impl Iterator<Item = &TcpReport> {
        self.report.streams.iter().filter_map(|stream| stream.tcp.as_ref())
    }
}

/// Total of one end of all streams: sum of bytes, longest time; `None` when a stream lacks it, or without streams.
fn total(streams: &[StreamReport], side: fn(&StreamReport) -> Option<SideReport>) -> Option<SideReport> {
    let sides: Vec<_> = streams.iter().map(side).collect::<Option<_>>()?;
    let duration = sides.iter().map(|side| side.duration).max()?;
    Some(SideReport { bytes: sides.iter().map(|side| side.bytes).sum(), duration })
}

/// Round-trip times sampled within an interval, one distribution for each stream.
pub fn rtt_samples(interval: &IntervalReport) -> impl Iterator<Item = &DurationDistribution> {
    interval.streams.iter().filter_map(|stream| stream.tcp.as_ref()?.rtt_samples.as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distribution(median: u64, p95: u64) -> DurationDistribution {
        let (median, p95) = (Duration::from_millis(median), Duration::from_millis(p95));
        DurationDistribution { count: 9, min: median, median, mean: median, p95, p99: p95, max: p95 }
    }

    #[test]
    fn several_distributions_give_the_middle_and_the_worst() {
        let all = [distribution(30, 31), distribution(10, 90), distribution(20, 25), distribution(40, 41)];
        let together = LoadedRtt::of(&all).expect("not empty");
        assert_eq!(together, LoadedRtt { median: Duration::from_millis(20), p95: Duration::from_millis(90) });
        assert_eq!(LoadedRtt::of(&[]), None);
    }

    #[test]
    fn a_total_needs_every_stream() {
        use crate::stream::{StreamDescription, StreamId};
        let stream = |sent: Option<(u64, u64)>| StreamReport {
            description: StreamDescription {
                id: StreamId::nth(0),
                socket: 4,
                local: ([127, 0, 0, 1], 1).into(),
                remote: ([127, 0, 0, 1], 2).into(),
                role: StreamRole::Sender,
            },
            sent: sent
                .map(|(bytes, time)| SideReport { bytes: ByteCount::new(bytes), duration: Duration::from_secs(time) }),
            received: None,
            tcp: None,
            udp: None,
            thread_cpu: None,
        };
        let sent = |streams: &[StreamReport]| total(streams, |stream| stream.sent);
        let both = SideReport { bytes: ByteCount::new(7), duration: Duration::from_secs(3) };
        assert_eq!(sent(&[stream(Some((3, 2))), stream(Some((4, 3)))]), Some(both));
        assert_eq!(sent(&[stream(Some((3, 2))), stream(None)]), None);
        assert_eq!(sent(&[]), None);
    }
}
