//! The receiver reported congestion marks (ECN-Echo) to the sender.

use linerate_model::diagnosis::{Cause, Confidence, DiagnosisVerdict};

use super::super::DiagnosisRule;
use super::super::evidence::TransferEvidence;
use super::super::text::{VerdictBuilder, percent, percent_of, time, verdict};

/// The receiver reported congestion marks (ECN-Echo) to the sender.
pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    id: "ecn-marking",
    test: "The receiver reported congestion marks (ECN-Echo) to the sender.",
    citation: "RFC 3168 section 6.1.2; tcpi_delivered_ce",
    check,
};

fn check(evidence: &TransferEvidence<'_>) -> Option<DiagnosisVerdict> {
    let info = evidence.sender()?;
    let marks = info.delivered_with_congestion_mark?.get();
    if marks == 0 || info.explicit_congestion_notification != Some(true) {
        return None;
    }
    let used = evidence.used().map(percent_of);
    let text = if evidence.is_full() {
        format!(
            "The path is full, and its queue signals congestion with marks instead of drops: {marks} segments were \
                marked."
        )
    } else {
        format!(
            "A queue marks packets before the path is full: {marks} segments were marked, and the sender slows down at \
                each."
        )
    };
    Some(
        verdict(Cause::EcnMarking, Confidence::High, text)
            .figure("path utilisation", used)
            .figure("queueing, median", evidence.queueing().map(|(median, _)| time(median)))
            .figure("retransmitted", evidence.retransmitted.map(percent)),
    )
}
