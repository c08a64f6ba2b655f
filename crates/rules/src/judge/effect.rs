//! By how much a figure is different with a change.

use linerate_model::statistics::{Bootstrap, Quantity, Sample, Signed, Statistic};
use linerate_units::Ratio;

/// A figure without and with a change, over all pairs that count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effect<Q> {
    /// Its median without.
    pub before: Q,
    /// Its median with.
    pub after: Q,
    /// The median of the pairs' differences.
    pub difference: Signed<Q>,
    /// The interval of that median, lower end first; `None` of fewer than three pairs.
    pub interval: Option<(Signed<Q>, Signed<Q>)>,
}

impl<Q: Quantity> Effect<Q> {
    /// Of pairs; `None` of none.
    #[must_use]
    pub fn of(pairs: &[(Q, Q)], bootstrap: &Bootstrap) -> Option<Self> {
        let median = |values: Vec<Q>| Sample::independent(&values).statistic(Statistic::Median);
        let differences: Vec<f64> = pairs.iter().map(|(before, after)| after.number() - before.number()).collect();
        let estimate = Sample::independent(&differences).estimate(Statistic::Median, bootstrap)?;
        Some(Self {
            before: median(pairs.iter().map(|(before, _)| *before).collect())?,
            after: median(pairs.iter().map(|(_, after)| *after).collect())?,
            difference: Signed::from_number(estimate.value),
            interval: estimate
                .interval
                .map(|interval| (Signed::from_number(interval.low), Signed::from_number(interval.high))),
        })
    }

    /// The difference as a share of what it was; `None` where that was nothing.
    #[must_use]
    pub fn share(&self) -> Option<Signed<Ratio>> {
        let share = Ratio::of(self.difference.magnitude.number(), self.before.number())?;
        Some(Signed { negative: self.difference.negative, magnitude: share })
    }

    /// The difference, and the ends of its interval, as numbers in the quantity's unit.
    pub(super) fn numbers(&self) -> (f64, Option<(f64, f64)>) {
        (self.difference.number(), self.interval.map(|(low, high)| (low.number(), high.number())))
    }

    /// The same with less taken for better.
    pub(super) fn numbers_of_less(&self) -> (f64, Option<(f64, f64)>) {
        let (value, interval) = self.numbers();
        (-value, interval.map(|(low, high)| (-high, -low)))
    }
}
