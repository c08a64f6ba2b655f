use core::time::Duration;
use linerate_model::direction::Direction;

use linerate_units::BitRate;

use super::RateReason;
use super::cake_autorate_law::CakeAutorateLaw;
use super::capacity_law::CapacityLaw;
use super::constants::{
    DECAY_FACTORS, DRAIN_THRESHOLD, LATE_DELAY, MIN_ACTIVE_RATE, MIN_ACTIVE_SHARE, MIN_HIGH_LOAD_SHARE, MIN_RATE,
    START_RATE,
};
use super::delay_window::DelayWindow;
use super::settings::{AutorateBounds, ControlLaw, LoadLevel};

/// Number of remembered intervals of carried bytes: enough for the longest relevant delay.
const MAX_INTERVALS: usize = 32;

/// Rate bounds of a direction, in bit/s.
#[derive(Clone, Copy, Debug)]
pub(super) struct RateRange {
    pub(super) minimum: f64,
    pub(super) base: Option<f64>,
    pub(super) maximum: f64,
}

/// State of one direction, common to both laws; in seconds and bit/s.
#[derive(Clone, Debug)]
pub(super) struct DirectionState {
    pub(super) flow: Direction,
    bounds: AutorateBounds,
    pub(super) rate: f64,
    pub(super) achieved: Option<f64>,
    /// True when `achieved` has not been acted upon yet.
    pub(super) fresh: bool,
    pub(super) backlog: f64,
    pub(super) window: DelayWindow,
    carried: [(f64, f64, f64); MAX_INTERVALS],
    /// Size of the largest packet in bits, for its time at a rate.
    pub(super) packet: f64,
    pub(super) largest_clean: Option<f64>,
    pub(super) smallest_capacity: Option<f64>,
    pub(super) mean_capacity: Option<f64>,
    decayed: f64,
    pub(super) reason: RateReason,
    course: LawState,
}

/// Law with its state.
#[derive(Clone, Debug)]
enum LawState {
    Baseline(CakeAutorateLaw),
    Seeker(CapacityLaw),
}

impl DirectionState {
    pub(super) fn new(flow: Direction, bounds: AutorateBounds, law: ControlLaw, packet: f64, now: f64) -> Self {
        let given = |rate: Option<BitRate>| rate.map(BitRate::bits_per_second);
        let start = given(bounds.base).unwrap_or(START_RATE).max(given(bounds.minimum).unwrap_or(MIN_RATE));
        Self {
            flow,
            bounds,
            rate: start.min(given(bounds.maximum).unwrap_or(f64::INFINITY)),
            achieved: None,
            fresh: false,
            backlog: 0.0,
            window: DelayWindow::default(),
            carried: [(now, now, 0.0); MAX_INTERVALS],
            packet,
            largest_clean: None,
            smallest_capacity: None,
            mean_capacity: None,
            decayed: now,
            reason: RateReason::Hold,
            course: match law {
                ControlLaw::CakeAutorate => LawState::Baseline(CakeAutorateLaw::default()),
                ControlLaw::Linerate => LawState::Seeker(CapacityLaw::new(now)),
            },
        }
    }

    pub(super) fn range(&self) -> RateRange {
        let given = |rate: Option<BitRate>| rate.map(BitRate::bits_per_second);
        let discovered = self.smallest_capacity.map_or(MIN_RATE, |least| (least / 2.0).max(MIN_RATE));
        RateRange {
            minimum: given(self.bounds.minimum).unwrap_or(discovered),
            base: given(self.bounds.base).or(self.mean_capacity),
            maximum: given(self.bounds.maximum).unwrap_or(f64::INFINITY),
        }
    }

    /// True when neither a base rate is given nor a limit has been met.
    pub(super) fn is_discovering(&self) -> bool {
        self.bounds.base.is_none() && self.mean_capacity.is_none()
    }

    /// Serialisation time of the largest packet at the set rate.
    pub(super) fn packet_time(&self) -> f64 {
        self.packet / self.rate
    }

