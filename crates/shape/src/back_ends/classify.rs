//! A policy as filters of kind `u32`, for IPv4 and IPv6.

use super::builder::DirectionBuilder;
use crate::plan::{FilterProtocol, FilterTarget, QdiscHandle, TcParent};
use crate::policy::{HostPrefix, IpProtocol, PacketSelector, PortTransport, ReceivedMarks, TrafficRule};
use linerate_model::direction::Direction;

/// Handle of the discipline whose packets are classified.
pub(super) const ROOT: QdiscHandle = QdiscHandle::discipline(1);

/// `tc` preference (`prio`) of the filters of one family: one number carries one protocol only.
const fn preference(protocol: FilterProtocol) -> u16 {
    match protocol {
        FilterProtocol::Ipv4 => 10,
        FilterProtocol::Ipv6 => 11,
        FilterProtocol::All => 12,
    }
}

/// Preference of the rules by firewall mark, before all others and after the classes.
const MARK_PREFERENCE: u16 = 6;

pub(super) const FAMILIES: [FilterProtocol; 2] = [FilterProtocol::Ipv4, FilterProtocol::Ipv6];

/// Match of an IPv4 header without options that is no later fragment, so that the ports' offset is fixed.
pub(super) const PLAIN_IPV4: &str = "match u8 0x05 0x0f at 0 match u16 0x0000 0x1fff at 6";

/// Adds filters for these rules; `goal` returns the `tc` options and the target of a rule.
pub(super) fn add_filters<'r>(
    builder: &mut DirectionBuilder<'_>,
    rules: impl Iterator<Item = &'r TrafficRule>,
    goal: impl Fn(&TrafficRule) -> (String, FilterTarget),
) {
    for rule in rules {
        // Marks set by others are trusted only on request.
        let believed = builder.direction == Direction::Up
            || builder.inputs.policy.trust_marks
            || builder.inputs.policy.received_marks == ReceivedMarks::Restored;
        if matches!(rule.selector, PacketSelector::Codepoint(_)) && !believed {
            continue;
        }
        let (words, target) = goal(rule);
        let reason = format!("{}: {}", rule.importance.name(), rule.reason);
        if let PacketSelector::FirewallMark(mark) = rule.selector {
            let place = (FilterProtocol::All, MARK_PREFERENCE);
            builder.filter(TcParent::At(ROOT), place, ("fw", &format!("handle {mark} {words}")), Some(target), reason);
            continue;
        }
        for family in FAMILIES {
            for matches in matches(&rule.selector, family, builder.direction) {
                let place = (family, preference(family));
                builder.filter(
                    TcParent::At(ROOT),
                    place,
                    ("u32", &format!("{matches} {words}")),
                    Some(target.clone()),
                    reason.clone(),
                );
            }
        }
    }
}

/// Adds filters that lead the datagrams without a rule into a class.
pub(super) fn add_datagram_filters(builder: &mut DirectionBuilder<'_>, class: QdiscHandle) {
    for family in FAMILIES {
        let matched = protocol_match(PortTransport::Udp.number(), family == FilterProtocol::Ipv6);
        let words = format!("{matched} flowid {class}");
        let place = (family, preference(family));
        let reason = "datagrams without a rule of their own";
        builder.filter(TcParent::At(ROOT), place, ("u32", &words), Some(FilterTarget::Class(class)), reason);
    }
}

/// Matches that together select these packets in one family.
pub(super) fn matches(selector: &PacketSelector, family: FilterProtocol, direction: Direction) -> Vec<String> {
    let ipv6 = family == FilterProtocol::Ipv6;
    match selector {
        // Without the two ECN bits.
        PacketSelector::Codepoint(codepoint) if ipv6 => {
            vec![format!("match u16 {:#06x} 0x0fc0 at 0", u16::from(codepoint.get()) << 6)]
        }
        PacketSelector::Codepoint(codepoint) => vec![format!("match u8 {:#04x} 0xfc at 1", codepoint.get() << 2)],
        PacketSelector::Port(transport, port) => {
            [0, 2].map(|field| port_match(*transport, port.get(), field, ipv6)).to_vec()
        }
        PacketSelector::Host(prefix) => host_match(prefix, ipv6, direction).into_iter().collect(),
        PacketSelector::Protocol(number) => vec![protocol_match(*number, ipv6)],
        PacketSelector::Icmp => vec![protocol_match(IpProtocol::new(if ipv6 { 58 } else { 1 }), ipv6)],
        PacketSelector::PureAcknowledgement => pure_acknowledgements(ipv6),
        PacketSelector::ConnectionRequest => vec![connection_requests(ipv6)],
        // No field of the header: `fw` looks it up.
        PacketSelector::FirewallMark(_) => Vec::new(),
    }
}

