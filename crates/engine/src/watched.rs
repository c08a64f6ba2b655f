//! Watches a transfer that runs already, somebody else's, from this host alone.

use core::time::Duration;
use std::collections::BTreeMap;

use linerate_model::diagnosis::{Connection, Moment, Observation};
use linerate_model::sample::SocketSample;
use linerate_model::socket::{FlowKey, ProcessId, SocketReading};
use linerate_model::tcp_info::TcpInfo;
use linerate_sys::signals::Interrupts;
use linerate_sys::sock_diag::{AddressPrefix, Owners, SocketFilter, SocketReader, States};
use linerate_sys::{Result, clock};
use linerate_units::{BitRate, ByteCount, MonotonicTime, Port};

use crate::course;
use crate::diagnose::READING;
use crate::host_watch::HostWatch;

/// Which connections.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Wanted {
    /// Those that this process has open.
    pub process: Option<ProcessId>,
    /// Those to or from these addresses.
    pub remote: Option<AddressPrefix>,
    /// Those with this port at either end.
    pub port: Option<Port>,
}

/// A transfer that was watched.
#[derive(Debug)]
pub struct Watched {
    /// What was seen of the connections on which data moved, in the direction in which most of it did.
    pub observation: Observation,
    /// Which connections these are.
    pub flows: Vec<FlowKey>,
    /// Whether this host is the sender.
    pub sends: bool,
}

/// Connections by their key, with each reading and its time.
type Readings = BTreeMap<FlowKey, Vec<(Duration, SocketReading)>>;

/// Watches for `time`, or until `stop`; `None` when no such connection moved data. Rates are told to `progress`.
pub fn watch(
    wanted: &Wanted,
    time: Duration,
    stop: Option<Interrupts>,
    progress: &mut dyn FnMut(Duration, BitRate),
) -> Result<Option<Watched>> {
    let filter = SocketFilter { port: wanted.port, remote: wanted.remote, ..SocketFilter::in_states(States::flows()) };
    let mut reader = Reader { sockets: SocketReader::new()?, owners: Owners::new(), wanted: *wanted };
    let start = clock::monotonic_now();
    let (mut readings, mut host, mut last) = (Readings::new(), None, ByteCount::ZERO);
    loop {
        let at = clock::monotonic_now().since(start);
        reader.read(&filter, at, &mut readings)?;
        let remote = readings.keys().next().map(|flow| flow.remote.ip());
        host = host.or_else(|| remote.map(HostWatch::start));
        let moved = moved(&readings, false).max(moved(&readings, true));
        progress(at, (moved - last).rate_over(READING));
        last = moved;
        let next = next_reading(start);
        if at >= time || course::wait_until(stop, next).is_err() {
            break;
        }
    }
    Ok(conclude(readings, host))
}

fn next_reading(start: MonotonicTime) -> MonotonicTime {
    let done = clock::monotonic_now().since(start).as_nanos() / READING.as_nanos();
    start + READING * u32::try_from(done + 1).unwrap_or(u32::MAX)
}

struct Reader {
    sockets: SocketReader,
    owners: Owners,
    wanted: Wanted,
}

