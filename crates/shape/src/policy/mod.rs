//! Traffic policy of a link: priorities and fairness.

mod dual_queue;
mod prefix;
mod qdisc_options;

use core::time::Duration;
use std::collections::BTreeSet;

use linerate_model::direction::Direction;
use linerate_model::socket::FirewallMark;
use linerate_units::{Dscp, Port};
use serde::{Deserialize, Serialize};

use crate::traffic_classes::{ClassSelector, TrafficClasses};
use crate::verify::PerDirection;

pub use self::dual_queue::DualQueueOptions;
pub use self::prefix::{HostPrefix, ParsePrefixError};
pub use self::qdisc_options::{AcknowledgementFilter, CakeTins, QdiscOptions, known_options};

/// Calls `set` with each name and value of `NAME=VALUE,…`. Errors quote the pair.
fn for_each_pair(text: &str, mut set: impl FnMut(&str, &str) -> Result<(), String>) -> Result<(), String> {
    text.split(',').try_for_each(|pair| {
        let (name, value) = pair.split_once('=').ok_or_else(|| format!("'{pair}' is not NAME=VALUE"))?;
        set(name, value).map_err(|reason| format!("'{pair}': {reason}"))
    })
}

/// Importance of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TrafficImportance {
    /// Interactive: key strokes, speech, name lookups, acknowledgements. Goes first, within its share.
    Interactive,
    /// Everything without a rule.
    Default,
    /// Background: backups, seeding. Has the smallest share, and the rate unused by others.
    Bulk,
}

impl TrafficImportance {
    /// All levels, from the first served to the last.
    pub const ALL: [Self; 3] = [Self::Interactive, Self::Default, Self::Bulk];

    /// Name: `interactive`, `default` or `bulk`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Interactive => "interactive",
            Self::Default => "default",
            Self::Bulk => "bulk",
        }
    }

    /// Parses a [`name`](Self::name).
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|importance| importance.name() == name)
    }
}

/// Transport protocol with ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PortTransport {
    /// TCP.
    Tcp,
    /// UDP, including QUIC.
    Udp,
}

impl PortTransport {
    /// Protocol number in the IP header (IANA "Assigned Internet Protocol Numbers").
    #[must_use]
    pub const fn number(self) -> IpProtocol {
        match self {
            Self::Tcp => IpProtocol(6),
            Self::Udp => IpProtocol(17),
        }
    }

    /// Name: `TCP` or `UDP`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
        }
    }
}

/// Number of a protocol above IP: `Protocol` of IPv4, `Next Header` of IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IpProtocol(u8);

impl IpProtocol {
    /// Protocol with this number.
    #[must_use]
    pub const fn new(number: u8) -> Self {
        Self(number)
    }

    /// Protocol number.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }
}

/// Packets that a rule selects, in both IPv4 and IPv6.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PacketSelector {
    /// Packets with this codepoint, with any ECN bits.
    Codepoint(Dscp),
    /// Packets with this firewall mark; received ones have that of their connection. Looked up before all other selectors.
    FirewallMark(FirewallMark),
    /// Packets to or from this port.
    Port(PortTransport, Port),
    /// Packets to or from these hosts on the far side of the link.
    Host(HostPrefix),
    /// Packets of this protocol.
    Protocol(IpProtocol),
    /// TCP segments with the ACK flag and without payload: header lengths add up to the packet length. Includes
    /// segments with timestamps and selective acknowledgements, which a bound on the length misses.
    PureAcknowledgement,
    /// TCP segments with the SYN flag and without the ACK flag, which open a connection.
    ConnectionRequest,
    /// ICMP and `ICMPv6`.
    Icmp,
}

/// Rule that gives packets an importance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrafficRule {
    /// Selected packets.
    pub selector: PacketSelector,
    /// Importance of the packets.
    pub importance: TrafficImportance,
    /// Reason, as a phrase without a full stop.
    pub reason: String,
}

