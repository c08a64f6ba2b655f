//! One loaded phase: its connections, when counting begins, and the wait until the queue has drained.

use core::time::Duration;

use linerate_model::latency_under_load::Stability;
use linerate_model::schema::load::PhaseKind;
use linerate_model::schema::throughput::Direction;
use linerate_model::statistics::Summary;
use linerate_sys::{clock, interface};
use linerate_units::{BitRate, ByteCount, MonotonicTime, display};

use super::evidence::{Connection, Fate, Reading, Window};
use super::foreign::{self, ForeignProbes};
use super::measure::Test;
use super::record::Record;
use super::traffic::Own;
use super::{LoadEvent, Progress};
use crate::course::Halt;
use crate::probe::messages::LoadDirection;
use crate::probe::{LoadConnection, LoadOutcome, ProbeError};

/// How long a queue may take to drain before the next phase begins.
pub(super) const LONGEST_DRAIN: Duration = Duration::from_secs(15);

/// Without an idle phase nobody knows when it has drained.
const BLIND_DRAIN: Duration = Duration::from_secs(3);

/// The loop looks so often,
const TICK: Duration = Duration::from_millis(100);
/// and stability is judged by intervals of so many ticks.
const TICKS: u32 = 5;

/// The senders' `tcp_info` is read so often.
const SAMPLING: Duration = Duration::from_millis(50);

/// Messages on the connections that were sent while it counted are waited for so long, with the load still there.
const LONGEST_ANSWER: Duration = Duration::from_secs(6);

/// After this long the goodput is known well enough to say how many probes are too many,
const KNOWN: Duration = Duration::from_secs(6);
/// and after this long the load has taken the room in the queue that they had.
const REFILL: Duration = Duration::from_secs(6);

/// Probes of each class that a phase should have at least.
const ENOUGH: u32 = 20;

/// The directions of a phase.
pub(super) const fn directions(kind: PhaseKind) -> &'static [Direction] {
    match kind {
        PhaseKind::Idle => &[],
        PhaseKind::Down => &[Direction::Down],
        PhaseKind::Up => &[Direction::Up],
        PhaseKind::Both => &[Direction::Down, Direction::Up],
    }
}

/// How a direction's load goes.
struct Flow {
    direction: Direction,
    last: Option<(MonotonicTime, ByteCount)>,
    rate: Option<BitRate>,
    stability: Stability,
}

impl Flow {
    /// An interval is over.
    fn push(&mut self, now: MonotonicTime, total: ByteCount) {
        if let Some((before, bytes)) = self.last {
            let rate = (total - bytes).rate_over(now.since(before));
            self.stability.push(rate);
            self.rate = Some(rate);
        }
        self.last = Some((now, total));
    }
}

/// A phase while it runs.
struct Stage {
    kind: PhaseKind,
    connections: Vec<LoadConnection>,
    flows: Vec<Flow>,
    latency: Stability,
    round_trip: Option<Duration>,
    ticks: u32,
}

/// Runs a phase to its end.
pub(super) fn run(record: &mut Record<'_>, test: &mut Test<'_>, kind: PhaseKind) -> Result<(), Halt> {
    let before = test.meter.read();
    record.phase(kind);
    let flow =
        |direction: &Direction| Flow { direction: *direction, last: None, rate: None, stability: Stability::default() };
    let flows = directions(kind).iter().map(flow).collect();
    let mut stage =
        Stage { kind, connections: Vec::new(), flows, latency: Stability::default(), round_trip: None, ticks: 0 };
    let mut foreign = ForeignProbes::new(&record.options.target, test.session.peer());
    let began = clock::monotonic_now();
    let rounds = test.probes.rounds();
    let result = stage.measure(record, test, &mut foreign);
    if result.is_err()
        && let Some(Window { to, .. }) = record.current().and_then(|phase| phase.window.as_mut())
    {
        *to = (*to).min(clock::monotonic_now());
    }
    let (own, lost_down) = stage.end(record, test);
    let drained = result.and_then(|()| drain(record, test, &foreign));
    Test::keep_foreign(record, foreign);
    // What datagrams, echoes and new connections took on top.
    let time = clock::monotonic_now().since(began);
    let beside = test.probes.traffic(rounds) + foreign_traffic(record, time);
    record.sent += own.sent;
    record.received += own.received;
    if drained.is_ok() {
        let (near, far) = test.meter.since(&before, own.both_ways(beside), lost_down);
        if let Some(phase) = record.current() {
            (phase.near, phase.far) = (near, far);
        }
    }
    drained
}

