//! Dual queue of a bottleneck (RFC 9332): one for packets with ECT(1), which stays short, and one for all others.

use core::time::Duration;

use linerate_units::Ratio;
use linerate_units::serde::Nanoseconds;
use serde::{Deserialize, Serialize};

/// Delays of probes that differ in their ECN codepoint only, while the path is loaded, above the smallest of the idle path.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CodepointDelays {
    /// Probes without ECN.
    pub not_ect: Vec<Duration>,
    /// Probes with ECT(0).
    pub ect0: Vec<Duration>,
    /// Probes with ECT(1), the codepoint of L4S.
    pub ect1: Vec<Duration>,
    /// Share of the latter that arrive with ECT(1), of those without a mark; `None` where the far end does not report it.
    pub ect1_intact: Option<Ratio>,
}

/// Median delay with the interval that contains the true one with a probability of 95 %.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MedianDelay {
    /// Median.
    #[serde(rename = "median_ns", with = "Nanoseconds")]
    pub median: Duration,
    /// Lower bound of the interval.
    #[serde(rename = "low_ns", with = "Nanoseconds")]
    pub low: Duration,
    /// Upper bound of the interval.
    #[serde(rename = "high_ns", with = "Nanoseconds")]
    pub high: Duration,
    /// Number of samples: answered probes.
    pub probes: u64,
}

impl MedianDelay {
    /// Median of samples in any order; `None` without samples. The bounds are order statistics, so that nothing is
    /// assumed about the distribution.
    #[must_use]
    pub fn of(samples: &[Duration]) -> Option<Self> {
        let mut sorted = samples.to_vec();
        sorted.sort_unstable();
        let last = sorted.len().checked_sub(1)?;
        // At least 1.96 standard deviations of a binomial count with a probability of one half: 0.98 √n.
        let (middle, spread) = (sorted.len() / 2, sorted.len().isqrt() + 1);
        Some(Self {
            median: sorted[last / 2],
            low: sorted[middle.saturating_sub(spread)],
            high: sorted[(middle + spread).min(last)],
            probes: sorted.len() as u64,
        })
    }
}

/// Presence of a dual queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum DualQueue {
    /// ECT(1) waits less than half as long as both others.
    Found,
    /// ECT(1) waits as long as others that support ECN.
    NotFound,
    /// Too few answers.
    TooFewProbes,
    /// The bottleneck may not see ECT(1): it does not arrive.
    Ect1Changed,
    /// Nothing waits: the path has no queue under this load, or one per flow.
    NoQueue,
    /// The intervals overlap.
    Ambiguous,
}

/// Probes of a codepoint below which nothing is concluded.
const MIN_PROBES: usize = 20;

/// Delay below which nothing waits: the target of a queue for L4S is 1 ms, that of others 5 ms and more.
const MIN_QUEUEING_DELAY: Duration = Duration::from_millis(2);

/// Share of ECT(1) that has to arrive as such.
const MIN_INTACT: f64 = 0.9;

impl DualQueue {
    /// Judges the delays.
    #[must_use]
    pub fn of(delays: &CodepointDelays) -> Self {
        if [&delays.not_ect, &delays.ect0, &delays.ect1].iter().any(|samples| samples.len() < MIN_PROBES) {
            return Self::TooFewProbes;
        }
        if delays.ect1_intact.is_none_or(|share| share.get() < MIN_INTACT) {
            return Self::Ect1Changed;
        }
        let all = [&delays.not_ect, &delays.ect0, &delays.ect1].map(|samples| MedianDelay::of(samples));
        let [Some(not_ect), Some(ect0), Some(ect1)] = all else { return Self::TooFewProbes };
        if not_ect.low < MIN_QUEUEING_DELAY {
            return Self::NoQueue;
        }
        // Some queues prefer all packets with ECN: then ECT(0) waits as little.
        let (low, high) = (not_ect.low.min(ect0.low), not_ect.high.min(ect0.high));
        if ect1.high * 2 < low {
            Self::Found
        } else if ect1.low * 2 >= high {
            Self::NotFound
        } else {
            Self::Ambiguous
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Forty delays around so many microseconds.
    fn around(microseconds: u64) -> Vec<Duration> {
        (0..40).map(|number| Duration::from_micros(microseconds * (90 + number % 21) / 100)).collect()
    }

    fn delays(not_ect: u64, ect0: u64, ect1: u64) -> CodepointDelays {
        let ect1_intact = Ratio::new(1.0);
        CodepointDelays { not_ect: around(not_ect), ect0: around(ect0), ect1: around(ect1), ect1_intact }
    }

    #[test]
    fn a_short_queue_for_ect1_next_to_a_long_one_is_found() {
        for (not_ect, ect0, ect1, expected) in [
            (15_000, 15_000, 600, DualQueue::Found),
            (15_000, 14_000, 0, DualQueue::Found),
            (40_000, 40_000, 40_000, DualQueue::NotFound),
            (40_000, 40_000, 30_000, DualQueue::NotFound),
            // All packets with ECN are preferred.
            (40_000, 600, 600, DualQueue::NotFound),
            // A queue for each flow: none of the probes waits.
            (300, 300, 300, DualQueue::NoQueue),
            (1900, 1900, 10, DualQueue::NoQueue),
            (15_000, 15_000, 7000, DualQueue::Ambiguous),
        ] {
            assert_eq!(DualQueue::of(&delays(not_ect, ect0, ect1)), expected, "{not_ect} {ect0} {ect1}");
        }
    }

    #[test]
    fn nothing_is_concluded_from_a_codepoint_that_does_not_arrive_or_from_few_probes() {
        for intact in [None, Ratio::new(0.0), Ratio::new(0.5)] {
            let changed = CodepointDelays { ect1_intact: intact, ..delays(15_000, 15_000, 600) };
            assert_eq!(DualQueue::of(&changed), DualQueue::Ect1Changed);
        }
        let few = CodepointDelays { ect0: around(15_000)[..19].to_vec(), ..delays(15_000, 15_000, 600) };
        assert_eq!(DualQueue::of(&few), DualQueue::TooFewProbes);
        assert_eq!(DualQueue::of(&CodepointDelays::default()), DualQueue::TooFewProbes);
    }

    #[test]
    fn bounds_of_a_median() {
        let samples: Vec<Duration> = (0..100).map(Duration::from_millis).collect();
        let median = MedianDelay::of(&samples).expect("samples");
        let milliseconds = [median.median, median.low, median.high].map(|time| time.as_millis());
        assert_eq!((milliseconds, median.probes), ([49, 39, 61], 100));
        assert_eq!(MedianDelay::of(&[]), None);
    }

    proptest! {
        #[test]
        fn bounds_contain_the_median_and_are_samples(times in proptest::collection::vec(0_u64..1_000_000, 1..200)) {
            let samples: Vec<Duration> = times.iter().map(|time| Duration::from_nanos(*time)).collect();
            let median = MedianDelay::of(&samples).expect("samples");
            prop_assert!(median.low <= median.median && median.median <= median.high);
            prop_assert!([median.low, median.median, median.high].iter().all(|time| samples.contains(time)));
        }

        #[test]
        fn equal_delays_are_no_dual_queue(times in proptest::collection::vec(2_000_u64..1_000_000, 20..200)) {
            let samples: Vec<Duration> = times.iter().map(|time| Duration::from_micros(*time)).collect();
            let delays = CodepointDelays {
                not_ect: samples.clone(), ect0: samples.clone(), ect1: samples, ect1_intact: Ratio::new(1.0),
            };
            prop_assert_ne!(DualQueue::of(&delays), DualQueue::Found);
        }
    }
}
