//! One loaded phase: its connections, when counting begins, and the wait until the queue has drained.

use core::time::Duration;
use linerate_model::direction::Direction;

use linerate_analysis::latency_under_load::StabilityDetector;
use linerate_analysis::statistics::SampleSummary;
use linerate_model::limit::LimitShares;
use linerate_model::load::PhaseKind;
use linerate_model::tcp_info::TcpInfo;
use linerate_sys::{clock, interface};
use linerate_units::{BitRate, ByteCount, MonotonicTime, display};

use super::evidence::{ConnectionEvidence, CountingWindow, ProbeFate, ProbeReading};
use super::foreign::{self, ForeignProbes};
use super::measure::LoadTest;
use super::profiles::{self, RunningProfile};
use super::record::LoadRecord;
use super::traffic::OwnBytes;
use super::{LoadEvent, LoadFigures};
use crate::phases::AbortReason;
use crate::probe::{LoadConnection, LoadOutcome, ProbeError};

/// Longest time for a queue to drain before the next phase begins.
pub(super) const LONGEST_DRAIN: Duration = Duration::from_secs(15);

/// Drain time without an idle phase, when the idle round trip is unknown.
const DEFAULT_DRAIN: Duration = Duration::from_secs(3);

/// Interval of the control loop,
const TICK: Duration = Duration::from_millis(100);
/// and number of ticks per interval of the stability test.
const TICKS_PER_INTERVAL: u32 = 5;

/// Sampling interval of the senders' `tcp_info`.
const SAMPLING: Duration = Duration::from_millis(50);

/// Longest wait for the answers of pings sent within the window, with the load still present.
const MAX_ANSWER_WAIT: Duration = Duration::from_secs(6);

/// Time after which the goodput is known well enough to judge the share of probes,
const MIN_GOODPUT_TIME: Duration = Duration::from_secs(6);
/// and time for the load to refill the queue share that the probes had.
const REFILL_TIME: Duration = Duration::from_secs(6);

/// Fewest probes of each class that a phase should have.
const MIN_PROBES: u32 = 20;

/// Load of one direction.
struct DirectionLoad {
    direction: Direction,
    last: Option<(MonotonicTime, ByteCount)>,
    rate: Option<BitRate>,
    stability: StabilityDetector,
}

impl DirectionLoad {
    /// Ends an interval.
    fn push(&mut self, now: MonotonicTime, total: ByteCount) {
        if let Some((before, bytes)) = self.last {
            let rate = (total - bytes).rate_over(now.since(before));
            self.stability.push(rate);
            self.rate = Some(rate);
        }
        self.last = Some((now, total));
    }
}

/// A running phase.
struct LoadPhaseRun {
    kind: PhaseKind,
    connections: Vec<LoadConnection>,
    flows: Vec<DirectionLoad>,
    latency: StabilityDetector,
    round_trip: Option<Duration>,
    limits: SenderLimits,
    ticks: u32,
}

/// Limits of the connections that send from here, between two ticks.
#[derive(Default)]
struct SenderLimits {
    last: Vec<(MonotonicTime, TcpInfo)>,
    shares: Option<LimitShares>,
}

impl SenderLimits {
    /// Ends an interval.
    fn sample(&mut self, connections: &[LoadConnection]) {
        let now = clock::monotonic_now();
        let senders = connections.iter().filter(|connection| has_direction(connection, Direction::Up));
        let infos: Vec<(MonotonicTime, TcpInfo)> =
            senders.filter_map(|connection| Some((now, connection.tcp_info()?))).collect();
        let pairs = self.last.iter().zip(&infos);
        let shares: Vec<LimitShares> = pairs
            .filter_map(|((then, first), (now, last))| LimitShares::between(first, last, now.since(*then)))
            .collect();
        self.shares = LimitShares::mean(&shares);
        self.last = infos;
    }
}

