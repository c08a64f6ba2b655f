//! LARTC script of 2002 with CBQ, unchanged, for kernels that still have it.

use linerate_model::direction::Direction;
use linerate_units::BitRate;

use super::builder::DirectionBuilder;
use super::classify::ROOT;
use super::htb_tree::{LINK_CLASS, tier_class};
use super::lartc_htb::{NOTE, filters, from_kilobits, kilobits, leaves, police, predict};
use super::{BackEnd, BackEndId, PlanInputs};
use crate::capability::KernelFeature;
use crate::plan::{FilterProtocol, FilterTarget, PlannedClass, QdiscHandle, ShaperPlan, TcParent, arguments};
use crate::policy::TrafficImportance;

pub(super) static BACK_END: BackEnd = BackEnd {
    id: BackEndId::LartcCbq,
    title: "the LARTC conditioner of 2002 with CBQ, unchanged, for kernels that have it",
    explanation: "The original for kernels without HTB. CBQ left Linux in 6.3, and the stable kernels with 6.1.80, \
                  5.15.150 and 5.10.211: there it is refused; use lartc-htb or htb+sfq instead. A script for an old \
                  kernel can be printed anywhere.",
    citation: "LARTC howto §15.8.2, CBQ version; Linux commit 051d44209842 (CBQ removed)",
    needs: &[
        KernelFeature::Discipline("cbq"),
        KernelFeature::Discipline("sfq"),
        KernelFeature::Discipline("ingress"),
        KernelFeature::Filter("u32"),
        KernelFeature::Action("police"),
    ],
    unsuitable: |_| None,
    automatic: false,
    remedy: "CBQ left Linux in 6.3, 6.1.80, 5.15.150 and 5.10.211; use lartc-htb, or htb+sfq, which corrects it",
    make,
};

const INTERACTIVE: QdiscHandle = tier_class(TrafficImportance::Interactive);
const BULK: QdiscHandle = tier_class(TrafficImportance::Default);

fn class(
    builder: &mut DirectionBuilder<'_>,
    (parent, handle): (QdiscHandle, QdiscHandle),
    kilobits: u64,
    (importance, rest): (Option<TrafficImportance>, &str),
    reason: &str,
) {
    let options = arguments(&format!("rate {kilobits}kbit {rest}"));
    let device = builder.device.clone();
    let rate: BitRate = from_kilobits(kilobits);
    let class = PlannedClass {
        device,
        parent,
        handle,
        kind: "cbq",
        rate,
        ceiling: None,
        importance,
        traffic_class: None,
        options,
    };
    builder.class(class, reason);
}

fn make(inputs: &PlanInputs<'_>, mut plan: ShaperPlan) -> ShaperPlan {
    if let Some(rate) = inputs.line.up {
        let mut builder = DirectionBuilder::new(inputs, Direction::Up, &inputs.device.name, rate);
        let up = kilobits(rate);
        let place = (TcParent::Root, ROOT);
        builder.discipline(
            place,
            "cbq",
            None,
            "avpkt 1000 bandwidth 10mbit",
            "CBQ computes from the device's own rate",
        );
        let line = (None, "allot 1500 prio 5 bounded isolated");
        class(&mut builder, (ROOT, LINK_CLASS), up, line, "the link, so that the queue is here and not in the modem");
        let first = (Some(TrafficImportance::Interactive), "allot 1600 prio 1 avpkt 1000");
        class(&mut builder, (LINK_CLASS, INTERACTIVE), up, first, "the high-priority class");
        let second = (Some(TrafficImportance::Default), "allot 1600 prio 2 avpkt 1000");
        class(
            &mut builder,
            (LINK_CLASS, BULK),
            9 * up / 10,
            second,
            "bulk and all other traffic: slightly less, and later",
        );
        leaves(&mut builder);
        filters(&mut builder, [10, 11, 12]);
        let rest = format!("match ip dst 0.0.0.0/0 flowid {BULK}");
        let goal = Some(FilterTarget::Class(BULK));
        builder.filter(
            TcParent::At(ROOT),
            (FilterProtocol::Ipv4, 13),
            ("u32", &rest),
            goal,
            "all other traffic is 'not interactive'",
        );
        predict(&mut builder, 1000);
        builder.finish(&mut plan);
    }
    if let Some(rate) = inputs.line.down {
        police(inputs, &mut plan, rate);
    }
    plan.notes.push(NOTE.to_owned());
    plan
}
