//! What is received: through an intermediate device, or past a policer.

use core::time::Duration;

use linerate_units::{BitRate, ByteCount};

use super::builder::{Builder, RECEIVING, offloads};
use super::{Inputs, sizes};
use crate::capability::{Capabilities, Feature};
use crate::link::Direction;
use crate::plan::{Goal, Handle, Parent, Plan, Protocol, Receiving, intermediate_device};
use crate::policy::Importance;

const INGRESS: Feature = Feature::Discipline("ingress");
const U32: Feature = Feature::Filter("u32");
const MATCHALL: Feature = Feature::Filter("matchall");

/// The filter that fits every packet: `u32` where it is there, which is nearly everywhere.
fn everything(capabilities: &Capabilities) -> Option<(&'static str, &'static str)> {
    if capabilities.has(U32) {
        Some(("u32", "match u32 0 0"))
    } else if capabilities.has(MATCHALL) {
        Some(("matchall", ""))
    } else {
        None
    }
}

/// What a slow line's shaper leaves free of the rate that it was given.
///
/// A sender's window grows by about a packet in each round trip, and that packet goes into the modem's queue, not into ours:
/// it drains only through what our rate leaves of the line's. Where a packet takes long, the usual margin is not
/// enough for that. Nothing for packets of 4 ms (3 Mbit/s), growing to 5 % for 14 ms (0.85 Mbit/s) and longer.
fn margin(inputs: &Inputs<'_>, rate: BitRate) -> f64 {
    let packet = rate.time_to_send(inputs.full_packet()).unwrap_or_default();
    let beyond = packet.saturating_sub(sizes::SHORT).as_secs_f64() / GROWING.as_secs_f64();
    MARGIN * beyond.min(1.0)
}

/// How much of a packet's time the margin takes to grow to its largest, and that.
const GROWING: Duration = Duration::from_millis(10);
const MARGIN: f64 = 0.05;

/// Shapes what is received with `shape` on an intermediate device; failing that, polices it; failing that, says so.
pub(super) fn add(inputs: &Inputs<'_>, plan: &mut Plan, rate: BitRate, shape: impl Fn(&mut Builder<'_>)) {
    let margin = margin(inputs, rate);
    if margin > 0.0 {
        plan.notes.push(format!(
            "What is received is held {:.1} % below its rate: on so slow a line a sender's growing window would else keep the \
             modem's own queue filled.",
            margin * 100.0
        ));
    }
    let rate = rate * (1.0 - margin);
    let capabilities = inputs.capabilities;
    let Some(filter) = everything(capabilities) else {
        uncontrolled(plan, &[capabilities.lacks(U32), capabilities.lacks(MATCHALL)]);
        return;
    };
    let lacks = |features: &[Feature]| features.iter().map(|feature| capabilities.lacks(*feature)).collect::<Vec<_>>();
    let redirect = lacks(&[INGRESS, Feature::Action("mirred"), Feature::IntermediateDevice]);
    if redirect.iter().all(Option::is_none) {
        redirected(inputs, plan, rate, filter, shape);
        return;
    }
    let police = lacks(&[INGRESS, Feature::Action("police")]);
    if police.iter().all(Option::is_none) {
        let why: Vec<_> = redirect.into_iter().flatten().collect();
        plan.notes.push(format!("What is received is policed, not shaped: {}.", why.join(", ")));
        policed(inputs, plan, rate, filter);
        return;
    }
    uncontrolled(plan, &[redirect, police].concat());
}

fn uncontrolled(plan: &mut Plan, lacking: &[Option<String>]) {
    let mut why: Vec<_> = lacking.iter().flatten().cloned().collect();
    why.dedup();
    let why = why.join(", ");
    plan.notes.push(format!("What is received is not controlled: {why}."));
    plan.receiving = Receiving::Uncontrolled(why);
}

fn redirected(
    inputs: &Inputs<'_>,
    plan: &mut Plan,
    rate: BitRate,
    (kind, all): (&'static str, &str),
    shape: impl Fn(&mut Builder<'_>),
) {
    let name = intermediate_device(&inputs.device.name);
    let mut builder = Builder::new(inputs, Direction::Down, &name, rate);
    builder.make_device("packets that come in can be queued only where they go out again: on a device in between");
    shape(&mut builder);
    builder.set_up_device("packets sent to a device that is down are dropped");
    builder.finish(plan);

    let mut builder = Builder::new(inputs, Direction::Down, &inputs.device.name, rate);
    hook(&mut builder);
    builder.filter(
        Parent::Ingress,
        (Protocol::All, 10),
        (kind, &format!("{all} action mirred egress redirect dev {name}")),
        Some(Goal::Redirect(name.clone())),
        "everything, IPv4 and IPv6 alike; last, so that the way is ready before a packet takes it",
    );
    builder.finish(plan);
    plan.intermediate = Some(name);
    plan.receiving = Receiving::Redirected;
}

fn hook(builder: &mut Builder<'_>) {
    let place = (Parent::Ingress, Handle::INGRESS);
    builder.discipline(place, "ingress", None, "", "the hook on which filters see received packets");
}

/// A bucket of 20 ms, or six full packets: LARTC's 10 kB dropped half of what 20 Mbit/s could carry.
fn bucket(inputs: &Inputs<'_>, rate: BitRate) -> ByteCount {
    (inputs.full_packet() * 6).max(rate * Duration::from_millis(20))
}

fn policed(inputs: &Inputs<'_>, plan: &mut Plan, rate: BitRate, (kind, all): (&'static str, &str)) {
    let mut builder = Builder::new(inputs, Direction::Down, &inputs.device.name, rate);
    hook(&mut builder);
    let layer = inputs.line.layer;
    let held = sizes::whole(sizes::without_ptm(layer, rate));
    let bucket = bucket(inputs, held);
    // At this hook the kernel counts IP packets without a header below.
    let counted = sizes::layer_words(layer, ByteCount::ZERO);
    let words =
        format!("{all} action police rate {} burst {} mtu 65535{counted} drop", sizes::rate_word(held), bucket.get());
    builder.filter(
        Parent::Ingress,
        (Protocol::All, 10),
        (kind, &words),
        Some(Goal::Police),
        "dropped above the rate, IPv4 and IPv6 alike: senders slow down, at the price of what they send again",
    );
    let drained = rate.time_to_send(bucket).unwrap_or_default();
    for importance in [Importance::Interactive, Importance::Default] {
        // The bucket's content may stand in the queue before the line's own end.
        builder.predict(importance, drained / 2, drained);
    }
    builder.finish(plan);
    plan.receiving = Receiving::Policed;
    if plan.offloads.iter().all(|offload| offload.feature != "gro") {
        offloads(plan, inputs, rate, &RECEIVING);
    }
}