/// Runs a phase to its end.
pub(super) fn run(record: &mut LoadRecord<'_>, test: &mut LoadTest<'_>, kind: PhaseKind) -> Result<(), AbortReason> {
    let before = test.meter.read();
    record.phase(kind);
    let flow = |direction: &Direction| DirectionLoad {
        direction: *direction,
        last: None,
        rate: None,
        stability: StabilityDetector::default(),
    };
    let flows = kind.directions().iter().map(flow).collect();
    let mut stage = LoadPhaseRun {
        kind,
        connections: Vec::new(),
        flows,
        latency: StabilityDetector::default(),
        round_trip: None,
        limits: SenderLimits::default(),
        ticks: 0,
    };
    let mut foreign = ForeignProbes::new(&record.options.target, test.session.peer());
    let began = clock::monotonic_now();
    let rounds = test.probes.rounds();
    let result = stage.measure(record, test, &mut foreign);
    if result.is_err()
        && let Some(CountingWindow { to, .. }) = record.current().and_then(|phase| phase.window.as_mut())
    {
        *to = (*to).min(clock::monotonic_now());
    }
    let (own, lost_down) = stage.end(record, test);
    let drained = result.and_then(|running| {
        drain(record, test, Some(&foreign))?;
        profiles::collect(record, test, kind, running)
    });
    LoadTest::store_foreign(record, foreign);
    // Additional traffic of datagrams, echoes and new connections.
    let time = clock::monotonic_now().since(began);
    let beside = test.probes.traffic(rounds) + foreign_traffic(record, time);
    record.sent += own.sent;
    record.received += own.received;
    let own = own.and(test.take_profile_bytes(record));
    if drained.is_ok() {
        let (near, far) = test.meter.since(&before, own.both_ways(beside), lost_down);
        if let Some(phase) = record.current() {
            (phase.near, phase.far) = (near, far);
        }
    }
    drained
}

/// Traffic of new connections in a given time, in one direction, estimated generously.
pub(super) fn foreign_traffic(record: &LoadRecord<'_>, time: Duration) -> ByteCount {
    let each = if record.options.foreign_probes { 2000.0 } else { 0.0 };
    ByteCount::from_f64(each * (time.as_secs_f64() / foreign::INTERVAL.as_secs_f64()).ceil())
}

impl LoadPhaseRun {
    fn measure(
        &mut self,
        record: &mut LoadRecord<'_>,
        test: &mut LoadTest<'_>,
        foreign: &mut ForeignProbes,
    ) -> Result<Vec<RunningProfile>, AbortReason> {
        self.open(record, test)?;
        for connection in &self.connections {
            connection.start()?;
        }
        self.ramp(record, test)?;
        self.count(record, test, foreign)?;
        self.await_answers(record)?;
        profiles::run(record, test, self.kind, &mut |record, test, end| self.tick(record, test, Some(end)))
    }

    fn open(&mut self, record: &mut LoadRecord<'_>, test: &mut LoadTest<'_>) -> Result<(), AbortReason> {
        let each = record.options.connections.get();
        let interval = self.ping_interval(test, each);
        for direction in self.kind.directions() {
            for _ in 0..each {
                let connection = test.open_load(record, *direction, Some(interval), SAMPLING)?;
                let name = match direction {
                    Direction::Up => connection.local_congestion_control(),
                    Direction::Down => connection.far_congestion_control(),
                };
                test.confirm_congestion_control(name);
                self.connections.push(connection);
            }
        }
        Ok(())
    }

    /// Interval at which the pings on all connections together are as far apart as other probes.
    fn ping_interval(&self, test: &LoadTest<'_>, each: u64) -> Duration {
        let all = each * self.kind.directions().len() as u64;
        test.probes.interval() * u32::try_from(all).unwrap_or(u32::MAX)
    }

    /// Waits until the load is stable.
    fn ramp(&mut self, record: &mut LoadRecord<'_>, test: &mut LoadTest<'_>) -> Result<(), AbortReason> {
        let began = clock::monotonic_now();
        let end = began + record.options.ramp_limit;
        let mut spared = None;
        loop {
            self.tick(record, test, None)?;
            let now = clock::monotonic_now();
            if spared.is_none() && (self.goodput_stable() || now >= began + MIN_GOODPUT_TIME || now >= end) {
                let rarer = self.spare(record, test)?;
                if rarer {
                    // The load now refills the queue share that the probes had.
                    self.latency = StabilityDetector::default();
                }
                spared = Some(if rarer { clock::monotonic_now() + REFILL_TIME } else { now });
            }
            let refilled = spared.is_some_and(|since| now >= since);
            let settled = self.goodput_stable() && self.latency.is_stable();
            if record.is_phase_ended() || (refilled && (settled || now >= end)) {
                return Ok(());
            }
        }
    }

    fn goodput_stable(&self) -> bool {
        self.flows.iter().all(|flow| flow.stability.is_stable())
    }

