//! HTB with `sfq` leaves: a modern version of the LARTC script.

use core::time::Duration;
use linerate_model::direction::Direction;

use linerate_units::BitRate;

use super::builder::{DirectionBuilder, OWN_PACKETS};
use super::htb_tree::{self, LeafQueue};
use super::{BackEnd, BackEndId, PlanInputs, builder, sizes};
use crate::capability::KernelFeature;
use crate::plan::ShaperPlan;

pub(super) static BACK_END: BackEnd = BackEnd {
    id: BackEndId::HtbSfq,
    title: "HTB with five classes and SFQ leaves: the LARTC conditioner, corrected",
    explanation: "LARTC's tree without its flaws: IPv6 like IPv4; acknowledgements detected by their empty payload \
                  instead of a length below 64; codepoints compared without the ECN bits; guarantees that add up to \
                  the link's rate instead of a ladder that wastes a tenth; buckets of one packet instead of 6 kB, \
                  which are 220 ms of an uplink of 220 kbit/s; SFQ cut to 20 ms; received packets are shaped, not \
                  policed.",
    citation: "LARTC howto §15.8; man tc-htb, tc-sfq; bufferbloat.net, 'Wondershaper must die'",
    needs: &[KernelFeature::Discipline("htb"), KernelFeature::Discipline("sfq")],
    unsuitable: |_| None,
    automatic: true,
    remedy: "htb+bfifo needs less of the kernel",
    make,
};

static LEAF: LeafQueue = LeafQueue {
    kind: "sfq",
    reason: "flows take turns; perturbed every 10 s, so that flows that share a slot separate again",
    options,
    own_queue,
};

/// Minimum SFQ limit in packets, for several flows, and maximum: 128 flows of 127 packets.
const MIN_PACKETS: f64 = 16.0;
const MAX_PACKETS: f64 = 127.0 * 128.0;

fn packets(inputs: &PlanInputs<'_>, rate: BitRate, direction: Direction) -> f64 {
    if let Some(limit) = inputs.policy.queues.qdisc.of(direction).limit {
        return f64::from(limit);
    }
    let standing = rate * sizes::MAX_QUEUE_DELAY;
    (standing.as_f64() / inputs.full_frame().as_f64()).ceil().clamp(MIN_PACKETS, MAX_PACKETS)
}

fn options(inputs: &PlanInputs<'_>, rate: BitRate, direction: Direction) -> String {
    let own = inputs.policy.queues.qdisc.of(direction);
    let quantum = own.quantum.map_or_else(|| inputs.full_frame().get(), u64::from);
    format!("limit {} quantum {quantum} perturb {}", packets(inputs, rate, direction), own.perturb.unwrap_or(10))
}

/// All flows share the limit.
fn own_queue(builder: &DirectionBuilder<'_>) -> Duration {
    let full = builder.packet_time().mul_f64(packets(builder.inputs, builder.rate, builder.direction));
    if builder.direction == Direction::Down { full } else { builder.own_queue(OWN_PACKETS, Duration::ZERO).min(full) }
}

fn make(inputs: &PlanInputs<'_>, plan: ShaperPlan) -> ShaperPlan {
    builder::shape_both_directions(inputs, plan, false, |builder| htb_tree::shape(builder, &LEAF))
}
