//! Nothing was acknowledged, and the retransmission timeout doubled repeatedly.

use linerate_model::diagnosis::{Cause, Confidence, DiagnosisVerdict};

use super::super::DiagnosisRule;
use super::super::evidence::TransferEvidence;
use super::super::text::{VerdictBuilder, verdict};

/// Nothing was acknowledged, and the retransmission timeout doubled repeatedly.
pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    id: "path-dead",
    test: "Nothing was acknowledged, and the retransmission timeout doubled repeatedly.",
    citation: "RFC 6298 section 5.5",
    check,
};

fn check(evidence: &TransferEvidence<'_>) -> Option<DiagnosisVerdict> {
    let doubled = evidence.sender().and_then(|info| info.backoff)?;
    if doubled < 3 || !evidence.observation.received.is_zero() {
        return None;
    }
    let text = format!("Nothing arrives: the retransmission timeout was doubled {doubled} times.");
    Some(
        verdict(Cause::PathDead, Confidence::Medium, text)
            .advice("look for a firewall that drops established connections"),
    )
}