    /// Increases the probe interval if probes are too many for this path; returns `true` if so.
    fn spare(&self, record: &mut LoadRecord<'_>, test: &mut LoadTest<'_>) -> Result<bool, AbortReason> {
        let Some(slowest) = self.flows.iter().filter_map(|flow| flow.rate).min().filter(|rate| !rate.is_zero()) else {
            return Ok(false);
        };
        let rarer = record.options.spare_slow_paths && test.probes.spare(record, slowest)?;
        let name = self.kind.name();
        if rarer {
            let interval = test.probes.interval();
            record.note(format!(
                "From the phase \"{name}\" on, the probe interval of each class is {}, so that probes do not fill \
                 the path.",
                display::duration(interval)
            ));
            let pings = self.ping_interval(test, record.options.connections.get());
            self.connections.iter().for_each(|connection| connection.set_ping_interval(Some(pings)));
        }
        if let Some(share) = test.probes.share_of(slowest).filter(|share| *share > 0.11) {
            record.note(format!(
                "In the phase \"{name}\" the probes are {:.0} % of the packets: they displace the load in queues that \
                 count packets.",
                share * 100.0,
            ));
        }
        Ok(rarer)
    }

    fn count(
        &mut self,
        record: &mut LoadRecord<'_>,
        test: &mut LoadTest<'_>,
        foreign: &mut ForeignProbes,
    ) -> Result<(), AbortReason> {
        let from = clock::monotonic_now();
        // Where probes are rare, enough of them take longer.
        let length =
            record.options.load_time.max((test.probes.interval() * MIN_PROBES).min(record.options.load_time * 4));
        let to = from + length;
        foreign.set_interval(test.probes.interval() * 2);
        let (goodput, latency) = (self.goodput_stable(), self.latency.is_stable());
        if let Some(phase) = record.current() {
            phase.window = Some(CountingWindow { from, to });
            (phase.goodput_stable, phase.latency_stable) = (Some(goodput), Some(latency));
        }
        record.tell(&LoadEvent::Counting(self.kind, length));
        while clock::monotonic_now() < to {
            if record.options.foreign_probes {
                foreign.tick();
            }
            self.tick(record, test, Some(to))?;
            sample_own_queue(record, test);
            if record.end_counting_on_request() {
                break;
            }
        }
        Ok(())
    }

    /// Waits for the pings sent within the window, under the same load: otherwise the slowest would be cut off.
    fn await_answers(&self, record: &LoadRecord<'_>) -> Result<(), AbortReason> {
        let end = clock::monotonic_now() + MAX_ANSWER_WAIT;
        self.connections.iter().for_each(|connection| connection.set_ping_interval(None));
        let open = |connection: &LoadConnection| {
            connection.broken().is_none() && connection.pings(0).iter().any(|ping| ping.round_trip.is_none())
        };
        while self.connections.iter().any(open) && clock::monotonic_now() < end {
            record.wait(TICK)?;
        }
        Ok(())
    }

    fn tick(
        &mut self,
        record: &mut LoadRecord<'_>,
        test: &LoadTest<'_>,
        end: Option<MonotonicTime>,
    ) -> Result<(), AbortReason> {
        let next = clock::monotonic_now() + TICK;
        record.wait_until(end.map_or(next, |end| next.min(end)))?;
        let now = clock::monotonic_now();
        self.ticks += 1;
        if self.ticks.is_multiple_of(TICKS_PER_INTERVAL) {
            for flow in &mut self.flows {
                let of = self.connections.iter().filter(|connection| has_direction(connection, flow.direction));
                flow.push(now, of.map(moved).sum());
            }
            self.limits.sample(&self.connections);
            let since = MonotonicTime::from_nanos(now.as_nanos().saturating_sub(500_000_000));
            let median = SampleSummary::of(&test.probes.answered_since(since)).map(|summary| summary.median);
            if let Some(median) = median {
                self.latency.push(median);
                self.round_trip = Some(median);
            }
            if let Some(reason) = self.connections.iter().find_map(LoadConnection::broken) {
                return Err(AbortReason::Failed(ProbeError::Lost(format!(
                    "a connection of the load failed: {reason}"
                ))));
            }
        }
        let rate = |direction| self.flows.iter().find(|flow| flow.direction == direction).and_then(|flow| flow.rate);
        record.tell(&LoadEvent::Progress(LoadFigures {
            round_trip: self.round_trip,
            up: rate(Direction::Up),
            down: rate(Direction::Down),
            limits: self.limits.shares,
            left: end.map(|end| end.since(now)),
        }));
        Ok(())
    }

