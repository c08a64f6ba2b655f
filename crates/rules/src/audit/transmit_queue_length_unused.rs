//! `txqueuelen` was changed, but the qdisc does not use it.

use linerate_model::finding::{AuditFinding, FindingSeverity};
use linerate_model::host::HostFacts;
use linerate_model::host::link::{NetworkLink, leaves};
use linerate_units::PacketCount;

use super::AuditRule;
use super::link_support::{FindingDraft, host_with, link_with_queueing, working};

const ID: &str = "transmit-queue-length-unused";
const CITATION: &str =
    "kernel: net/sched/sch_fq.c, sch_fq_codel.c, sch_cake.c (their limits are their own); docs/seeds-checklist.md";
/// Default of Ethernet devices (`DEFAULT_TX_QUEUE_LEN`).
const DEFAULT_QUEUE_LENGTH: u64 = 1000;
/// Qdiscs with a limit of their own.
const QDISCS_WITH_OWN_LIMIT: [&str; 4] = ["fq", "fq_codel", "cake", "fq_pie"];

pub(super) const RULE: AuditRule = AuditRule {
    id: ID,
    title: "txqueuelen was changed, but the queueing discipline does not use it.",
    explanation: "txqueuelen is the length of pfifo_fast and of pfifo and bfifo without a limit of their own. fq \
        (10000 packets, 100 for each flow), fq_codel (10240) and cake have limits of their own. Recipes that raise it \
        for long paths date from the time of pfifo_fast; some call it a queue of SYN requests, which it never was.",
    citation: CITATION,
    keys: &[],
    check,
    fires: || host_with(vec![with_length("fq_codel", 10_000)]),
    silent: || host_with(vec![with_length("fq_codel", 1000), with_length("pfifo_fast", 10_000)]),
};

fn with_length(kind: &str, length: u64) -> NetworkLink {
    NetworkLink { transmit_queue: Some(PacketCount::new(length)), ..link_with_queueing(kind, 0) }
}

fn check(host: &HostFacts) -> Vec<AuditFinding> {
    working(host).filter(|link| link.is_hardware()).filter_map(check_link).collect()
}

fn check_link(link: &NetworkLink) -> Option<AuditFinding> {
    let length = link.transmit_queue.filter(|length| length.get() != DEFAULT_QUEUE_LENGTH && !length.is_zero())?;
    let leaves = leaves(link.queueing.known()?);
    let own = leaves.iter().all(|leaf| QDISCS_WITH_OWN_LIMIT.contains(&leaf.kind.as_str()));
    let kind = &leaves.first().filter(|_| own)?.kind;
    let name = &link.name;
    let draft = FindingDraft {
        rule: (ID, CITATION),
        severity: FindingSeverity::Note,
        subject: name.clone(),
        text: format!("{name} has txqueuelen {length}, which has no effect: its qdisc {kind} has a limit of its own."),
        evidence: vec![format!("{name}: txqueuelen {length}"), format!("{name}: {} x {kind}", leaves.len())],
        remedy: vec![format!("tc -s qdisc show dev {name} (only drops there would call for another limit)")],
        risk: "",
    };
    Some(draft.finding())
}
