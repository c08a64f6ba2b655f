//! Receive buffers were so full that the kernel packed or threw away what was in them.

use linerate_model::finding::Finding;
use linerate_model::host::HostFacts;

use super::Rule;
use super::link_support::{Saying, by_share, counted, counter, host_that_counted, part_of};

const ID: &str = "receive-queue-pruned";
const CITATION: &str = "kernel: Documentation/networking/snmp_counter.rst (PruneCalled, TCPRcvCollapsed, OfoPruned)";
const COUNTERS: [&str; 5] =
    ["TcpExtPruneCalled", "TcpExtTCPRcvCollapsed", "TcpExtRcvPruned", "TcpExtOfoPruned", "TcpExtTCPRcvQDrop"];
const SEGMENTS: &str = "TcpInSegs";
const FELT: f64 = 1e-4;

pub(super) const RULE: Rule = Rule {
    id: ID,
    title: "Receive buffers were so full that the kernel had to pack or drop what was in them.",
    explanation: "When more memory is in use than the socket may have, the kernel copies segments together (collapse), and throws away what came out of order when that is not enough (prune). It takes the processor's time and causes retransmissions. Reasons are a program that reads too slowly, small segments that each take a whole buffer, or a receive buffer that is too small for the window that was promised.",
    citation: CITATION,
    keys: &["net.ipv4.tcp_rmem"],
    check,
    fires: || host_that_counted(&[(COUNTERS[1], 5000), (SEGMENTS, 1_000_000)]),
    silent: || host_that_counted(&[(COUNTERS[1], 0), (SEGMENTS, 1_000_000)]),
};

fn check(host: &HostFacts) -> Vec<Finding> {
    let counts: Vec<(&str, u64)> =
        COUNTERS.iter().map(|name| (*name, counter(host, name))).filter(|(_, count)| *count > 0).collect();
    let segments = counter(host, SEGMENTS);
    // One event may be counted under several names: the largest stands for all.
    let Some(most) = counts.iter().map(|(_, count)| *count).max() else { return Vec::new() };
    let mut evidence: Vec<String> = counts.iter().map(|(name, count)| counted(name, *count)).collect();
    evidence.push(counted(SEGMENTS, segments));
    let saying = Saying {
        rule: (ID, CITATION),
        severity: by_share(most, segments, FELT),
        subject: "receive buffers".to_owned(),
        text: format!(
            "The kernel packed or dropped what was in full receive buffers; segments: {}.",
            part_of(most, segments)
        ),
        evidence,
        remedy: vec![
            "ss -tmi (a Recv-Q that stays high is a program that reads too slowly)".to_owned(),
            "linerate diagnose HOST -- -R (says whether the receive window limits the transfer, and computes tcp_rmem)"
                .to_owned(),
            "linerate tune HOST -- -R (where the window is the limit: tries that tcp_rmem, and keeps it only if it helps)"
                .to_owned(),
        ],
        risk: "",
    };
    vec![saying.finding()]
}
