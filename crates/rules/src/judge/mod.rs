//! Decision on keeping a change, from interleaved measurements with and without it.
//!
//! Two runs of the same transfer over the same path were 2 % apart on a clean path, and 25 % at a random loss of 0.1 %:
//! one run before and one after show nothing. Measurements are therefore paired (without, with, without, with …), pairs
//! of a path that changed meanwhile are discarded, and the median of the pairs' differences is judged with its
//! interval.
//!
//! A change is kept only where the gain is significant and large enough, and no other figure gets worse than allowed.
//! Unclear changes are not kept.

mod effect;
#[cfg(test)]
mod tests;
mod text;
mod trial;

use core::time::Duration;
use serde::{Deserialize, Serialize};

use linerate_analysis::statistics::{BootstrapSettings, SignedDifference, StatisticalQuantity};
use linerate_model::change::ChangeGroup;
use linerate_units::{BitRate, Ratio};

pub use effect::MeasuredEffect;
pub use text::ComparisonRow;
pub use trial::{DiscardedPair, MIN_PAIRS, MeasurementPair, PairBudget, TransferMeasurement};

use crate::tuning::{TuningAim, TuningObjective};

/// Largest allowed growth factor of the retransmitted share.
const MAX_RETRANSMISSION_GROWTH: f64 = 2.0;
/// Growth of the retransmitted share that is always allowed: it costs at most as much goodput, which is measured.
const MAX_NEGLIGIBLE_RETRANSMISSIONS: f64 = 0.005;

/// Decision on a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TrialDecision {
    /// Keep the change.
    Keep,
    /// Roll the change back: it gains too little, or costs too much.
    RollBack,
    /// Roll the change back: its gain could be chance.
    Unclear,
}

impl TrialDecision {
    /// Returns the name in documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Keep => "keep",
            Self::RollBack => "roll_back",
            Self::Unclear => "unclear",
        }
    }
}

/// Result of a trial.
#[derive(Clone, Debug, PartialEq)]
pub struct TrialJudgement {
    /// Decision on the change.
    pub decision: TrialDecision,
    /// Reason, as a clause.
    pub reason: String,
    /// Decision and reason with the figures, as one sentence.
    pub sentence: String,
    /// True when a longer round trip is the only reason against it.
    pub fills_the_path: bool,
    /// Number of pairs that count.
    pub counted: usize,
    /// Pairs that do not count.
    pub discarded: Vec<DiscardedPair>,
    /// Goodput; `None` where no pair counts.
    pub goodput: Option<MeasuredEffect<BitRate>>,
    /// Round trip under load, 95th percentile. Where nothing was acknowledged without the change, the smallest round
    /// trip replaces it.
    pub round_trip: Option<MeasuredEffect<Duration>>,
    /// Retransmitted share of the bytes.
    pub retransmitted: Option<MeasuredEffect<Ratio>>,
    /// Load of the busiest processor.
    pub processor: Option<MeasuredEffect<Ratio>>,
    /// Figures before and after, one per row.
    pub table: Vec<ComparisonRow>,
}

/// Contribution of one group of changes.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupContribution {
    /// Group of the changes.
    pub group: ChangeGroup,
    /// Decision on the group.
    pub decision: TrialDecision,
    /// Goodput without and with it, at the time of its trial.
    pub goodput: Option<MeasuredEffect<BitRate>>,
    /// Share of the total gain of all kept groups; `None` where it was not kept.
    pub part: Option<Ratio>,
}

