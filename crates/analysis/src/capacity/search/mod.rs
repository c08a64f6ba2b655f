//! The search for the capacity of one direction: a state machine of phases, one file for each of the difficult ones.

mod hold;
mod outcome;
mod overload;
mod shared;

use core::time::Duration;

use linerate_units::{BitRate, MonotonicTime};

use super::limits::INITIAL_RATE;
use super::window::{FeedbackPoint, FeedbackWindow};
use super::{CapacityBound, PacketLayout, RateSample, ReceiverFeedback, SearchLimiter, SearchLimits};
use crate::statistics::StatisticalQuantity;

/// Share of the requested rate below which the sender cannot keep up.
const MIN_SENT_SHARE: f64 = 0.8;
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
}

fn seconds(nanoseconds: u64) -> f64 {
    Duration::from_nanos(nanoseconds).as_secs_f64()
}
