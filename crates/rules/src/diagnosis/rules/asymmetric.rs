//! The acknowledgements of a full transfer fill at least a fifth of the reverse direction.

use linerate_model::diagnosis::{Cause, Confidence, DiagnosisVerdict};

use super::super::DiagnosisRule;
use super::super::evidence::TransferEvidence;
use super::super::text::{VerdictBuilder, percent_of, rate, time, verdict};

/// Ethernet's 14 bytes, IPv4's 20 and TCP's 32.
const ACKNOWLEDGEMENT_BITS: f64 = 66.0 * 8.0;
/// Share of the reverse capacity from which acknowledgements limit.
const MIN_REVERSE_SHARE: f64 = 0.2;

/// The acknowledgements of a full transfer fill at least a fifth of the reverse direction.
pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    id: "asymmetric",
    test: "The acknowledgements of a full transfer fill at least a fifth of the reverse direction.",
    citation: "RFC 3449 section 1.1 (normalised bandwidth ratio)",
    check,
};

fn check(evidence: &TransferEvidence<'_>) -> Option<DiagnosisVerdict> {
    let (there, back, segment) = (evidence.capacity?, evidence.capacity_back?, evidence.segment?);
    // One acknowledgement for two segments (RFC 9293 section 3.8.6.3), with Ethernet's header and TCP's timestamps.
    let acknowledgements = there.bits_per_second() / (2.0 * 8.0 * f64::from(segment.get()));
    let share = acknowledgements * ACKNOWLEDGEMENT_BITS / back.bits_per_second();
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
            .figure("queueing", evidence.queueing().map(|(_, high)| time(high)))
            .advice(
                "shape the narrow direction so that acknowledgements do not wait behind uploads (`linerate shape DEV \
                    --up RATE`, a little below its rate)",
            ),
    )
}
