//! The result of the search, at its end or before.

use core::time::Duration;

use linerate_units::{BitRate, ByteCount, MonotonicTime, PacketCount, Ratio};

use super::{CapacitySearch, FeedbackPoint, FeedbackWindow, MIN_RAMP_PACKETS, SearchPhase};
use crate::capacity::window::highest_carried;
use crate::capacity::{CapacityBound, CapacityEstimate, RateSample, SearchLimiter};
use crate::statistics::StatisticalQuantity;

impl CapacitySearch {
    pub(super) fn what_bounds(&self) -> SearchLimiter {
        if self.kept_up { SearchLimiter::MaximumRate } else { SearchLimiter::Sender }
    }

    /// Bound by which packets were lost: the receiver, when most of the measured loss occurred in its host.
    pub(super) fn path_or_receiver(&self) -> CapacityBound {
        let (Some((from, to)), Some(window)) = (self.result, self.result.and_then(|(from, to)| self.window(from, to)))
        else {
            return CapacityBound::Unknown;
        };
        let dropped = |index: usize| self.points[index].receiver_dropped;
        let there = dropped(to).zip(dropped(from)).map_or(0, |(to, from)| to.saturating_sub(from));
        let lost = window.offered - window.received;
        if there > 0 && PacketCount::new(there).as_f64() > 0.5 * lost {
            CapacityBound::AtLeast(SearchLimiter::Receiver)
        } else {
            CapacityBound::Path
        }
    }

    /// Ends the search with its present result.
    pub(super) fn finish_early(&mut self, reason: SearchLimiter) {
        let held =
            self.current_period().filter(|_| matches!(self.phase, SearchPhase::Hold(Some(_)) | SearchPhase::LeftOver));
        let long_enough = |&(from, to): &(usize, usize)| {
            self.window(from, to).is_some_and(|window| window.received >= MIN_RAMP_PACKETS)
        };
        // On a shared path, rates above the remaining capacity were not carried by the path.
        let over = if self.shared { self.best } else { self.saturated };
        let limited = held.filter(long_enough).or(over);
        self.result =
            limited.or(self.best).or(self.current_period()).filter(|&(from, to)| self.window(from, to).is_some());
        self.bound = match (limited, self.result) {
            (Some(_), Some(_)) => self.path_or_receiver(),
            (None, Some(_)) => CapacityBound::AtLeast(if self.kept_up { reason } else { SearchLimiter::Sender }),
            (_, None) => CapacityBound::Unknown,
        };
        self.phase = SearchPhase::Done;
    }

    pub(super) fn rate_sample_between(&self, from: &FeedbackPoint, to: &FeedbackPoint) -> Option<RateSample> {
        let (sent, received) = FeedbackWindow::between(from, to, self.packet.size())?.rates();
        Some(RateSample { at: MonotonicTime::from_nanos(to.now), sent, received })
    }

    /// Result; before the end, the present estimate.
    #[must_use]
    pub fn outcome(&self) -> CapacityEstimate {
        let mut search = self.clone();
        if search.phase != SearchPhase::Done {
            search.finish_early(SearchLimiter::Duration);
        }
        search.into_outcome()
    }

    fn into_outcome(self) -> CapacityEstimate {
        let window = self.result.and_then(|(from, to)| self.window(from, to));
        let rate = BitRate::from_bits_per_second;
        let (arrived, sent) = self.below;
        let growth = self.result.map(|(from, to)| {
            let delays = self.points[from..=to].iter();
            let (low, high) = delays.fold((f64::INFINITY, 0.0_f64), |(low, high), point| {
                (low.min(point.min_delay - self.floor), high.max(point.max_delay - self.floor))
            });
            (Duration::from_number(low), Duration::from_number(high))
        });
        let measured = window.map(|window| window.received_rate());
        CapacityEstimate {
            capacity: measured.map(rate),
            highest: measured.and_then(|least| highest_carried(&self.points, self.packet.size(), least)).map(rate),
            bound: self.bound,
            sub_interval: window.map_or(Duration::ZERO, |window| Duration::from_secs_f64(window.arrival_time)),
            sent_rate: window.map(|window| rate(window.sent_rate())),
            loss: window.map(|window| window.loss()),
            loss_below_capacity: Ratio::of(sent - arrived, sent),
            shared: self.shared,
            delay_growth: growth,
            duplicates: self.last.duplicates,
            reordered: self.last.reordered,
            receiver_dropped: self.last.receiver_dropped,
            sender_kept_up: self.kept_up,
            asked_for: ByteCount::from_f64(self.asked_bits / 8.0),
            elapsed: Duration::from_nanos(self.now - self.started),
            readings: self.points.windows(2).filter_map(|pair| self.rate_sample_between(&pair[0], &pair[1])).collect(),
        }
    }
}
