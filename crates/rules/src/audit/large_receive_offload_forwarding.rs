//! Large receive offload (LRO) on a host that forwards packets.

use linerate_model::change::{ChangeGroup, ChangeTarget, EffectTiming};
use linerate_model::finding::{AuditFinding, FindingSeverity};
use linerate_model::host::HostFacts;
use linerate_model::host::link::NetworkLink;

use super::AuditRule;
use super::link_support::{FindingChange, FindingDraft, and_setting, host_with, link_with_offload, working};

const ID: &str = "large-receive-offload-forwarding";
const CITATION: &str = "kernel: Documentation/networking/segmentation-offloads.rst (LRO loses headers; GRO keeps them)";
const FORWARDING: [&str; 2] = ["net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"];

pub(super) const RULE: AuditRule = AuditRule {
    id: ID,
    title: "Large receive offload is on while the host forwards packets.",
    explanation: "Large receive offload (LRO) coalesces segments without keeping their headers, so a router or \
    bridge cannot forward them as they came: they are too large for the next link, or are segmented differently. \
    The kernel switches it off when forwarding is switched on; here it was switched on again. Generic \
    receive offload (GRO) is the safe alternative.",
    citation: CITATION,
    keys: &[],
    check,
    fires: || and_setting(host_with(vec![link_with_offload("rx-lro", true)]), FORWARDING[0], "1"),
    silent: || and_setting(host_with(vec![link_with_offload("rx-lro", true)]), FORWARDING[0], "0"),
};

fn check(host: &HostFacts) -> Vec<AuditFinding> {
    let forwarding = FORWARDING.iter().find(|key| host.settings.number(key).is_some_and(|value| value > 0));
    let is_bridge =
        |name: &str| host.interfaces.iter().any(|link| link.name == name && link.kind.as_deref() == Some("bridge"));
    let look = |link: &NetworkLink| {
        let bridge = link.membership.master.as_deref().filter(|master| is_bridge(master));
        let why = match (forwarding, bridge) {
            (_, Some(bridge)) => format!("{} is part of the bridge {bridge}", link.name),
            (Some(key), None) => format!("{key} = {}", host.settings.value(key).unwrap_or_default()),
            (None, None) => return None,
        };
        link.offload("rx-lro").filter(|state| state.active).map(|_| finding(link, why))
    };
    working(host).filter_map(look).collect()
}

fn finding(link: &NetworkLink, why: String) -> AuditFinding {
    let name = &link.name;
    let draft = FindingDraft {
        rule: (ID, CITATION),
        severity: FindingSeverity::Critical,
        subject: name.clone(),
        text: format!(
            "{name} coalesces received segments by LRO while the host forwards: forwarded packets are dropped or \
            segmented differently."
        ),
        evidence: vec![format!("{name}: rx-lro: on"), why],
        remedy: vec![format!("ethtool -K {name} lro off gro on")],
        risk: "none for forwarding; local reception costs slightly more processor time",
    };
    draft.with_change(FindingChange {
        target: ChangeTarget::Offload { interface: name.clone(), feature: "rx-lro".to_owned() },
        from: "on".to_owned(),
        to: "off".to_owned(),
        group: ChangeGroup::Device,
        takes_effect: EffectTiming::Now,
        arithmetic: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_bridge() {
        let mut member = link_with_offload("rx-lro", true);
        member.membership.master = Some("br0".to_owned());
        let bridge = NetworkLink { name: "br0".to_owned(), kind: Some("bridge".to_owned()), ..NetworkLink::default() };
        let found = check(&host_with(vec![member.clone(), bridge.clone()]));
        assert!(found.len() == 1 && found[0].evidence[1].contains("br0"), "{found:?}");
        let bond = NetworkLink { kind: Some("bond".to_owned()), ..bridge };
        assert_eq!(check(&host_with(vec![member, bond])), []);
    }
}
