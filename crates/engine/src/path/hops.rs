//! Hops of the path: datagrams whose hop limit ends at the first router, the second one, and so on.
//!
//! Each distance has a socket of its own, so that the port identifies an answer even where a router quotes only the
//! header of the packet it dropped.

use core::time::Duration;
use std::net::{IpAddr, SocketAddr};

use linerate_model::path::PathHop;
use linerate_sys::clock;
use linerate_sys::data::probe_socket::{OutgoingDatagram, ProbeOptions, ProbeSocket};
use linerate_sys::error_queue::{PathError, PathErrorKind};
use linerate_sys::net::{self, UdpOptions};
use linerate_units::MonotonicTime;

use super::convert;
use super::record::PathRecord;
use crate::course::AbortReason;

/// First of the unused ports chosen by traceroute.
const FIRST_PORT: u16 = 33_434;

/// Longest path probed.
const MOST: u8 = 30;

/// Distances probed at once.
const MAX_CONCURRENT: u8 = 8;

/// Datagrams for each distance.
const PROBES_PER_HOP: usize = 3;

/// Silent distances in a row after which the far host itself is assumed not to answer.
const MAX_SILENT_HOPS: usize = 5;

/// Longest wait for the answers of one round.
const PATIENCE: Duration = Duration::from_millis(800);

/// One distance.
struct HopProbe {
    socket: ProbeSocket,
    to: SocketAddr,
    hops: u8,
    sent: Option<MonotonicTime>,
    times: Vec<Duration>,
    from: Option<IpAddr>,
    /// True when the far host itself, or a firewall before it, answered.
    end: bool,
}

/// Measures the hops; `routers` is their number, where it is known from the received hop limits.
pub(super) fn measure(record: &mut PathRecord<'_>, peer: SocketAddr, routers: Option<u8>) -> Result<(), AbortReason> {
    let most = routers.unwrap_or(MOST).min(MOST);
    let mut hops: Vec<PathHop> = Vec::new();
    let mut reached = false;
    let mut first = 1;
    while first <= most && !reached {
        let last = most.min(first + MAX_CONCURRENT - 1);
        let opened: Result<Vec<HopProbe>, String> =
            (first..=last).map(|hops| HopProbe::open(record, peer, hops)).collect();
        let mut distances = match opened {
            Ok(distances) => distances,
            Err(reason) => {
                record.unknown("hops", reason);
                return Ok(());
            }
        };
        rounds(record, &mut distances)?;
        for distance in distances {
            reached = reached || distance.end;
            hops.push(distance.hop());
            if reached {
                break;
            }
        }
        let silent = hops.iter().rev().take_while(|hop| hop.address.is_none()).count();
        if silent >= MAX_SILENT_HOPS && routers.is_none() {
            hops.truncate(hops.len() - silent);
            record.note("Beyond the last hop shown no answer arrived, not even from the host.");
            break;
        }
        first = last + 1;
    }
    if let Some(routers) = routers {
        hops.push(PathHop {
            distance: routers.saturating_add(1),
            address: Some(peer.ip().to_string()),
            rtt: record.document.rtt.best,
        });
    }
    record.document.hops = hops;
    Ok(())
}

fn rounds(record: &PathRecord<'_>, distances: &mut [HopProbe]) -> Result<(), AbortReason> {
    for _ in 0..PROBES_PER_HOP {
        for distance in &mut *distances {
            distance.send();
        }
        let end = clock::monotonic_now() + PATIENCE;
        while distances.iter().any(|distance| distance.sent.is_some()) && clock::monotonic_now() < end {
            record.wait(Duration::from_millis(5))?;
            if record.is_phase_ended() {
                return Ok(());
            }
            distances.iter_mut().for_each(HopProbe::look);
        }
        // A silent hop is probed again with the others, but not waited for.
        let silent = distances.iter().all(|distance| distance.times.is_empty());
        if silent {
            return Ok(());
        }
    }
    Ok(())
}

impl HopProbe {
    fn open(record: &PathRecord<'_>, peer: SocketAddr, hops: u8) -> Result<Self, String> {
        let to = SocketAddr::new(peer.ip(), FIRST_PORT + u16::from(hops));
        let target = &record.options.target;
        let options = UdpOptions { address: target.bind, device: target.device.clone(), ..UdpOptions::default() };
        let failed = |error: linerate_sys::Error| error.to_string();
        let socket = net::connect_udp(&options, to).map_err(failed)?;
        let probe_options = ProbeOptions { transmissions: false, path_errors: true };
        let socket = ProbeSocket::new(socket, probe_options).map_err(failed)?;
        Ok(Self { socket, to, hops, sent: None, times: Vec::new(), from: None, end: false })
    }

    fn send(&mut self) {
        let how = OutgoingDatagram { hop_limit: Some(self.hops), ..OutgoingDatagram::default() };
        let now = clock::monotonic_now();
        self.sent = self.socket.send(&[0; 32], &how).is_ok().then_some(now);
    }

    fn look(&mut self) {
        for error in self.socket.path_errors().unwrap_or_default() {
            self.take(&error);
        }
    }

    fn take(&mut self, error: &PathError) {
        let (Some(from), Some(sent)) = (error.reporter, self.sent.take()) else { return };
        self.times.push(error.arrived.monotonic.since(sent));
        self.from = Some(from);
        self.end = error.kind != PathErrorKind::TimeExceeded || from == self.to.ip();
    }

    fn hop(self) -> PathHop {
        PathHop {
            distance: self.hops,
            address: self.from.map(|from| from.to_string()),
            rtt: convert::distribution(&self.times),
        }
    }
}
