//! The LARTC script of 2002 with CBQ, as it stands, for kernels that still have it.

use linerate_units::BitRate;

use super::builder::Builder;
use super::classify::ROOT;
use super::hierarchy::{LINE, tier};
use super::lartc_htb::{NOTE, filters, kilobits, leaves, of_kilobits, police, predict};
use super::{BackEnd, Inputs};
use crate::capability::Feature;
use crate::link::Direction;
use crate::plan::{Class, Goal, Handle, Parent, Plan, Protocol, words};
use crate::policy::Importance;

pub(super) static BACK_END: BackEnd = BackEnd {
    id: "lartc-cbq",
    title: "the LARTC conditioner of 2002 with CBQ, unchanged, for kernels that have it",
    explanation: "The original for kernels without HTB. CBQ left Linux in 6.3, and the stable kernels with 6.1.80, 5.15.150 \
                  and 5.10.211: there it is refused, and lartc-htb and htb+sfq do the same. A script for an old kernel can \
                  be printed anywhere.",
    citation: "LARTC howto §15.8.2, CBQ version; Linux commit 051d44209842 (CBQ removed)",
    needs: &[
        Feature::Discipline("cbq"),
        Feature::Discipline("sfq"),
        Feature::Discipline("ingress"),
        Feature::Filter("u32"),
        Feature::Action("police"),
    ],
    unsuitable: |_| None,
    automatic: false,
    way_out: "CBQ left Linux in 6.3, 6.1.80, 5.15.150 and 5.10.211; take lartc-htb, or htb+sfq, which corrects it",
    make,
};

const INTERACTIVE: Handle = tier(Importance::Interactive);
const BULK: Handle = tier(Importance::Default);

fn class(
    builder: &mut Builder<'_>,
    (parent, handle): (Handle, Handle),
    kilobits: u64,
    (importance, rest): (Option<Importance>, &str),
    reason: &str,
) {
    let options = words(&format!("rate {kilobits}kbit {rest}"));
    let device = builder.device.clone();
    let rate: BitRate = of_kilobits(kilobits);
    builder.class(Class { device, parent, handle, kind: "cbq", rate, ceiling: None, importance, options }, reason);
}

fn make(inputs: &Inputs<'_>, mut plan: Plan) -> Plan {
    if let Some(rate) = inputs.line.up {
        let mut builder = Builder::new(inputs, Direction::Up, &inputs.device.name, rate);
        let up = kilobits(rate);
        let place = (Parent::Root, ROOT);
        builder.discipline(place, "cbq", None, "avpkt 1000 bandwidth 10mbit", "CBQ reckons from the device's own rate");
        let line = (None, "allot 1500 prio 5 bounded isolated");
        class(&mut builder, (ROOT, LINE), up, line, "the line, so that the queue is here and not in the modem");
        let first = (Some(Importance::Interactive), "allot 1600 prio 1 avpkt 1000");
        class(&mut builder, (LINE, INTERACTIVE), up, first, "the class of high priority");
        let second = (Some(Importance::Default), "allot 1600 prio 2 avpkt 1000");
        class(&mut builder, (LINE, BULK), 9 * up / 10, second, "bulk and the rest: slightly less, and later");
        leaves(&mut builder);
        filters(&mut builder, [10, 11, 12]);
        let rest = format!("match ip dst 0.0.0.0/0 flowid {BULK}");
        let goal = Some(Goal::Class(BULK));
        builder.filter(Parent::At(ROOT), (Protocol::Ipv4, 13), ("u32", &rest), goal, "the rest is 'not interactive'");
        predict(&mut builder, 1000);
        builder.finish(&mut plan);
    }
    if let Some(rate) = inputs.line.down {
        police(inputs, &mut plan, rate);
    }
    plan.notes.push(NOTE.to_owned());
    plan
}
