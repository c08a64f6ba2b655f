use core::time::Duration;

use linerate_units::{BitRate, ByteCount, MonotonicTime, PacketCount, Ratio};

use super::limits::{FIRST_RATE, HOLD, OVERLOAD};
use super::window::{Point, Window};
use super::{Bound, Feedback, Limits, Outcome, Packet, Reading, Reason};
use crate::statistics::{Quantity, Summary};

/// By how much the ramp grows in a step.
const RAMP: f64 = 2.0;
/// … on long paths, where steps take long, while rates are low.
const LONG_RAMP: f64 = 4.0;
const LONG: Duration = Duration::from_millis(150);
const LOW: f64 = 16e6;
/// How much more than what arrives is sent in the overload, and in the hold.
const OVER: f64 = 1.5;
const HOLD_OVER: f64 = 1.05;
/// Below this efficiency the ramp has gone beyond the capacity.
const RAMP_LIMITED: f64 = 0.8;
/// At or above this efficiency the overload was none.
const OVERLOAD_UNLIMITED: f64 = 0.9;
/// At or above this efficiency the hold is below the capacity.
const HOLD_UNLIMITED: f64 = 0.985;
/// On a shared path: the share of the tried rate at which the queue is emptied before; how much lower than computed the
/// first try is; by how much to go up or down while only one bound is known; how close the bounds must come; and the
/// efficiency below which a rate is too high.
const DRAIN: f64 = 0.7;
const FROM_BELOW: f64 = 0.95;
const STEP: f64 = 1.15;
const CLOSE: f64 = 1.02;
const SHARED_UNLIMITED: f64 = 0.99;
/// The queue that counts as empty, in nanoseconds, and the longest time to empty it, in seconds.
const EMPTY: f64 = 2e6;
const LONGEST_DRAIN: f64 = 1.5;
/// Below this efficiency at the highest rate that was allowed, the path limits.
const BOUND_UNLIMITED: f64 = 0.99;
/// Less of the asked rate means that the sender cannot do more.
const KEPT_UP: f64 = 0.8;
/// A fall of the received rate from overload to hold to less means that the path is shared.
const SHARED: f64 = 0.97;
/// How far two halves of a time may differ in rate, beside what single packets make.
const SETTLED: f64 = 0.03;
/// Fewest packets for a step of the ramp, for an overload and a look at the hold, for a result.
const RAMP_PACKETS: f64 = 10.0;
const LOOK_PACKETS: f64 = 20.0;
const HOLD_PACKETS: f64 = 40.0;
/// What is taken as measured where so many packets would take longer.
const LONGEST_LOOK: f64 = 1.5;
const LONGEST_HOLD: f64 = 2.0;
/// Fewest packets that tell the path's own loss.
const LOSS_PACKETS: f64 = 300.0;
/// How often rates may change before the search takes what it has.
const RESTARTS: u32 = 10;
/// Queues beyond this are not waited for: what arrives is measured at any rate that is too high.
const LONGEST_QUEUE: f64 = 400e6;
/// How much earlier than a round trip a report may be taken for one of the new rate: reports come every 50 ms.
const EARLY: u64 = 10_000_000;
/// How long nothing may arrive before less is sent, and before the search ends.
const QUIET: Duration = Duration::from_secs(1);
const DEAD: Duration = Duration::from_secs(4);

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Send at this rate of IP packets, evenly spaced ([`Packet::gap`]).
    Send(BitRate),
    /// Stop sending: the result is there.
    Finish,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    Ramp,
    Overload,
    /// With the overload that came before; `None` where no more can be sent.
    Hold(Option<Window>),
    /// On a shared path: below the rate that is tried next, until the queue is empty.
    Drain(f64, Bounds),
    /// At a rate that is tried.
    Shared(Bounds),
    /// At the rate that others leave over.
    LeftOver,
    Done,
}

/// Between which rates others leave off: the highest at which everything arrived, the lowest at which not.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Bounds {
    good: Option<f64>,
    bad: f64,
}

