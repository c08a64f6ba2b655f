//! Packets overtake each other.

use linerate_model::diagnosis::{Cause, Confidence, Verdict};

use super::super::Rule;
use super::super::evidence::Evidence;
use super::super::words::{With, of_whole, percent, verdict};

/// Share of packets out of order from which on it is the path's way.
const LEAST: f64 = 0.002;

/// Packets overtake each other.
pub(super) const RULE: Rule =
    Rule { id: "reordering", test: "Packets overtake each other.", citation: "RFC 4737; tcpi_reord_seen", check };

fn check(evidence: &Evidence<'_>) -> Option<Verdict> {
    let events = evidence.sender()?.reordering_seen?.get();
    let share = evidence.path().and_then(|path| path.packets.as_ref()?.reordering).unwrap_or(0.0);
    if events == 0 && share < LEAST {
        return None;
    }
    // After a loss the kernel sees reordering where the path has none.
    if share < LEAST && (evidence.path().is_some() || evidence.retransmits?.get() > 0) {
        return None;
    }
    let text = format!(
        "Packets arrive out of order ({} of the path's probes; TCP saw it {events} times and waits longer before it takes one for lost).",
        of_whole(share)
    );
    Some(
        verdict(Cause::Reordering, Confidence::High, text)
            .figure("sent again", evidence.retransmitted.map(percent))
            .figure("of what the path carries", evidence.used().map(of_whole))
            .advice("look for links that are used per packet (bonding mode balance-rr, ECMP per packet): per flow keeps the order"),
    )
}
