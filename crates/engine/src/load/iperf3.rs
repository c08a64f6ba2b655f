//! A stock iperf3 server: its own tests are the load, and ICMP echoes the probes.

use core::time::Duration;
use linerate_analysis::latency_under_load::LatencyClass;
use linerate_model::direction::Direction;
use std::net::SocketAddr;

use linerate_analysis::latency_under_load::StabilityDetector;
use linerate_analysis::statistics::SampleSummary;
use linerate_model::event::TestEvent;
use linerate_model::limit::LimitShares;
use linerate_model::load::PhaseKind;
use linerate_model::parameters::{EndCondition, TestDirection, TestParameters};
use linerate_model::path::PeerKind;
use linerate_model::sample::{IntervalReport, StreamInterval};
use linerate_model::stream::{StreamId, StreamRole};
use linerate_sys::{clock, net};
use linerate_units::{ByteCount, MonotonicTime, SegmentCount};

use super::evidence::{ClassSamples, ConnectionEvidence, CountingWindow, ProbeFate, ProbeReading};
use super::probes::RunningProbes;
use super::record::LoadRecord;
use super::traffic::{OwnBytes, TrafficMeter};
use super::{LoadEvent, LoadFigures, bare};
use crate::client::{self, ClientOptions, PriorContact};
use crate::phases::AbortReason;
use crate::probe::ProbeError;
use crate::probe::messages::LoadSample;

/// Ramp of a test, unless a shorter one was requested: such a test cannot begin counting later.
const MAX_RAMP: Duration = Duration::from_secs(8);

/// Interval of the samples.
const INTERVAL: Duration = Duration::from_millis(250);

/// Longest time for the queue to drain after the load.
const DRAIN: Duration = Duration::from_secs(4);

pub(super) fn measure(record: &mut LoadRecord<'_>) -> Result<(), AbortReason> {
    record.document.peer = PeerKind::Iperf3;
    let target = &record.options.target;
    let peer = net::resolve(target.address(), target.port, target.family)
        .map_err(|error| AbortReason::Failed(ProbeError::Unreachable(error.to_string())))?
        .into_iter()
        .next();
    let Some(peer) = peer else {
        return Err(AbortReason::Failed(ProbeError::Unreachable("the host has no address".to_owned())));
    };
    record.announce();
    record.note(
        "An iperf3 server carries the load but answers no probes: the delay is that of ICMP \
         echoes, and of the kernel's round trips where this host sends.",
    );
    let probes = RunningProbes::start(record, None, peer)?;
    let mut infos = Vec::new();
    let mut numbers = 0;
    let result = phases(record, &probes, peer, &mut infos, &mut numbers);
    let (mut classes, _) = probes.stop();
    classes.push(ClassSamples { class: LatencyClass::TcpInfo, readings: infos, counts_losses: false });
    record.evidence.classes = classes;
    result
}

fn phases(
    record: &mut LoadRecord<'_>,
    probes: &RunningProbes,
    peer: SocketAddr,
    infos: &mut Vec<ProbeReading>,
    numbers: &mut u32,
) -> Result<(), AbortReason> {
    let mut meter = TrafficMeter::new(None, peer);
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

/// Traffic of the present phase's connections, as known at this end.
fn own_traffic(record: &mut LoadRecord<'_>, peer: SocketAddr) -> OwnBytes {
    let Some(phase) = record.current() else { return OwnBytes::default() };
    let mut own = OwnBytes::default();
    for connection in &phase.connections {
        let payload = connection.payload.last().map_or(ByteCount::ZERO, |(_, bytes)| *bytes);
        let again = connection.samples.last().and_then(|sample| sample.retransmits).map_or(0, SegmentCount::get);
        let sent = payload + ByteCount::new(again * 1600);
        let segment = Some(linerate_units::Mss::new(if peer.is_ipv6() { 1428 } else { 1448 }));
        own = own.and(match connection.direction {
            Direction::Up => OwnBytes::of_tcp(sent, ByteCount::ZERO, segment),
            Direction::Down => OwnBytes::of_tcp(ByteCount::ZERO, sent, segment),
        });
    }
    // The control connection, including its results.
    own.both_ways(ByteCount::from_kibibytes(32))
}

/// Runs one test, and retries while the server is busy.
fn load(
    record: &mut LoadRecord<'_>,
    probes: &RunningProbes,
    kind: PhaseKind,
    infos: &mut Vec<ProbeReading>,
    numbers: &mut u32,
) -> Result<(), AbortReason> {
    let ramp = MAX_RAMP.min(record.options.ramp_limit);
    let options = client_options(record, kind, ramp);
    let (stop, time) = (record.stop, record.options.load_time);
    let (error, started) = client::retry_while_busy(PriorContact::Known, stop, || {
        let mut watch = TestObserver::new(ramp);
        let outcome = client::run(&options, stop.as_ref(), &mut |event| watch.event(event, record, probes, kind, time));
        let started = watch.started;
        watch.keep(record, infos, numbers, time);
        (outcome.error, started)
    });
    record.check()?;
    match error {
        None => Ok(()),
        Some(error) if started.is_some() => {
            record.note(format!("The load ended early: {error}"));
            Ok(())
        }
        Some(error) => Err(AbortReason::Failed(ProbeError::System(error.to_string()))),
    }
}

fn client_options(record: &LoadRecord<'_>, kind: PhaseKind, ramp: Duration) -> ClientOptions {
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
        ..TestParameters::discarding()
    };
    ClientOptions::new(target, parameters, Some(INTERVAL))
}