/// The search for the capacity of one direction.
///
/// Whoever drives it begins to send at [`Search::rate`], hands over each report of the receiver, and sends at the rate that
/// comes back, until [`Action::Finish`]. It keeps a few dozen bytes per report.
#[derive(Clone, Debug)]
pub struct Search {
    limits: Limits,
    packet: Packet,
    round_trip: u64,
    started: u64,
    now: u64,
    rate: f64,
    rate_since: u64,
    asked_bits: f64,
    phase: Phase,
    points: Vec<Point>,
    /// The first point of packets that were sent at the present rate.
    anchor: Option<usize>,
    /// The smallest delay so far.
    floor: f64,
    /// Packets below the capacity: arrived, and sent.
    below: (f64, f64),
    /// The share of packets that arrives whatever the rate, where the search had to find it out.
    structural: Option<f64>,
    /// The last time that the path was clearly limiting.
    saturated: Option<(usize, usize)>,
    /// The time with the highest rate that arrived.
    best: Option<(usize, usize)>,
    slow: u32,
    restarts: u32,
    climbs: u32,
    shared: bool,
    result: Option<(usize, usize)>,
    bound: Bound,
    kept_up: bool,
    last: Feedback,
}

impl Search {
    /// A search that begins now, on a path with this round-trip time at rest.
    #[must_use]
    pub fn new(limits: Limits, packet: Packet, round_trip: Duration, now: MonotonicTime) -> Self {
        let now = now.as_nanos();
        Self {
            limits,
            packet,
            round_trip: u64::try_from(round_trip.as_nanos()).unwrap_or(u64::MAX),
            started: now,
            now,
            rate: FIRST_RATE.min(limits.max_rate.bits_per_second()),
            rate_since: now,
            asked_bits: 0.0,
            phase: Phase::Ramp,
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
            bound: Bound::Unknown,
            kept_up: true,
            last: Feedback::default(),
        }
    }

    /// The rate of IP packets to send at now.
    #[must_use]
    pub fn rate(&self) -> BitRate {
        BitRate::from_bits_per_second(self.rate)
    }

    /// What arrived last, for a live display; `None` before two reports.
    #[must_use]
    pub fn reading(&self) -> Option<Reading> {
        self.points.last_chunk::<2>().and_then(|[from, to]| self.reading_between(from, to))
    }

    /// Takes in a report, at a time of the driver's clock.
    pub fn feedback(&mut self, now: MonotonicTime, feedback: &Feedback) -> Action {
        self.account(now);
        self.last = *feedback;
        let point = Point::of(self.now, feedback, self.rate);
        let fresh = point.filter(|point| {
            self.points.last().is_none_or(|last| point.received > last.received && point.arrival > last.arrival)
        });
        let Some(point) = fresh else { return self.silence(now) };
        self.floor = self.floor.min(point.min_delay);
        self.points.push(point);
        self.step();
        self.act()
    }

    /// To be called every 100 ms while no report comes: ends the search in time, and sends less when nothing arrives.
    pub fn silence(&mut self, now: MonotonicTime) -> Action {
        self.account(now);
        let heard = self.points.last().map_or(self.started, |point| point.now);
        let quiet = Duration::from_nanos(self.now.saturating_sub(heard.max(self.rate_since)));
        let patience = Duration::from_nanos(self.round_trip) * 2 + QUIET;
        if Duration::from_nanos(self.now.saturating_sub(heard)) > patience + DEAD {
            self.finish_early(Reason::Duration);
        } else if quiet > patience {
            self.set_rate(self.rate / 2.0);
        }
        self.act()
    }

    fn act(&mut self) -> Action {
        if self.phase == Phase::Done { Action::Finish } else { Action::Send(self.rate()) }
    }

