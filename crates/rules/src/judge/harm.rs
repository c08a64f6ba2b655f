//! Harm of a change: each figure against the limit of the chosen goal.

use core::time::Duration;

use linerate_analysis::statistics::StudentEstimate;
use linerate_units::BitRate;

use super::design::Look;
use super::effect::{log_ratio, median};
use super::{MeasurementPair, TransferMeasurement};
use crate::tuning::{TuningAim, TuningObjective};

/// Largest allowed growth factor of the retransmitted share.
const MAX_RETRANSMISSION_GROWTH: f64 = 2.0;
/// Growth of the retransmitted share that is always allowed: it costs at most as much goodput, which is measured.
const MAX_NEGLIGIBLE_RETRANSMISSIONS: f64 = 0.005;
/// Largest decrease of the retransmitted share that counts, as a multiple of the allowed growth: a transfer that carried
/// next to nothing retransmits any share, and less of that is no uncertainty about harm.
const MAX_COUNTED_DECREASE: f64 = 3.0;
/// Allowed growth of the processor's time per byte, as a multiple of the goal's cost.
const PROCESSOR_COST_FACTOR: f64 = 2.0;
/// Growth of the processor's load that is always allowed.
const MAX_NEGLIGIBLE_LOAD: f64 = 0.10;
/// Smallest load that a ratio can be computed from.
const LEAST_LOAD: f64 = 0.01;

/// Standard deviations of ratios, and of retransmitted shares, that even equal differences are assumed to have.
const LEAST_RATIO_DEVIATION: f64 = 0.01;
const LEAST_SHARE_DEVIATION: f64 = 0.001;

/// Error probability with which harm beyond the limit is excluded before the last look. At the last one, the estimate
/// decides: a noisy figure whose harm stays open in twenty pairs would otherwise refuse most changes without harm.
const EARLY_EXCLUSION_ERROR: f64 = 0.05;
const LAST_EXCLUSION_ERROR: f64 = 0.5;

/// Figure that may get worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HarmedFigure {
    Goodput,
    RoundTrip,
    Retransmissions,
    Processor,
}

/// Conclusion on the harm of one figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HarmConclusion {
    /// Beyond the limit.
    Shown,
    /// Not beyond the limit.
    Excluded,
    /// Neither.
    Open,
    /// Not measured in each pair.
    Unknown,
}

/// Distance of a figure from the goal's limit: positive beyond it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Harm {
    pub(super) figure: HarmedFigure,
    excess: Option<StudentEstimate>,
}

impl Harm {
    pub(super) fn conclusion(&self, look: Look, figures: usize) -> HarmConclusion {
        let Some(excess) = self.excess else { return HarmConclusion::Unknown };
        let error = if look.is_last { LAST_EXCLUSION_ERROR } else { EARLY_EXCLUSION_ERROR };
        if excess.p_above(0.0).get() <= look.harm(figures) {
            HarmConclusion::Shown
        } else if excess.p_below(0.0).get() <= error {
            HarmConclusion::Excluded
        } else {
            HarmConclusion::Open
        }
    }
}

impl HarmedFigure {
    /// Clause of a harm beyond the limit.
    pub(super) fn reason(self, objective: &TuningObjective) -> String {
        let percent = objective.cost.percent();
        match self {
            Self::Goodput => format!("goodput is more than {percent:.0} % less"),
            Self::RoundTrip if objective.allows_queue => {
                let most = objective.justified_queue.percent();
                format!("the round trip under load grows more than goodput, or by more than {most:.0} %")
            }
            Self::RoundTrip => {
                let unnoticed = Some(objective.unnoticed).filter(|time| !time.is_zero());
                let unnoticed = unnoticed.map_or_else(String::new, |time| format!(" and {} ms", time.as_millis()));
                format!("the round trip under load is more than {percent:.0} %{unnoticed} longer")
            }
            Self::Retransmissions => "retransmissions more than double".to_owned(),
            Self::Processor => {
                let percent = PROCESSOR_COST_FACTOR * percent;
                format!("the processor needs more than {percent:.0} % more time per byte")
            }
        }
    }

    /// Name, for a figure that was not measured.
    pub(super) const fn unmeasured(self) -> &'static str {
        match self {
            Self::Goodput => "goodput was not measured in each pair",
            Self::RoundTrip => "the round trip under load was not measured in each pair",
            Self::Retransmissions => "retransmissions were not counted in each pair",
            Self::Processor => "the processor's load was not measured in each pair",
        }
    }
}

/// Returns the harms that the objective limits. The processor's load is judged where it was measured.
pub(super) fn harms(objective: &TuningObjective, pairs: &[&MeasurementPair]) -> Vec<Harm> {
    let other = match objective.aim {
        TuningAim::Goodput => Harm { figure: HarmedFigure::RoundTrip, excess: round_trip(objective, pairs) },
        TuningAim::RoundTrip => Harm { figure: HarmedFigure::Goodput, excess: goodput(objective, pairs) },
    };
    let retransmissions = Harm { figure: HarmedFigure::Retransmissions, excess: retransmissions(pairs) };
    let processor =
        processor(objective, pairs).map(|excess| Harm { figure: HarmedFigure::Processor, excess: Some(excess) });
    [Some(other), Some(retransmissions), processor].into_iter().flatten().collect()
}

