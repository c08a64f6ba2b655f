//! HTB alone: flow queueing out of many small leaves, sorted by ports.

use core::time::Duration;

use linerate_units::BitRate;

use super::builder::Builder;
use super::classify::{self, PLAIN_IPV4, ROOT};
use super::hierarchy::{self, LINE, Leaf, tier};
use super::{BackEnd, Inputs, builder, sizes};
use crate::capability::Feature;
use crate::link::Direction;
use crate::plan::{Class, Goal, Handle, Parent, Plan, Protocol};
use crate::policy::{Importance, Transport};

pub(super) static BACK_END: BackEnd = BackEnd {
    id: "htb+bfifo",
    title: "HTB with 64 short queues, one of which a flow gets by its port",
    explanation: "For kernels that have HTB and nothing else. Between the interactive and the bulk class stand 64 leaves of \
                  20 ms each; a hash table of u32 picks one by the higher of a flow's ports, the one that differs between \
                  flows. Flows in different leaves take turns. Two flows may share a leaf, and then one waits for the other \
                  until it ends; nothing is dropped early.",
    citation: "man tc-u32 (hash tables); kernel net/sched/cls_u32.c, sch_htb.c",
    needs: &[Feature::Discipline("htb"), Feature::Discipline("bfifo"), Feature::Filter("u32")],
    unsuitable: |_| None,
    automatic: true,
    way_out: "tbf needs less of the kernel",
    make,
};

/// How many leaves share the default class. A power of two, as `u32` wants it.
const LEAVES: u16 = 64;

/// The number of the first of them.
const FIRST: u16 = 0x100;

/// Where packets without ports, fragments and IP options go.
const REST: Handle = Handle::class(1, 0x21);

static LEAF: Leaf = Leaf {
    kind: "bfifo",
    reason: "20 ms of the line, two packets at least: short enough not to be felt, long enough to keep the line busy",
    options,
    delays,
};

fn options(inputs: &Inputs<'_>, rate: BitRate, _direction: Direction) -> String {
    format!("limit {}", sizes::plain_limit(inputs, rate).get())
}

/// A packet waits for one of the flow that fills the line, as long as both do not share a leaf.
fn delays(inputs: &Inputs<'_>, rate: BitRate) -> (Duration, Duration) {
    let packet = rate.time_to_send(inputs.full_packet()).unwrap_or_default();
    (packet, rate.time_to_send(sizes::plain_limit(inputs, rate)).unwrap_or_default())
}

/// Of the higher port, bits 1 to 6: Linux gives even port numbers to those who connect, so bit 0 says nothing.
const PORT_BITS: u32 = 0x7e;

/// From here on a port is one that a connecting host was given (RFC 6335 §6, and Linux's 32768).
const GIVEN: &str = "0x8000 0x8000";

/// A leaf of the hash: what it has by right is tiny, so that all together have less than half of the line.
fn leaf_rate(line: BitRate) -> BitRate {
    sizes::whole(line * (0.4 / f64::from(LEAVES + 1)))
}

fn shape(builder: &mut Builder<'_>) {
    let rate = hierarchy::held(builder);
    hierarchy::line(builder, REST.minor);
    for importance in [Importance::Interactive, Importance::Bulk] {
        let rates = (hierarchy::share(importance, rate), rate);
        hierarchy::leaf(builder, (LINE, tier(importance)), rates, importance, &LEAF, hierarchy::why(importance));
    }
    hierarchy::acknowledgements(builder, rate, &LEAF);
    let shared = hierarchy::share(Importance::Default, rate);
    let middle = Class {
        importance: None,
        ..hierarchy::class(builder, (LINE, tier(Importance::Default)), (shared, rate), (None, false))
    };
    builder.class(middle, "everything else: what others leave, shared by the leaves below");
    let rates = (leaf_rate(rate), rate);
    let parent = tier(Importance::Default);
    hierarchy::leaf(
        builder,
        (parent, REST),
        rates,
        Importance::Default,
        &LEAF,
        "what has no ports to be told apart by",
    );
    for number in 0..LEAVES {
        let place = (parent, Handle::class(1, FIRST + number));
        hierarchy::leaf(builder, place, rates, Importance::Default, &LEAF, "flows whose port hashes to this leaf");
    }
    hierarchy::sort(builder, |importance| if importance == Importance::Default { REST } else { tier(importance) });
    for family in [Protocol::Ipv4, Protocol::Ipv6] {
        hash(builder, family);
    }
    let (flow, own) = delays(builder.inputs, builder.rate);
    builder.predict(Importance::Interactive, Duration::ZERO, own);
    builder.predict(Importance::Default, flow, own);
    builder.predict(Importance::Bulk, flow, own);
    hierarchy::addresses(builder);
    builder.note("Two flows of 64 may share a leaf: then one waits up to 20 ms, or two packets, for the other.");
}

/// A table of 64 buckets, a leaf each, and the ways into it.
fn hash(builder: &mut Builder<'_>, family: Protocol) {
    let ipv6 = family == Protocol::Ipv6;
    let (preference, table, ports) = if ipv6 { (21, 3, 40) } else { (20, 2, 20) };
    let place = (family, preference);
    let at = Parent::At(ROOT);
    builder.filter(at, place, ("u32", &format!("handle {table}: divisor {LEAVES}")), None, "a hash table of leaves");
    for bucket in 0..LEAVES {
        let leaf = Handle::class(1, FIRST + bucket);
        let words = format!("ht {table}:{bucket:x}: match u32 0 0 flowid {leaf}");
        builder.filter(at, place, ("u32", &words), Some(Goal::Class(leaf)), "one bucket, one leaf");
    }
    let plain = if ipv6 { String::new() } else { format!("{PLAIN_IPV4} ") };
    // Whoever connected has the high port. What was sent upwards has it in front when this side connected.
    let (near, far) = if builder.direction == Direction::Up { (0, 2) } else { (2, 0) };
    let key = |field: u32| PORT_BITS << (16 - 8 * field);
    for transport in [Transport::Tcp, Transport::Udp] {
        let above = classify::protocol(transport.number(), ipv6);
        let ways = [(near, format!(" match u16 {GIVEN} at {}", ports + near)), (far, String::new())];
        for (field, condition) in ways {
            let mask = key(field);
            let words = format!("{plain}{above}{condition} hashkey mask {mask:#010x} at {ports} link {table}:");
            let which = if field == near {
                "this side's port, when it is one of the high ones"
            } else {
                "else the other side's"
            };
            builder.filter(at, place, ("u32", &words), None, format!("{}: by {which}", transport.name()));
        }
    }
}

fn make(inputs: &Inputs<'_>, plan: Plan) -> Plan {
    builder::both(inputs, plan, false, shape)
}