    /// Adds what was asked for since the last call, and ends the search at its limits.
    fn account(&mut self, now: MonotonicTime) {
        let now = now.as_nanos().max(self.now);
        if self.phase != Phase::Done {
            self.asked_bits += self.rate * seconds(now - self.now);
        }
        self.now = now;
        if self.phase == Phase::Done {
        } else if Duration::from_nanos(now - self.started) >= self.limits.duration {
            self.finish_early(Reason::Duration);
        } else if self.left_bits() <= 0.0 {
            self.finish_early(Reason::Bytes);
        }
    }

    /// What may still be sent, less what is sent until the next report.
    fn left_bits(&self) -> f64 {
        self.limits.bytes.as_f64() * 8.0 - self.asked_bits - self.rate * super::FEEDBACK_INTERVAL.as_secs_f64()
    }

    fn step(&mut self) {
        let Some(latest) = self.points.len().checked_sub(1).filter(|_| self.phase != Phase::Done) else { return };
        let Some(anchor) = self.anchor else {
            self.anchor = self.in_effect().then_some(latest);
            return;
        };
        let Some(window) = self.window(anchor, latest) else { return };
        match self.phase {
            Phase::Ramp => self.ramp(window),
            Phase::Overload => self.overload(window),
            Phase::Hold(before) => self.hold(before, window),
            Phase::Drain(next, bounds) => self.drain(next, bounds, &window),
            Phase::Shared(bounds) => self.try_shared(bounds, &window),
            Phase::LeftOver => self.end_when_held(true, &window),
            Phase::Done => {}
        }
    }

    /// Whether packets that were sent at the present rate have arrived: a round trip after it was set, and the time that
    /// they wait in the queue.
    fn in_effect(&self) -> bool {
        let queue = self.queue().min(LONGEST_QUEUE);
        let arrives = self.rate_since + self.round_trip + u64::from(Duration::from_number(queue).subsec_nanos());
        self.now + EARLY >= arrives
    }

    /// How long the last packets waited in the queue, in nanoseconds.
    fn queue(&self) -> f64 {
        self.points.last().map_or(0.0, |point| (point.max_delay - self.floor).max(0.0))
    }

    fn window(&self, from: usize, to: usize) -> Option<Window> {
        Window::between(self.points.get(from)?, self.points.get(to)?, self.packet.size())
    }

    /// The share of packets that arrives when the path is not full.
    fn usual(&self) -> f64 {
        let (arrived, sent) = self.below;
        let share = if sent >= LOSS_PACKETS { arrived / sent } else { self.structural.unwrap_or(1.0) };
        share.clamp(0.1, 1.0)
    }

    /// The efficiency beside the usual one.
    fn efficiency(&self, window: &Window) -> f64 {
        window.efficiency() / self.usual()
    }

    fn here(&self) -> Option<(usize, usize)> {
        Some((self.anchor?, self.points.len().checked_sub(1)?))
    }

    fn set_rate(&mut self, rate: f64) {
        self.rate = rate.min(self.limits.max_rate.bits_per_second()).max(1.0);
        self.rate_since = self.now;
        self.anchor = None;
    }

    fn keeps_up(&mut self, window: &Window) -> bool {
        let keeps_up = window.sent_rate() >= KEPT_UP * self.rate;
        self.kept_up &= keeps_up || self.slow == 0;
        keeps_up
    }

    /// Remembers what arrived without trouble.
    fn arrived(&mut self, window: &Window) {
        self.below.0 += window.received;
        self.below.1 += window.offered;
        let rate = |search: &Self, (from, to)| search.window(from, to).map_or(0.0, |window| window.received_rate());
        if self.best.is_none_or(|best| rate(self, best) < window.received_rate()) {
            self.best = self.here();
        }
    }