/// Figure without and with the change of all pairs; `None` where a pair does not have it.
pub(super) fn figures<Q>(
    pairs: &[&MeasurementPair],
    figure: impl Fn(&TransferMeasurement, &TransferMeasurement) -> Option<(Q, Q)>,
) -> Option<Vec<(Q, Q)>> {
    pairs.iter().map(|pair| figure(&pair.before, &pair.after)).collect()
}

/// Round trips under load. Where nothing was acknowledged without the change, the smallest round trip replaces it.
pub(super) fn round_trips(pairs: &[&MeasurementPair]) -> Option<Vec<(Duration, Duration)>> {
    figures(pairs, |before, after| Some((before.round_trip_p95.or(before.base_round_trip)?, after.round_trip_p95?)))
}

/// Retransmitted shares. Where nothing arrived, the share is meaningless: then the strictest limit applies.
pub(super) fn retransmitted(pairs: &[&MeasurementPair]) -> Option<Vec<(f64, f64)>> {
    figures(pairs, |before, after| {
        let without = before.retransmitted.filter(|_| !before.goodput.is_zero()).unwrap_or_default();
        Some((without.get(), after.retransmitted?.get()))
    })
}

fn goodputs(pairs: &[&MeasurementPair]) -> Vec<(BitRate, BitRate)> {
    pairs.iter().map(|pair| (pair.before.goodput, pair.after.goodput)).collect()
}

fn excess_of_ratio(differences: &[f64], limit: f64) -> Option<StudentEstimate> {
    let beyond: Vec<f64> = differences.iter().map(|one| one - limit).collect();
    StudentEstimate::of_pairs(&beyond, LEAST_RATIO_DEVIATION)
}

fn round_trip(objective: &TuningObjective, pairs: &[&MeasurementPair]) -> Option<StudentEstimate> {
    let times = round_trips(pairs)?;
    let usual = median(times.iter().map(|(before, _)| *before))?.as_secs_f64();
    let limit =
        (1.0 + objective.cost.get()).max(1.0 + objective.unnoticed.as_secs_f64() / usual.max(f64::MIN_POSITIVE));
    let ratios: Vec<f64> = times.iter().map(|(before, after)| log_ratio(*before, *after)).collect();
    let strict = limit.ln();
    if !objective.allows_queue {
        return excess_of_ratio(&ratios, strict);
    }
    // The gain of the same pair: what both transfers have in common cancels.
    let most = objective.justified_queue.get().ln_1p();
    let gains = goodputs(pairs).into_iter().map(|(before, after)| log_ratio(before, after));
    let beyond: Vec<f64> = ratios.iter().zip(gains).map(|(ratio, gain)| ratio - gain.min(most).max(strict)).collect();
    StudentEstimate::of_pairs(&beyond, LEAST_RATIO_DEVIATION)
}

fn goodput(objective: &TuningObjective, pairs: &[&MeasurementPair]) -> Option<StudentEstimate> {
    let losses: Vec<f64> = goodputs(pairs).into_iter().map(|(before, after)| -log_ratio(before, after)).collect();
    excess_of_ratio(&losses, -(1.0 - objective.cost.get()).ln())
}

fn retransmissions(pairs: &[&MeasurementPair]) -> Option<StudentEstimate> {
    let shares = retransmitted(pairs)?;
    let usual = median(shares.iter().map(|(before, _)| *before))?;
    let limit = (usual * (MAX_RETRANSMISSION_GROWTH - 1.0)).max(MAX_NEGLIGIBLE_RETRANSMISSIONS);
    let growth = |(before, after): &(f64, f64)| (after - before).max(-MAX_COUNTED_DECREASE * limit);
    let beyond: Vec<f64> = shares.iter().map(|pair| growth(pair) - limit).collect();
    StudentEstimate::of_pairs(&beyond, LEAST_SHARE_DEVIATION)
}

/// The processor's load may grow as the goodput does, and by the allowed cost per byte.
fn processor(objective: &TuningObjective, pairs: &[&MeasurementPair]) -> Option<StudentEstimate> {
    let loads = figures(pairs, |before, after| {
        Some((before.processor?.get().max(LEAST_LOAD), after.processor?.get().max(LEAST_LOAD)))
    })?;
    let usual = median(loads.iter().map(|(before, _)| *before))?;
    let gains: Vec<f64> = goodputs(pairs).into_iter().map(|(before, after)| log_ratio(before, after)).collect();
    let per_byte =
        (1.0 + PROCESSOR_COST_FACTOR * objective.cost.get()).ln() + StudentEstimate::of_pairs(&gains, 0.0)?.mean;
    let limit = per_byte.max((1.0 + MAX_NEGLIGIBLE_LOAD / usual).ln());
    let ratios: Vec<f64> = loads.iter().map(|(before, after)| log_ratio(*before, *after)).collect();
    excess_of_ratio(&ratios, limit)
}
