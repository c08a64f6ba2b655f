//! Measurements of a trial.

use core::time::Duration;

use linerate_units::serde::OptionalNanoseconds;
use linerate_units::{BitRate, Ratio};
use serde::{Deserialize, Serialize};

/// One transfer of a trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TransferMeasurement {
    /// Goodput: payload that arrived.
    #[serde(rename = "goodput_bits_per_second")]
    pub goodput: BitRate,
    /// 95th percentile of the round trip under load.
    // `None` where nothing was acknowledged, or it was not reported.
    #[serde(rename = "round_trip_p95_ns", with = "OptionalNanoseconds")]
    pub round_trip_p95: Option<Duration>,
    /// Smallest round trip.
    #[serde(rename = "base_round_trip_ns", with = "OptionalNanoseconds")]
    pub base_round_trip: Option<Duration>,
    /// Share of retransmitted bytes.
    pub retransmitted: Option<Ratio>,
    /// Utilisation of the busiest processor of both hosts.
    pub processor: Option<Ratio>,
    /// Disturbance of the measurement; `null` for none.
    // Other traffic, another test, a link that went down.
    pub disturbed: Option<String>,
}

/// Measurements without and with the changes, one directly after the other.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MeasurementPair {
    /// Measurement without the changes.
    pub before: TransferMeasurement,
    /// Measurement with the changes.
    pub after: TransferMeasurement,
    /// True when the measurement with the changes was the first of the two.
    #[serde(default)]
    pub changed_first: bool,
    /// Reason why the pair does not count; `null` where it does.
    pub fault: Option<String>,
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
    /// Joins two measurements, and decides on whether they count.
    #[must_use]
    pub fn new(before: TransferMeasurement, after: TransferMeasurement, changed_first: bool) -> Self {
        let fault = fault(&before, &after);
        Self { before, after, changed_first, fault }
    }
}

/// Reason why two measurements must not count; `None` where they do.
fn fault(before: &TransferMeasurement, after: &TransferMeasurement) -> Option<String> {
    let disturbed = before.disturbed.as_ref().or(after.disturbed.as_ref());
    disturbed.cloned().or_else(|| {
        let (before, after) = (before.base_round_trip?, after.base_round_trip?);
        let moved = before.abs_diff(after);
        (moved > before.mul_f64(MAX_DRIFT_SHARE).max(MAX_NEGLIGIBLE_DRIFT)).then(|| {
            let [before, after] = [before, after].map(linerate_units::display::duration);
            format!("the smallest round trip moved from {before} to {after}: the path itself changed")
        })
    })
}
