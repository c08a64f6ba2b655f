//! Summaries of many samples of one quantity.

use core::time::Duration;
use linerate_analysis::statistics::SampleSummary;
use linerate_units::serde::Nanoseconds;
use serde::{Deserialize, Serialize};

/// Order statistics of a set of times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DurationDistribution {
    /// Number of samples.
    pub count: u64,
    /// Smallest.
    #[serde(rename = "min_ns", with = "Nanoseconds")]
    pub min: Duration,
    /// 50th percentile (nearest rank).
    #[serde(rename = "median_ns", with = "Nanoseconds")]
    pub median: Duration,
    /// Arithmetic mean.
    #[serde(rename = "mean_ns", with = "Nanoseconds")]
    pub mean: Duration,
    /// 95th percentile.
    #[serde(rename = "p95_ns", with = "Nanoseconds")]
    pub p95: Duration,
    /// 99th percentile.
    #[serde(rename = "p99_ns", with = "Nanoseconds")]
    pub p99: Duration,
    /// Largest.
    #[serde(rename = "max_ns", with = "Nanoseconds")]
    pub max: Duration,
}

impl DurationDistribution {
    /// Computes the order statistics of `samples`, which are sorted; `None` without samples.
    #[must_use]
    pub fn of(samples: &mut [Duration]) -> Option<Self> {
        samples.sort_unstable();
        let (first, last) = (*samples.first()?, *samples.last()?);
        let count = samples.len();
        let rank = |percent: usize| samples[(count * percent).div_ceil(100).clamp(1, count) - 1];
        let total: Duration = samples.iter().sum();
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

impl From<&SampleSummary<Duration>> for DurationDistribution {
    fn from(summary: &SampleSummary<Duration>) -> Self {
        let SampleSummary { count, min, median, mean, p95, p99, max, .. } = *summary;
        Self { count, min, median, mean, p95, p99, max }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_samples_have_no_distribution() {
        assert_eq!(DurationDistribution::of(&mut []), None);
    }

    #[test]
    fn nearest_rank_percentiles() {
        let mut samples: Vec<_> = (1..=100).rev().map(Duration::from_millis).collect();
        let summary = DurationDistribution::of(&mut samples).expect("not empty");
        assert_eq!(summary.median, Duration::from_millis(50));
        assert_eq!(summary.p95, Duration::from_millis(95));
        assert_eq!(summary.p99, Duration::from_millis(99));
        assert_eq!(summary.mean, Duration::from_micros(50_500));
        assert_eq!(summary.max, Duration::from_millis(100));
    }
}
