//! A program set a socket buffer, which the kernel then leaves as it is, and that buffer is what is full.

use linerate_model::diagnosis::{Cause, Confidence, Verdict};
use linerate_units::ByteCount;

use super::super::Rule;
use super::super::evidence::Evidence;
use super::super::words::{With, percent, size, verdict};

/// From this share of the busy time on, a buffer limits.
const LIMITS: f64 = 0.2;

/// A program set a socket buffer, which the kernel then leaves as it is, and that buffer is what is full.
pub(super) const RULE: Rule = Rule {
    id: "socket-buffer",
    test: "A program set a socket buffer, which the kernel then leaves as it is, and that buffer is what is full.",
    citation: "socket(7), SO_RCVBUF and SO_SNDBUF; tcp(7)",
    check,
};

fn check(evidence: &Evidence<'_>) -> Option<Verdict> {
    let shares = evidence.shares?;
    let limited = if shares.send_buffer > shares.receive_window { shares.send_buffer } else { shares.receive_window };
    if evidence.is_full_despite(limited) {
        return None;
    }
    let held = |buffer: Option<(ByteCount, bool)>, limit: Option<Vec<u64>>| {
        let (size, changed) = buffer?;
        let below = limit
            .and_then(|limit| limit.get(2).copied())
            .is_none_or(|most| size.as_f64() < 0.9 * ByteCount::new(most).as_f64());
        (!changed && (below || evidence.observation.asked.buffer.is_some())).then_some(size)
    };
    let send = held(evidence.send_buffer, evidence.sender_setting("net.ipv4.tcp_wmem"))
        .filter(|_| shares.send_buffer.get() >= LIMITS || evidence.send_is_full());
    let receive = held(evidence.receive_buffer, evidence.receiver_setting("net.ipv4.tcp_rmem"))
        .filter(|_| shares.receive_window.get() >= LIMITS || evidence.keeps_to_the_window());
    let unread = evidence.unread.is_some_and(|unread| unread.get() >= 0.4);
    let (which, buffer, option) = match (send, receive.filter(|_| !unread)) {
        (Some(size), _) => ("send", size, "SO_SNDBUF"),
        (None, Some(size)) => ("receive", size, "SO_RCVBUF"),
        (None, None) => return None,
    };
    let sure = if evidence.observation.asked.buffer.is_some() { Confidence::High } else { Confidence::Medium };
    let needed = evidence.product().map(|product| size(ByteCount::new(product.get() * 2)));
    let text = format!(
        "A program set its {which} buffer ({option}) to what the kernel counts as {}: that is all it will be, whatever the path needs.",
        size(buffer)
    );
    Some(
        verdict(Cause::SocketBuffer, sure, text)
            .figure("asked for", evidence.observation.asked.buffer.map(size))
            .figure("time limited by the send buffer", Some(percent(shares.send_buffer)))
            .figure("time limited by the receiver's window", Some(percent(shares.receive_window)))
            .figure("window offered", evidence.window.map(size))
            .figure("the path needs", needed)
            .advice("do not set the buffer in the program (iperf3 without -w): the kernel tunes it by itself")
            .advice("where the program must set it: net.core.rmem_max and net.core.wmem_max bound what it gets, and tcp_rmem and tcp_wmem do not"),
    )
}