impl TrafficRule {
    fn new(selector: PacketSelector, importance: TrafficImportance, reason: &str) -> Self {
        Self { selector, importance, reason: reason.to_owned() }
    }
}

/// Units that share a full link equally.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FairnessUnit {
    /// Flows: a host with ten flows has ten shares.
    Flows,
    /// Local hosts first, then the flows of each; also behind NAT.
    #[default]
    Hosts,
}

/// Traffic policy of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct TrafficPolicy {
    /// Rules, of which the first match counts; unmatched packets are default.
    pub rules: Vec<TrafficRule>,
    /// True when codepoints of packets are trusted: CAKE then has four tins instead of one. [`PacketSelector::Codepoint`] rules
    /// apply wherever a back end classifies.
    pub trust_marks: bool,
    /// Fairness, where the back end supports it.
    pub fairness: FairnessUnit,
    /// True when this host does NAT, so that hosts are distinguished by conntrack; `None` to take what the host does.
    pub translates_addresses: Option<bool>,
    /// True when back ends of HTB have a class for each host.
    pub divides_hosts: bool,
    /// Classes with rates of their own.
    pub classes: TrafficClasses,
    /// Options of the queues.
    pub queues: QueueOptions,
    /// Treatment of the codepoints of received packets.
    pub received_marks: ReceivedMarks,
    /// True to store the codepoints of sent packets in the marks of their connections.
    pub stores_codepoints: bool,
}

/// Options of the queues, which otherwise follow from the link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueOptions {
    /// True to mark packets instead of dropping them (ECN).
    pub ecn: PerDirection<Option<bool>>,
    /// Delay at which active queue management aims.
    pub target: PerDirection<Option<Duration>>,
    /// Options of `dualpi2`.
    pub dual: PerDirection<DualQueueOptions>,
    /// Options of the other queueing disciplines.
    pub qdisc: PerDirection<QdiscOptions>,
    /// True to drop acknowledgements that a later one makes redundant, of those that are sent.
    pub filters_acknowledgements: bool,
}

/// Treatment of the codepoints of received packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReceivedMarks {
    /// As the back end does by itself: CAKE clears them where it does not trust them, the others leave them.
    #[default]
    Untouched,
    /// Cleared, so that no one behind this host trusts them.
    Washed,
    /// Set to the codepoint that is stored in the connection's mark.
    Restored,
}

impl Default for TrafficPolicy {
    /// LARTC's priorities in a current form: key strokes, acknowledgements, new connections and ICMP first, in both
    /// families, limited to their share; marked bulk last.
    fn default() -> Self {
        let mut rules = vec![
            TrafficRule::new(
                PacketSelector::PureAcknowledgement,
                TrafficImportance::Interactive,
                "acknowledgements that wait behind an upload slow the download that they acknowledge",
            ),
            TrafficRule::new(
                PacketSelector::ConnectionRequest,
                TrafficImportance::Interactive,
                "requests of new connections, for which each page waits",
            ),
            TrafficRule::new(
                PacketSelector::Icmp,
                TrafficImportance::Interactive,
                "pings, and the errors and neighbours that IP needs",
            ),
        ];
        rules.extend(MARKS.iter().filter_map(|(codepoint, importance, reason)| {
            Dscp::new(*codepoint).map(|mark| TrafficRule::new(PacketSelector::Codepoint(mark), *importance, reason))
        }));
        rules.extend(PORTS.iter().filter_map(|(transport, port, reason)| {
            let port = Port::new(*port)?;
            Some(TrafficRule::new(PacketSelector::Port(*transport, port), TrafficImportance::Interactive, reason))
        }));
        Self {
            rules,
            trust_marks: false,
            fairness: FairnessUnit::default(),
            translates_addresses: None,
            divides_hosts: false,
            classes: TrafficClasses::default(),
            queues: QueueOptions::default(),
            received_marks: ReceivedMarks::default(),
            stores_codepoints: false,
        }
    }
}

