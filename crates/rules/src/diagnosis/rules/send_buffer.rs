//! The sender waited for free space in its send buffer, and the path is not full.

use linerate_model::diagnosis::{Cause, DiagnosisVerdict};
use linerate_units::{ByteCount, Ratio};

use super::super::DiagnosisRule;
use super::super::evidence::TransferEvidence;
use super::super::text::{VerdictBuilder, percent, size, third_number_advice, verdict};
use crate::tuning::{SocketBuffer, measured_buffer_need};

/// Share of the busy time from which the buffer limits.
const MIN_LIMITED_SHARE: f64 = 0.2;
/// Share of the window from which the window limits, not the buffer.
const MIN_REACHED_SHARE: f64 = 0.92;
/// The same where the sender waits longer for its own buffer than for the window.
const MIN_REACHED_WHILE_WAITING: f64 = 0.95;

/// The sender waited for free space in its send buffer, and the path is not full.
pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    id: "send-buffer",
    test: "The sender waited for free space in its send buffer, and the path is not full.",
    citation: "tcpi_sndbuf_limited (net/ipv4/tcp_output.c, tcp_chrono_start); tcp_sndbuf_expand()",
    check,
};

fn check(evidence: &TransferEvidence<'_>) -> Option<DiagnosisVerdict> {
    let shares = evidence.shares?;
    let waits = shares.send_buffer.get() >= MIN_LIMITED_SHARE;
    let overfull = evidence.overfilling_write().is_some();
    // Writes with pauses take their part of the whole transfer.
    let limited = Ratio::new(1.0).filter(|_| overfull).unwrap_or(shares.send_buffer);
    if !(waits || overfull || evidence.waits_for_send_buffer()) || evidence.fills_path_despite(limited) {
        return None;
    }
    // The data in flight reaches the window, so that a larger send buffer would change nothing.
    let least = if shares.send_buffer > shares.receive_window { MIN_REACHED_WHILE_WAITING } else { MIN_REACHED_SHARE };
    let reached = evidence
        .in_flight
        .zip(evidence.window)
        .is_some_and(|(flight, window)| flight.as_f64() >= least * window.as_f64());
    if reached {
        return None;
    }
    let most =
        evidence.sender_setting("net.ipv4.tcp_wmem").and_then(|values| values.get(2).copied()).map(ByteCount::new);
    let at_the_end =
        evidence.send_buffer.zip(most).is_some_and(|((size, _), most)| size.as_f64() >= 0.9 * most.as_f64());
    let needed = measured_buffer_need(evidence.observation, SocketBuffer::Send);
    let how = if waits {
        format!("for {} of the time", percent(shares.send_buffer))
    } else if overfull {
        "of a single write, so that data is sent in bursts with pauses".to_owned()
    } else {
        "of data in flight, and no data waits to be sent".to_owned()
    };
    let why = if at_the_end {
        "it cannot grow further (net.ipv4.tcp_wmem)"
    } else {
        "it does not grow to the size that the path needs"
    };
    let text = format!("The send buffer is full {how}: {why}.");
    let sure = evidence.confidence_in_a_window(at_the_end && (waits || !overfull));
    Some(
        verdict(Cause::SendBuffer, sure, text)
            .figure("send buffer", evidence.send_buffer.map(|(buffer, _)| size(buffer)))
            .figure("net.ipv4.tcp_wmem, largest", most.map(size))
            .figure("bandwidth-delay product", evidence.bandwidth_delay_product().map(size))
            .advice(third_number_advice(
                ("sender", "net.ipv4.tcp_wmem"),
                most,
                needed,
                "a program that sets it or net.ipv4.tcp_mem",
            )),
    )
}
