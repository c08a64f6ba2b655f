//! Record of a session: bytes and `tcp_info` of the server's own sockets while they move data.

#[cfg(test)]
mod tests;

use core::time::Duration;
use std::sync::{Arc, Weak};

use linerate_model::diagnosis::{ObservedConnection, SocketInterval, TransferObservation};
use linerate_model::direction::Direction;
use linerate_model::flow::FlowLimit;
use linerate_model::sample::SocketSample;
use linerate_model::tcp_info::TcpInfo;
use linerate_rules::flow_state;
use linerate_sys::{options, socket_memory, tcp_info};
use linerate_units::{BitRate, ByteCount, MonotonicTime, Ratio};

use crate::connection::Connection;

/// Interval of the samples.
pub(crate) const SAMPLING_INTERVAL: Duration = Duration::from_millis(100);

/// Interval of those that are kept for the diagnosis, and the most of a connection.
const EVIDENCE_INTERVAL: Duration = Duration::from_millis(190);
const MAX_EVIDENCE: usize = 60;

/// Most connections of a phase with evidence, and in all.
const MAX_OBSERVED: usize = 8;
const MAX_CONNECTIONS: usize = 32;

/// Most points of a session.
const MAX_POINTS: usize = 1800;

/// Pause within which a direction's next transfer belongs to the same phase.
const MAX_PAUSE: Duration = Duration::from_secs(2);

/// Start of a phase that does not count: the connections' slow start.
pub(crate) const RAMP: Duration = Duration::from_secs(1);

/// Phases as long as this have a ramp.
const MIN_PHASE_WITH_RAMP: Duration = Duration::from_secs(3);

/// Sums over the connections of a phase at one time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SamplePoint {
    /// Since the session began.
    pub(crate) at: Duration,
    pub(crate) direction: Direction,
    /// Since the phase began.
    pub(crate) bytes: ByteCount,
    /// Mean of the smoothed round trips.
    pub(crate) rtt: Option<Duration>,
    pub(crate) congestion_window: Option<ByteCount>,
    pub(crate) retransmitted: Option<u64>,
}

/// A connection in a phase.
#[derive(Debug)]
struct ConnectionRecord {
    connection: Weak<Connection>,
    number: u64,
    base: TcpInfo,
    latest: TcpInfo,
    evidence: Vec<(MonotonicTime, SocketSample)>,
}

/// One phase: transfers in one direction.
#[derive(Debug)]
pub(crate) struct PhaseRecord {
    pub(crate) direction: Direction,
    pub(crate) started: MonotonicTime,
    /// Time of the last sample with data in transfer.
    pub(crate) ended: MonotonicTime,
    /// Pauses for the rate of the server, of all transfers.
    paused: Duration,
    /// Congestion control of the server's sockets.
    pub(crate) congestion_control: Option<String>,
    connections: Vec<ConnectionRecord>,
}

/// Record of a session.
#[derive(Debug)]
pub(crate) struct SessionRecord {
    started: MonotonicTime,
    pub(crate) points: Vec<SamplePoint>,
    /// In order of time; one for each direction.
    pub(crate) phases: Vec<PhaseRecord>,
}

/// Bytes that the server counts in this direction.
fn counted(info: &TcpInfo, direction: Direction) -> Option<ByteCount> {
    match direction {
        Direction::Down => info.bytes_acknowledged,
        Direction::Up => info.bytes_received,
    }
}

impl ConnectionRecord {
    fn new(connection: &Arc<Connection>, info: TcpInfo) -> Self {
        let (base, latest) = (info.clone(), info);
        Self { connection: Arc::downgrade(connection), number: connection.number, base, latest, evidence: Vec::new() }
    }

    fn sample(&mut self, now: MonotonicTime, is_observed: bool) {
        let Some(connection) = self.connection.upgrade() else { return };
        let Ok(info) = tcp_info::read(&*connection) else { return };
        let last = self.evidence.last().map(|(at, _)| *at);
        let is_due = last.is_none_or(|last| now.since(last) >= EVIDENCE_INTERVAL);
        if is_observed && is_due && self.evidence.len() < MAX_EVIDENCE {
            let memory = socket_memory(&*connection).ok();
            self.evidence.push((now, SocketSample { info: info.totals_since(&self.base), memory }));
        }
        self.latest = info;
    }

