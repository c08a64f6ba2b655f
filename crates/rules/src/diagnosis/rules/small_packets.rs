//! Losses limit the transfer, and the segments are at most half of the path MTU.

use linerate_model::diagnosis::{Cause, Confidence, DiagnosisVerdict};
use linerate_units::ByteCount;

use super::super::DiagnosisRule;
use super::super::evidence::TransferEvidence;
use super::super::text::{VerdictBuilder, percent, verdict};

/// Losses limit the transfer, and the segments are at most half of the path MTU.
pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    id: "small-packets",
    test: "Losses limit the transfer, and the segments are at most half of the path MTU.",
    citation: "Mathis et al. 1997: rate grows with the segment size",
    check,
};

fn check(evidence: &TransferEvidence<'_>) -> Option<DiagnosisVerdict> {
    if !evidence.loses_without_queue() {
        return None;
    }
    let segment = evidence.segment?;
    let path = evidence.path()?.mtu.as_ref()?.bytes;
    if u64::from(segment.get()) * 2 > path {
        return None;
    }
    let gain = ByteCount::new(path).as_f64() / f64::from(segment.get());
    let text = format!(
        "Segments have {} bytes on a path with an MTU of {path}: at the same loss rate, full ones would reach up to \
            {gain:.1} times the rate.",
        segment.get()
    );
    Some(
        verdict(Cause::SmallPackets, Confidence::High, text)
            .figure("retransmitted", evidence.retransmitted.map(percent))
            .advice(
                "raise the MTU of both hosts' interfaces to the path's, and remove MSS clamps (firewalls; iperf3 -M)",
            ),
    )
}
