//! Medians and their uncertainty.
//!
//! Runs on one machine have outliers on one side (other processes ran), so the median is used and not the mean. The
//! interval is a percentile bootstrap (Efron 1979): rounds are drawn with replacement, the median of each draw is
//! taken, and the middle 95 % of those medians is the interval. With few rounds it is wide.

/// Number of bootstrap draws.
const DRAWS: usize = 10_000;

/// Median with its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct MedianEstimate {
    pub(super) median: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

/// Returns the median; the mean of the two middle values when their number is even; `None` without values.
pub(super) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = *sorted.get(sorted.len() / 2)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    Some(f64::midpoint(sorted[sorted.len() / 2 - 1], upper))
}

/// Returns the median of `values` with its bootstrap interval; `None` without values. The same values give the same
/// interval.
pub(super) fn bootstrap_median(values: &[f64]) -> Option<MedianEstimate> {
    let median_of_all = median(values)?;
    let mut random = XorShift64::new(1);
    let mut medians: Vec<f64> = (0..DRAWS)
        .filter_map(|_| median(&(0..values.len()).map(|_| values[random.below(values.len())]).collect::<Vec<_>>()))
        .collect();
    medians.sort_by(f64::total_cmp);
    Some(MedianEstimate { median: median_of_all, low: medians[DRAWS / 40], high: medians[DRAWS - 1 - DRAWS / 40] })
}

/// Returns the ratio of candidate to baseline in each round where both are known and the baseline is not zero.
pub(super) fn ratios(candidate: &[Option<f64>], baseline: &[Option<f64>]) -> Vec<f64> {
    candidate
        .iter()
        .zip(baseline)
        .filter_map(|(candidate, baseline)| Some((*candidate)? / (*baseline).filter(|value| *value > 0.0)?))
        .collect()
}

/// Marsaglia's xorshift64 generator: enough to draw rounds, and the same on every machine.
pub(super) struct XorShift64(u64);

impl XorShift64 {
    /// Returns a generator; of seeds that differ little, the first numbers do, too.
    pub(super) fn new(seed: u64) -> Self {
        // The state must not be zero; an odd factor keeps seeds apart.
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).max(1))
    }

    /// Puts `items` into a random order (Fisher and Yates).
    pub(super) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }

    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        let limit = u64::try_from(limit).unwrap_or(u64::MAX);
        usize::try_from(self.0 % limit).unwrap_or_default()
    }
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "these values pass through unchanged")]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_whatever_the_order() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0]), Some(3.0));
        assert_eq!(median(&[9.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 100.0]), Some(3.0));
    }

    #[test]
    fn equal_rounds_have_an_empty_interval() {
        let estimate = bootstrap_median(&[1.5; 7]).expect("seven values");
        assert_eq!((estimate.median, estimate.low, estimate.high), (1.5, 1.5, 1.5));
        assert_eq!(bootstrap_median(&[]), None);
    }

    #[test]
    fn the_interval_holds_the_median_and_stays_inside_the_values() {
        let values = [1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 9.0];
        let estimate = bootstrap_median(&values).expect("seven values");
        assert_eq!(estimate.median, 1.3);
        // Of seven draws the median falls on the smallest value with probability 1.0 %, on the two smallest with
        // 9.9 %: so the 2.5 % quantile is the second value and, by symmetry, the 97.5 % quantile the sixth.
        assert_eq!((estimate.low, estimate.high), (1.1, 1.5));
    }

    #[test]
    fn the_interval_is_the_same_each_time() {
        let values = [3.0, 1.0, 2.0, 5.0, 4.0];
        assert_eq!(bootstrap_median(&values), bootstrap_median(&values));
    }

    #[test]
    fn orders_follow_from_the_seed_and_differ_between_seeds() {
        let order = |seed| {
            let mut items: Vec<usize> = (0..20).collect();
            XorShift64::new(seed).shuffle(&mut items);
            items
        };
        assert_eq!(order(7), order(7));
        assert_ne!(order(7), order(8));
        let mut sorted = order(0);
        sorted.sort_unstable();
        assert_eq!(sorted, (0..20).collect::<Vec<_>>());
    }

    #[test]
    fn only_rounds_known_on_both_sides_are_compared() {
        let candidate = [Some(2.0), None, Some(6.0), Some(8.0)];
        let baseline = [Some(1.0), Some(1.0), None, Some(0.0)];
        assert_eq!(ratios(&candidate, &baseline), [2.0]);
    }
}
