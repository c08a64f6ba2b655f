//! Effect of a change on one figure.

use linerate_analysis::statistics::{
    BlockSample, SampleStatistic, SignedDifference, StatisticalQuantity, StudentEstimate,
};
use linerate_units::Ratio;

/// Largest factor that a pair can show: beyond it, one of the transfers carried nothing.
const MAX_FACTOR: f64 = 1000.0;

/// Least number of pairs for an interval.
const MIN_INTERVAL_PAIRS: usize = 3;

/// Figure without and with a change, over all pairs that count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeasuredEffect<Q> {
    /// Median without the change.
    pub before: Q,
    /// Value without the change, and the difference.
    pub after: Q,
    /// Effect on the median without the change: of rates and times by the pairs' mean ratio, of shares by their mean
    /// difference. The figure by which a change was selected is without the inflation that the selection adds.
    pub difference: SignedDifference<Q>,
    /// Confidence interval of the difference, lower end first, valid however long the series was; `None` for fewer than
    /// three pairs.
    pub interval: Option<(SignedDifference<Q>, SignedDifference<Q>)>,
}

impl<Q: StatisticalQuantity> MeasuredEffect<Q> {
    /// Computes the effect on a rate or a time from the ratios of pairs; `None` without pairs. `estimate`
    /// replaces their mean logarithm.
    pub(super) fn of_ratios(
        pairs: &[(Q, Q)],
        least_deviation: f64,
        tail: Ratio,
        estimate: Option<f64>,
    ) -> Option<Self> {
        let ratios: Vec<f64> = pairs.iter().map(|(before, after)| log_ratio(*before, *after)).collect();
        let before = median(pairs.iter().map(|(before, _)| *before))?;
        if before.number() <= 0.0 {
            let after = median(pairs.iter().map(|(_, after)| *after))?;
            return Some(Self { before, after, difference: SignedDifference::between(before, after), interval: None });
        }
        let of = |logarithm: f64| before.number() * logarithm.exp_m1();
        let mean = StudentEstimate::of_pairs(&ratios, least_deviation);
        let difference = estimate.or(mean.map(|mean| mean.mean)).or(ratios.first().copied())?;
        let interval = mean.map(|mean| mean.interval(tail)).map(|(low, high)| (of(low), of(high)));
        Some(Self::with(before, of(difference), interval, pairs.len()))
    }

    /// Computes the effect on a share from the differences of pairs; `None` without pairs.
    pub(super) fn of_differences(pairs: &[(Q, Q)], least_deviation: f64, tail: Ratio) -> Option<Self> {
        let differences: Vec<f64> = pairs.iter().map(|(before, after)| after.number() - before.number()).collect();
        let before = median(pairs.iter().map(|(before, _)| *before))?;
        let mean = StudentEstimate::of_pairs(&differences, least_deviation);
        let difference = mean.map(|mean| mean.mean).or(differences.first().copied())?;
        Some(Self::with(before, difference, mean.map(|mean| mean.interval(tail)), pairs.len()))
    }

    fn with(before: Q, difference: f64, interval: Option<(f64, f64)>, pairs: usize) -> Self {
        let interval = interval.filter(|_| pairs >= MIN_INTERVAL_PAIRS);
        let end = SignedDifference::from_number;
        Self {
            before,
            after: Q::from_number((before.number() + difference).max(0.0)),
            difference: SignedDifference::from_number(difference),
            interval: interval.map(|(low, high)| (end(low.min(difference)), end(high.max(difference)))),
        }
    }

    /// Returns the difference relative to the value without the change; `None` where that is zero.
    #[must_use]
    pub fn relative_difference(&self) -> Option<SignedDifference<Ratio>> {
        let share = Ratio::of(self.difference.magnitude.number(), self.before.number())?;
        Some(SignedDifference { negative: self.difference.negative, magnitude: share })
    }
}

/// Natural logarithm of the ratio, at most that of a thousand; zero where neither has a value.
pub(super) fn log_ratio<Q: StatisticalQuantity>(before: Q, after: Q) -> f64 {
    let (before, after) = (before.number(), after.number());
    if before <= 0.0 && after <= 0.0 {
        return 0.0;
    }
    (after / before).clamp(MAX_FACTOR.recip(), MAX_FACTOR).ln()
}

/// Median; `None` without values.
pub(super) fn median<Q: StatisticalQuantity>(values: impl Iterator<Item = Q>) -> Option<Q> {
    BlockSample::independent(&values.collect::<Vec<Q>>()).statistic(SampleStatistic::Median)
}
