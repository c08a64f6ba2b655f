//! The sender's sockets were not sampled, or not until a failure.

use linerate_model::diagnosis::{Cause, Confidence, DiagnosisVerdict};

use super::super::DiagnosisRule;
use super::super::evidence::TransferEvidence;
use super::super::text::{VerdictBuilder, time, verdict};

/// The sender's sockets were not sampled, or not until a failure.
pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    id: "not-enough-data",
    test: "The sender's sockets were not sampled, or not until the test failed.",
    citation: "tcp_info is read at the sending end (include/uapi/linux/tcp.h)",
    check,
};

/// True when a test failed whose sender is the far host: reports of its last part are missing, and of what its kernel
/// counted.
pub(in super::super) fn is_cut_off(evidence: &TransferEvidence<'_>) -> bool {
    evidence.has_failed() && evidence.observation.asked.from_far
}

fn check(evidence: &TransferEvidence<'_>) -> Option<DiagnosisVerdict> {
    if is_cut_off(evidence) {
        let text = format!(
            "The test failed after {}, and the sender's last reports are missing, so its limit is unknown.",
            time(evidence.observation.elapsed)
        );
        let advice = "look for the reason of the failure first, then measure again";
        return Some(verdict(Cause::NotEnoughData, Confidence::High, text).advice(advice));
    }
    let seen = evidence.observation.connections.iter().any(|connection| !connection.sender.is_empty());
    // From the receiver alone, only a slow reader can be diagnosed.
    if seen || evidence.is_buffer_unread() {
        return None;
    }
    let text = "The sender's sockets were not sampled, so its limit is unknown.";
    let advice = "run `linerate serve` at the far end, or let the data flow from here (without -R)";
    Some(verdict(Cause::NotEnoughData, Confidence::High, text).advice(advice))
}
