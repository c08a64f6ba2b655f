//! ECN was agreed on, and no packet arrived with a codepoint.

use linerate_model::diagnosis::{Cause, Confidence, Verdict};

use super::super::Rule;
use super::super::evidence::Evidence;
use super::super::words::{With, percent, verdict};

/// ECN was agreed on, and no packet arrived with a codepoint.
pub(super) const RULE: Rule = Rule {
    id: "ecn-bleached",
    test: "ECN was agreed on, and no packet arrived with a codepoint.",
    citation: "RFC 3168 section 6.1.1; TCPI_OPT_ECN_SEEN",
    check,
};

fn check(evidence: &Evidence<'_>) -> Option<Verdict> {
    let agreed = evidence.sender()?.explicit_congestion_notification?;
    let seen = evidence.receiver()?.congestion_notification_seen?;
    if !agreed || seen {
        return None;
    }
    let text = "Both ends agreed on ECN, and no packet arrives with its bits: something on the way erases them, so that queues can only drop.";
    Some(
        verdict(Cause::EcnBleached, Confidence::High, text)
            .figure("sent again", evidence.retransmitted.map(percent))
            .advice(
                "find the hop that rewrites the old TOS byte as a whole; until then ECN gains nothing on this path",
            ),
    )
}
