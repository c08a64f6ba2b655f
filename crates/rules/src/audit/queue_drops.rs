//! Packet drops at the host's own qdisc.

use linerate_model::change::{ChangeGroup, ChangeTarget, EffectTiming};
use linerate_model::finding::{AuditFinding, FindingSeverity};
use linerate_model::host::HostFacts;
use linerate_model::host::link::{NetworkLink, QdiscNode, leaves, root};

use super::AuditRule;
use super::link_support::{FindingChange, FindingDraft, exceeds, host_with, link_with_queueing, part_of, working};

const ID: &str = "queue-drops";
const CITATION: &str = "tc-pfifo_fast(8), tc-fq(8), tc-fq_codel(8)";
/// Drop ratio up to which a fast long path does not suffer.
const MAX_HARMLESS_DROP_RATIO: f64 = 1e-5;

pub(super) const RULE: AuditRule = AuditRule {
    id: ID,
    title: "The host's own qdisc drops packets.",
    explanation: "pfifo_fast and pfifo have one queue for all: a burst of one connection drops packets of the others. \
        fq gives each connection a queue and paces it, fq_codel drops early from a persistent queue. Drops of those \
        are normal operation: more arrives than the link carries, or a shaper above limits it.",
    citation: CITATION,
    keys: &[],
    check,
    fires: || host_with(vec![link_with_queueing("pfifo_fast", 900)]),
    silent: || host_with(vec![link_with_queueing("pfifo_fast", 0), link_with_queueing("fq_codel", 900)]),
};

/// Qdiscs with one queue for all connections.
const SINGLE_QUEUE_QDISCS: [&str; 3] = ["pfifo_fast", "pfifo", "bfifo"];

fn check(host: &HostFacts) -> Vec<AuditFinding> {
    working(host).filter_map(check_link).collect()
}

fn check_link(link: &NetworkLink) -> Option<AuditFinding> {
    let tree = link.queueing.known()?;
    let simple: Vec<&QdiscNode> =
        leaves(tree).into_iter().filter(|leaf| SINGLE_QUEUE_QDISCS.contains(&leaf.kind.as_str())).collect();
    let sum = |of: fn(&linerate_model::environment::QueueStatistics) -> u64| {
        simple.iter().filter_map(|leaf| leaf.statistics.as_ref()).map(of).fold(0, u64::saturating_add)
    };
    let (dropped, sent) = (sum(|all| all.dropped.get()), sum(|all| all.packets.get()));
    (dropped > 0).then_some(())?;
    let whole = sent.saturating_add(dropped);
    let (name, kind) = (&link.name, &simple.first()?.kind);
    let severity =
        if exceeds(dropped, whole, MAX_HARMLESS_DROP_RATIO) { FindingSeverity::Advice } else { FindingSeverity::Note };
    let draft = FindingDraft {
        rule: (ID, CITATION),
        severity,
        subject: name.clone(),
        text: format!("The queue of {name} ({kind}) dropped {} packets that this host sent.", part_of(dropped, whole)),
        evidence: vec![format!("{name}: {} x {kind}, {dropped} dropped, {sent} sent", simple.len())],
        remedy: vec![
            format!("tc -s qdisc show dev {name} (does it grow under load?)"),
            format!("tc qdisc replace dev {name} root fq (fq_codel on a router)"),
        ],
        risk: "the qdisc is recreated, and its queued packets are dropped; a shaper above it has to be kept",
    };
    let made_by_kernel = tree.len() == 1 && root(tree).is_some_and(|root| root.handle == "0:");
    if severity == FindingSeverity::Note || !made_by_kernel {
        return Some(draft.finding());
    }
    Some(draft.with_change(FindingChange {
        target: ChangeTarget::Queueing { interface: name.clone() },
        from: String::new(),
        to: format!("qdisc replace dev {name} root fq"),
        group: ChangeGroup::Queueing,
        takes_effect: EffectTiming::Now,
        arithmetic: None,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_drops_are_a_note_without_a_change() {
        let found = check(&host_with(vec![link_with_queueing("pfifo_fast", 3)]));
        assert!(found[0].severity == FindingSeverity::Note && found[0].change.is_none());
        assert!(check(&host_with(vec![link_with_queueing("pfifo_fast", 300)]))[0].change.is_some());
    }
}
