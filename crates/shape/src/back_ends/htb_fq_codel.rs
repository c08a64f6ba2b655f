//! HTB with `fq_codel` leaves.

use core::time::Duration;

use linerate_units::BitRate;

use super::hierarchy::{self, Leaf};
use super::{BackEnd, Inputs, builder, sizes};
use crate::capability::Feature;
use crate::link::Direction;
use crate::plan::Plan;

pub(super) static BACK_END: BackEnd = BackEnd {
    id: "htb+fq_codel",
    title: "HTB in three classes, each with a queue per flow that is kept short",
    explanation: "HTB holds the rate and guarantees a third to what somebody waits for. In each class fq_codel keeps a queue \
                  for each flow, lets flows that send little pass, and drops or marks early in those that fill the line. \
                  Lighter on the processor than CAKE. What is received has one class: the queues tell flows apart.",
    citation: "RFC 8290 (fq_codel); sqm-scripts, simple.qos; man tc-htb, tc-fq_codel",
    needs: &[Feature::Discipline("htb"), Feature::Discipline("fq_codel")],
    unsuitable: |_| None,
    automatic: true,
    way_out: "htb+sfq and htb+bfifo need less of the kernel",
    make,
};

/// Below this a mark instead of a drop leaves the packet's own time on the line (bufferbloat.net's recommendation for
/// uplinks).
const DROPS_BELOW: f64 = 4e6;

pub(super) static LEAF: Leaf = Leaf {
    kind: "fq_codel",
    reason: "a queue for each flow, kept short by CoDel: a flow that fills the line waits for itself only",
    options,
    delays,
};

fn options(inputs: &Inputs<'_>, rate: BitRate, direction: Direction) -> String {
    let target = sizes::target(inputs, rate, Duration::ZERO);
    let slow = direction == Direction::Up && rate.bits_per_second() < DROPS_BELOW;
    format!(
        "limit {} flows 1024 quantum {} target {} interval {} {}",
        sizes::packets(rate),
        sizes::flow_quantum(inputs, rate).get(),
        sizes::time_word(target),
        sizes::time_word(sizes::interval(inputs, target)),
        if slow { "noecn" } else { "ecn" },
    )
}

/// Flows that send little go before those that have a queue.
fn delays(inputs: &Inputs<'_>, rate: BitRate) -> (Duration, Duration) {
    (Duration::ZERO, sizes::target(inputs, rate, Duration::ZERO))
}

fn make(inputs: &Inputs<'_>, plan: Plan) -> Plan {
    builder::both(inputs, plan, false, |builder| {
        hierarchy::shape(builder, &LEAF);
    })
}
