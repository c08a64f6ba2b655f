//! MTU mismatch between a bridge, bond or tunnel and its members or carrier.

use linerate_model::finding::{AuditFinding, FindingSeverity};
use linerate_model::host::HostFacts;
use linerate_model::host::link::NetworkLink;
use linerate_units::Mtu;

use super::AuditRule;
use super::link_support::{FindingDraft, host_with, link, working};

const ID: &str = "mtu-mismatch";
const CITATION: &str = "IEEE 802.1D (bridges do not fragment); RFC 4821; RFC 7348 (VXLAN); RFC 2784 (GRE)";

pub(super) const RULE: AuditRule = AuditRule {
    id: ID,
    title: "The MTUs of a bridge, bond or tunnel and of its interfaces do not match.",
    explanation: "A bridge does not fragment and sends no ICMP message when a frame is too large for the outgoing \
        port: it drops it. A tunnel or VLAN whose packets exceed its carrier's MTU loses them or has each of them \
        fragmented. Small packets pass, so connections open and then hang: the black hole that path MTU discovery \
        cannot see.",
    citation: CITATION,
    keys: &[],
    check,
    fires: || host_with(bridge(1500, 9000)),
    silent: || host_with(bridge(1500, 1500)),
};

fn bridge(of_bridge: u32, of_port: u32) -> Vec<NetworkLink> {
    let mut port = NetworkLink { mtu: Some(Mtu::new(of_port)), ..link("eth0") };
    port.membership.master = Some("br0".to_owned());
    let kind = Some("bridge".to_owned());
    vec![port, NetworkLink { name: "br0".to_owned(), kind, mtu: Some(Mtu::new(of_bridge)), ..link("br0") }]
}

/// Least encapsulation overhead of a tunnel of this kind in bytes, over IPv4 and without options.
fn overhead(kind: &str) -> Option<u32> {
    Some(match kind {
        "vlan" | "macvlan" | "ipvlan" => 0,
        "ipip" | "sit" => 20,
        "gre" => 24,
        "gretap" => 38,
        "vxlan" | "geneve" => 50,
        _ => return None,
    })
}

fn check(host: &HostFacts) -> Vec<AuditFinding> {
    let find = |name: &str| host.interfaces.iter().find(|link| link.name == name);
    let look = |link: &NetworkLink| {
        let group = link.membership.master.as_deref().and_then(find).and_then(|master| port(link, master));
        let carrier = link.membership.lower.as_deref().and_then(find).and_then(|lower| tunnel(link, lower));
        [group, carrier].into_iter().flatten().collect::<Vec<_>>()
    };
    working(host).flat_map(look).collect()
}

fn port(link: &NetworkLink, master: &NetworkLink) -> Option<AuditFinding> {
    let (own, group) = (link.mtu?, master.mtu?);
    let (name, other) = (&link.name, &master.name);
    // The members of a bond get the bond's MTU; one that differs was changed afterwards.
    let differs = matches!(master.kind.as_deref()?, "bridge" | "bond" | "team") && own != group;
    differs.then_some(())?;
    let evidence = vec![format!("{name}: MTU {own}, part of {other}"), format!("{other}: MTU {group}")];
    let text = format!(
        "{name} has MTU {own}, but {other}, which it is part of, has {group}: larger packets are dropped silently."
    );
    Some(draft_finding(link, text, evidence, format!("ip link set {name} mtu {group}")))
}

fn tunnel(link: &NetworkLink, lower: &NetworkLink) -> Option<AuditFinding> {
    let overhead = overhead(link.kind.as_deref()?)?;
    let (own, carried) = (link.mtu?, lower.mtu?);
    let largest = carried.get().checked_sub(overhead)?;
    (own.get() > largest).then(|| {
        let (name, other) = (&link.name, &lower.name);
        let evidence = vec![
            format!("{name}: MTU {own}, carried by {other}, with an overhead of at least {overhead} bytes per packet"),
            format!("{other}: MTU {carried}"),
        ];
        let text = format!(
            "{name} has MTU {own}, but its carrier {other} allows {largest}: larger packets are lost or fragmented."
        );
        draft_finding(link, text, evidence, format!("ip link set {name} mtu {largest}"))
    })
}

fn draft_finding(link: &NetworkLink, text: String, evidence: Vec<String>, remedy: String) -> AuditFinding {
    let draft = FindingDraft {
        rule: (ID, CITATION),
        severity: FindingSeverity::Warning,
        subject: link.name.clone(),
        text,
        evidence,
        remedy: vec![remedy],
        risk: "connections that are open keep their segment size until they find the new one",
    };
    draft.finding()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tunnels_need_room_for_their_headers() {
        let found = |mtu| {
            let mut tunnel = NetworkLink { kind: Some("vxlan".to_owned()), mtu: Some(Mtu::new(mtu)), ..link("vxlan7") };
            tunnel.membership.lower = Some("eth0".to_owned());
            check(&host_with(vec![link("eth0"), tunnel])).len()
        };
        assert_eq!((found(1500), found(1451), found(1450), found(1400)), (1, 1, 0, 0));
        assert_eq!((overhead("veth"), overhead("vlan")), (None, Some(0)));
    }

    #[test]
    fn members_of_other_kinds_are_ignored() {
        let mut links = bridge(1500, 9000);
        links[1].kind = Some("vrf".to_owned());
        assert_eq!(check(&host_with(links)), []);
    }
}
