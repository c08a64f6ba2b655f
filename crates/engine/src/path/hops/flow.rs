//! A flow: its socket, its probes in flight, and the attribution of answers to them.

use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr};

use linerate_model::route::MplsLabel;
use linerate_sys::clock;
use linerate_sys::data::probe_socket::{OutgoingDatagram, ProbeOptions, ProbeSocket};
use linerate_sys::error_queue::{PathError, PathErrorKind};
use linerate_sys::net::{self, UdpOptions};
use linerate_units::{MonotonicTime, Port};
use linerate_wire::hop_probe::HopProbe;
use linerate_wire::icmp_extension::mpls_labels;

use crate::path::record::PathRecord;

/// Time after which an unanswered probe is forgotten.
const MAX_FLIGHT: Duration = Duration::from_secs(5);

/// Time after which a flow goes on that waits for each answer.
const SERIAL_PATIENCE: Duration = Duration::from_millis(500);

/// Length of a probe's payload; that of `traceroute` is similar.
const PAYLOAD: usize = 32;

/// Answer to a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HopAnswer {
    pub(super) round: u32,
    pub(super) distance: u8,
    pub(super) from: IpAddr,
    pub(super) kind: PathErrorKind,
    pub(super) sent: MonotonicTime,
    pub(super) round_trip: Duration,
    pub(super) labels: Vec<MplsLabel>,
}

/// Socket with probes of one run.
#[derive(Debug)]
pub(super) struct HopFlow {
    socket: ProbeSocket,
    run: u32,
    index: u16,
    /// Probes in flight by round and distance.
    in_flight: BTreeMap<(u32, u8), MonotonicTime>,
    /// Probes to be sent.
    queue: VecDeque<(u32, u8)>,
    /// True since a report that quotes no payload: from then on the next probe waits for the answer to the one before.
    is_serial: bool,
    /// Address that answered last at each distance.
    pub(super) latest: BTreeMap<u8, IpAddr>,
    /// Distance of the destination over this flow.
    pub(super) end: Option<u8>,
}

/// First source port of the flows, above those that kernels choose: a later run has the same flows, and so the same routes.
const FIRST_SOURCE: u16 = 61_000;

/// UDP socket of the flow with this index, whose ICMP errors are reported.
pub(super) fn open(record: &PathRecord<'_>, peer: SocketAddr, index: u16) -> Result<ProbeSocket, String> {
    let target = &record.options.target;
    let free = UdpOptions { address: target.bind, device: target.device.clone(), ..UdpOptions::default() };
    let own = UdpOptions { port: Port::new(FIRST_SOURCE + index % 1000), ..free.clone() };
    let failed = |error: linerate_sys::Error| error.to_string();
    // Another run on this host has the port.
    let socket = net::connect_udp(&own, peer).or_else(|_| net::connect_udp(&free, peer)).map_err(failed)?;
    ProbeSocket::new(socket, ProbeOptions { transmissions: false, path_errors: true }).map_err(failed)
}

impl HopFlow {
    pub(super) fn new(socket: ProbeSocket, run: u32, index: u16) -> Self {
        Self {
            socket,
            run,
            index,
            in_flight: BTreeMap::new(),
            queue: VecDeque::new(),
            is_serial: false,
            latest: BTreeMap::new(),
            end: None,
        }
    }

    pub(super) fn enqueue(&mut self, round: u32, distance: u8) {
        self.queue.push_back((round, distance));
    }

    /// Its socket, for probes of sizes over the same route.
    pub(super) const fn socket(&self) -> &ProbeSocket {
        &self.socket
    }

    /// Sends what may be sent now; returns the rounds and distances, and the first error.
    pub(super) fn send(&mut self) -> (Vec<(u32, u8)>, Option<io::Error>) {
        let (mut sent, mut failure) = (Vec::new(), None);
        let now = clock::monotonic_now();
        self.in_flight.retain(|_, at| now.since(*at) < MAX_FLIGHT);
        while let Some((round, distance)) = self.queue.front().copied() {
            let waits = self.in_flight.values().any(|at| now.since(*at) < SERIAL_PATIENCE);
            if self.is_serial && waits {
                break;
            }
            self.queue.pop_front();
            let now = clock::monotonic_now();
            match self.send_one(round, distance) {
                Ok(()) => {
                    self.in_flight.insert((round, distance), now);
                    sent.push((round, distance));
                }
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        (sent, failure)
    }

    fn send_one(&self, round: u32, distance: u8) -> io::Result<()> {
        let probe = HopProbe { run: self.run, round, flow: self.index, distance };
        let mut payload = [0; PAYLOAD];
        payload[..HopProbe::LENGTH].copy_from_slice(&probe.encode());
        let how = OutgoingDatagram { hop_limit: Some(distance), ..OutgoingDatagram::default() };
        self.socket.send(&payload, &how).map(drop)
    }

    /// Answers that have come.
    pub(super) fn answers(&mut self) -> Vec<HopAnswer> {
        let errors = self.socket.path_errors().unwrap_or_default();
        errors.iter().filter_map(|error| self.answer(error)).collect()
    }

    fn answer(&mut self, error: &PathError) -> Option<HopAnswer> {
        let from = error.reporter?;
        let key = match HopProbe::parse(&error.quoted) {
            Some(probe) => {
                (probe.run == self.run && probe.flow == self.index).then_some((probe.round, probe.distance))?
            }
            None => self.guess(from)?,
        };
        let sent = self.in_flight.remove(&key)?;
        Some(HopAnswer {
            round: key.0,
            distance: key.1,
            from,
            kind: error.kind,
            sent,
            round_trip: error.arrived.monotonic.since(sent),
            labels: mpls_labels(&error.extensions).unwrap_or_default(),
        })
    }

    /// Probe of a report that quotes no payload: the only one in flight, else the only one to a distance at which this
    /// address has answered before.
    fn guess(&mut self, from: IpAddr) -> Option<(u32, u8)> {
        self.is_serial = true;
        let only = |mut keys: Vec<(u32, u8)>| if keys.len() == 1 { keys.pop() } else { None };
        let known = self.in_flight.keys().filter(|(_, distance)| self.latest.get(distance) == Some(&from));
        only(self.in_flight.keys().copied().collect()).or_else(|| only(known.copied().collect()))
    }

    /// True while a probe waits to be sent, or for an answer from a distance that has answered before, for at most `patience`.
    pub(super) fn is_waiting(&self, patience: Duration) -> bool {
        let now = clock::monotonic_now();
        let answers = |distance: &u8| self.latest.contains_key(distance);
        let waits = |(key, at): (&(u32, u8), &MonotonicTime)| answers(&key.1) && now.since(*at) < patience;
        !self.queue.is_empty() || self.in_flight.iter().any(waits)
    }

    /// Distances of probes in flight that may still be answered within `patience`.
    pub(super) fn pending(&self, patience: Duration) -> impl Iterator<Item = u8> {
        let now = clock::monotonic_now();
        self.in_flight.iter().filter(move |(_, at)| now.since(**at) < patience).map(|((_, distance), _)| *distance)
    }

    /// True when a probe of this round to this distance is neither answered nor queued any more.
    pub(super) fn is_in_flight(&self, round: u32, distance: u8) -> bool {
        self.in_flight.contains_key(&(round, distance)) || self.queue.contains(&(round, distance))
    }
}