    fn ramp(&mut self, window: Window) {
        if window.received < RAMP_PACKETS && window.arrival_time < LONGEST_LOOK && window.offered < 8.0 * RAMP_PACKETS {
            return;
        }
        if self.efficiency(&window) < RAMP_LIMITED {
            self.saturated = self.here();
            self.go_over(window.received_rate());
            return;
        }
        self.arrived(&window);
        if !self.keeps_up(&window) {
            // Behind a queue that was not waited for, these are still packets of the lower rate before.
            self.slow += u32::from(self.queue() <= LONGEST_QUEUE);
            if self.slow < 3 {
                self.anchor = self.points.len().checked_sub(1);
            } else {
                self.kept_up = false;
                self.phase = Phase::Hold(None);
            }
        } else if self.rate >= self.limits.max_rate.bits_per_second() {
            self.phase = Phase::Hold(None);
        } else {
            self.slow = 0;
            let long = self.round_trip > u64::try_from(LONG.as_nanos()).unwrap_or(u64::MAX) && self.rate < LOW;
            self.climb(self.rate * if long { LONG_RAMP } else { RAMP });
        }
    }

    /// Goes on with a higher rate, if the bytes that are left last for a look at it.
    fn climb(&mut self, rate: f64) {
        self.phase = Phase::Ramp;
        let rate = rate.min(self.limits.max_rate.bits_per_second());
        if self.left_bits() < rate * (seconds(self.round_trip) + 3.0 * super::FEEDBACK_INTERVAL.as_secs_f64()) {
            self.finish_early(Reason::Bytes);
        } else {
            self.set_rate(rate);
        }
    }

    /// Goes to the overload for what arrived.
    fn go_over(&mut self, received: f64) {
        let rate = OVER * received / self.usual();
        if rate > self.limits.max_rate.bits_per_second() && self.rate >= self.limits.max_rate.bits_per_second() {
            // Nothing more can be sent; what is sent is too much already.
            self.anchor = self.points.len().checked_sub(1);
            self.phase = Phase::Hold(None);
            return;
        }
        self.phase = Phase::Overload;
        self.set_rate(rate);
    }

    fn overload(&mut self, window: Window) {
        let enough = window.arrival_time >= OVERLOAD.as_secs_f64() && window.received >= LOOK_PACKETS;
        if !enough && window.arrival_time < LONGEST_LOOK {
            return;
        }
        if self.efficiency(&window) >= OVERLOAD_UNLIMITED {
            self.arrived(&window);
            if self.keeps_up(&window) {
                self.climb(self.rate * OVER);
            } else if self.queue() > LONGEST_QUEUE {
                self.anchor = self.points.len().checked_sub(1);
            } else {
                self.kept_up = false;
                self.phase = Phase::Hold(None);
            }
            return;
        }
        self.saturated = self.here();
        if let Some((_, second)) = self.unsettled(2.0 * SETTLED) {
            self.go_over(second.received_rate());
        } else {
            self.phase = Phase::Hold(Some(window));
            self.set_rate(HOLD_OVER * window.received_rate() / self.usual());
        }
    }

    /// The point in the middle and the second half, if that differs from the first half in rate; `None` when both agree,
    /// and when there were too many changes already.
    fn unsettled(&mut self, tolerance: f64) -> Option<(usize, Window)> {
        let (from, to) = self.here()?;
        let half_way = self.points[from].arrival.midpoint(self.points[to].arrival);
        let middle = from + self.points[from..=to].partition_point(|point| point.arrival < half_way);
        let (first, second) = (self.window(from, middle)?, self.window(middle, to)?);
        let packets = first.received.min(second.received);
        let change = (second.received_rate() / first.received_rate() - 1.0).abs();
        let by_chance = 2.0 / packets + self.unevenness() / first.arrival_time.min(second.arrival_time);
        if change <= tolerance + by_chance || self.restarts >= RESTARTS {
            return None;
        }
        self.restarts += 1;
        Some((middle, second))
    }

    /// By how much jitter may move the ends of a time, in seconds: half of the range of the delays between two reports, by
    /// their median over the present rate.
    fn unevenness(&self) -> f64 {
        let ranges: Vec<f64> = self.points[self.anchor.unwrap_or_default()..]
            .iter()
            .map(|point| point.max_delay - point.min_delay)
            .collect();
        Summary::of(&ranges).map_or(0.0, |summary| summary.median / 2e9)
    }