    fn bytes(&self, direction: Direction) -> ByteCount {
        let pair = counted(&self.latest, direction).zip(counted(&self.base, direction));
        pair.map_or(ByteCount::ZERO, |(now, before)| now - before)
    }

    /// Intervals between the samples.
    fn intervals(&self, started: MonotonicTime, direction: Direction) -> Vec<SocketInterval> {
        let (mut from, mut before) = (Duration::ZERO, ByteCount::ZERO);
        let interval = |(at, socket): &(MonotonicTime, SocketSample)| {
            let total = counted(&socket.info, direction).unwrap_or_default();
            let to = at.since(started);
            let interval = SocketInterval { from, to, bytes: total - before, socket: socket.clone() };
            (from, before) = (to, total);
            interval
        };
        self.evidence.iter().map(interval).collect()
    }
}

impl PhaseRecord {
    fn new(direction: Direction, connection: &Connection, now: MonotonicTime) -> Self {
        let congestion_control = options::congestion(connection).ok();
        let (paused, connections) = Default::default();
        Self { direction, started: now, ended: now, paused, congestion_control, connections }
    }

    /// Share of the time for which the rate of the server held the transfers back.
    pub(crate) fn paused_share(&self) -> Ratio {
        let time = self.duration() * self.connections().max(1);
        Ratio::of(self.paused.min(time).as_secs_f64(), time.as_secs_f64()).unwrap_or_default()
    }

    pub(crate) fn duration(&self) -> Duration {
        self.ended.since(self.started)
    }

    pub(crate) fn bytes(&self) -> ByteCount {
        self.connections.iter().map(|connection| connection.bytes(self.direction)).sum()
    }

    /// Number of connections that carried data.
    pub(crate) fn connections(&self) -> u32 {
        let carried = self.connections.iter().filter(|connection| !connection.bytes(self.direction).is_zero());
        u32::try_from(carried.count()).unwrap_or(u32::MAX)
    }

    /// First and last sample of each connection.
    pub(crate) fn ends(&self) -> impl Iterator<Item = (&TcpInfo, &TcpInfo)> {
        self.connections.iter().map(|connection| (&connection.base, &connection.latest))
    }

    /// Smoothed round trips of the loaded connections.
    pub(crate) fn round_trips(&self) -> Vec<Duration> {
        let evidence = self.connections.iter().flat_map(|connection| &connection.evidence);
        evidence.filter_map(|(_, socket)| socket.info.rtt).collect()
    }

    /// Limit by the view of a receiver, of the connection that received most.
    pub(crate) fn receiver_limit(&self) -> Option<FlowLimit> {
        let most = self.connections.iter().max_by_key(|connection| connection.bytes(self.direction))?;
        let (_, socket) = most.evidence.get(most.evidence.len() / 2)?;
        let rate = most.bytes(self.direction).rate_over(self.duration());
        Some(flow_state::receiver_limit(&socket.info, socket.memory.as_ref(), Some(rate)))
    }

    /// Observation for the diagnosis, from the server's side alone.
    pub(crate) fn observation(&self) -> TransferObservation {
        let moved = self.connections.iter().filter(|connection| {
            connection.evidence.len() > 1 && connection.bytes(self.direction).as_f64() * 100.0 > self.bytes().as_f64()
        });
        let connection = |connection: &ConnectionRecord| {
            let intervals = connection.intervals(self.started, self.direction);
            match self.direction {
                Direction::Down => ObservedConnection { sender: intervals, ..ObservedConnection::default() },
                Direction::Up => ObservedConnection { receiver: intervals, ..ObservedConnection::default() },
            }
        };
        TransferObservation {
            elapsed: self.duration(),
            received: self.bytes(),
            congestion_control: self.congestion_control.clone().filter(|_| self.direction == Direction::Down),
            connections: moved.map(connection).collect(),
            ..TransferObservation::default()
        }
    }
}

