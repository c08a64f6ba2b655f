use core::time::Duration;

use linerate_units::MonotonicTime;

use crate::statistics::{Signed, Summary};

/// What load adds to the delay of one class of probes, in one phase.
///
/// Each percentile under load is set beside the median at rest, and the least is what is above the 5th percentile at rest:
/// the delay of the path without any queue, less sensitive to one lucky packet than the minimum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Uplift {
    /// Median under load less median at rest.
    pub median: Signed<Duration>,
    /// Mean under load less mean at rest: what the LARTC table shows.
    pub mean: Signed<Duration>,
    /// 90th percentile under load less median at rest.
    pub p90: Signed<Duration>,
    /// 95th percentile under load less median at rest: what the grade goes by.
    pub p95: Signed<Duration>,
    /// Median under load less the 5th percentile at rest: the queue's typical size in time.
    pub median_above_floor: Signed<Duration>,
    /// 95th percentile under load less the 5th percentile at rest.
    pub p95_above_floor: Signed<Duration>,
}

impl Uplift {
    /// What the load added.
    #[must_use]
    pub fn of(rest: &Summary<Duration>, load: &Summary<Duration>) -> Self {
        Self {
            median: Signed::between(rest.median, load.median),
            mean: Signed::between(rest.mean, load.mean),
            p90: Signed::between(rest.median, load.p90),
            p95: Signed::between(rest.median, load.p95),
            median_above_floor: Signed::between(rest.p5, load.median),
            p95_above_floor: Signed::between(rest.p5, load.p95),
        }
    }

    /// What the grade is given for: the 95th percentile's uplift, a negative one counting as none.
    #[must_use]
    pub fn graded(&self) -> Duration {
        self.p95.or_zero()
    }
}

/// How long the delay was above `floor + more`, by readings in order of time: each reading holds until the next one, but no
/// longer than `longest_gap`, so that a pause between readings does not count.
#[must_use]
pub fn time_above(
    readings: &[(MonotonicTime, Duration)],
    floor: Duration,
    more: Duration,
    longest_gap: Duration,
) -> Duration {
    let above = readings.windows(2).filter(|pair| pair[0].1 > floor + more);
    above.map(|pair| pair[1].0.since(pair[0].0).min(longest_gap)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(milliseconds: impl Iterator<Item = u64>) -> Summary<Duration> {
        let readings: Vec<_> = milliseconds.map(Duration::from_millis).collect();
        Summary::of(&readings).expect("readings")
    }

    #[test]
    fn percentiles_beside_rest() {
        let uplift = Uplift::of(&summary(11..=30), &summary(101..=200));
        let millis = |value: Signed<Duration>| value.as_nanos() / 1_000_000;
        // At rest: 5th percentile 11, median 20, mean 20.5; under load: median 150, mean 150.5, 90th 190, 95th 195.
        assert_eq!([uplift.median, uplift.mean, uplift.p90, uplift.p95].map(millis), [130, 130, 170, 175]);
        assert_eq!([uplift.median_above_floor, uplift.p95_above_floor].map(millis), [139, 184]);
        assert_eq!(uplift.graded(), Duration::from_millis(175));
    }

    #[test]
    fn load_that_helps_is_no_uplift() {
        // Power saving: probes at rest wake the device each time.
        let uplift = Uplift::of(&summary(50..=60), &summary(10..=20));
        assert!(uplift.median.negative);
        assert_eq!(uplift.graded(), Duration::ZERO);
    }

    #[test]
    fn time_above_a_threshold() {
        let at =
            |millis: u64, delay: u64| (MonotonicTime::from_nanos(millis * 1_000_000), Duration::from_millis(delay));
        let readings = [at(0, 20), at(50, 60), at(100, 60), at(150, 20), at(200, 70), at(5200, 20)];
        let floor = Duration::from_millis(20);
        let above = |more| time_above(&readings, floor, Duration::from_millis(more), Duration::from_millis(100));
        assert_eq!(above(30), Duration::from_millis(200));
        assert_eq!(above(100), Duration::ZERO);
    }
}
