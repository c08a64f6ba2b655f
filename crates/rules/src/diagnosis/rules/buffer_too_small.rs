//! The window reached the bandwidth-delay product, and was halved before a queue could form.

use linerate_model::diagnosis::{Cause, DiagnosisVerdict};

use linerate_units::ByteCount;

use super::super::DiagnosisRule;
use super::super::evidence::TransferEvidence;
use super::super::path_loss::{OwnLoss, SEPARATING_MEASUREMENT};
use super::super::text::{VerdictBuilder, percent, percent_of, size, time, verdict};

/// Share of the loss events at a full window from which the buffer is a cause.
const MIN_WINDOW_SHARE: f64 = 0.2;
/// The same where the bandwidth-delay product is unknown, so that the largest window is taken for it: of losses by chance, some
/// fall at large windows as well.
const MIN_RECURRING_SHARE: f64 = 0.5;
/// Share of the bandwidth-delay product from which the window itself causes the losses.
const MIN_REACHED_SHARE: f64 = 0.9;

/// The window reached the bandwidth-delay product, and was halved before a queue could form.
pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    id: "buffer-too-small",
    test: "The window reached the bandwidth-delay product, and was halved before a queue could form.",
    citation: "Appenzeller et al., SIGCOMM 2004: one flow needs a buffer of a bandwidth-delay product",
    check,
};

/// Share of a bandwidth-delay product that CUBIC needs: it keeps 0.7 of its window, so that the link stays busy from a
/// window of 1 / 0.7 on (RFC 9438 section 4.6).
const CUBIC_NEED: f64 = 0.43;
/// Largest buffer, in packets, that is too small for the bursts of any flow.
const MAX_TINY_BUFFER: f64 = 10.0;
/// Queue of the search as a multiple of the one under load, above which the latter does not show what the buffer holds.
const MAX_SEARCHED: u64 = 4;
/// Retransmitted share from which losses hold a window of a few packets down.
const MIN_RETRANSMITTED_SHARE: f64 = 0.001;

/// Losses of a transfer that does not fill the path, although its window would.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QueueLosses {
    /// In slow start alone.
    InSlowStart,
    /// At a window of the bandwidth-delay product, with hardly any queue.
    AtFullWindow,
    /// At a queue that is full, and empty after each of them.
    AtFullQueue,
}

/// Returns the losses that hold the window at what the path holds without a queue, or below.
pub(super) fn found_losses(evidence: &TransferEvidence<'_>) -> Option<QueueLosses> {
    // What the receiver had already was late, or out of order, and no buffer dropped it.
    let is_lossless =
        evidence.retransmits.is_none_or(linerate_units::SegmentCount::is_zero) || evidence.retransmits_needlessly();
    if evidence.is_full() || is_lossless || super::overfills_buffer(evidence) {
        return None;
    }
    let flight = evidence.largest_in_flight?;
    let without_queue = evidence.loses_without_queue();
    let is_single = overshoots_once(evidence) || evidence.overflows_early();
    // A queue that holds what one flow needs is not too small.
    let suffices = evidence.searched_queue_suffices();
    // A sender that paces keeps no queue, and losses at its start cost it nothing later.
    let costs_nothing = evidence.capacity.is_none() && evidence.tolerates_losses();
    if without_queue && (evidence.loses_only_in_slow_start() && !suffices || is_single) && !costs_nothing {
        return Some(QueueLosses::InSlowStart);
    }
    // Where the capacity is unknown, slow start alone decides.
    let reached = evidence
        .bandwidth_delay_product()
        .is_some_and(|product| flight.as_f64() >= product.as_f64() * MIN_REACHED_SHARE);
    let losses = evidence.losses();
    let is_known = evidence.bandwidth_delay_product().is_some();
    let least = if is_known { MIN_WINDOW_SHARE } else { MIN_RECURRING_SHARE };
    let is_share = |events| losses.share(events).is_some_and(|share| share.get() >= least);
    // Losses that are not the path's own come from a buffer, at whatever window.
    let is_refuted = evidence.own_loss() == OwnLoss::Refuted;
    if without_queue && (reached || is_refuted) && is_share(losses.window) {
        return Some(QueueLosses::AtFullWindow);
    }
    // A host that drops packets has a queue as well.
    let is_of_path = super::host_drops::RULE.is_silent(evidence);
    (is_of_path && is_share(losses.queue + losses.window) && is_small(evidence)).then_some(QueueLosses::AtFullQueue)
}