/// What the connections beside the load take in so long a time, in one direction, estimated generously.
pub(super) fn foreign_traffic(record: &Record<'_>, time: Duration) -> ByteCount {
    let each = if record.options.foreign_probes { 2000.0 } else { 0.0 };
    ByteCount::from_f64(each * (time.as_secs_f64() / foreign::INTERVAL.as_secs_f64()).ceil())
}

impl Stage {
    fn measure(
        &mut self,
        record: &mut Record<'_>,
        test: &mut Test<'_>,
        foreign: &mut ForeignProbes,
    ) -> Result<(), Halt> {
        self.open(record, test)?;
        for connection in &self.connections {
            connection.start()?;
        }
        self.ramp(record, test)?;
        self.count(record, test, foreign)?;
        self.await_answers(record)
    }

    fn open(&mut self, record: &mut Record<'_>, test: &mut Test<'_>) -> Result<(), Halt> {
        let each = record.options.connections.get();
        let interval = self.ping_interval(test, each);
        for direction in directions(self.kind) {
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

    /// Messages on all connections together are as far apart as other probes.
    fn ping_interval(&self, test: &Test<'_>, each: u64) -> Duration {
        let all = each * directions(self.kind).len() as u64;
        test.probes.interval() * u32::try_from(all).unwrap_or(u32::MAX)
    }

    /// Until the load stands still.
    fn ramp(&mut self, record: &mut Record<'_>, test: &mut Test<'_>) -> Result<(), Halt> {
        let began = clock::monotonic_now();
        let end = began + record.options.ramp_limit;
        let mut spared = None;
        loop {
            self.tick(record, test, None)?;
            let now = clock::monotonic_now();
            if spared.is_none() && (self.goodput_stable() || now >= began + KNOWN || now >= end) {
                let rarer = self.spare(record, test)?;
                if rarer {
                    // Where probes stood in the queue there is room for the load now.
                    self.latency = Stability::default();
                }
                spared = Some(if rarer { clock::monotonic_now() + REFILL } else { now });
            }
            let refilled = spared.is_some_and(|since| now >= since);
            let settled = self.goodput_stable() && self.latency.is_stable();
            if refilled && (settled || now >= end) {
                return Ok(());
            }
        }
    }

    fn goodput_stable(&self) -> bool {
        self.flows.iter().all(|flow| flow.stability.is_stable())
    }

    /// Makes the probes rarer if they are too many for this path; whether they are now.
    fn spare(&self, record: &mut Record<'_>, test: &mut Test<'_>) -> Result<bool, Halt> {
        let Some(slowest) = self.flows.iter().filter_map(|flow| flow.rate).min().filter(|rate| !rate.is_zero()) else {
            return Ok(false);
        };
        let rarer = record.options.spare_slow_paths && test.probes.spare(record, slowest)?;
        let name = self.kind.name();
        if rarer {
            let interval = test.probes.interval();
            record.note(format!(
                "From the phase \"{name}\" on, probes of each class are {} apart, so as not to fill this path themselves.",
                display::duration(interval)
            ));
            let pings = self.ping_interval(test, record.options.connections.get());
            self.connections.iter().for_each(|connection| connection.set_ping_interval(Some(pings)));
        }
        if let Some(share) = test.probes.share_of(slowest).filter(|share| *share > 0.11) {
            record.note(format!(
                "In the phase \"{name}\" the probes are {:.0} % of the packets: they take room from the load in queues that \
                 count packets.",
                share * 100.0,
            ));
        }
        Ok(rarer)
    }

    fn count(&mut self, record: &mut Record<'_>, test: &mut Test<'_>, foreign: &mut ForeignProbes) -> Result<(), Halt> {
        let from = clock::monotonic_now();
        // Where probes are rare it takes longer until there are enough of them.
        let length = record.options.load_time.max((test.probes.interval() * ENOUGH).min(record.options.load_time * 4));
        let to = from + length;
        foreign.set_interval(test.probes.interval() * 2);
        let (goodput, latency) = (self.goodput_stable(), self.latency.is_stable());
        if let Some(phase) = record.current() {
            phase.window = Some(Window { from, to });
            (phase.goodput_stable, phase.latency_stable) = (Some(goodput), Some(latency));
        }
        record.tell(&LoadEvent::Counting(self.kind, length));
        while clock::monotonic_now() < to {
            if record.options.foreign_probes {
                foreign.tick();
            }
            self.tick(record, test, Some(to))?;
            look_at_own_queue(record, test);
        }
        Ok(())
    }

    /// Messages that were sent while it counted are answered under the same load. Without this the slowest would be cut off.
    fn await_answers(&self, record: &Record<'_>) -> Result<(), Halt> {
        let end = clock::monotonic_now() + LONGEST_ANSWER;
        self.connections.iter().for_each(|connection| connection.set_ping_interval(None));
        let open = |connection: &LoadConnection| {
            connection.broken().is_none() && connection.pings(0).iter().any(|ping| ping.round_trip.is_none())
        };
        while self.connections.iter().any(open) && clock::monotonic_now() < end {
            record.wait(TICK)?;
        }
        Ok(())
    }

    fn tick(&mut self, record: &mut Record<'_>, test: &Test<'_>, end: Option<MonotonicTime>) -> Result<(), Halt> {
        let next = clock::monotonic_now() + TICK;
        record.wait_until(end.map_or(next, |end| next.min(end)))?;
        let now = clock::monotonic_now();
        self.ticks += 1;
        if self.ticks.is_multiple_of(TICKS) {
            for flow in &mut self.flows {
                let of = self.connections.iter().filter(|connection| is_of(connection, flow.direction));
                flow.push(now, of.map(moved).sum());
            }
            let since = MonotonicTime::from_nanos(now.as_nanos().saturating_sub(500_000_000));
            let median = Summary::of(&test.probes.answered_since(since)).map(|summary| summary.median);
            if let Some(median) = median {
                self.latency.push(median);
                self.round_trip = Some(median);
            }
            if let Some(reason) = self.connections.iter().find_map(LoadConnection::broken) {
                return Err(Halt::Failed(ProbeError::Lost(format!("a connection of the load broke: {reason}"))));
            }
        }
        let rate = |direction| self.flows.iter().find(|flow| flow.direction == direction).and_then(|flow| flow.rate);
        record.tell(&LoadEvent::Progress(Progress {
            round_trip: self.round_trip,
            up: rate(Direction::Up),
            down: rate(Direction::Down),
            left: end.map(|end| end.since(now)),
        }));
        Ok(())
    }

    /// Ends the connections, all at once, and keeps what both ends have seen of them.
    fn end(self, record: &mut Record<'_>, test: &mut Test<'_>) -> (Own, ByteCount) {
        let info = |connection: &LoadConnection| connection.tcp_info().as_ref().map(Own::of_socket).unwrap_or_default();
        let mut own = self.connections.iter().map(info).fold(Own::default(), Own::and);
        let mut lost_down = ByteCount::ZERO;
        let ended: Vec<(Direction, Option<MonotonicTime>, LoadOutcome)> = std::thread::scope(|scope| {
            let stop = |connection: LoadConnection| {
                let about = (from_wire(connection.direction()), connection.started());
                scope.spawn(move || (about.0, about.1, connection.stop()))
            };
            let threads: Vec<_> = self.connections.into_iter().map(stop).collect();
            threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
        });
        for (direction, started, outcome) in ended {
            test.take_pings(&outcome.pings);
            let Some(started) = started else { continue };
            let number = test.next_number();
            let connection = connection(number, direction, started, &outcome);
            if direction == Direction::Down {
                // Sent again, or still on its way when it ended.
                let last = connection.samples.last();
                let again = last.and_then(|sample| sample.retransmits).map_or(0, linerate_units::SegmentCount::get);
                let window = last.and_then(|sample| sample.congestion_window).unwrap_or_default();
                lost_down += ByteCount::new(again * 1600) + window * 2;
            }
            let rtt = connection.samples.iter().filter_map(|sample| {
                Some(Reading { sent: started + sample.time, fate: Fate::Answered(sample.rtt?), up: None, down: None })
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

fn connection(number: u32, direction: Direction, started: MonotonicTime, outcome: &LoadOutcome) -> Connection {
    let way = match direction {
        Direction::Up => LoadDirection::Up,
        Direction::Down => LoadDirection::Down,
    };
    let samples = outcome.sender(way).map(|side| side.samples.clone()).unwrap_or_default();
    let received = outcome.receiver(way).map(|side| side.goodput.as_slice()).unwrap_or_default();
    let mut payload: Vec<(Duration, ByteCount)> =
        received.iter().map(|reading| (reading.time, reading.bytes)).collect();
    if payload.is_empty() {
        let acknowledged = samples.iter().filter_map(|sample| Some((sample.time, sample.bytes_acknowledged?)));
        payload = acknowledged.collect();
    }
    Connection { number, direction, started, payload, samples }
}

const fn from_wire(direction: LoadDirection) -> Direction {
    match direction {
        LoadDirection::Up => Direction::Up,
        LoadDirection::Down => Direction::Down,
    }
}

fn is_of(connection: &LoadConnection, direction: Direction) -> bool {
    from_wire(connection.direction()) == direction
}

/// What has arrived of a connection's load, as far as this end knows.
fn moved(connection: &LoadConnection) -> ByteCount {
    match connection.direction() {
        LoadDirection::Down => connection.bytes(),
        LoadDirection::Up => connection.tcp_info().and_then(|info| info.bytes_acknowledged).unwrap_or_default(),
    }
}

/// How much waits at this host's own interface.
fn look_at_own_queue(record: &mut Record<'_>, test: &Test<'_>) {
    let Some(index) = test.meter.interface() else { return };
    let queue = interface::root_queue(index).ok().flatten().and_then(|queue| queue.statistics);
    if let (Some(statistics), Some(phase)) = (queue, record.current()) {
        phase.backlog.push((clock::monotonic_now(), statistics.backlog));
    }
}

/// Waits until probes are as fast as on the idle path again, and for what is still on its way.
fn drain(record: &mut Record<'_>, test: &Test<'_>, foreign: &ForeignProbes) -> Result<(), Halt> {
    const IN_A_ROW: usize = 3;
    let began = clock::monotonic_now();
    let limit = began + LONGEST_DRAIN;
    loop {
        record.wait(TICK)?;
        let now = clock::monotonic_now();
        let drained = match test.idle_limit {
            None => now >= began + BLIND_DRAIN,
            Some(most) => {
                let latest = test.probes.latest();
                let after: Vec<&Reading> = latest.iter().filter(|reading| reading.sent >= began).collect();
                // The last ones may not have had the time yet.
                let known = after.iter().rev().skip_while(|reading| reading.round_trip().is_none());
                let near = known.take_while(|reading| reading.round_trip().is_some_and(|time| time <= most));
                near.count() >= IN_A_ROW
            }
        };
        if drained && foreign.is_idle() {
            return Ok(());
        }
        if now >= limit {
            if !drained {
                record.note(format!(
                    "{} s after the load of the phase \"{}\" had ended, round trips were still longer than on the idle \
                     path: something else loads it, or its idle delay has changed.",
                    LONGEST_DRAIN.as_secs(),
                    record.evidence.phases.last().map_or("", |phase| phase.kind.name())
                ));
            }
            return Ok(());
        }
    }
}
