//! Watches a foreign transfer in progress, from this host alone.

use core::time::Duration;
use std::collections::BTreeMap;

use linerate_model::diagnosis::{ObservedConnection, SocketInterval, TransferObservation};
use linerate_model::sample::SocketSample;
use linerate_model::socket::{FlowKey, ProcessId, SocketSnapshot};
use linerate_model::tcp_info::TcpInfo;
use linerate_sys::signals::InterruptSignals;
use linerate_sys::sock_diag::{AddressPrefix, SocketFilter, SocketOwners, SocketReader, SocketStates};
use linerate_sys::{Result, clock};
use linerate_units::{BitRate, ByteCount, MonotonicTime, Port};

use crate::diagnose::SAMPLING_INTERVAL;
use crate::host_watch::HostWatch;
use crate::phases;

/// Selection of connections.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WatchFilter {
    /// Only connections that this process has open.
    pub process: Option<ProcessId>,
    /// Only connections with this remote prefix.
    pub remote: Option<AddressPrefix>,
    /// Only connections with this port at either end.
    pub port: Option<Port>,
    /// Trace the kernel's events about that process.
    pub kernel_events: bool,
}

impl WatchFilter {
    /// Process whose kernel events are traced: without one, this process stands in and no wait is its own.
    fn traced_process(&self) -> Option<ProcessId> {
        let process = self.process.unwrap_or_else(|| ProcessId(std::process::id()));
        self.kernel_events.then_some(process)
    }
}

/// A watched transfer.
#[derive(Debug)]
pub struct WatchedTransfer {
    /// Observation of the active connections, in the direction that carried most data.
    pub observation: TransferObservation,
    /// The connections.
    pub flows: Vec<FlowKey>,
    /// True when this host is the sender.
    pub sends: bool,
}

/// Samples of each connection with their times, by key.
type ConnectionSamples = BTreeMap<FlowKey, Vec<(Duration, SocketSnapshot)>>;

/// Watches for `time`, or until `stop`; `None` when no such connection moved data. `progress` receives the rates.
pub fn watch(
    wanted: &WatchFilter,
    time: Duration,
    stop: Option<InterruptSignals>,
    progress: &mut dyn FnMut(Duration, BitRate),
) -> Result<Option<WatchedTransfer>> {
    let filter =
        SocketFilter { port: wanted.port, remote: wanted.remote, ..SocketFilter::in_states(SocketStates::flows()) };
    let mut reader = ConnectionSampler { sockets: SocketReader::new()?, owners: SocketOwners::new(), wanted: *wanted };
    let start = clock::monotonic_now();
    let (mut readings, mut host, mut last) = (ConnectionSamples::new(), None, ByteCount::ZERO);
    loop {
        let at = clock::monotonic_now().since(start);
        reader.read(&filter, at, &mut readings)?;
        let remote = readings.keys().next().map(|flow| flow.remote);
        host = host.or_else(|| remote.map(|remote| HostWatch::of_process(remote, wanted.traced_process())));
        if let Some(host) = &mut host {
            host.sample(clock::monotonic_now());
        }
        let moved = moved(&readings, false).max(moved(&readings, true));
        progress(at, (moved - last).rate_over(SAMPLING_INTERVAL));
        last = moved;
        let next = next_reading(start);
        if at >= time || phases::wait_until(stop, next).is_err() {
            break;
        }
    }
    Ok(conclude(readings, host))
}

fn next_reading(start: MonotonicTime) -> MonotonicTime {
    let done = clock::monotonic_now().since(start).as_nanos() / SAMPLING_INTERVAL.as_nanos();
    start + SAMPLING_INTERVAL * u32::try_from(done + 1).unwrap_or(u32::MAX)
}

struct ConnectionSampler {
    sockets: SocketReader,
    owners: SocketOwners,
    wanted: WatchFilter,
}

