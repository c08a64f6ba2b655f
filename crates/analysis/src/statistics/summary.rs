use linerate_units::Ratio;

use super::StatisticalQuantity;

/// Minimum number of samples for which the 99.9th percentile is more than the largest sample.
const MIN_P999_SAMPLES: usize = 1000;

/// Order statistics of samples, with their mean and standard deviation.
///
/// Percentiles are those of the empirical distribution function (RFC 2330 §11.3): the smallest sample that at least
/// that share of all samples does not exceed ("nearest rank"); each is an actual sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SampleSummary<Q> {
    /// Number of samples.
    pub count: u64,
    /// Smallest.
    pub min: Q,
    /// 5th percentile.
    pub p5: Q,
    /// 25th percentile.
    pub p25: Q,
    /// 50th percentile.
    pub median: Q,
    /// Arithmetic mean.
    pub mean: Q,
    /// 75th percentile.
    pub p75: Q,
    /// 90th percentile.
    pub p90: Q,
    /// 95th percentile.
    pub p95: Q,
    /// 99th percentile.
    pub p99: Q,
    /// 99.9th percentile; `None` below 1000 samples, where it would be the largest.
    pub p999: Option<Q>,
    /// Largest.
    pub max: Q,
    /// Difference of the 75th and the 25th percentile: the spread of delay in draft-ietf-ippm-reporting.
    pub interquartile_range: Q,
    /// Standard deviation of the sample (divided by one less than the count); `None` for a single sample.
    pub standard_deviation: Option<Q>,
}

impl<Q: StatisticalQuantity> SampleSummary<Q> {
    /// Summarises samples in any order; `None` without samples.
    #[must_use]
    pub fn of(samples: &[Q]) -> Option<Self> {
        let sorted = sorted_numbers(samples);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let mean = mean(&sorted);
        let rank = |share: f64| Q::from_number(sorted[rank_of(sorted.len(), share)]);
        let quartiles = (rank(0.25), rank(0.75));
        Some(Self {
            count: sorted.len() as u64,
            min: Q::from_number(min),
            p5: rank(0.05),
            p25: quartiles.0,
            median: rank(0.5),
            mean: Q::from_number(mean),
            p75: quartiles.1,
            p90: rank(0.9),
            p95: rank(0.95),
            p99: rank(0.99),
            p999: (sorted.len() >= MIN_P999_SAMPLES).then(|| rank(0.999)),
            max: Q::from_number(max),
            interquartile_range: Q::from_number(quartiles.1.number() - quartiles.0.number()),
            standard_deviation: variance(&sorted, mean).map(|variance| Q::from_number(variance.sqrt())),
        })
    }
}

/// Smallest sample that at least `share` of all samples does not exceed; the smallest of all for a share of zero, the
/// largest for a share above one. `None` without samples.
#[must_use]
pub fn percentile<Q: StatisticalQuantity>(samples: &[Q], share: Ratio) -> Option<Q> {
    let mut numbers = numbers(samples);
    let rank = rank_of(numbers.len(), share.get());
    (!numbers.is_empty()).then(|| Q::from_number(*numbers.select_nth_unstable_by(rank, f64::total_cmp).1))
}

/// The [`percentile`] by nearest rank of values with an order of their own, which need not be a quantity.
#[must_use]
pub fn ordered_percentile<T: Ord + Copy>(values: impl IntoIterator<Item = T>, share: Ratio) -> Option<T> {
    let mut values: Vec<T> = values.into_iter().collect();
    let rank = rank_of(values.len(), share.get());
    (!values.is_empty()).then(|| *values.select_nth_unstable(rank).1)
}

/// Numbers of the samples, without NaN.
fn numbers<Q: StatisticalQuantity>(samples: &[Q]) -> Vec<f64> {
    samples.iter().map(|sample| sample.number()).filter(|n| n.is_finite()).collect()
}

/// Numbers of the samples, sorted, without NaN.
pub(super) fn sorted_numbers<Q: StatisticalQuantity>(samples: &[Q]) -> Vec<f64> {
    let mut numbers = numbers(samples);
    numbers.sort_unstable_by(f64::total_cmp);
    numbers
}