impl SessionRecord {
    pub(crate) fn new(started: MonotonicTime) -> Self {
        Self { started, points: Vec::new(), phases: Vec::new() }
    }

    /// Adds a connection that begins to move data. A direction that begins again after a pause begins anew.
    pub(crate) fn join(&mut self, direction: Direction, connection: &Arc<Connection>, now: MonotonicTime) {
        let is_over = |phase: &PhaseRecord| phase.direction == direction && now.since(phase.ended) > MAX_PAUSE;
        if self.phases.iter().any(is_over) {
            self.phases.retain(|phase| phase.direction != direction);
            self.points.retain(|point| point.direction != direction);
        }
        let position = self.phases.iter().position(|phase| phase.direction == direction);
        let position = position.unwrap_or_else(|| {
            self.phases.push(PhaseRecord::new(direction, connection, now));
            self.phases.len() - 1
        });
        let phase = &mut self.phases[position];
        let is_known = phase.connections.iter().any(|known| known.number == connection.number);
        if !is_known
            && phase.connections.len() < MAX_CONNECTIONS
            && let Ok(info) = tcp_info::read(&**connection)
        {
            phase.connections.push(ConnectionRecord::new(connection, info));
        }
    }

    /// Adds a pause for the rate of the server.
    pub(crate) fn add_pause(&mut self, direction: Direction, pause: Duration) {
        if let Some(phase) = self.phases.iter_mut().find(|phase| phase.direction == direction) {
            phase.paused += pause;
        }
    }

    /// Samples the connections of the phase that runs.
    pub(crate) fn sample(&mut self, now: MonotonicTime) {
        let Some(phase) = self.phases.last_mut() else { return };
        for (index, connection) in phase.connections.iter_mut().enumerate() {
            connection.sample(now, index < MAX_OBSERVED);
        }
        phase.ended = now;
        if self.points.len() < MAX_POINTS {
            self.points.push(point(phase, now.since(self.started)));
        }
    }

    /// Points of a direction.
    pub(crate) fn points_of(&self, direction: Direction) -> Vec<SamplePoint> {
        self.points.iter().filter(|point| point.direction == direction).copied().collect()
    }

    /// Payload rate of a phase without its ramp; `None` when it was too short.
    pub(crate) fn goodput(&self, phase: &PhaseRecord) -> Option<BitRate> {
        let points = self.points_of(phase.direction);
        let start = phase.started.since(self.started);
        let ramp = if phase.duration() >= MIN_PHASE_WITH_RAMP { RAMP } else { Duration::ZERO };
        let first = points.iter().find(|point| point.at >= start + ramp)?;
        let last = points.last()?;
        let time = last.at.saturating_sub(first.at);
        (time >= SAMPLING_INTERVAL).then(|| (last.bytes - first.bytes).rate_over(time))
    }
}

/// Sum of values that are all known; `None` without any.
pub(crate) fn known_sum<T: core::iter::Sum>(values: impl Iterator<Item = Option<T>>) -> Option<T> {
    let mut values = values.peekable();
    values.peek()?;
    values.sum()
}

fn point(phase: &PhaseRecord, at: Duration) -> SamplePoint {
    let latest = || phase.connections.iter().filter(|connection| connection.connection.strong_count() > 0);
    let times: Vec<Duration> = latest().filter_map(|connection| connection.latest.rtt).collect();
    let count = u32::try_from(times.len()).unwrap_or(u32::MAX);
    let grown = |connection: &ConnectionRecord| {
        let latest = connection.latest.totals_since(&connection.base);
        latest.retransmits.map(linerate_units::SegmentCount::get)
    };
    SamplePoint {
        at,
        direction: phase.direction,
        bytes: phase.bytes(),
        rtt: (count > 0).then(|| times.iter().sum::<Duration>() / count.max(1)),
        congestion_window: known_sum(latest().map(|connection| connection.latest.congestion_window)),
        retransmitted: known_sum(phase.connections.iter().map(grown)),
    }
}
