//! The sender waited for room in its send buffer, and the path is not full.

use linerate_model::diagnosis::{Cause, Confidence, Verdict};
use linerate_units::ByteCount;

use super::super::Rule;
use super::super::evidence::Evidence;
use super::super::words::{With, percent, size, third_number, verdict};
use crate::tuning::{Buffer, measured_need};

/// From this share of the busy time on, the buffer limits.
const LIMITS: f64 = 0.2;
/// This near to the window, it is the window.
const REACHED: f64 = 0.92;

/// The sender waited for room in its send buffer, and the path is not full.
pub(super) const RULE: Rule = Rule {
    id: "send-buffer",
    test: "The sender waited for room in its send buffer, and the path is not full.",
    citation: "tcpi_sndbuf_limited (net/ipv4/tcp_output.c, tcp_chrono_start); tcp_sndbuf_expand()",
    check,
};

fn check(evidence: &Evidence<'_>) -> Option<Verdict> {
    let shares = evidence.shares?;
    let waits = shares.send_buffer.get() >= LIMITS;
    if !(waits || evidence.send_is_full()) || evidence.is_full_despite(shares.send_buffer) {
        return None;
    }
    // What is under way reaches the window, so that a larger send buffer would change nothing.
    let reached = evidence
        .in_flight
        .zip(evidence.window)
        .is_some_and(|(flight, window)| flight.as_f64() >= REACHED * window.as_f64());
    if reached {
        return None;
    }
    let most =
        evidence.sender_setting("net.ipv4.tcp_wmem").and_then(|values| values.get(2).copied()).map(ByteCount::new);
    let at_the_end =
        evidence.send_buffer.zip(most).is_some_and(|((size, _), most)| size.as_f64() >= 0.9 * most.as_f64());
    let needed = measured_need(evidence.observation, Buffer::Send);
    let how = if waits {
        format!("for {} of the time", percent(shares.send_buffer))
    } else {
        "with what is under way, and nothing waits to be sent".to_owned()
    };
    let why = if at_the_end {
        "it may not grow further (net.ipv4.tcp_wmem)"
    } else {
        "it does not grow to what the path needs"
    };
    let text = format!("The send buffer is full {how}: {why}.");
    Some(
        verdict(Cause::SendBuffer, if at_the_end { Confidence::High } else { Confidence::Medium }, text)
            .figure("send buffer", evidence.send_buffer.map(|(buffer, _)| size(buffer)))
            .figure("net.ipv4.tcp_wmem, largest", most.map(size))
            .figure("bandwidth-delay product", evidence.product().map(size))
            .advice(third_number("sender", "net.ipv4.tcp_wmem", most, needed)),
    )
}
