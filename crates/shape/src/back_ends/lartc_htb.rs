//! LARTC script of 2002 with HTB, unchanged.

use core::time::Duration;
use linerate_model::direction::Direction;

use linerate_units::BitRate;

use super::builder::{DirectionBuilder, OWN_PACKETS};
use super::classify::ROOT;
use super::htb_tree::{LINK_CLASS, tier_class};
use super::{BackEnd, BackEndId, PlanInputs};
use crate::capability::KernelFeature;
use crate::plan::{
    FilterProtocol, FilterTarget, IngressControl, PlannedClass, QdiscHandle, ShaperPlan, TcParent, arguments,
};
use crate::policy::TrafficImportance;
use crate::prediction::ShaperTurn;

pub(super) static BACK_END: BackEnd = BackEnd {
    id: BackEndId::LartcHtb,
    title: "the LARTC conditioner of 2002 with HTB, unchanged",
    explanation: "The original script, for comparison: two classes with SFQ, IPv4's minimise-delay, ICMP and short \
                  acknowledgements first, and a policer with a bucket of 10 kB. It does not know IPv6, lets 6 kB pass at \
                  once, and wastes what its policer drops. htb+sfq is the same idea without these flaws.",
    citation: "LARTC howto §15.8.3, 'The ultimate traffic conditioner', HTB version",
    needs: &[
        KernelFeature::Discipline("htb"),
        KernelFeature::Discipline("sfq"),
        KernelFeature::Discipline("ingress"),
        KernelFeature::Filter("u32"),
        KernelFeature::Action("police"),
    ],
    unsuitable: |_| None,
    automatic: false,
    remedy: "htb+sfq and htb+bfifo are its successors",
    make,
};

/// Converts to whole kbit/s, as the script counts.
pub(super) fn kilobits(rate: BitRate) -> u64 {
    rate.whole_bits_per_second() / 1000
}

pub(super) fn from_kilobits(kilobits: u64) -> BitRate {
    BitRate::from_bits_per_second(linerate_units::ByteCount::new(kilobits).as_f64() * 1000.0)
}

const INTERACTIVE: QdiscHandle = tier_class(TrafficImportance::Interactive);
const BULK: QdiscHandle = tier_class(TrafficImportance::Default);

fn class(
    builder: &mut DirectionBuilder<'_>,
    (parent, handle): (QdiscHandle, QdiscHandle),
    kilobits: u64,
    (importance, priority): (Option<TrafficImportance>, &str),
    reason: &str,
) {
    let options = arguments(&format!("rate {kilobits}kbit burst 6k {priority}"));
    let device = builder.device.clone();
    let rate = from_kilobits(kilobits);
    let class = PlannedClass {
        device,
        parent,
        handle,
        kind: "htb",
        rate,
        ceiling: None,
        importance,
        traffic_class: None,
        options,
    };
    builder.class(class, reason);
}

/// Adds both leaves of both versions.
pub(super) fn leaves(builder: &mut DirectionBuilder<'_>) {
    for class in [INTERACTIVE, BULK] {
        let place = (TcParent::At(class), QdiscHandle::discipline(class.minor));
        builder.discipline(place, "sfq", None, "perturb 10", "flows take turns");
    }
}

/// Adds the filters for the interactive class, with these `prio` numbers.
pub(super) fn filters(builder: &mut DirectionBuilder<'_>, preferences: [u16; 3]) {
    let matches = [
        ("match ip tos 0x10 0xff", "minimise-delay: ssh, not scp"),
        ("match ip protocol 1 0xff", "ICMP, 'to impress our friends'"),
        (
            "match ip protocol 6 0xff match u8 0x05 0x0f at 0 match u16 0x0000 0xffc0 at 2 match u8 0x10 0xff at 33",
            "acknowledgements shorter than 64 bytes, so that uploads do not slow downloads",
        ),
    ];
    for ((selector, reason), preference) in matches.into_iter().zip(preferences) {
        let options = format!("{selector} flowid {INTERACTIVE}");
        let place = (FilterProtocol::Ipv4, preference);
        builder.filter(TcParent::At(ROOT), place, ("u32", &options), Some(FilterTarget::Class(INTERACTIVE)), reason);
    }
}

/// Adds the prediction of both versions: 6 kB may pass at once into the modem's queue.
pub(super) fn predict(builder: &mut DirectionBuilder<'_>, burst: u64) {
    let at_once = builder.rate.time_to_send(linerate_units::ByteCount::new(burst)).unwrap_or_default();
    let packet = builder.packet_time();
    let own = builder.own_queue(OWN_PACKETS, Duration::ZERO) + at_once;
    // Two packets leave together.
    builder.predict(TrafficImportance::Interactive, (ShaperTurn::Next, packet / 4), own);
    builder.predict(TrafficImportance::Default, (ShaperTurn::Next, packet / 2), own);
}

/// Adds the policer of both versions.
pub(super) fn police(inputs: &PlanInputs<'_>, plan: &mut ShaperPlan, rate: BitRate) {
    let mut builder = DirectionBuilder::new(inputs, Direction::Down, &inputs.device.name, rate);
    let place = (TcParent::Ingress, QdiscHandle::INGRESS);
    builder.discipline(place, "ingress", None, "", "the hook on which filters see received packets");
    let words = format!("match ip src 0.0.0.0/0 police rate {}kbit burst 10k drop flowid :1", kilobits(rate));
    builder.filter(
        TcParent::Ingress,
        (FilterProtocol::Ipv4, 50),
        ("u32", &words),
        Some(FilterTarget::Police),
        "packets above the rate are dropped; IPv4 only",
    );
    let queue = builder.packet_time();
    for importance in [TrafficImportance::Interactive, TrafficImportance::Default] {
        // There is no queue but that at the link's far end, for what the bucket passes at once.
        builder.predict(importance, (ShaperTurn::AtOnce, queue), queue * 2);
    }
    builder.finish(plan);
    plan.receiving = IngressControl::Policed;
}

pub(super) const NOTE: &str = "The original, for comparison: IPv6 is neither sorted nor policed.";

fn make(inputs: &PlanInputs<'_>, mut plan: ShaperPlan) -> ShaperPlan {
    if let Some(rate) = inputs.line.up {
        let mut builder = DirectionBuilder::new(inputs, Direction::Up, &inputs.device.name, rate);
        let up = kilobits(rate);
        builder.discipline((TcParent::Root, ROOT), "htb", None, "default 20", "unclassified packets go to 1:20");
        class(
            &mut builder,
            (ROOT, LINK_CLASS),
            up,
            (None, ""),
            "the link, so that the queue is here and not in the modem",
        );
        let first = (Some(TrafficImportance::Interactive), "prio 1");
        class(&mut builder, (LINK_CLASS, INTERACTIVE), up, first, "the high-priority class");
        let second = (Some(TrafficImportance::Default), "prio 2");
        class(
            &mut builder,
            (LINK_CLASS, BULK),
            9 * up / 10,
            second,
            "bulk and all other traffic: slightly less, and later",
        );
        leaves(&mut builder);
        filters(&mut builder, [10; 3]);
        predict(&mut builder, 6 * 1024);
        builder.finish(&mut plan);
    }
    if let Some(rate) = inputs.line.down {
        police(inputs, &mut plan, rate);
    }
    plan.notes.push(NOTE.to_owned());
    plan
}
