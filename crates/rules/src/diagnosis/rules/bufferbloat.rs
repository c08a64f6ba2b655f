//! The path is full, and its queue adds a multiple of the round trip.

use core::time::Duration;

use linerate_model::diagnosis::{Cause, Confidence, DiagnosisVerdict};

use super::super::DiagnosisRule;
use super::super::evidence::TransferEvidence;
use super::super::text::{VerdictBuilder, percent_of, time, verdict};

/// Queueing delay from which people notice it.
const MIN_QUEUE_DELAY: Duration = Duration::from_millis(60);

/// Share of the capacity from which the queue is the path's.
const MIN_USED_SHARE: f64 = 0.75;

/// The path is full, and its queue adds a multiple of the round trip.
pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    id: "bufferbloat",
    test: "The path is full, and its queue adds a multiple of the round trip.",
    citation: "RFC 8290 section 1; reference grades of `linerate load`",
    check,
};

fn check(evidence: &TransferEvidence<'_>) -> Option<DiagnosisVerdict> {
    let (median, high) = evidence.queueing()?;
    // A delay that varies by itself is no part of the queue.
    let rest = evidence.rest()?;
    // A queue of acknowledgements, or one that a host stalls, is none of a full path.
    let is_full = evidence.used().map_or_else(|| evidence.is_full(), |used| used >= MIN_USED_SHARE);
    if high < MIN_QUEUE_DELAY || high < rest * 2 || !is_full {
        return None;
    }
    let is_saturated = evidence.used().is_some_and(|used| used >= super::link_rate::MIN_SATURATED_SHARE);
    let end = if is_saturated { "; a faster transfer is not possible" } else { "" };
    let text = format!(
        "The path is full, and its buffer delays all traffic: {} at rest, {} under this load.",
        time(rest),
        time(rest + median)
    );
    // Without a capacity, the queue may be that of the acknowledgements.
    let sure = if evidence.used().is_some() { Confidence::High } else { Confidence::Medium };
    Some(
        verdict(Cause::Bufferbloat, sure, text)
            .figure("queueing, median and 95 %", Some(format!("{}, {}", time(median), time(high))))
            .figure("path utilisation", evidence.used().map(percent_of))
            .advice(format!(
                "shape the access link slightly below its rate with an AQM (`linerate shape DEV --up RATE --down RATE`){end}"
            )),
    )
}
