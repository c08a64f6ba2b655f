//! Ingress: redirected to an intermediate device, or policed.

use core::time::Duration;
use linerate_model::direction::Direction;

use linerate_units::{BitRate, ByteCount};

use super::builder::{DirectionBuilder, keep_out};
use super::{PlanInputs, sizes};
use crate::capability::{KernelCapabilities, KernelFeature};
use crate::plan::{AggregatedPackets, FilterProtocol, FilterTarget, IngressControl, QdiscHandle, ShaperPlan, TcParent};
use crate::policy::{ReceivedMarks, TrafficImportance};
use crate::prediction::ShaperTurn;

const INGRESS: KernelFeature = KernelFeature::Discipline("ingress");
const U32: KernelFeature = KernelFeature::Filter("u32");
const MATCHALL: KernelFeature = KernelFeature::Filter("matchall");

/// Filter that matches every packet: `u32` where available, which is nearly everywhere.
fn everything(capabilities: &KernelCapabilities) -> Option<(&'static str, &'static str)> {
    if capabilities.has(U32) {
        Some(("u32", "match u32 0 0"))
    } else if capabilities.has(MATCHALL) {
        Some(("matchall", ""))
    } else {
        None
    }
}

/// Share of the given rate that a slow link's ingress shaper leaves unused.
///
/// A sender's window grows by about a packet per round trip, and that packet goes into the modem's queue, not ours: it
/// drains only through the unused share. Where packets take long, the usual margin is too small. Zero for packets of 4
/// ms (3 Mbit/s), growing to 5 % for 14 ms (0.85 Mbit/s) and longer.
fn margin(inputs: &PlanInputs<'_>, rate: BitRate) -> f64 {
    let packet = rate.time_to_send(inputs.full_packet()).unwrap_or_default();
    let beyond = packet.saturating_sub(sizes::SHORT).as_secs_f64() / MARGIN_RANGE.as_secs_f64();
    MAX_MARGIN * beyond.min(1.0)
}

/// Range of a packet's time over which the margin grows, and the maximum margin.
const MARGIN_RANGE: Duration = Duration::from_millis(10);
const MAX_MARGIN: f64 = 0.05;

/// Shapes ingress with `shape` on an intermediate device; else polices it; else adds a note.
pub(super) fn add(
    inputs: &PlanInputs<'_>,
    plan: &mut ShaperPlan,
    rate: BitRate,
    splits: bool,
    shape: impl Fn(&mut DirectionBuilder<'_>),
) {
    let margin = margin(inputs, rate);
    if margin > 0.0 {
        plan.notes.push(format!(
            "Ingress is shaped {:.1} % below its rate: on such a slow link a sender's growing window would otherwise \
             keep the modem's own queue filled.",
            margin * 100.0
        ));
    }
    let rate = rate * (1.0 - margin);
    let capabilities = inputs.capabilities;
    let Some(filter) = everything(capabilities) else {
        note_uncontrolled(plan, &[capabilities.lacks(U32), capabilities.lacks(MATCHALL)]);
        return;
    };
    let lacks =
        |features: &[KernelFeature]| features.iter().map(|feature| capabilities.lacks(*feature)).collect::<Vec<_>>();
    let redirect = lacks(&[INGRESS, KernelFeature::Action("mirred"), KernelFeature::IntermediateDevice]);
    if redirect.iter().all(Option::is_none) {
        add_redirect(inputs, plan, rate, (filter, splits), shape);
        return;
    }
    let police = lacks(&[INGRESS, KernelFeature::Action("police")]);
    if police.iter().all(Option::is_none) {
        let why: Vec<_> = redirect.into_iter().flatten().collect();
        plan.notes.push(format!("Received packets are policed, not shaped: {}.", why.join(", ")));
        policed(inputs, plan, rate, filter);
        return;
    }
    note_uncontrolled(plan, &[redirect, police].concat());
}

/// Actions that restore what the connection's mark has, each with a space before it.
fn restore_actions(inputs: &PlanInputs<'_>) -> String {
    let has_marks = inputs.policy.reads_marks(Direction::Down);
    if inputs.policy.received_marks == ReceivedMarks::Restored {
        return format!(" action ctinfo dscp {STORED_DSCP}{}", if has_marks { " cpmark" } else { "" });
    }
    mark_action(inputs.capabilities).filter(|_| has_marks).map_or(String::new(), |action| format!(" {action}"))
}

/// Bits of a connection's mark in which the codepoint is stored, and the bit that is set when it is (those of sqm-scripts
/// and qosify).
const STORED_DSCP: &str = "0xfc000000 0x01000000";

/// Changes of the packet that clear its codepoint, and keep the two bits of ECN.
const WASHING: [(FilterProtocol, u16, &str); 2] = [
    (FilterProtocol::Ipv4, 8, "action pedit ex munge ip dsfield set 0 retain 0xfc pipe action csum iph pipe"),
    (FilterProtocol::Ipv6, 9, "action pedit ex munge ip6 traffic_class set 0 retain 0xfc pipe"),
];

/// Adds redirects that clear the codepoint first. CAKE does that itself.
fn add_washing(builder: &mut DirectionBuilder<'_>, (kind, all): (&'static str, &str), restore: &str, name: &str) {
    for (protocol, preference, actions) in WASHING {
        let options = format!("{all}{restore} {actions} action mirred egress redirect dev {name}");
        let target = Some(FilterTarget::Redirect(name.to_owned()));
        let reason = "the codepoint is cleared, so that no one behind this host trusts it";
        builder.filter(TcParent::Ingress, (protocol, preference), (kind, &options), target, reason);
    }
}

