//! What matters on a line: which traffic goes first, which last, and who shares with whom.

mod prefix;

use linerate_units::{Dscp, Port};

pub use self::prefix::{ParsePrefixError, Prefix};

/// How much a packet matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Importance {
    /// Somebody waits for it: key strokes, speech, name lookups, acknowledgements. Goes first, as far as its share.
    Interactive,
    /// Everything that nothing is said about.
    Default,
    /// Nobody waits for it: backups, seeding. Has the smallest share, and what others leave.
    Bulk,
}

impl Importance {
    /// All, from the first served to the last.
    pub const ALL: [Self; 3] = [Self::Interactive, Self::Default, Self::Bulk];

    /// `interactive`, `default` or `bulk`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Interactive => "interactive",
            Self::Default => "default",
            Self::Bulk => "bulk",
        }
    }

    /// Of [`name`](Self::name).
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|importance| importance.name() == name)
    }
}

/// A transport that has ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Transport {
    /// TCP.
    Tcp,
    /// UDP, and QUIC in it.
    Udp,
}

impl Transport {
    /// Its number in the IP header (IANA "Assigned Internet Protocol Numbers").
    #[must_use]
    pub const fn number(self) -> IpProtocol {
        match self {
            Self::Tcp => IpProtocol(6),
            Self::Udp => IpProtocol(17),
        }
    }

    /// `TCP` or `UDP`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
        }
    }
}

/// The number of a protocol above IP: `Protocol` of IPv4, `Next Header` of IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IpProtocol(u8);

impl IpProtocol {
    /// The protocol with this number.
    #[must_use]
    pub const fn new(number: u8) -> Self {
        Self(number)
    }

    /// Its number.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }
}

/// Which packets a rule speaks of. Each is sought in IPv4 and in IPv6.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selector {
    /// Those with this codepoint, whatever their ECN bits.
    Mark(Dscp),
    /// Those to or from this port.
    Port(Transport, Port),
    /// Those to or from these hosts at the far side of the line.
    Host(Prefix),
    /// Those of this protocol.
    Protocol(IpProtocol),
    /// TCP segments with the ACK flag that carry nothing: header lengths add up to the packet's length. Those with
    /// timestamps and selective acknowledgements too, which a bound on the length misses.
    PureAcknowledgement,
    /// ICMP and `ICMPv6`.
    Icmp,
}

/// That these packets matter so much.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Which packets.
    pub selector: Selector,
    /// How much they matter.
    pub importance: Importance,
    /// Why, as a phrase without a full stop.
    pub reason: String,
}

impl Rule {
    fn new(selector: Selector, importance: Importance, reason: &str) -> Self {
        Self { selector, importance, reason: reason.to_owned() }
    }
}

/// Who shares a full line equally.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Fairness {
    /// Flows: a host with ten has ten shares.
    Flows,
    /// The hosts on this side of the line first, and the flows of each among themselves; behind address translation too.
    #[default]
    Hosts,
}

/// What matters on a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The first that fits counts; what none fits is default.
    pub rules: Vec<Rule>,
    /// Whether codepoints of packets are believed: CAKE then has four tins instead of one. [`Selector::Mark`] rules count
    /// in any case where a back end classifies.
    pub trust_marks: bool,
    /// Who shares equally, where the back end can tell.
    pub fairness: Fairness,
    /// Whether this host translates addresses, so that hosts are told apart by what conntrack knows.
    pub translates_addresses: bool,
}

impl Default for Policy {
    /// LARTC's promise with what is known today: key strokes, acknowledgements and ICMP first, in both families, limited to
    /// their share; marked bulk last.
    fn default() -> Self {
        let mut rules = vec![
            Rule::new(
                Selector::PureAcknowledgement,
                Importance::Interactive,
                "acknowledgements that wait behind an upload slow the download that they acknowledge",
            ),
            Rule::new(Selector::Icmp, Importance::Interactive, "pings, and the errors and neighbours that IP needs"),
        ];
        rules.extend(MARKS.iter().filter_map(|(codepoint, importance, reason)| {
            Dscp::new(*codepoint).map(|mark| Rule::new(Selector::Mark(mark), *importance, reason))
        }));
        rules.extend(PORTS.iter().filter_map(|(transport, port, reason)| {
            let port = Port::new(*port)?;
            Some(Rule::new(Selector::Port(*transport, port), Importance::Interactive, reason))
        }));
        Self { rules, trust_marks: false, fairness: Fairness::default(), translates_addresses: false }
    }
}

impl Policy {
    /// Whether there are rules that a queue which knows only marks and flows cannot follow.
    #[must_use]
    pub fn has_own_rules(&self) -> bool {
        let usual = Self::default();
        self.rules.iter().any(|rule| !usual.rules.contains(rule))
    }

    /// The rules beyond those of the default policy.
    pub fn own_rules(&self) -> impl Iterator<Item = &Rule> {
        let usual = Self::default();
        self.rules.iter().filter(move |rule| !usual.rules.contains(rule))
    }
}

/// Codepoints that applications set today (RFC 8325 §4, RFC 8622, OpenSSH's `IPQoS`), and LARTC's minimise-delay.
const MARKS: [(u8, Importance, &str); 9] = [
    (46, Importance::Interactive, "EF: speech (RFC 3246), and key strokes of OpenSSH since 10.1"),
    (44, Importance::Interactive, "VA: admitted speech (RFC 5865)"),
    (48, Importance::Interactive, "CS6: routing, and what SSH and time servers used to set"),
    (32, Importance::Interactive, "CS4: interactive video (RFC 4594)"),
    (34, Importance::Interactive, "AF41: video calls (RFC 8837)"),
    (18, Importance::Interactive, "AF21: key strokes of OpenSSH 7.8 to 10.0"),
    (4, Importance::Interactive, "minimise-delay of RFC 1349: key strokes of older SSH and telnet, as LARTC had it"),
    (8, Importance::Bulk, "CS1: background (RFC 4594), file copies of OpenSSH"),
    (1, Importance::Bulk, "LE: lower effort (RFC 8622)"),
];

/// Ports behind which somebody waits for one small packet.
const PORTS: [(Transport, u16, &str); 2] = [
    (Transport::Udp, 53, "name lookups: each page begins with some"),
    (Transport::Udp, 123, "clocks are set by the delay of these"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_policy_is_complete() {
        let policy = Policy::default();
        assert_eq!(policy.rules.len(), 2 + MARKS.len() + PORTS.len(), "each constant is a valid codepoint or port");
        assert!(!policy.has_own_rules());
        assert!(policy.rules.iter().all(|rule| !rule.reason.is_empty() && !rule.reason.ends_with('.')));
        for importance in Importance::ALL {
            assert_eq!(Importance::from_name(importance.name()), Some(importance));
        }
    }

    #[test]
    fn own_rules_are_told_apart() {
        let mut policy = Policy::default();
        let port = Port::new(22).expect("not zero");
        policy.rules.push(Rule::new(Selector::Port(Transport::Tcp, port), Importance::Interactive, "ssh"));
        assert!(policy.has_own_rules());
        assert_eq!(policy.own_rules().count(), 1);
    }
}
