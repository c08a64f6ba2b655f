use linerate_model::throughput::Flow;

use super::constants::{
    AFTER_DRAIN, AFTER_LOAD, DISCOVERY, DRAIN_FROM, DRAIN_SHARES, DRAIN_TIME, GROWING, JITTER, LEAN, NEAR, ONE_FALL,
    STEP_TIME, STEPS, STUCK_LEFT, STUCK_SOON, STUCK_TIME, TARGET, UNLOADED,
};
use super::side::Side;
use super::{Load, Reason};

/// linerate's law: estimates the capacity, drains what stands in the path's buffer, and steps up in growing steps.
#[derive(Clone, Debug)]
pub(super) struct Seeker {
    capacity: Option<f64>,
    /// When it was last estimated.
    estimated: f64,
    draining: bool,
    /// The queue when draining began or was last seen to change, since when, and the rate then.
    stuck: (f64, f64, f64),
    unloaded_since: Option<f64>,
    /// When there was load the last time.
    busy: f64,
    step: f64,
    acted: f64,
}

impl Seeker {
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

    /// One sample later; returns by how much the delay at rest is longer, when a lower rate or no load does not help.
    pub(super) fn react(&mut self, side: &mut Side, now: f64, round_trip: f64) -> Option<f64> {
        let queue = side.window.queue()?;
        let growth = side.window.growth();
        let jitter = side.window.jitter();
        let target = TARGET + side.packet_time() + JITTER.0 * jitter;
        if side.load() != Load::Idle {
            self.busy = now;
        }
        let ours = now - self.busy < AFTER_LOAD;
        side.reason = Reason::Hold;
        if let Some(rebase) = self.not_ours(side, now, queue, target) {
            return Some(rebase);
        }
        if queue > target && side.load() != Load::Idle {
            self.estimate(side, now, growth);
        }
        if self.draining || (ours && queue > DRAIN_FROM + side.packet_time() + JITTER.1 * jitter) {
            self.drain(side, now, queue, target);
        } else if now - self.acted >= STEP_TIME {
            let rising = growth.map_or(0.0, |(growth, ..)| growth);
            if queue > target && ours {
                self.lean(side, now, queue - target, rising);
            } else if side.load() == Load::High {
                // What the last step did shows a round trip later.
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

    /// What comes out of a standing queue is the capacity; what went in, over one plus the queue's growth, too.
    fn estimate(&mut self, side: &mut Side, now: f64, growth: Option<(f64, f64, f64)>) {
        let measured = match (side.flow, growth) {
            (Flow::Down, _) => side.achieved,
            (Flow::Up, Some((growth, from, to))) => {
                side.carried_between(from, to).map(|sent| sent / (1.0 + growth.clamp(-0.5, 20.0)))
            }
            (Flow::Up, None) => None,
        };
        let Some(measured) = measured else { return };
        let measured = measured.max(side.rate * ONE_FALL);
        let capacity = match self.capacity {
            Some(before) if now - self.estimated < 1.0 => before + 0.4 * (measured - before),
            _ => measured,
        };
        self.capacity = Some(capacity);
        self.estimated = now;
        let least = side.smallest_capacity.map_or(capacity, |least| least.min(capacity));
        side.smallest_capacity = Some(least);
        // One in 1200 samples, half a minute: the base rate is not the last second's.
        let mean = side.mean_capacity.map_or(capacity, |mean| mean + (capacity - mean) / 1200.0);
        side.mean_capacity = Some(mean);
    }

    fn drain(&mut self, side: &mut Side, now: f64, queue: f64, target: f64) {
        let capacity = self.capacity.unwrap_or(side.rate * DRAIN_SHARES.1);
        if !self.draining {
            self.draining = true;
            self.acted = now - STEP_TIME;
        }
        self.step = STEPS.0;
        if queue <= target {
            self.draining = false;
            side.rate = capacity * AFTER_DRAIN;
            side.reason = Reason::Drained;
            self.acted = now;
        } else if now - self.acted >= STEP_TIME / 2.0 {
            let share = 1.0 - (queue - target) / DRAIN_TIME;
            side.rate = capacity * share.clamp(DRAIN_SHARES.0, DRAIN_SHARES.1);
            side.reason = Reason::Drain;
            self.acted = now;
        }
    }

    /// A little less than what made the queue.
    fn lean(&mut self, side: &mut Side, now: f64, above: f64, rising: f64) {
        side.rate *= (1.0 - LEAN.0 * above) / (1.0 + LEAN.1 * rising.clamp(0.0, 0.5));
        side.reason = Reason::Lean;
        self.step = STEPS.0;
        self.acted = now;
    }

    /// A step up: small near the last known capacity, else each larger than the one before.
    fn grow(&mut self, side: &mut Side, now: f64, queue_share: f64, rising: f64) {
        self.acted = now;
        if rising > GROWING + JITTER.2 * side.window.jitter() {
            self.step = STEPS.0;
            return;
        }
        if side.discovering() {
            self.step = DISCOVERY;
        } else if self.near(side.rate, now) {
            self.step = STEPS.0;
        } else {
            self.step = (self.step * STEPS.1).min(STEPS.2);
        }
        side.rate *= 1.0 + self.step * (1.0 - queue_share).clamp(0.2, 1.0);
        side.reason = Reason::Grow;
    }

    fn near(&self, rate: f64, now: f64) -> bool {
        now - self.estimated < NEAR.1 && self.capacity.is_some_and(|capacity| rate < capacity * NEAR.0)
    }

    /// Whether the delay is somebody else's: it does not go away when less is sent, or while nobody sends.
    fn not_ours(&mut self, side: &mut Side, now: f64, queue: f64, target: f64) -> Option<f64> {
        let loaded = side.load() == Load::High || side.achieved.is_some_and(|achieved| achieved > side.rate / 3.0);
        if loaded || queue <= target {
            self.unloaded_since = None;
        } else if now - *self.unloaded_since.get_or_insert(now) > UNLOADED {
            self.unloaded_since = None;
            self.draining = false;
            return Some(queue);
        }
        let (before, since, rate) = self.stuck;
        if queue <= target || queue < before * STUCK_LEFT || queue > before / STUCK_LEFT {
            self.stuck = (queue, now, side.rate);
            return None;
        }
        let fell = now - since > STUCK_SOON.0 && side.rate < rate * STUCK_SOON.1;
        if fell || now - since > STUCK_TIME {
            self.draining = false;
            self.acted = now;
            // What was taken off for it comes back.
            side.rate = side.rate.max(rate * AFTER_DRAIN);
            self.capacity = self.capacity.map(|capacity| capacity.max(side.rate));
            return Some(queue);
        }
        None
    }
}
