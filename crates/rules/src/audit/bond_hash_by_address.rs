//! A bond spreads flows by link-layer addresses alone.

use linerate_model::fact::Fact;
use linerate_model::finding::{Finding, Severity};
use linerate_model::host::HostFacts;
use linerate_model::host::link::{Bond, Link};

use super::Rule;
use super::link_support::{Saying, connections, host_with, link, working};

const ID: &str = "bond-hash-by-address";
const CITATION: &str = "kernel: Documentation/networking/bonding.rst (xmit_hash_policy)";
/// Flows below may not fill several links whichever way they are spread.
const MANY: u64 = 8;
/// The policy that looks at link-layer addresses alone (`layer2`).
const BY_ADDRESS: u8 = 0;

pub(super) const RULE: Rule = Rule {
    id: ID,
    title: "A bond spreads flows by link-layer addresses, which are the same for all of them.",
    explanation: "With the policy layer2, the default, all packets to one neighbour take one link. Behind a router there is only one neighbour: the bond is then as fast as one of its links, whatever the number of flows. layer3+4 looks at addresses and ports, so that flows spread; one flow still takes one link, as it must not be reordered.",
    citation: CITATION,
    keys: &[],
    check,
    fires: || host(0, 50),
    silent: || host(1, 50),
};

fn host(hash_policy: u8, flows: u64) -> HostFacts {
    let mut bond = Link { kind: Some("bond".to_owned()), ..link("bond0") };
    bond.membership.bond = Some(Bond { mode: 4, hash_policy });
    let member = |name| {
        let mut member = link(name);
        member.membership.master = Some("bond0".to_owned());
        member
    };
    let mut host = host_with(vec![bond, member("eth0"), member("eth1")]);
    host.counters.sockets = Fact::Known([("TCP inuse".to_owned(), flows)].into());
    host
}

fn check(host: &HostFacts) -> Vec<Finding> {
    let Some(flows) = connections(host).filter(|flows| *flows >= MANY) else { return Vec::new() };
    let look = |link: &Link| {
        let bond = link.membership.bond.filter(|bond| bond.spreads_by_hash() && bond.hash_policy == BY_ADDRESS)?;
        let is_member = |other: &&Link| other.membership.master.as_ref() == Some(&link.name);
        let members: Vec<&str> = working(host).filter(is_member).map(|member| member.name.as_str()).collect();
        (members.len() > 1).then_some(())?;
        let name = &link.name;
        let saying = Saying {
            rule: (ID, CITATION),
            severity: Severity::Advice,
            subject: name.clone(),
            text: format!(
                "{name} ({}) spreads by link-layer addresses: {flows} connections to one router share one of its {} links.",
                bond.mode_name(),
                members.len()
            ),
            evidence: vec![
                format!("{name}: {}, xmit_hash_policy layer2", bond.mode_name()),
                format!("{name}: {}", members.join(", ")),
                format!("TCP sockets in use: {flows}"),
            ],
            remedy: vec![
                format!("echo layer3+4 > /sys/class/net/{name}/bonding/xmit_hash_policy"),
                "keep it in the profile of the program that made the bond".to_owned(),
            ],
            risk: "fragments of one datagram may take different links; the switch spreads what it sends by a policy of its own",
        };
        Some(saying.finding())
    };
    working(host).filter_map(look).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_flows_and_single_links_are_left_alone() {
        assert_eq!(check(&host(0, 2)), []);
        let mut single = host(0, 50);
        single.interfaces.pop();
        assert_eq!(check(&single), []);
    }
}
