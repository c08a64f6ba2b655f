//! Packets arrived damaged: the receiver's checksum counter grew, and so did retransmissions.

use linerate_model::diagnosis::{Cause, Confidence, DiagnosisVerdict};

use super::super::DiagnosisRule;
use super::super::evidence::TransferEvidence;
use super::super::text::{VerdictBuilder, percent, verdict};

/// Packets arrived damaged: the receiver's checksum counter grew, and so did retransmissions.
pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    id: "corruption",
    test: "Packets arrived damaged: the receiver's checksum counter grew, and so did retransmissions.",
    citation: "RFC 9293 section 3.1 (checksum); TcpInCsumErrors (net/ipv4/proc.c)",
    check,
};

fn check(evidence: &TransferEvidence<'_>) -> Option<DiagnosisVerdict> {
    let damaged = evidence.receiver_counter("TcpInCsumErrors")? + evidence.receiver_counter("IpExtInCsumErrors")?;
    let retransmitted = evidence.retransmits?.get();
    if damaged == 0 || damaged < retransmitted / 4 {
        return None;
    }
    let text = format!(
        "{damaged} packets arrived damaged and were dropped by their checksum; {retransmitted} segments were \
            retransmitted."
    );
    Some(
        verdict(Cause::Corruption, Confidence::High, text)
            .figure("retransmitted", evidence.retransmitted.map(percent))
            .advice(
                "find the link that damages them: error counters of interfaces and switches (`ip -s -s link`, \
                `ethtool -S`), cables, optics, and memory",
            ),
    )
}
