//! The host's own queue to the network drops packets of all connections alike.

use linerate_model::change::{Group, TakesEffect, Target};
use linerate_model::finding::{Finding, Severity};
use linerate_model::host::HostFacts;
use linerate_model::host::link::{Discipline, Link, leaves, root};

use super::Rule;
use super::link_support::{Edit, Saying, exceeds, host_with, link_with_queueing, part_of, working};

const ID: &str = "queue-drops";
const CITATION: &str = "tc-pfifo_fast(8), tc-fq(8), tc-fq_codel(8)";
/// From one in a hundred thousand on, a fast long path feels it.
const HARMLESS: f64 = 1e-5;

pub(super) const RULE: Rule = Rule {
    id: ID,
    title: "The host's own queue to the network drops packets.",
    explanation: "pfifo_fast and pfifo are one queue for all: a burst of one connection drops packets of the others. fq gives each connection a queue and keeps its pace, fq_codel drops early in the queue that stands. Where the queue is one of those and still drops, it is doing its work: more arrives than the link takes, or a shaper above it holds it back.",
    citation: CITATION,
    keys: &[],
    check,
    fires: || host_with(vec![link_with_queueing("pfifo_fast", 900)]),
    silent: || host_with(vec![link_with_queueing("pfifo_fast", 0), link_with_queueing("fq_codel", 900)]),
};

/// Disciplines that are one queue for all connections.
const ONE_FOR_ALL: [&str; 3] = ["pfifo_fast", "pfifo", "bfifo"];

fn check(host: &HostFacts) -> Vec<Finding> {
    working(host).filter_map(look).collect()
}

fn look(link: &Link) -> Option<Finding> {
    let tree = link.queueing.known()?;
    let simple: Vec<&Discipline> =
        leaves(tree).into_iter().filter(|leaf| ONE_FOR_ALL.contains(&leaf.kind.as_str())).collect();
    let sum = |of: fn(&linerate_model::environment::QueueStatistics) -> u64| {
        simple.iter().filter_map(|leaf| leaf.statistics.as_ref()).map(of).fold(0, u64::saturating_add)
    };
    let (dropped, sent) = (sum(|all| all.dropped.get()), sum(|all| all.packets.get()));
    (dropped > 0).then_some(())?;
    let whole = sent.saturating_add(dropped);
    let (name, kind) = (&link.name, &simple.first()?.kind);
    let severity = if exceeds(dropped, whole, HARMLESS) { Severity::Advice } else { Severity::Note };
    let saying = Saying {
        rule: (ID, CITATION),
        severity,
        subject: name.clone(),
        text: format!("The queue of {name} ({kind}) dropped {} packets that this host sent.", part_of(dropped, whole)),
        evidence: vec![format!("{name}: {} x {kind}, {dropped} dropped, {sent} sent", simple.len())],
        remedy: vec![
            format!("tc -s qdisc show dev {name} (does it grow under load?)"),
            format!("tc qdisc replace dev {name} root fq (fq_codel on a router)"),
        ],
        risk: "the queue is made anew, what waits in it is dropped; a shaper on top of it has to be kept",
    };
    let made_by_kernel = tree.len() == 1 && root(tree).is_some_and(|root| root.handle == "0:");
    if severity == Severity::Note || !made_by_kernel {
        return Some(saying.finding());
    }
    Some(saying.with_change(Edit {
        target: Target::Queueing { interface: name.clone() },
        from: String::new(),
        to: format!("qdisc replace dev {name} root fq"),
        group: Group::Queueing,
        takes_effect: TakesEffect::Now,
        arithmetic: None,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handful_changes_nothing() {
        let found = check(&host_with(vec![link_with_queueing("pfifo_fast", 3)]));
        assert!(found[0].severity == Severity::Note && found[0].change.is_none());
        assert!(check(&host_with(vec![link_with_queueing("pfifo_fast", 300)]))[0].change.is_some());
    }
}
