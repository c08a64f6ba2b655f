//! Order of the verdicts: the cause whose removal gains most comes first, whatever its position in the table of rules.

use linerate_model::diagnosis::{BoundKind, Cause, Confidence, DiagnosisVerdict, ThroughputBound};
use linerate_units::{CompactSort, Ratio};

use super::TransferEvidence;
use super::cost::{CauseCost, CostKind, cost};
use super::counterfactual::{CostedVerdict, Counterfactuals, is_no_fault};
use super::full_path::FULL;

/// Gain below which a cause costs nothing that one measurement could show.
const MIN_GAIN: f64 = 0.07;

/// Share of the capacity from which the path is full for certain.
const MIN_CERTAIN_SHARE: f64 = 0.95;

/// Gain below which two runs of the same path may differ as much.
const MIN_CERTAIN_GAIN: f64 = 0.15;

/// Relative difference between goodputs that an estimate cannot tell apart.
const STEP: f64 = 0.025;

/// Share of packets out of order from which a full path's reordering is worth a report.
const MIN_REORDERED_SHARE: f64 = 0.01;

/// Segments that an episode of recovery repairs, from which it takes long, one in a round trip; and the share of the time from
/// which repairs take most of it.
const MIN_REPAIRS: u64 = 10;
const MIN_REPAIRING_SHARE: f64 = 0.75;

/// Share of the largest gain from which another cause may as well be the first.
const MIN_RIVAL_SHARE: f64 = 0.7;

/// Share of the time under another limit, from which it may be the first without losses.
const MIN_WINDOW_SHARE: f64 = 0.2;

/// Rate of the second half as a multiple of the whole transfer's, from which the start costs much.
const MIN_START_COST: f64 = 1.15;

/// Returns the verdicts in their order, each with its share and its estimate.
pub(super) fn ranked(
    evidence: &TransferEvidence<'_>,
    verdicts: Vec<DiagnosisVerdict>,
    bounds: &[ThroughputBound],
    is_consistent: bool,
) -> Vec<DiagnosisVerdict> {
    let costed: Vec<CostedVerdict> =
        verdicts.into_iter().map(|verdict| CostedVerdict { cost: cost(verdict.cause, evidence), verdict }).collect();
    let estimates = Counterfactuals::new(evidence, bounds, &costed);
    let mut order: Vec<(f64, usize)> =
        costed.iter().enumerate().map(|(index, one)| (rank(&estimates, one, evidence), index)).collect();
    order
        .sort_compactly_by(|(one, first), (other, second)| step(*other).total_cmp(&step(*one)).then(first.cmp(second)));
    order_losses_and_repairs(&costed, &mut order, evidence);
    let pair = needed_pair(&estimates, &order, evidence);
    if let Some((one, other)) = pair {
        order.sort_compactly_by_key(|(_, index)| (*index != one, *index != other));
    }
    let gains = (order.first().map_or(0.0, |(rank, _)| *rank), rival(&costed, &order));
    let mut ranked: Vec<DiagnosisVerdict> =
        order.iter().map(|(_, index)| with_cost(&costed, *index, pair, &estimates)).collect();
    if let Some(first) = ranked.first_mut() {
        let is_certain = is_consistent && pair.is_none() && is_undisputed(first.cause, &costed, evidence);
        let is_held = costed.iter().any(holds);
        first.confidence = confidence(first, gains, evidence, (is_certain, is_held));
    }
    let second = match (pair, ranked.as_slice()) {
        (Some(_), [_, second, ..]) => Some(format!("the other cause has to go as well ({})", second.cause.title())),
        _ => order
            .first()
            .and_then(|(_, index)| next_limit(costed[*index].cost.as_ref()?, gains.0, bounds, evidence))
            .map(|title| format!("another limit has the same rate ({title})")),
    };
    if let (Some(reason), Some(first)) = (second, ranked.first_mut()) {
        first.text = format!("{} Removed alone, it gains little: {reason}.", first.text);
    }
    ranked
}

