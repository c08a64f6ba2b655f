//! The rate just above the one that arrived, held until the result is certain, or until it turns out to have another reason.

use super::overload::OVERLOAD_FACTOR;
use super::shared::FIRST_TRY_FACTOR;
use super::{
    CapacitySearch, FeedbackPoint, FeedbackWindow, MAX_OVERLOAD_SECONDS, MAX_RESTARTS, MAX_SETTLED_DIFFERENCE,
    MIN_LOSS_PACKETS, MIN_OVERLOAD_PACKETS, RateBounds, SearchPhase,
};
use crate::capacity::limits::OVERLOAD_DURATION;
use crate::capacity::window::best_period;
use crate::statistics::SampleSummary;

/// Efficiency at or above which the hold is below the capacity.
const MIN_HOLD_EFFICIENCY: f64 = 0.985;
/// Ratio of the received rates in hold and overload below which the path is shared.
const MAX_SHARED_RATE_RATIO: f64 = 0.97;
/// Queueing delay in the hold, as a share of the one in the overload, below which no one else fills the queue; and the least number
/// of packets that wait in the overload.
const MAX_QUEUE_LEFT: f64 = 0.3;
const MIN_QUEUED_PACKETS: f64 = 3.0;

impl CapacitySearch {
    pub(super) fn hold(&mut self, before: Option<FeedbackWindow>, window: FeedbackWindow) {
        if window.received < MIN_OVERLOAD_PACKETS && window.arrival_time < MAX_OVERLOAD_SECONDS {
            return;
        }
        if let (Some(before), true) = (before, window.arrival_time >= OVERLOAD_DURATION.as_secs_f64()) {
            if self.is_structural(&before, &window) {
                self.structural = Some(window.efficiency());
                self.below = (0.0, 0.0);
                self.saturated = None;
                self.raise_rate(before.sent_rate() * OVERLOAD_FACTOR);
                return;
            }
            if self.has_fallen(&before, &window) && self.restarts < MAX_RESTARTS {
                self.fell(&before, &window);
                return;
            }
            if self.efficiency(&window) >= MIN_HOLD_EFFICIENCY && self.climbs < 3 {
                // Other flows have yielded meanwhile.
                self.climbs += 1;
                self.start_overload(window.received_rate());
                return;
            }
        }
        self.finish_when_held(before.is_some(), &window);
    }

    /// True when the same share is lost at a clearly lower rate, as far as the number of packets shows: then the loss
    /// is not caused by the rate.
    fn is_structural(&self, before: &FeedbackWindow, window: &FeedbackWindow) -> bool {
        let share = window.efficiency();
        let chance = (share * (1.0 - share) * (1.0 / before.offered + 1.0 / window.offered)).max(0.0).sqrt();
        self.structural.is_none()
            && window.sent_rate() < 0.93 * before.sent_rate()
            && (share - before.efficiency()).abs() < 0.02 + 1.5 * chance
            && share < 0.93
    }

    /// True when clearly less arrives in the hold than in the overload, beyond the effect of single packets and jitter.
    fn has_fallen(&self, before: &FeedbackWindow, window: &FeedbackWindow) -> bool {
        let chance = 2.0 / before.received.min(window.received)
            + self.timing_uncertainty() / before.arrival_time.min(window.arrival_time);
        window.received_rate() / before.received_rate() < MAX_SHARED_RATE_RATIO - chance
    }

    /// Handles a received rate that fell with the sent rate: either it is not stable yet, or the path is shared with
    /// traffic that does not yield. In a FIFO queue `received = capacity × sent / (sent + others)`, so that two rates
    /// give the capacity and the other traffic.
    fn fell(&mut self, before: &FeedbackWindow, window: &FeedbackWindow) {
        if self.drops_from_an_empty_queue() {
            self.finish_with_the_overload();
            return;
        }
        if let Some((_, second)) = self.unsettled(2.0 * MAX_SETTLED_DIFFERENCE) {
            self.start_overload(second.received_rate());
            return;
        }
        self.restarts += 1;
        let inverse = |window: &FeedbackWindow| {
            (1.0 / (window.sent_rate() * self.usual_efficiency()), 1.0 / window.received_rate())
        };
        let ((sent, received), (sent_before, received_before)) = (inverse(window), inverse(before));
        let share = (received - received_before) / (sent - sent_before);
        let capacity = 1.0 / (received - share * sent);
        let left = capacity * (1.0 - share);
        let many = window.received.min(before.received) >= MIN_LOSS_PACKETS;
        if many && share.is_finite() && (0.03..0.99).contains(&share) && left > 0.0 {
            self.drain_queue_before(
                FIRST_TRY_FACTOR * left / self.usual_efficiency(),
                RateBounds { good: None, bad: window.sent_rate() },
            );
        } else {
            self.start_overload(window.received_rate());
        }
    }

    /// True when the queue of the overload is gone, although packets are lost: traffic of others would keep it full. CAKE's
    /// queue drops with a probability that it keeps for seconds after an overload (`cobalt_queue_full()`).
    fn drops_from_an_empty_queue(&self) -> bool {
        let Some((from, to)) = self.saturated else { return false };
        let waits = |point: &FeedbackPoint| point.max_delay - self.floor;
        let overload: Vec<f64> = self.points[from..=to].iter().map(waits).collect();
        let overload = SampleSummary::of(&overload).map_or(0.0, |summary| summary.median);
        let packet = self.window(from, to).map_or(f64::INFINITY, |window| window.arrival_time * 1e9 / window.received);
        overload >= MIN_QUEUED_PACKETS * packet
            && self.points.last().is_some_and(|last| waits(last) <= MAX_QUEUE_LEFT * overload)
    }

    /// Ends the search with the highest rate that the path carried while more was sent.
    fn finish_with_the_overload(&mut self) {
        let best = best_period(&self.points, self.packet.size(), 0.0).map(|(period, _)| period);
        self.result = best.or(self.saturated);
        self.bound = self.path_or_receiver();
        self.phase = SearchPhase::Done;
    }
}