    /// Ends the connections, all at once, and stores the evidence of both ends.
    fn end(self, record: &mut LoadRecord<'_>, test: &mut LoadTest<'_>) -> (OwnBytes, ByteCount) {
        let info =
            |connection: &LoadConnection| connection.tcp_info().as_ref().map(OwnBytes::of_socket).unwrap_or_default();
        let mut own = self.connections.iter().map(info).fold(OwnBytes::default(), OwnBytes::and);
        let mut lost_down = ByteCount::ZERO;
        let ended: Vec<(Direction, Option<MonotonicTime>, LoadOutcome)> = std::thread::scope(|scope| {
            let stop = |connection: LoadConnection| {
                let about = (connection.direction(), connection.started());
                scope.spawn(move || (about.0, about.1, connection.stop()))
            };
            let threads: Vec<_> = self.connections.into_iter().map(stop).collect();
            threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
        });
        for (direction, started, outcome) in ended {
            test.store_pings(&outcome.pings);
            let Some(started) = started else { continue };
            let number = test.next_number();
            let connection = connection(number, direction, started, &outcome);
            if direction == Direction::Down {
                // Retransmitted, or still in flight at the end.
                let last = connection.samples.last();
                let again = last.and_then(|sample| sample.retransmits).map_or(0, linerate_units::SegmentCount::get);
                let window = last.and_then(|sample| sample.congestion_window).unwrap_or_default();
                lost_down += ByteCount::new(again * 1600) + window * 2;
            }
            let rtt = connection.samples.iter().filter_map(|sample| {
                Some(ProbeReading {
                    sent: started + sample.time,
                    fate: ProbeFate::Answered(sample.rtt?),
                    up: None,
                    down: None,
                })
            });
            test.infos.extend(rtt);
            if let Some(phase) = record.current() {
                phase.connections.push(connection);
            }
        }
        own = own.both_ways(ByteCount::new(2000));
        (own, lost_down)
    }
}

fn connection(number: u32, direction: Direction, started: MonotonicTime, outcome: &LoadOutcome) -> ConnectionEvidence {
    let way = direction;
    let samples = outcome.sender(way).map(|side| side.samples.clone()).unwrap_or_default();
    let received = outcome.receiver(way).map(|side| side.goodput.as_slice()).unwrap_or_default();
    let mut payload: Vec<(Duration, ByteCount)> =
        received.iter().map(|reading| (reading.time, reading.bytes)).collect();
    if payload.is_empty() {
        let acknowledged = samples.iter().filter_map(|sample| Some((sample.time, sample.bytes_acknowledged?)));
        payload = acknowledged.collect();
    }
    ConnectionEvidence { number, direction, started, payload, samples }
}

fn has_direction(connection: &LoadConnection, direction: Direction) -> bool {
    connection.direction() == direction
}

/// Payload of a connection that has arrived, as far as this end knows.
fn moved(connection: &LoadConnection) -> ByteCount {
    match connection.direction() {
        Direction::Down => connection.bytes(),
        Direction::Up => connection.tcp_info().and_then(|info| info.bytes_acknowledged).unwrap_or_default(),
    }
}

/// Records the backlog of this host's own interface.
fn sample_own_queue(record: &mut LoadRecord<'_>, test: &LoadTest<'_>) {
    let Some(index) = test.meter.interface() else { return };
    let queue = interface::root_queue(index).ok().flatten().and_then(|queue| queue.statistics);
    if let (Some(statistics), Some(phase)) = (queue, record.current()) {
        phase.backlog.push((clock::monotonic_now(), statistics.backlog));
    }
}

/// Waits until round trips are as short as on the idle path again, and for packets in flight.
pub(super) fn drain(
    record: &mut LoadRecord<'_>,
    test: &LoadTest<'_>,
    foreign: Option<&ForeignProbes>,
) -> Result<(), AbortReason> {
    const IN_A_ROW: usize = 3;
    let began = clock::monotonic_now();
    let limit = began + LONGEST_DRAIN;
    loop {
        record.wait(TICK)?;
        let now = clock::monotonic_now();
        let drained = match test.idle_limit {
            None => now >= began + DEFAULT_DRAIN,
            Some(most) => {
                let latest = test.probes.latest();
                let after: Vec<&ProbeReading> = latest.iter().filter(|reading| reading.sent >= began).collect();
                // The last probes may not have had enough time.
                let known = after.iter().rev().skip_while(|reading| reading.round_trip().is_none());
                let near = known.take_while(|reading| reading.round_trip().is_some_and(|time| time <= most));
                near.count() >= IN_A_ROW
            }
        };
        if drained && foreign.is_none_or(ForeignProbes::is_idle) {
            return Ok(());
        }
        if now >= limit {
            if !drained {
                record.note(format!(
                    "{} s after the load of the phase \"{}\" ended, round trips were still longer than on the idle \
                     path: something else loads it, or its idle delay has changed.",
                    LONGEST_DRAIN.as_secs(),
                    record.evidence.phases.last().map_or("", |phase| phase.kind.name())
                ));
            }
            return Ok(());
        }
    }
}
