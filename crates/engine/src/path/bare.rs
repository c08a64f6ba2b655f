//! A host without a measurement service: what every host tells.

use core::time::Duration;
use std::net::SocketAddr;

use linerate_model::schema::path::Peer;
use linerate_sys::net;

use super::record::Record;
use super::{PathPhase, convert, echo, handshake, hops, idle, stamp, tcp};
use crate::course::Halt;
use crate::probe::ProbeError;

/// ICMP echoes: this many seconds of them,
const ECHO_TIME: Duration = Duration::from_secs(3);
/// so far apart.
const ECHO_INTERVAL: Duration = Duration::from_millis(30);

/// Measures what can be known. `refusal` is what the kernel said where no connection came about.
pub(super) fn measure(record: &mut Record<'_>, refusal: Option<String>) -> Result<(), Halt> {
    let target = &record.options.target;
    let peer = match net::resolve(&target.host, target.port, target.family) {
        Ok(addresses) => addresses.into_iter().next(),
        Err(error) => return Err(Halt::Failed(ProbeError::Unreachable(error.to_string()))),
    };
    let Some(peer) = peer else {
        return Err(Halt::Failed(ProbeError::Unreachable(refusal.unwrap_or_default())));
    };
    record.document.address = Some(peer.ip().to_string());
    let reflects = stamp::find(record, peer)?;
    record.document.peer = if reflects { Peer::Stamp } else { Peer::Bare };
    let shakes = handshake::measure(record, peer, None)?;
    record.phase(PathPhase::Idle, ECHO_TIME);
    if reflects {
        stamp::measure(record, peer)?;
    }
    let echoes = echoes(record, peer)?;
    idle::choose_best(record);
    if !(reflects || shakes || echoes) {
        let reason = refusal.unwrap_or_else(|| format!("{} answers nothing", peer.ip()));
        return Err(Halt::Failed(ProbeError::Unreachable(reason)));
    }
    match (record.plain_tcp.take(), refusal) {
        (Some(near), _) => tcp::of_this_end(record, &near),
        (None, Some(reason)) => record.unknown("tcp", reason),
        (None, None) => {}
    }
    let round_trip = record
        .document
        .rtt
        .best
        .as_ref()
        .map_or(Duration::from_millis(300), |best| Duration::from_nanos(best.median_ns));
    record.phase(PathPhase::PathMtu, round_trip * 6);
    path_mtu(record, peer, round_trip)?;
    record.phase(PathPhase::Hops, Duration::from_secs(2));
    hops::measure(record, peer, None)
}

/// Round trips of ICMP; whether any came back.
pub(super) fn echoes(record: &mut Record<'_>, peer: SocketAddr) -> Result<bool, Halt> {
    match echo::measure(record, peer, ECHO_INTERVAL, ECHO_TIME)? {
        Ok(round_trips) => {
            record.document.rtt.icmp = convert::distribution(&round_trips);
            if round_trips.is_empty() {
                record.unknown("rtt.icmp", "no ICMP echo was answered");
            }
            Ok(!round_trips.is_empty())
        }
        Err(reason) => {
            record.unknown("rtt.icmp", reason);
            Ok(false)
        }
    }
}

/// The path MTU that ICMP echoes find.
pub(super) fn path_mtu(record: &mut Record<'_>, peer: SocketAddr, round_trip: Duration) -> Result<(), Halt> {
    record.document.up.mtu = echo::path_mtu(record, peer, round_trip)?;
    Ok(())
}
