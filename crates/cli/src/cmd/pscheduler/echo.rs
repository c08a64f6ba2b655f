//! Tests by ICMP echoes: round trips, the routers of the path, and the path MTU.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use linerate_engine::path::{self, PathOptions};
use linerate_engine::probe::ProbeTarget;
use linerate_fleet::pscheduler::{
    DEFAULT_COUNT, DEFAULT_HOPS, HOPS_AT_ONCE, RoundTrip, SpecValues, TraceHop, mtu_result, probe_wait, rtt_result,
    trace_result,
};
use linerate_sys::clock::{monotonic_now, sleep_until};
use linerate_sys::error_queue::PathErrorKind;
use linerate_sys::icmp::{EchoEvent, EchoOptions, EchoSocket};
use linerate_units::{MonotonicTime, Mtu, PacketCount, Port, TypeOfService};
use serde_json::Value;

use super::endpoints::{self, TestEndpoints};

/// Bytes of an ICMP header.
const ICMP_HEADER: u64 = 8;

/// Payload of an echo, as ping's.
const DEFAULT_LENGTH: u16 = 56;

/// Bytes of a probe of traceroute, headers included.
const DEFAULT_TRACE_LENGTH: u16 = 60;

/// Packets by which the search for the path MTU learns the round trip.
const MTU_PROBES: u64 = 20;

fn open(endpoints: &TestEndpoints, spec: &SpecValues, hop_limit: Option<u8>) -> Result<EchoSocket, String> {
    let options = EchoOptions {
        source: endpoints.local,
        type_of_service: spec.ip_tos.map(TypeOfService::new),
        hop_limit,
        dont_fragment: spec.fragment == Some(false),
        ..EchoOptions::default()
    };
    EchoSocket::open(endpoints.remote, &options).map_err(|cause| cause.to_string())
}

/// Test `rtt`.
pub(super) fn round_trips(spec: &SpecValues) -> Result<Value, String> {
    let endpoints = endpoints::find(spec, Port::IPERF3)?;
    let socket = open(&endpoints, spec, spec.ttl)?;
    let mut series = EchoSeries { socket, trips: Vec::new(), duplicates: 0, reordered: 0, latest: 0 };
    let count = spec.count.unwrap_or(DEFAULT_COUNT) as usize;
    let interval = spec.interval.unwrap_or(Duration::from_secs(1));
    let payload = vec![0; usize::from(spec.length.unwrap_or(DEFAULT_LENGTH))];
    let begin = monotonic_now();
    let deadline = spec.deadline.map(|deadline| begin + deadline);
    let is_over = || deadline.is_some_and(|deadline| monotonic_now() >= deadline);
    let mut next = begin;
    while series.trips.len() < count && !is_over() {
        series.send(&payload);
        next = next + interval;
        let until = if series.trips.len() == count {
            monotonic_now() + spec.timeout.unwrap_or(Duration::from_secs(2))
        } else {
            next
        };
        series.receive(deadline.map_or(until, |deadline| until.min(deadline)), series.trips.len() == count)?;
    }
    Ok(rtt_result(&series.trips, series.duplicates, series.reordered))
}

struct EchoSeries {
    socket: EchoSocket,
    trips: Vec<RoundTrip>,
    duplicates: u64,
    reordered: u64,
    /// Highest number that was answered.
    latest: u64,
}

impl EchoSeries {
    /// Sends the next request; one that this host refuses has its error.
    fn send(&mut self, payload: &[u8]) {
        let sent = self.socket.send(payload);
        let error = sent.err().map(|cause| refusal_name(&cause));
        self.trips.push(RoundTrip { error, ..RoundTrip::default() });
    }

    /// Takes answers until a time, or until none is missing.
    fn receive(&mut self, until: MonotonicTime, ends_when_complete: bool) -> Result<(), String> {
        loop {
            let is_complete = self.trips.iter().all(|trip| trip.time.is_some() || trip.error.is_some());
            let left = until.since(monotonic_now());
            if left.is_zero() || (ends_when_complete && is_complete) {
                return Ok(());
            }
            let event =
                self.socket.next_event(Some(left)).map_err(|cause| format!("receiving ICMP echoes: {cause}"))?;
            match event {
                None => return Ok(()),
                Some(EchoEvent::Reply(reply)) => {
                    let index = usize::try_from(reply.number).unwrap_or(usize::MAX);
                    let Some(trip) = self.trips.get_mut(index) else { continue };
                    if trip.time.is_some() {
                        self.duplicates += 1;
                        continue;
                    }
                    self.reordered += u64::from(reply.number < self.latest);
                    self.latest = self.latest.max(reply.number);
                    *trip = RoundTrip {
                        address: Some(reply.source.to_string()),
                        bytes: Some(reply.size.get() + ICMP_HEADER),
                        hop_limit: reply.hop_limit,
                        time: reply.round_trip(),
                        error: None,
                    };
                }
                Some(EchoEvent::PathError { number, error, .. }) => {
                    let index = number.and_then(|number| usize::try_from(number).ok());
                    if let Some(trip) = index.and_then(|index| self.trips.get_mut(index)) {
                        trip.error = Some(error_name(error.kind).unwrap_or("host-unreachable"));
                    }
                }
            }
        }
    }
}

