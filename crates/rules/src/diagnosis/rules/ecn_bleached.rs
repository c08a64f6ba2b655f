//! ECN was negotiated, but no packet arrived with a codepoint.

use linerate_model::diagnosis::{Cause, Confidence, DiagnosisVerdict};

use super::super::DiagnosisRule;
use super::super::evidence::TransferEvidence;
use super::super::text::{VerdictBuilder, percent, verdict};

/// ECN was negotiated, but no packet arrived with a codepoint.
pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    id: "ecn-bleached",
    test: "ECN was negotiated, but no packet arrived with a codepoint.",
    citation: "RFC 3168 section 6.1.1; TCPI_OPT_ECN_SEEN",
    check,
};

fn check(evidence: &TransferEvidence<'_>) -> Option<DiagnosisVerdict> {
    let agreed = evidence.sender()?.explicit_congestion_notification?;
    let seen = evidence.receiver()?.congestion_notification_seen?;
    if !agreed || seen {
        return None;
    }
    let text = "Both ends negotiated ECN, but no packet arrives with a codepoint: a device on the path clears it, so \
        that queues can only drop.";
    Some(
        verdict(Cause::EcnBleached, Confidence::High, text)
            .figure("retransmitted", evidence.retransmitted.map(percent))
            .advice(
                "find the hop that rewrites the old TOS byte as a whole; until then ECN gains nothing on this path",
            ),
    )
}
