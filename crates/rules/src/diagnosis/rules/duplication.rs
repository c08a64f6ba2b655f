//! Packets arrive more than once.

use linerate_model::diagnosis::{Cause, Confidence, DiagnosisVerdict};

use super::super::DiagnosisRule;
use super::super::evidence::TransferEvidence;
use super::super::text::{VerdictBuilder, percent_of, verdict};

/// Share of duplicated packets from which the path causes them.
const MIN_DUPLICATE_SHARE: f64 = 0.002;

/// Packets arrive more than once.
pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    id: "duplication",
    test: "Packets arrive more than once.",
    citation: "RFC 5560; RFC 2883 (D-SACK)",
    check,
};

fn check(evidence: &TransferEvidence<'_>) -> Option<DiagnosisVerdict> {
    let share = evidence.path().and_then(|path| path.packets.as_ref()?.duplication).unwrap_or(0.0);
    let reported = evidence.sender()?.duplicate_sacks?.get();
    let retransmitted = evidence.retransmits?.get();
    if share < MIN_DUPLICATE_SHARE && (reported < 10 || reported < retransmitted * 2) {
        return None;
    }
    let text = format!(
        "Packets are duplicated on the path ({:.2} % of the path's probes; the receiver reported {reported} duplicates \
            while {retransmitted} segments were retransmitted).",
        share * 100.0
    );
    Some(
        verdict(Cause::Duplication, Confidence::High, text)
            .figure("path utilisation", evidence.used().map(percent_of))
            .advice(
                "harmless for TCP, but a fault: look for a loop, a mirror port, or redundant links that both deliver",
            ),
    )
}