/// Name of a report in pScheduler; `None` for the answer of a router on the path.
fn error_name(kind: PathErrorKind) -> Option<&'static str> {
    match kind {
        PathErrorKind::TimeExceeded => None,
        PathErrorKind::TooBig { .. } => Some("fragmentation-needed-and-df-set"),
        PathErrorKind::PortUnreachable => Some("port-unreachable"),
        PathErrorKind::ProtocolUnreachable => Some("protocol-unreachable"),
        PathErrorKind::NetworkUnreachable => Some("net-unreachable"),
        PathErrorKind::Prohibited => Some("communication-administratively-prohibited"),
        _ => Some("host-unreachable"),
    }
}

/// Name of this host's own refusal.
fn refusal_name(cause: &io::Error) -> &'static str {
    match cause.kind() {
        io::ErrorKind::NetworkUnreachable => "net-unreachable",
        io::ErrorKind::PermissionDenied => "communication-administratively-prohibited",
        _ => "host-unreachable",
    }
}

/// Test `trace`: several hops at the same time, until the destination or the last router answers.
pub(super) fn trace(spec: &SpecValues) -> Result<Value, String> {
    let endpoints = endpoints::find(spec, Port::IPERF3)?;
    let mut socket = open(&endpoints, spec, None)?;
    let headers: u16 = if endpoints.remote.is_ipv6() { 48 } else { 28 };
    let payload = vec![0; usize::from(spec.length.unwrap_or(DEFAULT_TRACE_LENGTH).saturating_sub(headers))];
    let last = spec.hops.unwrap_or(DEFAULT_HOPS);
    let mut hops: Vec<TraceHop> = Vec::new();
    let mut first = spec.first_ttl.unwrap_or(1);
    loop {
        let round = first..=last.min(first.saturating_add(u8::try_from(HOPS_AT_ONCE - 1).unwrap_or(7)));
        let begin = hops.len();
        for limit in round.clone() {
            socket.set_hop_limit(limit).map_err(|cause| cause.to_string())?;
            let error = socket.send(&payload).err().map(|cause| refusal_name(&cause));
            hops.push(TraceHop { error, ..TraceHop::default() });
            sleep_until(monotonic_now() + spec.sendwait.unwrap_or_default());
        }
        let end = collect(&mut socket, &mut hops, begin, endpoints.remote, monotonic_now() + probe_wait(spec))?;
        if let Some(end) = end {
            hops.truncate(end + 1);
            break;
        }
        if *round.end() >= last {
            break;
        }
        first = round.end() + 1;
    }
    Ok(trace_result(&hops))
}

/// Takes answers until a time, or until none is missing before the end of the path; returns the index of that end.
fn collect(
    socket: &mut EchoSocket,
    hops: &mut [TraceHop],
    begin: usize,
    remote: SocketAddr,
    until: MonotonicTime,
) -> Result<Option<usize>, String> {
    loop {
        let end = hops
            .iter()
            .position(|hop| hop.error.is_some() || hop.address.as_deref() == Some(&*remote.ip().to_string()));
        let wanted = end.map_or(hops.len(), |end| end + 1);
        let is_complete =
            hops[begin.min(wanted)..wanted].iter().all(|hop| hop.address.is_some() || hop.error.is_some());
        let left = until.since(monotonic_now());
        if left.is_zero() || is_complete {
            return Ok(end);
        }
        let event = socket.next_event(Some(left)).map_err(|cause| format!("receiving answers of routers: {cause}"))?;
        let (number, address, time, error): (Option<u64>, Option<IpAddr>, Option<Duration>, _) = match event {
            None => return Ok(end),
            Some(EchoEvent::Reply(reply)) => (Some(reply.number), Some(reply.source), reply.round_trip(), None),
            Some(EchoEvent::PathError { number, sent, error }) => {
                let time = sent.map(|sent| error.arrived.monotonic.since(sent.monotonic));
                (number, error.reporter, time, error_name(error.kind))
            }
        };
        let index = number.and_then(|number| usize::try_from(number).ok());
        if let Some(hop) = index.and_then(|index| hops.get_mut(index)).filter(|hop| hop.address.is_none()) {
            *hop = TraceHop { address: address.map(|address| address.to_string()), time, error };
        }
    }
}

/// Test `mtu`.
pub(super) fn path_mtu(spec: &SpecValues) -> Result<Value, String> {
    let endpoints = endpoints::find(spec, Port::IPERF3)?;
    let target = ProbeTarget {
        address: Some(endpoints.remote.ip().to_string()),
        bind: endpoints.local,
        without_server: true,
        ..ProbeTarget::new(spec.dest.as_deref().unwrap_or_default(), Port::IPERF3)
    };
    let options =
        PathOptions { count: PacketCount::new(MTU_PROBES), hops: false, capacity: false, ..PathOptions::new(target) };
    let outcome = path::run(&options, None, &mut |_| {});
    if let Some(mtu) = &outcome.document.up.mtu {
        return Ok(mtu_result(Mtu::new(u32::try_from(mtu.bytes).unwrap_or(u32::MAX))));
    }
    let unknown = outcome.document.unknown.iter().find(|unknown| unknown.key == "up.mtu");
    let reason = unknown.map(|unknown| unknown.reason.clone()).or_else(|| outcome.error.map(|error| error.to_string()));
    Err(reason.unwrap_or_else(|| "the path MTU could not be measured".to_owned()))
}
