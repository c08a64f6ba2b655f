//! Rates that double until they are too high, and the overload that shows what arrives then.

use core::time::Duration;

use super::{
    CapacitySearch, FeedbackWindow, MAX_OVERLOAD_SECONDS, MAX_QUEUE_NANOS, MAX_RESTARTS, MAX_SETTLED_DIFFERENCE,
    MIN_OVERLOAD_PACKETS, MIN_RAMP_PACKETS, SearchPhase, seconds,
};
use crate::capacity::limits::OVERLOAD_DURATION;
use crate::capacity::{FEEDBACK_INTERVAL, SearchLimiter};
use crate::statistics::SampleSummary;

/// Factor by which the ramp grows in a step.
const RAMP_FACTOR: f64 = 2.0;
/// Same factor on long paths, where steps take long, while rates are low.
const LONG_PATH_RAMP_FACTOR: f64 = 4.0;
const MIN_LONG_ROUND_TRIP: Duration = Duration::from_millis(150);
const MAX_LOW_RATE: f64 = 16e6;
/// Factors between the received rate and the rate sent in the overload, and in the hold.
pub(super) const OVERLOAD_FACTOR: f64 = 1.5;
const HOLD_FACTOR: f64 = 1.05;
/// Efficiency below which the ramp is beyond the capacity.
const MIN_RAMP_EFFICIENCY: f64 = 0.8;
/// Efficiency at or above which the overload exceeded nothing.
const MIN_EFFICIENCY_WITHOUT_OVERLOAD: f64 = 0.9;
/// Number of windows with a sender that cannot keep up, and the shortest time since the request, which a far sender may get
/// late.
const MIN_SLOW_WINDOWS: u32 = 3;
const MIN_SLOW_TIME: Duration = Duration::from_secs(1);

impl CapacitySearch {
    pub(super) fn ramp(&mut self, window: FeedbackWindow) {
        if window.received < MIN_RAMP_PACKETS
            && window.arrival_time < MAX_OVERLOAD_SECONDS
            && window.offered < 8.0 * MIN_RAMP_PACKETS
        {
            return;
        }
        if self.efficiency(&window) < MIN_RAMP_EFFICIENCY {
            self.saturated = self.current_period();
            self.start_overload(window.received_rate());
            return;
        }
        self.record_lossless(&window);
        if !self.keeps_up(&window) {
            // Behind a queue that was not waited for, these are still packets of the previous, lower rate.
            self.slow += u32::from(self.queueing_delay() <= MAX_QUEUE_NANOS);
            if self.slow < MIN_SLOW_WINDOWS || self.time_at_rate() < MIN_SLOW_TIME {
                self.anchor = self.points.len().checked_sub(1);
            } else {
                self.kept_up = false;
                self.phase = SearchPhase::Hold(None);
            }
        } else if self.rate >= self.limits.max_rate.bits_per_second() {
            self.phase = SearchPhase::Hold(None);
        } else {
            self.slow = 0;
            self.kept_up = true;
            let long = self.round_trip > u64::try_from(MIN_LONG_ROUND_TRIP.as_nanos()).unwrap_or(u64::MAX)
                && self.rate < MAX_LOW_RATE;
            self.raise_rate(self.rate * if long { LONG_PATH_RAMP_FACTOR } else { RAMP_FACTOR });
        }
    }

    /// Continues with a higher rate if the remaining bytes suffice to measure it.
    pub(super) fn raise_rate(&mut self, rate: f64) {
        self.phase = SearchPhase::Ramp;
        let rate = rate.min(self.limits.max_rate.bits_per_second());
        if self.remaining_bits() < rate * (seconds(self.round_trip) + 3.0 * FEEDBACK_INTERVAL.as_secs_f64()) {
            self.finish_early(SearchLimiter::Bytes);
        } else {
            self.set_rate(rate);
        }
    }

    /// Starts the overload for this received rate.
    pub(super) fn start_overload(&mut self, received: f64) {
        let rate = OVERLOAD_FACTOR * received / self.usual_efficiency();
        if rate > self.limits.max_rate.bits_per_second() && self.rate >= self.limits.max_rate.bits_per_second() {
            // The rate cannot be raised; the present one is too high already.
            self.anchor = self.points.len().checked_sub(1);
            self.phase = SearchPhase::Hold(None);
            return;
        }
        self.phase = SearchPhase::Overload;
        self.set_rate(rate);
    }

    pub(super) fn overload(&mut self, window: FeedbackWindow) {
        let enough = window.arrival_time >= OVERLOAD_DURATION.as_secs_f64() && window.received >= MIN_OVERLOAD_PACKETS;
        if !enough && window.arrival_time < MAX_OVERLOAD_SECONDS {
            return;
        }
        if self.efficiency(&window) >= MIN_EFFICIENCY_WITHOUT_OVERLOAD {
            self.record_lossless(&window);
            if self.keeps_up(&window) {
                self.raise_rate(self.rate * OVERLOAD_FACTOR);
            } else if self.queueing_delay() > MAX_QUEUE_NANOS {
                self.anchor = self.points.len().checked_sub(1);
            } else {
                self.kept_up = false;
                self.phase = SearchPhase::Hold(None);
            }
            return;
        }
        self.saturated = self.current_period();
        if let Some((_, second)) = self.unsettled(2.0 * MAX_SETTLED_DIFFERENCE) {
            self.start_overload(second.received_rate());
        } else {
            self.phase = SearchPhase::Hold(Some(window));
            self.set_rate(HOLD_FACTOR * window.received_rate() / self.usual_efficiency());
        }
    }

    /// Returns the middle point and the second half, if its rate differs from that of the first half; `None` when both
    /// agree, and after too many changes.
    pub(super) fn unsettled(&mut self, tolerance: f64) -> Option<(usize, FeedbackWindow)> {
        let (from, to) = self.current_period()?;
        let half_way = self.points[from].arrival.midpoint(self.points[to].arrival);
        let middle = from + self.points[from..=to].partition_point(|point| point.arrival < half_way);
        let (first, second) = (self.window(from, middle)?, self.window(middle, to)?);
        let packets = first.received.min(second.received);
        let change = (second.received_rate() / first.received_rate() - 1.0).abs();
        let by_chance = 2.0 / packets + self.timing_uncertainty() / first.arrival_time.min(second.arrival_time);
        if change <= tolerance + by_chance || self.restarts >= MAX_RESTARTS {
            return None;
        }
        self.restarts += 1;
        Some((middle, second))
    }

    /// Uncertainty of a period's ends due to jitter, in seconds: half of the range of the delays between two reports,
    /// by their median over the present rate.
    pub(super) fn timing_uncertainty(&self) -> f64 {
        let ranges: Vec<f64> = self.points[self.anchor.unwrap_or_default()..]
            .iter()
            .map(|point| point.max_delay - point.min_delay)
            .collect();
        SampleSummary::of(&ranges).map_or(0.0, |summary| summary.median / 2e9)
    }
}
