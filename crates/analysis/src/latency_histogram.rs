//! Histogram of latencies with a bounded relative error, in the manner of Gil Tene's HDR histogram.
//!
//! Values below `EXACT` nanoseconds have a bucket each; above, every power of two is divided into `EXACT` / 2 buckets,
//! so that a percentile is at most 0.1 % above the true one. Recording is an index and an addition: it fits into the
//! loop that measures, and the memory follows the largest value (8 kB for each power of two).

use core::time::Duration;

use linerate_units::Ratio;

/// Number of values that have a bucket each; a power of two.
const EXACT: u64 = 2048;

/// Counts of latencies by value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LatencyHistogram {
    /// Counts by index, up to the largest value so far.
    counts: Vec<u64>,
    total: u64,
    sum_nanoseconds: u128,
    min: Option<u64>,
    max: u64,
}

/// One bucket with its count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistogramBucket {
    /// Smallest value.
    pub low: Duration,
    /// Bound above the largest value.
    pub high: Duration,
    /// Number of values.
    pub count: u64,
}

/// Index of the bucket of a value.
fn index_of(value: u64) -> u64 {
    if value < EXACT {
        return value;
    }
    let shift = u64::from((value / EXACT).ilog2()) + 1;
    // The remaining mantissa is EXACT / 2 to EXACT - 1.
    EXACT + (shift - 1) * (EXACT / 2) + (value >> shift) - EXACT / 2
}

/// Smallest value of a bucket.
fn low_of(index: u64) -> u64 {
    if index < EXACT {
        return index;
    }
    let above = index - EXACT;
    let shift = u32::try_from(above / (EXACT / 2) + 1).unwrap_or(u32::MAX);
    let mantissa = above % (EXACT / 2) + EXACT / 2;
    // Beyond the last bucket there is no larger number.
    if shift > mantissa.leading_zeros() { u64::MAX } else { mantissa << shift }
}

impl LatencyHistogram {
    /// Records a value.
    pub fn record(&mut self, value: Duration) {
        let nanoseconds = u64::try_from(value.as_nanos()).unwrap_or(u64::MAX);
        let index = usize::try_from(index_of(nanoseconds)).unwrap_or(usize::MAX);
        if index >= self.counts.len() {
            self.counts.resize(index + 1, 0);
        }
        self.counts[index] += 1;
        self.total += 1;
        self.sum_nanoseconds += u128::from(nanoseconds);
        self.max = self.max.max(nanoseconds);
        self.min = Some(self.min.map_or(nanoseconds, |min| min.min(nanoseconds)));
    }

    /// Adds all values of another histogram.
    pub fn merge(&mut self, other: &Self) {
        if other.counts.len() > self.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.total += other.total;
        self.sum_nanoseconds += other.sum_nanoseconds;
        self.max = self.max.max(other.max);
        self.min = [self.min, other.min].into_iter().flatten().min();
    }

