//! HTB tree: the link's class, and below it the interactive, default and bulk classes, with one for datagrams.

use core::time::Duration;
use linerate_model::direction::Direction;

use linerate_units::BitRate;

use super::builder::DirectionBuilder;
use super::classify::{self, ROOT};
use super::{PlanInputs, class_tree, host_leaves, sizes};
use crate::capability::KernelFeature;
use crate::plan::{FilterTarget, PlannedClass, QdiscHandle, TcParent};
use crate::policy::{PacketSelector, TrafficImportance, TrafficRule};
use crate::prediction::ShaperTurn;

/// Class of the link.
pub(super) const LINK_CLASS: QdiscHandle = QdiscHandle::class(1, 1);

/// Queueing discipline at a leaf class.
pub(super) struct LeafQueue {
    pub(super) kind: &'static str,
    /// Reason, as a phrase.
    pub(super) reason: &'static str,
    /// `tc` options for a class of this ceiling.
    pub(super) options: fn(&PlanInputs<'_>, BitRate, Direction) -> String,
    /// Delay of a flow that fills it.
    pub(super) own_queue: fn(&DirectionBuilder<'_>) -> Duration,
}

/// Class of a tier.
pub(super) const fn tier_class(importance: TrafficImportance) -> QdiscHandle {
    QdiscHandle::class(
        1,
        match importance {
            TrafficImportance::Interactive => 0x10,
            TrafficImportance::Default => 0x20,
            TrafficImportance::Bulk => 0x30,
        },
    )
}

/// Class of acknowledgements, which borrows.
pub(super) const ACKNOWLEDGEMENT_CLASS: QdiscHandle = QdiscHandle::class(1, 0x11);

/// Class of datagrams without a rule.
pub(super) const DATAGRAM_CLASS: QdiscHandle = QdiscHandle::class(1, 0x22);

/// Guaranteed share of datagrams.
const DATAGRAM_SHARE: f64 = 0.25;

/// Guaranteed share of a class that borrows its other rate.
const BORROWER_SHARE: f64 = 1.0 / 32.0;

/// Guaranteed rate of a tier, which HTB sends regardless of the link's current use.
///
/// Interactive traffic leaves at once within it; bulk is kept from starving. All else borrows from the link, so that a
/// packet starts only after the previous one's time, and the modem never holds two.
pub(super) fn share(importance: TrafficImportance, rate: BitRate) -> BitRate {
    sizes::representable_rate(
        rate * match importance {
            TrafficImportance::Interactive => 1.0 / 3.0,
            TrafficImportance::Default => BORROWER_SHARE,
            TrafficImportance::Bulk => 1.0 / 6.0,
        },
    )
}

/// HTB's `prio` among borrowing classes. Interactive and default packets take turns, so that a flood of interactive
/// packets cannot starve the default class.
const fn turn(importance: TrafficImportance) -> u8 {
    match importance {
        TrafficImportance::Interactive | TrafficImportance::Default => 0,
        TrafficImportance::Bulk => 1,
    }
}

/// Rate for HTB, in the bytes that it counts.
pub(super) fn held(builder: &DirectionBuilder<'_>) -> BitRate {
    sizes::representable_rate(builder.inputs.line.layer.counted_rate(builder.rate))
}

/// True when the direction has classes: classification needs `u32`.
pub(super) fn sorts(inputs: &PlanInputs<'_>) -> bool {
    inputs.capabilities.has(KernelFeature::Filter("u32"))
}

/// HTB class with all parameters stated. `at_once`: true when a packet may leave without waiting after the class was
/// idle, for sparse traffic.
pub(super) fn class(
    builder: &DirectionBuilder<'_>,
    (parent, handle): (QdiscHandle, QdiscHandle),
    (rate, ceiling): (BitRate, BitRate),
    (importance, at_once): (Option<TrafficImportance>, bool),
) -> PlannedClass {
    let inputs = builder.inputs;
    let burst = if at_once { sizes::burst(inputs, rate) } else { sizes::spacing_burst(rate) }.get();
    let ceiling_burst = sizes::spacing_burst(ceiling).get();
    let priority = importance.map_or(String::new(), |importance| format!(" prio {}", turn(importance)));
    let options = format!(
        "rate {} ceil {} burst {burst} cburst {ceiling_burst} quantum {}{priority}{}",
        sizes::rate_argument(rate),
        sizes::rate_argument(ceiling),
        sizes::quantum(inputs, rate).get(),
        sizes::link_layer_options(inputs.line.layer, inputs.device.header),
    );
    let options = options.split_whitespace().map(str::to_owned).collect();
    let device = builder.device.clone();
    let traffic_class = None;
    PlannedClass {
        device,
        parent,
        handle,
        kind: "htb",
        rate,
        ceiling: Some(ceiling),
        importance,
        traffic_class,
        options,
    }
}

/// Adds the discipline and the class of the link.
pub(super) fn line(builder: &mut DirectionBuilder<'_>, default: u16) {
    let rate = held(builder);
    let reason = format!("HTB divides the link; unclassified packets go to 1:{default:x}");
    builder.discipline((TcParent::Root, ROOT), "htb", None, &format!("default {default:x}"), reason);
    let class = class(builder, (ROOT, LINK_CLASS), (rate, rate), (None, false));
    builder.class(
        class,
        "the link: all classes below are limited to this rate together, so the queue is here and not in the modem",
    );
}

/// Adds a class with its queue.
pub(super) fn leaf(
    builder: &mut DirectionBuilder<'_>,
    (parent, handle): (QdiscHandle, QdiscHandle),
    (rate, ceiling): (BitRate, BitRate),
    importance: TrafficImportance,
    leaf: &LeafQueue,
    reason: &str,
) {
    // One of many leaves is idle most of the time, and so are the interactive class and that of datagrams.
    let at_once =
        [tier_class(TrafficImportance::Interactive), DATAGRAM_CLASS].contains(&handle) || !class_tree::is_inner(parent);
    let class = class(builder, (parent, handle), (rate, ceiling), (Some(importance), at_once));
    builder.class(class, reason);
    let words = (leaf.options)(builder.inputs, ceiling, builder.direction);
    let place = (TcParent::At(handle), QdiscHandle::discipline(handle.minor));
    builder.discipline(place, leaf.kind, None, &words, leaf.reason);
}

/// Adds the policy's filters into the classes of the tiers.
pub(super) fn add_filters(builder: &mut DirectionBuilder<'_>, class_of: impl Fn(TrafficImportance) -> QdiscHandle) {
    let policy = builder.inputs.policy;
    classify::add_filters(builder, policy.rules.iter(), |rule| {
        let class = if is_acknowledgement_rule(rule) { ACKNOWLEDGEMENT_CLASS } else { class_of(rule.importance) };
        (format!("flowid {class}"), FilterTarget::Class(class))
    });
}

/// True when a rule's packets go into the class of acknowledgements.
fn is_acknowledgement_rule(rule: &TrafficRule) -> bool {
    rule.selector == PacketSelector::PureAcknowledgement && rule.importance == TrafficImportance::Interactive
}

/// Adds the class of acknowledgements: before the next data packet, but not into the modem behind the current one.
/// There they would accumulate, reach the far end together, and trigger a data burst into the other direction's queue,
/// just when the answer to a ping that waited with them arrives (in the lab, 220 and 850 kbit/s on a link of 240 and
/// 900, both full: mean 77 ms with acknowledgements that leave at once, 58 with these).
pub(super) fn add_acknowledgement_class(
    builder: &mut DirectionBuilder<'_>,
    (parent, guaranteed): (QdiscHandle, BitRate),
    rate: BitRate,
    kind: &LeafQueue,
) {
    if builder.inputs.policy.rules.iter().any(is_acknowledgement_rule) {
        let rates = (sizes::representable_rate(guaranteed * BORROWER_SHARE), rate);
        let why = "acknowledgements: at the next turn, before they accumulate in the modem behind data";
        leaf(builder, (parent, ACKNOWLEDGEMENT_CLASS), rates, TrafficImportance::Interactive, kind, why);
    }
}

/// Adds the class of datagrams without a rule: calls and games, which mark nothing. In the class of TCP a packet of theirs
/// waits for the acknowledgements and follows them into the burst that they cause (in the lab, 220 and 850 kbit/s on a link
/// of 240 and 900, both full: mean 101 ms there, 55 with a class of their own). Packets of one flow stay in one class, as
/// QUIC takes a packet that three others overtake for lost; so small datagrams cannot have it alone.
fn add_datagram_class(
    builder: &mut DirectionBuilder<'_>,
    (parent, guaranteed): (QdiscHandle, BitRate),
    rate: BitRate,
    kind: &LeafQueue,
) {
    let rates = (sizes::representable_rate(guaranteed * DATAGRAM_SHARE), rate);
    let why = "datagrams (UDP): at once up to a quarter of the link, so that calls and games do not wait behind TCP; \
               beyond that in turn";
    if builder.inputs.policy.divides_hosts {
        host_leaves::add(builder, (parent, DATAGRAM_CLASS), rates, kind, why);
    } else {
        leaf(builder, (parent, DATAGRAM_CLASS), rates, TrafficImportance::Default, kind, why);
    }
}

/// Reason of a tier.
pub(super) const fn why(importance: TrafficImportance) -> &'static str {
    match importance {
        TrafficImportance::Interactive => {
            "interactive traffic leaves at once, up to a third of the link; beyond that in turn"
        }
        TrafficImportance::Default => "everything else: the rate unused by others",
        TrafficImportance::Bulk => "background traffic: a sixth of the link, and the rate unused by others",
    }
}

/// Turn of a sparse flow's packet in a tier; of a datagram in the default one.
pub(super) const fn turn_of(importance: TrafficImportance) -> ShaperTurn {
    match importance {
        TrafficImportance::Interactive | TrafficImportance::Default => ShaperTurn::AtOnce,
        TrafficImportance::Bulk => ShaperTurn::NextAfterAcknowledgement,
    }
}

/// Adds the whole tree: three tiers where packets are classified, else one. In both directions: on a slow link a ping
/// reply would otherwise wait for the class's next turn.
pub(super) fn shape(builder: &mut DirectionBuilder<'_>, kind: &LeafQueue) {
    let tiers = sorts(builder.inputs);
    let rate = held(builder);
    let by_host = tiers && builder.inputs.policy.divides_hosts;
    line(builder, if by_host { host_leaves::OTHER_LEAF.minor } else { tier_class(TrafficImportance::Default).minor });
    let own = (kind.own_queue)(builder);
    let (parent, guaranteed) = class_tree::add_others(builder, rate);
    if !tiers {
        let place = (parent, tier_class(TrafficImportance::Default));
        leaf(
            builder,
            place,
            (guaranteed, rate),
            TrafficImportance::Default,
            kind,
            "all packets: the queue below separates flows",
        );
        for importance in [TrafficImportance::Interactive, TrafficImportance::Default] {
            builder.predict(importance, (ShaperTurn::Next, Duration::ZERO), own);
        }
        return;
    }
    for importance in TrafficImportance::ALL {
        let rates = (share(importance, guaranteed), rate);
        let place = (parent, tier_class(importance));
        if by_host && importance == TrafficImportance::Default {
            host_leaves::add(builder, place, rates, kind, why(importance));
        } else {
            leaf(builder, place, rates, importance, kind, why(importance));
        }
        match importance {
            TrafficImportance::Interactive => add_acknowledgement_class(builder, (parent, guaranteed), rate, kind),
            TrafficImportance::Default => add_datagram_class(builder, (parent, guaranteed), rate, kind),
            TrafficImportance::Bulk => {}
        }
        builder.predict(importance, (turn_of(importance), Duration::ZERO), own);
    }
    class_tree::add_classes(builder, rate, kind);
    if by_host {
        add_filters(builder, |importance| {
            if importance == TrafficImportance::Default { host_leaves::OTHER_LEAF } else { tier_class(importance) }
        });
        host_leaves::add_filters(builder);
        return;
    }
    add_filters(builder, tier_class);
    classify::add_datagram_filters(builder, DATAGRAM_CLASS);
    note_host_fairness(builder);
}

/// Adds the note on missing host fairness.
pub(super) fn note_host_fairness(builder: &mut DirectionBuilder<'_>) {
    if builder.inputs.policy.fairness == crate::policy::FairnessUnit::Hosts {
        let behind = if builder.inputs.translates_addresses() { ", also behind this host's NAT" } else { "" };
        builder.note(format!("Flows share equally, not hosts{behind}: --per-host or CAKE shares by host."));
    }
}

#[cfg(test)]
mod tests {
    use linerate_units::ByteCount;

