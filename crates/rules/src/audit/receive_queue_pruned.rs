//! Receive queues were collapsed or pruned because their buffers were full.

use linerate_model::finding::AuditFinding;
use linerate_model::host::HostFacts;

use super::AuditRule;
use super::link_support::{FindingDraft, by_share, counted, counter, host_that_counted, part_of};

const ID: &str = "receive-queue-pruned";
const CITATION: &str = "kernel: Documentation/networking/snmp_counter.rst (PruneCalled, TCPRcvCollapsed, OfoPruned)";
const COUNTERS: [&str; 5] =
    ["TcpExtPruneCalled", "TcpExtTCPRcvCollapsed", "TcpExtRcvPruned", "TcpExtOfoPruned", "TcpExtTCPRcvQDrop"];
const SEGMENTS: &str = "TcpInSegs";
const MIN_PRUNED_RATIO: f64 = 1e-4;

pub(super) const RULE: AuditRule = AuditRule {
    id: ID,
    title: "The kernel collapsed or pruned full receive queues.",
    explanation: "When a socket uses more memory than allowed, the kernel copies segments together (collapse), and \
        drops out-of-order segments when that is not enough (prune). It costs processor time and causes \
        retransmissions. Reasons are a program that reads too slowly, small segments that each occupy a whole buffer, \
        or a receive buffer that is too small for the advertised window.",
    citation: CITATION,
    keys: &["net.ipv4.tcp_rmem"],
    check,
    fires: || host_that_counted(&[(COUNTERS[1], 5000), (SEGMENTS, 1_000_000)]),
    silent: || host_that_counted(&[(COUNTERS[1], 0), (SEGMENTS, 1_000_000)]),
};

fn check(host: &HostFacts) -> Vec<AuditFinding> {
    let counts: Vec<(&str, u64)> =
        COUNTERS.iter().map(|name| (*name, counter(host, name))).filter(|(_, count)| *count > 0).collect();
    let segments = counter(host, SEGMENTS);
    // One event may be counted under several names: the largest represents all.
    let Some(most) = counts.iter().map(|(_, count)| *count).max() else { return Vec::new() };
    let mut evidence: Vec<String> = counts.iter().map(|(name, count)| counted(name, *count)).collect();
    evidence.push(counted(SEGMENTS, segments));
    let draft = FindingDraft {
        rule: (ID, CITATION),
        severity: by_share(most, segments, MIN_PRUNED_RATIO),
        subject: "receive buffers".to_owned(),
        text: format!("The kernel collapsed or pruned full receive queues; segments: {}.", part_of(most, segments)),
        evidence,
        remedy: vec![
            "ss -tmi (a Recv-Q that stays high is a program that reads too slowly)".to_owned(),
            "linerate diagnose HOST -- -R (checks if the receive window limits the transfer, and computes tcp_rmem)"
                .to_owned(),
            "linerate tune HOST -- -R (where the window is the limit: tries that tcp_rmem, and keeps it only if it \
                helps)"
                .to_owned(),
        ],
        risk: "",
    };
    vec![draft.finding()]
}
