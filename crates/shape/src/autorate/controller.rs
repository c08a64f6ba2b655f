use core::time::Duration;
use std::collections::VecDeque;

use linerate_model::throughput::Flow;
use linerate_units::{BitRate, ByteCount, MonotonicTime};

use super::constants::{ALL_DEAD, BLIND, LOG_TIME, LONGEST_QUEUE, STALL, STALL_LEAST, SUSTAINED_IDLE, UNNOTICED};
use super::reflectors::Reflectors;
use super::settings::{Input, Law, Load, Output, ReflectorId, Sample, Settings, State};
use super::side::Side;
use super::{LogLine, Reason};

/// What was found out about one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Discovered {
    /// The largest rate that was carried while no queue stood in the path.
    pub largest_clean: Option<BitRate>,
    /// The smallest capacity that was estimated; `None` with cake-autorate's law.
    pub smallest_capacity: Option<BitRate>,
    /// A slow mean of the capacities that were estimated.
    pub mean_capacity: Option<BitRate>,
}

/// The controller of both directions.
///
/// Hand over everything with [`Controller::handle`], then take what [`Controller::poll`] gives until it gives nothing. A
/// sample costs a pass over the reflectors and no memory.
#[derive(Clone, Debug)]
pub struct Controller {
    law: Law,
    probe_interval: f64,
    state: State,
    reflectors: Reflectors,
    /// Up first.
    sides: [Side; 2],
    announced: [f64; 2],
    logged: [Option<MonotonicTime>; 2],
    idle_since: Option<f64>,
    outputs: VecDeque<Output>,
}

impl Controller {
    /// A controller that begins now. The rates to begin with are the first outputs.
    #[must_use]
    pub fn new(settings: &Settings, now: MonotonicTime) -> Self {
        let packet = settings.largest_packet.as_f64() * 8.0;
        let at = seconds(now);
        let side = |flow, bounds| Side::new(flow, bounds, settings.law, packet, at);
        let mut controller = Self {
            law: settings.law,
            probe_interval: settings.probe_interval.as_secs_f64(),
            state: State::Running,
            reflectors: Reflectors::new(&settings.reflectors, &settings.spare, at),
            sides: [side(Flow::Up, settings.up), side(Flow::Down, settings.down)],
            announced: [0.0; 2],
            logged: [None; 2],
            idle_since: None,
            outputs: VecDeque::with_capacity(LONGEST_QUEUE + 8),
        };
        controller.announce(now);
        controller
    }

    /// The next thing to do or to write down.
    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// What it is doing.
    #[must_use]
    pub const fn state(&self) -> State {
        self.state
    }

    /// The rate that is set in a direction.
    #[must_use]
    pub fn rate(&self, direction: Flow) -> BitRate {
        BitRate::from_bits_per_second(self.sides[index(direction)].rate)
    }

    /// What was found out about a direction.
    #[must_use]
    pub fn discovered(&self, direction: Flow) -> Discovered {
        let side = &self.sides[index(direction)];
        let rate = |known: Option<f64>| known.map(BitRate::from_bits_per_second);
        Discovered {
            largest_clean: rate(side.largest_clean),
            smallest_capacity: rate(side.smallest_capacity),
            mean_capacity: rate(side.mean_capacity),
        }
    }

    /// Something happened.
    pub fn handle(&mut self, input: Input, now: MonotonicTime) {
        let at = seconds(now);
        match input {
            Input::Sample(sample) => self.sample(&sample, at),
            Input::Lost { reflector } => self.reflectors.lost(reflector),
            Input::Achieved { up, down, over } => self.achieved([up, down], over, at),
            Input::Backlog { direction, backlog } => self.sides[index(direction)].backlog = backlog.as_f64(),
            Input::ClockStepped => self.forget(),
            Input::Link { up: false } => self.enter(State::LinkDown),
            Input::Link { up: true } => {
                self.forget();
                self.enter(State::Running);
            }
            Input::Tick => {}
        }
        self.watch(at);
        self.announce(now);
    }

    fn forget(&mut self) {
        self.reflectors.forget();
        self.sides.iter_mut().for_each(|side| side.window.clear());
    }

