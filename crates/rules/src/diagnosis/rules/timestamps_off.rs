//! TCP timestamps were not negotiated.

use linerate_model::diagnosis::{Cause, Confidence, DiagnosisVerdict};

use super::super::DiagnosisRule;
use super::super::evidence::TransferEvidence;
use super::super::text::{VerdictBuilder, percent_of, verdict};

/// TCP timestamps were not negotiated.
pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    id: "timestamps-off",
    test: "TCP timestamps were not negotiated.",
    citation: "RFC 7323 sections 3 and 5",
    check,
};

fn check(evidence: &TransferEvidence<'_>) -> Option<DiagnosisVerdict> {
    let info = evidence.sender()?;
    if info.timestamps? {
        return None;
    }
    let off = |value: Option<Vec<u64>>| value.as_deref() == Some(&[0]);
    let here = off(evidence.sender_setting("net.ipv4.tcp_timestamps"));
    let there = off(evidence.receiver_setting("net.ipv4.tcp_timestamps"));
    let who = match (here, there) {
        (true, true) => "both hosts have them switched off",
        (true, false) => "the sender has them switched off",
        (false, true) => "the receiver has them switched off",
        (false, false) => "the peer or a device on the path removes the option",
    };
    let text = format!(
        "TCP timestamps are missing ({who}): that saves 12 bytes per segment, but loses exact RTT samples and the \
            protection against wrapped sequence numbers (PAWS)."
    );
    Some(
        verdict(Cause::TimestampsOff, Confidence::High, text)
            .figure("path utilisation", evidence.used().map(percent_of))
            .advice("net.ipv4.tcp_timestamps = 1 where it is 0"),
    )
}