/// True when slow start lost several segments at once and nothing was lost since, where the search for the capacity filled
/// a queue that is too small for one flow.
fn overshoots_once(evidence: &TransferEvidence<'_>) -> bool {
    let (segments, _) = evidence.overshoots();
    let is_all = segments > 0 && evidence.retransmits.is_some_and(|count| count.get() <= segments);
    let is_small = evidence.queue_of_search().zip(needed(evidence)).is_some_and(|(queue, needed)| queue < needed);
    is_all && is_small
}

/// True when losses at a full window or after a queue hold the transfer below what the path carries, in the second half or before.
pub(super) fn loses_to_a_queue(evidence: &TransferEvidence<'_>) -> bool {
    let losses = evidence.losses();
    let to_a_queue = losses.share(losses.window + losses.queue).is_some_and(|share| share.get() >= MIN_WINDOW_SHARE);
    found_losses(evidence).is_some() || to_a_queue && !evidence.is_full() && !super::overfills_buffer(evidence)
}

fn check(evidence: &TransferEvidence<'_>) -> Option<DiagnosisVerdict> {
    if super::drops_early(evidence) {
        return None;
    }
    let flight = evidence.largest_in_flight?;
    let found = found_losses(evidence)?;
    let at_the_start = found == QueueLosses::InSlowStart;
    let runs_empty = found == QueueLosses::AtFullQueue;
    let losses = evidence.losses();
    let queue = evidence.queueing().map_or("not measured".to_owned(), |(_, high)| time(high));
    let when = if at_the_start {
        "slow start overflowed it, and nothing was lost since".to_owned()
    } else {
        format!("at {} in flight packets are dropped", size(flight))
    };
    let text = if runs_empty {
        format!(
            "The bottleneck's buffer is too small for one flow: it is full at a queue of {queue}, and runs empty after each loss."
        )
    } else {
        format!("The bottleneck's buffer is too small for one flow: {when}, with hardly any queue ({queue}).")
    };
    let found = verdict(Cause::BufferTooSmall, evidence.confidence_in_losses(), text);
    let is_open = evidence.own_loss() == OwnLoss::Unknown;
    let found = if is_open { found.advice(SEPARATING_MEASUREMENT) } else { found };
    Some(
        found
            .figure("bandwidth-delay product", evidence.bandwidth_delay_product().map(size))
            .figure("path utilisation", evidence.used().map(percent_of))
            .figure("losses at that window", losses.share(losses.window).map(percent))
            .figure("losses at a full queue", losses.share(losses.queue).map(percent))
            .figure("retransmitted", evidence.retransmitted.map(percent))
            .advice(
                "pacing spreads the bursts that the buffer cannot hold (`fq`, BBR); several connections fill each \
                other's gaps",
            ),
    )
}

/// True when the queue at which packets are dropped is smaller than a bandwidth-delay product, or a few packets.
fn is_small(evidence: &TransferEvidence<'_>) -> bool {
    let Some((_, high)) = evidence.queueing() else { return false };
    let queue = evidence.steady * high;
    // A queue that was met later than slow start filled it is not its size.
    let holds_more = evidence.searched_queue_suffices()
        && evidence.queue_of_search().is_some_and(|searched| searched > queue * MAX_SEARCHED);
    let lost = evidence.retransmitted.is_some_and(|share| share.get() >= MIN_RETRANSMITTED_SHARE);
    let late = evidence.late_retransmits.is_none_or(|count| !count.is_zero());
    let packets = evidence.segment.map(|segment| queue.as_f64() / f64::from(segment.get()).max(1.0));
    let is_tiny = lost && packets.is_some_and(|packets| packets <= MAX_TINY_BUFFER);
    let below_product = needed(evidence).is_some_and(|needed| queue < needed);
    late && !holds_more && (below_product || is_tiny)
}

/// Buffer that one flow needs to fill the path.
pub(in super::super) fn needed(evidence: &TransferEvidence<'_>) -> Option<ByteCount> {
    let share = if evidence.uses("cubic") { CUBIC_NEED } else { 1.0 };
    Some(ByteCount::from_f64(evidence.bandwidth_delay_product()?.as_f64() * share))
}
