//! The transfer gets nine tenths of the path's capacity, or three quarters with a persistent queue.

use core::time::Duration;

use linerate_model::diagnosis::{Cause, Confidence, DiagnosisVerdict};
use linerate_units::Ratio;

use super::super::DiagnosisRule;
use super::super::evidence::TransferEvidence;
use super::super::full_path::FULL;
use super::super::text::{VerdictBuilder, percent, percent_of, rate, time, verdict};

/// Share of the capacity that fills the path when the queueing delay is at least 1 ms and a fifth of the round trip.
const MIN_FULL_SHARE_WITH_QUEUE: f64 = 0.75;
const MIN_QUEUE_DELAY: Duration = Duration::from_millis(1);

/// Share of the capacity from which nothing worth a change is left.
pub(super) const MIN_SATURATED_SHARE: f64 = 0.95;

/// Share of the time under no limit of a host from which BBR's model of the path sets the rate, and the round trips after which it
/// has one.
const MIN_MODELLED_SHARE: f64 = 0.9;
const START: u32 = 20;

/// The transfer gets nine tenths of the path's capacity, or three quarters with a persistent queue and no new losses.
pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    id: "link-rate",
    test: "The transfer gets nine tenths of the path's capacity, or three quarters with a persistent queue and no new losses.",
    citation: "RFC 5136 section 2.2 (capacity); RFC 6349 section 3.3",
    check,
};

fn check(evidence: &TransferEvidence<'_>) -> Option<DiagnosisVerdict> {
    // The search passed the same queue: the capacity is that of the queue.
    if evidence.limiting_queue().is_some() {
        return None;
    }
    let Some(used) = evidence.used() else { return by_the_transfer(evidence) };
    // While a window recovers from slow start's overshoot, the queue shows that the path is full.
    let has_queue = evidence
        .queueing()
        .zip(evidence.base)
        .is_some_and(|((median, _), base)| median > MIN_QUEUE_DELAY && median > base.mul_f64(0.2));
    let is_small = !super::buffer_too_small::RULE.is_silent(evidence);
    let recovers = has_queue && evidence.late_retransmits.is_none_or(linerate_units::SegmentCount::is_zero)
        || evidence.has_standing_queue() && !is_small;
    if used < if recovers { MIN_FULL_SHARE_WITH_QUEUE } else { FULL } {
        return None;
    }
    let capacity = evidence.capacity?;
    // A host's limit may hold a path that is full by its queue.
    let rest = if used >= MIN_SATURATED_SHARE { " No host setting would make this faster." } else { "" };
    // The true capacity may be anywhere in its interval.
    let of = if used > 1.0 { "as much as its measured payload capacity," } else { "of its payload capacity of" };
    let text = format!("The path is full: {} {of} {}.{rest}", rate(evidence.steady), rate(capacity));
    Some(
        verdict(Cause::LinkRate, Confidence::High, text)
            .figure("path utilisation", Some(percent_of(used)))
            .figure("queueing, median", evidence.queueing().map(|(median, _)| time(median)))
            .figure("retransmitted", evidence.retransmitted.map(percent)),
    )
}

/// Without a capacity, a queue that stays shows that the path is full, or a sender that measures what the path delivers.
fn by_the_transfer(evidence: &TransferEvidence<'_>) -> Option<DiagnosisVerdict> {
    let steady = rate(evidence.steady);
    let (median, _) = evidence.queueing()?;
    let (sure, shown) = if let Some((end, speed)) = evidence.filled_wire() {
        let host = end.participle();
        (Confidence::High, format!("{steady} of payload fill the {} link of the {host} host", rate(speed)))
    } else if evidence.is_full() {
        (Confidence::Medium, format!("at {steady} it has a persistent queue of {}", time(median)))
    } else if follows_the_path(evidence) {
        (Confidence::Medium, format!("BBR sends what it measures that the path delivers, {steady}"))
    } else {
        return None;
    };
    let text = format!("The path is full: {shown}. No host setting would make this faster.");
    Some(
        verdict(Cause::LinkRate, sure, text)
            .figure("retransmitted", evidence.retransmitted.map(percent))
            .advice("`linerate diagnose HOST` measures the path's capacity as well"),
    )
}

/// True when BBR's model of the path sets the rate: the largest rate of delivery in ten round trips (`bbr_bw_rtts`,
/// `net/ipv4/tcp_bbr.c`), which nothing at the hosts held down.
fn follows_the_path(evidence: &TransferEvidence<'_>) -> bool {
    let by_the_network = evidence.shares.is_some_and(|shares| shares.network.get() >= MIN_MODELLED_SHARE);
    let idle = evidence.application_limited.map_or(0.0, Ratio::get);
    let has_started = evidence.loaded.is_some_and(|(median, _)| evidence.observation.elapsed >= median * START);
    let is_held = idle > 1.0 - MIN_MODELLED_SHARE || evidence.is_buffer_unread() || evidence.waits_at_the_receiver();
    by_the_network && evidence.tolerates_losses() && has_started && !is_held && !evidence.passes_faster()
}