/// Match of this protocol above IP.
pub(super) fn protocol_match(number: IpProtocol, ipv6: bool) -> String {
    format!("match u8 {:#04x} 0xff at {}", number.get(), if ipv6 { 6 } else { 9 })
}

fn port_match(transport: PortTransport, port: u16, field: u8, ipv6: bool) -> String {
    let above = protocol_match(transport.number(), ipv6);
    if ipv6 {
        format!("{above} match u16 {port:#06x} 0xffff at {}", 40 + field)
    } else {
        format!("{PLAIN_IPV4} {above} match u16 {port:#06x} 0xffff at {}", 20 + field)
    }
}

fn host_match(prefix: &HostPrefix, ipv6: bool, direction: Direction) -> Option<String> {
    let side = if direction == Direction::Up { "dst" } else { "src" };
    let family = if ipv6 { "ip6" } else { "ip" };
    (prefix.is_ipv6() == ipv6).then(|| format!("match {family} {side} {prefix}"))
}

/// Matches of pure acknowledgements. `u32` cannot subtract, but a TCP header has 11 lengths: each with its packet
/// length.
fn pure_acknowledgements(ipv6: bool) -> Vec<String> {
    let tcp = protocol_match(IpProtocol::new(6), ipv6);
    let one = |words: u16| {
        let offset = words << 4;
        if ipv6 {
            let length = words * 4;
            format!(
                "{tcp} match u16 {length:#06x} 0xffff at 4 match u8 {offset:#04x} 0xf0 at 52 match u8 0x10 0x10 at 53"
            )
        } else {
            let length = 20 + words * 4;
            let fields = format!("match u16 {length:#06x} 0xffff at 2 match u8 {offset:#04x} 0xf0 at 32");
            format!("{PLAIN_IPV4} {tcp} {fields} match u8 0x10 0x10 at 33")
        }
    };
    (5..=15).map(one).collect()
}

/// Match of segments with SYN and without ACK.
fn connection_requests(ipv6: bool) -> String {
    let tcp = protocol_match(IpProtocol::new(6), ipv6);
    let (plain, at) = if ipv6 { (String::new(), 53) } else { (format!("{PLAIN_IPV4} "), 33) };
    format!("{plain}{tcp} match u8 0x02 0x12 at {at}")
}

/// Evaluates `u32` matches on a packet in tests: keys are value, mask and offset of 1, 2 or 4 bytes.
#[cfg(test)]
pub(super) fn selects(words: &[String], packet: &[u8]) -> bool {
    let number = |text: &String| {
        text.strip_prefix("0x").map_or_else(|| text.parse().ok(), |digits| u32::from_str_radix(digits, 16).ok())
    };
    let mut rest = words;
    while let [key, kind, value, mask, at, offset, ..] = rest {
        if key != "match" || at != "at" {
            break;
        }
        let size = if kind == "u8" { 1 } else { 2 };
        let (Some(value), Some(mask), Ok(offset)) = (number(value), number(mask), offset.parse::<usize>()) else {
            return false;
        };
        let Some(field) = packet.get(offset..offset + size) else { return false };
        let found = field.iter().fold(0_u32, |number, byte| number << 8 | u32::from(*byte));
        if found & mask != value {
            return false;
        }
        rest = &rest[6..];
    }
    true
}

#[cfg(test)]
mod tests {
    use linerate_units::{Dscp, Port};
    use proptest::prelude::*;

    use super::*;
    use crate::plan::arguments;

    fn fits(selector: &PacketSelector, family: FilterProtocol, packet: &[u8]) -> bool {
        matches(selector, family, Direction::Up).iter().any(|line| selects(&arguments(line), packet))
    }

