//! The acknowledgements of a full transfer fill at least a fifth of the reverse direction, or wait long in it.

use linerate_model::diagnosis::{Cause, Confidence, DiagnosisVerdict};

use super::super::DiagnosisRule;
use super::super::evidence::TransferEvidence;
use super::super::text::{VerdictBuilder, percent_of, rate, size, time, verdict};

/// Share of the reverse capacity from which acknowledgements limit.
const MIN_REVERSE_SHARE: f64 = 0.2;

/// Wait of acknowledgements as a multiple of the round trip at rest from which the reverse direction is narrow, measured or not.
const MIN_WAIT: f64 = 3.0;

/// The acknowledgements of a full transfer fill at least a fifth of the reverse direction, or wait long in it.
pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    id: "asymmetric",
    test: "The acknowledgements of a full transfer fill at least a fifth of the reverse direction, or wait long in it.",
    citation: "RFC 3449 section 1.1 (normalised bandwidth ratio)",
    check,
};

fn check(evidence: &TransferEvidence<'_>) -> Option<DiagnosisVerdict> {
    let there = evidence.capacity?;
    let Some(back) = evidence.capacity_back else { return by_its_wait(evidence) };
    let share = there.bits_per_second() / evidence.acknowledged_rate()?.bits_per_second();
    if share < MIN_REVERSE_SHARE {
        return None;
    }
    let text = format!(
        "The reverse direction is {} times narrower: acknowledgements of a full transfer take {} of it, and other \
            traffic there delays them.",
        (there.bits_per_second() / back.bits_per_second()).round(),
        percent_of(share)
    );
    Some(
        verdict(Cause::Asymmetric, if evidence.is_full() { Confidence::Medium } else { Confidence::High }, text)
            .figure("capacity with the data", Some(rate(there)))
            .figure("capacity with the acknowledgements", Some(rate(back)))
            .figure("queueing, 95 %", evidence.queueing().map(|(_, high)| time(high)))
            .advice(
                "shape the narrow direction so that acknowledgements do not wait behind uploads (`linerate shape DEV \
                    --up RATE`, a little below its rate)",
            ),
    )
}

/// Without a capacity of the reverse direction, a wait that data in flight explains no part of shows that it is narrow.
fn by_its_wait(evidence: &TransferEvidence<'_>) -> Option<DiagnosisVerdict> {
    let (wait, _) = evidence.queueing().filter(|_| evidence.waits_in_reverse())?;
    if wait < evidence.rest()?.mul_f64(MIN_WAIT) {
        return None;
    }
    let text = format!(
        "Acknowledgements wait in the reverse direction, {}: data in flight would pass the path much sooner.",
        time(wait)
    );
    Some(
        verdict(Cause::Asymmetric, Confidence::Medium, text)
            .figure("capacity with the data", evidence.capacity.map(rate))
            .figure("in flight", evidence.in_flight.map(size))
            .advice("measure the reverse direction (`linerate path HOST`): its capacity could not be measured here"),
    )
}
