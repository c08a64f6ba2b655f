//! The kernel ran short of memory for TCP (`TCPMemoryPressures` grew, or packets were dropped for it).

use linerate_model::diagnosis::{Cause, Confidence, DiagnosisVerdict};
use linerate_units::ByteCount;

use super::super::DiagnosisRule;
use super::super::evidence::TransferEvidence;
use super::super::text::{VerdictBuilder, size, time, verdict};

const MEMORY_COUNTERS: [&str; 5] =
    ["TcpExtTCPMemoryPressures", "TcpExtTCPAbortOnMemory", "TcpExtTCPRcvQDrop", "TcpExtPFMemallocDrop", PRUNED];

/// The kernel ran short of memory for TCP (`TCPMemoryPressures` grew, or packets were dropped for it).
pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    id: "kernel-memory",
    test: "The kernel ran short of memory for TCP (TCPMemoryPressures grew, or packets were dropped for it).",
    citation: "Documentation/networking/ip-sysctl.rst, tcp_mem; tcp_enter_memory_pressure()",
    check,
};

/// Counter that also grows where a slow reader leaves a socket's own buffer full.
const PRUNED: &str = "TcpExtPruneCalled";

fn check(evidence: &TransferEvidence<'_>) -> Option<DiagnosisVerdict> {
    let grown = |name: &str| [("sender", evidence.sender_counter(name)), ("receiver", evidence.receiver_counter(name))];
    let all: Vec<String> = MEMORY_COUNTERS
        .iter()
        .filter(|name| !(evidence.is_buffer_unread() && **name == PRUNED))
        .flat_map(|name| {
            grown(name).into_iter().filter_map(move |(end, count)| Some((name, end, count.filter(|count| *count > 0)?)))
        })
        .map(|(name, end, count)| format!("{} {count} times at the {end}", name.trim_start_matches("TcpExt")))
        .collect();
    if all.is_empty() || evidence.is_full() {
        return None;
    }
    let limit = |pages: Option<Vec<u64>>| {
        pages.and_then(|pages| pages.get(2).map(|most| size(ByteCount::new(most.saturating_mul(4096)))))
    };
    let mut verdict = verdict(
        Cause::KernelMemory,
        Confidence::High,
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