/// True where no other cause may be the limit as well as the first.
fn is_undisputed(first: Cause, costed: &[CostedVerdict], evidence: &TransferEvidence<'_>) -> bool {
    // Whatever loses the packets that are repaired slowly may be the cause as well.
    let loses = costed.iter().filter_map(|one| one.cost).any(|cost| matches!(cost.kind, CostKind::LossShare { .. }));
    // So may what stretches the round trip that each repair takes.
    let repairs = first == Cause::SackOff && (loses || evidence.waits_in_reverse());
    let others = || costed.iter().filter(|one| one.verdict.cause != first);
    let shares = matches!(first, Cause::CrossTraffic | Cause::Asymmetric) && others().any(holds);
    let own = costed.iter().find(|one| one.verdict.cause == first).and_then(|one| one.cost);
    let hidden = own.is_some_and(|own| others().filter_map(|one| one.cost).any(|cost| hides(&own, &cost)));
    !repairs && !shares && !hidden
}

/// True for a cause of all losses, or a limit of a host, which holds the window, whatever other traffic or acknowledgements
/// take.
fn holds(one: &CostedVerdict) -> bool {
    one.cost.is_some_and(|cost| match cost.kind {
        CostKind::LossShare { share, .. } | CostKind::TimeShare { share, .. } => share >= MIN_RIVAL_SHARE,
        _ => false,
    })
}

/// True where another cause may take what the first one's removal gains: a window that holds a part of the time takes over
/// where nothing is lost any more, and a buffer too small for one flow drops what a larger window sends.
fn hides(first: &CauseCost, other: &CauseCost) -> bool {
    match (first.kind, other.kind) {
        (CostKind::LossShare { .. }, CostKind::TimeShare { share, .. }) => {
            other.is_window() && share >= MIN_WINDOW_SHARE
        }
        (CostKind::TimeShare { .. }, CostKind::LossShare { .. }) => {
            first.is_window() && other.cause == Cause::BufferTooSmall
        }
        _ => false,
    }
}

/// Bound that leaves hardly a gain to the first cause, where the path would carry more.
fn next_limit(
    first: &CauseCost,
    gain: f64,
    bounds: &[ThroughputBound],
    evidence: &TransferEvidence<'_>,
) -> Option<String> {
    let takes = !matches!(first.kind, CostKind::Nothing | CostKind::EveryByte { .. }) && first.cause != Cause::PathDead;
    let next =
        super::bounds::next(bounds, first.own).filter(|_| takes && gain < MIN_GAIN && !is_nearly_full(evidence))?;
    (next.kind != BoundKind::Path && next.rate <= evidence.steady * (1.0 + MIN_CERTAIN_GAIN))
        .then(|| next.kind.title().to_owned())
}

/// Orders the cause of losses and their slow repair. Without losses there is nothing to repair, but repaired ones still slow
/// the sender: where losses go on, their cause comes first if it gains about as much. Those of slow start alone, or of
/// episodes whose long repairs take most of the time, cost little where they are repaired at once: then the repair comes first.
fn order_losses_and_repairs(costed: &[CostedVerdict], order: &mut [(f64, usize)], evidence: &TransferEvidence<'_>) {
    let is_repair = |index: usize| costed[index].verdict.cause == Cause::SackOff;
    let is_loss = |index: usize| {
        let cost = costed[index].cost.as_ref();
        cost.is_some_and(|cost| matches!(cost.kind, CostKind::LossShare { .. }))
    };
    let Some((gain, first)) = order.first().copied().filter(|(gain, _)| *gain >= MIN_GAIN) else { return };
    let goes_on = evidence.late_retransmits.is_some_and(|count| !count.is_zero());
    let repaired = evidence.retransmits.map_or(0, linerate_units::SegmentCount::get);
    let is_long = evidence.episodes().is_some_and(|episodes| episodes > 0 && repaired >= MIN_REPAIRS * episodes);
    let takes_most = |index: usize| costed[index].cost.is_some_and(|cost| cost.share() >= MIN_REPAIRING_SHARE);
    let repairs_long = is_long && order.iter().any(|(_, index)| is_repair(*index) && takes_most(*index));
    // A queue that holds what the path holds is large enough where losses are repaired at once.
    let suffices = evidence
        .queue_of_search()
        .zip(evidence.bandwidth_delay_product())
        .is_some_and(|(queue, product)| queue >= product);
    let is_repaired_late = |index: usize| suffices && costed[index].verdict.cause == Cause::BufferTooSmall;
    let rival = if is_repair(first) && goes_on && !repairs_long {
        order
            .iter()
            .position(|(rank, index)| is_loss(*index) && !is_repaired_late(*index) && *rank >= MIN_RIVAL_SHARE * gain)
    } else if is_loss(first) && (repairs_long || evidence.loses_only_in_slow_start() || is_repaired_late(first)) {
        order.iter().position(|(rank, index)| is_repair(*index) && *rank >= MIN_GAIN)
    } else {
        None
    };
    if let Some(place) = rival {
        order[..=place].rotate_right(1);
    }
}

