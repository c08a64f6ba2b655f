//! The phases against a server with probe sessions.

use core::time::Duration;
use linerate_model::direction::Direction;
use std::net::SocketAddr;

use linerate_model::path::PeerKind;
use linerate_sys::route;
use linerate_units::{BitRate, ByteCount, Mtu};

use super::record::PathRecord;
use super::{PathPhase, convert, handshake, hops, idle, marks, mtu, search, tcp};
use crate::phases::AbortReason;
use crate::probe::{ProbeError, ProbeSession};

/// Knowledge of the path, which grows from phase to phase.
pub(super) struct PathKnowledge<'s> {
    pub(super) session: &'s ProbeSession,
    /// Headers of IP and UDP.
    pub(super) headers: ByteCount,
    /// Smallest round trip so far.
    pub(super) round_trip: Duration,
    /// Rates at which short bursts arrived: an upper bound of the capacity.
    pub(super) train_rate: [Option<BitRate>; 2],
    /// Routers on the way to the far end, where their number is known.
    pub(super) routers: Option<u8>,
}

impl PathKnowledge<'_> {
    /// Time after which a packet that has not arrived is lost.
    pub(super) fn patience(&self) -> Duration {
        self.round_trip * 2 + Duration::from_millis(200)
    }

    /// Path MTU of a direction, or the smallest that every path of its family carries.
    pub(super) fn mtu(&self, record: &mut PathRecord<'_>, direction: Direction) -> Mtu {
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

pub(super) const BOTH_DIRECTIONS: [Direction; 2] = [Direction::Up, Direction::Down];

/// `up` or `down`.
pub(super) const fn name(direction: Direction) -> &'static str {
    match direction {
        Direction::Up => "up",
        Direction::Down => "down",
    }
}

pub(super) fn measure(record: &mut PathRecord<'_>, session: &ProbeSession) -> Result<(), AbortReason> {
    read_server_facts(record, session)?;
    let peer = session.peer();
    handshakes(record, session)?;
    tcp::describe(record, session.control());
    let first = session.handshake_rtt().unwrap_or(Duration::from_millis(100));
    let headers = convert::headers(peer);
    let mut way = PathKnowledge { session, headers, round_trip: first, train_rate: [None; 2], routers: None };
    let datagrams = match session.open_datagrams() {
        Ok(way) => Some(way),
        Err(
            error @ (ProbeError::NoDatagrams { .. } | ProbeError::NoDatagramsToDialer(_) | ProbeError::Refused { .. }),
        ) => {
            record.note(error.without_datagrams("were measured"));
            without_datagrams(record, &mut way, &error.to_string())?;
            None
        }
        Err(error) => return Err(error.into()),
    };
    if let Some(datagrams) = datagrams {
        if datagrams.local != datagrams.seen_as {
            record.note(format!(
                "The far end sees this host as {}, not as {}: addresses are translated on the path.",
                datagrams.seen_as, datagrams.local
            ));
        }
        with_datagrams(record, &mut way)?;
    }
    finish(record, &way);
    Ok(())
}

/// Handshakes; of a server that dials in only that of the control connection, as each is its own.
fn handshakes(record: &mut PathRecord<'_>, session: &ProbeSession) -> Result<(), AbortReason> {
    if record.options.target.dialed_in {
        let times: Vec<Duration> = session.handshake_rtt().into_iter().collect();
        record.document.rtt.handshake = convert::distribution(&times);
        return Ok(());
    }
    handshake::measure(record, session.peer(), Some(handshake::SERVER_HANDSHAKES)).map(|_| ())
}

fn read_server_facts(record: &mut PathRecord<'_>, session: &ProbeSession) -> Result<(), AbortReason> {
    record.document.peer = PeerKind::Linerate;
    record.document.peer_version = Some(session.server_version().to_owned());
    record.document.address = Some(session.peer().ip().to_string());
    match session.facts() {
        Ok(facts) => record.far = Some(facts),
        Err(error) => record.without(&[], error)?,
    }
    Ok(())
}

fn with_datagrams(record: &mut PathRecord<'_>, way: &mut PathKnowledge<'_>) -> Result<(), AbortReason> {
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
        record.add_unknown_both("capacity", "switched off (--no-capacity)");
        record.add_unknown_both(
            "policer",
            "policer detection needs the capacity search, which is switched off (--no-capacity)",
        );
    }
    Ok(())
}

/// Measurements by TCP and ICMP alone.
fn without_datagrams(
    record: &mut PathRecord<'_>,
    way: &mut PathKnowledge<'_>,
    reason: &str,
) -> Result<(), AbortReason> {
    for key in ["packets", "marks", "capacity", "policer"] {
        record.add_unknown_both(key, reason);
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

/// Derived figures.
fn finish(record: &mut PathRecord<'_>, way: &PathKnowledge<'_>) {
    let least = record.document.rtt.best.as_ref().map(|rtt| rtt.min);
    let product = |end: &linerate_model::path::PathDirection| {
        let rate = BitRate::from_bits_per_second(end.capacity.as_ref()?.bits_per_second);
        Some((rate * least?).get())
    };
    let products = [product(&record.document.up), product(&record.document.down)];
    [record.document.bdp_up_bytes, record.document.bdp_down_bytes] = products;
    for key in ["bdp_up_bytes", "bdp_down_bytes"] {
        record.add_unknown_if_missing(key, "the capacity is not known");
    }
    if let Ok(facts) = way.session.facts() {
        contamination(record, &facts);
    }
}

/// Notes other sessions on the far host.
fn contamination(record: &mut PathRecord<'_>, facts: &crate::probe::messages::FarFacts) {
    if let Some(others) = facts.other_sessions.filter(|others| !others.is_zero()) {
        record.note(format!("The server had {others} other sessions at the end, which share the path with this one."));
    }
}

/// MTU of this host's interface towards the peer, and the kernel's path MTU.
pub(super) fn interface_mtu(peer: SocketAddr) -> (Option<Mtu>, Option<Mtu>) {
    match route::route_to(peer) {
        Ok(route) => (route.interface_mtu, route.route_mtu),
        Err(_) => (None, None),
    }
}
