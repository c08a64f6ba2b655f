//! Many connections share a buffer, and their windows are down to a few segments.

use linerate_model::diagnosis::{Cause, Confidence, Verdict};
use linerate_units::ByteCount;

use super::super::Rule;
use super::super::evidence::Evidence;
use super::super::words::{With, size, verdict};

/// Fewer connections are an ordinary parallel transfer.
const MANY: usize = 8;
/// Below this window a loss leaves too few segments for duplicate acknowledgements (RFC 5681 section 3.2).
const FEW_SEGMENTS: u64 = 4;

/// Many connections share a buffer, and their windows are down to a few segments.
pub(super) const RULE: Rule = Rule {
    id: "incast",
    test: "Many connections share a buffer, and their windows are down to a few segments.",
    citation: "Phanishayee et al., FAST 2008; RFC 8257 section 1",
    check,
};

fn check(evidence: &Evidence<'_>) -> Option<Verdict> {
    let connections = evidence.observation.connections.len();
    let (window, segment) = (evidence.congestion_window?, evidence.segment?);
    let lost = evidence.retransmits?.get();
    if connections < MANY || window > segment.byte_count() * FEW_SEGMENTS || lost == 0 {
        return None;
    }
    let each = evidence.product().map(|product| ByteCount::new(product.get() / connections as u64));
    let timeouts = evidence.sender_counter("TcpExtTCPTimeouts");
    let text = format!(
        "{connections} connections meet at one buffer: each has a window of {}, and {lost} segments were dropped.",
        size(window)
    );
    Some(
        verdict(Cause::Incast, Confidence::High, text)
            .figure("bandwidth-delay product for each connection", each.map(size))
            .figure("retransmission timeouts", timeouts.map(|count| count.to_string()))
            .advice("fewer connections at a time, or DCTCP with a switch that marks")
            .advice("a shorter least retransmission timeout inside the data centre: `ip route change … rto_min 5ms`"),
    )
}
