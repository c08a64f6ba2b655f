use core::time::Duration;

use linerate_units::{BitRate, ByteCount, MonotonicTime, PacketCount, Ratio};

use super::limits::{HOLD_DURATION, INITIAL_RATE, OVERLOAD_DURATION};
use super::window::{FeedbackPoint, FeedbackWindow, best_period, highest_carried};
use super::{CapacityBound, CapacityEstimate, PacketLayout, RateSample, ReceiverFeedback, SearchLimiter, SearchLimits};
use crate::statistics::{SampleSummary, StatisticalQuantity};

/// Factor by which the ramp grows in a step.
const RAMP_FACTOR: f64 = 2.0;
/// Same factor on long paths, where steps take long, while rates are low.
const LONG_PATH_RAMP_FACTOR: f64 = 4.0;
const MIN_LONG_ROUND_TRIP: Duration = Duration::from_millis(150);
const MAX_LOW_RATE: f64 = 16e6;
/// Factors between the received rate and the rate sent in the overload, and in the hold.
const OVERLOAD_FACTOR: f64 = 1.5;
const HOLD_FACTOR: f64 = 1.05;
/// Efficiency below which the ramp is beyond the capacity.
const MIN_RAMP_EFFICIENCY: f64 = 0.8;
/// Efficiency at or above which the overload exceeded nothing.
const MIN_EFFICIENCY_WITHOUT_OVERLOAD: f64 = 0.9;
/// Efficiency at or above which the hold is below the capacity.
const MIN_HOLD_EFFICIENCY: f64 = 0.985;
/// On a shared path: share of the tried rate at which the queue is emptied before; factor from the computed rate to the
/// first try; step up or down while only one bound is known; ratio at which the bounds are close enough; and the
/// efficiency below which a rate is too high.
const DRAIN_FACTOR: f64 = 0.7;
const FIRST_TRY_FACTOR: f64 = 0.95;
const BOUND_STEP_FACTOR: f64 = 1.15;
const MAX_BOUND_RATIO: f64 = 1.02;
const MIN_EFFICIENCY_SHARED: f64 = 0.99;
/// Queueing delay that counts as empty, in nanoseconds, and the longest time to empty the queue, in seconds.
const MAX_EMPTY_QUEUE_NANOS: f64 = 2e6;
const MAX_DRAIN_SECONDS: f64 = 1.5;
/// Efficiency at the highest allowed rate below which the path limits.
const MIN_EFFICIENCY_AT_MAX_RATE: f64 = 0.99;
/// Share of the requested rate below which the sender cannot keep up, number of such windows, and the shortest time since
/// the request, which a far sender may get late.
const MIN_SENT_SHARE: f64 = 0.8;
const MIN_SLOW_WINDOWS: u32 = 3;
const MIN_SLOW_TIME: Duration = Duration::from_secs(1);
/// Ratio of the received rates in hold and overload below which the path is shared.
const MAX_SHARED_RATE_RATIO: f64 = 0.97;
/// Queueing delay in the hold, as a share of the one in the overload, below which no one else fills the queue; and the least number
/// of packets that wait in the overload.
const MAX_QUEUE_LEFT: f64 = 0.3;
const MIN_QUEUED_PACKETS: f64 = 3.0;
/// Largest relative difference of the rates of two halves of a period, in addition to the effect of single packets.
const MAX_SETTLED_DIFFERENCE: f64 = 0.03;
/// Minimum number of packets for a step of the ramp, for an overload or an evaluation of the hold, for a result.
const MIN_RAMP_PACKETS: f64 = 10.0;
const MIN_OVERLOAD_PACKETS: f64 = 20.0;
const MIN_HOLD_PACKETS: f64 = 40.0;
/// Maximum times in seconds for these packets; a shorter count is accepted then.
const MAX_OVERLOAD_SECONDS: f64 = 1.5;
const MAX_HOLD_SECONDS: f64 = 2.0;
/// Minimum number of packets to measure the path's own loss.
const MIN_LOSS_PACKETS: f64 = 300.0;
/// Maximum number of rate changes before the search ends with its current result.
const MAX_RESTARTS: u32 = 10;
/// Queueing delay in nanoseconds beyond which the search does not wait: the received rate can be measured at any rate
/// that is too high.
const MAX_QUEUE_NANOS: f64 = 400e6;
/// Time in nanoseconds by which a report may precede a full round trip and still count for the new rate: reports come
/// every 50 ms.
const REPORT_LEAD_NANOS: u64 = 10_000_000;
/// Time between two reports beyond which the search's own time stands still, as lost reports cost it steps; and the longest
/// such time, as a multiple of the search's duration.
const MAX_REPORT_GAP: Duration = Duration::from_millis(200);
const MAX_EXTENSION_FACTOR: u32 = 2;
/// Silence after which less is sent, and after which the search ends.
const SILENCE_BEFORE_SLOWDOWN: Duration = Duration::from_secs(1);
const SILENCE_BEFORE_END: Duration = Duration::from_secs(4);

