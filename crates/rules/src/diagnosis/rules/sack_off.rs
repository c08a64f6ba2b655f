//! Selective acknowledgements were not agreed, and segments were lost.

use linerate_model::diagnosis::{Cause, Confidence, Verdict};

use super::super::Rule;
use super::super::evidence::Evidence;
use super::super::words::{With, percent, time, verdict};

/// Selective acknowledgements were not agreed, and segments were lost.
pub(super) const RULE: Rule = Rule {
    id: "sack-off",
    test: "Selective acknowledgements were not agreed, and segments were lost.",
    citation: "RFC 2018; RFC 6675",
    check,
};

fn check(evidence: &Evidence<'_>) -> Option<Verdict> {
    let info = evidence.sender()?;
    let lost = evidence.retransmits?;
    if info.selective_acknowledgements? || lost.is_zero() {
        return None;
    }
    let off = |value: Option<Vec<u64>>| value.as_deref() == Some(&[0]);
    let here = off(evidence.sender_setting("net.ipv4.tcp_sack"));
    let there = off(evidence.receiver_setting("net.ipv4.tcp_sack"));
    let who = match (here, there) {
        (true, true) => "both hosts have it switched off",
        (true, false) => "the sender has it switched off",
        (false, true) => "the receiver has it switched off",
        (false, false) => "the peer or something on the way takes the option away",
    };
    let text = format!(
        "Without selective acknowledgements ({who}) each lost segment is repaired in a round trip of its own: {} segments were sent again.",
        lost.get()
    );
    Some(
        verdict(Cause::SackOff, Confidence::High, text)
            .figure("sent again", evidence.retransmitted.map(percent))
            .figure("longest stall", Some(time(evidence.longest_stall)))
            .advice("net.ipv4.tcp_sack = 1 where it is 0"),
    )
}
