//! Gain of the figure that the objective improves.

use linerate_analysis::statistics::StudentEstimate;

use super::MeasurementPair;
use super::design::Look;
use super::effect::log_ratio;
use super::harm::round_trips;
use crate::tuning::{TuningAim, TuningObjective};

/// Standard deviation of the ratios that even equal pairs are assumed to have: few pairs agree by chance where the order
/// or a slow change of the path decides. Gains of a few percent take eight pairs, large ones five.
const LEAST_DEVIATION: f64 = 0.05;

/// The same for the conclusion that a gain is too small, which keeps nothing.
const LEAST_DEVIATION_OF_NO_GAIN: f64 = 0.01;

/// Error probability of that conclusion at each look.
const MISSED_GAIN: f64 = 0.02;

/// Gain of a change, as a logarithm, with the threshold above which the change is kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct SelectedGain {
    mean: StudentEstimate,
    narrow: StudentEstimate,
    /// Logarithm of the least gain to keep a change.
    least: f64,
    /// Gain of the next best candidate, which this one exceeds; zero without one.
    rival: f64,
    error: f64,
    /// Error probability at the last look, and its pairs as a multiple of the present ones.
    at_last: (f64, f64),
}

impl SelectedGain {
    /// Computes the gain; `None` where a pair lacks the figure.
    pub(super) fn of(objective: &TuningObjective, look: Look, pairs: &[&MeasurementPair]) -> Option<Self> {
        let ratios: Vec<f64> = match objective.aim {
            TuningAim::Goodput => pairs.iter().map(|pair| log_ratio(pair.before.goodput, pair.after.goodput)).collect(),
            TuningAim::RoundTrip => {
                round_trips(pairs)?.into_iter().map(|(before, after)| -log_ratio(before, after)).collect()
            }
        };
        let least = objective.least_gain.get();
        Some(Self {
            mean: StudentEstimate::of_pairs(&ratios, LEAST_DEVIATION)?,
            narrow: StudentEstimate::of_pairs(&ratios, LEAST_DEVIATION_OF_NO_GAIN)?,
            // A round trip that is 5 % shorter is 0.95 of the former one.
            least: match objective.aim {
                TuningAim::Goodput => least.ln_1p(),
                TuningAim::RoundTrip => -(-least).ln_1p(),
            },
            rival: 0.0,
            error: look.gain(),
            at_last: (look.gain_at_last(), look.remaining_growth(pairs.len())),
        })
    }

    /// The same gain, chosen only because it is larger than another candidate's.
    pub(super) fn above(self, other: Self) -> Self {
        Self { rival: self.rival.max(other.narrow.mean.min(self.narrow.mean)), ..self }
    }

    /// True when the gain is large enough, and significant.
    pub(super) fn is_significant(&self) -> bool {
        self.mean.mean >= self.least && self.mean.p_above(0.0).get() <= self.error
    }

    /// True when the gain is significantly too small, if there is any.
    pub(super) fn is_too_small(&self) -> bool {
        self.narrow.p_below(self.least).get() <= MISSED_GAIN
    }

    /// True when the gain may become significant at the last look, at best.
    pub(super) fn is_within_reach(&self) -> bool {
        let (error, growth) = self.at_last;
        self.mean.at_best(growth).p_above(0.0).get() <= error
    }

    /// Estimate with less of the inflation by the selection, as only gains above a threshold are kept: midway between
    /// the plain estimate and the conditional maximum likelihood, which alone is too low for series that end early.
    pub(super) fn without_selection(self) -> f64 {
        let significant = self.mean.critical_distance(linerate_units::Ratio::new(self.error).unwrap_or_default());
        let conditional = self.narrow.without_selection(significant.max(self.least).max(self.rival)).max(0.0);
        f64::midpoint(self.narrow.mean, conditional)
    }
}