impl Reader {
    fn read(&mut self, filter: &SocketFilter, at: Duration, readings: &mut Readings) -> Result<()> {
        let mut seen: Vec<SocketReading> = Vec::new();
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

/// What a connection has sent, or received.
fn total(info: &TcpInfo, sends: bool) -> ByteCount {
    let field = if sends { info.bytes_acknowledged } else { info.bytes_received };
    field.unwrap_or_default()
}

/// How much moved on one connection while it was watched.
fn moved_on(readings: &[(Duration, SocketReading)], sends: bool) -> ByteCount {
    let of = |(_, reading): &(Duration, SocketReading)| reading.info.as_ref().map(|info| total(info, sends));
    let pair = readings.first().and_then(of).zip(readings.last().and_then(of));
    pair.map_or(ByteCount::ZERO, |(first, last)| last - first)
}

fn moved(readings: &Readings, sends: bool) -> ByteCount {
    readings.values().map(|readings| moved_on(readings, sends)).sum()
}

fn conclude(mut readings: Readings, host: Option<HostWatch>) -> Option<Watched> {
    let (sent, received) = (moved(&readings, true), moved(&readings, false));
    let sends = sent >= received;
    let all = sent.max(received);
    // Connections that only keep a conversation up have no part in the transfer.
    readings.retain(|_, readings| readings.len() > 1 && moved_on(readings, sends).as_f64() > all.as_f64() / 100.0);
    if all.is_zero() || readings.is_empty() {
        return None;
    }
    let elapsed = readings.values().filter_map(|readings| readings.last()?.0.checked_sub(readings.first()?.0)).max();
    let control = readings.values().flatten().find_map(|(_, reading)| reading.congestion_control);
    let evidence = host.map(|host| host.finish(None));
    let connection = |readings: &Vec<(Duration, SocketReading)>| {
        let moments = moments(readings, sends);
        if sends {
            Connection { sender: moments, ..Connection::default() }
        } else {
            Connection { receiver: moments, ..Connection::default() }
        }
    };
    let observation = Observation {
        elapsed: elapsed.unwrap_or_default(),
        received: all,
        congestion_control: control.map(|name| name.to_string()).filter(|_| sends),
        connections: readings.values().map(connection).collect(),
        sender: evidence.clone().filter(|_| sends),
        receiver: evidence.filter(|_| !sends),
        ..Observation::default()
    };
    Some(Watched { observation, flows: readings.into_keys().collect(), sends })
}

/// The readings after the first, with what happened before it taken off the totals.
fn moments(readings: &[(Duration, SocketReading)], sends: bool) -> Vec<Moment> {
    let Some((begin, first)) = readings.first() else { return Vec::new() };
    let before = first.info.clone().unwrap_or_default();
    let of = |pair: &[(Duration, SocketReading)]| {
        let ((from, earlier), (to, now)) = (&pair[0], &pair[1]);
        let info = now.info.as_ref()?;
        Some(Moment {
            from: from.saturating_sub(*begin),
            to: to.saturating_sub(*begin),
            bytes: total(info, sends) - total(earlier.info.as_ref()?, sends),
            socket: SocketSample { info: since(info, &before), memory: now.memory },
        })
    };
    readings.windows(2).filter_map(of).collect()
}

/// Totals since an earlier reading; everything else as it is.
fn since(info: &TcpInfo, before: &TcpInfo) -> TcpInfo {
    macro_rules! grown {
        ($($field:ident),*) => {
            TcpInfo { $($field: info.$field.map(|now| now - before.$field.unwrap_or_default()),)* ..info.clone() }
        };
    }
    grown!(
        retransmits,
        bytes_sent,
        bytes_retransmitted,
        bytes_acknowledged,
        bytes_received,
        data_segments_sent,
        reordering_seen,
        duplicate_sacks,
        delivered_with_congestion_mark
    )
}

#[cfg(test)]
mod tests {
    use linerate_units::SegmentCount;

    use super::*;

    #[test]
    fn totals_begin_with_the_first_reading() {
        let reading = |bytes: u64, again: u64| TcpInfo {
            bytes_sent: Some(ByteCount::new(bytes)),
            retransmits: Some(SegmentCount::new(again)),
            rtt: Some(Duration::from_millis(20)),
            ..TcpInfo::default()
        };
        let grown = since(&reading(5000, 7), &reading(2000, 3));
        assert_eq!((grown.bytes_sent, grown.retransmits), (Some(ByteCount::new(3000)), Some(SegmentCount::new(4))));
        assert_eq!((grown.rtt, grown.bytes_acknowledged), (Some(Duration::from_millis(20)), None));
        // A kernel that is too old to tell says nothing, not zero.
        assert_eq!(since(&TcpInfo::default(), &reading(1, 1)).bytes_sent, None);
    }
}
