//! A stock iperf3 server: its own tests are the load, and ICMP the probes.

use core::time::Duration;
use std::net::SocketAddr;

use linerate_model::event::Event;
use linerate_model::latency_under_load::Stability;
use linerate_model::parameters::{Direction as TestDirection, EndCondition, TestParameters};
use linerate_model::sample::{IntervalReport, StreamInterval};
use linerate_model::schema::load::{ClassName, PhaseKind};
use linerate_model::schema::path::Peer;
use linerate_model::schema::throughput::Direction;
use linerate_model::statistics::Summary;
use linerate_model::stream::{Role, StreamId};
use linerate_sys::{clock, net};
use linerate_units::{ByteCount, MonotonicTime, SegmentCount};

use super::evidence::{ClassReadings, Connection, Fate, Reading, Window};
use super::probes::Probes;
use super::record::Record;
use super::traffic::{Meter, Own};
use super::{LoadEvent, Progress, bare, stage};
use crate::client::{self, Acquaintance, ClientOptions};
use crate::course::Halt;
use crate::probe::ProbeError;
use crate::probe::messages::LoadSample;

/// The test cannot be told to begin counting later: its ramp has this length, unless a shorter one was asked for.
const RAMP: Duration = Duration::from_secs(8);

/// Distance of the readings.
const INTERVAL: Duration = Duration::from_millis(250);

/// After the load the queue has this long to drain.
const DRAIN: Duration = Duration::from_secs(4);

pub(super) fn measure(record: &mut Record<'_>) -> Result<(), Halt> {
    record.document.peer = Peer::Iperf3;
    let target = &record.options.target;
    let peer = net::resolve(&target.host, target.port, target.family)
        .map_err(|error| Halt::Failed(ProbeError::Unreachable(error.to_string())))?
        .into_iter()
        .next();
    let Some(peer) = peer else {
        return Err(Halt::Failed(ProbeError::Unreachable("the host has no address".to_owned())));
    };
    record.announce();
    record.note(
        "An iperf3 server lends itself as the other end of the load, and answers no probes: the delay is that of ICMP \
         echoes, and of the kernel's round trips where this host sends.",
    );
    let probes = Probes::start(record, None, peer)?;
    let mut infos = Vec::new();
    let mut numbers = 0;
    let result = phases(record, &probes, peer, &mut infos, &mut numbers);
    let mut classes = probes.stop();
    classes.push(ClassReadings { class: ClassName::TcpInfo, readings: infos, counts_losses: false });
    record.evidence.classes = classes;
    result
}

fn phases(
    record: &mut Record<'_>,
    probes: &Probes,
    peer: SocketAddr,
    infos: &mut Vec<Reading>,
    numbers: &mut u32,
) -> Result<(), Halt> {
    let mut meter = Meter::new(None, peer);
    for kind in record.options.phases.clone() {
        record.check()?;
        if kind == PhaseKind::Idle {
            bare::idle(record, probes)?;
            continue;
        }
        let before = meter.read();
        record.phase(kind);
        let rounds = probes.rounds();
        let result = load(record, probes, kind, infos, numbers);
        result?;
        record.wait(DRAIN)?;
        let own = own_traffic(record, peer).both_ways(probes.traffic(rounds));
        let (near, _) = meter.since(&before, own, ByteCount::ZERO);
        if let Some(phase) = record.current() {
            phase.near = near;
        }
    }
    Ok(())
}

/// What the present phase's connections moved, by what is known at this end.
fn own_traffic(record: &mut Record<'_>, peer: SocketAddr) -> Own {
    let Some(phase) = record.current() else { return Own::default() };
    let mut own = Own::default();
    for connection in &phase.connections {
        let payload = connection.payload.last().map_or(ByteCount::ZERO, |(_, bytes)| *bytes);
        let again = connection.samples.last().and_then(|sample| sample.retransmits).map_or(0, SegmentCount::get);
        let sent = payload + ByteCount::new(again * 1600);
        let segment = Some(linerate_units::Mss::new(if peer.is_ipv6() { 1428 } else { 1448 }));
        own = own.and(match connection.direction {
            Direction::Up => Own::of_tcp(sent, ByteCount::ZERO, segment),
            Direction::Down => Own::of_tcp(ByteCount::ZERO, sent, segment),
        });
    }
    // The control connection, with its results.
    own.both_ways(ByteCount::from_kibibytes(32))
}

/// One test, and again while the server is busy.
fn load(
    record: &mut Record<'_>,
    probes: &Probes,
    kind: PhaseKind,
    infos: &mut Vec<Reading>,
    numbers: &mut u32,
) -> Result<(), Halt> {
    let ramp = RAMP.min(record.options.ramp_limit);
    let options = client_options(record, kind, ramp);
    let (stop, time) = (record.stop, record.options.load_time);
    let (error, started) = client::when_free(Acquaintance::Known, stop, || {
        let mut watch = Watch::new(ramp);
        let outcome = client::run(&options, stop.as_ref(), &mut |event| watch.event(event, record, probes, kind, time));
        let started = watch.started;
        watch.keep(record, infos, numbers, time);
        (outcome.error, started)
    });
    record.check()?;
    match error {
        None => Ok(()),
        Some(error) if started.is_some() => {
            record.note(format!("The load broke off: {error}"));
            Ok(())
        }
        Some(error) => Err(Halt::Failed(ProbeError::System(error.to_string()))),
    }
}

