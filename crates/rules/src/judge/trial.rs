//! What a trial measured.

use core::time::Duration;

use linerate_units::{BitRate, Ratio};

/// One measurement of a transfer, before a change or after it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measurement {
    /// Payload that arrived per second.
    pub goodput: BitRate,
    /// Round trip under load that the slowest twentieth exceeds; `None` where nothing was acknowledged, or nobody told.
    pub round_trip_p95: Option<Duration>,
    /// Smallest round trip.
    pub base_round_trip: Option<Duration>,
    /// The share of bytes that were sent again.
    pub retransmitted: Option<Ratio>,
    /// The busiest processor of both hosts.
    pub processor: Option<Ratio>,
    /// What disturbed it, so that it must not count: other traffic, another test, a link that went down.
    pub disturbed: Option<String>,
}

/// A measurement without the change, and the one with it that followed at once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pair {
    /// Without the change.
    pub before: Measurement,
    /// With it.
    pub after: Measurement,
}

/// How many pairs may be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// No decision with fewer; five at least, below which chance alone is too likely.
    pub fewest: usize,
    /// No more than this.
    pub most: usize,
}

/// With fewer pairs nothing is kept: of five differences of equal things all are positive once in 32 times.
pub const FEWEST_PAIRS: usize = 5;

impl Default for Budget {
    /// Five to twelve pairs.
    fn default() -> Self {
        Self { fewest: FEWEST_PAIRS, most: 12 }
    }
}

/// A pair that does not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Discarded {
    /// Which one, from 0.
    pub pair: usize,
    /// Why.
    pub reason: String,
}

/// A base round trip that moved by more than this share is of another path.
const DRIFT: f64 = 0.1;
/// … and by more than this: shorter ones never stand still.
const LEAST_DRIFT: Duration = Duration::from_micros(50);

impl Pair {
    /// Why it must not count; `None` where it does.
    #[must_use]
    pub fn fault(&self) -> Option<String> {
        let disturbed = self.before.disturbed.as_ref().or(self.after.disturbed.as_ref());
        disturbed.cloned().or_else(|| {
            let (before, after) = (self.before.base_round_trip?, self.after.base_round_trip?);
            let moved = before.abs_diff(after);
            (moved > before.mul_f64(DRIFT).max(LEAST_DRIFT)).then(|| {
                let [before, after] = [before, after].map(linerate_units::display::duration);
                format!("the smallest round trip moved from {before} to {after}: the path itself changed")
            })
        })
    }
}
