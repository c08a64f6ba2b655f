//! Nothing was acknowledged, and timeouts doubled.

use linerate_model::diagnosis::{Cause, Confidence, Verdict};

use super::super::Rule;
use super::super::evidence::Evidence;
use super::super::words::{With, verdict};

/// Nothing was acknowledged, and timeouts doubled.
pub(super) const RULE: Rule = Rule {
    id: "path-dead",
    test: "Nothing was acknowledged, and timeouts doubled.",
    citation: "RFC 6298 section 5.5",
    check,
};

fn check(evidence: &Evidence<'_>) -> Option<Verdict> {
    let doubled = evidence.sender().and_then(|info| info.backoff)?;
    if doubled < 3 || !evidence.observation.received.is_zero() {
        return None;
    }
    let text = format!("Nothing arrives: the retransmission timeout was doubled {doubled} times.");
    Some(
        verdict(Cause::PathDead, Confidence::Medium, text)
            .advice("look for a firewall that drops established connections"),
    )
}