    fn tcp_ipv4(header_words: u8, payload: u16, flags: u8, tos: u8) -> Vec<u8> {
        let length = 20 + u16::from(header_words) * 4 + payload;
        let mut packet = vec![0; usize::from(length)];
        packet[0] = 0x45;
        packet[1] = tos;
        packet[2..4].copy_from_slice(&length.to_be_bytes());
        packet[6] = 0x40;
        packet[9] = 6;
        packet[22..24].copy_from_slice(&443_u16.to_be_bytes());
        packet[32] = header_words << 4;
        packet[33] = flags;
        packet
    }

    fn tcp_ipv6(header_words: u8, payload: u16, flags: u8, class: u8) -> Vec<u8> {
        let length = u16::from(header_words) * 4 + payload;
        let mut packet = vec![0; 40 + usize::from(length)];
        packet[0] = 0x60 | class >> 4;
        packet[1] = class << 4;
        packet[4..6].copy_from_slice(&length.to_be_bytes());
        packet[6] = 6;
        packet[42..44].copy_from_slice(&443_u16.to_be_bytes());
        packet[52] = header_words << 4;
        packet[53] = flags;
        packet
    }

    proptest! {
        /// Exactly the segments with ACK and no payload, for all options, flags, codepoints and ECN bits.
        #[test]
        fn acknowledgements_are_those_without_payload(
            header in 5_u8..=15, payload in prop_oneof![Just(0_u16), 0..1400_u16], flags: u8, class: u8,
        ) {
            let pure = payload == 0 && flags & 0x10 != 0;
            let selector = PacketSelector::PureAcknowledgement;
            prop_assert_eq!(fits(&selector, FilterProtocol::Ipv4, &tcp_ipv4(header, payload, flags, class)), pure);
            prop_assert_eq!(fits(&selector, FilterProtocol::Ipv6, &tcp_ipv6(header, payload, flags, class)), pure);
        }

        #[test]
        fn connection_requests_are_those_with_syn_alone(header in 5_u8..=15, payload in 0..1400_u16, flags: u8, class: u8) {
            let opens = flags & 0x12 == 0x02;
            let selector = PacketSelector::ConnectionRequest;
            prop_assert_eq!(fits(&selector, FilterProtocol::Ipv4, &tcp_ipv4(header, payload, flags, class)), opens);
            prop_assert_eq!(fits(&selector, FilterProtocol::Ipv6, &tcp_ipv6(header, payload, flags, class)), opens);
        }

        #[test]
        fn codepoints_are_read_without_ecn(codepoint in 0_u8..64, class: u8) {
            let selector = PacketSelector::Codepoint(Dscp::new(codepoint).expect("below 64"));
            prop_assert_eq!(fits(&selector, FilterProtocol::Ipv4, &tcp_ipv4(5, 0, 0, class)), class >> 2 == codepoint);
            prop_assert_eq!(fits(&selector, FilterProtocol::Ipv6, &tcp_ipv6(5, 0, 0, class)), class >> 2 == codepoint);
        }
    }

    #[test]
    fn ports_on_either_side_and_not_in_later_fragments() {
        let selector = PacketSelector::Port(PortTransport::Tcp, Port::new(443).expect("not zero"));
        let mut packet = tcp_ipv4(5, 100, 0x10, 0);
        assert!(fits(&selector, FilterProtocol::Ipv4, &packet));
        packet.copy_within(22..24, 20);
        packet[22..24].fill(0);
        assert!(fits(&selector, FilterProtocol::Ipv4, &packet));
        packet[7] = 185;
        assert!(!fits(&selector, FilterProtocol::Ipv4, &packet));
        assert!(fits(&selector, FilterProtocol::Ipv6, &tcp_ipv6(8, 1, 0x10, 0)));
        let other = PacketSelector::Port(PortTransport::Udp, Port::new(443).expect("not zero"));
        assert!(!fits(&other, FilterProtocol::Ipv6, &tcp_ipv6(8, 1, 0x10, 0)));
    }

    #[test]
    fn hosts_are_those_at_the_far_side() {
        let prefix: HostPrefix = "2001:db8::/32".parse().expect("a prefix");
        assert_eq!(host_match(&prefix, true, Direction::Up), Some("match ip6 dst 2001:db8::/32".to_owned()));
        assert_eq!(host_match(&prefix, true, Direction::Down), Some("match ip6 src 2001:db8::/32".to_owned()));
        assert_eq!(host_match(&prefix, false, Direction::Down), None);
    }
}
