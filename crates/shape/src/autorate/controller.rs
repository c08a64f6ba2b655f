use core::time::Duration;
use linerate_model::direction::Direction;
use std::collections::VecDeque;

use linerate_units::{BitRate, ByteCount, MonotonicTime};

use super::constants::{
    BLIND_TIME, LOG_INTERVAL, MAX_QUEUED_OUTPUTS, MIN_STALL_TIME, REFLECTORS_DEAD_TIME, STALL_RATE_AND_INTERVALS,
    SUSTAINED_IDLE_TIME, UNNOTICED,
};
use super::direction_state::DirectionState;
use super::reflector_set::ReflectorSet;
use super::settings::{
    ControlLaw, ControllerInput, ControllerOutput, ControllerSettings, ControllerState, LoadLevel, ReflectorId,
    ReflectorSample,
};
use super::{AutorateLogLine, RateReason};

/// Discovered capacity of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DiscoveredCapacity {
    /// Largest rate carried without a queue in the path.
    pub largest_clean: Option<BitRate>,
    /// Smallest estimated capacity; `None` with cake-autorate's law.
    pub smallest_capacity: Option<BitRate>,
    /// Slow mean of the estimated capacities.
    pub mean_capacity: Option<BitRate>,
}

/// Controller of both directions.
///
/// Pass all inputs to [`RateController::handle`], then take outputs from [`RateController::poll`] until it returns `None`. A
/// sample costs a pass over the reflectors and no allocation.
#[derive(Clone, Debug)]
pub struct RateController {
    law: ControlLaw,
    probe_interval: f64,
    state: ControllerState,
    reflectors: ReflectorSet,
    /// Per direction, up first.
    sides: [DirectionState; 2],
    announced: [f64; 2],
    logged: [Option<MonotonicTime>; 2],
    idle_since: Option<f64>,
    outputs: VecDeque<ControllerOutput>,
}

impl RateController {
    /// Creates a controller. The initial rates are the first outputs.
    #[must_use]
    pub fn new(settings: &ControllerSettings, now: MonotonicTime) -> Self {
        let packet = settings.largest_packet.as_f64() * 8.0;
        let at = seconds(now);
        let side = |flow, bounds| DirectionState::new(flow, bounds, settings.law, packet, at);
        let mut controller = Self {
            law: settings.law,
            probe_interval: settings.probe_interval.as_secs_f64(),
            state: ControllerState::Running,
            reflectors: ReflectorSet::new(&settings.reflectors, &settings.spare, at),
            sides: [side(Direction::Up, settings.up), side(Direction::Down, settings.down)],
            announced: [0.0; 2],
            logged: [None; 2],
            idle_since: None,
            outputs: VecDeque::with_capacity(MAX_QUEUED_OUTPUTS + 8),
        };
        controller.announce(now);
        controller
    }

    /// Takes the next output.
    pub fn poll(&mut self) -> Option<ControllerOutput> {
        self.outputs.pop_front()
    }

    /// Current state.
    #[must_use]
    pub const fn state(&self) -> ControllerState {
        self.state
    }

    /// Set rate of a direction.
    #[must_use]
    pub fn rate(&self, direction: Direction) -> BitRate {
        BitRate::from_bits_per_second(self.sides[index(direction)].rate)
    }

    /// Discovered capacity of a direction.
    #[must_use]
    pub fn discovered(&self, direction: Direction) -> DiscoveredCapacity {
        let side = &self.sides[index(direction)];
        let rate = |known: Option<f64>| known.map(BitRate::from_bits_per_second);
        DiscoveredCapacity {
            largest_clean: rate(side.largest_clean),
            smallest_capacity: rate(side.smallest_capacity),
            mean_capacity: rate(side.mean_capacity),
        }
    }

    /// Handles an input.
    pub fn handle(&mut self, input: ControllerInput, now: MonotonicTime) {
        let at = seconds(now);
        match input {
            ControllerInput::Sample(sample) => self.sample(&sample, at),
            ControllerInput::Lost { reflector } => self.reflectors.lost(reflector),
            ControllerInput::Achieved { up, down, over } => self.achieved([up, down], over, at),
            ControllerInput::Backlog { direction, backlog } => self.sides[index(direction)].backlog = backlog.as_f64(),
            ControllerInput::ClockStepped => self.discard_baselines(),
            ControllerInput::Link { up: false } => self.enter(ControllerState::LinkDown),
            ControllerInput::Link { up: true } => {
                self.discard_baselines();
                self.enter(ControllerState::Running);
            }
            ControllerInput::Tick => {}
        }
        self.check_time(at);
        self.announce(now);
    }

    fn discard_baselines(&mut self) {
        self.reflectors.forget();
        self.sides.iter_mut().for_each(|side| side.window.clear());
    }

