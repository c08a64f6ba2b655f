//! The controller on the simulated link: probes, clocks, failing reflectors, and the result.

use linerate_model::direction::Direction;
use std::collections::BTreeMap;
use std::time::Duration;

use linerate_analysis::statistics::{SeededRandom, SignedDifference, percentile};
use linerate_shape::autorate::{
    AutorateBounds, ControlLaw, ControllerInput, ControllerOutput, ControllerSettings, ControllerState, ProbeDelay,
    RateController, ReflectorId, ReflectorSample, probe_interval,
};
use linerate_units::{BitRate, ByteCount, MonotonicTime, Ratio};

use super::SimulatedLink;

const REFLECTORS: u32 = 6;

#[derive(Clone, Debug)]
pub(crate) struct SimulationScenario {
    pub(crate) name: String,
    pub(crate) up: SimulatedLink,
    pub(crate) down: SimulatedLink,
    pub(crate) bounds: AutorateBounds,
    /// Times of steps in milliseconds: samples within two seconds after one are skipped.
    pub(crate) steps: Vec<usize>,
    /// Mean of the exponential jitter of each direction, in milliseconds.
    pub(crate) jitter: f64,
    /// Start time and offset of the local clock, in milliseconds.
    pub(crate) clock: Option<(usize, f64)>,
    /// Time from which reflectors with a number below this do not answer.
    pub(crate) deaths: Option<(usize, u32)>,
    /// True when probes measure round trips only.
    pub(crate) round_trips: bool,
    pub(crate) seed: u64,
    /// Directions that count for the used share.
    pub(crate) counts: [bool; 2],
}

#[derive(Clone, Debug)]
pub(crate) struct SimulationOutcome {
    /// 50th and 95th percentile of the round trips above idle, in milliseconds, except two seconds after steps.
    pub(crate) median: f64,
    pub(crate) p95: f64,
    /// Carried share of the possible bytes while there was data to send.
    pub(crate) used: f64,
    /// Lowest set rates, in Mbit/s, up first.
    pub(crate) lowest: [f64; 2],
    pub(crate) last: [f64; 2],
    pub(crate) states: Vec<(usize, ControllerState)>,
    pub(crate) replaced: Vec<(u32, u32)>,
    pub(crate) changes: usize,
    pub(crate) controller: RateController,
}

struct ProbeInFlight {
    reflector: u32,
    sent: usize,
    up: f64,
}

struct SimulationRun {
    scenario: SimulationScenario,
    controller: RateController,
    random: SeededRandom,
    /// Milliseconds between two probes, over all reflectors.
    spacing: usize,
    slots: Vec<u32>,
    flying: BTreeMap<u64, ProbeInFlight>,
    /// Events by millisecond: probes that reach the downlink buffer, answers that arrive.
    due: BTreeMap<(usize, u64), SimulationEvent>,
    uplifts: Vec<f64>,
    offered: [f64; 2],
    carried: [f64; 2],
    states: Vec<(usize, ControllerState)>,
    replaced: Vec<(u32, u32)>,
    lowest: [f64; 2],
    changes: usize,
    numbers: u64,
}

enum SimulationEvent {
    Enters,
    Answers { down: f64 },
}

pub(crate) fn run(scenario: SimulationScenario, law: ControlLaw) -> SimulationOutcome {
    let probe_interval = probe_interval(law, [scenario.bounds.base; 2]);
    let settings = ControllerSettings {
        law,
        up: scenario.bounds,
        down: scenario.bounds,
        reflectors: (0..REFLECTORS).map(ReflectorId::new).collect(),
        spare: (REFLECTORS..30).map(ReflectorId::new).collect(),
        probe_interval,
        largest_packet: ByteCount::new(1514),
    };
    let mut run = SimulationRun {
        random: SeededRandom::new(scenario.seed ^ 0x5eed),
        controller: RateController::new(&settings, at(0)),
        scenario,
        slots: (0..REFLECTORS).collect(),
        spacing: probe_interval.as_millis() as usize,
        flying: BTreeMap::new(),
        due: BTreeMap::new(),
        uplifts: Vec::new(),
        offered: [0.0; 2],
        carried: [0.0; 2],
        states: Vec::new(),
        replaced: Vec::new(),
        lowest: [f64::INFINITY; 2],
        changes: 0,
        numbers: 0,
    };
    let length = run.scenario.up.capacity.len();
    let mut out = Vec::new();
    run.take(0);
    for now in 0..length {
        run.millisecond(now, &mut out);
    }
    run.outcome()
}

