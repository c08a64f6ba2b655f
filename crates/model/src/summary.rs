//! Summaries of many readings of one quantity.

use core::time::Duration;

/// Order statistics of a set of times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Distribution {
    /// How many readings.
    pub count: u64,
    /// Smallest.
    pub min: Duration,
    /// 50th percentile (nearest rank).
    pub median: Duration,
    /// Arithmetic mean.
    pub mean: Duration,
    /// 95th percentile.
    pub p95: Duration,
    /// 99th percentile.
    pub p99: Duration,
    /// Largest.
    pub max: Duration,
}

impl Distribution {
    /// The order statistics of `readings`, which are put in order; `None` of no readings.
    #[must_use]
    pub fn of(readings: &mut [Duration]) -> Option<Self> {
        readings.sort_unstable();
        let (first, last) = (*readings.first()?, *readings.last()?);
        let count = readings.len();
        let rank = |percent: usize| readings[(count * percent).div_ceil(100).clamp(1, count) - 1];
        let total: Duration = readings.iter().sum();
        let mean_nanos = total.as_nanos() / count as u128;
        Some(Self {
            count: count as u64,
            min: first,
            median: rank(50),
            mean: Duration::from_nanos(u64::try_from(mean_nanos).unwrap_or(u64::MAX)),
            p95: rank(95),
            p99: rank(99),
            max: last,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_has_no_distribution() {
        assert_eq!(Distribution::of(&mut []), None);
    }

    #[test]
    fn nearest_rank_percentiles() {
        let mut readings: Vec<_> = (1..=100).rev().map(Duration::from_millis).collect();
        let summary = Distribution::of(&mut readings).expect("not empty");
        assert_eq!(summary.median, Duration::from_millis(50));
        assert_eq!(summary.p95, Duration::from_millis(95));
        assert_eq!(summary.p99, Duration::from_millis(99));
        assert_eq!(summary.mean, Duration::from_micros(50_500));
        assert_eq!(summary.max, Duration::from_millis(100));
    }
}
