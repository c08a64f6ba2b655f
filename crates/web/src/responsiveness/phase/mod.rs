//! One loaded phase: connections are added until goodput, and then responsiveness, are stable.

#[cfg(test)]
mod tests;

use core::time::Duration;
use std::sync::Arc;

use linerate_analysis::latency_under_load::{ForeignProbe, Responsiveness, StabilityDetector};
use linerate_engine::load::http::{HttpLoadRecord, HttpPhaseSamples, HttpTestEnd, TimedProbe};
use linerate_engine::load::{LoadEvent, LoadFigures, LoadTestOptions};
use linerate_model::diagnosis::Confidence;
use linerate_model::direction::Direction;
use linerate_model::load::PhaseKind;
use linerate_sys::signals::InterruptSignals;
use linerate_sys::{clock, options};
use linerate_units::{BitRate, ByteCount, MonotonicTime};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::client::HttpTarget;
use super::config::ServerObjects;
use super::load::{self, LoadConnection, LoadMeter};
use super::probe::{self, TestEvent};

/// Duration of an interval ("ID"), as in networkQuality and goresponsiveness: the draft's five seconds take a minute per
/// direction.
const INTERVAL: Duration = Duration::from_secs(1);

/// Intervals that count ("MAD").
const COUNTED_INTERVALS: usize = 4;

/// Most connections per direction ("MNP").
const MAX_CONNECTIONS: u64 = 16;

/// Time between two samples of the load.
const SAMPLING_INTERVAL: Duration = Duration::from_millis(100);

/// Most probes of a kind that wait for an answer: further ones would measure this host.
const MAX_WAITING: usize = 200;

/// Intervals without any payload after which a phase fails.
const MAX_SILENT_INTERVALS: u64 = 10;

/// Latest round trips for the progress display.
const SHOWN_ROUND_TRIPS: usize = 20;

/// Server, and the user's wishes.
pub(super) struct PhaseContext<'a> {
    pub(super) target: &'a HttpTarget,
    pub(super) objects: &'a Arc<ServerObjects>,
    pub(super) options: &'a LoadTestOptions,
    pub(super) stop: Option<InterruptSignals>,
}

impl PhaseContext<'_> {
    /// Returns `Err` after a signal.
    pub(super) fn check(&self) -> Result<(), HttpTestEnd> {
        match self.stop.and_then(|stop| stop.pending()) {
            Some(_) => Err(HttpTestEnd::Interrupted),
            None => Ok(()),
        }
    }
}

/// A phase while it runs. Dropping it ends its tasks and connections.
pub(super) struct RunningPhase<'a> {
    context: &'a PhaseContext<'a>,
    kind: PhaseKind,
    tasks: JoinSet<()>,
    events: UnboundedSender<TestEvent>,
    happened: UnboundedReceiver<TestEvent>,
    connections: Vec<LoadConnection>,
    meters: Vec<LoadMeter>,
    asked: u64,
    waiting: [usize; 2],
    foreign: Vec<TimedProbe<ForeignProbe>>,
    loaded: Vec<TimedProbe<Duration>>,
    failure: Option<String>,
    random: u64,
    /// Payload of the last interval.
    capacity: Option<ByteCount>,
    intervals: u64,
    /// Starts of the intervals.
    starts: Vec<MonotonicTime>,
    goodput: StageState,
    responsiveness: StageState,
}

/// Search for a stable figure.
#[derive(Default)]
struct StageState {
    detector: StabilityDetector,
    intervals: usize,
    is_over: bool,
}

impl StageState {
    /// Confidence as the draft defines it.
    fn confidence(&self) -> Confidence {
        match self.intervals {
            _ if self.detector.is_stable() => Confidence::High,
            ..COUNTED_INTERVALS => Confidence::Low,
            _ => Confidence::Medium,
        }
    }

    /// Adds the figure of an interval; the stage is over when it is stable, or its time is.
    fn push(&mut self, figure: f64, limit: Duration) {
        self.intervals += 1;
        self.detector.push(BitRate::from_bits_per_second(figure));
        let is_late = INTERVAL * u32::try_from(self.intervals).unwrap_or(u32::MAX) >= limit;
        self.is_over = self.detector.is_stable() || is_late;
    }
}

