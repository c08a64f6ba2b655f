//! The LARTC script of 2002 with HTB, as it stands.

use core::time::Duration;

use linerate_units::BitRate;

use super::builder::Builder;
use super::classify::ROOT;
use super::hierarchy::{LINE, tier};
use super::{BackEnd, Inputs};
use crate::capability::Feature;
use crate::link::Direction;
use crate::plan::{Class, Goal, Handle, Parent, Plan, Protocol, Receiving, words};
use crate::policy::Importance;

pub(super) static BACK_END: BackEnd = BackEnd {
    id: "lartc-htb",
    title: "the LARTC conditioner of 2002 with HTB, unchanged",
    explanation: "The original script, for comparison: two classes with SFQ, IPv4's minimise-delay, ICMP and short \
                  acknowledgements first, and a policer with a bucket of 10 kB. It does not know IPv6, lets 6 kB pass at \
                  once, and wastes what its policer drops. htb+sfq is the same idea without these flaws.",
    citation: "LARTC howto §15.8.3, 'The ultimate traffic conditioner', HTB version",
    needs: &[
        Feature::Discipline("htb"),
        Feature::Discipline("sfq"),
        Feature::Discipline("ingress"),
        Feature::Filter("u32"),
        Feature::Action("police"),
    ],
    unsuitable: |_| None,
    automatic: false,
    way_out: "htb+sfq and htb+bfifo are its successors",
    make,
};

/// The script reckons in whole kbit/s.
pub(super) fn kilobits(rate: BitRate) -> u64 {
    rate.whole_bits_per_second() / 1000
}

pub(super) fn of_kilobits(kilobits: u64) -> BitRate {
    BitRate::from_bits_per_second(linerate_units::ByteCount::new(kilobits).as_f64() * 1000.0)
}

const INTERACTIVE: Handle = tier(Importance::Interactive);
const BULK: Handle = tier(Importance::Default);

fn class(
    builder: &mut Builder<'_>,
    (parent, handle): (Handle, Handle),
    kilobits: u64,
    (importance, priority): (Option<Importance>, &str),
    reason: &str,
) {
    let options = words(&format!("rate {kilobits}kbit burst 6k {priority}"));
    let device = builder.device.clone();
    let rate = of_kilobits(kilobits);
    builder.class(Class { device, parent, handle, kind: "htb", rate, ceiling: None, importance, options }, reason);
}

/// Both leaves of both versions.
pub(super) fn leaves(builder: &mut Builder<'_>) {
    for class in [INTERACTIVE, BULK] {
        let place = (Parent::At(class), Handle::discipline(class.minor));
        builder.discipline(place, "sfq", None, "perturb 10", "flows take turns");
    }
}

/// The filters for the interactive class, with these numbers for `prio`.
pub(super) fn filters(builder: &mut Builder<'_>, preferences: [u16; 3]) {
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
        let place = (Protocol::Ipv4, preference);
        builder.filter(Parent::At(ROOT), place, ("u32", &options), Some(Goal::Class(INTERACTIVE)), reason);
    }
}

/// What both versions predict: 6 kB may pass at once into the modem's queue.
pub(super) fn predict(builder: &mut Builder<'_>, burst: u64) {
    let at_once = builder.rate.time_to_send(linerate_units::ByteCount::new(burst)).unwrap_or_default();
    let packet = builder.packet_time();
    builder.predict(Importance::Interactive, at_once.saturating_sub(packet) / 2, packet.saturating_mul(127));
    builder.predict(Importance::Default, at_once, packet.saturating_mul(127));
}

/// The policer of both versions.
pub(super) fn police(inputs: &Inputs<'_>, plan: &mut Plan, rate: BitRate) {
    let mut builder = Builder::new(inputs, Direction::Down, &inputs.device.name, rate);
    let place = (Parent::Ingress, Handle::INGRESS);
    builder.discipline(place, "ingress", None, "", "the hook on which filters see received packets");
    let words = format!("match ip src 0.0.0.0/0 police rate {}kbit burst 10k drop flowid :1", kilobits(rate));
    builder.filter(
        Parent::Ingress,
        (Protocol::Ipv4, 50),
        ("u32", &words),
        Some(Goal::Police),
        "what comes in too fast is dropped; IPv4 only",
    );
    builder.predict(Importance::Interactive, Duration::ZERO, Duration::ZERO);
    builder.predict(Importance::Default, Duration::ZERO, Duration::ZERO);
    builder.finish(plan);
    plan.receiving = Receiving::Policed;
}

pub(super) const NOTE: &str = "The original, for comparison: IPv6 is neither sorted nor policed.";

fn make(inputs: &Inputs<'_>, mut plan: Plan) -> Plan {
    if let Some(rate) = inputs.line.up {
        let mut builder = Builder::new(inputs, Direction::Up, &inputs.device.name, rate);
        let up = kilobits(rate);
        builder.discipline((Parent::Root, ROOT), "htb", None, "default 20", "what no filter sorts goes to 1:20");
        class(&mut builder, (ROOT, LINE), up, (None, ""), "the line, so that the queue is here and not in the modem");
        let first = (Some(Importance::Interactive), "prio 1");
        class(&mut builder, (LINE, INTERACTIVE), up, first, "the class of high priority");
        let second = (Some(Importance::Default), "prio 2");
        class(&mut builder, (LINE, BULK), 9 * up / 10, second, "bulk and the rest: slightly less, and later");
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
