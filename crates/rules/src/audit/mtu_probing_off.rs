//! Path MTU probing is off where it is likely to be needed.

use linerate_model::change::ChangeGroup;
use linerate_model::finding::{AuditFinding, FindingSeverity};
use linerate_model::host::HostFacts;
use linerate_model::host::link::NetworkLink;
use linerate_units::Mtu;

use super::AuditRule;
use super::settings_support::{SettingFindingDraft, finding, host};

const ID: &str = "mtu-probing-off";
const KEY: &str = "net.ipv4.tcp_mtu_probing";
const CITATION: &str = "RFC 4821; RFC 8899; lab:300m-20ms-black-hole, lab:300m-20ms-black-hole-probing";
const TUNNELS: &[&str] = &[
    "bareudp",
    "erspan",
    "geneve",
    "gre",
    "gretap",
    "ip6gre",
    "ip6gretap",
    "ip6tnl",
    "ipip",
    "ppp",
    "sit",
    "tun",
    "vti",
    "vti6",
    "vxlan",
    "wireguard",
    "xfrm",
];

pub(super) const RULE: AuditRule = AuditRule {
    id: ID,
    title: "The host has jumbo frames or tunnels, but path MTU probing is off.",
    explanation: "A host with frames above 1500 bytes, or with a tunnel, sends packets that some link cannot carry. \
                  If the ICMP message for it is filtered, the connection opens and then stalls. \
                  With tcp_mtu_probing = 1 TCP tries smaller segments once full ones vanish; on other paths it has \
                  no effect.",
    citation: CITATION,
    keys: &[KEY],
    check,
    fires: || {
        let mut host = host(&[(KEY, "0")]);
        host.interfaces.push(interface("eth0", 9000));
        host
    },
    silent: || {
        let mut host = host(&[(KEY, "0")]);
        host.interfaces.push(interface("eth0", 1500));
        host
    },
};

fn interface(name: &str, mtu: u32) -> NetworkLink {
    NetworkLink { name: name.to_owned(), is_up: true, mtu: Some(Mtu::new(mtu)), ..NetworkLink::default() }
}

fn check(host: &HostFacts) -> Vec<AuditFinding> {
    if host.settings.number(KEY) != Some(0) {
        return Vec::new();
    }
    let reasons: Vec<String> = host.interfaces.iter().filter_map(reason).collect();
    if reasons.is_empty() {
        return Vec::new();
    }
    let draft = SettingFindingDraft {
        rule: ID,
        severity: FindingSeverity::Advice,
        text: format!(
            "Where ICMP is filtered, connections over {} hang for good. Measured in such a black hole: 0 bytes in 20 \
             s with tcp_mtu_probing = 0, 209 Mbit/s on average with 1.",
            reasons.join(" and ")
        ),
        to: Some("1".to_owned()),
        group: ChangeGroup::Mtu,
        source: CITATION,
        risk: "a path that loses many packets in a row may be treated as one with a small MTU for some minutes",
    };
    let mut finding = finding(host, KEY, draft);
    finding.evidence.extend(reasons);
    vec![finding]
}

fn reason(link: &NetworkLink) -> Option<String> {
    if link.is_loopback || !link.is_up {
        return None;
    }
    let mtu = link.mtu.map(Mtu::get);
    if let Some(kind) = link.kind.as_deref().filter(|kind| TUNNELS.contains(kind)) {
        return Some(format!("{} ({kind})", link.name));
    }
    mtu.filter(|mtu| *mtu > 1500).map(|mtu| format!("{} (MTU {mtu})", link.name))
}
