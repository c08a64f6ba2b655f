//! ICMP echoes: round trips to any host, and the largest packet that is answered.

use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use linerate_analysis::path_mtu::{PathMtuSearch, PathMtuStep, RoundOutcome};
use linerate_model::path::PathMtu;
use linerate_sys::clock;
use linerate_sys::error_queue::PathErrorKind;
use linerate_sys::icmp::{EchoEvent, EchoOptions, EchoSocket};
use linerate_units::{ByteCount, MonotonicTime, Mtu, PacketCount};

use super::linerate::{BOTH_DIRECTIONS, interface_mtu};
use super::mtu;
use super::record::PathRecord;
use crate::phases::AbortReason;
use crate::probe::ProbeTarget;

/// Payload of an echo for round trips, as sent by `ping`.
const PAYLOAD: usize = 56;

/// Timeout of an echo.
const PATIENCE: Duration = Duration::from_secs(1);

/// Longest delay until a signal is noticed.
const LOOK: Duration = Duration::from_millis(200);

/// Socket for echoes to the target of a measurement.
fn open_for(target: &ProbeTarget, peer: SocketAddr, dont_fragment: bool) -> Result<EchoSocket, String> {
    match target.unreachable_reason() {
        Some(reason) => Err(reason.to_owned()),
        None => open(peer, target.bind, target.device.clone(), dont_fragment),
    }
}

fn open(
    peer: SocketAddr,
    bind: Option<IpAddr>,
    device: Option<String>,
    dont_fragment: bool,
) -> Result<EchoSocket, String> {
    let options = EchoOptions { source: bind, device, dont_fragment, ..EchoOptions::default() };
    EchoSocket::open(peer, &options).map_err(|error| error.to_string())
}

/// Sends echoes until `done`; returns the round trips.
pub(super) fn until(
    done: &AtomicBool,
    peer: SocketAddr,
    bind: Option<IpAddr>,
    device: Option<String>,
    interval: Duration,
) -> Result<Vec<Duration>, String> {
    let socket = open(peer, bind, device, false)?;
    ask(socket, interval, || !done.load(Ordering::Acquire))
}

/// Sends echoes for some time.
pub(super) fn measure(
    record: &PathRecord<'_>,
    peer: SocketAddr,
    interval: Duration,
    time: Duration,
) -> Result<Result<Vec<Duration>, String>, AbortReason> {
    let socket = match open_for(&record.options.target, peer, false) {
        Ok(socket) => socket,
        Err(reason) => return Ok(Err(reason)),
    };
    let end = clock::monotonic_now() + time;
    let readings = ask(socket, interval, || clock::monotonic_now() < end && record.check().is_ok());
    record.check()?;
    Ok(readings)
}

fn ask(mut socket: EchoSocket, interval: Duration, go_on: impl Fn() -> bool) -> Result<Vec<Duration>, String> {
    let failed =
        |error: std::io::Error| format!("sending an ICMP echo request: {}", linerate_sys::describe_os_error(&error));
    let mut round_trips = Vec::new();
    let mut next = clock::monotonic_now();
    let mut last_sent = next;
    loop {
        let now = clock::monotonic_now();
        let going_on = go_on();
        if !going_on && (socket.outstanding() == 0 || now > last_sent + PATIENCE) {
            return Ok(round_trips);
        }
        if going_on && now >= next {
            // An error belongs to an earlier request or a full queue: the next request may succeed.
            if socket.send(&[0; PAYLOAD]).is_ok() {
                last_sent = now;
            }
            next = next + interval;
        }
        let until = if going_on { next } else { last_sent + PATIENCE };
        let left = until.since(clock::monotonic_now()).clamp(Duration::from_millis(1), LOOK);
        if let Some(EchoEvent::Reply(reply)) = socket.next_event(Some(left)).map_err(failed)? {
            round_trips.extend(reply.round_trip());
        }
    }
}

