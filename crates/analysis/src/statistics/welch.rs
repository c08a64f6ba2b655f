use linerate_units::Ratio;

use super::comparison::{EquivalenceMargin, SampleComparison};
use super::special::student_quantile;
use super::summary::{mean, variance};
use super::{StatisticalQuantity, summary};

/// Minimum number of repetitions for a variance.
const MIN_REPETITIONS: usize = 3;

/// Compares the means of few repetitions with possibly unequal variances: Welch's t with the degrees of freedom of
/// Satterthwaite (Welch 1947). It assumes normally distributed repetitions.
///
/// `None` when either has no samples; with fewer than three in either there is no interval, and so not enough data.
#[must_use]
pub fn welch<Q: StatisticalQuantity>(
    before: &[Q],
    after: &[Q],
    confidence: Ratio,
    margin: EquivalenceMargin<Q>,
) -> Option<SampleComparison<Q>> {
    let (before, after) = (summary::sorted_numbers(before), summary::sorted_numbers(after));
    if before.is_empty() || after.is_empty() {
        return None;
    }
    let means = (mean(&before), mean(&after));
    let interval = (before.len() >= MIN_REPETITIONS && after.len() >= MIN_REPETITIONS)
        .then(|| half_width(&before, &after, confidence))
        .flatten()
        .map(|half| (means.1 - means.0 - half, means.1 - means.0 + half));
    Some(SampleComparison::of(means, interval, confidence, margin))
}

/// Half of the interval's width.
#[expect(clippy::cast_precision_loss, reason = "counts of repetitions are far below 2^53")]
fn half_width(before: &[f64], after: &[f64], confidence: Ratio) -> Option<f64> {
    let of = |numbers: &[f64]| {
        let count = numbers.len() as f64;
        variance(numbers, mean(numbers)).map(|variance| (variance / count, count - 1.0))
    };
    let ((first, first_degrees), (second, second_degrees)) = (of(before)?, of(after)?);
    let together = first + second;
    if together == 0.0 {
        return Some(0.0);
    }
    let degrees = together.powi(2) / (first.powi(2) / first_degrees + second.powi(2) / second_degrees);
    let inside = (1.0 + confidence.get()).min(2.0) / 2.0;
    Some(student_quantile(inside, degrees) * together.sqrt())
}

#[cfg(test)]
mod tests {
    use super::super::ComparisonVerdict;
    use super::*;

    fn percent(value: f64) -> Ratio {
        Ratio::from_percent(value).expect("a share")
    }

    #[test]
    fn a_worked_example() {
        // Means 20.0 and 22.0 of three each; variances 1 and 4, so standard error sqrt(5 / 3) = 1.291, degrees of
        // freedom (5/3)² / ((1/3)²/2 + (4/3)²/2) = 2.941, t = 3.218: half width 4.154.
        let comparison =
            welch(&[19.0, 20.0, 21.0], &[20.0, 22.0, 24.0], percent(95.0), EquivalenceMargin::Absolute(0.1));
        let comparison = comparison.expect("samples");
        let (low, high) = comparison.interval.expect("three each");
        assert!((low.number() - (2.0 - 4.154)).abs() < 0.01, "{low:?}");
        assert!((high.number() - (2.0 + 4.154)).abs() < 0.01, "{high:?}");
        assert_eq!(comparison.verdict, ComparisonVerdict::NotEnoughData);
    }

    #[test]
    fn verdicts() {
        let before = [300.0, 301.0, 299.0];
        let of = |after: &[f64]| {
            welch(&before, after, percent(95.0), EquivalenceMargin::Relative(percent(2.0)))
                .map(|comparison| comparison.verdict)
        };
        assert_eq!(of(&[300.5, 299.5, 300.0]), Some(ComparisonVerdict::Equal));
        assert_eq!(of(&[250.0, 251.0, 249.0]), Some(ComparisonVerdict::Different));
        assert_eq!(of(&[250.0, 251.0]), Some(ComparisonVerdict::NotEnoughData));
        assert_eq!(of(&[300.0; 3]), Some(ComparisonVerdict::Equal));
        assert_eq!(of(&[]), None);
    }
}
