//! Goodput without each cause: the counterfactual by which verdicts are ranked.
//!
//! A cause either holds the rate for a share of the time, or takes a share of the loss events, or a part of every byte.
//! Without it, that part of the transfer runs at the next bound: the lowest of the resources that are not the cause's
//! own, and of the rates that the other causes allow alone.

use core::time::Duration;

use linerate_analysis::formulas::slow_start_time;
use linerate_model::diagnosis::{
    BoundKind, Cause, DiagnosisVerdict, GoodputEstimate, SenderState, StateShare, ThroughputBound,
};
use linerate_units::{BitRate, Mss};

use super::TransferEvidence;
use super::cost::{CauseCost, CostKind};

/// Share of the time without any delivery from which nothing else about the path is known.
pub(super) const MAX_STALLED_SHARE: f64 = 0.9;
/// Largest share of a transfer that slow start takes in an estimate.
const MAX_START_SHARE: f64 = 0.5;
/// Share of the gain by which an estimate may be too high, and share of the goodput by which it may be too low, where the
/// next bound is measured: four of five random paths lie between (docs/truth-random.md).
const ERROR_OF_BOUNDS: (f64, f64) = (0.35, 0.15);
/// The same where the loss response of a congestion control is reckoned with.
const ERROR_OF_LOSSES: (f64, f64) = (0.8, 0.4);
/// Share of the measured capacity that a transfer without its host's limit gets at least: the measurement met the other
/// traffic as well.
const MIN_FAIR_SHARE: f64 = 0.5;
/// Share of the time under a limit of a host, from which other traffic takes nothing.
const MIN_HELD_SHARE: f64 = 0.95;

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
    /// Seconds of the transfer, round trip at rest and segment size, by which slow start is reckoned.
    elapsed: f64,
    base: Option<Duration>,
    segment: Option<Mss>,
    /// Loaded round trip as a multiple of that of full packets at rest, as it is and with acknowledgements that take no time.
    stretches: (f64, f64),
    /// True where acknowledgements make round trips longer.
    is_lengthened: bool,
    /// Rate at which acknowledgements fill the reverse direction; `None` where it is unknown, or they wait nowhere.
    acknowledged: Option<f64>,
    /// True where the send buffer or late acknowledgements make the sender send in bursts.
    bursts: bool,
    /// Share of the path's rate that the transfer reaches with the path's queue.
    filled: f64,
    /// Rates of the windows that the receiver's kernel offers where no program sets the buffer: as it is set, and where it grows
    /// buffers.
    kernel_windows: (Option<f64>, Option<f64>),
    /// Upper end of the capacity's interval as a multiple of the capacity.
    high_share: f64,
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
        let elapsed = evidence.observation.elapsed.as_secs_f64();
        let (base, segment) = (evidence.base, evidence.segment);
        let (stretches, is_lengthened) = (evidence.stretches(), evidence.lengthens_round_trips());
        let acknowledged = evidence.acknowledged_rate().filter(|_| is_lengthened).map(BitRate::bits_per_second);
        let bursts = evidence.overfilling_write().is_some() || evidence.late_acknowledgements().is_some();
        let filled = evidence.filled_share();
        let window = |grows| super::bounds::kernel_window(evidence, grows).map(BitRate::bits_per_second);
        let kernel_windows = (window(!super::rules::is_autotuning_off(evidence)), window(true));
        Self {
            steady,
            whole,
            elapsed,
            base,
            segment,
            stretches,
            is_lengthened,
            acknowledged,
            bursts,
            filled,
            kernel_windows,
            high_share: super::capacity::high_share(evidence.observation),
            bounds,
            all,
        }
    }

    /// Lowest bound of the resources that stay without these causes; `None` where none is known, or where the path behind
    /// a limit was measured through that limit only.
    fn remaining_bound(&self, removed: &[&CauseCost]) -> Option<f64> {
        let is_traffic = |cost: &&CauseCost| matches!(cost.kind, CostKind::OtherTraffic { .. });
        if removed.iter().any(|cost| cost.own.contains(&BoundKind::Path) && !is_traffic(cost)) {
            return None;
        }
        // Beside another cause, the rate of other traffic is the path's again.
        let freed = removed.iter().find_map(|cost| match cost.kind {
            CostKind::OtherTraffic { rate } if removed.len() > 1 => Some(rate),
            _ => None,
        });
        // Losses count by the verdicts that name them, not by the formula for all of them.
        let stays = |kind: BoundKind| kind != BoundKind::Loss && removed.iter().all(|cost| !cost.own.contains(&kind));
        // A path whose queue is small is not filled, once nothing else holds the transfer back.
        let is_answer = |cost: &&CauseCost| cost.cause == Cause::CongestionControl;
        // Where a small buffer was found, its verdict has the cost, unless that goes with the bursts.
        let is_found =
            self.all.iter().any(|one| one.verdict.cause == Cause::BufferTooSmall) && !self.ends_bursts(removed);
        let filled = if is_found || removed.iter().any(is_answer) { 1.0 } else { self.filled };
        let share = |kind: BoundKind| if kind == BoundKind::Path { filled } else { 1.0 };
        let rates = self.bounds.iter().filter(|one| stays(one.kind));
        let path =
            self.bounds.iter().find(|one| one.kind == BoundKind::Path).map(|one| one.rate.bits_per_second() * filled);
        let rates = rates.map(|one| one.rate.bits_per_second() * share(one.kind));
        let rates = rates.chain(self.window_left(removed)).chain(freed.zip(path).map(|(freed, path)| freed + path));
        rates.min_by(f64::total_cmp).map(|rate| rate.max(self.steady))
    }

    /// Rate of the receive window that the kernel offers without the setting that is removed.
    fn window_left(&self, removed: &[&CauseCost]) -> Option<f64> {
        let goes = |cause| removed.iter().any(|cost| cost.cause == cause);
        match (goes(Cause::SocketBuffer), goes(Cause::AutotuningOff)) {
            (_, true) => self.kernel_windows.1,
            (true, false) => self.kernel_windows.0,
            (false, false) => None,
        }
    }

    /// Rate that a cause allows where everything else would reach `other`.
    fn alone(&self, cost: &CauseCost, other: f64) -> f64 {
        match cost.kind {
            // A window that waits for its acknowledgements carries more where it is larger, until they fill their direction.
            CostKind::TimeShare { share, rate } => {
                let acknowledged = self.acknowledged.filter(|_| cost.cause == Cause::Asymmetric);
                acknowledged.map_or(share * rate.min(other) + (1.0 - share) * other, |rate| rate.min(other))
            }
            CostKind::Stalled { share } | CostKind::Waiting { share } => other * (1.0 - share),
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
        // Other traffic fills the buffer, too.
        let is_freed = removed.iter().any(|cost| matches!(cost.kind, CostKind::OtherTraffic { .. }));
        let is_smooth = self.ends_bursts(removed);
        let others = others.filter(|cost| !((is_freed || is_smooth) && cost.cause == Cause::BufferTooSmall));
        // Without losses there is nothing to repair.
        let is_lossless = removed.iter().any(|cost| matches!(cost.kind, CostKind::LossShare { .. }));
        let others = others.filter(|cost| !(is_lossless && cost.cause == Cause::SackOff));
        let others = others.filter(|cost| removed.iter().all(|gone| gone.cause != cost.cause && !gone.covers(cost)));
        // Nor do round trips wait behind it, or acknowledgements in a narrow direction: a window allows more.
        let is_quick = self.is_lengthened && removed.iter().any(|cost| cost.cause == Cause::Asymmetric);
        let stretch = match (is_freed, is_quick) {
            (_, true) => self.stretches.1,
            (true, false) => self.stretches.0,
            (false, false) => 1.0,
        };
        let repairs = removed.iter().find(|cost| cost.cause == Cause::SackOff).map_or(0.0, |cost| cost.share());
        let changed = others.map(|cost| cost.without_queue(stretch).without_repairs(repairs));
        let is_held = |cost: &&CauseCost| cost.is_window() && cost.share() >= MIN_HELD_SHARE;
        let fair = if removed.iter().all(is_held) { hard * MIN_FAIR_SHARE } else { 0.0 };
        let beside = |cost: CauseCost| match cost.kind {
            CostKind::OtherTraffic { .. } => self.alone(&cost, hard).max(fair),
            _ => self.alone(&cost, hard),
        };
        Some(changed.map(beside).fold(hard, f64::min))
    }

    /// True when data no longer leaves in bursts, which fill a small buffer, too: a send buffer that a single write overfills
    /// causes them, and a reader that lets acknowledgements leave late.
    fn ends_bursts(&self, removed: &[&CauseCost]) -> bool {
        self.bursts && removed.iter().any(|cost| matches!(cost.cause, Cause::SendBuffer | Cause::SlowReader))
    }

    /// Goodput without these causes; `None` where no next bound is known.
    fn rate_without(&self, removed: &[&CauseCost]) -> Option<f64> {
        let freed = removed.iter().find_map(|cost| match cost.kind {
            CostKind::OtherTraffic { rate } => Some(self.steady + rate),
            _ => None,
        });
        let next = self.next(removed).or(freed)?;
        let relieved = |cost: &CauseCost| match cost.kind {
            // With the bursts, their losses end as well.
            CostKind::TimeShare { share, .. } if self.ends_bursts(removed) => {
                self.steady + share * (next - self.steady).max(0.0)
            }
            CostKind::TimeShare { share, rate } => self.steady + share * (next - rate).max(0.0),
            CostKind::Waiting { share } => self.steady / (1.0 - share),
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

    /// Estimate without these causes, with its range; `None` where nothing arrived, at last or at all, or the
    /// path's capacity is unknown, so that nothing is known about what comes next.
    pub(super) fn without(&self, removed: &[&CauseCost]) -> Option<GoodputEstimate> {
        let is_dead = removed.iter().any(|cost| {
            cost.cause == Cause::PathDead
                || cost.cause != Cause::SackOff
                    && matches!(cost.kind, CostKind::Stalled { share } if share >= MAX_STALLED_SHARE)
        });
        if is_dead || !self.is_path_known() || self.steady <= 0.0 {
            return None;
        }
        if removed.iter().all(|cost| matches!(cost.kind, CostKind::Nothing)) {
            let same = BitRate::from_bits_per_second(self.whole);
            return Some(GoodputEstimate { low: same, expected: same, high: same });
        }
        let expected = self.of_whole(self.rate_without(removed)?);
        let loses = removed.iter().any(|cost| matches!(cost.kind, CostKind::LossShare { .. }));
        let (less, more) = if loses { ERROR_OF_LOSSES } else { ERROR_OF_BOUNDS };
        let gain = expected - self.whole;
        let bits = BitRate::from_bits_per_second;
        Some(GoodputEstimate {
            low: bits((expected - gain * less).max(self.whole)),
            expected: bits(expected),
            high: bits((expected * (1.0 + more)).min(self.most(removed).max(expected))),
        })
    }

    /// True where the path's capacity is a bound.
    fn is_path_known(&self) -> bool {
        self.bounds.iter().any(|one| one.kind == BoundKind::Path)
    }

    /// Upper end of the path's capacity, which no removal exceeds; unlimited where what is removed is the path's own.
    fn most(&self, removed: &[&CauseCost]) -> f64 {
        let frees_path = removed.iter().any(|cost| cost.own.contains(&BoundKind::Path));
        let path = self.bounds.iter().find(|one| one.kind == BoundKind::Path).filter(|_| !frees_path);
        path.map_or(f64::INFINITY, |path| path.rate.bits_per_second() * self.high_share)
    }

    /// Mean of a whole transfer that reaches this rate after slow start; never below the measured one.
    fn of_whole(&self, rate: f64) -> f64 {
        let start = self.base.zip(self.segment).and_then(|(base, segment)| {
            let full = slow_start_time(BitRate::from_bits_per_second(rate), base, segment)?;
            // The last round trips of slow start carry most of a round trip and a half at that rate.
            Some((full.as_secs_f64() - 1.5 * base.as_secs_f64()).max(0.0))
        });
        let idle = start.map_or(0.0, |start| start / self.elapsed.max(f64::MIN_POSITIVE)).min(MAX_START_SHARE);
        (rate * (1.0 - idle)).max(self.whole)
    }

    /// Gain of a removal as a share of the mean of the whole transfer; 0 where it cannot be estimated.
    pub(super) fn gain_of_whole(&self, cost: &CauseCost) -> f64 {
        let takes = !matches!(cost.kind, CostKind::Nothing);
        let without = self.without(&[cost]).filter(|_| takes && self.whole > 0.0);
        without.map_or(0.0, |without| without.expected.bits_per_second() / self.whole - 1.0)
    }

    /// Gain of a removal as a share of the goodput. Where no next bound is known, a cause that explains all of the time
    /// counts as [`UNKNOWN_GAIN`].
    pub(super) fn gain(&self, removed: &[&CauseCost]) -> f64 {
        // A stall counts for the whole transfer, also where its second half had none.
        let stalled = removed.iter().filter(|cost| cost.cause != Cause::SackOff);
        if let [CauseCost { kind: CostKind::Stalled { share }, .. }] = stalled.collect::<Vec<_>>()[..] {
            return (share / (1.0 - share).max(1e-3)).min(UNKNOWN_GAIN);
        }
        if self.steady <= 0.0 {
            return removed.iter().map(|cost| cost.share() * UNKNOWN_GAIN).fold(0.0, f64::max);
        }
        let unknown = removed.iter().map(|cost| cost.share() * UNKNOWN_GAIN).fold(0.0, f64::max);
        let gain = self.rate_without(removed).map_or(unknown, |rate| rate / self.steady - 1.0);
        // The path may carry less than the bounds of the hosts allow.
        let is_open =
            !self.is_path_known() && removed.iter().all(|cost| matches!(cost.kind, CostKind::TimeShare { .. }));
        if is_open { gain.min(unknown) } else { gain }
    }
}

/// Gain of a cause without a known next bound.
pub(super) const UNKNOWN_GAIN: f64 = 10.0;

/// Share of the transfer's time in one of these states of the sender.
pub(super) fn time_in(states: &[StateShare], wanted: &[SenderState]) -> f64 {
    let shares = states.iter().filter(|one| wanted.contains(&one.state)).map(|one| one.share.get());
    // The sum of no floating-point numbers is -0.
    shares.fold(0.0, |sum, share| sum + share)
}

/// True for verdicts that name no fault.
pub(super) const fn is_no_fault(cause: Cause) -> bool {
    matches!(cause, Cause::LinkRate | Cause::NotEnoughData | Cause::Unclear)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_time_is_no_negative_time() {
        let sum = time_in(&[], &[SenderState::Stalled]);
        assert!(sum.is_sign_positive() && sum.abs() < f64::MIN_POSITIVE, "{sum}");
    }
}