impl<'a> RunningPhase<'a> {
    pub(super) fn new(context: &'a PhaseContext<'a>, kind: PhaseKind) -> Self {
        let (events, happened) = unbounded_channel();
        Self {
            context,
            kind,
            tasks: JoinSet::new(),
            events,
            happened,
            connections: Vec::new(),
            meters: kind.directions().iter().map(|direction| LoadMeter::new(*direction)).collect(),
            asked: 0,
            waiting: [0; 2],
            foreign: Vec::new(),
            loaded: Vec::new(),
            failure: None,
            random: clock::monotonic_now().as_nanos() | 1,
            capacity: None,
            intervals: 0,
            starts: Vec::new(),
            goodput: StageState::default(),
            responsiveness: StageState::default(),
        }
    }

    /// Runs the phase to its end. What was measured until a failure or a signal is recorded, too.
    pub(super) async fn run(mut self, record: &mut HttpLoadRecord<'_>) -> Result<(), HttpTestEnd> {
        let started = clock::monotonic_now();
        let result = loop {
            self.add_connections();
            let end = started + INTERVAL * u32::try_from(self.intervals + 1).unwrap_or(u32::MAX);
            if let Err(reason) = self.interval(end, record).await {
                break Err(reason);
            }
            let counting = self.goodput.is_over;
            if let Err(reason) = self.conclude() {
                break Err(reason);
            }
            if !counting && self.goodput.is_over {
                record.report(&LoadEvent::Counting(self.kind, self.context.options.load_time));
            }
            if self.responsiveness.is_over || record.is_phase_ended() {
                break Ok(());
            }
        };
        self.finish(record);
        result
    }

    /// Adds a connection in each direction ("INP" and "INC" are 1).
    fn add_connections(&mut self) {
        if self.asked == MAX_CONNECTIONS {
            return;
        }
        self.asked += 1;
        for direction in self.kind.directions() {
            let (target, objects) = (self.context.target.clone(), Arc::clone(self.context.objects));
            self.tasks.spawn(load::generate(target, objects, *direction, self.events.clone()));
        }
    }

    /// Probes and samples until `end`.
    async fn interval(&mut self, end: MonotonicTime, record: &mut HttpLoadRecord<'_>) -> Result<(), HttpTestEnd> {
        let before = self.payload();
        let every = probe::probe_interval(self.capacity);
        let begun = clock::monotonic_now();
        self.starts.push(begun);
        let (mut next_probe, mut next_sample) = (begun, begun + SAMPLING_INTERVAL);
        loop {
            let now = clock::monotonic_now();
            self.handle_events()?;
            self.context.check()?;
            if now >= next_sample || now >= end {
                self.sample(record);
                next_sample = now + SAMPLING_INTERVAL;
            }
            if now >= end {
                self.capacity = Some(self.payload() - before);
                return Ok(());
            }
            if now >= next_probe {
                self.launch();
                next_probe = (next_probe + every).max(now);
            }
            let next = next_probe.min(next_sample).min(end);
            sleep(next.since(clock::monotonic_now())).await;
            while self.tasks.try_join_next().is_some() {}
        }
    }

    /// Launches a probe of each kind.
    fn launch(&mut self) {
        let (target, objects) = (self.context.target.clone(), Arc::clone(self.context.objects));
        if self.waiting[0] < MAX_WAITING {
            self.waiting[0] += 1;
            self.tasks.spawn(probe::foreign(target.clone(), Arc::clone(&objects), self.events.clone()));
        }
        let Some(index) = self.random_below(self.connections.len()) else { return };
        if self.waiting[1] < MAX_WAITING {
            self.waiting[1] += 1;
            let sender = self.connections[index].sender.clone();
            self.tasks.spawn(probe::loaded(target, objects, sender, self.events.clone()));
        }
    }

    /// A number below `count` (xorshift64); `None` for none.
    fn random_below(&mut self, count: usize) -> Option<usize> {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        usize::try_from(self.random >> 33).ok()?.checked_rem(count)
    }