    /// Rate below which the direction is idle; less than 2 Mbit/s on slow links.
    fn active(&self) -> f64 {
        match self.course {
            LawState::Baseline(_) => MIN_ACTIVE_RATE,
            LawState::Seeker(_) => MIN_ACTIVE_RATE.min(MIN_ACTIVE_SHARE * self.rate),
        }
    }

    pub(super) fn load(&self) -> LoadLevel {
        let achieved = self.achieved.unwrap_or(0.0);
        if achieved > MIN_HIGH_LOAD_SHARE * self.rate || self.backlog * 8.0 > 2.0 * self.packet {
            LoadLevel::High
        } else if achieved > self.active() {
            LoadLevel::Low
        } else {
            LoadLevel::Idle
        }
    }

    /// Records the carried rate of an interval.
    pub(super) fn carried(&mut self, bits_per_second: f64, from: f64, now: f64) {
        self.carried.copy_within(1.., 0);
        self.carried[MAX_INTERVALS - 1] = (from, now, bits_per_second);
        self.achieved = Some(bits_per_second);
        self.fresh = true;
        let clean = self.window.queue().is_some_and(|queue| queue <= DRAIN_THRESHOLD);
        if clean && self.largest_clean.is_none_or(|most| bits_per_second > most) {
            self.largest_clean = Some(bits_per_second);
        }
    }

    /// Mean carried rate between two times, as far as remembered.
    pub(super) fn carried_between(&self, from: f64, to: f64) -> Option<f64> {
        let (mut bits, mut time) = (0.0, 0.0);
        for (begin, end, rate) in &self.carried {
            let overlap = (end.min(to) - begin.max(from)).max(0.0);
            bits += overlap * rate;
            time += overlap;
        }
        (time > 0.0).then(|| bits / time)
    }

    /// Handles a sample; returns the increase of the idle delay, if any.
    pub(super) fn on_sample(&mut self, now: f64, round_trip: f64) -> Option<f64> {
        let mut course = core::mem::replace(&mut self.course, LawState::Baseline(CakeAutorateLaw::default()));
        let rebase = match &mut course {
            LawState::Baseline(law) => {
                law.react(self, now);
                None
            }
            LawState::Seeker(law) => law.react(self, now, round_trip),
        };
        self.course = course;
        self.hold();
        if let Some(by) = rebase {
            self.window.shift(-by);
            self.reason = RateReason::Rebase;
        }
        rebase
    }

    /// Decays towards the base rate, slightly each second.
    pub(super) fn decay(&mut self, now: f64) {
        if now - self.decayed < DECAY_FACTORS.2 {
            return;
        }
        self.decayed = now;
        let Some(base) = self.range().base else { return };
        let next = if self.rate > base {
            (self.rate * DECAY_FACTORS.0).max(base)
        } else {
            (self.rate * DECAY_FACTORS.1).min(base)
        };
        if (next - self.rate).abs() > f64::EPSILON {
            self.rate = next;
            self.reason = RateReason::Decay;
        }
    }

    /// Clamps the rate to its bounds.
    pub(super) fn hold(&mut self) {
        let range = self.range();
        self.rate = self.rate.max(range.minimum).min(range.maximum.max(range.minimum));
    }

    /// Limits the rate to a known safe one, after missing answers under load.
    pub(super) fn limit_to_safe_rate(&mut self) {
        if let Some(base) = self.range().base {
            self.rate = self.rate.min(base);
        }
        self.hold();
    }

    /// Delay from which the rate falls.
    pub(super) fn threshold(&self) -> Duration {
        let own = match &self.course {
            LawState::Baseline(_) => LATE_DELAY,
            LawState::Seeker(_) => DRAIN_THRESHOLD,
        };
        Duration::try_from_secs_f64(own + self.packet_time()).unwrap_or(Duration::MAX)
    }

    pub(super) fn capacity(&self) -> Option<f64> {
        match &self.course {
            LawState::Baseline(_) => None,
            LawState::Seeker(law) => law.capacity(),
        }
    }
}