/// Action that gives a received packet the mark of its connection (`ct mark` of nftables): filters see it before the
/// firewall, where it has none.
pub(super) fn mark_action(capabilities: &KernelCapabilities) -> Option<&'static str> {
    const CHOICES: [(&str, &str); 2] = [("ctinfo", "action ctinfo cpmark"), ("connmark", "action connmark")];
    CHOICES.into_iter().find(|(kind, _)| capabilities.has(KernelFeature::Action(kind))).map(|(_, action)| action)
}

fn note_uncontrolled(plan: &mut ShaperPlan, lacking: &[Option<String>]) {
    let mut why: Vec<_> = lacking.iter().flatten().cloned().collect();
    why.dedup();
    let why = why.join(", ");
    plan.notes.push(format!("Received packets are not controlled: {why}."));
    plan.receiving = IngressControl::Uncontrolled(why);
}

fn add_redirect(
    inputs: &PlanInputs<'_>,
    plan: &mut ShaperPlan,
    rate: BitRate,
    ((kind, all), splits): ((&'static str, &str), bool),
    shape: impl Fn(&mut DirectionBuilder<'_>),
) {
    let name = inputs.device.intermediate.clone();
    let mut builder = DirectionBuilder::new(inputs, Direction::Down, &name, rate);
    builder.make_device("received packets can be queued only on the egress of another device");
    shape(&mut builder);
    builder.set_up_device("packets sent to a device that is down are dropped");
    builder.finish(plan);

    let mut builder = DirectionBuilder::new(inputs, Direction::Down, &inputs.device.name, rate);
    hook(&mut builder);
    let restore = restore_actions(inputs);
    if inputs.policy.received_marks == ReceivedMarks::Washed && !splits {
        add_washing(&mut builder, (kind, all), &restore, &name);
    }
    builder.filter(
        TcParent::Ingress,
        (FilterProtocol::All, 10),
        (kind, &format!("{all}{restore} action mirred egress redirect dev {name}")),
        Some(FilterTarget::Redirect(name.clone())),
        "everything, IPv4 and IPv6; last, so that the target is ready before the first packet",
    );
    builder.finish(plan);
    plan.intermediate = Some(name);
    plan.receiving = IngressControl::Redirected;
}

fn hook(builder: &mut DirectionBuilder<'_>) {
    let place = (TcParent::Ingress, QdiscHandle::INGRESS);
    builder.discipline(place, "ingress", None, "", "the hook on which filters see received packets");
}

/// Bucket of the policer: 20 ms, or six full packets. LARTC's 10 kB dropped half of the traffic at 20 Mbit/s.
fn bucket(inputs: &PlanInputs<'_>, rate: BitRate) -> ByteCount {
    (inputs.full_packet() * 6).max(rate * Duration::from_millis(20))
}

fn policed(inputs: &PlanInputs<'_>, plan: &mut ShaperPlan, rate: BitRate, (kind, all): (&'static str, &str)) {
    let mut builder = DirectionBuilder::new(inputs, Direction::Down, &inputs.device.name, rate);
    hook(&mut builder);
    if !inputs.policy.classes.is_empty() {
        builder.note("Classes apply to what is sent only: the policer has none.");
    }
    let layer = inputs.line.layer;
    let held = sizes::representable_rate(layer.counted_rate(rate));
    let bucket = bucket(inputs, held);
    // At this hook the kernel counts IP packets without link-layer header.
    let counted = sizes::link_layer_options(layer, ByteCount::ZERO);
    let words = format!(
        "{all} action police rate {} burst {} mtu 65535{counted} drop",
        sizes::rate_argument(held),
        bucket.get()
    );
    builder.filter(
        TcParent::Ingress,
        (FilterProtocol::All, 10),
        (kind, &words),
        Some(FilterTarget::Police),
        "dropped above the rate, IPv4 and IPv6: senders slow down, at the cost of retransmissions",
    );
    let drained = rate.time_to_send(bucket).unwrap_or_default();
    for importance in [TrafficImportance::Interactive, TrafficImportance::Default] {
        // The bucket's content may wait in the queue at the link's far end.
        builder.predict(importance, (ShaperTurn::AtOnce, drained / 2), drained);
    }
    builder.finish(plan);
    plan.receiving = IngressControl::Policed;
    if plan.offloads.iter().all(|offload| offload.aggregates != AggregatedPackets::Received) {
        keep_out(plan, inputs, rate, AggregatedPackets::Received);
    }
}
