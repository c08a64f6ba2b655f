use core::time::Duration;

use linerate_units::MonotonicTime;

use crate::statistics::{SampleSummary, SignedDifference};

/// Delay that load adds to one class of probes, in one phase.
///
/// Each percentile under load is compared with the idle median; the lower bound is the excess over the idle 5th
/// percentile: the delay of the path without any queue, less sensitive to one lucky packet than the minimum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LatencyUplift {
    /// Median under load minus idle median.
    pub median: SignedDifference<Duration>,
    /// Mean under load minus idle mean, as in the LARTC table.
    pub mean: SignedDifference<Duration>,
    /// 90th percentile under load minus idle median.
    pub p90: SignedDifference<Duration>,
    /// 95th percentile under load minus idle median, which determines the grade.
    pub p95: SignedDifference<Duration>,
    /// Median under load minus idle 5th percentile: the queue's typical delay.
    pub median_above_floor: SignedDifference<Duration>,
    /// 95th percentile under load minus idle 5th percentile.
    pub p95_above_floor: SignedDifference<Duration>,
}

impl LatencyUplift {
    /// Computes the added delay.
    #[must_use]
    pub fn of(rest: &SampleSummary<Duration>, load: &SampleSummary<Duration>) -> Self {
        Self {
            median: SignedDifference::between(rest.median, load.median),
            mean: SignedDifference::between(rest.mean, load.mean),
            p90: SignedDifference::between(rest.median, load.p90),
            p95: SignedDifference::between(rest.median, load.p95),
            median_above_floor: SignedDifference::between(rest.p5, load.median),
            p95_above_floor: SignedDifference::between(rest.p5, load.p95),
        }
    }

    /// Added delay that is graded: the 95th percentile's uplift, with negative values as zero.
    #[must_use]
    pub fn graded(&self) -> Duration {
        self.p95.allow_zero()
    }
}

/// Time during which the delay was above `floor + more`, by samples in order of time: each sample holds until the next
/// one, but no longer than `longest_gap`, so that a pause between samples does not count.
#[must_use]
pub fn time_above(
    samples: &[(MonotonicTime, Duration)],
    floor: Duration,
    more: Duration,
    longest_gap: Duration,
) -> Duration {
    let above = samples.windows(2).filter(|pair| pair[0].1 > floor + more);
    above.map(|pair| pair[1].0.since(pair[0].0).min(longest_gap)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(milliseconds: impl Iterator<Item = u64>) -> SampleSummary<Duration> {
        let samples: Vec<_> = milliseconds.map(Duration::from_millis).collect();
        SampleSummary::of(&samples).expect("samples")
    }

    #[test]
    fn percentiles_relative_to_idle() {
        let uplift = LatencyUplift::of(&summary(11..=30), &summary(101..=200));
        let millis = |value: SignedDifference<Duration>| value.as_nanos() / 1_000_000;
        // At rest: 5th percentile 11, median 20, mean 20.5; under load: median 150, mean 150.5, 90th 190, 95th 195.
        assert_eq!([uplift.median, uplift.mean, uplift.p90, uplift.p95].map(millis), [130, 130, 170, 175]);
        assert_eq!([uplift.median_above_floor, uplift.p95_above_floor].map(millis), [139, 184]);
        assert_eq!(uplift.graded(), Duration::from_millis(175));
    }

    #[test]
    fn lower_delay_under_load_is_no_uplift() {
        // Power saving: probes on an idle path wake the device each time.
        let uplift = LatencyUplift::of(&summary(50..=60), &summary(10..=20));
        assert!(uplift.median.negative);
        assert_eq!(uplift.graded(), Duration::ZERO);
    }

    #[test]
    fn time_above_a_threshold() {
        let at =
            |millis: u64, delay: u64| (MonotonicTime::from_nanos(millis * 1_000_000), Duration::from_millis(delay));
        let samples = [at(0, 20), at(50, 60), at(100, 60), at(150, 20), at(200, 70), at(5200, 20)];
        let floor = Duration::from_millis(20);
        let above = |more| time_above(&samples, floor, Duration::from_millis(more), Duration::from_millis(100));
        assert_eq!(above(30), Duration::from_millis(200));
        assert_eq!(above(100), Duration::ZERO);
    }
}
