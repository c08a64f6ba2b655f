//! The phases against a server with probe sessions.

use core::time::Duration;
use std::net::SocketAddr;

use linerate_model::schema::path::Peer;
use linerate_model::schema::throughput::Direction;
use linerate_sys::route;
use linerate_units::{BitRate, ByteCount, Mtu};

use super::record::Record;
use super::{PathPhase, convert, handshake, hops, idle, marks, mtu, search, tcp};
use crate::course::Halt;
use crate::probe::{ProbeError, ProbeSession};

/// What the phases know of the path, the later the more.
pub(super) struct Way<'s> {
    pub(super) session: &'s ProbeSession,
    /// Headers of IP and UDP.
    pub(super) headers: ByteCount,
    /// Smallest round trip so far.
    pub(super) round_trip: Duration,
    /// Rates at which short trains came through: what the path carries, or more.
    pub(super) train_rate: [Option<BitRate>; 2],
    /// Routers on the way to the far end, where it could be counted.
    pub(super) routers: Option<u8>,
}

impl Way<'_> {
    /// After this time, what has not arrived is lost.
    pub(super) fn patience(&self) -> Duration {
        self.round_trip * 2 + Duration::from_millis(200)
    }

    /// Path MTU of a direction, or what every path of its family carries.
    pub(super) fn mtu(&self, record: &mut Record<'_>, direction: Direction) -> Mtu {
        let least = if self.session.peer().is_ipv6() { 1280 } else { 576 };
        let found = record.direction(direction).mtu.as_ref().map(|mtu| mtu.bytes);
        Mtu::new(found.and_then(|bytes| u32::try_from(bytes).ok()).unwrap_or(least))
    }
}

pub(super) const fn index(direction: Direction) -> usize {
    match direction {
        Direction::Up => 0,
        Direction::Down => 1,
    }
}

pub(super) const BOTH: [Direction; 2] = [Direction::Up, Direction::Down];

/// `up` or `down`.
pub(super) const fn name(direction: Direction) -> &'static str {
    match direction {
        Direction::Up => "up",
        Direction::Down => "down",
    }
}

pub(super) fn measure(record: &mut Record<'_>, session: &ProbeSession) -> Result<(), Halt> {
    introduce(record, session)?;
    let peer = session.peer();
    handshake::measure(record, peer, Some(handshake::GENTLE))?;
    tcp::describe(record, session.control());
    let first = session.handshake_rtt().unwrap_or(Duration::from_millis(100));
    let headers = convert::headers(peer);
    let mut way = Way { session, headers, round_trip: first, train_rate: [None; 2], routers: None };
    let datagrams = match session.open_datagrams() {
        Ok(way) => Some(way),
        Err(error @ (ProbeError::NoDatagrams { .. } | ProbeError::Refused { .. })) => {
            record.note(format!("UDP does not come through, so that only TCP and ICMP were measured: {error}"));
            without_datagrams(record, &mut way, &error.to_string())?;
            None
        }
        Err(error) => return Err(error.into()),
    };
    if let Some(datagrams) = datagrams {
        if datagrams.local != datagrams.seen_as {
            record.note(format!(
                "The far end sees this host as {}, not as {}: addresses are translated on the way.",
                datagrams.seen_as, datagrams.local
            ));
        }
        with_datagrams(record, &mut way)?;
    }
    finish(record, &way);
    Ok(())
}

fn introduce(record: &mut Record<'_>, session: &ProbeSession) -> Result<(), Halt> {
    record.document.peer = Peer::Linerate;
    record.document.peer_version = Some(session.server_version().to_owned());
    record.document.address = Some(session.peer().ip().to_string());
    match session.facts() {
        Ok(facts) => record.far = Some(facts),
        Err(error) => record.without(&[], error)?,
    }
    Ok(())
}

fn with_datagrams(record: &mut Record<'_>, way: &mut Way<'_>) -> Result<(), Halt> {
    record.phase(PathPhase::PathMtu, way.round_trip * 4);
    mtu::measure(record, way)?;
    record.check()?;
    record.phase(PathPhase::Idle, idle::LONGEST);
    idle::measure(record, way)?;
    record.check()?;
    record.phase(PathPhase::Marks, way.round_trip * 6);
    marks::measure(record, way)?;
    record.check()?;
    if record.options.hops {
        record.phase(PathPhase::Hops, Duration::from_secs(1));
        hops::measure(record, way.session.peer(), way.routers)?;
        record.check()?;
    }
    if record.options.capacity {
        search::measure(record, way)?;
    } else {
        record.unknown_both_ways("capacity", "switched off (--no-capacity)");
        record.unknown_both_ways("policer", "it is looked for while the path is filled, which is switched off");
    }
    Ok(())
}

/// What TCP and ICMP alone tell.
fn without_datagrams(record: &mut Record<'_>, way: &mut Way<'_>, reason: &str) -> Result<(), Halt> {
    for key in ["packets", "marks", "capacity", "policer"] {
        record.unknown_both_ways(key, reason);
    }
    record.unknown("rtt.udp", reason);
    record.unknown("clock", reason);
    record.phase(PathPhase::PathMtu, way.round_trip * 4);
    super::bare::path_mtu(record, way.session.peer(), way.round_trip)?;
    record.phase(PathPhase::Idle, Duration::from_secs(2));
    idle::without_datagrams(record, way)?;
    record.phase(PathPhase::Hops, Duration::from_secs(1));
    hops::measure(record, way.session.peer(), None)
}

/// What follows from the rest.
fn finish(record: &mut Record<'_>, way: &Way<'_>) {
    let least = record.document.rtt.best.as_ref().map(|rtt| Duration::from_nanos(rtt.min_ns));
    let product = |end: &linerate_model::schema::path::PathDirection| {
        let rate = BitRate::from_bits_per_second(end.capacity.as_ref()?.bits_per_second);
        Some((rate * least?).get())
    };
    let products = [product(&record.document.up), product(&record.document.down)];
    [record.document.bdp_up_bytes, record.document.bdp_down_bytes] = products;
    for key in ["bdp_up_bytes", "bdp_down_bytes"] {
        record.unknown_if_missing(key, "the capacity is not known");
    }
    if let Ok(facts) = way.session.facts() {
        contamination(record, &facts);
    }
}

/// Whether the far host was busy with others.
fn contamination(record: &mut Record<'_>, facts: &crate::probe::messages::FarFacts) {
    if let Some(others) = facts.other_sessions.filter(|others| !others.is_zero()) {
        record.note(format!("The server had {others} other sessions at the end: they share the path with this one."));
    }
}

/// MTU of this host's interface towards the peer, and what the kernel believes of the path.
pub(super) fn interface_mtu(peer: SocketAddr) -> (Option<Mtu>, Option<Mtu>) {
    match route::route_to(peer.ip()) {
        Ok(route) => (route.interface_mtu, route.route_mtu),
        Err(_) => (None, None),
    }
}
