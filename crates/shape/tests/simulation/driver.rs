//! The controller on the simulated line: probes, clocks, reflectors that die, and what comes of it.

use std::collections::BTreeMap;
use std::time::Duration;

use linerate_model::statistics::{Random, Signed, percentile};
use linerate_model::throughput::Flow;
use linerate_shape::autorate::{
    Bounds, Controller, Delay, Input, Law, Output, ReflectorId, Sample, Settings, State, probe_interval,
};
use linerate_units::{BitRate, ByteCount, MonotonicTime, Ratio};

use super::simulation::Line;

const REFLECTORS: u32 = 6;

#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    pub(crate) name: String,
    pub(crate) up: Line,
    pub(crate) down: Line,
    pub(crate) bounds: Bounds,
    /// Milliseconds of steps: what comes within two seconds after one does not count.
    pub(crate) steps: Vec<usize>,
    /// The mean of the exponential jitter of each direction, in milliseconds.
    pub(crate) jitter: f64,
    /// Local clock ahead of the reflectors' by milliseconds, from a time on.
    pub(crate) clock: Option<(usize, f64)>,
    /// Reflectors with a number below this are dead from this time on.
    pub(crate) deaths: Option<(usize, u32)>,
    /// Whether probes tell round trips only.
    pub(crate) round_trips: bool,
    pub(crate) seed: u64,
    /// Which directions count for the share that is used.
    pub(crate) counts: [bool; 2],
}

#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    /// 50th and 95th percentile of the round trips above rest, in milliseconds, outside two seconds after steps.
    pub(crate) median: f64,
    pub(crate) p95: f64,
    /// Carried of what could have been, over the whole time that there was something to send.
    pub(crate) used: f64,
    /// The lowest rates that were set, Mbit/s, up first.
    pub(crate) lowest: [f64; 2],
    pub(crate) last: [f64; 2],
    pub(crate) states: Vec<(usize, State)>,
    pub(crate) replaced: Vec<(u32, u32)>,
    pub(crate) changes: usize,
    pub(crate) controller: Controller,
}

struct Probe {
    reflector: u32,
    sent: usize,
    up: f64,
}

struct Run {
    scenario: Scenario,
    controller: Controller,
    random: Random,
    /// Milliseconds between two probes of whichever reflectors.
    spacing: usize,
    slots: Vec<u32>,
    flying: BTreeMap<u64, Probe>,
    /// Milliseconds → what happens: probes that reach the buffer down, answers that arrive.
    due: BTreeMap<(usize, u64), Event>,
    uplifts: Vec<f64>,
    offered: [f64; 2],
    carried: [f64; 2],
    states: Vec<(usize, State)>,
    replaced: Vec<(u32, u32)>,
    lowest: [f64; 2],
    changes: usize,
    numbers: u64,
}

enum Event {
    Enters,
    Answers { down: f64 },
}

