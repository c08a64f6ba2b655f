//! Packets that had arrived were dropped in the receiving host.

use linerate_model::diagnosis::{Cause, Confidence, Verdict};

use super::super::Rule;
use super::super::evidence::Evidence;
use super::super::words::{With, verdict};

const NAMES: [&str; 4] = ["TcpExtTCPBacklogDrop", "TcpExtTCPOFODrop", "TcpExtRcvPruned", "TcpExtOfoPruned"];

/// Packets that had arrived were dropped in the receiving host.
pub(super) const RULE: Rule = Rule {
    id: "host-drops",
    test: "Packets that had arrived were dropped in the receiving host.",
    citation: "include/uapi/linux/snmp.h: TCPBacklogDrop, TCPOFODrop, RcvPruned, OfoPruned",
    check,
};

fn check(evidence: &Evidence<'_>) -> Option<Verdict> {
    let drops: Vec<(&str, u64)> = NAMES
        .iter()
        .filter_map(|name| Some((*name, evidence.receiver_counter(name).filter(|count| *count > 0)?)))
        .collect();
    let all: u64 = drops.iter().map(|(_, count)| count).sum();
    let again = evidence.retransmits?.get();
    if evidence.is_full() || all == 0 || all < again / 3 {
        return None;
    }
    let list: Vec<String> =
        drops.iter().map(|(name, count)| format!("{}: {count}", name.trim_start_matches("TcpExt"))).collect();
    let text =
        format!("{all} packets were dropped in the receiving host after they had arrived ({}).", list.join(", "));
    Some(
        verdict(Cause::HostDrops, Confidence::Medium, text)
            .advice("`linerate audit` on the receiver tells which limit drops them"),
    )
}
