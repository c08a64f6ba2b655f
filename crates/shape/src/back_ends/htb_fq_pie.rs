//! HTB with `fq_pie` leaves.

use core::time::Duration;
use linerate_model::direction::Direction;

use linerate_units::BitRate;

use super::builder::{DirectionBuilder, OWN_PACKETS};
use super::htb_tree::{self, LeafQueue};
use super::{BackEnd, BackEndId, PlanInputs, builder, sizes};
use crate::capability::KernelFeature;
use crate::plan::ShaperPlan;

pub(super) static BACK_END: BackEnd = BackEnd {
    id: BackEndId::HtbFqPie,
    title: "HTB with five classes, each with per-flow queues kept short by PIE",
    explanation: "As htb+fq_codel, with PIE instead of CoDel in each flow's queue. PIE's target is 15 ms instead of 5, \
                  and it reacts more slowly; chosen where fq_codel is missing. Linux has it since 5.6.",
    citation: "RFC 8033 (PIE); man tc-fq_pie",
    needs: &[KernelFeature::Discipline("htb"), KernelFeature::Discipline("fq_pie")],
    unsuitable: |_| None,
    automatic: true,
    remedy: "htb+sfq and htb+bfifo need less of the kernel",
    make,
};

/// PIE's default target (RFC 8033 §4).
const TARGET: Duration = Duration::from_millis(15);

static LEAF: LeafQueue = LeafQueue {
    kind: "fq_pie",
    reason: "a queue for each flow, kept short by PIE: a flow that fills the link delays only itself",
    options,
    own_queue,
};

fn options(inputs: &PlanInputs<'_>, rate: BitRate, direction: Direction) -> String {
    let target = sizes::controlled_target(inputs, rate, direction, TARGET);
    // The kernel's default is to drop.
    let ecn = match inputs.policy.queues.ecn.of(direction) {
        Some(true) => " ecn",
        Some(false) => " noecn",
        None => "",
    };
    let own = inputs.policy.queues.qdisc.of(direction);
    let (packets, flows) = (own.limit.unwrap_or_else(|| sizes::packets(rate)), own.flows.unwrap_or(1024));
    let quantum = own.quantum.map_or_else(|| sizes::flow_quantum(inputs, rate).get(), u64::from);
    let (target, more) = (sizes::time_argument(target), sizes::further_options(inputs, direction));
    format!("limit {packets} flows {flows} quantum {quantum} target {target} tupdate 15000us{ecn}{more}")
}

fn own_queue(builder: &DirectionBuilder<'_>) -> Duration {
    builder.own_queue(OWN_PACKETS, sizes::controlled_target(builder.inputs, builder.rate, builder.direction, TARGET))
}

fn make(inputs: &PlanInputs<'_>, plan: ShaperPlan) -> ShaperPlan {
    builder::shape_both_directions(inputs, plan, false, |builder| {
        htb_tree::shape(builder, &LEAF);
    })
}
