//! HTB with `fq_pie` leaves.

use core::time::Duration;

use linerate_units::BitRate;

use super::hierarchy::{self, Leaf};
use super::{BackEnd, Inputs, builder, sizes};
use crate::capability::Feature;
use crate::link::Direction;
use crate::plan::Plan;

pub(super) static BACK_END: BackEnd = BackEnd {
    id: "htb+fq_pie",
    title: "HTB in four classes, each with a queue per flow that PIE keeps short",
    explanation: "As htb+fq_codel, with PIE instead of CoDel in each flow's queue. PIE aims at 15 ms instead of 5 and \
                  answers more slowly; it is taken where fq_codel is missing. Linux has it since 5.6.",
    citation: "RFC 8033 (PIE); man tc-fq_pie",
    needs: &[Feature::Discipline("htb"), Feature::Discipline("fq_pie")],
    unsuitable: |_| None,
    automatic: true,
    way_out: "htb+sfq and htb+bfifo need less of the kernel",
    make,
};

/// PIE's own (RFC 8033 §4).
const TARGET: Duration = Duration::from_millis(15);

static LEAF: Leaf = Leaf {
    kind: "fq_pie",
    reason: "a queue for each flow, kept short by PIE: a flow that fills the line waits for itself only",
    options,
    delays,
};

fn options(inputs: &Inputs<'_>, rate: BitRate, _direction: Direction) -> String {
    let target = sizes::target(inputs, rate, TARGET);
    let (packets, quantum) = (sizes::packets(rate), sizes::flow_quantum(inputs, rate).get());
    format!("limit {packets} flows 1024 quantum {quantum} target {} tupdate 15000us", sizes::time_word(target))
}

fn delays(inputs: &Inputs<'_>, rate: BitRate) -> (Duration, Duration) {
    (Duration::ZERO, sizes::target(inputs, rate, TARGET))
}

fn make(inputs: &Inputs<'_>, plan: Plan) -> Plan {
    builder::both(inputs, plan, false, |builder| {
        hierarchy::shape(builder, &LEAF);
    })
}
