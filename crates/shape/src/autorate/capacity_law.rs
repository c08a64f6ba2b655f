use super::constants::{
    AFTER_DRAIN_SHARE, AFTER_LOAD_TIME, DISCOVERY_STEP, DRAIN_SHARES, DRAIN_THRESHOLD, DRAIN_TIME, JITTER_GAINS,
    MIN_ESTIMATE_SHARE, MIN_QUEUE_GROWTH, NEAR_CAPACITY, REDUCTION_GAINS, STEP_TIME, STEPS, STUCK_AT_LOWER_RATE,
    STUCK_QUEUE_SHARE, STUCK_TIME, TARGET, UNLOADED_TIME,
};
use super::direction_state::DirectionState;
use super::{LoadLevel, RateReason};
use linerate_model::direction::Direction;

/// linerate's law: estimates the capacity, drains the queue in the path's buffer, and probes upwards in growing steps.
#[derive(Clone, Debug)]
pub(super) struct CapacityLaw {
    capacity: Option<f64>,
    /// Time of the last estimate.
    estimated: f64,
    draining: bool,
    /// Queue at the start of draining or its last change, its time, and the rate then.
    stuck: (f64, f64, f64),
    unloaded_since: Option<f64>,
    /// Time of the last load.
    busy: f64,
    step: f64,
    acted: f64,
}

impl CapacityLaw {
    pub(super) fn new(now: f64) -> Self {
        Self {
            capacity: None,
            estimated: now,
            draining: false,
            stuck: (0.0, now, 0.0),
            unloaded_since: None,
            busy: now,
            step: STEPS.0,
            acted: now,
        }
    }

    pub(super) fn capacity(&self) -> Option<f64> {
        self.capacity
    }

    /// Reacts to a sample; returns the increase of the idle delay, when neither a lower rate nor idleness helps.
    pub(super) fn react(&mut self, side: &mut DirectionState, now: f64, round_trip: f64) -> Option<f64> {
        let queue = side.window.queue()?;
        let growth = side.window.growth();
        let jitter = side.window.jitter();
        let target = TARGET + side.packet_time() + JITTER_GAINS.0 * jitter;
        if side.load() != LoadLevel::Idle {
            self.busy = now;
        }
        let ours = now - self.busy < AFTER_LOAD_TIME;
        side.reason = RateReason::Hold;
        if let Some(rebase) = self.detect_foreign_delay(side, now, queue, target) {
            return Some(rebase);
        }
        if queue > target && side.load() != LoadLevel::Idle {
            self.estimate(side, now, growth);
        }
        if self.draining || (ours && queue > DRAIN_THRESHOLD + side.packet_time() + JITTER_GAINS.1 * jitter) {
            self.drain(side, now, queue, target);
        } else if now - self.acted >= STEP_TIME {
            let rising = growth.map_or(0.0, |(growth, ..)| growth);
            if queue > target && ours {
                self.lean(side, now, queue - target, rising);
            } else if side.load() == LoadLevel::High {
                // The effect of a step shows a round trip later.
                if now - self.acted >= STEP_TIME + (round_trip - queue).clamp(0.0, 0.2) {
                    self.grow(side, now, queue / target, rising);
                }
            } else {
                self.step = STEPS.0;
                side.decay(now);
            }
        }
        None
    }

    /// Estimates the capacity: the output rate of a standing queue, or its input rate over one plus the queue's growth.
    fn estimate(&mut self, side: &mut DirectionState, now: f64, growth: Option<(f64, f64, f64)>) {
        let measured = match (side.flow, growth) {
            (Direction::Down, _) => side.achieved,
            (Direction::Up, Some((growth, from, to))) => {
                side.carried_between(from, to).map(|sent| sent / (1.0 + growth.clamp(-0.5, 20.0)))
            }
            (Direction::Up, None) => None,
        };
        let Some(measured) = measured else { return };
        let measured = measured.max(side.rate * MIN_ESTIMATE_SHARE);
        let capacity = match self.capacity {
            Some(before) if now - self.estimated < 1.0 => before + 0.4 * (measured - before),
            _ => measured,
        };
        self.capacity = Some(capacity);
        self.estimated = now;
        let least = side.smallest_capacity.map_or(capacity, |least| least.min(capacity));
        side.smallest_capacity = Some(least);
        // 1 in 1200 samples, half a minute: the base rate must not follow single seconds.
        let mean = side.mean_capacity.map_or(capacity, |mean| mean + (capacity - mean) / 1200.0);
        side.mean_capacity = Some(mean);
    }