    fn handle_events(&mut self) -> Result<(), HttpTestEnd> {
        while let Ok(event) = self.happened.try_recv() {
            match event {
                TestEvent::Opened(connection) => self.connections.push(connection),
                TestEvent::Broken(reason) => return Err(HttpTestEnd::Failed(reason)),
                TestEvent::Foreign(at, result) => {
                    self.waiting[0] = self.waiting[0].saturating_sub(1);
                    let probe = self.noted(result);
                    self.foreign.push((at, probe));
                }
                TestEvent::Loaded(at, result) => {
                    self.waiting[1] = self.waiting[1].saturating_sub(1);
                    let probe = self.noted(result);
                    self.loaded.push((at, probe));
                }
            }
        }
        Ok(())
    }

    /// A result; the first failure is kept for a note.
    fn noted<T>(&mut self, result: Result<T, String>) -> Option<T> {
        result.map_err(|reason| self.failure.get_or_insert(reason).clone()).ok()
    }

    fn payload(&self) -> ByteCount {
        self.meters.iter().map(LoadMeter::payload).sum()
    }

    fn sample(&mut self, record: &mut HttpLoadRecord<'_>) {
        let mut figures = LoadFigures::default();
        for meter in &mut self.meters {
            let before = meter.payload();
            meter.sample(&self.connections, SAMPLING_INTERVAL);
            let rate = Some((meter.payload() - before).rate_over(SAMPLING_INTERVAL));
            match meter.direction() {
                Direction::Down => figures.down = rate,
                Direction::Up => figures.up = rate,
            }
        }
        let latest = self.loaded.iter().rev().take(SHOWN_ROUND_TRIPS).filter_map(|(_, time)| *time);
        let mut latest: Vec<Duration> = latest.collect();
        latest.sort_unstable();
        figures.round_trip = latest.get(latest.len() / 2).copied();
        record.report(&LoadEvent::Progress(figures));
    }

    /// Judges the interval that has ended.
    fn conclude(&mut self) -> Result<(), HttpTestEnd> {
        self.intervals += 1;
        if self.intervals >= MAX_SILENT_INTERVALS && self.payload().is_zero() {
            let seconds = (INTERVAL * 10).as_secs();
            return Err(HttpTestEnd::Failed(format!(
                "https://{}: no payload has moved for {seconds} s",
                self.context.target.authority
            )));
        }
        let moved = self.capacity.unwrap_or(ByteCount::ZERO);
        if !self.goodput.is_over {
            let limit = self.context.options.ramp_limit;
            self.goodput.push(moved.rate_over(INTERVAL).bits_per_second(), limit);
            return Ok(());
        }
        let Some(from) = self.starts.last().copied() else { return Ok(()) };
        let (foreign, loaded) = (since(&self.foreign, from), since(&self.loaded, from));
        let figure = Responsiveness::of(&foreign, &loaded).round_trips_per_minute;
        self.responsiveness.push(figure.unwrap_or(0.0), self.context.options.load_time);
        Ok(())
    }

    fn finish(mut self, record: &mut HttpLoadRecord<'_>) {
        let end = clock::monotonic_now();
        let Some(from) = self.starts.iter().rev().take(COUNTED_INTERVALS).next_back().copied() else { return };
        if let Some(reason) = &self.failure {
            record.note(format!("Some probes failed, the first one by: {reason}."));
        }
        if let Some(sender) = self.connections.iter().find(|connection| connection.direction == Direction::Up) {
            record.congestion_control(options::congestion(&*sender.socket).ok());
        }
        record.end(HttpPhaseSamples {
            counted: (from, end),
            loads: self.meters.drain(..).map(LoadMeter::finish).collect(),
            connections: self.asked,
            intervals: self.intervals,
            goodput: self.goodput.confidence(),
            responsiveness: self.responsiveness.confidence(),
            foreign: core::mem::take(&mut self.foreign),
            loaded: core::mem::take(&mut self.loaded),
        });
    }
}

/// Answered probes since this time.
fn since<T: Copy>(probes: &[TimedProbe<T>], from: MonotonicTime) -> Vec<T> {
    probes.iter().rev().take_while(|(at, _)| *at >= from).filter_map(|(_, probe)| *probe).collect()
}
