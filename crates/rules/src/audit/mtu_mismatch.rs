//! Interfaces that belong together have MTUs that do not.

use linerate_model::finding::{Finding, Severity};
use linerate_model::host::HostFacts;
use linerate_model::host::link::Link;
use linerate_units::Mtu;

use super::Rule;
use super::link_support::{Saying, host_with, link, working};

const ID: &str = "mtu-mismatch";
const CITATION: &str = "IEEE 802.1D (bridges do not fragment); RFC 4821; RFC 7348 (VXLAN); RFC 2784 (GRE)";

pub(super) const RULE: Rule = Rule {
    id: ID,
    title: "Interfaces that belong together have MTUs that do not.",
    explanation: "A bridge does not fragment and sends no message when a frame is too large for the way out: it drops it. A tunnel or VLAN whose packets are larger than what its carrier takes loses them or has each of them cut in two. Small packets pass, so connections open and then hang: the black hole that path MTU discovery cannot see.",
    citation: CITATION,
    keys: &[],
    check,
    fires: || host_with(bridge(1500, 9000)),
    silent: || host_with(bridge(1500, 1500)),
};

fn bridge(of_bridge: u32, of_port: u32) -> Vec<Link> {
    let mut port = Link { mtu: Some(Mtu::new(of_port)), ..link("eth0") };
    port.membership.master = Some("br0".to_owned());
    let kind = Some("bridge".to_owned());
    vec![port, Link { name: "br0".to_owned(), kind, mtu: Some(Mtu::new(of_bridge)), ..link("br0") }]
}

/// Bytes that a tunnel of this kind puts before each packet, over IPv4 and without options: the least.
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

fn check(host: &HostFacts) -> Vec<Finding> {
    let find = |name: &str| host.interfaces.iter().find(|link| link.name == name);
    let look = |link: &Link| {
        let group = link.membership.master.as_deref().and_then(find).and_then(|master| port(link, master));
        let carrier = link.membership.lower.as_deref().and_then(find).and_then(|lower| tunnel(link, lower));
        [group, carrier].into_iter().flatten().collect::<Vec<_>>()
    };
    working(host).flat_map(look).collect()
}

fn port(link: &Link, master: &Link) -> Option<Finding> {
    let (own, group) = (link.mtu?, master.mtu?);
    let (name, other) = (&link.name, &master.name);
    // The members of a bond get the bond's MTU; one that differs was changed afterwards.
    let differs = matches!(master.kind.as_deref()?, "bridge" | "bond" | "team") && own != group;
    differs.then_some(())?;
    let evidence = vec![format!("{name}: MTU {own}, part of {other}"), format!("{other}: MTU {group}")];
    let text = format!(
        "{name} has MTU {own}, {other} that it is part of {group}: larger packets are dropped without a message."
    );
    Some(say(link, text, evidence, format!("ip link set {name} mtu {group}")))
}

fn tunnel(link: &Link, lower: &Link) -> Option<Finding> {
    let overhead = overhead(link.kind.as_deref()?)?;
    let (own, carried) = (link.mtu?, lower.mtu?);
    let room = carried.get().checked_sub(overhead)?;
    (own.get() > room).then(|| {
        let (name, other) = (&link.name, &lower.name);
        let evidence = vec![
            format!("{name}: MTU {own}, carried by {other}, with {overhead} bytes or more before each packet"),
            format!("{other}: MTU {carried}"),
        ];
        let text = format!(
            "{name} has MTU {own}, but {other} that carries it has room for {room}: larger packets are lost or cut."
        );
        say(link, text, evidence, format!("ip link set {name} mtu {room}"))
    })
}

fn say(link: &Link, text: String, evidence: Vec<String>, remedy: String) -> Finding {
    let saying = Saying {
        rule: (ID, CITATION),
        severity: Severity::Warning,
        subject: link.name.clone(),
        text,
        evidence,
        remedy: vec![remedy],
        risk: "connections that are open keep their segment size until they find the new one",
    };
    saying.finding()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tunnels_need_room_for_their_headers() {
        let found = |mtu| {
            let mut tunnel = Link { kind: Some("vxlan".to_owned()), mtu: Some(Mtu::new(mtu)), ..link("vxlan7") };
            tunnel.membership.lower = Some("eth0".to_owned());
            check(&host_with(vec![link("eth0"), tunnel])).len()
        };
        assert_eq!((found(1500), found(1451), found(1450), found(1400)), (1, 1, 0, 0));
        assert_eq!((overhead("veth"), overhead("vlan")), (None, Some(0)));
    }

    #[test]
    fn parts_of_other_things_are_no_concern() {
        let mut links = bridge(1500, 9000);
        links[1].kind = Some("vrf".to_owned());
        assert_eq!(check(&host_with(links)), []);
    }
}
