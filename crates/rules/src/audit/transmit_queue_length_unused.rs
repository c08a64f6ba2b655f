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
/// Qdiscs whose limit is txqueuelen.
const QDISCS_OF_THIS_LENGTH: [&str; 1] = ["pfifo_fast"];

pub(super) const RULE: AuditRule = AuditRule {
    id: ID,
    title: "txqueuelen was changed, which has no effect with this queueing discipline, or only adds delay.",
    explanation: "txqueuelen is the length of pfifo_fast and of pfifo and bfifo without a limit of their own. fq \
        (10000 packets, 100 for each flow), fq_codel (10240) and cake have limits of their own. Recipes that raise it \
        for long paths date from the time of pfifo_fast; some call it a queue of SYN requests, which it never was.",
    citation: CITATION,
    keys: &[],
    check,
    fires: || host_with(vec![with_length("fq_codel", 10_000)]),
    silent: || host_with(vec![with_length("fq_codel", 1000), with_length("pfifo_fast", 1000)]),
};

fn with_length(kind: &str, length: u64) -> NetworkLink {
    NetworkLink { transmit_queue: Some(PacketCount::new(length)), ..link_with_queueing(kind, 0) }
}

fn check(host: &HostFacts) -> Vec<AuditFinding> {
    working(host).filter_map(check_link).collect()
}

fn check_link(link: &NetworkLink) -> Option<AuditFinding> {
    let length = link.transmit_queue.filter(|length| !length.is_zero())?;
    // Virtual devices have defaults of their own, none of them above that of Ethernet.
    let changed = length.get() > DEFAULT_QUEUE_LENGTH || link.is_hardware() && length.get() != DEFAULT_QUEUE_LENGTH;
    let leaves = leaves(link.queueing.known().filter(|_| changed)?);
    let kind = leaves.first()?.kind.as_str();
    let all = |kinds: &[&str]| leaves.iter().all(|leaf| kinds.contains(&leaf.kind.as_str()));
    let name = &link.name;
    let (severity, text) = if all(&QDISCS_WITH_OWN_LIMIT) {
        let text =
            format!("{name} has txqueuelen {length}, which has no effect: its qdisc {kind} has a limit of its own.");
        (FindingSeverity::Note, text)
    } else if all(&QDISCS_OF_THIS_LENGTH) && length.get() > DEFAULT_QUEUE_LENGTH {
        (FindingSeverity::Advice, long_queue(name, kind, length))
    } else {
        return None;
    };
    let remedy = match severity {
        FindingSeverity::Advice => format!("ip link set dev {name} txqueuelen {DEFAULT_QUEUE_LENGTH}"),
        _ => format!("tc -s qdisc show dev {name} (only drops there would call for another limit)"),
    };
    let draft = FindingDraft {
        rule: (ID, CITATION),
        severity,
        subject: name.clone(),
        text,
        evidence: vec![format!("{name}: txqueuelen {length}"), format!("{name}: {} x {kind}", leaves.len())],
        remedy: vec![remedy],
        risk: "",
    };
    Some(draft.finding())
}

/// Effect of a long queue without flows: delay, `packets x 1500 B x 8 / 1 Gbit/s`.
fn long_queue(name: &str, kind: &str, length: PacketCount) -> String {
    format!(
        "{name} has txqueuelen {length} with {kind}: that many packets of 1500 bytes are {} ms at 1 Gbit/s, in which \
         every other connection waits. It is no queue of SYN requests.",
        length.get().saturating_mul(12) / 1000
    )
}

#[cfg(test)]
mod tests {
    use linerate_model::fact::Fact;
    use linerate_model::host::link::QdiscNode;

    use super::*;

    #[test]
    fn a_long_queue_without_flows_is_delay() {
        let found = check(&host_with(vec![with_length("pfifo_fast", 5000)]));
        assert_eq!((found.len(), found[0].severity), (1, FindingSeverity::Advice));
        assert!(found[0].text.contains("60 ms at 1 Gbit/s"), "{}", found[0].text);
        assert_eq!(check(&host_with(vec![with_length("pfifo_fast", 500)])), []);
    }

    #[test]
    fn virtual_devices_count_above_the_default_of_ethernet() {
        let virtual_device = |length| NetworkLink { kind: Some("veth".to_owned()), ..with_length("fq_codel", length) };
        assert_eq!(check(&host_with(vec![virtual_device(5000)])).len(), 1);
        assert_eq!(check(&host_with(vec![virtual_device(500)])), []);
    }

    #[test]
    fn each_queue_of_a_device_counts() {
        let mut link = with_length("mq", 5000);
        let mut tree = link.queueing.known().cloned().expect("made");
        tree.extend((1..3).map(|minor| QdiscNode {
            kind: "pfifo_fast".to_owned(),
            handle: "0:".to_owned(),
            parent: Some(format!(":{minor}")),
            ..QdiscNode::default()
        }));
        link.queueing = Fact::Known(tree);
        let found = check(&host_with(vec![link]));
        assert!(found.len() == 1 && found[0].evidence[1].ends_with("2 x pfifo_fast"), "{found:?}");
    }
}
