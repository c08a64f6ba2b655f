//! What arrived lies unread in the receiver's buffer, and the path is not full.

use linerate_model::diagnosis::{Cause, Confidence, Verdict};

use super::super::Rule;
use super::super::evidence::Evidence;
use super::super::words::{With, percent, rate, size, verdict};

/// A buffer that is full of unread data has little room for a window.
const UNREAD: f64 = 0.4;

/// What arrived lies unread in the receiver's buffer, and the path is not full.
pub(super) const RULE: Rule = Rule {
    id: "slow-reader",
    test: "What arrived lies unread in the receiver's buffer, and the path is not full.",
    citation: "SK_MEMINFO_RMEM_ALLOC against SK_MEMINFO_RCVBUF (sock_diag(7)); RFC 9293 section 3.8.6",
    check,
};

fn check(evidence: &Evidence<'_>) -> Option<Verdict> {
    let unread = evidence.unread?;
    if unread.get() < UNREAD || evidence.is_full() {
        return None;
    }
    // From the receiving host alone, the sender's stop-watches are not known.
    let waiting = evidence.shares.map(|shares| shares.receive_window);
    let waits = waiting.is_some_and(|share| share.get() >= 0.05);
    let hidden = evidence.uses("bbr") && waiting.is_some_and(|share| share.get() < 0.5);
    let note = if hidden { ", which BBR takes for a slow path" } else { "" };
    let text = format!(
        "The receiving program reads too slowly{note}: {} of its buffer is full of what arrived and was not read.",
        percent(unread)
    );
    Some(
        verdict(Cause::SlowReader, if waits { Confidence::High } else { Confidence::Medium }, text)
            .figure("receive buffer", evidence.receive_buffer.map(|(buffer, _)| size(buffer)))
            .figure("time limited by the receiver's window", waiting.map(percent))
            .figure("it reads", Some(rate(evidence.steady)))
            .advice("look at the receiving program: its disk, its cipher, its processor; larger buffers only hide it for a moment"),
    )
}