    use super::super::{BackEndId, DeviceProperties};
    use super::*;
    use crate::capability::KernelCapabilities;
    use crate::link::AccessLink;
    use crate::plan::{FilterProtocol, ShaperPlan};
    use crate::policy::TrafficPolicy;

    fn plan(id: BackEndId) -> ShaperPlan {
        let rate = |kilobits: f64| Some(BitRate::from_bits_per_second(kilobits * 1e3));
        let (line, policy) = (AccessLink::new(rate(220.0), rate(850.0)), TrafficPolicy::default());
        let (capabilities, device) = (KernelCapabilities::all_features(), DeviceProperties::ethernet("eth0"));
        let inputs = PlanInputs { line: &line, policy: &policy, capabilities: &capabilities, device: &device };
        id.back_end().plan(&inputs).expect("every feature")
    }

    /// IPv4 or IPv6 packet of this protocol, DSCP and destination port.
    fn packet(ipv6: bool, protocol: u8, mark: u8, port: u16) -> Vec<u8> {
        let mut packet = vec![0; if ipv6 { 1240 } else { 1220 }];
        if ipv6 {
            packet[0] = 0x60 | mark >> 2;
            packet[1] = mark << 6;
            packet[6] = protocol;
        } else {
            packet[0] = 0x45;
            packet[1] = mark << 2;
            packet[9] = protocol;
        }
        let at = packet.len() - 1200 + 2;
        packet[at..at + 2].copy_from_slice(&port.to_be_bytes());
        packet
    }