    fn drain(&mut self, side: &mut DirectionState, now: f64, queue: f64, target: f64) {
        let capacity = self.capacity.unwrap_or(side.rate * DRAIN_SHARES.1);
        if !self.draining {
            self.draining = true;
            self.acted = now - STEP_TIME;
        }
        self.step = STEPS.0;
        if queue <= target {
            self.draining = false;
            side.rate = capacity * AFTER_DRAIN_SHARE;
            side.reason = RateReason::Drained;
            self.acted = now;
        } else if now - self.acted >= STEP_TIME / 2.0 {
            let share = 1.0 - (queue - target) / DRAIN_TIME;
            side.rate = capacity * share.clamp(DRAIN_SHARES.0, DRAIN_SHARES.1);
            side.reason = RateReason::Drain;
            self.acted = now;
        }
    }

    /// Sets slightly less than the rate that caused the queue.
    fn lean(&mut self, side: &mut DirectionState, now: f64, above: f64, rising: f64) {
        side.rate *= (1.0 - REDUCTION_GAINS.0 * above) / (1.0 + REDUCTION_GAINS.1 * rising.clamp(0.0, 0.5));
        side.reason = RateReason::Lean;
        self.step = STEPS.0;
        self.acted = now;
    }

    /// Steps up: small near the last known capacity, else each step larger than the last.
    fn grow(&mut self, side: &mut DirectionState, now: f64, queue_share: f64, rising: f64) {
        self.acted = now;
        if rising > MIN_QUEUE_GROWTH + JITTER_GAINS.2 * side.window.jitter() {
            self.step = STEPS.0;
            return;
        }
        if side.is_discovering() {
            self.step = DISCOVERY_STEP;
        } else if self.near(side.rate, now) {
            self.step = STEPS.0;
        } else {
            self.step = (self.step * STEPS.1).min(STEPS.2);
        }
        side.rate *= 1.0 + self.step * (1.0 - queue_share).clamp(0.2, 1.0);
        side.reason = RateReason::Grow;
    }

    fn near(&self, rate: f64, now: f64) -> bool {
        now - self.estimated < NEAR_CAPACITY.1
            && self.capacity.is_some_and(|capacity| rate < capacity * NEAR_CAPACITY.0)
    }

    /// Detects a foreign delay, which remains at a lower rate or without load.
    fn detect_foreign_delay(&mut self, side: &mut DirectionState, now: f64, queue: f64, target: f64) -> Option<f64> {
        let loaded = side.load() == LoadLevel::High || side.achieved.is_some_and(|achieved| achieved > side.rate / 3.0);
        if loaded || queue <= target {
            self.unloaded_since = None;
        } else if now - *self.unloaded_since.get_or_insert(now) > UNLOADED_TIME {
            self.unloaded_since = None;
            self.draining = false;
            return Some(queue);
        }
        let (before, since, rate) = self.stuck;
        if queue <= target || queue < before * STUCK_QUEUE_SHARE || queue > before / STUCK_QUEUE_SHARE {
            self.stuck = (queue, now, side.rate);
            return None;
        }
        let fell = now - since > STUCK_AT_LOWER_RATE.0 && side.rate < rate * STUCK_AT_LOWER_RATE.1;
        if fell || now - since > STUCK_TIME {
            self.draining = false;
            self.acted = now;
            // The reduction for it is reverted.
            side.rate = side.rate.max(rate * AFTER_DRAIN_SHARE);
            self.capacity = self.capacity.map(|capacity| capacity.max(side.rate));
            return Some(queue);
        }
        None
    }
}
