//! The sender's sockets were not sampled.

use linerate_model::diagnosis::{Cause, Confidence, DiagnosisVerdict};

use super::super::DiagnosisRule;
use super::super::evidence::TransferEvidence;
use super::super::text::{VerdictBuilder, verdict};

/// The sender's sockets were not sampled.
pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    id: "not-enough-data",
    test: "The sender's sockets were not sampled.",
    citation: "tcp_info is read at the sending end (include/uapi/linux/tcp.h)",
    check,
};

fn check(evidence: &TransferEvidence<'_>) -> Option<DiagnosisVerdict> {
    let seen = evidence.observation.connections.iter().any(|connection| !connection.sender.is_empty());
    // From the receiver alone, only a slow reader can be diagnosed.
    if seen || evidence.is_buffer_unread() {
        return None;
    }
    let text = "The sender's sockets were not sampled, so its limit is unknown.";
    let advice = "run `linerate serve` at the far end, or let the data flow from here (without -R)";
    Some(verdict(Cause::NotEnoughData, Confidence::High, text).advice(advice))
}