/// Path MTU by echoes with the don't-fragment bit. The answers must return, so that a far host that does not fragment
/// them may limit the result to the path MTU of the opposite direction.
pub(super) fn path_mtu(
    record: &mut PathRecord<'_>,
    peer: SocketAddr,
    round_trip: Duration,
) -> Result<Option<PathMtu>, AbortReason> {
    if !record.options.path_mtu {
        record.unknown("up.mtu", mtu::SWITCHED_OFF);
        return Ok(None);
    }
    let mut socket = match open_for(&record.options.target, peer, true) {
        Ok(socket) => socket,
        Err(reason) => {
            record.unknown("up.mtu", reason);
            return Ok(None);
        }
    };
    let interface = interface_mtu(peer).0;
    let headers = ByteCount::new(if peer.is_ipv6() { 48 } else { 28 });
    let most = interface.unwrap_or(Mtu::new(1500)).min(Mtu::new(65_535));
    let control = Mtu::new(u32::try_from(headers.get()).unwrap_or(48) + 56);
    let mut search = PathMtuSearch::new(control, most);
    loop {
        match search.next() {
            PathMtuStep::Send(sizes) => {
                record.check()?;
                let all: Vec<Mtu> = [control].into_iter().chain(sizes.iter().copied()).collect();
                for direction in BOTH_DIRECTIONS {
                    record.count_traffic(direction, all.iter().map(|size| size.byte_count()).sum());
                }
                let (sent, arrived) = echo_round(&mut socket, &all, headers, round_trip, &mut search);
                let came = |size: &Mtu| arrived.contains(size);
                search.finish_round(&RoundOutcome {
                    sent: sizes.iter().copied().filter(|size| sent.contains(size)).collect(),
                    arrived: sizes.iter().copied().filter(came).collect(),
                    controls_sent: PacketCount::new(1),
                    controls_arrived: PacketCount::new(u64::from(came(&control))),
                });
            }
            PathMtuStep::NothingArrives => {
                record.unknown("up.mtu", "no ICMP echo was answered");
                return Ok(None);
            }
            PathMtuStep::Found(found) => {
                record.note(
                    "The path MTU up is that of ICMP echoes and their answers: a smaller path MTU down may \
                     limit it.",
                );
                return Ok(Some(PathMtu {
                    bytes: found.mtu.get().into(),
                    black_hole_bytes: found.black_hole().map(|size| size.get().into()),
                    icmp_bytes: found.icmp_mtu.map(|mtu| mtu.get().into()),
                    interface_bytes: interface.map(|mtu| mtu.get().into()),
                    limited_by_interface: found.mtu == most,
                }));
            }
        }
    }
}

/// Sends an echo of each size; returns the sizes sent and those answered.
fn echo_round(
    socket: &mut EchoSocket,
    sizes: &[Mtu],
    headers: ByteCount,
    round_trip: Duration,
    search: &mut PathMtuSearch,
) -> (Vec<Mtu>, Vec<Mtu>) {
    let mut sent = BTreeMap::new();
    for size in sizes {
        let payload = vec![0; (size.byte_count() - headers).to_usize()];
        match socket.send(&payload) {
            Ok(number) => {
                sent.insert(number, *size);
            }
            Err(_) => search.record_refusal(),
        }
    }
    let mut arrived = Vec::new();
    let end: MonotonicTime = clock::monotonic_now() + round_trip * 2 + Duration::from_millis(300);
    while arrived.len() < sent.len() {
        let left = end.since(clock::monotonic_now());
        if left.is_zero() {
            break;
        }
        match socket.next_event(Some(left)) {
            Ok(Some(EchoEvent::Reply(reply))) => {
                let size = sent.get(&reply.number).copied();
                arrived.extend(size.filter(|size| reply.size + headers == size.byte_count()));
            }
            Ok(Some(EchoEvent::PathError { error, .. })) => {
                if let PathErrorKind::TooBig { mtu } = error.kind {
                    match mtu {
                        Some(mtu) => search.record_hint(mtu),
                        None => search.record_refusal(),
                    }
                }
            }
            Ok(None) | Err(_) => break,
        }
    }
    (sent.into_values().collect(), arrived)
}
