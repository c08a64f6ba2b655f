//! HTB alone: flow queueing by many small leaves, hashed by port.

use core::time::Duration;
use linerate_model::direction::Direction;

use linerate_units::{BitRate, ByteCount};

use super::builder::DirectionBuilder;
use super::classify::{self, PLAIN_IPV4, ROOT};
use super::htb_tree::{self, LeafQueue, tier_class};
use super::{BackEnd, BackEndId, PlanInputs, builder, class_tree, sizes};
use crate::capability::KernelFeature;
use crate::plan::{FilterProtocol, FilterTarget, PlannedClass, QdiscHandle, ShaperPlan, TcParent};
use crate::policy::{PortTransport, TrafficImportance};
use crate::prediction::ShaperTurn;

pub(super) static BACK_END: BackEnd = BackEnd {
    id: BackEndId::HtbBfifo,
    title: "HTB with 128 short queues, selected by a flow's port",
    explanation: "For kernels that have only HTB. Between the interactive and the bulk class are 64 leaves of 20 ms \
                  for TCP, and as many for UDP, so that calls and games never wait behind a TCP transfer; a hash table \
                  of u32 picks one by the higher of a flow's ports, the one that differs between flows. Flows in \
                  different leaves take turns. Two flows in one leaf wait for each other until one ends; nothing is \
                  dropped early.",
    citation: "man tc-u32 (hash tables); kernel net/sched/cls_u32.c, sch_htb.c",
    needs: &[KernelFeature::Discipline("htb"), KernelFeature::Discipline("bfifo"), KernelFeature::Filter("u32")],
    unsuitable: |_| None,
    automatic: true,
    remedy: "tbf needs less of the kernel",
    make,
};

/// Number of leaves of each transport in the default class: a power of two, as `u32` requires.
const LEAF_COUNT: u16 = 64;

/// Transports with leaves of their own: minor number of the first leaf, and number of the hash table in IPv4.
const TRANSPORTS: [(PortTransport, u16, u16); 2] = [(PortTransport::Tcp, 0x100, 2), (PortTransport::Udp, 0x200, 3)];

/// Number of all leaves, with the one of packets without ports.
const ALL_LEAVES: f64 = 2.0 * LEAF_COUNT as f64 + 1.0;

/// Class of packets without ports, fragments, and packets with IP options.
const UNHASHED_CLASS: QdiscHandle = QdiscHandle::class(1, 0x21);

static LEAF: LeafQueue = LeafQueue {
    kind: "bfifo",
    reason: "20 ms at the link's rate, at least four packets: little delay, but enough to keep the link busy",
    options,
    own_queue,
};

fn limit(inputs: &PlanInputs<'_>, rate: BitRate, direction: Direction) -> ByteCount {
    let own = inputs.policy.queues.qdisc.of(direction).limit;
    own.map_or_else(|| sizes::plain_limit(inputs, rate), |bytes| ByteCount::new(u64::from(bytes)))
}

fn options(inputs: &PlanInputs<'_>, rate: BitRate, direction: Direction) -> String {
    format!("limit {}", limit(inputs, rate, direction).get())
}

fn own_queue(builder: &DirectionBuilder<'_>) -> Duration {
    let full = builder.rate.time_to_send(limit(builder.inputs, builder.rate, builder.direction)).unwrap_or_default();
    builder.own_tail_drop_queue(full)
}

/// Hash mask: bits 1 to 6 of the higher port. Linux gives connecting sockets even ports, so bit 0 is constant.
const PORT_BITS: u32 = 0x7e;

/// `u32` match of ephemeral ports (RFC 6335 §6, and Linux's 32768).
const EPHEMERAL_PORTS: &str = "0x8000 0x8000";

/// Guaranteed rate of a leaf: tiny, so that all together have less than half of the link, and different for each. A
/// leaf may send a packet by its guarantee whatever else is sent: leaves of one rate that have done so together do so
/// again together, and the link has them all to send at once (in the lab, 64 flows at 19 Mbit/s: one ping in a hundred
/// 20 ms later than with different rates).
fn leaf_rate(line: BitRate, number: u16) -> BitRate {
    // Multiples of the golden ratio are spread evenly.
    let spread = (f64::from(number) * 0.618_034).fract() + 0.5;
    sizes::representable_rate(line * (0.4 / ALL_LEAVES * spread))
}

