//! The transfer gets nine tenths of the path's capacity, or three quarters with a persistent queue.

use core::time::Duration;

use linerate_model::diagnosis::{Cause, Confidence, DiagnosisVerdict};

use super::super::DiagnosisRule;
use super::super::evidence::{FULL, TransferEvidence};
use super::super::text::{VerdictBuilder, percent, percent_of, rate, time, verdict};

/// Share of the capacity that fills the path when the queueing delay is at least 1 ms and a fifth of the round trip.
const MIN_FULL_SHARE_WITH_QUEUE: f64 = 0.75;
const MIN_QUEUE_DELAY: Duration = Duration::from_millis(1);

/// Share of the capacity from which nothing worth a change is left.
pub(super) const MIN_SATURATED_SHARE: f64 = 0.95;

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
    let Some(used) = evidence.used() else { return by_its_queue(evidence) };
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

/// Without a capacity, a queue that stays shows that the path is full.
fn by_its_queue(evidence: &TransferEvidence<'_>) -> Option<DiagnosisVerdict> {
    let (median, _) = evidence.queueing().filter(|_| evidence.has_standing_queue())?;
    let text = format!(
        "The path is full: at {} it has a persistent queue of {}. No host setting would make this faster.",
        rate(evidence.steady),
        time(median)
    );
    Some(
        verdict(Cause::LinkRate, Confidence::Medium, text)
            .figure("retransmitted", evidence.retransmitted.map(percent))
            .advice("`linerate diagnose HOST` measures the path's capacity as well"),
    )
}
