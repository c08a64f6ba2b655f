//! HTB with `sfq` leaves: the LARTC script as one would write it today.

use core::time::Duration;

use linerate_units::BitRate;

use super::hierarchy::{self, Leaf};
use super::{BackEnd, Inputs, builder, sizes};
use crate::capability::Feature;
use crate::link::Direction;
use crate::plan::Plan;

pub(super) static BACK_END: BackEnd = BackEnd {
    id: "htb+sfq",
    title: "HTB in four classes with SFQ leaves: the LARTC conditioner, corrected",
    explanation: "LARTC's tree without its flaws: IPv6 like IPv4; acknowledgements known by their empty payload instead of \
                  a length below 64; codepoints compared without the ECN bits; guarantees that add up to the line instead \
                  of a ladder that wastes a tenth; buckets of one packet instead of 6 kB, which are 220 ms of an uplink of \
                  220 kbit/s; SFQ cut to 20 ms; what is received is shaped, not policed.",
    citation: "LARTC howto §15.8; man tc-htb, tc-sfq; bufferbloat.net, 'Wondershaper must die'",
    needs: &[Feature::Discipline("htb"), Feature::Discipline("sfq")],
    unsuitable: |_| None,
    automatic: true,
    way_out: "htb+bfifo needs less of the kernel",
    make,
};

static LEAF: Leaf = Leaf {
    kind: "sfq",
    reason: "flows take turns; perturbed every 10 s, so that two that share a slot part again",
    options,
    delays,
};

/// What SFQ holds at least, so that several flows find room, and at most: 128 flows of 127 packets.
const LEAST: f64 = 16.0;
const MOST: f64 = 127.0 * 128.0;

fn packets(inputs: &Inputs<'_>, rate: BitRate) -> f64 {
    let standing = rate * sizes::STANDING;
    (standing.as_f64() / inputs.full_frame().as_f64()).ceil().clamp(LEAST, MOST)
}

fn options(inputs: &Inputs<'_>, rate: BitRate, _direction: Direction) -> String {
    format!("limit {} quantum {} perturb 10", packets(inputs, rate), inputs.full_frame().get())
}

/// A packet waits for one of the flow that fills the line.
fn delays(inputs: &Inputs<'_>, rate: BitRate) -> (Duration, Duration) {
    let packet = rate.time_to_send(inputs.full_packet()).unwrap_or_default();
    (packet, packet.mul_f64(packets(inputs, rate).min(127.0)))
}

fn make(inputs: &Inputs<'_>, plan: Plan) -> Plan {
    builder::both(inputs, plan, false, |builder| hierarchy::shape(builder, &LEAF))
}