    fn sample(&mut self, sample: &Sample, now: f64) {
        let queues = [0, 1].map(|side: usize| self.sides[side].window.queue().unwrap_or(0.0));
        let Some(above) = self.reflectors.absorb(sample, now, self.law, queues) else { return };
        if matches!(self.state, State::Stalled | State::Blind) {
            // What the last answers said is from before.
            self.sides.iter_mut().for_each(|side| side.window.clear());
            self.enter(State::Running);
        }
        let loads = [self.sides[0].load(), self.sides[1].load()];
        if loads.iter().all(|load| *load != Load::High) {
            self.reflectors.average(sample.reflector, &above);
        }
        let mut delays = above.delays;
        if !above.one_way && self.law == Law::Linerate {
            // One direction alone is full: the whole delay is its own.
            match loads.map(|load| load == Load::High) {
                [true, false] => delays = [2.0 * delays[0], 0.0],
                [false, true] => delays = [0.0, 2.0 * delays[1]],
                _ => {}
            }
        }
        let mut rebase = [0.0; 2];
        for (index, side) in self.sides.iter_mut().enumerate() {
            side.window.push(now - above.round_trip, delays[index]);
            if self.state == State::Running {
                rebase[index] = side.on_sample(now, above.round_trip).unwrap_or(0.0);
            }
        }
        if rebase.iter().any(|by| *by > 0.0) {
            self.reflectors.rebase(rebase);
        }
    }

    fn achieved(&mut self, bytes: [ByteCount; 2], over: Duration, now: f64) {
        let from = now - over.as_secs_f64();
        for (side, bytes) in self.sides.iter_mut().zip(bytes) {
            side.carried(bytes.rate_over(over).bits_per_second(), from, now);
        }
        let idle = self.sides.iter().all(|side| side.load() == Load::Idle);
        match (idle, self.idle_since) {
            (true, None) => self.idle_since = Some(now),
            (true, Some(since)) if now - since >= SUSTAINED_IDLE && self.state == State::Running => {
                self.enter(State::Idle);
            }
            (false, _) => {
                self.idle_since = None;
                if self.state == State::Idle {
                    self.forget();
                    self.enter(State::Running);
                }
            }
            _ => {}
        }
    }

    /// What follows from time alone: silence, and the reflectors' health.
    fn watch(&mut self, now: f64) {
        if matches!(self.state, State::Idle | State::LinkDown) {
            return;
        }
        let silence = now - self.reflectors.answered();
        let carried = self.sides.iter().any(|side| side.achieved.is_some_and(|rate| rate > STALL.0));
        let patience =
            (self.probe_interval * f64::from(STALL.1)).max(STALL_LEAST) + self.reflectors.round_trip_at_rest();
        if silence > patience && !carried && self.sides[0].achieved.is_some() {
            self.enter(State::Stalled);
        } else if silence > patience.max(BLIND) && self.state == State::Running {
            self.enter(State::Blind);
            if self.law == Law::Linerate {
                self.sides.iter_mut().for_each(Side::careful);
            }
        }
        if let Some((old, new)) = self.reflectors.check(now, self.state == State::Blind && silence > ALL_DEAD) {
            self.outputs.push_back(Output::Replace { old, new });
        }
    }

    fn enter(&mut self, state: State) {
        if self.state != state {
            self.state = state;
            self.outputs.push_back(Output::State(state));
        }
    }

    /// Rates that changed, and lines of the log.
    fn announce(&mut self, now: MonotonicTime) {
        for index in 0..2 {
            let (rate, said) = (self.sides[index].rate, self.announced[index]);
            let changed = (rate - said).abs() > UNNOTICED * said;
            if changed {
                self.announced[index] = rate;
                let (direction, rate) = (self.sides[index].flow, BitRate::from_bits_per_second(rate));
                self.outputs.push_back(Output::SetRate { direction, rate });
            }
            let due = self.logged[index].is_none_or(|last| now.since(last) >= LOG_TIME);
            if changed || due {
                self.logged[index] = Some(now);
                let line = self.line(&self.sides[index], now);
                self.outputs.push_back(Output::Log(line));
            }
        }
        while self.outputs.len() > LONGEST_QUEUE {
            let oldest = self.outputs.iter().position(|output| matches!(output, Output::Log(_))).unwrap_or(0);
            self.outputs.remove(oldest);
        }
    }

    fn line(&self, side: &Side, now: MonotonicTime) -> LogLine {
        let rate = BitRate::from_bits_per_second;
        LogLine {
            at: now,
            direction: side.flow,
            state: self.state,
            load: side.load(),
            rate: rate(side.rate),
            achieved: side.achieved.map(rate),
            capacity: side.capacity().map(rate),
            queue: side.window.queue().and_then(|queue| Duration::try_from_secs_f64(queue).ok()),
            threshold: side.threshold(),
            reason: if self.state == State::Running { side.reason } else { Reason::Hold },
        }
    }

    /// The reflectors that are probed at present.
    #[must_use]
    pub fn reflectors(&self) -> Vec<ReflectorId> {
        self.reflectors.probed().collect()
    }
}

fn index(direction: Flow) -> usize {
    match direction {
        Flow::Up => 0,
        Flow::Down => 1,
    }
}

fn seconds(time: MonotonicTime) -> f64 {
    time.since_epoch().as_secs_f64()
}
