//! Delays vary at rest by a large part of the round trip.

use core::time::Duration;

use linerate_model::diagnosis::{Cause, Confidence, DiagnosisVerdict};

use super::super::DiagnosisRule;
use super::super::evidence::TransferEvidence;
use super::super::text::{VerdictBuilder, percent_of, time, verdict};

/// Least delay variation: less is caused by the hosts.
const MIN_VARIATION: Duration = Duration::from_millis(1);
/// Least delay variation as a share of the round trip.
const MIN_VARIATION_SHARE: f64 = 0.25;
/// Share of the variation that lies above the median.
const MIN_USUAL_SHARE: f64 = 0.2;

/// Delays vary at rest by a large part of the round trip.
pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    id: "delay-variation",
    test: "Delays vary at rest by a large part of the round trip.",
    citation: "RFC 3393; RFC 5481",
    check,
};

/// Smallest round trip and its 95th percentile at rest, where they differ by much.
fn variation(evidence: &TransferEvidence<'_>) -> Option<(Duration, Duration)> {
    let (median, high) = evidence.observation.path.as_ref()?.usual_round_trip?;
    let base = evidence.base?;
    let spread = high.saturating_sub(base);
    // Where a single probe overtook the others, the least is no usual one.
    let is_usual = high.saturating_sub(median) >= spread.mul_f64(MIN_USUAL_SHARE);
    let is_large = spread >= MIN_VARIATION && spread >= base.mul_f64(MIN_VARIATION_SHARE);
    (is_large && is_usual).then_some((base, high))
}

/// True when delays vary before the transfer begins.
pub(super) fn varies(evidence: &TransferEvidence<'_>) -> bool {
    variation(evidence).is_some()
}

fn check(evidence: &TransferEvidence<'_>) -> Option<DiagnosisVerdict> {
    let (base, high) = variation(evidence)?;
    let text = format!(
        "The delay varies without a queue: at least {}, and {} at the 95th percentile.",
        time(base),
        time(high)
    );
    Some(
        verdict(Cause::DelayVariation, Confidence::Medium, text)
            .figure("path utilisation", evidence.used().map(percent_of))
            .advice("on a radio link: its scheduler; a test over cable shows the remaining path"),
    )
}