/// Judges the pairs of a trial.
#[must_use]
pub fn judge(objective: &TuningObjective, pairs: &[MeasurementPair], bootstrap: &BootstrapSettings) -> TrialJudgement {
    let faults: Vec<Option<String>> = pairs.iter().map(MeasurementPair::discard_reason).collect();
    let counting: Vec<&MeasurementPair> =
        pairs.iter().zip(&faults).filter_map(|(pair, fault)| fault.is_none().then_some(pair)).collect();
    let discarded =
        faults.into_iter().enumerate().filter_map(|(pair, reason)| Some(DiscardedPair { pair, reason: reason? }));
    let mut judgement = TrialJudgement {
        decision: TrialDecision::Unclear,
        reason: String::new(),
        sentence: String::new(),
        fills_the_path: false,
        counted: counting.len(),
        discarded: discarded.collect(),
        goodput: effect(&counting, bootstrap, |before, after| Some((before.goodput, after.goodput))),
        round_trip: effect(&counting, bootstrap, |before, after| {
            Some((before.round_trip_p95.or(before.base_round_trip)?, after.round_trip_p95?))
        }),
        retransmitted: effect(&counting, bootstrap, |before, after| {
            // Where nothing arrived, the retransmitted share is meaningless: then the strictest limit applies.
            let without = before.retransmitted.filter(|_| !before.goodput.is_zero()).unwrap_or_default();
            Some((without, after.retransmitted?))
        }),
        processor: effect(&counting, bootstrap, |before, after| Some((before.processor?, after.processor?))),
        table: Vec::new(),
    };
    (judgement.decision, judgement.reason) = decide(objective, &judgement);
    judgement.fills_the_path = fills_the_path(objective, &judgement);
    judgement.sentence = text::sentence(&judgement);
    judgement.table = text::table(&judgement);
    judgement
}

/// Computes the effect on one figure; `None` where a pair does not have it.
fn effect<Q: StatisticalQuantity>(
    pairs: &[&MeasurementPair],
    bootstrap: &BootstrapSettings,
    figure: impl Fn(&TransferMeasurement, &TransferMeasurement) -> Option<(Q, Q)>,
) -> Option<MeasuredEffect<Q>> {
    let all: Option<Vec<(Q, Q)>> = pairs.iter().map(|pair| figure(&pair.before, &pair.after)).collect();
    MeasuredEffect::from_pairs(&all?, bootstrap)
}

/// Gain of the figure that the objective improves.
struct ObjectiveGain {
    value: f64,
    interval: Option<(f64, f64)>,
    /// Least gain to keep a change.
    least: f64,
}

impl ObjectiveGain {
    fn from_judgement(objective: &TuningObjective, judgement: &TrialJudgement) -> Option<Self> {
        let (before, (value, interval)) = match objective.aim {
            TuningAim::Goodput => judgement.goodput.map(|effect| (effect.before.number(), effect.numbers()))?,
            TuningAim::RoundTrip => {
                judgement.round_trip.map(|effect| (effect.before.number(), effect.negated_numbers()))?
            }
        };
        Some(Self { value, interval, least: objective.least_gain.get() * before })
    }

    /// True when the gain is large enough, and significant.
    fn is_significant(&self) -> bool {
        self.value > 0.0 && self.value >= self.least && self.interval.is_some_and(|(low, _)| low > 0.0)
    }

    /// True when the gain is significantly too small, if there is any.
    fn is_too_small(&self) -> bool {
        self.interval.is_some_and(|(_, high)| high < self.least || high <= 0.0)
    }

    /// True when the interval lies above the least gain, excludes it, or is narrower than it.
    fn is_settled(&self) -> bool {
        self.is_too_small() || self.interval.is_some_and(|(low, high)| low > self.least || high - low <= self.least)
    }
}

fn decide(objective: &TuningObjective, judgement: &TrialJudgement) -> (TrialDecision, String) {
    let because = |decision, reason: &str| (decision, reason.to_owned());
    if judgement.counted < MIN_PAIRS {
        let reason = format!("fewer than {MIN_PAIRS} pairs of measurements count");
        return (TrialDecision::Unclear, reason);
    }
    if let Some(harm_reason) = harm_reason(objective, judgement) {
        return (TrialDecision::RollBack, harm_reason);
    }
    let aim = match objective.aim {
        TuningAim::Goodput => "goodput",
        TuningAim::RoundTrip => "the round trip under load",
    };
    let Some(gain) = ObjectiveGain::from_judgement(objective, judgement) else {
        return (TrialDecision::Unclear, format!("{aim} was not measured in each pair"));
    };
    if gain.is_too_small() {
        let reason = format!("{aim} gains significantly less than {:.0} %", objective.least_gain.percent());
        return (TrialDecision::RollBack, reason);
    }
    if !gain.is_significant() {
        return (
            TrialDecision::Unclear,
            format!("the gain of {aim} could be chance, or is below {:.0} %", objective.least_gain.percent()),
        );
    }
    if judgement.round_trip.is_none() {
        return because(TrialDecision::Unclear, "the round trip under load was not measured in each pair");
    }
    if judgement.retransmitted.is_none() {
        return because(TrialDecision::Unclear, "retransmissions were not counted in each pair");
    }
    (TrialDecision::Keep, format!("{aim} gains, and no other figure gets worse"))
}

