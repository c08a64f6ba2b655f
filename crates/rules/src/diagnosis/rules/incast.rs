//! Many connections share a buffer, and their windows are down to a few segments.

use linerate_model::diagnosis::{Cause, Confidence, DiagnosisVerdict};
use linerate_units::ByteCount;

use super::super::DiagnosisRule;
use super::super::evidence::TransferEvidence;
use super::super::text::{VerdictBuilder, size, verdict};

/// Least number of connections: fewer are an ordinary parallel transfer.
const MIN_CONNECTIONS: usize = 8;
/// Window below which a loss leaves too few segments for duplicate acknowledgements (RFC 5681 section 3.2).
const MAX_WINDOW_SEGMENTS: u64 = 4;

/// Many connections share a buffer, and their windows are down to a few segments.
pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    id: "incast",
    test: "Many connections share a buffer, and their windows are down to a few segments.",
    citation: "Phanishayee et al., FAST 2008; RFC 8257 section 1",
    check,
};

fn check(evidence: &TransferEvidence<'_>) -> Option<DiagnosisVerdict> {
    let connections = evidence.observation.connections.len();
    let (window, segment) = (evidence.congestion_window?, evidence.segment?);
    let lost = evidence.retransmits?.get();
    if connections < MIN_CONNECTIONS || window > segment.byte_count() * MAX_WINDOW_SEGMENTS || lost == 0 {
        return None;
    }
    let each = evidence.bandwidth_delay_product().map(|product| ByteCount::new(product.get() / connections as u64));
    let timeouts = evidence.sender_counter("TcpExtTCPTimeouts");
    let text = format!(
        "{connections} connections share one buffer: each has a window of {}, and {lost} segments were dropped.",
        size(window)
    );
    Some(
        verdict(Cause::Incast, Confidence::High, text)
            .figure("bandwidth-delay product for each connection", each.map(size))
            .figure("retransmission timeouts", timeouts.map(|count| count.to_string()))
            .advice("fewer connections at a time, or DCTCP with a switch that marks")
            .advice("a shorter minimum retransmission timeout inside the data centre: `ip route change … rto_min 5ms`"),
    )
}