/// Index, among `count` sorted samples, of the smallest that at least `share` of them does not exceed.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "counts of samples are far below 2^53; the result is clamped"
)]
pub(super) fn rank_of(count: usize, share: f64) -> usize {
    // 0.95 × 100 is 95.00000000000001 in doubles: whole numbers except for rounding are kept.
    let rank = (count as f64 * share - 1e-9).ceil() as usize;
    rank.clamp(1, count.max(1)) - 1
}

/// Arithmetic mean; zero without numbers.
#[expect(clippy::cast_precision_loss, reason = "counts of samples are far below 2^53")]
pub(super) fn mean(numbers: &[f64]) -> f64 {
    if numbers.is_empty() { 0.0 } else { numbers.iter().sum::<f64>() / numbers.len() as f64 }
}

/// Variance of the sample; `None` for fewer than two values.
#[expect(clippy::cast_precision_loss, reason = "counts of samples are far below 2^53")]
pub(super) fn variance(numbers: &[f64], mean: f64) -> Option<f64> {
    let degrees = numbers.len().checked_sub(1).filter(|degrees| *degrees > 0)?;
    Some(numbers.iter().map(|number| (number - mean).powi(2)).sum::<f64>() / degrees as f64)
}

#[cfg(test)]
#[expect(clippy::cast_precision_loss, reason = "small counts")]
mod tests {
    use core::time::Duration;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn no_samples_give_none() {
        assert_eq!(SampleSummary::<Duration>::of(&[]), None);
        assert_eq!(SampleSummary::of(&[f64::NAN]), None);
        assert_eq!(percentile::<f64>(&[], Ratio::ZERO), None);
    }

    #[test]
    fn one_to_a_thousand() {
        let samples: Vec<_> = (1..=1000).rev().map(Duration::from_millis).collect();
        let summary = SampleSummary::of(&samples).expect("not empty");
        let milliseconds = [
            (summary.min, 1),
            (summary.p5, 50),
            (summary.p25, 250),
            (summary.median, 500),
            (summary.p75, 750),
            (summary.p90, 900),
            (summary.p95, 950),
            (summary.p99, 990),
            (summary.max, 1000),
            (summary.interquartile_range, 500),
        ];
        for (value, expected) in milliseconds {
            assert_eq!(value, Duration::from_millis(expected));
        }
        assert_eq!(summary.p999, Some(Duration::from_millis(999)));
        assert_eq!(summary.mean, Duration::from_micros(500_500));
        // Standard deviation of the numbers 1 to n: sqrt(n (n + 1) / 12).
        let deviation = summary.standard_deviation.expect("many samples").as_secs_f64();
        assert!((deviation - 0.288_819_436).abs() < 1e-8, "{deviation}");
        assert_eq!(SampleSummary::of(&samples[..999]).and_then(|fewer| fewer.p999), None);
        assert_eq!(SampleSummary::of(&samples[..1]).and_then(|one| one.standard_deviation), None);
    }

    proptest! {
        #[test]
        fn statistics_are_in_order(samples in proptest::collection::vec(-1e9..1e9_f64, 1..200)) {
            let s = SampleSummary::of(&samples).expect("not empty");
            let order = [s.min, s.p5, s.p25, s.median, s.p75, s.p90, s.p95, s.p99, s.max];
            prop_assert!(order.windows(2).all(|pair| pair[0] <= pair[1]), "{:?}", order);
            prop_assert!(s.mean >= s.min - 1e-3 && s.mean <= s.max + 1e-3);
            prop_assert!(order.iter().all(|value| samples.contains(value)));
        }

        #[test]
        fn a_percentile_has_its_share_at_or_below_it(
            samples in proptest::collection::vec(0.0..1e9_f64, 1..200), percent in 0_u32..=100
        ) {
            let share = f64::from(percent) / 100.0;
            let share_of_samples = Ratio::new(share).expect("a share");
            let value = percentile(&samples, share_of_samples).expect("not empty");
            let whole = samples.iter().map(|sample| sample.to_bits());
            prop_assert_eq!(ordered_percentile(whole, share_of_samples).map(f64::from_bits), Some(value));
            let count = |keep: &dyn Fn(f64) -> bool| samples.iter().filter(|sample| keep(**sample)).count();
            let needed = |below: usize| below as f64 >= share * samples.len() as f64 - 1e-6;
            prop_assert!(needed(count(&|sample| sample <= value)));
            prop_assert!(value <= percentile(&samples, Ratio::ZERO).expect("not empty") || !needed(count(&|sample| sample < value)));
        }
    }
}
