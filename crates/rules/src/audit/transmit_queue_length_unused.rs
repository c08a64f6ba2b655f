//! The length of the device's queue was changed, and nobody looks at it.

use linerate_model::finding::{Finding, Severity};
use linerate_model::host::HostFacts;
use linerate_model::host::link::{Link, leaves};
use linerate_units::PacketCount;

use super::Rule;
use super::link_support::{Saying, host_with, link_with_queueing, working};

const ID: &str = "transmit-queue-length-unused";
const CITATION: &str =
    "kernel: net/sched/sch_fq.c, sch_fq_codel.c, sch_cake.c (their limits are their own); docs/seeds-checklist.md";
/// What Ethernet devices have (`DEFAULT_TX_QUEUE_LEN`).
const USUAL: u64 = 1000;
/// Disciplines with a limit of their own.
const OWN_LIMIT: [&str; 4] = ["fq", "fq_codel", "cake", "fq_pie"];

pub(super) const RULE: Rule = Rule {
    id: ID,
    title: "txqueuelen was changed, and the queueing discipline does not look at it.",
    explanation: "txqueuelen is the length of pfifo_fast and of pfifo and bfifo without a limit of their own. fq (10000 packets, 100 for each flow), fq_codel (10240) and cake have limits of their own. Recipes that raise it for long paths are of the time of pfifo_fast; some call it a queue of SYN requests, which it never was.",
    citation: CITATION,
    keys: &[],
    check,
    fires: || host_with(vec![with_length("fq_codel", 10_000)]),
    silent: || host_with(vec![with_length("fq_codel", 1000), with_length("pfifo_fast", 10_000)]),
};

fn with_length(kind: &str, length: u64) -> Link {
    Link { transmit_queue: Some(PacketCount::new(length)), ..link_with_queueing(kind, 0) }
}

fn check(host: &HostFacts) -> Vec<Finding> {
    working(host).filter(|link| link.is_hardware()).filter_map(look).collect()
}

fn look(link: &Link) -> Option<Finding> {
    let length = link.transmit_queue.filter(|length| length.get() != USUAL && !length.is_zero())?;
    let leaves = leaves(link.queueing.known()?);
    let own = leaves.iter().all(|leaf| OWN_LIMIT.contains(&leaf.kind.as_str()));
    let kind = &leaves.first().filter(|_| own)?.kind;
    let name = &link.name;
    let saying = Saying {
        rule: (ID, CITATION),
        severity: Severity::Note,
        subject: name.clone(),
        text: format!(
            "{name} has txqueuelen {length}, which has no effect: its discipline {kind} has a limit of its own."
        ),
        evidence: vec![format!("{name}: txqueuelen {length}"), format!("{name}: {} x {kind}", leaves.len())],
        remedy: vec![format!("tc -s qdisc show dev {name} (only drops there would call for another limit)")],
        risk: "",
    };
    Some(saying.finding())
}