/// Gains that differ by less than an estimate can tell are equal: then the more specific name comes first, which is the
/// order of the rules.
fn step(gain: f64) -> f64 {
    (gain.max(-0.9).ln_1p() / STEP.ln_1p()).round()
}

/// Adds the share and the estimate of a verdict; of one of a pair the estimate is without both.
fn with_cost(
    costed: &[CostedVerdict],
    index: usize,
    pair: Option<(usize, usize)>,
    estimates: &Counterfactuals<'_>,
) -> DiagnosisVerdict {
    let other = pair.and_then(|(one, other)| match index {
        _ if index == one => Some(other),
        _ if index == other => Some(one),
        _ => None,
    });
    let own = &costed[index];
    let removed: Vec<&CauseCost> =
        [Some(index), other].into_iter().flatten().filter_map(|one| costed[one].cost.as_ref()).collect();
    DiagnosisVerdict {
        share: own.cost.as_ref().map(CauseCost::share).filter(|share| *share > 0.0).and_then(Ratio::new),
        without: own.cost.as_ref().and_then(|_| estimates.without(&removed)),
        together_with: other.map(|other| costed[other].verdict.cause),
        ..own.verdict.clone()
    }
}

/// Gain where it counts; below that faults that cost nothing come before the path that is full, and everything else
/// after it.
fn rank(estimates: &Counterfactuals<'_>, one: &CostedVerdict, evidence: &TransferEvidence<'_>) -> f64 {
    let Some(cost) = &one.cost else { return 0.0 };
    let mut gain = estimates.gain(&[cost]);
    let repairs_start = cost.cause == Cause::SackOff && evidence.loses_only_in_slow_start();
    let slows_start = cost.cause == Cause::CongestionControl && evidence.early_loss().is_some();
    if cost.cause == Cause::Asymmetric || slows_start || repairs_start {
        // Acknowledgements slow the start most, where the window grows by each; so does a window that was cut there, and the
        // repair of what slow start lost.
        gain = Some(estimates.gain_of_whole(cost)).filter(|whole| *whole >= MIN_GAIN).unwrap_or_default().max(gain);
    }
    if gain >= MIN_GAIN {
        return gain;
    }
    if is_fault_of_a_full_path(cost, evidence) || !is_nearly_full(evidence) {
        MIN_GAIN * 0.5 + gain * 0.5
    } else {
        gain - MIN_GAIN
    }
}

/// True when so little of the path is left that a small gain is none.
fn is_nearly_full(evidence: &TransferEvidence<'_>) -> bool {
    evidence.is_full() || evidence.used().is_some_and(|used| used >= FULL)
}

/// True for causes that are worth a report although they take nothing from this transfer.
fn is_fault_of_a_full_path(cost: &CauseCost, evidence: &TransferEvidence<'_>) -> bool {
    let reordered = evidence.path().and_then(|path| path.packets.as_ref()?.reordering).unwrap_or(0.0);
    matches!(cost.kind, CostKind::Nothing | CostKind::EveryByte { .. })
        && !matches!(cost.cause, Cause::Policer | Cause::Asymmetric)
        // Delays that vary on a shared path vary by the others' queue.
        && !(cost.cause == Cause::DelayVariation && super::rules::is_path_shared(evidence))
        // A rate that a program keeps leaves what the path has beyond it.
        || cost.cause == Cause::ApplicationPacing && super::rules::keeps_asked_rate(evidence)
        // Of two limits at the same rate, the one that a program chose is reached first, unless packets are lost.
        || cost.cause == Cause::SocketPacing && evidence.late_retransmits.is_none_or(linerate_units::SegmentCount::is_zero)
        || cost.cause == Cause::Reordering
            && (reordered >= MIN_REORDERED_SHARE || super::rules::is_reordering_seen(evidence))
}