impl TrafficPolicy {
    /// True when there are rules beyond marks and flows.
    #[must_use]
    pub fn has_own_rules(&self) -> bool {
        let usual = Self::default();
        self.rules.iter().any(|rule| !usual.rules.contains(rule))
    }

    /// Codepoints by which its rules and classes select packets.
    #[must_use]
    pub fn codepoints(&self) -> BTreeSet<Dscp> {
        let rules = self.rules.iter().filter_map(|rule| match rule.selector {
            PacketSelector::Codepoint(codepoint) => Some(codepoint),
            _ => None,
        });
        let classes = self.classes.list().iter().flat_map(|class| &class.selectors);
        let classes = classes.filter_map(|selector| match selector {
            ClassSelector::Codepoint(codepoint) => Some(*codepoint),
            _ => None,
        });
        rules.chain(classes).collect()
    }

    /// True when a rule selects packets by their firewall mark.
    #[must_use]
    pub fn has_mark_rules(&self) -> bool {
        self.rules.iter().any(|rule| matches!(rule.selector, PacketSelector::FirewallMark(_)))
    }

    /// True when packets of this direction are treated by their firewall mark: by a rule, a class or CAKE itself.
    #[must_use]
    pub fn reads_marks(&self, direction: Direction) -> bool {
        let by_cake = self.queues.qdisc.of(direction).mark_mask.is_some();
        by_cake || self.has_mark_rules() || self.classes.has_marks(direction)
    }

    /// Rules beyond those of the default policy.
    pub fn own_rules(&self) -> impl Iterator<Item = &TrafficRule> {
        let usual = Self::default();
        self.rules.iter().filter(move |rule| !usual.rules.contains(rule))
    }
}

/// Codepoints that applications set today (RFC 8325 §4, RFC 8622, OpenSSH's `IPQoS`), and LARTC's minimise-delay.
const MARKS: [(u8, TrafficImportance, &str); 9] = [
    (46, TrafficImportance::Interactive, "EF: speech (RFC 3246), and key strokes of OpenSSH since 10.1"),
    (44, TrafficImportance::Interactive, "VA: admitted speech (RFC 5865)"),
    (48, TrafficImportance::Interactive, "CS6: routing, and formerly SSH and time servers"),
    (32, TrafficImportance::Interactive, "CS4: interactive video (RFC 4594)"),
    (34, TrafficImportance::Interactive, "AF41: video calls (RFC 8837)"),
    (18, TrafficImportance::Interactive, "AF21: key strokes of OpenSSH 7.8 to 10.0"),
    (
        4,
        TrafficImportance::Interactive,
        "minimise-delay of RFC 1349: key strokes of older SSH and telnet, as LARTC had it",
    ),
    (8, TrafficImportance::Bulk, "CS1: background (RFC 4594), file copies of OpenSSH"),
    (1, TrafficImportance::Bulk, "LE: lower effort (RFC 8622)"),
];

/// Ports of latency-critical single packets.
const PORTS: [(PortTransport, u16, &str); 2] = [
    (PortTransport::Udp, 53, "name lookups, which precede each page"),
    (PortTransport::Udp, 123, "time synchronisation, which depends on their delay"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_policy_is_complete() {
        let policy = TrafficPolicy::default();
        assert_eq!(policy.rules.len(), 3 + MARKS.len() + PORTS.len(), "each constant is a valid codepoint or port");
        assert!(!policy.has_own_rules());
        assert!(policy.rules.iter().all(|rule| !rule.reason.is_empty() && !rule.reason.ends_with('.')));
        for importance in TrafficImportance::ALL {
            assert_eq!(TrafficImportance::from_name(importance.name()), Some(importance));
        }
    }

    #[test]
    fn own_rules_are_separate() {
        let mut policy = TrafficPolicy::default();
        let port = Port::new(22).expect("not zero");
        policy.rules.push(TrafficRule::new(
            PacketSelector::Port(PortTransport::Tcp, port),
            TrafficImportance::Interactive,
            "ssh",
        ));
        assert!(policy.has_own_rules());
        assert_eq!(policy.own_rules().count(), 1);
    }
}
