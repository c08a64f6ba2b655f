//! Received packets were dropped in the receiving host.

use linerate_model::diagnosis::{Cause, Confidence, DiagnosisVerdict};

use super::super::DiagnosisRule;
use super::super::evidence::TransferEvidence;
use super::super::host_load::TransferEnd;
use super::super::kernel_events;
use super::super::text::{VerdictBuilder, verdict};

const DROP_COUNTERS: [&str; 4] = ["TcpExtTCPBacklogDrop", "TcpExtTCPOFODrop", "TcpExtRcvPruned", "TcpExtOfoPruned"];

/// Drops at the full queue of a processor, before the network stack (`net.core.netdev_max_backlog`).
const BACKLOG_DROPS: &str = "softnet_stat dropped";

/// Received packets were dropped in the receiving host.
pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    id: "host-drops",
    test: "Received packets were dropped in the receiving host.",
    citation: "include/uapi/linux/snmp.h: TCPBacklogDrop, TCPOFODrop, RcvPruned, OfoPruned; /proc/net/softnet_stat",
    check,
};

fn check(evidence: &TransferEvidence<'_>) -> Option<DiagnosisVerdict> {
    // Where all sockets' memory was short, packets that were pruned were dropped for it.
    let names = if super::kernel_memory::RULE.is_silent(evidence) { &DROP_COUNTERS[..] } else { &DROP_COUNTERS[..1] };
    let drops: Vec<(&str, u64)> = names
        .iter()
        .filter_map(|name| Some((*name, evidence.receiver_counter(name).filter(|count| *count > 0)?)))
        .collect();
    let backlog =
        evidence.host(TransferEnd::Receiver).and_then(|host| host.receiving).map(|receiving| receiving.dropped);
    let drops: Vec<(&str, u64)> =
        drops.into_iter().chain(backlog.filter(|count| *count > 0).map(|count| (BACKLOG_DROPS, count))).collect();
    let all = drops.iter().fold(0_u64, |sum, (_, count)| sum.saturating_add(*count));
    let retransmitted = evidence.retransmits?.get();
    if evidence.is_full() || all == 0 || all < retransmitted / 3 {
        return None;
    }
    let list: Vec<String> =
        drops.iter().map(|(name, count)| format!("{}: {count}", name.trim_start_matches("TcpExt"))).collect();
    let text = format!("{all} received packets were dropped in the receiving host ({}).", list.join(", "));
    Some(
        verdict(Cause::HostDrops, Confidence::Medium, text)
            .figure(
                "drops by the kernel's reason",
                evidence.kernel_events(TransferEnd::Receiver).and_then(kernel_events::drop_reasons),
            )
            .advice("`linerate audit` on the receiver names the limit that drops them"),
    )
}
