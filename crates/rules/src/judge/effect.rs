//! Effect of a change on one figure.

use linerate_analysis::statistics::{
    BlockSample, BootstrapSettings, SampleStatistic, SignedDifference, StatisticalQuantity,
};
use linerate_units::Ratio;

/// Figure without and with a change, over all pairs that count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeasuredEffect<Q> {
    /// Median without the change.
    pub before: Q,
    /// Median with the change.
    pub after: Q,
    /// Median of the pairs' differences.
    pub difference: SignedDifference<Q>,
    /// Confidence interval of that median, lower end first; `None` for fewer than three pairs.
    pub interval: Option<(SignedDifference<Q>, SignedDifference<Q>)>,
}

impl<Q: StatisticalQuantity> MeasuredEffect<Q> {
    /// Computes the effect from pairs; `None` without pairs.
    #[must_use]
    pub fn from_pairs(pairs: &[(Q, Q)], bootstrap: &BootstrapSettings) -> Option<Self> {
        let median = |values: Vec<Q>| BlockSample::independent(&values).statistic(SampleStatistic::Median);
        let differences: Vec<f64> = pairs.iter().map(|(before, after)| after.number() - before.number()).collect();
        let estimate = BlockSample::independent(&differences).estimate(SampleStatistic::Median, bootstrap)?;
        Some(Self {
            before: median(pairs.iter().map(|(before, _)| *before).collect())?,
            after: median(pairs.iter().map(|(_, after)| *after).collect())?,
            difference: SignedDifference::from_number(estimate.value),
            interval: estimate.interval.map(|interval| {
                (SignedDifference::from_number(interval.low), SignedDifference::from_number(interval.high))
            }),
        })
    }

    /// Returns the difference relative to the value without the change; `None` where that is zero.
    #[must_use]
    pub fn relative_difference(&self) -> Option<SignedDifference<Ratio>> {
        let share = Ratio::of(self.difference.magnitude.number(), self.before.number())?;
        Some(SignedDifference { negative: self.difference.negative, magnitude: share })
    }

    /// Returns the difference and its interval as numbers in the quantity's unit.
    pub(super) fn numbers(&self) -> (f64, Option<(f64, f64)>) {
        (self.difference.number(), self.interval.map(|(low, high)| (low.number(), high.number())))
    }

    /// Returns the same with the sign reversed, for figures where less is better.
    pub(super) fn negated_numbers(&self) -> (f64, Option<(f64, f64)>) {
        let (value, interval) = self.numbers();
        (-value, interval.map(|(low, high)| (-high, -low)))
    }
}
