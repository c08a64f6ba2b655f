//! Decision on keeping a change, from measurements with and without it in pairs.
//!
//! Two runs of the same transfer over the same path were 2 % apart on a clean path, and 25 % at a random loss of 0.1 %:
//! one run before and one after show nothing. Measurements are therefore paired, in random order within each pair
//! ([`TrialDesign`]), and pairs of a path that changed meanwhile are discarded.
//!
//! The logarithms of the pairs' ratios are judged by a trimmed t statistic. The error probability of a whole run is
//! divided over its candidates, and over the looks at each series: however many candidates are tried, a run keeps a
//! change without an effect in at most 1.5 % of cases. docs/statistics.md has the simulated rates.
//!
//! A change is kept only where the gain is significant and large enough, and harm beyond the goal's limits is excluded;
//! it is rolled back for harm only where that harm is shown. Unclear changes are not kept.

mod design;
mod effect;
mod gain;
mod harm;
#[cfg(test)]
mod tests;
mod text;
mod trial;

use core::time::Duration;
use serde::{Deserialize, Serialize};

use linerate_analysis::statistics::SignedDifference;
use linerate_model::change::ChangeGroup;
use linerate_units::{BitRate, Ratio};

pub use design::TrialDesign;
pub use effect::EffectEstimate;
pub use text::ComparisonRow;
pub use trial::{DiscardedPair, MIN_PAIRS, MeasurementPair, PairBudget, TransferMeasurement};

use crate::tuning::{TuningAim, TuningObjective};
use design::Look;
use gain::SelectedGain;
use harm::{HarmConclusion, HarmedFigure, harms, retransmitted, round_trips};

/// Standard deviations of ratios, and of shares, that even equal pairs are assumed to have in what is printed.
const LEAST_PRINTED_DEVIATION: f64 = 0.01;
const LEAST_PRINTED_SHARE_DEVIATION: f64 = 0.001;

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
    /// True when a longer round trip, shown or probable, is the only reason against it.
    pub fills_the_path: bool,
    /// Number of pairs that count.
    pub counted: usize,
    /// Pairs that do not count.
    pub discarded: Vec<DiscardedPair>,
    /// Goodput; `None` where no pair counts.
    pub goodput: Option<EffectEstimate<BitRate>>,
    /// Round trip under load, 95th percentile. Where nothing was acknowledged without the change, the smallest round
    /// trip replaces it.
    pub round_trip: Option<EffectEstimate<Duration>>,
    /// Retransmitted share of the bytes.
    pub retransmitted: Option<EffectEstimate<Ratio>>,
    /// Load of the busiest processor.
    pub processor: Option<EffectEstimate<Ratio>>,
    /// Figures before and after, one per row.
    pub table: Vec<ComparisonRow>,
    /// Gain of the objective's figure.
    gain: Option<SelectedGain>,
}

/// Effect of one group of changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GroupContribution {
    /// Group.
    pub group: ChangeGroup,
    /// Decision.
    pub decision: TrialDecision,
    /// Goodput without it, at the time of its trial.
    #[serde(rename = "before_bits_per_second")]
    pub before: Option<BitRate>,
    /// Goodput with it.
    #[serde(rename = "after_bits_per_second")]
    pub after: Option<BitRate>,
    /// Share of the total gain of all kept groups, from 0 to 1; `null` where it was not kept.
    pub part: Option<Ratio>,
}

/// Judges the pairs of a trial.
#[must_use]
pub fn judge(objective: &TuningObjective, design: &TrialDesign, pairs: &[MeasurementPair]) -> TrialJudgement {
    let counting = counting(pairs);
    let faults = pairs.iter().map(|pair| pair.fault.clone()).enumerate();
    let discarded = faults.filter_map(|(pair, reason)| Some(DiscardedPair { pair, reason: reason? }));
    let look = design.look(pairs.len(), counting.len());
    let conclusion = decide(objective, look, &counting);
    let mut judgement = TrialJudgement {
        decision: conclusion.decision,
        reason: conclusion.reason,
        sentence: String::new(),
        fills_the_path: conclusion.fills_the_path,
        counted: counting.len(),
        discarded: discarded.collect(),
        goodput: None,
        round_trip: None,
        retransmitted: None,
        processor: None,
        table: Vec::new(),
        gain: conclusion.gain,
    };
    judgement.print(objective.aim, look, &counting);
    judgement
}

/// Judges the best of several candidates that are kept: its gain is printed without the inflation by the choice, too, as
/// it only counts above that of the runner-up.
#[must_use]
pub fn judge_best(
    objective: &TuningObjective,
    design: &TrialDesign,
    pairs: &[MeasurementPair],
    runner_up: &TrialJudgement,
) -> TrialJudgement {
    let mut best = judge(objective, design, pairs);
    best.gain = best.gain.zip(runner_up.gain).map(|(gain, other)| gain.above(other)).or(best.gain);
    let counting = counting(pairs);
    best.print(objective.aim, design.look(pairs.len(), counting.len()), &counting);
    best
}

/// Pairs that count.
fn counting(pairs: &[MeasurementPair]) -> Vec<&MeasurementPair> {
    pairs.iter().filter(|pair| pair.fault.is_none()).collect()
}