/// Observes a test.
struct TestObserver {
    ramp: Duration,
    started: Option<MonotonicTime>,
    streams: Vec<(StreamId, Direction, ConnectionEvidence)>,
    stability: [StabilityDetector; 2],
    stable: Option<bool>,
    since: MonotonicTime,
}

impl TestObserver {
    fn new(ramp: Duration) -> Self {
        let stability = [StabilityDetector::default(), StabilityDetector::default()];
        let since = clock::monotonic_now();
        Self { ramp, started: None, streams: Vec::new(), stability, stable: None, since }
    }

    fn event(
        &mut self,
        event: &TestEvent,
        record: &mut LoadRecord<'_>,
        probes: &RunningProbes,
        kind: PhaseKind,
        time: Duration,
    ) {
        match event {
            TestEvent::Started(start) => {
                self.started = Some(clock::monotonic_now());
                self.since = clock::monotonic_now();
                record.document.congestion_control.clone_from(&start.parameters.congestion);
            }
            TestEvent::Interval(interval) => {
                self.interval(interval);
                if interval.end >= self.ramp && self.stable.is_none() {
                    let directions = kind.directions();
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
        record: &mut LoadRecord<'_>,
        probes: &RunningProbes,
        kind: PhaseKind,
        time: Duration,
    ) {
        let rate = |wanted: Direction| {
            let streams = interval.streams.iter().filter(|stream| direction(stream) == wanted);
            let moved: ByteCount = streams.map(|stream| stream.bytes).sum();
            kind.directions().contains(&wanted).then(|| moved.rate_over(interval.length()))
        };
        let round_trip = SampleSummary::of(&probes.answered_since(self.since)).map(|summary| summary.median);
        self.since = clock::monotonic_now();
        let left = Some((self.ramp + time).saturating_sub(interval.end));
        let limits: Vec<_> = interval.streams.iter().filter_map(|stream| stream.tcp.as_ref()?.limits).collect();
        let limits = LimitShares::mean(&limits);
        let progress = LoadFigures { round_trip, up: rate(Direction::Up), down: rate(Direction::Down), limits, left };
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
            let mut connection =
                ConnectionEvidence { number: 0, direction: way, started, payload, samples: Vec::new() };
            extend(&mut connection, interval, stream);
            self.streams.push((stream.stream, way, connection));
        }
    }

    /// Stores the evidence.
    fn keep(self, record: &mut LoadRecord<'_>, infos: &mut Vec<ProbeReading>, numbers: &mut u32, time: Duration) {
        let Some(started) = self.started else { return };
        let now = clock::monotonic_now();
        let from = (started + self.ramp).min(now);
        let to = (from + time).min(now);
        let mut connections = Vec::new();
        for (_, _, mut connection) in self.streams {
            *numbers += 1;
            connection.number = *numbers;
            infos.extend(connection.samples.iter().filter_map(|sample| {
                let fate = ProbeFate::Answered(sample.rtt?);
                Some(ProbeReading { sent: started + sample.time, fate, up: None, down: None })
            }));
            connections.push(connection);
        }
        if let Some(phase) = record.current() {
            phase.window = (to > from).then_some(CountingWindow { from, to });
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
        StreamRole::Sender => Direction::Up,
        StreamRole::Receiver => Direction::Down,
    }
}

/// Adds an interval to a connection's evidence.
fn extend(connection: &mut ConnectionEvidence, interval: &IntervalReport, stream: &StreamInterval) {
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
