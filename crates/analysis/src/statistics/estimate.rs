use std::cmp::Ordering;

use linerate_units::Ratio;

use super::special::{normal_density, normal_probability, solve, student_probability, student_quantile};
use super::summary::{mean, variance};

/// Number of pairs for which one more is trimmed at each end.
const PAIRS_PER_TRIMMED: usize = 10;

/// Standard errors below the estimate at which the search for the mean before selection begins.
const MAX_SELECTION_BIAS: f64 = 20.0;

/// Repetitions of a sample with a variance.
const MIN_REPETITIONS: usize = 2;

/// Degrees of freedom of an error that is known.
const KNOWN: f64 = 1e6;

/// Estimate with a standard error and Student's degrees of freedom.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StudentEstimate {
    /// Estimate.
    pub mean: f64,
    /// Its standard error.
    pub error: f64,
    /// Degrees of freedom of the error.
    degrees: f64,
}

impl StudentEstimate {
    /// Creates an estimate whose standard error is known.
    #[must_use]
    pub const fn known(mean: f64, error: f64) -> Self {
        Self { mean, error, degrees: KNOWN }
    }

    /// Difference of the means of two independent samples with possibly unequal variances, second minus first (Welch
    /// 1947, with the degrees of freedom of Satterthwaite). `None` for fewer than two values in either.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "counts of repetitions are far below 2^53")]
    pub fn of_two_samples(before: &[f64], after: &[f64]) -> Option<Self> {
        let part = |numbers: &[f64]| {
            let count = numbers.len() as f64;
            let enough = numbers.len() >= MIN_REPETITIONS;
            variance(numbers, mean(numbers)).filter(|_| enough).map(|variance| (variance / count, count - 1.0))
        };
        let ((first, first_degrees), (second, second_degrees)) = (part(before)?, part(after)?);
        let together = first + second;
        let degrees = if together == 0.0 {
            first_degrees + second_degrees
        } else {
            together.powi(2) / (first.powi(2) / first_degrees + second.powi(2) / second_degrees)
        };
        Some(Self { mean: mean(after) - mean(before), error: together.sqrt(), degrees })
    }

    /// Mean of paired differences. From ten pairs on, the smallest and the largest tenth are trimmed: one outlier does
    /// not decide. The standard error is that of the winsorised differences (Tukey and `McLaughlin` 1963; Yuen 1974).
    ///
    /// Their standard deviation counts as at least `least_deviation`: few equal differences may be a coincidence. `None`
    /// for fewer than two differences.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "counts of pairs are far below 2^53")]
    pub fn of_pairs(differences: &[f64], least_deviation: f64) -> Option<Self> {
        let mut sorted: Vec<f64> = differences.iter().copied().filter(|one| one.is_finite()).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let (count, trimmed) = (sorted.len(), sorted.len() / PAIRS_PER_TRIMMED);
        let inner = sorted.get(trimmed..count - trimmed).filter(|inner| inner.len() >= 2)?;
        let (low, high, mean_inside) = (*inner.first()?, *inner.last()?, mean(inner));
        let winsorised: Vec<f64> = sorted.iter().map(|one| one.clamp(low, high)).collect();
        let (kept, count) = (inner.len() as f64, count as f64);
        // Winsorised values vary less by about the share that is trimmed.
        let deviation = variance(&winsorised, mean(&winsorised))?.sqrt().max(least_deviation * kept / count);
        Some(Self { mean: mean_inside, error: deviation * count.sqrt() / kept, degrees: kept - 1.0 })
    }

    /// Probability of a mean at least this large if the true mean were `limit`.
    #[must_use]
    pub fn p_above(&self, limit: f64) -> Ratio {
        Ratio::new(1.0 - self.probability(limit)).unwrap_or_default()
    }

    /// Probability of a mean at least this small if the true mean were `limit`.
    #[must_use]
    pub fn p_below(&self, limit: f64) -> Ratio {
        Ratio::new(self.probability(limit)).unwrap_or_default()
    }

    /// Two-sided probability of an estimate at least this far from zero if the truth were zero.
    #[must_use]
    pub fn p_value(&self) -> Ratio {
        let least = self.p_above(0.0).get().min(self.p_below(0.0).get());
        Ratio::new((2.0 * least).min(1.0)).unwrap_or_default()
    }

    /// Returns the same estimate with at least this standard error.
    #[must_use]
    pub fn with_least_error(self, error: f64) -> Self {
        Self { error: self.error.max(error), ..self }
    }

    fn probability(&self, limit: f64) -> f64 {
        if self.error == 0.0 {
            let order = self.mean.partial_cmp(&limit).unwrap_or(Ordering::Equal);
            return match order {
                Ordering::Greater => 1.0,
                Ordering::Equal => 0.5,
                Ordering::Less => 0.0,
            };
        }
        student_probability((self.mean - limit) / self.error, self.degrees)
    }

    /// Returns the interval that leaves out `tail` at each end.
    #[must_use]
    pub fn interval(&self, tail: Ratio) -> (f64, f64) {
        let half = self.critical_distance(tail);
        (self.mean - half, self.mean + half)
    }

    /// Smallest distance of the mean from a limit at which the limit is excluded with this error probability.
    #[must_use]
    pub fn critical_distance(&self, tail: Ratio) -> f64 {
        student_quantile(1.0 - tail.get(), self.degrees).max(0.0) * self.error
    }

    /// Returns the mean two standard errors higher, with the error that `growth` times as many pairs would leave: a
    /// series that this cannot settle needs no more pairs.
    #[must_use]
    pub fn at_best(&self, growth: f64) -> Self {
        let growth = growth.max(1.0);
        Self { mean: self.mean + 2.0 * self.error, error: self.error / growth.sqrt(), degrees: self.degrees * growth }
    }

