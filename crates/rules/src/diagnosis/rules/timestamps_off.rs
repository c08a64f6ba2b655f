//! TCP timestamps were not agreed.

use linerate_model::diagnosis::{Cause, Confidence, Verdict};

use super::super::Rule;
use super::super::evidence::Evidence;
use super::super::words::{With, of_whole, verdict};

/// TCP timestamps were not agreed.
pub(super) const RULE: Rule = Rule {
    id: "timestamps-off",
    test: "TCP timestamps were not agreed.",
    citation: "RFC 7323 sections 3 and 5",
    check,
};

fn check(evidence: &Evidence<'_>) -> Option<Verdict> {
    let info = evidence.sender()?;
    if info.timestamps? {
        return None;
    }
    let off = |value: Option<Vec<u64>>| value.as_deref() == Some(&[0]);
    let here = off(evidence.sender_setting("net.ipv4.tcp_timestamps"));
    let there = off(evidence.receiver_setting("net.ipv4.tcp_timestamps"));
    let who = match (here, there) {
        (true, true) => "both hosts have them switched off",
        (true, false) => "the sender has them switched off",
        (false, true) => "the receiver has them switched off",
        (false, false) => "the peer or something on the way takes the option away",
    };
    let text = format!(
        "TCP timestamps are missing ({who}): that gains 12 bytes in a segment, and loses exact round trips and the protection of fast connections against old segments."
    );
    Some(
        verdict(Cause::TimestampsOff, Confidence::High, text)
            .figure("of what the path carries", evidence.used().map(of_whole))
            .advice("net.ipv4.tcp_timestamps = 1 where it is 0"),
    )
}