/// Two causes that hold the transfer at the same rate, so that only the removal of both gains.
fn needed_pair(
    estimates: &Counterfactuals<'_>,
    order: &[(f64, usize)],
    evidence: &TransferEvidence<'_>,
) -> Option<(usize, usize)> {
    if is_nearly_full(evidence) || order.first().is_none_or(|(gain, _)| *gain >= MIN_GAIN) {
        return None;
    }
    let costs: Vec<(usize, &CauseCost)> =
        order.iter().filter_map(|(_, index)| Some((*index, estimates.all[*index].cost.as_ref()?))).collect();
    let pairs =
        costs.iter().enumerate().flat_map(|(place, one)| costs[place + 1..].iter().map(move |other| (one, other)));
    let gains = pairs
        .filter(|(one, other)| !one.1.covers(other.1))
        .map(|(one, other)| (estimates.gain(&[one.1, other.1]), (one.0, other.0)));
    // Of equal gains the first counts: the more specific names.
    let largest = |best: Option<(f64, (usize, usize))>, one: (f64, (usize, usize))| {
        if best.is_some_and(|best| step(best.0) >= step(one.0)) { best } else { Some(one) }
    };
    gains.filter(|(gain, _)| *gain >= MIN_GAIN).fold(None, largest).map(|(_, pair)| pair)
}

/// Largest gain by another limit than the first verdict's: the same one by another name is no rival.
fn rival(costed: &[CostedVerdict], order: &[(f64, usize)]) -> f64 {
    let cost = |index: usize| costed[index].cost.as_ref();
    let first = order.first().and_then(|(_, index)| cost(*index));
    let others = order
        .iter()
        .skip(1)
        .filter(|(_, index)| first.zip(cost(*index)).is_none_or(|(first, other)| !first.covers(other)));
    others.map(|(rank, _)| *rank).fold(0.0, f64::max)
}

/// Confidence of the first verdict: its rule's own, less where another cause may gain as much, where nothing gains, or
/// where a figure contradicts the measurement.
fn confidence(
    first: &DiagnosisVerdict,
    (gain, rival): (f64, f64),
    evidence: &TransferEvidence<'_>,
    (is_certain, is_held): (bool, bool),
) -> Confidence {
    // No limit is its rival.
    if first.cause == Cause::PathDead {
        return first.confidence;
    }
    // Other traffic to the receiver need not cross the bottleneck.
    let may_be_apart = first.cause == Cause::CrossTraffic && evidence.is_full();
    // Of a queue that others' traffic passes as well, their part may be the larger; and packets out of order may have cost
    // nothing where the path is full.
    let is_shared = first.cause == Cause::SenderQueue && super::rules::is_path_shared(evidence);
    let is_harmless = first.cause == Cause::Reordering && gain < MIN_GAIN;
    // A start that costs much may be what limits the whole.
    let starts_slowly = evidence.steady.bits_per_second() >= MIN_START_COST * evidence.goodput.bits_per_second();
    let most = if may_be_apart || is_shared || is_harmless || starts_slowly && !is_no_fault(first.cause) {
        Confidence::Medium
    } else if is_no_fault(first.cause) {
        let loses = evidence.late_retransmits.is_none_or(|count| !count.is_zero());
        // A search that met the same traffic measured what that leaves.
        // Of the upper end of the capacity's interval: less may be left of it than the measured one shows.
        let most = super::capacity::high_share(evidence.observation);
        let is_doubtful = (loses || is_held) && evidence.used().is_none_or(|used| used < MIN_CERTAIN_SHARE * most)
            || super::rules::is_path_shared(evidence);
        if is_doubtful { Confidence::Medium } else { Confidence::High }
    } else if gain >= MIN_GAIN && (rival >= MIN_RIVAL_SHARE * gain || gain < MIN_CERTAIN_GAIN) {
        Confidence::Medium
    } else if gain < MIN_GAIN && !evidence.is_full() {
        Confidence::Low
    } else {
        Confidence::High
    };
    first.confidence.min(most).min(if is_certain { Confidence::High } else { Confidence::Medium })
}
