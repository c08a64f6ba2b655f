//! The kernel ran short of memory for TCP: a counter grew, packets were dropped, or it cut the window.

use linerate_model::diagnosis::{Cause, Confidence, DiagnosisVerdict};
use linerate_units::{ByteCount, display};

use super::super::DiagnosisRule;
use super::super::evidence::TransferEvidence;
use super::super::text::{VerdictBuilder, size, time, verdict};

const MEMORY_COUNTERS: [&str; 5] =
    ["TcpExtTCPMemoryPressures", "TcpExtTCPAbortOnMemory", "TcpExtTCPRcvQDrop", "TcpExtPFMemallocDrop", PRUNED];

/// The kernel ran short of memory for TCP: a counter grew, packets were dropped, or it cut the window.
pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    id: "kernel-memory",
    test: "The kernel ran short of memory for TCP: TCPMemoryPressures grew, packets were dropped, or a window of four segments is \
        offered of a large buffer.",
    citation: "Documentation/networking/ip-sysctl.rst, tcp_mem; tcp_enter_memory_pressure()",
    check,
};

/// Counter that also grows where a slow reader leaves a socket's own buffer full.
const PRUNED: &str = "TcpExtPruneCalled";

/// Counters that also grow by the overfull buffer of any other socket of the host.
const OF_ANY_SOCKET: [&str; 2] = ["TcpExtTCPRcvQDrop", PRUNED];

fn check(evidence: &TransferEvidence<'_>) -> Option<DiagnosisVerdict> {
    let grown = |name: &str| [("sender", evidence.sender_counter(name)), ("receiver", evidence.receiver_counter(name))];
    let is_grown = |name: &str| grown(name).iter().any(|(_, count)| count.is_some_and(|count| count > 0));
    let is_short = MEMORY_COUNTERS.iter().any(|name| !OF_ANY_SOCKET.contains(name) && is_grown(name));
    // What the kernel drops of this transfer is retransmitted, and what it prunes closes the window.
    let waits = evidence.shares.is_some_and(|shares| shares.receive_window.get() >= MIN_LIMITED_SHARE);
    let is_met = waits || evidence.retransmits.is_none_or(|count| !count.is_zero());
    let all: Vec<String> = MEMORY_COUNTERS
        .iter()
        .filter(|name| !(evidence.is_buffer_unread() && **name == PRUNED))
        .filter(|name| is_short || !OF_ANY_SOCKET.contains(name) || is_met)
        .flat_map(|name| {
            grown(name).into_iter().filter_map(move |(end, count)| Some((name, end, count.filter(|count| *count > 0)?)))
        })
        .map(|(name, end, count)| {
            format!("{} {} at the {end}", name.trim_start_matches("TcpExt"), display::times(count))
        })
        .collect();
    if evidence.is_full() {
        return None;
    }
    if all.is_empty() {
        return cut_window(evidence);
    }
    let limit = |pages: Option<Vec<u64>>| {
        pages.and_then(|pages| pages.get(2).map(|most| size(ByteCount::new(most.saturating_mul(4096)))))
    };
    let mut verdict = verdict(
        Cause::KernelMemory,
        if is_short { Confidence::High } else { Confidence::Medium },
        format!("The memory limit of all TCP sockets (net.ipv4.tcp_mem) is too low: {}.", all.join(", ")),
    )
    .figure("sender's tcp_mem", limit(evidence.sender_setting("net.ipv4.tcp_mem")))
    .figure("receiver's tcp_mem", limit(evidence.receiver_setting("net.ipv4.tcp_mem")))
    .figure("longest stall", Some(time(evidence.longest_stall)))
    .advice(
        "raise net.ipv4.tcp_mem (pages of 4096 bytes) so that its second number covers all windows in flight, with \
        memory to spare",
    );
    verdict.evidence.extend(all);
    Some(verdict)
}

/// Segments to which the kernel cuts windows under memory pressure (`tcp_adjust_rcv_ssthresh()`), with room for the rounding
/// of the window scale; and the largest share of the receive buffer that such a window takes.
const MOST_SEGMENTS: f64 = 5.0;
const MAX_BUFFER_SHARE: f64 = 0.1;
/// Share of the time that the sender waits for such a window.
const MIN_LIMITED_SHARE: f64 = 0.5;
/// Unread share of the receive buffer up to which the reading program is not the cause.
const MAX_UNREAD_SHARE: f64 = 0.05;

/// Verdict by the window alone: the counter grows in the network namespace whose socket met the limit, which need not be this
/// one.
fn cut_window(evidence: &TransferEvidence<'_>) -> Option<DiagnosisVerdict> {
    let (window, segment, (buffer, _)) = (evidence.window?, evidence.segment?, evidence.receive_buffer?);
    let is_cut = window.as_f64() <= segment.byte_count().as_f64() * MOST_SEGMENTS
        && window.as_f64() <= buffer.as_f64() * MAX_BUFFER_SHARE
        && evidence.largest_window.is_some_and(|largest| largest.as_f64() >= 2.0 * window.as_f64());
    let waits = evidence.shares?.receive_window.get() >= MIN_LIMITED_SHARE;
    let is_read = evidence.unread?.get() <= MAX_UNREAD_SHARE;
    if !(is_cut && waits && is_read) {
        return None;
    }
    let text = format!(
        "The receiver's kernel is short of memory for TCP (net.ipv4.tcp_mem): it offers a window of {}, four segments, of a \
            buffer of {} that is read at once.",
        size(window),
        size(buffer)
    );
    Some(
        verdict(Cause::KernelMemory, Confidence::Medium, text)
            .figure("largest advertised window", evidence.largest_window.map(size))
            .advice("on the receiver: `linerate audit` shows the memory of all sockets against net.ipv4.tcp_mem"),
    )
}