impl ConnectionSampler {
    fn read(&mut self, filter: &SocketFilter, at: Duration, readings: &mut ConnectionSamples) -> Result<()> {
        let mut seen: Vec<SocketSnapshot> = Vec::new();
        self.sockets.read(filter, |reading| seen.push(reading))?;
        if let Some(process) = self.wanted.process {
            self.owners.refresh(seen.iter().filter_map(|reading| reading.inode));
            seen.retain(|reading| {
                self.owners.owner(reading.inode).known().is_some_and(|owner| owner.process == process)
            });
        }
        for reading in seen {
            readings.entry(reading.key).or_default().push((at, reading));
        }
        Ok(())
    }
}

/// Bytes that a connection has sent, or received.
fn total(info: &TcpInfo, sends: bool) -> ByteCount {
    let field = if sends { info.bytes_acknowledged } else { info.bytes_received };
    field.unwrap_or_default()
}

/// Bytes moved on one connection while it was watched.
fn bytes_moved_on(readings: &[(Duration, SocketSnapshot)], sends: bool) -> ByteCount {
    let of = |(_, reading): &(Duration, SocketSnapshot)| reading.info.as_ref().map(|info| total(info, sends));
    let pair = readings.first().and_then(of).zip(readings.last().and_then(of));
    pair.map_or(ByteCount::ZERO, |(first, last)| last - first)
}

fn moved(readings: &ConnectionSamples, sends: bool) -> ByteCount {
    readings.values().map(|readings| bytes_moved_on(readings, sends)).sum()
}

fn conclude(mut readings: ConnectionSamples, host: Option<HostWatch>) -> Option<WatchedTransfer> {
    let (sent, received) = (moved(&readings, true), moved(&readings, false));
    let sends = sent >= received;
    let all = sent.max(received);
    // Connections that only keep a session alive are no part of the transfer.
    readings
        .retain(|_, readings| readings.len() > 1 && bytes_moved_on(readings, sends).as_f64() > all.as_f64() / 100.0);
    if all.is_zero() || readings.is_empty() {
        return None;
    }
    let elapsed = readings.values().filter_map(|readings| readings.last()?.0.checked_sub(readings.first()?.0)).max();
    let control = readings.values().flatten().find_map(|(_, reading)| reading.congestion_control);
    let evidence = host.map(HostWatch::finish_for_another_program);
    let connection = |readings: &Vec<(Duration, SocketSnapshot)>| {
        let moments = moments(readings, sends);
        if sends {
            ObservedConnection { sender: moments, ..ObservedConnection::default() }
        } else {
            ObservedConnection { receiver: moments, ..ObservedConnection::default() }
        }
    };
    let observation = TransferObservation {
        elapsed: elapsed.unwrap_or_default(),
        received: all,
        congestion_control: control.map(|name| name.to_string()).filter(|_| sends),
        connections: readings.values().map(connection).collect(),
        sender: evidence.clone().filter(|_| sends),
        receiver: evidence.filter(|_| !sends),
        ..TransferObservation::default()
    };
    Some(WatchedTransfer { observation, flows: readings.into_keys().collect(), sends })
}