    fn hold(&mut self, before: Option<Window>, window: Window) {
        if window.received < LOOK_PACKETS && window.arrival_time < LONGEST_LOOK {
            return;
        }
        if let (Some(before), true) = (before, window.arrival_time >= OVERLOAD.as_secs_f64()) {
            if self.is_structural(&before, &window) {
                self.structural = Some(window.efficiency());
                self.below = (0.0, 0.0);
                self.saturated = None;
                self.climb(before.sent_rate() * OVER);
                return;
            }
            if self.has_fallen(&before, &window) && self.restarts < RESTARTS {
                self.fell(&before, &window);
                return;
            }
            if self.efficiency(&window) >= HOLD_UNLIMITED && self.climbs < 3 {
                // Others have yielded meanwhile.
                self.climbs += 1;
                self.go_over(window.received_rate());
                return;
            }
        }
        self.end_when_held(before.is_some(), &window);
    }

    /// Whether the same share is lost at a clearly lower rate, as far as the number of packets tells: then it is not the
    /// rate that is too high.
    fn is_structural(&self, before: &Window, window: &Window) -> bool {
        let share = window.efficiency();
        let chance = (share * (1.0 - share) * (1.0 / before.offered + 1.0 / window.offered)).max(0.0).sqrt();
        self.structural.is_none()
            && window.sent_rate() < 0.93 * before.sent_rate()
            && (share - before.efficiency()).abs() < 0.02 + 1.5 * chance
            && share < 0.93
    }

    /// Whether clearly less arrives in the hold than in the overload, beside what single packets and jitter make.
    fn has_fallen(&self, before: &Window, window: &Window) -> bool {
        let chance = 2.0 / before.received.min(window.received)
            + self.unevenness() / before.arrival_time.min(window.arrival_time);
        window.received_rate() / before.received_rate() < SHARED - chance
    }

    /// Less arrives since less is sent: either what arrives still changes, or the path is shared with others that do not
    /// yield. A queue that takes all alike gives `received = capacity × sent / (sent + others)`, so that two rates tell
    /// capacity and others.
    fn fell(&mut self, before: &Window, window: &Window) {
        if let Some((_, second)) = self.unsettled(2.0 * SETTLED) {
            self.go_over(second.received_rate());
            return;
        }
        self.restarts += 1;
        let inverse = |window: &Window| (1.0 / (window.sent_rate() * self.usual()), 1.0 / window.received_rate());
        let ((sent, received), (sent_before, received_before)) = (inverse(window), inverse(before));
        let share = (received - received_before) / (sent - sent_before);
        let capacity = 1.0 / (received - share * sent);
        let left = capacity * (1.0 - share);
        let many = window.received.min(before.received) >= LOSS_PACKETS;
        if many && share.is_finite() && (0.03..0.99).contains(&share) && left > 0.0 {
            self.empty_for(FROM_BELOW * left / self.usual(), Bounds { good: None, bad: window.sent_rate() });
        } else {
            self.go_over(window.received_rate());
        }
    }

    /// Empties the queue before that rate is tried: as long as it is full, losses say nothing of the present rate.
    fn empty_for(&mut self, next: f64, bounds: Bounds) {
        self.phase = Phase::Drain(next, bounds);
        self.set_rate(DRAIN * next);
    }

    fn drain(&mut self, next: f64, bounds: Bounds, window: &Window) {
        let queue = self.points.last().map_or(0.0, |point| point.min_delay - self.floor);
        if queue < EMPTY || window.arrival_time > LONGEST_DRAIN {
            self.phase = Phase::Shared(bounds);
            self.set_rate(next);
        }
    }

