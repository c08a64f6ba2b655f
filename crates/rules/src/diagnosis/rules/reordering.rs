//! Packets arrive out of order.

use linerate_model::diagnosis::{Cause, Confidence, DiagnosisVerdict};
use linerate_units::display;

use super::super::DiagnosisRule;
use super::super::evidence::TransferEvidence;
use super::super::text::{VerdictBuilder, percent, percent_of, verdict};

/// Share of reordered packets from which the path causes them.
const MIN_REORDERED_SHARE: f64 = 0.002;

/// Packets arrive out of order.
pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    id: "reordering",
    test: "Packets arrive out of order.",
    citation: "RFC 4737; tcpi_reord_seen",
    check,
};

fn check(evidence: &TransferEvidence<'_>) -> Option<DiagnosisVerdict> {
    let events = evidence.sender()?.reordering_seen?.get();
    let probes = evidence.path().and_then(|path| path.packets.as_ref());
    let share = probes.and_then(|probes| probes.reordering).unwrap_or(0.0);
    if events == 0 && share < MIN_REORDERED_SHARE {
        return None;
    }
    let is_certain = is_seen_without_losses(evidence);
    // After a loss the kernel counts reordering that the path does not have.
    if share < MIN_REORDERED_SHARE && !is_certain && (probes.is_some() || evidence.retransmits?.get() > 0) {
        return None;
    }
    let of_probes = probes.map_or_else(String::new, |_| format!("{} of the path's probes; ", percent_of(share)));
    let text = format!(
        "Packets arrive out of order ({of_probes}TCP detected it {} and waits longer before it marks one as lost).",
        display::times(events)
    );
    Some(
        verdict(Cause::Reordering, Confidence::High, text)
            .figure("retransmitted", evidence.retransmitted.map(percent))
            .figure("path utilisation", evidence.used().map(percent_of))
            .advice(
                "look for per-packet load balancing (bonding mode balance-rr, ECMP per packet): \
                per-flow balancing keeps the order",
            ),
    )
}

/// True when TCP saw reordering in a hundredth of its segments, and much more often than it lost one.
pub(in super::super) fn is_seen_without_losses(evidence: &TransferEvidence<'_>) -> bool {
    let events = evidence.sender().and_then(|info| info.reordering_seen).map_or(0, linerate_units::SegmentCount::get);
    let (lost, sent) = (evidence.retransmits, evidence.segments);
    lost.zip(sent).is_some_and(|(lost, sent)| {
        events > lost.get().saturating_mul(10) && events.saturating_mul(100) >= sent.get().max(1)
    })
}