    fn sample(&mut self, sample: &ReflectorSample, now: f64) {
        let queues = [0, 1].map(|side: usize| self.sides[side].window.queue().unwrap_or(0.0));
        let Some(above) = self.reflectors.absorb(sample, now, self.law, queues) else { return };
        if matches!(self.state, ControllerState::Stalled | ControllerState::Blind) {
            // Earlier samples are stale.
            self.sides.iter_mut().for_each(|side| side.window.clear());
            self.enter(ControllerState::Running);
        }
        let loads = [self.sides[0].load(), self.sides[1].load()];
        if loads.iter().all(|load| *load != LoadLevel::High) {
            self.reflectors.average(sample.reflector, &above);
        }
        let mut delays = above.delays;
        if !above.one_way && self.law == ControlLaw::Linerate {
            // Only one direction is full: the whole delay is its own.
            match loads.map(|load| load == LoadLevel::High) {
                [true, false] => delays = [2.0 * delays[0], 0.0],
                [false, true] => delays = [0.0, 2.0 * delays[1]],
                _ => {}
            }
        }
        let mut rebase = [0.0; 2];
        for (index, side) in self.sides.iter_mut().enumerate() {
            side.window.push(now - above.round_trip, delays[index]);
            if self.state == ControllerState::Running {
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
        let idle = self.sides.iter().all(|side| side.load() == LoadLevel::Idle);
        match (idle, self.idle_since) {
            (true, None) => self.idle_since = Some(now),
            (true, Some(since)) if now - since >= SUSTAINED_IDLE_TIME && self.state == ControllerState::Running => {
                self.enter(ControllerState::Idle);
            }
            (false, _) => {
                self.idle_since = None;
                if self.state == ControllerState::Idle {
                    self.discard_baselines();
                    self.enter(ControllerState::Running);
                }
            }
            _ => {}
        }
    }

    /// Handles missing answers and the reflectors' health.
    fn check_time(&mut self, now: f64) {
        if matches!(self.state, ControllerState::Idle | ControllerState::LinkDown) {
            return;
        }
        let silence = now - self.reflectors.answered();
        let carried = self.sides.iter().any(|side| side.achieved.is_some_and(|rate| rate > STALL_RATE_AND_INTERVALS.0));
        let patience = (self.probe_interval * f64::from(STALL_RATE_AND_INTERVALS.1)).max(MIN_STALL_TIME)
            + self.reflectors.idle_round_trip();
        if silence > patience && !carried && self.sides[0].achieved.is_some() {
            self.enter(ControllerState::Stalled);
        } else if silence > patience.max(BLIND_TIME) && self.state == ControllerState::Running {
            self.enter(ControllerState::Blind);
            if self.law == ControlLaw::Linerate {
                self.sides.iter_mut().for_each(DirectionState::limit_to_safe_rate);
            }
        }
        if let Some((old, new)) =
            self.reflectors.check(now, self.state == ControllerState::Blind && silence > REFLECTORS_DEAD_TIME)
        {
            self.outputs.push_back(ControllerOutput::Replace { old, new });
        }
    }

    fn enter(&mut self, state: ControllerState) {
        if self.state != state {
            self.state = state;
            self.outputs.push_back(ControllerOutput::State(state));
        }
    }

    /// Queues changed rates and log lines.
    fn announce(&mut self, now: MonotonicTime) {
        for index in 0..2 {
            let (rate, said) = (self.sides[index].rate, self.announced[index]);
            let changed = (rate - said).abs() > UNNOTICED * said;
            if changed {
                self.announced[index] = rate;
                let (direction, rate) = (self.sides[index].flow, BitRate::from_bits_per_second(rate));
                self.outputs.push_back(ControllerOutput::SetRate { direction, rate });
            }
            let due = self.logged[index].is_none_or(|last| now.since(last) >= LOG_INTERVAL);
            if changed || due {
                self.logged[index] = Some(now);
                let line = self.line(&self.sides[index], now);
                self.outputs.push_back(ControllerOutput::Log(line));
            }
        }
        while self.outputs.len() > MAX_QUEUED_OUTPUTS {
            let oldest = self.outputs.iter().position(|output| matches!(output, ControllerOutput::Log(_))).unwrap_or(0);
            self.outputs.remove(oldest);
        }
    }

    fn line(&self, side: &DirectionState, now: MonotonicTime) -> AutorateLogLine {
        let rate = BitRate::from_bits_per_second;
        AutorateLogLine {
            at: now,
            direction: side.flow,
            state: self.state,
            load: side.load(),
            rate: rate(side.rate),
            achieved: side.achieved.map(rate),
            capacity: side.capacity().map(rate),
            queue: side.window.queue().and_then(|queue| Duration::try_from_secs_f64(queue).ok()),
            threshold: side.threshold(),
            reason: if self.state == ControllerState::Running { side.reason } else { RateReason::Hold },
        }
    }

    /// Currently probed reflectors.
    #[must_use]
    pub fn reflectors(&self) -> Vec<ReflectorId> {
        self.reflectors.probed().collect()
    }
}

fn index(direction: Direction) -> usize {
    match direction {
        Direction::Up => 0,
        Direction::Down => 1,
    }
}

fn seconds(time: MonotonicTime) -> f64 {
    time.since_epoch().as_secs_f64()
}
