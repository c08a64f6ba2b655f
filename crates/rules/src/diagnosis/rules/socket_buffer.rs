//! A program set a socket buffer size, which disables auto-tuning, and that buffer is full.

use linerate_analysis::formulas::SOCKET_BUFFER_FACTOR;
use linerate_model::diagnosis::{Cause, Confidence, DiagnosisVerdict};
use linerate_model::socket::LockedBuffers;
use linerate_units::ByteCount;

use super::super::DiagnosisRule;
use super::super::evidence::TransferEvidence;
use super::super::text::{VerdictBuilder, percent, size, verdict};
use super::autotuning_off;

/// Share of the busy time from which a buffer limits.
pub(super) const MIN_LIMITED_SHARE: f64 = 0.2;

/// A program set a socket buffer size, which disables auto-tuning, and that buffer is full.
pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    id: "socket-buffer",
    test: "A program set a socket buffer size, which disables auto-tuning, and that buffer is full.",
    citation: "socket(7), SO_RCVBUF, SO_SNDBUF and SO_BUF_LOCK; tcp(7)",
    check,
};

/// Buffer that does not grow.
struct FixedBuffer {
    name: &'static str,
    option: &'static str,
    limit_name: &'static str,
    size: ByteCount,
    /// Value of the setting that bounds requests.
    limit: Option<ByteCount>,
    is_known: bool,
}

fn check(evidence: &TransferEvidence<'_>) -> Option<DiagnosisVerdict> {
    let shares = evidence.shares?;
    let limited = if shares.send_buffer > shares.receive_window { shares.send_buffer } else { shares.receive_window };
    if evidence.fills_path_despite(limited) {
        return None;
    }
    let send_limits = shares.send_buffer.get() >= MIN_LIMITED_SHARE || evidence.waits_for_send_buffer();
    let receive_limits = shares.receive_window.get() >= MIN_LIMITED_SHARE || evidence.is_window_per_rtt();
    let unread = evidence.is_buffer_unread();
    let send = send_buffer(evidence).filter(|_| send_limits);
    let fixed = send.or_else(|| receive_buffer(evidence).filter(|_| receive_limits && !unread))?;
    let sure = if fixed.is_known { Confidence::High } else { Confidence::Low };
    let needed =
        evidence.bandwidth_delay_product().map(|product| size(ByteCount::new(product.get().saturating_mul(2))));
    let verdict = verdict(Cause::SocketBuffer, sure, text(evidence, &fixed))
        .figure("requested buffer", evidence.observation.asked.buffer.map(size))
        .figure(fixed.limit_name, fixed.limit.map(size))
        .figure("time limited by the send buffer", Some(percent(shares.send_buffer)))
        .figure("time limited by the receiver's window", Some(percent(shares.receive_window)))
        .figure("advertised window", evidence.window.map(size))
        .figure("buffer needed by the path", needed)
        .advice("do not set the buffer in the program (iperf3 without -w): the kernel tunes it by itself");
    Some(verdict.advice(format!(
        "where the program must set it: {} bounds the request, and tcp_rmem and tcp_wmem do not",
        fixed.limit_name
    )))
}

fn text(evidence: &TransferEvidence<'_>, fixed: &FixedBuffer) -> String {
    let FixedBuffer { name, option, limit_name, .. } = fixed;
    let counted = size(fixed.size);
    if !fixed.is_known {
        return format!(
            "The {name} buffer stayed at {counted} while it was full: a program set it ({option}), or the kernel did not \
                grow it."
        );
    }
    let is_cut = fixed.limit.is_some_and(|limit| is_cut(evidence, fixed.size, limit));
    let cut = if is_cut { format!(", and {limit_name} cut the request") } else { String::new() };
    format!(
        "A program set its {name} buffer ({option}){cut}; the kernel counts it as {counted} and no longer grows it, \
            whatever the path needs."
    )
}

/// True when the buffer has the largest size that the setting allows, and more was requested, as far as that is known.
fn is_cut(evidence: &TransferEvidence<'_>, size: ByteCount, limit: ByteCount) -> bool {
    let at_the_limit = size.get() == limit.get().saturating_mul(SOCKET_BUFFER_FACTOR);
    at_the_limit && evidence.observation.asked.buffer.is_none_or(|asked| asked > limit)
}

fn send_buffer(evidence: &TransferEvidence<'_>) -> Option<FixedBuffer> {
    let locked = locks(evidence, |connection| &connection.sender).map(|locked| locked.send);
    let most = evidence.sender_setting("net.ipv4.tcp_wmem");
    Some(FixedBuffer {
        name: "send",
        option: "SO_SNDBUF",
        limit_name: "net.core.wmem_max",
        size: fixed_size(evidence, evidence.send_buffer, most, locked)?,
        limit: first(evidence.sender_setting("net.core.wmem_max")),
        is_known: is_known(evidence, locked),
    })
}

fn receive_buffer(evidence: &TransferEvidence<'_>) -> Option<FixedBuffer> {
    let locked = locked_receive_buffer(evidence);
    let is_known = is_known(evidence, locked);
    // Two other reasons for a buffer that does not grow.
    let scales = evidence.sender().is_none_or(|info| info.window_scale.is_some());
    if !is_known && (autotuning_off::is_off(evidence) || !scales) {
        return None;
    }
    let most = evidence.receiver_setting("net.ipv4.tcp_rmem");
    Some(FixedBuffer {
        name: "receive",
        option: "SO_RCVBUF",
        limit_name: "net.core.rmem_max",
        size: fixed_size(evidence, evidence.receive_buffer, most, locked)?,
        limit: first(evidence.receiver_setting("net.core.rmem_max")),
        is_known,
    })
}

/// True when a program set a buffer for certain.
fn is_known(evidence: &TransferEvidence<'_>, locked: Option<bool>) -> bool {
    locked == Some(true) || locked.is_none() && evidence.observation.asked.buffer.is_some()
}

/// Size of a buffer that did not change and that the kernel could have grown, or that a program set. One that is known not
/// to be locked is the kernel's.
fn fixed_size(
    evidence: &TransferEvidence<'_>,
    buffer: Option<(ByteCount, bool)>,
    limit: Option<Vec<u64>>,
    locked: Option<bool>,
) -> Option<ByteCount> {
    let (size, changed) = buffer?;
    let most = limit.and_then(|limit| limit.get(2).copied());
    let below = most.is_none_or(|most| size.as_f64() < 0.9 * ByteCount::new(most).as_f64());
    (!changed && locked != Some(false) && (below || is_known(evidence, locked))).then_some(size)
}

/// True when a program set the receive buffer; `None` where that is unknown.
pub(super) fn locked_receive_buffer(evidence: &TransferEvidence<'_>) -> Option<bool> {
    locks(evidence, |connection| &connection.receiver).map(|locked| locked.receive)
}

fn locks(
    evidence: &TransferEvidence<'_>,
    end: impl Fn(&linerate_model::diagnosis::ObservedConnection) -> &Vec<linerate_model::diagnosis::SocketInterval>,
) -> Option<LockedBuffers> {
    let last = evidence.observation.connections.iter().find_map(|connection| end(connection).last())?;
    last.socket.memory?.locked
}

fn first(values: Option<Vec<u64>>) -> Option<ByteCount> {
    values.and_then(|values| values.first().copied()).map(ByteCount::new)
}