/// Next action of the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchAction {
    /// Send at this rate of IP packets, evenly spaced ([`PacketLayout::gap`]).
    Send(BitRate),
    /// Stop sending: the result is available.
    Finish,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum SearchPhase {
    Ramp,
    Overload,
    /// With the preceding overload; `None` where the rate cannot be raised.
    Hold(Option<FeedbackWindow>),
    /// On a shared path: below the rate to try next, until the queue is empty.
    Drain(f64, RateBounds),
    /// On a shared path: at a trial rate.
    Shared(RateBounds),
    /// At the rate that other traffic leaves over.
    LeftOver,
    Done,
}

/// Rates between which the available capacity lies: the highest without loss, the lowest with loss.
#[derive(Clone, Copy, Debug, PartialEq)]
struct RateBounds {
    good: Option<f64>,
    bad: f64,
}

/// The search for the capacity of one direction.
///
/// The driver starts sending at [`CapacitySearch::rate`], passes each report of the receiver, and sends at the returned rate,
/// until [`SearchAction::Finish`]. The search stores a few dozen bytes per report.
#[derive(Clone, Debug)]
pub struct CapacitySearch {
    limits: SearchLimits,
    packet: PacketLayout,
    round_trip: u64,
    started: u64,
    now: u64,
    /// Arrival time of the last new report.
    heard: u64,
    /// Time without reports, beyond the usual gaps.
    late: Duration,
    /// Smallest difference between a report's arrival here and its last packet's arrival there, on two clocks.
    clock_difference: Option<i64>,
    rate: f64,
    rate_since: u64,
    asked_bits: f64,
    phase: SearchPhase,
    points: Vec<FeedbackPoint>,
    /// First point of packets sent at the present rate.
    anchor: Option<usize>,
    /// Smallest delay so far.
    floor: f64,
    /// Packets below the capacity: arrived, and sent.
    below: (f64, f64),
    /// Share of packets that arrives at any rate, where the search had to determine it.
    structural: Option<f64>,
    /// Last period in which the path clearly limited.
    saturated: Option<(usize, usize)>,
    /// Period with the highest received rate.
    best: Option<(usize, usize)>,
    slow: u32,
    restarts: u32,
    climbs: u32,
    shared: bool,
    result: Option<(usize, usize)>,
    bound: CapacityBound,
    kept_up: bool,
    last: ReceiverFeedback,
}

impl CapacitySearch {
    /// Starts a search at time `now`, on a path with this idle round-trip time.
    #[must_use]
    pub fn new(limits: SearchLimits, packet: PacketLayout, round_trip: Duration, now: MonotonicTime) -> Self {
        let now = now.as_nanos();
        Self {
            limits,
            packet,
            round_trip: u64::try_from(round_trip.as_nanos()).unwrap_or(u64::MAX),
            started: now,
            now,
            heard: now,
            late: Duration::ZERO,
            clock_difference: None,
            rate: INITIAL_RATE.min(limits.max_rate.bits_per_second()),
            rate_since: now,
            asked_bits: 0.0,
            phase: SearchPhase::Ramp,
            points: Vec::new(),
            anchor: None,
            floor: f64::INFINITY,
            below: (0.0, 0.0),
            structural: None,
            saturated: None,
            best: None,
            slow: 0,
            restarts: 0,
            climbs: 0,
            shared: false,
            result: None,
            bound: CapacityBound::Unknown,
            kept_up: true,
            last: ReceiverFeedback::default(),
        }
    }

    /// Present rate of IP packets to send.
    #[must_use]
    pub fn rate(&self) -> BitRate {
        BitRate::from_bits_per_second(self.rate)
    }

    /// Latest rates, for a live display; `None` before two reports.
    #[must_use]
    pub fn latest_sample(&self) -> Option<RateSample> {
        self.points.last_chunk::<2>().and_then(|[from, to]| self.rate_sample_between(from, to))
    }

    /// Processes a report, received at this time of the driver's clock.
    pub fn handle_feedback(&mut self, now: MonotonicTime, feedback: &ReceiverFeedback) -> SearchAction {
        self.account_traffic(now);
        self.last = *feedback;
        let point = FeedbackPoint::of(self.now, feedback, self.rate).map(|point| self.dated(point));
        let fresh = point.filter(|point| {
            self.points.last().is_none_or(|last| point.received > last.received && point.arrival > last.arrival)
        });
        let Some(point) = fresh else { return self.handle_silence(now) };
        self.late += self.current_lateness();
        self.heard = self.now;
        self.floor = self.floor.min(point.min_delay);
        self.points.push(point);
        self.step();
        self.next_action()
    }

