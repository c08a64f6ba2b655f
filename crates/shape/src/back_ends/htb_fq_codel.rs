//! HTB with `fq_codel` leaves.

use core::time::Duration;
use linerate_model::direction::Direction;

use linerate_units::BitRate;

use super::builder::{DirectionBuilder, OWN_PACKETS};
use super::htb_tree::{self, LeafQueue};
use super::{BackEnd, BackEndId, PlanInputs, builder, sizes};
use crate::capability::KernelFeature;
use crate::plan::ShaperPlan;

pub(super) static BACK_END: BackEnd = BackEnd {
    id: BackEndId::HtbFqCodel,
    title: "HTB with five classes, each with short per-flow queues",
    explanation: "HTB shapes to the rate and lets interactive traffic pass at once, up to a third of it, and other \
                  datagrams up to a quarter; beyond that TCP and UDP take turns. In each class fq_codel keeps a queue \
                  for each flow, prioritises sparse flows, and drops or marks early in those that fill the link. It \
                  needs less processor time than CAKE, and delays interactive packets less on slow links.",
    citation: "RFC 8290 (fq_codel); sqm-scripts, simple.qos; man tc-htb, tc-fq_codel",
    needs: &[KernelFeature::Discipline("htb"), KernelFeature::Discipline("fq_codel")],
    unsuitable: |_| None,
    automatic: true,
    remedy: "htb+sfq and htb+bfifo need less of the kernel",
    make,
};

/// Rate in bit/s below which packets are dropped instead of marked, as a marked packet still occupies the link
/// (bufferbloat.net's recommendation for uplinks).
const MIN_ECN_RATE: f64 = 4e6;

pub(super) static LEAF: LeafQueue = LeafQueue {
    kind: "fq_codel",
    reason: "a queue for each flow, kept short by CoDel: a flow that fills the link delays only itself",
    options,
    own_queue,
};

/// `CoDel` target. Received packets have crossed the link already, and with the usual target four flows at 10 Mbit/s run
/// their windows dry before the next round trip (in the lab 97.6 % of the rate instead of 100): twice the target there,
/// which only delays the flow that fills its queue.
fn codel_target(inputs: &PlanInputs<'_>, rate: BitRate, direction: Direction) -> Duration {
    if let Some(target) = *inputs.policy.queues.target.of(direction) {
        return target;
    }
    let least = if direction == Direction::Down { *inputs.line.round_trip.of(direction) / 10 } else { Duration::ZERO };
    sizes::target(inputs, rate, direction, least)
}

fn options(inputs: &PlanInputs<'_>, rate: BitRate, direction: Direction) -> String {
    let target = codel_target(inputs, rate, direction);
    let own = inputs.policy.queues.qdisc.of(direction);
    let slow = direction == Direction::Up && rate.bits_per_second() < MIN_ECN_RATE;
    format!(
        "limit {} flows {} quantum {} target {} interval {} {}{}",
        own.limit.unwrap_or_else(|| sizes::packets(rate)),
        own.flows.unwrap_or(1024),
        own.quantum.map_or_else(|| sizes::flow_quantum(inputs, rate).get(), u64::from),
        sizes::time_argument(target),
        sizes::time_argument(own.interval.unwrap_or_else(|| sizes::interval(inputs, direction, target))),
        if inputs.policy.queues.ecn.of(direction).unwrap_or(!slow) { "ecn" } else { "noecn" },
        sizes::further_options(inputs, direction),
    )
}

fn own_queue(builder: &DirectionBuilder<'_>) -> Duration {
    builder.own_queue(OWN_PACKETS, codel_target(builder.inputs, builder.rate, builder.direction))
}

fn make(inputs: &PlanInputs<'_>, plan: ShaperPlan) -> ShaperPlan {
    builder::shape_both_directions(inputs, plan, false, |builder| {
        htb_tree::shape(builder, &LEAF);
    })
}
