//! The sender's sockets were not seen.

use linerate_model::diagnosis::{Cause, Confidence, Verdict};

use super::super::Rule;
use super::super::evidence::Evidence;
use super::super::words::{With, verdict};

/// The sender's sockets were not seen.
pub(super) const RULE: Rule = Rule {
    id: "not-enough-data",
    test: "The sender's sockets were not seen.",
    citation: "tcp_info is read at the sending end (include/uapi/linux/tcp.h)",
    check,
};

fn check(evidence: &Evidence<'_>) -> Option<Verdict> {
    let seen = evidence.observation.connections.iter().any(|connection| !connection.sender.is_empty());
    // The receiver alone can be told to read too slowly, and nothing else.
    if seen || evidence.unread.is_some_and(|unread| unread.get() >= 0.4) {
        return None;
    }
    let text = "The sender's sockets were not seen, so what held it back cannot be told.";
    let advice = "run `linerate serve` at the far end, or let the data flow from here (without -R)";
    Some(verdict(Cause::NotEnoughData, Confidence::High, text).advice(advice))
}
