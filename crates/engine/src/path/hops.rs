//! Who answers on the way: datagrams whose hop limit ends at the first router, the second one, and so on.
//!
//! Each distance has a socket of its own, so that an answer is known by the port that it came to even where a router
//! quotes no more than the header of what it threw away.

use core::time::Duration;
use std::net::{IpAddr, SocketAddr};

use linerate_model::schema::path::Hop;
use linerate_sys::clock;
use linerate_sys::data::probe_socket::{Outgoing, ProbeOptions, ProbeSocket};
use linerate_sys::error_queue::{PathError, PathErrorKind};
use linerate_sys::net::{self, UdpOptions};
use linerate_units::MonotonicTime;

use super::convert;
use super::record::Record;
use crate::course::Halt;

/// Ports that nobody uses, as traceroute has chosen them.
const FIRST_PORT: u16 = 33_434;

/// Longest path that is looked at.
const MOST: u8 = 30;

/// Distances that are tried at once.
const AT_ONCE: u8 = 8;

/// Datagrams for each distance.
const PROBES: usize = 3;

/// After so many silent distances the far host itself seems not to answer.
const MOST_SILENT: usize = 5;

/// Longest wait for the answers of one round.
const PATIENCE: Duration = Duration::from_millis(800);

/// One distance.
struct Distance {
    socket: ProbeSocket,
    to: SocketAddr,
    hops: u8,
    sent: Option<MonotonicTime>,
    times: Vec<Duration>,
    from: Option<IpAddr>,
    /// Whether the far host itself, or a firewall before it, ended the way there.
    end: bool,
}

/// Measures; `routers` is how many there are, where that is known from what is left of hop limits.
pub(super) fn measure(record: &mut Record<'_>, peer: SocketAddr, routers: Option<u8>) -> Result<(), Halt> {
    let most = routers.unwrap_or(MOST).min(MOST);
    let mut hops: Vec<Hop> = Vec::new();
    let mut reached = false;
    let mut first = 1;
    while first <= most && !reached {
        let last = most.min(first + AT_ONCE - 1);
        let opened: Result<Vec<Distance>, String> =
            (first..=last).map(|hops| Distance::open(record, peer, hops)).collect();
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
        if silent >= MOST_SILENT && routers.is_none() {
            hops.truncate(hops.len() - silent);
            record.note("Beyond the last hop shown nobody answers, not even the host.");
            break;
        }
        first = last + 1;
    }
    if let Some(routers) = routers {
        hops.push(Hop {
            distance: routers.saturating_add(1),
            address: Some(peer.ip().to_string()),
            rtt: record.document.rtt.best,
        });
    }
    record.document.hops = hops;
    Ok(())
}

fn rounds(record: &Record<'_>, distances: &mut [Distance]) -> Result<(), Halt> {
    for _ in 0..PROBES {
        for distance in &mut *distances {
            distance.send();
        }
        let end = clock::monotonic_now() + PATIENCE;
        while distances.iter().any(|distance| distance.sent.is_some()) && clock::monotonic_now() < end {
            record.wait(Duration::from_millis(5))?;
            distances.iter_mut().for_each(Distance::look);
        }
        // Whoever was silent once is asked again with the others, but waited for no longer.
        let silent = distances.iter().all(|distance| distance.times.is_empty());
        if silent {
            return Ok(());
        }
    }
    Ok(())
}

impl Distance {
    fn open(record: &Record<'_>, peer: SocketAddr, hops: u8) -> Result<Self, String> {
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
        let how = Outgoing { hop_limit: Some(self.hops), ..Outgoing::default() };
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

    fn hop(self) -> Hop {
        Hop {
            distance: self.hops,
            address: self.from.map(|from| from.to_string()),
            rtt: convert::distribution(&self.times),
        }
    }
}
