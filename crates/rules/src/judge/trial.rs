//! Measurements of a trial.

use core::time::Duration;

use linerate_units::{BitRate, Ratio};

/// Measurement of one transfer, without or with a change.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TransferMeasurement {
    /// Payload that arrived per second.
    pub goodput: BitRate,
    /// Round trip under load, 95th percentile; `None` where nothing was acknowledged, or it was not reported.
    pub round_trip_p95: Option<Duration>,
    /// Smallest round trip.
    pub base_round_trip: Option<Duration>,
    /// Retransmitted share of the bytes.
    pub retransmitted: Option<Ratio>,
    /// Load of the busiest processor of both hosts.
    pub processor: Option<Ratio>,
    /// Disturbance that invalidates it: other traffic, another test, a link that went down.
    pub disturbed: Option<String>,
}

/// Measurements without and with the change, one directly after the other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MeasurementPair {
    /// Measurement without the change.
    pub before: TransferMeasurement,
    /// Measurement with the change.
    pub after: TransferMeasurement,
    /// True when the measurement with the change was the first of the two.
    pub changed_first: bool,
}

/// Number of pairs to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairBudget {
    /// Least number for a decision; at least five, as fewer leave too much to chance.
    pub fewest: usize,
    /// Largest number.
    pub most: usize,
}

/// Least number of pairs to keep a change: five differences without an effect are all positive once in 32 times.
pub const MIN_PAIRS: usize = 5;

/// Pair that does not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiscardedPair {
    /// Index of the pair, from 0.
    pub pair: usize,
    /// Reason for discarding it.
    pub reason: String,
}

/// Relative change of the base round trip above which the path itself changed.
const MAX_DRIFT_SHARE: f64 = 0.1;
/// Absolute change that is always tolerated: short round trips always vary.
const MAX_NEGLIGIBLE_DRIFT: Duration = Duration::from_micros(50);

impl MeasurementPair {
    /// Returns the reason why the pair must not count; `None` where it does.
    #[must_use]
    pub fn discard_reason(&self) -> Option<String> {
        let disturbed = self.before.disturbed.as_ref().or(self.after.disturbed.as_ref());
        disturbed.cloned().or_else(|| {
            let (before, after) = (self.before.base_round_trip?, self.after.base_round_trip?);
            let moved = before.abs_diff(after);
            (moved > before.mul_f64(MAX_DRIFT_SHARE).max(MAX_NEGLIGIBLE_DRIFT)).then(|| {
                let [before, after] = [before, after].map(linerate_units::display::duration);
                format!("the smallest round trip moved from {before} to {after}: the path itself changed")
            })
        })
    }
}
