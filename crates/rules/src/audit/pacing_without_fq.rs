//! BBR sends through a qdisc without pacing.

use linerate_model::change::{ChangeGroup, ChangeTarget, EffectTiming};
use linerate_model::finding::{AuditFinding, FindingSeverity};
use linerate_model::host::HostFacts;
use linerate_model::host::link::{NetworkLink, leaves, root};

use super::AuditRule;
use super::link_support::{FindingChange, FindingDraft, and_setting, host_with, link_with_queueing, working};

const ID: &str = "pacing-without-fq";
const CITATION: &str = "kernel: net/ipv4/tcp_bbr.c (\"BBR might be used with the fq qdisc\"), net/ipv4/tcp_output.c \
    (internal pacing since 4.13)";
const CONTROL: &str = "net.ipv4.tcp_congestion_control";

pub(super) const RULE: AuditRule = AuditRule {
    id: ID,
    title: "Connections are paced by TCP's own timers, as their qdisc is not fq.",
    explanation: "BBR needs pacing. fq paces all connections with one timer and shares the link fairly among them. \
        Without it each connection has its own timer since Linux 4.13: that works, but costs more processor time with \
        many connections, and all of them share one queue.",
    citation: CITATION,
    keys: &[CONTROL],
    check,
    fires: || and_setting(host_with(vec![link_with_queueing("pfifo_fast", 0)]), CONTROL, "bbr"),
    silent: || and_setting(host_with(vec![link_with_queueing("fq", 0)]), CONTROL, "bbr"),
};

/// Qdiscs that pace, and those that only pass packets on to another device that may.
const PACING_QDISCS: [&str; 4] = ["fq", "noqueue", "etf", "taprio"];

fn check(host: &HostFacts) -> Vec<AuditFinding> {
    let control = host.settings.value(CONTROL).or_else(|| route_congestion_control(host));
    match control.filter(|control| control.starts_with("bbr")) {
        Some(control) => {
            working(host).filter(|link| link.is_hardware()).filter_map(|link| check_link(link, control)).collect()
        }
        None => Vec::new(),
    }
}

fn route_congestion_control(host: &HostFacts) -> Option<&str> {
    host.routes.known()?.iter().find_map(|route| route.congestion_control.as_deref())
}

fn check_link(link: &NetworkLink, control: &str) -> Option<AuditFinding> {
    let tree = link.queueing.known()?;
    let other = leaves(tree).into_iter().find(|leaf| !PACING_QDISCS.contains(&leaf.kind.as_str()))?;
    let name = &link.name;
    let draft = FindingDraft {
        rule: (ID, CITATION),
        severity: FindingSeverity::Advice,
        subject: name.clone(),
        text: format!(
            "New connections use {control}, and {name} sends through {}: each connection is paced by its own timer.",
            other.kind
        ),
        evidence: vec![format!("{CONTROL} = {control}"), format!("{name}: {}", other.kind)],
        remedy: qdisc_commands(link),
        risk: "the qdisc is recreated, and its queued packets are dropped; on a router or for many users fq_codel or \
            cake keep delays lower",
    };
    let made_by_kernel = tree.len() == 1 && root(tree).is_some_and(|root| root.handle == "0:");
    if !made_by_kernel {
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

fn qdisc_commands(link: &NetworkLink) -> Vec<String> {
    let name = &link.name;
    match link.queueing.known().and_then(|tree| root(tree)) {
        Some(root) if root.kind == "mq" => {
            vec!["sysctl -w net.core.default_qdisc=fq".to_owned(), format!("tc qdisc replace dev {name} root mq")]
        }
        Some(root) if root.kind == "htb" => {
            vec![format!("tc qdisc replace dev {name} parent CLASS fq (for each leaf class)")]
        }
        _ => vec![format!("tc qdisc replace dev {name} root fq")],
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::fact::Fact;
    use linerate_model::host::routes::RouteEntry;

    use super::*;

    #[test]
    fn bbr_on_a_route_counts_and_cubic_does_not() {
        let mut host = host_with(vec![link_with_queueing("fq_codel", 0)]);
        host.routes =
            Fact::Known(vec![RouteEntry { congestion_control: Some("bbr".to_owned()), ..RouteEntry::default() }]);
        assert_eq!(check(&host).len(), 1);
        assert_eq!(check(&and_setting(host, CONTROL, "cubic")), []);
    }

    #[test]
    fn several_queues_are_recreated_together() {
        let mut link = link_with_queueing("mq", 0);
        let mut tree = link.queueing.known().cloned().expect("made");
        let leaf = |minor| linerate_model::host::link::QdiscNode {
            kind: "fq_codel".to_owned(),
            handle: "0:".to_owned(),
            parent: Some(format!(":{minor}")),
            ..linerate_model::host::link::QdiscNode::default()
        };
        tree.extend([leaf(1), leaf(2)]);
        link.queueing = Fact::Known(tree);
        let found = check(&and_setting(host_with(vec![link]), CONTROL, "bbr"));
        assert!(found[0].change.is_none() && found[0].remedy[1].ends_with("root mq"), "{found:?}");
    }
}