fn client_options(record: &Record<'_>, kind: PhaseKind, ramp: Duration) -> ClientOptions {
    let options = record.options;
    let target = &options.target;
    let parameters = TestParameters {
        direction: match kind {
            PhaseKind::Down => TestDirection::Reverse,
            PhaseKind::Both => TestDirection::Bidirectional,
            PhaseKind::Idle | PhaseKind::Up => TestDirection::Forward,
        },
        end: EndCondition::Time(ramp + options.load_time + INTERVAL),
        parallel: options.connections,
        congestion: options.congestion_control.clone(),
        ..TestParameters::default()
    };
    ClientOptions::new(target, parameters, Some(INTERVAL))
}

/// Follows a test.
struct Watch {
    ramp: Duration,
    started: Option<MonotonicTime>,
    streams: Vec<(StreamId, Direction, Connection)>,
    stability: [Stability; 2],
    stable: Option<bool>,
    since: MonotonicTime,
}

impl Watch {
    fn new(ramp: Duration) -> Self {
        let stability = [Stability::default(), Stability::default()];
        let since = clock::monotonic_now();
        Self { ramp, started: None, streams: Vec::new(), stability, stable: None, since }
    }

    fn event(&mut self, event: &Event, record: &mut Record<'_>, probes: &Probes, kind: PhaseKind, time: Duration) {
        match event {
            Event::Started(start) => {
                self.started = Some(clock::monotonic_now());
                self.since = clock::monotonic_now();
                record.document.congestion_control.clone_from(&start.parameters.congestion);
            }
            Event::Interval(interval) => {
                self.interval(interval);
                if interval.end >= self.ramp && self.stable.is_none() {
                    let directions = stage::directions(kind);
                    let stable = directions.iter().all(|direction| self.stability[index(*direction)].is_stable());
                    self.stable = Some(stable);
                    record.tell(&LoadEvent::Counting(kind, time));
                }
                self.tell(interval, record, probes, kind, time);
            }
            _ => {}
        }
    }

    fn tell(
        &mut self,
        interval: &IntervalReport,
        record: &mut Record<'_>,
        probes: &Probes,
        kind: PhaseKind,
        time: Duration,
    ) {
        let rate = |wanted: Direction| {
            let streams = interval.streams.iter().filter(|stream| direction(stream) == wanted);
            let moved: ByteCount = streams.map(|stream| stream.bytes).sum();
            stage::directions(kind).contains(&wanted).then(|| moved.rate_over(interval.length()))
        };
        let round_trip = Summary::of(&probes.answered_since(self.since)).map(|summary| summary.median);
        self.since = clock::monotonic_now();
        let left = Some((self.ramp + time).saturating_sub(interval.end));
        let progress = Progress { round_trip, up: rate(Direction::Up), down: rate(Direction::Down), left };
        record.tell(&LoadEvent::Progress(progress));
    }

    fn interval(&mut self, interval: &IntervalReport) {
        let Some(started) = self.started else { return };
        for way in [Direction::Up, Direction::Down] {
            let moved: ByteCount =
                interval.streams.iter().filter(|stream| direction(stream) == way).map(|stream| stream.bytes).sum();
            if !moved.is_zero() {
                self.stability[index(way)].push(moved.rate_over(interval.length()));
            }
        }
        for stream in &interval.streams {
            let way = direction(stream);
            let known = self.streams.iter_mut().find(|(id, known, _)| *id == stream.stream && *known == way);
            if let Some((_, _, connection)) = known {
                extend(connection, interval, stream);
                continue;
            }
            let payload = vec![(interval.start, ByteCount::ZERO)];
            let mut connection = Connection { number: 0, direction: way, started, payload, samples: Vec::new() };
            extend(&mut connection, interval, stream);
            self.streams.push((stream.stream, way, connection));
        }
    }

    /// Writes down what was seen.
    fn keep(self, record: &mut Record<'_>, infos: &mut Vec<Reading>, numbers: &mut u32, time: Duration) {
        let Some(started) = self.started else { return };
        let from = started + self.ramp;
        let to = (from + time).min(clock::monotonic_now());
        let mut connections = Vec::new();
        for (_, _, mut connection) in self.streams {
            *numbers += 1;
            connection.number = *numbers;
            infos.extend(connection.samples.iter().filter_map(|sample| {
                let fate = Fate::Answered(sample.rtt?);
                Some(Reading { sent: started + sample.time, fate, up: None, down: None })
            }));
            connections.push(connection);
        }
        if let Some(phase) = record.current() {
            phase.window = (to > from).then_some(Window { from, to });
            phase.goodput_stable = self.stable;
            phase.connections = connections;
        }
    }
}

const fn index(direction: Direction) -> usize {
    match direction {
        Direction::Up => 0,
        Direction::Down => 1,
    }
}

const fn direction(stream: &StreamInterval) -> Direction {
    match stream.role {
        Role::Sender => Direction::Up,
        Role::Receiver => Direction::Down,
    }
}

/// Adds an interval to what is known of a connection.
fn extend(connection: &mut Connection, interval: &IntervalReport, stream: &StreamInterval) {
    let before = connection.payload.last().map_or(ByteCount::ZERO, |(_, bytes)| *bytes);
    connection.payload.push((interval.end, before + stream.bytes));
    let Some(tcp) = &stream.tcp else { return };
    let so_far = connection.samples.last().and_then(|sample| sample.retransmits).unwrap_or_default();
    connection.samples.push(LoadSample {
        time: interval.end,
        rtt: tcp.rtt_samples.as_ref().map(|samples| samples.median).or(tcp.rtt),
        congestion_window: tcp.congestion_window,
        bytes_acknowledged: None,
        retransmits: tcp.retransmits.map(|more| so_far + more),
        delivery_rate: None,
        not_sent: tcp.not_sent,
        busy: None,
        receive_window_limited: None,
        send_buffer_limited: None,
    });
}
