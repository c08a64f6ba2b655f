use core::time::Duration;

use linerate_model::throughput::Flow;
use linerate_units::BitRate;

use super::Reason;
use super::baseline::Baseline;
use super::constants::{ACTIVE, ACTIVE_SHARE, DECAY, DRAIN_FROM, FIRST_RATE, HIGH_LOAD, LATE, LOWEST_RATE};
use super::seeker::Seeker;
use super::settings::{Bounds, Law, Load};
use super::window::Window;

/// Intervals of carried bytes that are kept: enough for the longest delay that matters.
const INTERVALS: usize = 32;

/// Rates in which a direction is held, in bit/s.
#[derive(Clone, Copy, Debug)]
pub(super) struct Range {
    pub(super) minimum: f64,
    pub(super) base: Option<f64>,
    pub(super) maximum: f64,
}

/// What is known of one direction, whatever the law; seconds and bit/s.
#[derive(Clone, Debug)]
pub(super) struct Side {
    pub(super) flow: Flow,
    bounds: Bounds,
    pub(super) rate: f64,
    pub(super) achieved: Option<f64>,
    /// Whether it has not been acted upon.
    pub(super) fresh: bool,
    pub(super) backlog: f64,
    pub(super) window: Window,
    carried: [(f64, f64, f64); INTERVALS],
    /// The time of the largest packet at a rate: its bits.
    pub(super) packet: f64,
    pub(super) largest_clean: Option<f64>,
    pub(super) smallest_capacity: Option<f64>,
    pub(super) mean_capacity: Option<f64>,
    decayed: f64,
    pub(super) reason: Reason,
    course: Course,
}

/// The law with what it remembers.
#[derive(Clone, Debug)]
enum Course {
    Baseline(Baseline),
    Seeker(Seeker),
}

impl Side {
    pub(super) fn new(flow: Flow, bounds: Bounds, law: Law, packet: f64, now: f64) -> Self {
        let given = |rate: Option<BitRate>| rate.map(BitRate::bits_per_second);
        let start = given(bounds.base).unwrap_or(FIRST_RATE).max(given(bounds.minimum).unwrap_or(LOWEST_RATE));
        Self {
            flow,
            bounds,
            rate: start.min(given(bounds.maximum).unwrap_or(f64::INFINITY)),
            achieved: None,
            fresh: false,
            backlog: 0.0,
            window: Window::default(),
            carried: [(now, now, 0.0); INTERVALS],
            packet,
            largest_clean: None,
            smallest_capacity: None,
            mean_capacity: None,
            decayed: now,
            reason: Reason::Hold,
            course: match law {
                Law::CakeAutorate => Course::Baseline(Baseline::default()),
                Law::Linerate => Course::Seeker(Seeker::new(now)),
            },
        }
    }

    pub(super) fn range(&self) -> Range {
        let given = |rate: Option<BitRate>| rate.map(BitRate::bits_per_second);
        let discovered = self.smallest_capacity.map_or(LOWEST_RATE, |least| (least / 2.0).max(LOWEST_RATE));
        Range {
            minimum: given(self.bounds.minimum).unwrap_or(discovered),
            base: given(self.bounds.base).or(self.mean_capacity),
            maximum: given(self.bounds.maximum).unwrap_or(f64::INFINITY),
        }
    }

    /// Whether neither a base was given nor a limit has been met.
    pub(super) fn discovering(&self) -> bool {
        self.bounds.base.is_none() && self.mean_capacity.is_none()
    }

    /// The time of the largest packet at the rate that is set.
    pub(super) fn packet_time(&self) -> f64 {
        self.packet / self.rate
    }

    /// The rate below which nobody sends: on slow lines 2 Mbit/s are much.
    fn active(&self) -> f64 {
        match self.course {
            Course::Baseline(_) => ACTIVE,
            Course::Seeker(_) => ACTIVE.min(ACTIVE_SHARE * self.rate),
        }
    }

    pub(super) fn load(&self) -> Load {
        let achieved = self.achieved.unwrap_or(0.0);
        if achieved > HIGH_LOAD * self.rate || self.backlog * 8.0 > 2.0 * self.packet {
            Load::High
        } else if achieved > self.active() {
            Load::Low
        } else {
            Load::Idle
        }
    }

    /// What was carried since the last time.
    pub(super) fn carried(&mut self, bits_per_second: f64, from: f64, now: f64) {
        self.carried.copy_within(1.., 0);
        self.carried[INTERVALS - 1] = (from, now, bits_per_second);
        self.achieved = Some(bits_per_second);
        self.fresh = true;
        let clean = self.window.queue().is_some_and(|queue| queue <= DRAIN_FROM);
        if clean && self.largest_clean.is_none_or(|most| bits_per_second > most) {
            self.largest_clean = Some(bits_per_second);
        }
    }

    /// The mean rate that was carried between two times, as far as it is remembered.
    pub(super) fn carried_between(&self, from: f64, to: f64) -> Option<f64> {
        let (mut bits, mut time) = (0.0, 0.0);
        for (begin, end, rate) in &self.carried {
            let overlap = (end.min(to) - begin.max(from)).max(0.0);
            bits += overlap * rate;
            time += overlap;
        }
        (time > 0.0).then(|| bits / time)
    }

    /// A sample was taken; returns by how much the delay at rest turned out to be longer, if it did.
    pub(super) fn on_sample(&mut self, now: f64, round_trip: f64) -> Option<f64> {
        let mut course = core::mem::replace(&mut self.course, Course::Baseline(Baseline::default()));
        let rebase = match &mut course {
            Course::Baseline(law) => {
                law.react(self, now);
                None
            }
            Course::Seeker(law) => law.react(self, now, round_trip),
        };
        self.course = course;
        self.hold();
        if let Some(by) = rebase {
            self.window.shift(-by);
            self.reason = Reason::Rebase;
        }
        rebase
    }

    /// Back towards the base rate, a little each second.
    pub(super) fn decay(&mut self, now: f64) {
        if now - self.decayed < DECAY.2 {
            return;
        }
        self.decayed = now;
        let Some(base) = self.range().base else { return };
        let next = if self.rate > base { (self.rate * DECAY.0).max(base) } else { (self.rate * DECAY.1).min(base) };
        if (next - self.rate).abs() > f64::EPSILON {
            self.rate = next;
            self.reason = Reason::Decay;
        }
    }

    /// Puts the rate into its range.
    pub(super) fn hold(&mut self) {
        let range = self.range();
        self.rate = self.rate.max(range.minimum).min(range.maximum.max(range.minimum));
    }

    /// No answer came while there was load: not above what is known to be safe.
    pub(super) fn careful(&mut self) {
        if let Some(base) = self.range().base {
            self.rate = self.rate.min(base);
        }
        self.hold();
    }

    /// The delay from which the rate falls.
    pub(super) fn threshold(&self) -> Duration {
        let own = match &self.course {
            Course::Baseline(_) => LATE,
            Course::Seeker(_) => DRAIN_FROM,
        };
        Duration::try_from_secs_f64(own + self.packet_time()).unwrap_or(Duration::MAX)
    }

    pub(super) fn capacity(&self) -> Option<f64> {
        match &self.course {
            Course::Baseline(_) => None,
            Course::Seeker(law) => law.capacity(),
        }
    }
}
