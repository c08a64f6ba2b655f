//! Goodput without each cause: the counterfactual by which verdicts are ranked.
//!
//! A cause either holds the rate for a share of the time, or takes a share of the loss events, or a part of every byte.
//! Without it, that part of the transfer runs at the next bound: the lowest of the resources that are not the cause's
//! own, and of the rates that the other causes allow alone.

use linerate_model::diagnosis::{BoundKind, Cause, DiagnosisVerdict, GoodputEstimate, SenderState, ThroughputBound};
use linerate_units::{BitRate, Ratio};

use super::TransferEvidence;
use super::cost::{CauseCost, CostKind};

/// Relative error of an estimate whose next bound is measured.
const ERROR_OF_BOUNDS: f64 = 0.1;
/// Relative error of an estimate by the loss response of a congestion control.
const ERROR_OF_LOSSES: f64 = 0.4;

/// Verdict with its cost.
pub(super) struct CostedVerdict {
    pub(super) verdict: DiagnosisVerdict,
    pub(super) cost: Option<CauseCost>,
}

/// Verdicts of one transfer with the bounds between which they are compared, in bits per second.
pub(super) struct Counterfactuals<'a> {
    pub(super) steady: f64,
    /// Mean of the whole transfer.
    pub(super) whole: f64,
    pub(super) bounds: &'a [ThroughputBound],
    pub(super) all: &'a [CostedVerdict],
}

impl<'a> Counterfactuals<'a> {
    /// Collects what the estimates of a transfer need.
    pub(super) fn new(
        evidence: &TransferEvidence<'_>,
        bounds: &'a [ThroughputBound],
        all: &'a [CostedVerdict],
    ) -> Self {
        let (steady, whole) = (evidence.steady.bits_per_second(), evidence.goodput.bits_per_second());
        Self { steady, whole, bounds, all }
    }

    /// Lowest bound of the resources that stay without these causes; `None` where none is known.
    fn remaining_bound(&self, removed: &[&CauseCost]) -> Option<f64> {
        // Losses count by the verdicts that name them, not by the formula for all of them.
        let stays = |kind: BoundKind| kind != BoundKind::Loss && removed.iter().all(|cost| !cost.own.contains(&kind));
        let rates = self.bounds.iter().filter(|one| stays(one.kind)).map(|one| one.rate.bits_per_second());
        rates.min_by(f64::total_cmp).map(|rate| rate.max(self.steady))
    }

    /// Rate that a cause allows where everything else would reach `other`.
    fn alone(&self, cost: &CauseCost, other: f64) -> f64 {
        match cost.kind {
            CostKind::TimeShare { share, rate } => share * rate.min(other) + (1.0 - share) * other,
            CostKind::Stalled { share } => other * (1.0 - share),
            CostKind::LossShare { alone, .. } => other.min(alone),
            CostKind::EveryByte { gain } => other / (1.0 + gain),
            CostKind::OtherTraffic { rate } => (other - rate).max(self.steady),
            CostKind::Nothing => other,
        }
        .max(self.steady.min(other))
    }

    /// Next bound without these causes; `None` where nothing else is known to limit.
    fn next(&self, removed: &[&CauseCost]) -> Option<f64> {
        let hard = self.remaining_bound(removed)?;
        let others = self.all.iter().filter_map(|one| one.cost.as_ref());
        let others = others.filter(|cost| removed.iter().all(|gone| gone.cause != cost.cause && !gone.covers(cost)));
        Some(others.map(|cost| self.alone(cost, hard)).fold(hard, f64::min))
    }

    /// Goodput without these causes; `None` where no next bound is known.
    fn rate_without(&self, removed: &[&CauseCost]) -> Option<f64> {
        let freed = removed.iter().find_map(|cost| match cost.kind {
            CostKind::OtherTraffic { rate } => Some(self.steady + rate),
            _ => None,
        });
        let next = self.next(removed).or(freed)?;
        let relieved = |cost: &CauseCost| match cost.kind {
            CostKind::TimeShare { share, rate } => self.steady + share * (next - rate).max(0.0),
            CostKind::Stalled { share } if share < 1.0 => self.whole / (1.0 - share),
            CostKind::Stalled { .. } => next,
            CostKind::LossShare { share, exponent, time, .. } => {
                let others = (1.0 - share).max(1e-6);
                let free = next.min(self.steady / others.powf(exponent));
                self.steady + time * (free - self.steady).max(0.0)
            }
            CostKind::EveryByte { gain } => self.steady * (1.0 + gain),
            CostKind::OtherTraffic { rate } => self.steady + rate,
            CostKind::Nothing => self.steady,
        };
        let best = removed.iter().map(|cost| relieved(cost)).fold(self.steady, f64::max);
        Some(best.min(next).max(self.steady))
    }

    /// Estimate for one cause, with its range.
    pub(super) fn without(&self, cost: &CauseCost) -> Option<GoodputEstimate> {
        let expected = self.rate_without(&[cost])?;
        let error = if matches!(cost.kind, CostKind::LossShare { .. }) { ERROR_OF_LOSSES } else { ERROR_OF_BOUNDS };
        let gain = expected - self.steady;
        let bits = BitRate::from_bits_per_second;
        Some(GoodputEstimate {
            low: bits((expected - gain * error * 2.0).max(self.steady)),
            expected: bits(expected),
            high: bits(expected * (1.0 + error)),
        })
    }

    /// Gain of a removal as a share of the goodput. Where no next bound is known, a cause that explains all of the time
    /// counts as [`UNKNOWN_GAIN`].
    pub(super) fn gain(&self, removed: &[&CauseCost]) -> f64 {
        // A stall counts for the whole transfer, also where its second half had none.
        if let [CauseCost { kind: CostKind::Stalled { share }, .. }] = removed {
            return (share / (1.0 - share).max(1e-3)).min(UNKNOWN_GAIN);
        }
        if self.steady <= 0.0 {
            return removed.iter().map(|cost| cost.share() * UNKNOWN_GAIN).fold(0.0, f64::max);
        }
        self.rate_without(removed).map_or_else(
            || removed.iter().map(|cost| cost.share() * UNKNOWN_GAIN).fold(0.0, f64::max),
            |rate| rate / self.steady - 1.0,
        )
    }
}

/// Gain of a cause without a known next bound.
pub(super) const UNKNOWN_GAIN: f64 = 10.0;

/// Share of the transfer's time in one of these states of the sender.
pub(super) fn time_in(states: &[(SenderState, Ratio)], wanted: &[SenderState]) -> f64 {
    states.iter().filter(|(state, _)| wanted.contains(state)).map(|(_, share)| share.get()).sum()
}

/// True for verdicts that name no fault.
pub(super) const fn is_no_fault(cause: Cause) -> bool {
    matches!(cause, Cause::LinkRate | Cause::NotEnoughData | Cause::Unclear)
}