    /// Number of values.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.total
    }

    /// Smallest value, exact; `None` without values.
    #[must_use]
    pub fn min(&self) -> Option<Duration> {
        self.min.map(Duration::from_nanos)
    }

    /// Largest value, exact; `None` without values.
    #[must_use]
    pub fn max(&self) -> Option<Duration> {
        self.min.map(|_| Duration::from_nanos(self.max))
    }

    /// Mean, exact to a nanosecond; `None` without values.
    #[must_use]
    pub fn mean(&self) -> Option<Duration> {
        let mean = self.sum_nanoseconds.checked_div(u128::from(self.total))?;
        Some(Duration::from_nanos(u64::try_from(mean).unwrap_or(u64::MAX)))
    }

    /// Smallest recorded value, rounded up by at most 0.1 %, that `share` (up to 1) of all values do not exceed; `None`
    /// without values.
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rank among fewer than 2^53 values, not negative"
    )]
    pub fn percentile(&self, share: Ratio) -> Option<Duration> {
        self.min?;
        // The nearest rank, at least the first.
        let rank = ((share.get().min(1.0) * self.total as f64).ceil() as u64).clamp(1, self.total);
        let mut seen = 0;
        for (index, count) in (0_u64..).zip(&self.counts) {
            seen += count;
            if seen >= rank {
                let highest = low_of(index + 1).saturating_sub(1);
                return Some(Duration::from_nanos(highest.min(self.max)));
            }
        }
        self.max()
    }

    /// Values by bounds of a 1-2-5 series, from the smallest to the largest, empty buckets between them included.
    #[must_use]
    pub fn decades(&self) -> Vec<HistogramBucket> {
        let mut buckets: Vec<HistogramBucket> = Vec::new();
        for (index, count) in (0_u64..).zip(&self.counts).filter(|(_, count)| **count > 0) {
            let value = low_of(index);
            while buckets.last().is_none_or(|last| last.high <= Duration::from_nanos(value)) {
                let low = buckets.last().map_or_else(|| bound_below(value), |last| nanoseconds(last.high));
                let high = next_bound(low);
                buckets.push(HistogramBucket {
                    low: Duration::from_nanos(low),
                    high: Duration::from_nanos(high),
                    count: 0,
                });
                if high == u64::MAX {
                    break;
                }
            }
            if let Some(last) = buckets.last_mut() {
                last.count += count;
            }
        }
        buckets
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Largest number of the series 1, 2, 5, 10 … that is not above `value`; 0 for 0.
fn bound_below(value: u64) -> u64 {
    let Some(exponent) = value.checked_ilog10() else { return 0 };
    let decade = 10_u64.pow(exponent);
    [5, 2, 1].into_iter().map(|step| decade.saturating_mul(step)).find(|bound| *bound <= value).unwrap_or(decade)
}

/// Next number of the series.
fn next_bound(bound: u64) -> u64 {
    let Some(exponent) = bound.checked_ilog10() else { return 1 };
    let decade = 10_u64.pow(exponent);
    match bound / decade {
        1 => decade.saturating_mul(2),
        2 => decade.saturating_mul(5),
        _ => decade.saturating_mul(10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(values: &[u64]) -> LatencyHistogram {
        let mut histogram = LatencyHistogram::default();
        for value in values {
            histogram.record(Duration::from_nanos(*value));
        }
        histogram
    }

    #[test]
    fn the_buckets_join_without_gaps() {
        let last = 2048 + 53 * 1024 - 1;
        for index in 0..=last {
            assert_eq!(index_of(low_of(index)), index);
            assert_eq!(index_of(low_of(index + 1) - 1), index);
        }
        assert_eq!((index_of(u64::MAX), low_of(last + 1)), (last, u64::MAX));
    }

    #[test]
    fn without_values_nothing_is_known() {
        let empty = LatencyHistogram::default();
        assert_eq!((empty.min(), empty.mean(), empty.percentile(Ratio::ZERO), empty.max()), (None, None, None, None));
        assert_eq!((empty.count(), empty.decades()), (0, Vec::new()));
    }

    #[test]
    fn values_fall_into_their_decades() {
        let histogram = of(&[150, 199, 200, 1_999_999]);
        let decades = histogram.decades();
        assert_eq!(
            decades.first().map(|one| (nanoseconds(one.low), nanoseconds(one.high), one.count)),
            Some((100, 200, 2))
        );
        assert_eq!(decades[1].count, 1);
        assert_eq!(decades.last().map(|one| (nanoseconds(one.low), one.count)), Some((1_000_000, 1)));
        assert_eq!(decades.len(), 13, "empty ones included: {decades:?}");
    }

    proptest! {
        #[test]
        fn percentiles_are_those_of_the_sorted_values(
            mut values in prop::collection::vec(0_u64..20_000_000_000, 1..300),
            share in 0.0_f64..=1.0,
        ) {
            let histogram = of(&values);
            values.sort_unstable();
            #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small")]
            let rank = ((share * values.len() as f64).ceil() as usize).clamp(1, values.len());
            let (exact, found) = (values[rank - 1], nanoseconds(histogram.percentile(Ratio::new(share).expect("a share")).expect("values")));
            prop_assert!(found >= exact && found - exact <= exact / 1000, "{found} for {exact}");
            prop_assert_eq!(histogram.max(), values.last().copied().map(Duration::from_nanos));
            prop_assert_eq!(histogram.min(), values.first().copied().map(Duration::from_nanos));
            let sum: u64 = values.iter().sum();
            prop_assert_eq!(histogram.mean(), Some(Duration::from_nanos(sum / values.len() as u64)));
            let decades = histogram.decades();
            prop_assert_eq!(decades.iter().map(|bucket| bucket.count).sum::<u64>(), histogram.count());
            prop_assert!(decades.windows(2).all(|two| two[0].high == two[1].low));
        }

        #[test]
        fn merging_equals_recording_all(
            one in prop::collection::vec(0_u64..1_000_000_000, 0..100),
            other in prop::collection::vec(0_u64..1_000_000_000, 0..100),
        ) {
            let mut merged = of(&one);
            merged.merge(&of(&other));
            prop_assert_eq!(merged, of(&[one, other].concat()));
        }
    }
}