    /// Halves the way between a rate at which everything arrives and one at which not.
    fn try_shared(&mut self, mut bounds: Bounds, window: &Window) {
        if window.arrival_time < OVERLOAD.as_secs_f64() || window.received < LOOK_PACKETS {
            return;
        }
        self.shared = true;
        let fits = self.efficiency(window) >= SHARED_UNLIMITED - 2.0 / window.received;
        if fits {
            self.arrived(window);
            bounds.good = Some(self.rate);
        } else {
            bounds.bad = self.rate;
        }
        match bounds.good {
            Some(good) if bounds.bad <= good * CLOSE => {
                self.phase = Phase::LeftOver;
                self.set_rate(good);
            }
            Some(good) if fits => {
                self.phase = Phase::Shared(bounds);
                self.set_rate((good * STEP).min(f64::midpoint(good, bounds.bad)));
            }
            Some(good) => self.empty_for(f64::midpoint(good, bounds.bad), bounds),
            None => self.empty_for(bounds.bad / STEP, bounds),
        }
    }

    /// Ends the search when the present rate has been held for a second and what arrives has settled.
    fn end_when_held(&mut self, limited: bool, window: &Window) {
        let enough = window.arrival_time >= HOLD.as_secs_f64() && window.received >= HOLD_PACKETS;
        if !enough && window.arrival_time < LONGEST_HOLD {
            return;
        }
        if let Some((middle, _)) = self.unsettled(SETTLED) {
            self.anchor = Some(middle);
            return;
        }
        self.result = self.here();
        let full = limited || self.efficiency(window) < BOUND_UNLIMITED - 2.0 / window.received;
        self.bound = if full { self.path_or_receiver() } else { Bound::AtLeast(self.what_bounds()) };
        self.phase = Phase::Done;
    }

    fn what_bounds(&self) -> Reason {
        if self.kept_up { Reason::MaximumRate } else { Reason::Sender }
    }

    /// Where most of what was lost in the measured time was lost in the receiving host, that is what limits.
    fn path_or_receiver(&self) -> Bound {
        let (Some((from, to)), Some(window)) = (self.result, self.result.and_then(|(from, to)| self.window(from, to)))
        else {
            return Bound::Unknown;
        };
        let dropped = |index: usize| self.points[index].receiver_dropped;
        let there = dropped(to).zip(dropped(from)).map_or(0, |(to, from)| to.saturating_sub(from));
        let lost = window.offered - window.received;
        if there > 0 && PacketCount::new(there).as_f64() > 0.5 * lost {
            Bound::AtLeast(Reason::Receiver)
        } else {
            Bound::Path
        }
    }

    /// Takes what there is.
    fn finish_early(&mut self, reason: Reason) {
        let held = self.here().filter(|_| matches!(self.phase, Phase::Hold(Some(_)) | Phase::LeftOver));
        let long_enough =
            |&(from, to): &(usize, usize)| self.window(from, to).is_some_and(|window| window.received >= RAMP_PACKETS);
        // On a shared path what was over the rest was not the path's.
        let over = if self.shared { self.best } else { self.saturated };
        let limited = held.filter(long_enough).or(over);
        self.result = limited.or(self.best).or(self.here()).filter(|&(from, to)| self.window(from, to).is_some());
        self.bound = match (limited, self.result) {
            (Some(_), Some(_)) => self.path_or_receiver(),
            (None, Some(_)) => Bound::AtLeast(if self.kept_up { reason } else { Reason::Sender }),
            (_, None) => Bound::Unknown,
        };
        self.phase = Phase::Done;
    }

    fn reading_between(&self, from: &Point, to: &Point) -> Option<Reading> {
        let (sent, received) = Window::between(from, to, self.packet.size())?.rates();
        Some(Reading { at: MonotonicTime::from_nanos(to.now), sent, received })
    }

    /// The result; before the end, what there is so far.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        let mut search = self.clone();
        if search.phase != Phase::Done {
            search.finish_early(Reason::Duration);
        }
        search.into_outcome()
    }

    fn into_outcome(self) -> Outcome {
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
        Outcome {
            capacity: window.map(|window| rate(window.received_rate())),
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
            readings: self.points.windows(2).filter_map(|pair| self.reading_between(&pair[0], &pair[1])).collect(),
        }
    }
}

fn seconds(nanoseconds: u64) -> f64 {
    Duration::from_nanos(nanoseconds).as_secs_f64()
}
