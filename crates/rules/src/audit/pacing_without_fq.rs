//! BBR sends through a queue that knows nothing of its pace.

use linerate_model::change::{Group, TakesEffect, Target};
use linerate_model::finding::{Finding, Severity};
use linerate_model::host::HostFacts;
use linerate_model::host::link::{Link, leaves, root};

use super::Rule;
use super::link_support::{Edit, Saying, and_setting, host_with, link_with_queueing, working};

const ID: &str = "pacing-without-fq";
const CITATION: &str = "kernel: net/ipv4/tcp_bbr.c (\"BBR might be used with the fq qdisc\"), net/ipv4/tcp_output.c (internal pacing since 4.13)";
const CONTROL: &str = "net.ipv4.tcp_congestion_control";

pub(super) const RULE: Rule = Rule {
    id: ID,
    title: "Connections are paced by TCP's own timers, as their queue is not fq.",
    explanation: "BBR needs each connection to send at a pace. fq keeps it for all connections with one timer and shares the link among them. Without it each connection has a timer of its own since Linux 4.13: that works, and costs more of the processor with many connections, while packets of all of them wait in one queue.",
    citation: CITATION,
    keys: &[CONTROL],
    check,
    fires: || and_setting(host_with(vec![link_with_queueing("pfifo_fast", 0)]), CONTROL, "bbr"),
    silent: || and_setting(host_with(vec![link_with_queueing("fq", 0)]), CONTROL, "bbr"),
};

/// Disciplines that keep a pace, and those that only hand packets on to another device that may.
const FITTING: [&str; 4] = ["fq", "noqueue", "etf", "taprio"];

fn check(host: &HostFacts) -> Vec<Finding> {
    let control = host.settings.value(CONTROL).or_else(|| by_route(host));
    match control.filter(|control| control.starts_with("bbr")) {
        Some(control) => {
            working(host).filter(|link| link.is_hardware()).filter_map(|link| look(link, control)).collect()
        }
        None => Vec::new(),
    }
}

fn by_route(host: &HostFacts) -> Option<&str> {
    host.routes.known()?.iter().find_map(|route| route.congestion_control.as_deref())
}

fn look(link: &Link, control: &str) -> Option<Finding> {
    let tree = link.queueing.known()?;
    let other = leaves(tree).into_iter().find(|leaf| !FITTING.contains(&leaf.kind.as_str()))?;
    let name = &link.name;
    let saying = Saying {
        rule: (ID, CITATION),
        severity: Severity::Advice,
        subject: name.clone(),
        text: format!(
            "New connections use {control}, and {name} sends through {}: each connection keeps its pace with a timer of its own.",
            other.kind
        ),
        evidence: vec![format!("{CONTROL} = {control}"), format!("{name}: {}", other.kind)],
        remedy: commands(link),
        risk: "the queue is made anew, what waits in it is dropped; on a router or for many users fq_codel or cake keep delays lower",
    };
    let made_by_kernel = tree.len() == 1 && root(tree).is_some_and(|root| root.handle == "0:");
    if !made_by_kernel {
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

fn commands(link: &Link) -> Vec<String> {
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
    use linerate_model::host::routes::Route;

    use super::*;

    #[test]
    fn a_routes_own_congestion_control_counts_and_cubic_does_not() {
        let mut host = host_with(vec![link_with_queueing("fq_codel", 0)]);
        host.routes = Fact::Known(vec![Route { congestion_control: Some("bbr".to_owned()), ..Route::default() }]);
        assert_eq!(check(&host).len(), 1);
        assert_eq!(check(&and_setting(host, CONTROL, "cubic")), []);
    }

    #[test]
    fn several_queues_are_made_anew_together() {
        let mut link = link_with_queueing("mq", 0);
        let mut tree = link.queueing.known().cloned().expect("made");
        let leaf = |minor| linerate_model::host::link::Discipline {
            kind: "fq_codel".to_owned(),
            handle: "0:".to_owned(),
            parent: Some(format!(":{minor}")),
            ..linerate_model::host::link::Discipline::default()
        };
        tree.extend([leaf(1), leaf(2)]);
        link.queueing = Fact::Known(tree);
        let found = check(&and_setting(host_with(vec![link]), CONTROL, "bbr"));
        assert!(found[0].change.is_none() && found[0].remedy[1].ends_with("root mq"), "{found:?}");
    }
}
