//! Selective acknowledgements were not negotiated, segments were lost, and the path is not full.

use linerate_model::diagnosis::{Cause, Confidence, DiagnosisVerdict};

use super::super::DiagnosisRule;
use super::super::evidence::TransferEvidence;
use super::super::text::{VerdictBuilder, percent, time, verdict};

/// Selective acknowledgements were not negotiated, segments were lost, and the path is not full.
pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    id: "sack-off",
    test: "Selective acknowledgements were not negotiated, segments were lost, and the path is not full.",
    citation: "RFC 2018; RFC 6675",
    check,
};

fn check(evidence: &TransferEvidence<'_>) -> Option<DiagnosisVerdict> {
    let info = evidence.sender()?;
    let lost = evidence.retransmits?;
    if info.selective_acknowledgements? || lost.is_zero() || evidence.is_full() {
        return None;
    }
    let off = |value: Option<Vec<u64>>| value.as_deref() == Some(&[0]);
    let here = off(evidence.sender_setting("net.ipv4.tcp_sack"));
    let there = off(evidence.receiver_setting("net.ipv4.tcp_sack"));
    let who = match (here, there) {
        (true, true) => "both hosts have it switched off",
        (true, false) => "the sender has it switched off",
        (false, true) => "the receiver has it switched off",
        (false, false) => "the peer or a device on the path removes the option",
    };
    let text = format!(
        "Without selective acknowledgements ({who}) the repair of each lost segment takes its own round trip: {} \
            segments were retransmitted.",
        lost.get()
    );
    Some(
        verdict(Cause::SackOff, Confidence::High, text)
            .figure("retransmitted", evidence.retransmitted.map(percent))
            .figure("longest stall", Some(time(evidence.longest_stall)))
            .advice("net.ipv4.tcp_sack = 1 where it is 0"),
    )
}
