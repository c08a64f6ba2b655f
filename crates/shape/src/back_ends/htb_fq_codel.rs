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
    title: "HTB in four classes, each with a queue per flow that is kept short",
    explanation: "HTB holds the rate and lets what somebody waits for pass at once, up to a third of it. In each class \
                  fq_codel keeps a queue for each flow, lets flows that send little pass, and drops or marks early in those \
                  that fill the line. Lighter on the processor than CAKE, and shorter for interactive packets on slow \
                  lines.",
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

/// The delay that is aimed at. What is received has been on the line already, and with the usual target for four flows
/// at 10 Mbit/s the sender's window runs dry before the next round trip (in the lab 97.6 % of the rate instead of 100):
/// twice of it there, which only the flow that fills its queue feels.
fn aim(inputs: &Inputs<'_>, rate: BitRate, direction: Direction) -> Duration {
    let least = if direction == Direction::Down { inputs.line.round_trip / 10 } else { Duration::ZERO };
    sizes::target(inputs, rate, least)
}

fn options(inputs: &Inputs<'_>, rate: BitRate, direction: Direction) -> String {
    let target = aim(inputs, rate, direction);
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

/// Flows that send little go before those that have a queue. Of both directions the longer.
fn delays(inputs: &Inputs<'_>, rate: BitRate) -> (Duration, Duration) {
    (Duration::ZERO, aim(inputs, rate, Direction::Down))
}

fn make(inputs: &Inputs<'_>, plan: Plan) -> Plan {
    builder::both(inputs, plan, false, |builder| {
        hierarchy::shape(builder, &LEAF);
    })
}