    /// True mean that is most likely for an estimate that is only reported above `threshold`: the estimate without the
    /// inflation by the selection (Zhong and Prentice 2008, the conditional maximum likelihood). Never above the mean.
    #[must_use]
    pub fn without_selection(&self, threshold: f64) -> f64 {
        if self.error == 0.0 || self.mean <= threshold {
            return self.mean;
        }
        let expected = |truth: f64| {
            let distance = (threshold - truth) / self.error;
            truth + self.error * normal_density(distance) / normal_probability(-distance).max(f64::MIN_POSITIVE)
        };
        solve(self.mean - MAX_SELECTION_BIAS * self.error, self.mean, |truth| expected(truth) < self.mean)
    }
}

#[cfg(test)]
mod tests {
    use super::super::SeededRandom;
    use super::*;

    fn share(value: f64) -> Ratio {
        Ratio::new(value).expect("a share")
    }

    #[test]
    fn a_worked_example() {
        // Mean 3, standard deviation 1.5811 of five: error 0.7071, t = 4.243 on four degrees of freedom.
        let paired = StudentEstimate::of_pairs(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.0).expect("five");
        assert!((paired.mean - 3.0).abs() < 1e-12 && (paired.error - 0.5_f64.sqrt()).abs() < 1e-12, "{paired:?}");
        assert!((paired.p_above(0.0).get() - 0.006_618).abs() < 1e-5, "{:?}", paired.p_above(0.0));
        assert!((paired.p_below(0.0).get() - 0.993_382).abs() < 1e-5);
        // 97.5 % of t with four degrees of freedom: 2.776.
        let (low, high) = paired.interval(share(0.025));
        assert!((low - (3.0 - 1.963)).abs() < 1e-3 && (high - 4.963).abs() < 1e-3, "{low} {high}");
        assert_eq!(StudentEstimate::of_pairs(&[1.0], 0.0), None);
    }

    #[test]
    fn two_samples_as_in_welch_s_test() {
        // Means 20 and 22 of three each; variances 1 and 4: standard error sqrt(5 / 3) = 1.291, degrees of freedom
        // (5/3)² / ((1/3)²/2 + (4/3)²/2) = 2.941, t = 3.218 for 97.5 %: half width 4.154.
        let estimate = StudentEstimate::of_two_samples(&[19.0, 20.0, 21.0], &[20.0, 22.0, 24.0]).expect("three each");
        let (low, high) = estimate.interval(share(0.025));
        assert!((low - (2.0 - 4.154)).abs() < 0.01 && (high - (2.0 + 4.154)).abs() < 0.01, "{low} {high}");
        assert!((estimate.p_value().get() - 0.22).abs() < 0.01, "{:?}", estimate.p_value());
        assert_eq!(StudentEstimate::of_two_samples(&[1.0], &[1.0, 2.0]), None);
        let equal = StudentEstimate::of_two_samples(&[5.0; 3], &[5.0; 3]).expect("three each");
        assert!((equal.p_value().get() - 1.0).abs() < 1e-12, "{equal:?}");
        let apart = StudentEstimate::of_two_samples(&[5.0; 3], &[6.0; 3]).expect("three each");
        assert!(apart.p_value().get() < 1e-12 && (apart.with_least_error(9.0).error - 9.0).abs() < 1e-12, "{apart:?}");
    }

    #[test]
    fn equal_differences_keep_the_least_deviation() {
        let paired = StudentEstimate::of_pairs(&[0.1; 4], 0.05).expect("four");
        assert!((paired.error - 0.025).abs() < 1e-12);
        assert!(StudentEstimate::of_pairs(&[0.1; 4], 0.0).expect("four").p_above(0.0).get() < 1e-12);
    }

    #[test]
    fn one_outlier_of_ten_does_not_decide() {
        let mut differences = [0.1; 10];
        differences[3] = -50.0;
        let paired = StudentEstimate::of_pairs(&differences, 0.05).expect("ten");
        assert!((paired.mean - 0.1).abs() < 1e-12 && paired.p_above(0.0).get() < 1e-3, "{paired:?}");
    }

    #[test]
    fn errors_have_their_stated_probability() {
        // 2000 series without an effect: 5 % are above; standard error 0.5 %, four of them.
        for count in [5, 8, 12, 20] {
            let mut random = SeededRandom::new(9);
            let false_alarms = (0..2000).filter(|_| {
                let differences: Vec<f64> = (0..count).map(|_| random.normal()).collect();
                StudentEstimate::of_pairs(&differences, 0.0).is_some_and(|paired| paired.p_above(0.0).get() <= 0.05)
            });
            let alarms = false_alarms.count();
            assert!((60..=140).contains(&alarms), "{alarms} of 2000 with {count} pairs");
        }
    }

    #[test]
    fn selected_estimates_lose_their_inflation() {
        // A true mean of 0.1 with an error of 0.05, reported only above 0.12: the estimate is a third too large.
        let mut random = SeededRandom::new(3);
        let (mut plain, mut corrected, mut count) = (0.0, 0.0, 0.0);
        for _ in 0..2000 {
            let mean = 0.1 + 0.05 * random.normal();
            if mean > 0.12 {
                let paired = StudentEstimate { mean, error: 0.05, degrees: 1e6 };
                (plain, corrected, count) =
                    (plain + mean, corrected + paired.without_selection(0.12).max(0.0), count + 1.0);
            }
        }
        assert!(plain / count > 0.145, "{}", plain / count);
        assert!((corrected / count - 0.1_f64).abs() < 0.02, "{}", corrected / count);
        let far = StudentEstimate { mean: 3.4, error: 0.05, degrees: 4.0 };
        assert!((far.without_selection(0.5) - 3.4).abs() < 1e-9, "a large effect is not touched");
    }
}
