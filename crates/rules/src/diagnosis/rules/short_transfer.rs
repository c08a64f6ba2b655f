//! The whole transfer is smaller than the volume that slow start sends until the path is full.

use linerate_analysis::formulas::{INITIAL_WINDOW, slow_start_time, slow_start_volume};
use linerate_model::diagnosis::{Cause, Confidence, DiagnosisVerdict};
use linerate_units::SegmentCount;

use super::super::DiagnosisRule;
use super::super::evidence::TransferEvidence;
use super::super::text::{VerdictBuilder, rate, size, time, verdict};

/// The whole transfer is smaller than the volume that slow start sends until the path is full.
pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    id: "short-transfer",
    test: "The whole transfer is smaller than the volume that slow start sends until the path is full.",
    citation: "RFC 6928 section 2; slow start doubles the window per round trip (RFC 5681 section 3.1)",
    check,
};

fn check(evidence: &TransferEvidence<'_>) -> Option<DiagnosisVerdict> {
    let bytes = evidence.observation.asked.bytes?;
    let (capacity, base, segment) = (evidence.capacity?, evidence.base?, evidence.segment?);
    let needed = slow_start_volume(capacity, base, segment, SegmentCount::new(INITIAL_WINDOW))?;
    if bytes >= needed + needed || evidence.is_full() {
        return None;
    }
    let full = slow_start_time(capacity, base, segment);
    let text = format!(
        "The transfer is short: slow start sends {} before it fills {} over {}, and the whole transfer is {}.",
        size(needed),
        rate(capacity),
        time(base),
        size(bytes)
    );
    Some(
        verdict(Cause::ShortTransfer, Confidence::High, text)
            .figure("time until the path is full", full.map(time))
            .figure("the transfer took", Some(time(evidence.observation.elapsed)))
            .advice("keep the connection open and use it again, or send several files over one")
            .advice(
                "a larger initial window for this destination: `ip route change … initcwnd 30`, where the path is \
                known to support it",
            ),
    )
}
