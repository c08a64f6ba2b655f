//! A judgement for people: one sentence, one table.

use core::time::Duration;

use linerate_model::statistics::{Quantity, Signed};
use linerate_units::{BitRate, Ratio, display};

use super::{Decision, Effect, Judgement};

/// One line of a table of before and after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// What.
    pub what: &'static str,
    /// Its median without the change.
    pub before: String,
    /// Its median with it.
    pub after: String,
    /// The median of the differences, with its sign, and where that says more, as a share.
    pub difference: String,
    /// The interval of that; `None` of few pairs.
    pub interval: Option<String>,
}

/// The lines for what was measured.
pub(super) fn table(judgement: &Judgement) -> Vec<Row> {
    [
        judgement.goodput.as_ref().map(|effect| row("goodput", effect, display::rate)),
        judgement.round_trip.as_ref().map(|effect| row("round trip under load (95 %)", effect, display::duration)),
        judgement.retransmitted.as_ref().map(|effect| row("sent again", effect, display::percent)),
        judgement.processor.as_ref().map(|effect| row("busiest processor", effect, display::percent)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn row<Q: Quantity>(what: &'static str, effect: &Effect<Q>, show: fn(Q) -> String) -> Row {
    let signed = |difference: Signed<Q>| format!("{}{}", sign(difference.negative), show(difference.magnitude));
    Row {
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

/// One figure: `goodput 267 Mbit/s -> 9.41 Gbit/s (+3420 %)`.
fn figure<Q: Quantity>(what: &str, effect: &Effect<Q>, show: fn(Q) -> String) -> String {
    let share = effect
        .share()
        .map_or_else(String::new, |share| format!(" ({}{:.0} %)", sign(share.negative), share.magnitude.percent()));
    format!("{what} {} -> {}{share}", show(effect.before), show(effect.after))
}

/// The sentence.
pub(super) fn sentence(judgement: &Judgement) -> String {
    let figures: Vec<String> = [
        judgement.goodput.as_ref().map(|effect| figure("goodput", effect, display::rate as fn(BitRate) -> String)),
        judgement
            .round_trip
            .as_ref()
            .map(|effect| figure("round trip under load", effect, display::duration as fn(Duration) -> String)),
        judgement.retransmitted.as_ref().map(|effect: &Effect<Ratio>| {
            format!("sent again {} -> {}", display::percent(effect.before), display::percent(effect.after))
        }),
    ]
    .into_iter()
    .flatten()
    .collect();
    let verdict = match judgement.decision {
        Decision::Keep => "Keep",
        Decision::RollBack => "Roll back",
        Decision::Unclear => "Unclear, so leave it as it was",
    };
    let figures = if figures.is_empty() { String::new() } else { format!("; {}", figures.join(", ")) };
    let pairs = if judgement.counted == 1 { "1 pair".to_owned() } else { format!("{} pairs", judgement.counted) };
    format!("{verdict}: {}{figures} ({pairs}).", judgement.reason)
}
