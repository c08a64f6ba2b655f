//! The sender was told of congestion marks.

use linerate_model::diagnosis::{Cause, Confidence, Verdict};

use super::super::Rule;
use super::super::evidence::Evidence;
use super::super::words::{With, of_whole, percent, time, verdict};

/// The sender was told of congestion marks.
pub(super) const RULE: Rule = Rule {
    id: "ecn-marking",
    test: "The sender was told of congestion marks.",
    citation: "RFC 3168 section 6.1.2; tcpi_delivered_ce",
    check,
};

fn check(evidence: &Evidence<'_>) -> Option<Verdict> {
    let info = evidence.sender()?;
    let marks = info.delivered_with_congestion_mark?.get();
    if marks == 0 || info.explicit_congestion_notification != Some(true) {
        return None;
    }
    let used = evidence.used().map(of_whole);
    let text =
        format!("The path is full, and its queue says so with marks instead of drops: {marks} segments were marked.");
    Some(
        verdict(Cause::EcnMarking, Confidence::High, text)
            .figure("of what the path carries", used)
            .figure("queueing", evidence.queueing().map(|(median, _)| time(median)))
            .figure("sent again", evidence.retransmitted.map(percent)),
    )
}