    /// Must be called every 100 ms while no report arrives: ends the search in time, and sends less when nothing
    /// arrives.
    pub fn handle_silence(&mut self, now: MonotonicTime) -> SearchAction {
        self.account_traffic(now);
        let quiet = Duration::from_nanos(self.now.saturating_sub(self.heard.max(self.rate_since)));
        let patience = Duration::from_nanos(self.round_trip) * 2 + SILENCE_BEFORE_SLOWDOWN;
        if Duration::from_nanos(self.now.saturating_sub(self.heard)) > patience + SILENCE_BEFORE_END {
            self.finish_early(SearchLimiter::Duration);
        } else if quiet > patience {
            // The first rate, or one that arrived without loss, is no overload: its reports are lost, not its packets.
            let lower = (self.rate / 2.0).max(self.best_rate()).max(INITIAL_RATE);
            if lower < self.rate {
                self.set_rate(lower);
            }
        }
        self.next_action()
    }

    fn next_action(&mut self) -> SearchAction {
        if self.phase == SearchPhase::Done { SearchAction::Finish } else { SearchAction::Send(self.rate()) }
    }

    /// Adds the traffic requested since the last call, and ends the search at its limits.
    fn account_traffic(&mut self, now: MonotonicTime) {
        let now = now.as_nanos().max(self.now);
        if self.phase != SearchPhase::Done {
            self.asked_bits += self.rate * seconds(now - self.now);
        }
        self.now = now;
        if self.phase == SearchPhase::Done {
        } else if Duration::from_nanos(now - self.started) >= self.limits.duration + self.extension() {
            self.finish_early(SearchLimiter::Duration);
        } else if self.remaining_bits() <= 0.0 {
            self.finish_early(SearchLimiter::Bytes);
        }
    }

    /// Dates a report back to when it would have arrived without waiting for retransmissions: its last packet is as old as
    /// that of the fastest report.
    fn dated(&mut self, point: FeedbackPoint) -> FeedbackPoint {
        let (now, arrival) = (point.now.cast_signed(), point.arrival.cast_signed());
        let difference = self.clock_difference.map_or(now - arrival, |least| least.min(now - arrival));
        self.clock_difference = Some(difference);
        FeedbackPoint { now: (arrival + difference).cast_unsigned().min(point.now), ..point }
    }

    /// Time since the last report, beyond the usual gap and a round trip.
    fn current_lateness(&self) -> Duration {
        let gap = Duration::from_nanos(self.now.saturating_sub(self.heard));
        gap.saturating_sub(MAX_REPORT_GAP + Duration::from_nanos(self.round_trip))
    }

    /// Time by which late reports prolong the search.
    fn extension(&self) -> Duration {
        (self.late + self.current_lateness()).min(self.limits.duration * MAX_EXTENSION_FACTOR)
    }

    /// Bits that may still be sent, less those sent until the next report.
    fn remaining_bits(&self) -> f64 {
        self.limits.max_traffic().as_f64() * 8.0 - self.asked_bits - self.rate * super::FEEDBACK_INTERVAL.as_secs_f64()
    }

    fn step(&mut self) {
        let Some(latest) = self.points.len().checked_sub(1).filter(|_| self.phase != SearchPhase::Done) else { return };
        let Some(anchor) = self.anchor else {
            self.anchor = self.in_effect().then_some(latest);
            return;
        };
        let Some(window) = self.window(anchor, latest) else { return };
        match self.phase {
            SearchPhase::Ramp => self.ramp(window),
            SearchPhase::Overload => self.overload(window),
            SearchPhase::Hold(before) => self.hold(before, window),
            SearchPhase::Drain(next, bounds) => self.drain(next, bounds, &window),
            SearchPhase::Shared(bounds) => self.try_shared(bounds, &window),
            SearchPhase::LeftOver => self.finish_when_held(true, &window),
            SearchPhase::Done => {}
        }
    }

    /// True when packets sent at the present rate have arrived: a round trip after it was set, plus their queueing
    /// delay.
    fn in_effect(&self) -> bool {
        let queue = self.queueing_delay().min(MAX_QUEUE_NANOS);
        let arrives = self.rate_since + self.round_trip + u64::from(Duration::from_number(queue).subsec_nanos());
        self.points.last().map_or(self.now, |point| point.now) + REPORT_LEAD_NANOS >= arrives
    }

    /// Time between the present rate's request and the last report.
    fn time_at_rate(&self) -> Duration {
        let reported = self.points.last().map_or(self.rate_since, |point| point.now);
        Duration::from_nanos(reported.saturating_sub(self.rate_since))
    }

