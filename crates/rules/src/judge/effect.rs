//! Effect of a change on one figure.

use linerate_analysis::statistics::{
    BlockSample, SampleStatistic, SignedDifference, StatisticalQuantity, StudentEstimate,
};
use linerate_units::Ratio;

/// Largest factor that a pair can show: beyond it, one of the transfers carried nothing.
const MAX_FACTOR: f64 = 1000.0;

/// Largest mean as a multiple of the largest measured value.
const MAX_EXCESS: f64 = 1.1;

/// Least number of pairs for an interval.
const MIN_INTERVAL_PAIRS: usize = 3;

/// Figure without and with a change, over all pairs that count: the median of the side that varies less, and the value
/// of the other side by the difference. A median of the other side may be far from its mean, and with a difference added
/// to it beyond everything that was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EffectEstimate<Q> {
    /// Value without the change.
    pub before: Q,
    /// Value with the change.
    pub after: Q,
    /// Effect: of rates and times by the pairs' mean ratio, of shares by their mean difference. The figure by which a
    /// change was selected is without the inflation that the selection adds.
    pub difference: SignedDifference<Q>,
    /// Confidence interval of the difference, lower end first, valid however long the series was; `None` for fewer than
    /// three pairs.
    pub interval: Option<(SignedDifference<Q>, SignedDifference<Q>)>,
}

/// Side of the pairs that varies less, with its median.
#[derive(Clone, Copy, Debug)]
enum SteadySide {
    Before(f64),
    After(f64),
}

impl SteadySide {
    /// Selects the side by the mean distance from its median; `of_median` divides that by the median.
    fn of<Q: StatisticalQuantity>(pairs: &[(Q, Q)], of_median: bool) -> Option<Self> {
        let spread = |side: fn(&(Q, Q)) -> Q| {
            let median = median(pairs.iter().map(side))?.number();
            let distance: f64 = pairs.iter().map(|pair| (side(pair).number() - median).abs()).sum();
            Some((median, if of_median { distance / median } else { distance }))
        };
        let (before, after) = (spread(|pair| pair.0)?, spread(|pair| pair.1)?);
        Some(if after.1 < before.1 { Self::After(after.0) } else { Self::Before(before.0) })
    }

    /// Difference of the sides at a ratio with this logarithm.
    fn by_ratio(self, logarithm: f64) -> f64 {
        match self {
            Self::Before(before) => before * logarithm.exp_m1(),
            Self::After(after) => -after * (-logarithm).exp_m1(),
        }
    }

    /// Values of both sides, given their difference.
    fn sides(self, difference: f64) -> (f64, f64) {
        match self {
            Self::Before(before) => (before, (before + difference).max(0.0)),
            Self::After(after) => ((after - difference).max(0.0), after),
        }
    }
}

impl<Q: StatisticalQuantity> EffectEstimate<Q> {
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
        let side = SteadySide::of(pairs, true)?;
        let mean = StudentEstimate::of_pairs(&ratios, least_deviation);
        let ratio = estimate.or(mean.map(|mean| mean.mean)).or(ratios.first().copied())?;
        let interval =
            mean.map(|mean| mean.interval(tail)).map(|(low, high)| (side.by_ratio(low), side.by_ratio(high)));
        // Few pairs that differ much do not exclude any factor, but the mean is not above all that was measured.
        let most = pairs.iter().flat_map(|pair| [pair.0, pair.1]).map(Q::number).fold(0.0, f64::max) * MAX_EXCESS;
        Some(Self::with(side, side.by_ratio(ratio), interval, (pairs.len(), most)))
    }

    /// Computes the effect on a share from the differences of pairs; `None` without pairs.
    pub(super) fn of_differences(pairs: &[(Q, Q)], least_deviation: f64, tail: Ratio) -> Option<Self> {
        let differences: Vec<f64> = pairs.iter().map(|(before, after)| after.number() - before.number()).collect();
        let side = SteadySide::of(pairs, false)?;
        let mean = StudentEstimate::of_pairs(&differences, least_deviation);
        let difference = mean.map(|mean| mean.mean).or(differences.first().copied())?;
        Some(Self::with(side, difference, mean.map(|mean| mean.interval(tail)), (pairs.len(), 1.0)))
    }

    /// Effect with an interval within which both sides are between zero and `most`.
    fn with(side: SteadySide, difference: f64, interval: Option<(f64, f64)>, (pairs, most): (usize, f64)) -> Self {
        let interval = interval.filter(|_| pairs >= MIN_INTERVAL_PAIRS);
        let end = SignedDifference::from_number;
        let (before, after) = side.sides(difference);
        let (least, most) = match side {
            SteadySide::Before(before) => (-before, most - before),
            SteadySide::After(after) => (after - most, after),
        };
        let interval = interval.map(|(low, high)| (low.max(least), high.min(most)));
        Self {
            before: Q::from_number(before),
            after: Q::from_number(after),
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