fn shape(builder: &mut DirectionBuilder<'_>) {
    if builder.inputs.policy.divides_hosts {
        htb_tree::shape(builder, &LEAF);
        return;
    }
    let rate = htb_tree::held(builder);
    htb_tree::line(builder, UNHASHED_CLASS.minor);
    let (above, guaranteed) = class_tree::add_others(builder, rate);
    for importance in [TrafficImportance::Interactive, TrafficImportance::Bulk] {
        let rates = (htb_tree::share(importance, guaranteed), rate);
        htb_tree::leaf(builder, (above, tier_class(importance)), rates, importance, &LEAF, htb_tree::why(importance));
    }
    htb_tree::add_acknowledgement_class(builder, (above, guaranteed), rate, &LEAF);
    let shared = htb_tree::share(TrafficImportance::Default, guaranteed);
    let middle = PlannedClass {
        importance: None,
        ..htb_tree::class(builder, (above, tier_class(TrafficImportance::Default)), (shared, rate), (None, false))
    };
    builder.class(middle, "everything else: the rate unused by others, shared by the leaves below");
    let parent = tier_class(TrafficImportance::Default);
    htb_tree::leaf(
        builder,
        (parent, UNHASHED_CLASS),
        (leaf_rate(guaranteed, 0), rate),
        TrafficImportance::Default,
        &LEAF,
        "packets without ports",
    );
    for (transport, first, _) in TRANSPORTS {
        let why = format!("flows of {} whose port hashes to this leaf", transport.name());
        for number in 0..LEAF_COUNT {
            let place = (parent, QdiscHandle::class(1, first + number));
            let rates = (leaf_rate(guaranteed, first + number), rate);
            htb_tree::leaf(builder, place, rates, TrafficImportance::Default, &LEAF, &why);
        }
    }
    class_tree::add_classes(builder, rate, &LEAF);
    htb_tree::add_filters(builder, |importance| {
        if importance == TrafficImportance::Default { UNHASHED_CLASS } else { tier_class(importance) }
    });
    for family in [FilterProtocol::Ipv4, FilterProtocol::Ipv6] {
        for transport in TRANSPORTS {
            add_hash_table(builder, family, transport);
        }
    }
    let own = own_queue(builder);
    // The leaf of a sparse flow is idle most of the time, and sends at once.
    for importance in [TrafficImportance::Interactive, TrafficImportance::Default] {
        builder.predict(importance, (ShaperTurn::AtOnceAmongAcknowledgements, Duration::ZERO), own);
    }
    builder.predict(TrafficImportance::Bulk, (htb_tree::turn_of(TrafficImportance::Bulk), Duration::ZERO), own);
    htb_tree::note_host_fairness(builder);
    note_aggregates(builder);
    builder.note(format!(
        "Flows of one transport that share one of its {LEAF_COUNT} leaves wait up to 20 ms, or four packets, for each \
         other."
    ));
}

/// Adds the note on flows whose bursts arrive as one packet that is larger than a leaf.
fn note_aggregates(builder: &mut DirectionBuilder<'_>) {
    let inputs = builder.inputs;
    let is_small = sizes::plain_limit(inputs, builder.rate) < sizes::aggregate_limit(inputs, builder.rate);
    if builder.direction == Direction::Down && inputs.device.receives_aggregates && is_small {
        builder.note(
            "Bursts arrive as one packet on a virtual link (veth): BBR of a near host gets less than the rate here.",
        );
    }
}

/// Adds a table of one bucket for each leaf of a transport, and the filters into it.
fn add_hash_table(
    builder: &mut DirectionBuilder<'_>,
    family: FilterProtocol,
    (transport, first, table): (PortTransport, u16, u16),
) {
    let ipv6 = family == FilterProtocol::Ipv6;
    let (preference, table, ports) = if ipv6 { (21, table + 2, 40) } else { (20, table, 20) };
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
        let leaf = QdiscHandle::class(1, first + bucket);
        let words = format!("ht {table}:{bucket:x}: match u32 0 0 flowid {leaf}");
        builder.filter(at, place, ("u32", &words), Some(FilterTarget::Class(leaf)), "one bucket, one leaf");
    }
    let plain = if ipv6 { String::new() } else { format!("{PLAIN_IPV4} ") };
    // The connecting host has the high port: the source port of egress packets if this side connected.
    let (near, far) = if builder.direction == Direction::Up { (0, 2) } else { (2, 0) };
    let above = classify::protocol_match(transport.number(), ipv6);
    let ways = [(near, format!(" match u16 {EPHEMERAL_PORTS} at {}", ports + near)), (far, String::new())];
    for (field, condition) in ways {
        let mask = PORT_BITS << (16 - 8 * field);
        let words = format!("{plain}{above}{condition} hashkey mask {mask:#010x} at {ports} link {table}:");
        let which =
            if field == near { "this side's port, when it is one of the high ones" } else { "else the other side's" };
        builder.filter(at, place, ("u32", &words), None, format!("{}: by {which}", transport.name()));
    }
}

fn make(inputs: &PlanInputs<'_>, plan: ShaperPlan) -> ShaperPlan {
    builder::shape_both_directions(inputs, plan, false, shape)
}