/// Samples after the first, with the totals of the first subtracted.
fn moments(readings: &[(Duration, SocketSnapshot)], sends: bool) -> Vec<SocketInterval> {
    let Some((begin, first)) = readings.first() else { return Vec::new() };
    let before = first.info.clone().unwrap_or_default();
    let of = |pair: &[(Duration, SocketSnapshot)]| {
        let ((from, earlier), (to, now)) = (&pair[0], &pair[1]);
        let info = now.info.as_ref()?;
        Some(SocketInterval {
            from: from.saturating_sub(*begin),
            to: to.saturating_sub(*begin),
            bytes: total(info, sends) - total(earlier.info.as_ref()?, sends),
            socket: SocketSample { info: info.totals_since(&before), memory: now.memory },
        })
    };
    readings.windows(2).filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCAL: &str = "192.0.2.1:1";

    fn key(port: u16) -> FlowKey {
        let remote = std::net::SocketAddr::new(std::net::Ipv4Addr::new(192, 0, 2, 2).into(), port);
        let cookie = linerate_model::socket::SocketCookie(port.into());
        FlowKey { local: LOCAL.parse().expect("an address"), remote, cookie }
    }

    /// Samples of a connection, one each second: bytes acknowledged, and received.
    fn samples(port: u16, totals: &[(u64, u64)]) -> (FlowKey, Vec<(Duration, SocketSnapshot)>) {
        let snapshot = |(acknowledged, received): &(u64, u64)| SocketSnapshot {
            key: key(port),
            state: linerate_model::socket::TcpState::Established,
            user: linerate_model::socket::UserId(0),
            inode: None,
            receive_queue: ByteCount::ZERO,
            send_queue: ByteCount::ZERO,
            timer: None,
            info: Some(TcpInfo {
                bytes_acknowledged: Some(ByteCount::new(*acknowledged)),
                bytes_received: Some(ByteCount::new(*received)),
                ..TcpInfo::default()
            }),
            moment: linerate_model::socket::InstantTcpState::default(),
            memory: None,
            congestion_control: Some(linerate_model::socket::CongestionName::from_bytes(b"cubic")),
            congestion_state: None,
            type_of_service: None,
            mark: None,
            control_group: None,
        };
        let timed = (0..).map(Duration::from_secs).zip(totals.iter().map(snapshot));
        (key(port), timed.collect())
    }

    fn concluded(connections: &[(u16, &[(u64, u64)])]) -> Option<WatchedTransfer> {
        conclude(connections.iter().map(|(port, totals)| samples(*port, totals)).collect(), None)
    }

    #[test]
    fn the_direction_that_moved_more_is_the_transfer() {
        for (totals, sends, moved) in [
            (&[(1000, 5000), (9000, 6000)][..], true, 8000),
            (&[(1000, 5000), (2000, 6001)][..], false, 1001),
            (&[(0, 0), (700, 700)][..], true, 700),
        ] {
            let found = concluded(&[(1, totals)]).expect("it moved data");
            assert_eq!((found.sends, found.observation.received.get()), (sends, moved));
            assert_eq!(found.observation.elapsed, Duration::from_secs(1));
            let control = found.observation.congestion_control;
            assert_eq!(control.as_deref(), sends.then_some("cubic"), "a receiver's own has no effect");
            let one = &found.observation.connections[0];
            assert_eq!((one.sender.len(), one.receiver.len()), (usize::from(sends), usize::from(!sends)));
        }
    }

    #[test]
    fn connections_that_only_keep_a_session_alive_are_left_out() {
        let found = concluded(&[
            (1, &[(0, 0), (60_000, 0), (90_000, 0)]),
            (2, &[(0, 0), (500, 0), (1000, 0)]),
            (3, &[(0, 0), (5000, 0), (9000, 0)]),
            (4, &[(7, 0)]),
        ]);
        let found = found.expect("they moved data");
        assert_eq!(found.flows, [key(1), key(3)], "1000 bytes are one percent of all, and one sample shows nothing");
        assert_eq!(found.observation.received, ByteCount::new(100_000));
        let intervals: Vec<u64> =
            found.observation.connections[0].sender.iter().map(|interval| interval.bytes.get()).collect();
        assert_eq!(intervals, [60_000, 30_000]);
    }

    #[test]
    fn without_data_there_is_no_transfer() {
        assert!(concluded(&[]).is_none());
        assert!(concluded(&[(1, &[(500, 700), (500, 700)])]).is_none());
        assert!(concluded(&[(1, &[(500, 700)])]).is_none());
    }

    #[test]
    fn intervals_begin_with_the_first_sample() {
        let (_, mut timed) = samples(1, &[(100, 0), (400, 0), (900, 0)]);
        for (time, _) in &mut timed {
            *time += Duration::from_secs(60);
        }
        timed[1].1.info = None;
        let (_, complete) = samples(1, &[(100, 0), (400, 0)]);
        let found = moments(&complete, true);
        assert_eq!((found[0].from, found[0].to), (Duration::ZERO, Duration::from_secs(1)));
        assert_eq!(found[0].socket.info.bytes_acknowledged, Some(ByteCount::new(300)));
        assert!(moments(&timed, true).is_empty(), "an interval needs both of its samples");
    }
}
