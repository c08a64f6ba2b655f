//! Losses are rare, and the congestion control needs longer to recover from one than most transfers last.

use core::time::Duration;

use linerate_model::diagnosis::{Cause, Confidence, DiagnosisVerdict};

use super::super::DiagnosisRule;
use super::super::evidence::TransferEvidence;
use super::super::text::{VerdictBuilder, rate, time, verdict};

/// Recovery time that exceeds most transfers.
const MIN_RECOVERY_TIME: Duration = Duration::from_secs(30);

/// Losses are rare, and the congestion control needs longer to recover from one than most transfers last.
pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    id: "congestion-control",
    test: "Losses are rare, and the congestion control needs longer to recover from one than most transfers last.",
    citation: "RFC 5681 section 3.1: one segment per round trip; RFC 9438 section 1",
    check,
};

fn check(evidence: &TransferEvidence<'_>) -> Option<DiagnosisVerdict> {
    if !evidence.uses("reno") || !evidence.loses_without_queue() {
        return None;
    }
    let (product, segment, base) = (evidence.bandwidth_delay_product()?, evidence.segment?, evidence.base?);
    let recovery = base.mul_f64(product.as_f64() / f64::from(segment.get()) / 2.0);
    if recovery < MIN_RECOVERY_TIME {
        return None;
    }
    let text = format!(
        "Reno needs {} to recover from a single loss on this path, one segment per round trip of {}.",
        time(recovery),
        time(base)
    );
    Some(
        verdict(Cause::CongestionControl, Confidence::High, text)
            .figure("retransmitted segments", evidence.retransmits.map(|count| count.get().to_string()))
            .figure("path capacity", evidence.capacity.map(rate))
            .advice(
                "try CUBIC, and BBR where losses are not congestion: `linerate diagnose HOST -- -C cubic` (or bbr) \
                shows what they reach",
            ),
    )
}
