//! A bond spreads flows by link-layer addresses alone.

use linerate_model::fact::Fact;
use linerate_model::finding::{AuditFinding, FindingSeverity};
use linerate_model::host::HostFacts;
use linerate_model::host::link::{BondSettings, NetworkLink};

use super::AuditRule;
use super::link_support::{FindingDraft, connections, host_with, link, working};

const ID: &str = "bond-hash-by-address";
const CITATION: &str = "kernel: Documentation/networking/bonding.rst (xmit_hash_policy)";
/// Number of flows below which several links may not fill under any hash policy.
const MIN_FLOWS: u64 = 8;
/// Hash policy that uses link-layer addresses alone (`layer2`).
const LAYER2_HASH_POLICY: u8 = 0;

pub(super) const RULE: AuditRule = AuditRule {
    id: ID,
    title: "A bond spreads flows by link-layer addresses, which are the same for all of them.",
    explanation: "With the policy layer2, the default, all packets to one neighbour take one link. Behind a router \
        there is only one neighbour: the bond is then as fast as one of its links, whatever the number of flows. \
        layer3+4 hashes addresses and ports, so that flows spread; one flow still takes one link, as it must not be \
        reordered.",
    citation: CITATION,
    keys: &[],
    check,
    fires: || host(0, 50),
    silent: || host(1, 50),
};

fn host(hash_policy: u8, flows: u64) -> HostFacts {
    let mut bond = NetworkLink { kind: Some("bond".to_owned()), ..link("bond0") };
    bond.membership.bond = Some(BondSettings { mode: 4, hash_policy });
    let member = |name| {
        let mut member = link(name);
        member.membership.master = Some("bond0".to_owned());
        member
    };
    let mut host = host_with(vec![bond, member("eth0"), member("eth1")]);
    host.counters.sockets = Fact::Known([("TCP inuse".to_owned(), flows)].into());
    host
}

fn check(host: &HostFacts) -> Vec<AuditFinding> {
    let Some(flows) = connections(host).filter(|flows| *flows >= MIN_FLOWS) else { return Vec::new() };
    let look = |link: &NetworkLink| {
        let bond =
            link.membership.bond.filter(|bond| bond.spreads_by_hash() && bond.hash_policy == LAYER2_HASH_POLICY)?;
        let is_member = |other: &&NetworkLink| other.membership.master.as_ref() == Some(&link.name);
        let members: Vec<&str> = working(host).filter(is_member).map(|member| member.name.as_str()).collect();
        (members.len() > 1).then_some(())?;
        let name = &link.name;
        let draft = FindingDraft {
            rule: (ID, CITATION),
            severity: FindingSeverity::Advice,
            subject: name.clone(),
            text: format!(
                "{name} ({}) spreads by link-layer addresses: {flows} connections to one router share one of its {} \
                    links.",
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
            risk: "fragments of one datagram may take different links; the switch spreads its own traffic by its own \
                policy",
        };
        Some(draft.finding())
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
