//! Judgement as text: one sentence and one table.

use core::time::Duration;

use linerate_analysis::statistics::{SignedDifference, StatisticalQuantity};
use linerate_units::{BitRate, Ratio, display};

use super::{EffectEstimate, TrialDecision, TrialJudgement};

/// Row of a table with one figure before and after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComparisonRow {
    /// Name of the figure.
    pub what: &'static str,
    /// Value without the change.
    pub before: String,
    /// Value with the change.
    pub after: String,
    /// Difference, with its sign.
    pub difference: String,
    /// Confidence interval of the difference; `None` for too few pairs.
    pub interval: Option<String>,
}

/// Returns the rows of the measured figures.
pub(super) fn table(judgement: &TrialJudgement) -> Vec<ComparisonRow> {
    [
        judgement.goodput.as_ref().map(|effect| row("goodput", effect, display::rate)),
        judgement.round_trip.as_ref().map(|effect| row("round trip under load (95 %)", effect, display::duration)),
        judgement.retransmitted.as_ref().map(|effect| row("retransmitted", effect, display::percent)),
        judgement.processor.as_ref().map(|effect| row("busiest processor", effect, display::percent)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn row<Q: StatisticalQuantity>(what: &'static str, effect: &EffectEstimate<Q>, show: fn(Q) -> String) -> ComparisonRow {
    let signed =
        |difference: SignedDifference<Q>| format!("{}{}", sign(difference.negative), show(difference.magnitude));
    ComparisonRow {
        what,
        before: show(effect.before),
        after: show(effect.after),
        difference: signed(effect.difference),
        interval: effect.interval.map(|(low, high)| format!("{} to {}", signed(low), signed(high))),
    }
}

const fn sign(negative: bool) -> &'static str {
    if negative { "-" } else { "+" }
}

/// Formats one figure: `goodput 267 Mbit/s -> 9.41 Gbit/s (+3420 %)`.
fn figure<Q: StatisticalQuantity>(what: &str, effect: &EffectEstimate<Q>, show: fn(Q) -> String) -> String {
    let share = effect
        .relative_difference()
        .map_or_else(String::new, |share| format!(" ({}{:.0} %)", sign(share.negative), share.magnitude.percent()));
    format!("{what} {} -> {}{share}", show(effect.before), show(effect.after))
}

/// Formats the judgement as one sentence.
pub(super) fn sentence(judgement: &TrialJudgement) -> String {
    let figures: Vec<String> = [
        judgement.goodput.as_ref().map(|effect| figure("goodput", effect, display::rate as fn(BitRate) -> String)),
        judgement
            .round_trip
            .as_ref()
            .map(|effect| figure("round trip under load", effect, display::duration as fn(Duration) -> String)),
        judgement.retransmitted.as_ref().map(|effect: &EffectEstimate<Ratio>| {
            format!("retransmitted {} -> {}", display::percent(effect.before), display::percent(effect.after))
        }),
    ]
    .into_iter()
    .flatten()
    .collect();
    let verdict = match judgement.decision {
        TrialDecision::Keep => "Keep",
        TrialDecision::RollBack => "Roll back",
        TrialDecision::Unclear => "Unclear, so roll back",
    };
    let figures = if figures.is_empty() { String::new() } else { format!("; {}", figures.join(", ")) };
    let pairs = display::counted(judgement.counted, "pair");
    format!("{verdict}: {}{figures} ({pairs}).", judgement.reason)
}
