//! The rate that other traffic leaves over: a bisection, with an empty queue before each step.

use super::{
    CapacitySearch, FeedbackWindow, MAX_HOLD_SECONDS, MAX_SETTLED_DIFFERENCE, MIN_HOLD_PACKETS, MIN_OVERLOAD_PACKETS,
    RateBounds, SearchPhase,
};
use crate::capacity::CapacityBound;
use crate::capacity::limits::{HOLD_DURATION, OVERLOAD_DURATION};

/// On a shared path: share of the tried rate at which the queue is emptied before; factor from the computed rate to the
/// first try; step up or down while only one bound is known; ratio at which the bounds are close enough; and the
/// efficiency below which a rate is too high.
const DRAIN_FACTOR: f64 = 0.7;
pub(super) const FIRST_TRY_FACTOR: f64 = 0.95;
const BOUND_STEP_FACTOR: f64 = 1.15;
const MAX_BOUND_RATIO: f64 = 1.02;
const MIN_EFFICIENCY_SHARED: f64 = 0.99;
/// Queueing delay that counts as empty, in nanoseconds, and the longest time to empty the queue, in seconds.
const MAX_EMPTY_QUEUE_NANOS: f64 = 2e6;
const MAX_DRAIN_SECONDS: f64 = 1.5;
/// Efficiency at the highest allowed rate below which the path limits.
const MIN_EFFICIENCY_AT_MAX_RATE: f64 = 0.99;

impl CapacitySearch {
    /// Empties the queue before the next rate is tried: while it is full, losses do not depend on the present rate.
    pub(super) fn drain_queue_before(&mut self, next: f64, bounds: RateBounds) {
        self.phase = SearchPhase::Drain(next, bounds);
        self.set_rate(DRAIN_FACTOR * next);
    }

    pub(super) fn drain(&mut self, next: f64, bounds: RateBounds, window: &FeedbackWindow) {
        let queue = self.points.last().map_or(0.0, |point| point.min_delay - self.floor);
        if queue < MAX_EMPTY_QUEUE_NANOS || window.arrival_time > MAX_DRAIN_SECONDS {
            self.phase = SearchPhase::Shared(bounds);
            self.set_rate(next);
        }
    }

    /// Bisects between a rate without loss and one with loss.
    pub(super) fn try_shared(&mut self, mut bounds: RateBounds, window: &FeedbackWindow) {
        if window.arrival_time < OVERLOAD_DURATION.as_secs_f64() || window.received < MIN_OVERLOAD_PACKETS {
            return;
        }
        self.shared = true;
        let fits = self.efficiency(window) >= MIN_EFFICIENCY_SHARED - 2.0 / window.received;
        if fits {
            self.record_lossless(window);
            bounds.good = Some(self.rate);
        } else {
            bounds.bad = self.rate;
        }
        match bounds.good {
            Some(good) if bounds.bad <= good * MAX_BOUND_RATIO => {
                self.phase = SearchPhase::LeftOver;
                self.set_rate(good);
            }
            Some(good) if fits => {
                self.phase = SearchPhase::Shared(bounds);
                self.set_rate((good * BOUND_STEP_FACTOR).min(f64::midpoint(good, bounds.bad)));
            }
            Some(good) => self.drain_queue_before(f64::midpoint(good, bounds.bad), bounds),
            None => self.drain_queue_before(bounds.bad / BOUND_STEP_FACTOR, bounds),
        }
    }

    /// Ends the search when the present rate has been held for a second and the received rate is stable.
    pub(super) fn finish_when_held(&mut self, limited: bool, window: &FeedbackWindow) {
        let enough = window.arrival_time >= HOLD_DURATION.as_secs_f64() && window.received >= MIN_HOLD_PACKETS;
        if !enough && window.arrival_time < MAX_HOLD_SECONDS {
            return;
        }
        if let Some((middle, _)) = self.unsettled(MAX_SETTLED_DIFFERENCE) {
            self.anchor = Some(middle);
            return;
        }
        self.result = self.current_period();
        let full = limited || self.efficiency(window) < MIN_EFFICIENCY_AT_MAX_RATE - 2.0 / window.received;
        self.bound = if full { self.path_or_receiver() } else { CapacityBound::AtLeast(self.what_bounds()) };
        self.phase = SearchPhase::Done;
    }
}
