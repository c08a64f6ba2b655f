//! HTB alone: flow queueing by many small leaves, hashed by port.

use core::time::Duration;
use linerate_model::direction::Direction;

use linerate_units::BitRate;

use super::builder::DirectionBuilder;
use super::classify::{self, PLAIN_IPV4, ROOT};
use super::htb_tree::{self, LINK_CLASS, LeafQueue, tier_class};
use super::{BackEnd, BackEndId, PlanInputs, builder, sizes};
use crate::capability::KernelFeature;
use crate::plan::{FilterProtocol, FilterTarget, PlannedClass, QdiscHandle, ShaperPlan, TcParent};
use crate::policy::{PortTransport, TrafficImportance};
use crate::prediction::ShaperTurn;

pub(super) static BACK_END: BackEnd = BackEnd {
    id: BackEndId::HtbBfifo,
    title: "HTB with 64 short queues, selected by a flow's port",
    explanation: "For kernels that have only HTB. Between the interactive and the bulk class are 64 leaves of 20 ms \
                  each; a hash table of u32 picks one by the higher of a flow's ports, the one that differs between \
                  flows. Flows in different leaves take turns. Two flows in one leaf wait for each other until one \
                  ends; nothing is dropped early.",
    citation: "man tc-u32 (hash tables); kernel net/sched/cls_u32.c, sch_htb.c",
    needs: &[KernelFeature::Discipline("htb"), KernelFeature::Discipline("bfifo"), KernelFeature::Filter("u32")],
    unsuitable: |_| None,
    automatic: true,
    remedy: "tbf needs less of the kernel",
    make,
};

/// Number of leaves in the default class: a power of two, as `u32` requires.
const LEAF_COUNT: u16 = 64;

/// Minor number of the first leaf.
const FIRST_LEAF: u16 = 0x100;

/// Class of packets without ports, fragments, and packets with IP options.
const UNHASHED_CLASS: QdiscHandle = QdiscHandle::class(1, 0x21);

static LEAF: LeafQueue = LeafQueue {
    kind: "bfifo",
    reason: "20 ms at the link's rate, at least two packets: little delay, but enough to keep the link busy",
    options,
    own_queue,
};

fn options(inputs: &PlanInputs<'_>, rate: BitRate, _direction: Direction) -> String {
    format!("limit {}", sizes::plain_limit(inputs, rate).get())
}

fn own_queue(builder: &DirectionBuilder<'_>) -> Duration {
    let full = builder.rate.time_to_send(sizes::plain_limit(builder.inputs, builder.rate)).unwrap_or_default();
    builder.own_tail_drop_queue(full)
}

/// Hash mask: bits 1 to 6 of the higher port. Linux gives connecting sockets even ports, so bit 0 is constant.
const PORT_BITS: u32 = 0x7e;

/// `u32` match of ephemeral ports (RFC 6335 §6, and Linux's 32768).
const EPHEMERAL_PORTS: &str = "0x8000 0x8000";

/// Guaranteed rate of a hash leaf: tiny, so that all together have less than half of the link.
fn leaf_rate(line: BitRate) -> BitRate {
    sizes::representable_rate(line * (0.4 / f64::from(LEAF_COUNT + 1)))
}

fn shape(builder: &mut DirectionBuilder<'_>) {
    let rate = htb_tree::held(builder);
    htb_tree::line(builder, UNHASHED_CLASS.minor);
    for importance in [TrafficImportance::Interactive, TrafficImportance::Bulk] {
        let rates = (htb_tree::share(importance, rate), rate);
        htb_tree::leaf(
            builder,
            (LINK_CLASS, tier_class(importance)),
            rates,
            importance,
            &LEAF,
            htb_tree::why(importance),
        );
    }
    htb_tree::add_acknowledgement_class(builder, rate, &LEAF);
    let shared = htb_tree::share(TrafficImportance::Default, rate);
    let middle = PlannedClass {
        importance: None,
        ..htb_tree::class(builder, (LINK_CLASS, tier_class(TrafficImportance::Default)), (shared, rate), (None, false))
    };
    builder.class(middle, "everything else: the rate unused by others, shared by the leaves below");
    let rates = (leaf_rate(rate), rate);
    let parent = tier_class(TrafficImportance::Default);
    htb_tree::leaf(
        builder,
        (parent, UNHASHED_CLASS),
        rates,
        TrafficImportance::Default,
        &LEAF,
        "packets without ports",
    );
    for number in 0..LEAF_COUNT {
        let place = (parent, QdiscHandle::class(1, FIRST_LEAF + number));
        htb_tree::leaf(
            builder,
            place,
            rates,
            TrafficImportance::Default,
            &LEAF,
            "flows whose port hashes to this leaf",
        );
    }
    htb_tree::add_filters(builder, |importance| {
        if importance == TrafficImportance::Default { UNHASHED_CLASS } else { tier_class(importance) }
    });
    for family in [FilterProtocol::Ipv4, FilterProtocol::Ipv6] {
        add_hash_table(builder, family);
    }
    let own = own_queue(builder);
    // The leaf of a sparse flow is idle most of the time, and sends at once.
    for importance in [TrafficImportance::Interactive, TrafficImportance::Default] {
        builder.predict(importance, (ShaperTurn::AtOnceAmongAcknowledgements, Duration::ZERO), own);
    }
    builder.predict(TrafficImportance::Bulk, (htb_tree::turn_of(TrafficImportance::Bulk), Duration::ZERO), own);
    htb_tree::note_host_fairness(builder);
    builder.note("Flows that share one of the 64 leaves wait up to 20 ms, or two packets, for each other.");
}

/// Adds a table of 64 buckets, a leaf each, and the filters into it.
fn add_hash_table(builder: &mut DirectionBuilder<'_>, family: FilterProtocol) {
    let ipv6 = family == FilterProtocol::Ipv6;
    let (preference, table, ports) = if ipv6 { (21, 3, 40) } else { (20, 2, 20) };
    let place = (family, preference);
    let at = TcParent::At(ROOT);
    builder.filter(
        at,
        place,
        ("u32", &format!("handle {table}: divisor {LEAF_COUNT}")),
        None,
        "a hash table of leaves",
    );
    for bucket in 0..LEAF_COUNT {
        let leaf = QdiscHandle::class(1, FIRST_LEAF + bucket);
        let words = format!("ht {table}:{bucket:x}: match u32 0 0 flowid {leaf}");
        builder.filter(at, place, ("u32", &words), Some(FilterTarget::Class(leaf)), "one bucket, one leaf");
    }
    let plain = if ipv6 { String::new() } else { format!("{PLAIN_IPV4} ") };
    // The connecting host has the high port: the source port of egress packets if this side connected.
    let (near, far) = if builder.direction == Direction::Up { (0, 2) } else { (2, 0) };
    let key = |field: u32| PORT_BITS << (16 - 8 * field);
    for transport in [PortTransport::Tcp, PortTransport::Udp] {
        let above = classify::protocol_match(transport.number(), ipv6);
        let ways = [(near, format!(" match u16 {EPHEMERAL_PORTS} at {}", ports + near)), (far, String::new())];
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

fn make(inputs: &PlanInputs<'_>, plan: ShaperPlan) -> ShaperPlan {
    builder::shape_both_directions(inputs, plan, false, shape)
}
