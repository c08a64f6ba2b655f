//! Packets arrive more than once.

use linerate_model::diagnosis::{Cause, Confidence, Verdict};

use super::super::Rule;
use super::super::evidence::Evidence;
use super::super::words::{With, of_whole, verdict};

/// Share of packets that arrive twice from which on it is the path's way.
const LEAST: f64 = 0.002;

/// Packets arrive more than once.
pub(super) const RULE: Rule =
    Rule { id: "duplication", test: "Packets arrive more than once.", citation: "RFC 5560; RFC 2883 (D-SACK)", check };

fn check(evidence: &Evidence<'_>) -> Option<Verdict> {
    let share = evidence.path().and_then(|path| path.packets.as_ref()?.duplication).unwrap_or(0.0);
    let reported = evidence.sender()?.duplicate_sacks?.get();
    let again = evidence.retransmits?.get();
    if share < LEAST && (reported < 10 || reported < again * 2) {
        return None;
    }
    let text = format!(
        "Packets are duplicated on the way ({:.2} % of the path's probes; the receiver reported {reported} copies while {again} segments were sent again).",
        share * 100.0
    );
    Some(
        verdict(Cause::Duplication, Confidence::High, text)
            .figure("of what the path carries", evidence.used().map(of_whole))
            .advice("harmless for TCP, but something is wrong: look for a loop, a mirror port, or redundant links that both deliver"),
    )
}
