//! Search for the highest rates that pass: the margin below the capacity that a shaper needs.
//!
//! A fixed margin is always wrong: down, 95 % of a link was too much in three of four runs and 85 % wasted a tenth. So
//! rates are tried: 95 % of the capacity first, 5 % less as long as probes are late, then bisection between the lowest
//! failed and the highest passed rate, to a resolution of 1.5 %. One-way delays show which direction failed, so both
//! are searched at the same time. A single pass may be luck: the result has passed twice.

use core::time::Duration;
use linerate_model::direction::Direction;

use linerate_units::{BitRate, Ratio};

use super::PerDirection;

/// First trial rate, as a share of the capacity.
const FIRST: f64 = 0.95;
/// Decrement of the share until a rate passes.
const SHARE_DECREMENT: f64 = 0.05;
/// Largest trial rate, as a share of the capacity: closer to it the queue may form anywhere, and a rate variation of a
/// percent would move it behind the shaper.
const MOST: f64 = 0.98;
/// Resolution of the search, as a share of the capacity.
const SEARCH_RESOLUTION: f64 = 0.015;
/// Required passes of the result.
const REQUIRED_PASSES: u32 = 2;

/// Limits of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateSearchLimits {
    /// Capacity without a shaper, as the shaper counts (link-layer bytes); `None` in a direction that is not shaped.
    pub capacity: PerDirection<Option<BitRate>>,
    /// Largest uplift (95th percentile, best effort) that passes.
    pub largest_uplift: Duration,
    /// Minimum share of the capacity.
    pub floor: Ratio,
}

/// Measured uplift at a pair of rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrialUplift {
    /// Uplifts of both directions.
    OneWay(PerDirection<Duration>),
    /// Uplift of the round trip: either direction may be at fault, so both rates decrease.
    RoundTrip(Duration),
}

/// Next step of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RateSearchStep {
    /// Set these rates, measure with both directions loaded, and [`PassingRateSearch::report`]. `None` in a direction without shaper.
    Measure(PerDirection<Option<BitRate>>),
    /// The result.
    Done(PerDirection<Option<RateSearchResult>>),
}

/// Result in one direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RateSearchResult {
    /// The highest rate that passed.
    Highest {
        /// Rate.
        rate: BitRate,
        /// Share of the capacity.
        share: Ratio,
    },
    /// Nothing down to the floor passed.
    NothingPassed {
        /// Lowest rate tried.
        tried: BitRate,
        /// Uplift at that rate.
        uplift: Duration,
    },
}

/// Search in one direction, in shares of the capacity.
#[derive(Clone, Copy, Debug, PartialEq)]
struct DirectionSearch {
    capacity: BitRate,
    floor: f64,
    now: f64,
    good: Option<f64>,
    passes: u32,
    bad: Option<f64>,
    done: bool,
    uplift: Duration,
}

impl DirectionSearch {
    fn new(capacity: BitRate, floor: f64) -> Self {
        let now = FIRST.max(floor);
        Self { capacity, floor, now, good: None, passes: 0, bad: None, done: false, uplift: Duration::ZERO }
    }

    fn report(&mut self, uplift: Duration, largest: Duration) {
        self.uplift = uplift;
        if self.done {
            return;
        }
        if uplift <= largest {
            let again = self.good.is_some_and(|good| (good - self.now).abs() < f64::EPSILON);
            self.passes = if again { self.passes + 1 } else { 1 };
            self.good = Some(self.now);
        } else {
            if self.good.is_some_and(|good| good >= self.now) {
                // The earlier pass was luck.
                (self.good, self.passes) = (None, 0);
            }
            self.bad = Some(self.bad.map_or(self.now, |bad| bad.min(self.now)));
        }
        self.choose();
    }

    /// Chooses the next share, or ends.
    fn choose(&mut self) {
        let bad = self.bad.unwrap_or(MOST + SEARCH_RESOLUTION);
        match self.good {
            Some(good) if bad - good > SEARCH_RESOLUTION + 1e-9 => self.now = f64::midpoint(good, bad).min(MOST),
            Some(good) if self.passes < REQUIRED_PASSES => self.now = good,
            Some(_) => self.done = true,
            None if self.now <= self.floor + 1e-9 => self.done = true,
            None => self.now = (self.now - SHARE_DECREMENT).max(self.floor),
        }
    }

    fn rate(&self) -> BitRate {
        self.capacity * self.now
    }

    fn found(&self) -> RateSearchResult {
        match self.good {
            Some(share) => {
                RateSearchResult::Highest { rate: self.capacity * share, share: Ratio::new(share).unwrap_or_default() }
            }
            None => RateSearchResult::NothingPassed { tried: self.rate(), uplift: self.uplift },
        }
    }
}

/// Search for the highest rates that pass, in both directions at once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PassingRateSearch {
    sides: PerDirection<Option<DirectionSearch>>,
    largest: Duration,
}

impl PassingRateSearch {
    /// Creates a search without measurements.
    #[must_use]
    pub fn new(limits: &RateSearchLimits) -> Self {
        let side =
            |capacity: Option<BitRate>| capacity.map(|capacity| DirectionSearch::new(capacity, limits.floor.get()));
        let sides = PerDirection { up: side(limits.capacity.up), down: side(limits.capacity.down) };
        Self { sides, largest: limits.largest_uplift }
    }

    /// Next step. It is constant until a report.
    #[must_use]
    pub fn next(&self) -> RateSearchStep {
        let sides = [self.sides.up, self.sides.down];
        if sides.iter().flatten().all(|side| side.done) {
            let found = |side: Option<DirectionSearch>| side.map(|side| side.found());
            return RateSearchStep::Done(PerDirection { up: found(self.sides.up), down: found(self.sides.down) });
        }
        let rate = |side: Option<DirectionSearch>| {
            side.map(
                |side| if side.done { side.good.map_or(side.rate(), |good| side.capacity * good) } else { side.rate() },
            )
        };
        RateSearchStep::Measure(PerDirection { up: rate(self.sides.up), down: rate(self.sides.down) })
    }

    /// Reports the measurement at the rates of [`PassingRateSearch::next`].
    pub fn report(&mut self, trial: &TrialUplift) {
        for direction in [Direction::Up, Direction::Down] {
            let uplift = match trial {
                TrialUplift::OneWay(uplifts) => *uplifts.of(direction),
                TrialUplift::RoundTrip(uplift) => *uplift,
            };
            let largest = self.largest;
            if let Some(side) = self.sides.of_mut(direction) {
                side.report(uplift, largest);
            }
        }
    }
}