pub(crate) fn run(scenario: Scenario, law: Law) -> Outcome {
    let probe_interval = probe_interval(law, [scenario.bounds.base; 2]);
    let settings = Settings {
        law,
        up: scenario.bounds,
        down: scenario.bounds,
        reflectors: (0..REFLECTORS).map(ReflectorId::new).collect(),
        spare: (REFLECTORS..30).map(ReflectorId::new).collect(),
        probe_interval,
        largest_packet: ByteCount::new(1514),
    };
    let mut run = Run {
        random: Random::new(scenario.seed ^ 0x5eed),
        controller: Controller::new(&settings, at(0)),
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

impl Run {
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
            self.due.insert((now + 1, number), Event::Answers { down });
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
        self.flying.insert(self.numbers, Probe { reflector, sent: now, up: 0.0 });
        if now.is_multiple_of(1000) {
            let old: Vec<u64> =
                self.flying.iter().filter(|(_, probe)| now > probe.sent + 1000).map(|(number, _)| *number).collect();
            for number in old {
                let reflector = self.flying[&number].reflector;
                if now - self.flying[&number].sent < 2001 {
                    self.tell(Input::Lost { reflector: ReflectorId::new(reflector) }, now);
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
        // The way back until the buffer takes the rest of both.
        let reaches = now + (rest + jitter + self.scenario.down.rest[now]) as usize;
        self.due.insert((reaches, number), Event::Enters);
    }

    fn event(&mut self, number: u64, event: &Event, now: usize) {
        match event {
            Event::Enters => {
                if !self.scenario.down.probe(number, now) {
                    self.flying.remove(&number);
                }
            }
            Event::Answers { down } => self.answer(number, *down, now),
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
            Delay::RoundTrip(Duration::from_secs_f64((probe.up + down) / 1e3))
        } else {
            // The sum is by one clock that nobody sets.
            let up = probe.up - offset(probe.sent);
            Delay::OneWay { up: signed(up), down: signed(probe.up + down - up) }
        };
        let rest = self.scenario.up.rest[probe.sent] + self.scenario.down.rest[probe.sent];
        let recent = |step: &usize| probe.sent >= *step && probe.sent < step + 2000;
        // The first ten seconds are the start.
        if probe.sent > 10_000 && !self.scenario.steps.iter().any(recent) {
            self.uplifts.push(probe.up + down - rest - 2.0 * self.scenario.jitter * 0.84);
        }
        let sample = Sample { reflector: ReflectorId::new(probe.reflector), sequence: number, delay };
        self.tell(Input::Sample(sample), now);
    }

    fn achieved(&mut self, now: usize) {
        let (up, down) = (self.scenario.up.counted, self.scenario.down.counted);
        (self.scenario.up.counted, self.scenario.down.counted) = (0.0, 0.0);
        let over = Duration::from_millis(100);
        for (direction, backlog) in [(Flow::Up, self.scenario.up.backlog()), (Flow::Down, self.scenario.down.backlog())]
        {
            self.tell(Input::Backlog { direction, backlog: ByteCount::from_f64(backlog) }, now);
        }
        let input = Input::Achieved { up: ByteCount::from_f64(up), down: ByteCount::from_f64(down), over };
        self.tell(input, now);
    }

    fn tell(&mut self, input: Input, now: usize) {
        self.controller.handle(input, at(now));
        self.take(now);
    }

    fn take(&mut self, now: usize) {
        while let Some(output) = self.controller.poll() {
            match output {
                Output::SetRate { direction, rate } => {
                    let (line, index) = match direction {
                        Flow::Up => (&mut self.scenario.up, 0),
                        Flow::Down => (&mut self.scenario.down, 1),
                    };
                    line.rate = rate.bits_per_second() / 8e3;
                    self.lowest[index] = self.lowest[index].min(rate.bits_per_second() / 1e6);
                    self.changes += 1;
                }
                Output::State(state) => self.states.push((now, state)),
                Output::Replace { old, new } => {
                    self.replaced.push((old.get(), new.get()));
                    if let Some(slot) = self.slots.iter_mut().find(|slot| **slot == old.get()) {
                        *slot = new.get();
                    }
                }
                Output::Log(_) => {}
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

    fn outcome(self) -> Outcome {
        let share = |share: f64| {
            let share = Ratio::new(share).expect("a share");
            percentile(&self.uplifts, share).unwrap_or(f64::INFINITY)
        };
        let sum = |values: [f64; 2]| {
            values.iter().zip(self.scenario.counts).filter(|(_, counts)| *counts).map(|(value, _)| *value).sum::<f64>()
        };
        Outcome {
            median: share(0.5),
            p95: share(0.95),
            used: sum(self.carried) / sum(self.offered),
            lowest: self.lowest,
            last: [Flow::Up, Flow::Down].map(|flow| self.controller.rate(flow).bits_per_second() / 1e6),
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

fn signed(milliseconds: f64) -> Signed<Duration> {
    Signed::from_number(milliseconds * 1e6)
}

pub(crate) fn megabits(rate: f64) -> BitRate {
    BitRate::from_bits_per_second(rate * 1e6)
}
