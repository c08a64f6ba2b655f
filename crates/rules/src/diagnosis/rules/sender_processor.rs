//! The sender's thread, or its whole host, had no processor time left.

use linerate_model::diagnosis::{Cause, Confidence, DiagnosisVerdict};

use super::super::DiagnosisRule;
use super::super::evidence::TransferEvidence;
use super::super::text::{VerdictBuilder, percent, percent_of, verdict};

/// Share of a processor's time from which it is the limit; the remainder is scheduling.
const MIN_BUSY_SHARE: f64 = 0.95;

/// The sender's thread, or its whole host, had no processor time left.
pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    id: "sender-processor",
    test: "The sender's thread, or its whole host, had no processor time left.",
    citation: "getrusage(2), RUSAGE_THREAD; proc(5), /proc/stat",
    check,
};

fn check(evidence: &TransferEvidence<'_>) -> Option<DiagnosisVerdict> {
    let load = evidence.shares?.sender_cpu?;
    let busy = evidence.observation.sender.as_ref().and_then(|host| host.busy).unwrap_or(0.0);
    if load.get() < MIN_BUSY_SHARE && busy < MIN_BUSY_SHARE || evidence.is_full() {
        return None;
    }
    let text = format!("The sender's processor is saturated: its thread used {} of one.", percent(load));
    Some(
        verdict(Cause::SenderProcessor, Confidence::High, text)
            .figure("all processors of the host", Some(percent_of(busy)))
            .advice(
                "check the offloads of the interface (`linerate audit`), and try several connections: they use \
                several processors",
            ),
    )
}