/// Returns the figure that got worse than allowed, as a reason.
fn harm_reason(objective: &TuningObjective, judgement: &TrialJudgement) -> Option<String> {
    let repairs = judgement.retransmitted.filter(|effect| {
        let (before, after) = (effect.before.get(), effect.after.get());
        after > before * MAX_RETRANSMISSION_GROWTH && after - before > MAX_NEGLIGIBLE_RETRANSMISSIONS
    });
    if repairs.is_some() {
        return Some("retransmissions more than double".to_owned());
    }
    let cost = objective.cost.get();
    let percent = objective.cost.percent();
    match objective.aim {
        TuningAim::Goodput => {
            let effect = judgement.round_trip?;
            let longer = effect.difference.allow_zero();
            (longer > effect.before.mul_f64(cost) && longer > objective.unnoticed)
                .then(|| format!("the round trip under load is more than {percent:.0} % longer"))
        }
        TuningAim::RoundTrip => {
            let effect = judgement.goodput?;
            let less = effect.difference.negative && effect.difference.magnitude > effect.before * cost;
            less.then(|| format!("goodput is more than {percent:.0} % less"))
        }
    }
}

/// True when the goodput gains enough, and only the round trip gets worse.
fn fills_the_path(objective: &TuningObjective, judgement: &TrialJudgement) -> bool {
    let gains = ObjectiveGain::from_judgement(objective, judgement).is_some_and(|gain| gain.is_significant());
    let without = TrialJudgement { round_trip: None, ..judgement.clone() };
    let is_refused = judgement.decision == TrialDecision::RollBack && harm_reason(objective, judgement).is_some();
    objective.aim == TuningAim::Goodput && gains && is_refused && harm_reason(objective, &without).is_none()
}

/// True when another pair should be measured: the decision could still change, and the budget is not spent.
///
/// It is called after each pair. The interval alone ends the series, not a temporary gain: given enough checks, that
/// would keep changes by chance.
#[must_use]
pub fn more_pairs_needed(
    objective: &TuningObjective,
    pairs: &[MeasurementPair],
    budget: PairBudget,
    bootstrap: &BootstrapSettings,
) -> bool {
    if pairs.len() >= budget.most {
        return false;
    }
    let judgement = judge(objective, pairs, bootstrap);
    if judgement.counted < budget.fewest.max(MIN_PAIRS) {
        return true;
    }
    let is_settled = ObjectiveGain::from_judgement(objective, &judgement).is_some_and(|gain| gain.is_settled());
    !is_settled && harm_reason(objective, &judgement).is_none()
}

/// Returns the contribution of each group, in the order of the trials.
#[must_use]
pub fn contributions(trials: &[(ChangeGroup, TrialJudgement)]) -> Vec<GroupContribution> {
    let gained = |judgement: &TrialJudgement| -> Option<BitRate> {
        let effect = judgement.goodput.filter(|_| judgement.decision == TrialDecision::Keep)?;
        Some(SignedDifference::allow_zero(effect.difference))
    };
    let whole: BitRate = trials.iter().filter_map(|(_, judgement)| gained(judgement)).sum();
    let one = |(group, judgement): &(ChangeGroup, TrialJudgement)| GroupContribution {
        group: *group,
        decision: judgement.decision,
        goodput: judgement.goodput,
        part: gained(judgement).and_then(|gain| gain / whole),
    };
    trials.iter().map(one).collect()
}