impl SimulationRun {
    fn millisecond(&mut self, now: usize, out: &mut Vec<(u64, f64)>) {
        if now.is_multiple_of(self.spacing) {
            self.send(now);
        }
        let later = self.due.split_off(&(now + 1, 0));
        for ((_, number), event) in std::mem::replace(&mut self.due, later) {
            self.event(number, &event, now);
        }
        out.clear();
        self.scenario.up.step(now, out);
        for (number, waited) in out.drain(..) {
            self.through_up(number, waited, now);
        }
        self.scenario.down.step(now, out);
        for (number, waited) in out.drain(..) {
            let down = self.scenario.down.rest[now] + waited;
            self.due.insert((now + 1, number), SimulationEvent::Answers { down });
        }
        self.count(now);
        if now % 100 == 99 {
            self.achieved(now);
        }
    }

    fn jitter(&mut self) -> f64 {
        -self.scenario.jitter * (1.0 - self.random.unit()).ln()
    }

    fn send(&mut self, now: usize) {
        let reflector = self.slots[now / self.spacing % self.slots.len()];
        self.numbers += 1;
        if !self.scenario.up.probe(self.numbers, now) {
            return;
        }
        self.flying.insert(self.numbers, ProbeInFlight { reflector, sent: now, up: 0.0 });
        if now.is_multiple_of(1000) {
            let old: Vec<u64> =
                self.flying.iter().filter(|(_, probe)| now > probe.sent + 1000).map(|(number, _)| *number).collect();
            for number in old {
                let reflector = self.flying[&number].reflector;
                if now - self.flying[&number].sent < 2001 {
                    self.tell(ControllerInput::Lost { reflector: ReflectorId::new(reflector) }, now);
                }
            }
        }
    }

    fn through_up(&mut self, number: u64, waited: f64, now: usize) {
        let jitter = self.jitter();
        let Some(probe) = self.flying.get_mut(&number) else { return };
        let dead = self.scenario.deaths.is_some_and(|(from, below)| now >= from && probe.reflector < below);
        if dead {
            self.flying.remove(&number);
            return;
        }
        let rest = self.scenario.up.rest[now];
        probe.up = rest + waited + jitter;
        // Half of the return path precedes the buffer.
        let reaches = now + (rest + jitter + self.scenario.down.rest[now]) as usize;
        self.due.insert((reaches, number), SimulationEvent::Enters);
    }

    fn event(&mut self, number: u64, event: &SimulationEvent, now: usize) {
        match event {
            SimulationEvent::Enters => {
                if !self.scenario.down.probe(number, now) {
                    self.flying.remove(&number);
                }
            }
            SimulationEvent::Answers { down } => self.answer(number, *down, now),
        }
    }

    fn answer(&mut self, number: u64, down: f64, now: usize) {
        let jitter = self.jitter();
        let Some(probe) = self.flying.remove(&number) else { return };
        let down = down + jitter;
        let offset = |time: usize| match self.scenario.clock {
            Some((from, ahead)) if time >= from => ahead,
            _ => 0.0,
        };
        let delay = if self.scenario.round_trips {
            ProbeDelay::RoundTrip(Duration::from_secs_f64((probe.up + down) / 1e3))
        } else {
            // The sum is by one monotonic clock.
            let up = probe.up - offset(probe.sent);
            ProbeDelay::OneWay { up: signed(up), down: signed(probe.up + down - up) }
        };
        let rest = self.scenario.up.rest[probe.sent] + self.scenario.down.rest[probe.sent];
        let recent = |step: &usize| probe.sent >= *step && probe.sent < step + 2000;
        // The first ten seconds are skipped.
        if probe.sent > 10_000 && !self.scenario.steps.iter().any(recent) {
            self.uplifts.push(probe.up + down - rest - 2.0 * self.scenario.jitter * 0.84);
        }
        let sample = ReflectorSample { reflector: ReflectorId::new(probe.reflector), sequence: number, delay };
        self.tell(ControllerInput::Sample(sample), now);
    }

