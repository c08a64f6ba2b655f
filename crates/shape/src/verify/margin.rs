//! The search for the highest rates that pass: how far below the capacity a shaper must stay.
//!
//! A fixed margin is wrong either way: coming in, 95 % of a line was too much in three of four runs and 85 % gave away a
//! tenth. So rates are tried: 95 % of the capacity first, 5 % less as long as probes are late, and between the last that
//! failed and the best that passed by halves, down to a percent and a half. One-way delays say which direction failed, so
//! both are searched at the same time. What passed once may have been lucky: the result has passed twice.

use core::time::Duration;

use linerate_model::throughput::Flow;
use linerate_units::{BitRate, Ratio};

use super::Both;

/// The first share of the capacity that is tried.
const FIRST: f64 = 0.95;
/// How much less is tried as long as nothing passed.
const LESS: f64 = 0.05;
/// The largest share that is tried: closer to the capacity the queue may stand anywhere, and a line whose rate wavers by a
/// percent would have it behind the shaper.
const MOST: f64 = 0.98;
/// How close what passed and what failed must come.
const CLOSE: f64 = 0.015;
/// Times that the result must have passed.
const PASSES: u32 = 2;

/// What is searched.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// What the path carried without a shaper, as the shaper counts (link-layer bytes); `None` in a direction that is not
    /// shaped.
    pub capacity: Both<Option<BitRate>>,
    /// The largest uplift (95th percentile, best effort) that passes.
    pub largest_uplift: Duration,
    /// The least share of the capacity that is worth it.
    pub floor: Ratio,
}

/// What was measured at a pair of rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trial {
    /// Uplifts of both directions.
    OneWay(Both<Duration>),
    /// Of the round trip: either direction may be at fault, so both go down.
    RoundTrip(Duration),
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Next {
    /// Set these rates, measure with both directions loaded, and [`Search::report`]. `None` in a direction without shaper.
    Measure(Both<Option<BitRate>>),
    /// The result.
    Done(Both<Option<Found>>),
}

/// The result in one direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Found {
    /// The highest rate that passed.
    Highest {
        /// The rate.
        rate: BitRate,
        /// Of the capacity.
        share: Ratio,
    },
    /// Nothing down to the floor passed.
    NothingPassed {
        /// The lowest rate that was tried.
        tried: BitRate,
        /// What load added there.
        uplift: Duration,
    },
}

/// The search in one direction, in shares of the capacity.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Side {
    capacity: BitRate,
    floor: f64,
    now: f64,
    good: Option<f64>,
    passes: u32,
    bad: Option<f64>,
    done: bool,
    uplift: Duration,
}

impl Side {
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
                // It was luck.
                (self.good, self.passes) = (None, 0);
            }
            self.bad = Some(self.bad.map_or(self.now, |bad| bad.min(self.now)));
        }
        self.choose();
    }

    /// The next share, or the end.
    fn choose(&mut self) {
        let bad = self.bad.unwrap_or(MOST + CLOSE);
        match self.good {
            Some(good) if bad - good > CLOSE + 1e-9 => self.now = f64::midpoint(good, bad).min(MOST),
            Some(good) if self.passes < PASSES => self.now = good,
            Some(_) => self.done = true,
            None if self.now <= self.floor + 1e-9 => self.done = true,
            None => self.now = (self.now - LESS).max(self.floor),
        }
    }

    fn rate(&self) -> BitRate {
        self.capacity * self.now
    }

    fn found(&self) -> Found {
        match self.good {
            Some(share) => Found::Highest { rate: self.capacity * share, share: Ratio::new(share).unwrap_or_default() },
            None => Found::NothingPassed { tried: self.rate(), uplift: self.uplift },
        }
    }
}

/// The search for the highest rates that pass, of both directions at once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Search {
    sides: Both<Option<Side>>,
    largest: Duration,
}

impl Search {
    /// A search that has not measured yet.
    #[must_use]
    pub fn new(limits: &Limits) -> Self {
        let side = |capacity: Option<BitRate>| capacity.map(|capacity| Side::new(capacity, limits.floor.get()));
        let sides = Both { up: side(limits.capacity.up), down: side(limits.capacity.down) };
        Self { sides, largest: limits.largest_uplift }
    }

    /// What to do next. It stays the same until something is reported.
    #[must_use]
    pub fn next(&self) -> Next {
        let sides = [self.sides.up, self.sides.down];
        if sides.iter().flatten().all(|side| side.done) {
            let found = |side: Option<Side>| side.map(|side| side.found());
            return Next::Done(Both { up: found(self.sides.up), down: found(self.sides.down) });
        }
        let rate = |side: Option<Side>| {
            side.map(
                |side| if side.done { side.good.map_or(side.rate(), |good| side.capacity * good) } else { side.rate() },
            )
        };
        Next::Measure(Both { up: rate(self.sides.up), down: rate(self.sides.down) })
    }

    /// What was measured at the rates of [`Search::next`].
    pub fn report(&mut self, trial: &Trial) {
        for direction in [Flow::Up, Flow::Down] {
            let uplift = match trial {
                Trial::OneWay(uplifts) => *uplifts.of(direction),
                Trial::RoundTrip(uplift) => *uplift,
            };
            let largest = self.largest;
            if let Some(side) = self.sides.of_mut(direction) {
                side.report(uplift, largest);
            }
        }
    }
}
