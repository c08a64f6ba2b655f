//! A program set a socket buffer size, which disables auto-tuning, and that buffer is full.

use linerate_model::diagnosis::{Cause, Confidence, DiagnosisVerdict};
use linerate_units::ByteCount;

use super::super::DiagnosisRule;
use super::super::evidence::TransferEvidence;
use super::super::text::{VerdictBuilder, percent, size, verdict};

/// Share of the busy time from which a buffer limits.
const MIN_LIMITED_SHARE: f64 = 0.2;

/// A program set a socket buffer size, which disables auto-tuning, and that buffer is full.
pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    id: "socket-buffer",
    test: "A program set a socket buffer size, which disables auto-tuning, and that buffer is full.",
    citation: "socket(7), SO_RCVBUF and SO_SNDBUF; tcp(7)",
    check,
};

fn check(evidence: &TransferEvidence<'_>) -> Option<DiagnosisVerdict> {
    let shares = evidence.shares?;
    let limited = if shares.send_buffer > shares.receive_window { shares.send_buffer } else { shares.receive_window };
    if evidence.fills_path_despite(limited) {
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
        .filter(|_| shares.send_buffer.get() >= MIN_LIMITED_SHARE || evidence.is_send_buffer_full());
    let receive = held(evidence.receive_buffer, evidence.receiver_setting("net.ipv4.tcp_rmem"))
        .filter(|_| shares.receive_window.get() >= MIN_LIMITED_SHARE || evidence.is_window_per_rtt());
    let unread = evidence.unread.is_some_and(|unread| unread.get() >= 0.4);
    let (which, buffer, option) = match (send, receive.filter(|_| !unread)) {
        (Some(size), _) => ("send", size, "SO_SNDBUF"),
        (None, Some(size)) => ("receive", size, "SO_RCVBUF"),
        (None, None) => return None,
    };
    let sure = if evidence.observation.asked.buffer.is_some() { Confidence::High } else { Confidence::Medium };
    let needed = evidence.bandwidth_delay_product().map(|product| size(ByteCount::new(product.get() * 2)));
    let text = format!(
        "A program set its {which} buffer ({option}); the kernel counts it as {} and no longer grows it, whatever the \
            path needs.",
        size(buffer)
    );
    Some(
        verdict(Cause::SocketBuffer, sure, text)
            .figure("requested buffer", evidence.observation.asked.buffer.map(size))
            .figure("time limited by the send buffer", Some(percent(shares.send_buffer)))
            .figure("time limited by the receiver's window", Some(percent(shares.receive_window)))
            .figure("advertised window", evidence.window.map(size))
            .figure("buffer needed by the path", needed)
            .advice("do not set the buffer in the program (iperf3 without -w): the kernel tunes it by itself")
            .advice(
                "where the program must set it: net.core.rmem_max and net.core.wmem_max bound it, and tcp_rmem and \
                tcp_wmem do not",
            ),
    )
}