    fn achieved(&mut self, now: usize) {
        let (up, down) = (self.scenario.up.counted, self.scenario.down.counted);
        (self.scenario.up.counted, self.scenario.down.counted) = (0.0, 0.0);
        let over = Duration::from_millis(100);
        for (direction, backlog) in
            [(Direction::Up, self.scenario.up.backlog()), (Direction::Down, self.scenario.down.backlog())]
        {
            self.tell(ControllerInput::Backlog { direction, backlog: ByteCount::from_f64(backlog) }, now);
        }
        let input = ControllerInput::Achieved { up: ByteCount::from_f64(up), down: ByteCount::from_f64(down), over };
        self.tell(input, now);
    }

    fn tell(&mut self, input: ControllerInput, now: usize) {
        self.controller.handle(input, at(now));
        self.take(now);
    }

    fn take(&mut self, now: usize) {
        while let Some(output) = self.controller.poll() {
            match output {
                ControllerOutput::SetRate { direction, rate } => {
                    let (line, index) = match direction {
                        Direction::Up => (&mut self.scenario.up, 0),
                        Direction::Down => (&mut self.scenario.down, 1),
                    };
                    line.rate = rate.bits_per_second() / 8e3;
                    self.lowest[index] = self.lowest[index].min(rate.bits_per_second() / 1e6);
                    self.changes += 1;
                }
                ControllerOutput::State(state) => self.states.push((now, state)),
                ControllerOutput::Replace { old, new } => {
                    self.replaced.push((old.get(), new.get()));
                    if let Some(slot) = self.slots.iter_mut().find(|slot| **slot == old.get()) {
                        *slot = new.get();
                    }
                }
                ControllerOutput::Log(_) => {}
            }
        }
    }

    fn count(&mut self, now: usize) {
        for (index, line) in [&mut self.scenario.up, &mut self.scenario.down].into_iter().enumerate() {
            let greedy = line.demand[now].is_infinite();
            if greedy && now >= 10_000 {
                self.offered[index] += line.capacity[now];
                self.carried[index] += line.delivered;
            }
            line.delivered = 0.0;
        }
    }

    fn outcome(self) -> SimulationOutcome {
        let share = |share: f64| {
            let share = Ratio::new(share).expect("a share");
            percentile(&self.uplifts, share).unwrap_or(f64::INFINITY)
        };
        let sum = |values: [f64; 2]| {
            values.iter().zip(self.scenario.counts).filter(|(_, counts)| *counts).map(|(value, _)| *value).sum::<f64>()
        };
        SimulationOutcome {
            median: share(0.5),
            p95: share(0.95),
            used: sum(self.carried) / sum(self.offered),
            lowest: self.lowest,
            last: [Direction::Up, Direction::Down].map(|flow| self.controller.rate(flow).bits_per_second() / 1e6),
            states: self.states,
            replaced: self.replaced,
            changes: self.changes,
            controller: self.controller,
        }
    }
}

fn at(milliseconds: usize) -> MonotonicTime {
    MonotonicTime::from_nanos(milliseconds as u64 * 1_000_000)
}

fn signed(milliseconds: f64) -> SignedDifference<Duration> {
    SignedDifference::from_number(milliseconds * 1e6)
}

pub(crate) fn megabits(rate: f64) -> BitRate {
    BitRate::from_bits_per_second(rate * 1e6)
}
