//! A host without a measurement service: measurements that every host allows.

use core::time::Duration;
use std::net::SocketAddr;

use linerate_model::path::PeerKind;
use linerate_sys::net;

use super::record::PathRecord;
use super::{PathPhase, convert, echo, handshake, hops, idle, stamp, tcp};
use crate::phases::AbortReason;
use crate::probe::ProbeError;

/// Duration of the ICMP echoes,
const ECHO_TIME: Duration = Duration::from_secs(3);
/// and their interval.
const ECHO_INTERVAL: Duration = Duration::from_millis(30);

/// Measures a bare host. `refusal` is the kernel's reason where no connection was established.
pub(super) fn measure(record: &mut PathRecord<'_>, refusal: Option<String>) -> Result<(), AbortReason> {
    let target = &record.options.target;
    let peer = match net::resolve(target.address(), target.port, target.family) {
        Ok(addresses) => addresses.into_iter().next(),
        Err(error) => return Err(AbortReason::Failed(ProbeError::Unreachable(error.to_string()))),
    };
    let Some(peer) = peer else {
        return Err(AbortReason::Failed(ProbeError::Unreachable(refusal.unwrap_or_default())));
    };
    record.document.address = Some(peer.ip().to_string());
    let reflects = stamp::find(record, peer)?;
    record.document.peer = if reflects { PeerKind::Stamp } else { PeerKind::Bare };
    let shakes = handshake::measure(record, peer, None)?;
    record.phase(PathPhase::Idle, ECHO_TIME);
    if reflects {
        stamp::measure(record, peer)?;
    }
    let echoes = echoes(record, peer)?;
    idle::choose_best(record);
    if !(reflects || shakes || echoes) {
        let reason = refusal.unwrap_or_else(|| format!("{} does not answer", peer.ip()));
        return Err(AbortReason::Failed(ProbeError::Unreachable(reason)));
    }
    match (record.plain_tcp.take(), refusal) {
        (Some(near), _) => tcp::describe_near_end(record, &near),
        (None, Some(reason)) => record.unknown("tcp", reason),
        (None, None) => {}
    }
    let round_trip = record.document.rtt.best.as_ref().map_or(Duration::from_millis(300), |best| best.median);
    record.phase(PathPhase::PathMtu, round_trip * 6);
    path_mtu(record, peer, round_trip)?;
    record.phase(PathPhase::Hops, Duration::from_secs(2));
    hops::measure(record, peer, None)
}

/// Measures the round trips of ICMP; returns `true` if any was answered.
pub(super) fn echoes(record: &mut PathRecord<'_>, peer: SocketAddr) -> Result<bool, AbortReason> {
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

/// Path MTU by ICMP echoes.
pub(super) fn path_mtu(record: &mut PathRecord<'_>, peer: SocketAddr, round_trip: Duration) -> Result<(), AbortReason> {
    record.document.up.mtu = echo::path_mtu(record, peer, round_trip)?;
    Ok(())
}