    #[test]
    fn datagrams_without_a_rule_have_a_class_that_sends_at_once() {
        for id in [BackEndId::HtbFqCodel, BackEndId::HtbFqPie, BackEndId::HtbSfq] {
            let plan = plan(id);
            let class_of = |ipv6, packet: &[u8]| {
                let family = if ipv6 { FilterProtocol::Ipv6 } else { FilterProtocol::Ipv4 };
                let mut filters = plan.filters().filter(|one| one.device == "eth0" && one.protocol == family);
                let first = filters.find(|one| classify::selects(&one.options, packet));
                first.and_then(|filter| match filter.target {
                    Some(FilterTarget::Class(class)) => Some(class),
                    _ => None,
                })
            };
            for (protocol, mark, port, expected) in [
                (17, 0, 3478, Some(DATAGRAM_CLASS)),
                (17, 0, 53, Some(tier_class(TrafficImportance::Interactive))),
                (17, 46, 3478, Some(tier_class(TrafficImportance::Interactive))),
                (17, 8, 3478, Some(tier_class(TrafficImportance::Bulk))),
                (6, 0, 443, None),
                (132, 0, 443, None),
            ] {
                for ipv6 in [false, true] {
                    assert_eq!(
                        class_of(ipv6, &packet(ipv6, protocol, mark, port)),
                        expected,
                        "{id}, {protocol}, {mark}, {port}"
                    );
                }
            }
            for device in ["eth0", "ifb4eth0"] {
                let class = plan.classes().find(|one| one.device == device && one.handle == DATAGRAM_CLASS);
                let class = class.expect("in both directions");
                let burst =
                    class.options.windows(2).find(|pair| pair[0] == "burst").and_then(|pair| pair[1].parse().ok());
                assert!(ByteCount::new(burst.expect("stated")) >= ByteCount::new(1514), "{class:?}");
            }
        }
    }
}
