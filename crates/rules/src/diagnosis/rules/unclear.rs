//! No other rule matches.

use core::time::Duration;

use linerate_model::diagnosis::{Cause, Confidence, DiagnosisVerdict};

use super::super::DiagnosisRule;
use super::super::evidence::TransferEvidence;
use super::super::full_path::FULL;
use super::super::text::{VerdictBuilder, percent, percent_of, rate, size, time, verdict};

/// Least queueing delay that is not jitter, as for a full path.
const MIN_QUEUE_DELAY: Duration = Duration::from_millis(1);

/// No other rule matches.
pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    id: "unclear",
    test: "No other rule matches.",
    citation: "unknown causes are reported as unknown",
    check,
};

fn check(evidence: &TransferEvidence<'_>) -> Option<DiagnosisVerdict> {
    evidence.sender()?;
    let text = match evidence.used() {
        Some(used) if used < FULL && super::link_rate::RULE.is_silent(evidence) => {
            format!(
                "The transfer gets {} of the path's capacity, and none of the known causes matches.",
                percent_of(used)
            )
        }
        Some(_) => return None,
        None => without_capacity(evidence),
    };
    let measure = "`linerate diagnose HOST` measures the path's capacity, and so shows if the path is full";
    let found = verdict(Cause::Unclear, Confidence::Low, text);
    Some(
        if evidence.capacity.is_none() { found.advice(measure) } else { found }
            .figure("retransmitted", evidence.retransmitted.map(percent))
            .figure("queueing, median", evidence.queueing().map(|(median, _)| time(median)))
            .figure("advertised window", evidence.window.map(size))
            .figure("in flight", evidence.in_flight.map(size)),
    )
}

/// Describes a transfer whose path was not measured: a queue implies a saturated bottleneck.
fn without_capacity(evidence: &TransferEvidence<'_>) -> String {
    let queued = evidence
        .queueing()
        .zip(evidence.base)
        .filter(|((median, _), base)| *median > MIN_QUEUE_DELAY && *median > base.mul_f64(0.2));
    let rate = rate(evidence.steady);
    match queued {
        Some(((median, _), _)) => format!(
            "No limit of a host shows: the transfer gets {rate}, and the path has a persistent queue of {}, so it is \
                most likely full.",
            time(median)
        ),
        None => format!(
            "No limit of a host shows: the transfer gets {rate}, and without the path's capacity nothing more is known."
        ),
    }
}
