//! Fairness between hosts without CAKE: a class of HTB for each of 64 hash values of a host's address, each with the
//! queue of the back end. Classes without a guarantee to speak of take equal turns, however many flows each has.

use linerate_model::direction::Direction;

use linerate_units::BitRate;

use super::builder::DirectionBuilder;
use super::classify::{self, FAMILIES, ROOT};
use super::htb_tree::{self, DATAGRAM_CLASS, LeafQueue, tier_class};
use super::sizes;
use crate::plan::{FilterProtocol, FilterTarget, PlannedClass, QdiscHandle, TcParent};
use crate::policy::{PortTransport, TrafficImportance};

/// Number of leaves: a power of two, as `u32` requires.
const LEAF_COUNT: u16 = 64;

/// Bits of an address that select its leaf: the last ones, which differ between the hosts of a network.
const ADDRESS_BITS: u32 = 0x3f;

/// Guaranteed share of all leaves together.
const LEAF_SHARE: f64 = 0.05;

/// Leaves of everything else, and of datagrams: class above, minor number of the first leaf, and numbers of the hash table
/// in IPv4.
const PARTS: [(QdiscHandle, u16, u16); 2] =
    [(tier_class(TrafficImportance::Default), 0x400, 6), (DATAGRAM_CLASS, 0x500, 8)];

/// Queues of a host's flows: the default of 1024 would take 70 KB for each leaf.
const FLOWS: (&str, &str) = ("flows 1024", "flows 256");

/// Adds a class above the leaves in place of a tier's own queue.
pub(super) fn add(
    builder: &mut DirectionBuilder<'_>,
    (parent, class): (QdiscHandle, QdiscHandle),
    (guaranteed, rate): (BitRate, BitRate),
    leaf: &LeafQueue,
    reason: &str,
) {
    let planned = htb_tree::class(builder, (parent, class), (guaranteed, rate), (None, class == DATAGRAM_CLASS));
    builder.class(PlannedClass { importance: None, ..planned }, format!("{reason}; its hosts take turns"));
    let first = PARTS.iter().find(|(above, ..)| *above == class).map_or(PARTS[0].1, |(_, first, _)| *first);
    let share = sizes::representable_rate(guaranteed * (LEAF_SHARE / f64::from(LEAF_COUNT)));
    for number in 0..LEAF_COUNT {
        let handle = QdiscHandle::class(1, first + number);
        let pair = (class, handle);
        let planned = htb_tree::class(builder, pair, (share, rate), (Some(TrafficImportance::Default), true));
        builder.class(planned, "hosts whose address hashes to this leaf");
        let options = (leaf.options)(builder.inputs, rate, builder.direction).replace(FLOWS.0, FLOWS.1);
        let place = (TcParent::At(handle), QdiscHandle::discipline(handle.minor));
        builder.discipline(place, leaf.kind, None, &options, leaf.reason);
    }
}

/// Leaf of packets that are neither IPv4 nor IPv6.
pub(super) const OTHER_LEAF: QdiscHandle = QdiscHandle::class(1, PARTS[0].1);

/// Adds the hash tables: datagrams first, then everything else.
pub(super) fn add_filters(builder: &mut DirectionBuilder<'_>) {
    for family in FAMILIES {
        for part in PARTS.into_iter().rev() {
            add_table(builder, family, part);
        }
    }
    let seen = if builder.inputs.translates_addresses() {
        " This host translates addresses (NAT), so hosts behind it count as one: shape the interface towards them instead."
    } else {
        ""
    };
    builder.note(format!("Hosts share equally; two hosts may share one of its {LEAF_COUNT} leaves.{seen}"));
}

fn add_table(
    builder: &mut DirectionBuilder<'_>,
    family: FilterProtocol,
    (above, first, table): (QdiscHandle, u16, u16),
) {
    let ipv6 = family == FilterProtocol::Ipv6;
    // Last word of the source address of what is sent, and of the destination of what is received.
    let (preference, table, at) = match (ipv6, builder.direction) {
        (false, Direction::Up) => (20, table, 12),
        (false, Direction::Down) => (20, table, 16),
        (true, Direction::Up) => (21, table + 1, 20),
        (true, Direction::Down) => (21, table + 1, 36),
    };
    let place = (family, preference);
    let parent = TcParent::At(ROOT);
    let divisor = format!("handle {table}: divisor {LEAF_COUNT}");
    builder.filter(parent, place, ("u32", &divisor), None, "a hash table of leaves");
    for bucket in 0..LEAF_COUNT {
        let leaf = QdiscHandle::class(1, first + bucket);
        let words = format!("ht {table}:{bucket:x}: match u32 0 0 flowid {leaf}");
        builder.filter(parent, place, ("u32", &words), Some(FilterTarget::Class(leaf)), "one bucket, one leaf");
    }
    let matched = if above == DATAGRAM_CLASS {
        classify::protocol_match(PortTransport::Udp.number(), ipv6)
    } else {
        "match u32 0 0".to_owned()
    };
    let words = format!("{matched} hashkey mask {ADDRESS_BITS:#010x} at {at} link {table}:");
    builder.filter(parent, place, ("u32", &words), None, "by the last bits of this side's address");
}