impl TrialJudgement {
    /// Computes what is printed: effects, sentence and table.
    fn print(&mut self, aim: TuningAim, look: Look, pairs: &[&MeasurementPair]) {
        let tail = look.interval_tail();
        let selected = self.gain.filter(|_| self.decision == TrialDecision::Keep).map(SelectedGain::without_selection);
        let estimate = |of: TuningAim| selected.filter(|_| aim == of);
        let goodputs: Vec<_> = pairs.iter().map(|pair| (pair.before.goodput, pair.after.goodput)).collect();
        let share = |pairs: Option<Vec<(f64, f64)>>| {
            let shares: Option<Vec<(Ratio, Ratio)>> =
                pairs?.into_iter().map(|(before, after)| Some((Ratio::new(before)?, Ratio::new(after)?))).collect();
            EffectEstimate::of_differences(&shares?, LEAST_PRINTED_SHARE_DEVIATION, tail)
        };
        let loads = harm::figures(pairs, |before, after| Some((before.processor?.get(), after.processor?.get())));
        self.goodput =
            EffectEstimate::of_ratios(&goodputs, LEAST_PRINTED_DEVIATION, tail, estimate(TuningAim::Goodput));
        self.round_trip = round_trips(pairs).and_then(|pairs| {
            // A gain of the round trip is a shorter one.
            let estimate = estimate(TuningAim::RoundTrip).map(|gain| -gain);
            EffectEstimate::of_ratios(&pairs, LEAST_PRINTED_DEVIATION, tail, estimate)
        });
        self.retransmitted = share(retransmitted(pairs));
        self.processor = share(loads);
        self.sentence = text::sentence(self);
        self.table = text::table(self);
    }
}

/// Conclusion of a look at the pairs.
struct Conclusion {
    decision: TrialDecision,
    reason: String,
    fills_the_path: bool,
    gain: Option<SelectedGain>,
    /// True when more pairs could lead to another decision.
    is_open: bool,
}

fn decide(objective: &TuningObjective, look: Look, pairs: &[&MeasurementPair]) -> Conclusion {
    let gain = SelectedGain::of(objective, look, pairs);
    let open = |decision, reason: String| Conclusion { decision, reason, fills_the_path: false, gain, is_open: true };
    let closed = |decision, reason: String| Conclusion { is_open: false, ..open(decision, reason) };
    if pairs.len() < MIN_PAIRS {
        return open(TrialDecision::Unclear, format!("fewer than {MIN_PAIRS} pairs of measurements count"));
    }
    let all = harms(objective, pairs);
    let concluded: Vec<(HarmedFigure, HarmConclusion)> =
        all.iter().map(|harm| (harm.figure, harm.conclusion(look, all.len()))).collect();
    let first = |wanted| concluded.iter().find(|(_, conclusion)| *conclusion == wanted).map(|(figure, _)| *figure);
    let is_gained = gain.is_some_and(|gain| gain.is_significant());
    // A longer round trip alone, which is the price of a path in use: candidates that cap the window may be better.
    let others_are_excluded = concluded
        .iter()
        .all(|(other, conclusion)| *other == HarmedFigure::RoundTrip || *conclusion == HarmConclusion::Excluded);
    let fills = |figure| is_gained && figure == HarmedFigure::RoundTrip && others_are_excluded;
    if let Some(figure) = first(HarmConclusion::Shown) {
        let fills_the_path = fills(figure);
        return Conclusion { fills_the_path, ..closed(TrialDecision::RollBack, figure.reason(objective)) };
    }
    let (aim, least) = (aim_name(objective), objective.least_gain.percent());
    let Some(gain) = gain else {
        return closed(TrialDecision::Unclear, format!("{aim} was not measured in each pair"));
    };
    if gain.is_too_small() {
        return closed(TrialDecision::RollBack, format!("{aim} gains significantly less than {least:.0} %"));
    }
    if !is_gained {
        let reason = format!("the gain of {aim} could be chance, or is below {least:.0} %");
        return Conclusion { is_open: gain.is_within_reach(), ..open(TrialDecision::Unclear, reason) };
    }
    if let Some(figure) = first(HarmConclusion::Unknown) {
        return closed(TrialDecision::Unclear, figure.unmeasured().to_owned());
    }
    if let Some(figure) = first(HarmConclusion::Open) {
        let reason = format!("{aim} gains, but it is not excluded that {}", figure.reason(objective));
        let fills_the_path = look.is_last && fills(figure);
        return Conclusion { fills_the_path, ..open(TrialDecision::Unclear, reason) };
    }
    let kept = if objective.allows_queue {
        let most = objective.justified_queue.percent();
        format!(
            "{aim} gains; the round trip under load grows less than that, as the goal allows up to {most:.0} % where \
             no cap on the window reaches as much"
        )
    } else {
        format!("{aim} gains, and no other figure gets worse than the goal allows")
    };
    closed(TrialDecision::Keep, kept)
}

const fn aim_name(objective: &TuningObjective) -> &'static str {
    match objective.aim {
        TuningAim::Goodput => "goodput",
        TuningAim::RoundTrip => "the round trip under load",
    }
}

/// True when another pair should be measured: the decision could still change, and the budget is not spent.
///
/// It is called after each pair, and looks at the series only after certain numbers of pairs: each look costs some of
/// the error probability.
#[must_use]
pub fn more_pairs_needed(objective: &TuningObjective, design: &TrialDesign, pairs: &[MeasurementPair]) -> bool {
    if pairs.len() >= design.budget.most {
        return false;
    }
    let counting = counting(pairs);
    if counting.len() < design.budget.fewest.max(MIN_PAIRS) || !TrialDesign::is_look(counting.len()) {
        return true;
    }
    decide(objective, design.look(pairs.len(), counting.len()), &counting).is_open
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
        before: judgement.goodput.map(|effect| effect.before),
        after: judgement.goodput.map(|effect| effect.after),
        part: gained(judgement).and_then(|gain| gain / whole),
    };
    trials.iter().map(one).collect()
}