    /// Queueing delay of the last packets, in nanoseconds.
    fn queueing_delay(&self) -> f64 {
        self.points.last().map_or(0.0, |point| (point.max_delay - self.floor).max(0.0))
    }

    fn window(&self, from: usize, to: usize) -> Option<FeedbackWindow> {
        FeedbackWindow::between(self.points.get(from)?, self.points.get(to)?, self.packet.size())
    }

    /// Share of packets that arrives when the path is not full.
    fn usual_efficiency(&self) -> f64 {
        let (arrived, sent) = self.below;
        let share = if sent >= MIN_LOSS_PACKETS { arrived / sent } else { self.structural.unwrap_or(1.0) };
        share.clamp(0.1, 1.0)
    }

    /// Efficiency relative to the usual one.
    fn efficiency(&self, window: &FeedbackWindow) -> f64 {
        window.efficiency() / self.usual_efficiency()
    }

    fn current_period(&self) -> Option<(usize, usize)> {
        Some((self.anchor?, self.points.len().checked_sub(1)?))
    }

    fn set_rate(&mut self, rate: f64) {
        self.rate = rate.min(self.limits.max_rate.bits_per_second()).max(1.0);
        self.rate_since = self.now;
        self.anchor = None;
    }

    fn keeps_up(&mut self, window: &FeedbackWindow) -> bool {
        let keeps_up = window.sent_rate() >= MIN_SENT_SHARE * self.rate;
        self.kept_up &= keeps_up || self.slow == 0;
        keeps_up
    }

    /// Records a rate that arrived without loss.
    fn record_lossless(&mut self, window: &FeedbackWindow) {
        self.below.0 += window.received;
        self.below.1 += window.offered;
        if self.best_rate() < window.received_rate() {
            self.best = self.current_period();
        }
    }

    /// Highest rate that arrived without loss, in bit/s; zero before there is one.
    fn best_rate(&self) -> f64 {
        self.best.and_then(|(from, to)| self.window(from, to)).map_or(0.0, |window| window.received_rate())
    }

    fn ramp(&mut self, window: FeedbackWindow) {
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
    fn raise_rate(&mut self, rate: f64) {
        self.phase = SearchPhase::Ramp;
        let rate = rate.min(self.limits.max_rate.bits_per_second());
        if self.remaining_bits() < rate * (seconds(self.round_trip) + 3.0 * super::FEEDBACK_INTERVAL.as_secs_f64()) {
            self.finish_early(SearchLimiter::Bytes);
        } else {
            self.set_rate(rate);
        }
    }

    /// Starts the overload for this received rate.
    fn start_overload(&mut self, received: f64) {
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

    fn overload(&mut self, window: FeedbackWindow) {
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
    fn unsettled(&mut self, tolerance: f64) -> Option<(usize, FeedbackWindow)> {
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
    fn timing_uncertainty(&self) -> f64 {
        let ranges: Vec<f64> = self.points[self.anchor.unwrap_or_default()..]
            .iter()
            .map(|point| point.max_delay - point.min_delay)
            .collect();
        SampleSummary::of(&ranges).map_or(0.0, |summary| summary.median / 2e9)
    }

    fn hold(&mut self, before: Option<FeedbackWindow>, window: FeedbackWindow) {
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

    /// Empties the queue before the next rate is tried: while it is full, losses do not depend on the present rate.
    fn drain_queue_before(&mut self, next: f64, bounds: RateBounds) {
        self.phase = SearchPhase::Drain(next, bounds);
        self.set_rate(DRAIN_FACTOR * next);
    }

    fn drain(&mut self, next: f64, bounds: RateBounds, window: &FeedbackWindow) {
        let queue = self.points.last().map_or(0.0, |point| point.min_delay - self.floor);
        if queue < MAX_EMPTY_QUEUE_NANOS || window.arrival_time > MAX_DRAIN_SECONDS {
            self.phase = SearchPhase::Shared(bounds);
            self.set_rate(next);
        }
    }

    /// Bisects between a rate without loss and one with loss.
    fn try_shared(&mut self, mut bounds: RateBounds, window: &FeedbackWindow) {
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
    fn finish_when_held(&mut self, limited: bool, window: &FeedbackWindow) {
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

    fn what_bounds(&self) -> SearchLimiter {
        if self.kept_up { SearchLimiter::MaximumRate } else { SearchLimiter::Sender }
    }

    /// Bound by which packets were lost: the receiver, when most of the measured loss occurred in its host.
    fn path_or_receiver(&self) -> CapacityBound {
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
    fn finish_early(&mut self, reason: SearchLimiter) {
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

    fn rate_sample_between(&self, from: &FeedbackPoint, to: &FeedbackPoint) -> Option<RateSample> {
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

fn seconds(nanoseconds: u64) -> f64 {
    Duration::from_nanos(nanoseconds).as_secs_f64()
}
