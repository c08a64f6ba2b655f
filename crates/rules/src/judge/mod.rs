//! Whether a change is worth keeping: the judge of interleaved measurements with and without it.
//!
//! Two runs of the same transfer over the same path were 2 % apart on a clean path, and 25 % at a random loss of 0.1 %: one
//! run before and one after say nothing. So measurements are paired (without, with, without, with …), pairs of a path that
//! changed meanwhile are left out, and the median of the pairs' differences is looked at together with its interval.
//!
//! A change is kept only where the gain is real and large enough, and the other figures have not paid for it. What is
//! unclear is not kept.

mod effect;
#[cfg(test)]
mod tests;
mod trial;
mod words;

use core::time::Duration;

use linerate_model::change::Group;
use linerate_model::statistics::{Bootstrap, Quantity, Signed};
use linerate_units::{BitRate, Ratio};

pub use effect::Effect;
pub use trial::{Budget, Discarded, FEWEST_PAIRS, Measurement, Pair};
pub use words::Row;

use crate::tuning::{Aim, Objective};

/// Repairs may become this many times as many.
const MORE_REPAIRS: f64 = 2.0;
/// … and always by this share of what is sent: it costs as much of the goodput at most, which is measured.
const UNNOTICED_REPAIRS: f64 = 0.005;

/// What is to be done with a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Decision {
    /// It stays.
    Keep,
    /// It goes: it brings too little, or costs too much.
    RollBack,
    /// It goes, too: what it brings could not be told from chance.
    Unclear,
}

impl Decision {
    /// Its name in documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Keep => "keep",
            Self::RollBack => "roll_back",
            Self::Unclear => "unclear",
        }
    }
}

/// What the judge says of a trial.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// What is to be done.
    pub decision: Decision,
    /// Why, as half a sentence.
    pub reason: String,
    /// The same with the figures, as one sentence.
    pub sentence: String,
    /// Whether it is only a longer round trip that speaks against it.
    pub fills_the_path: bool,
    /// How many pairs count.
    pub counted: usize,
    /// Those that do not.
    pub discarded: Vec<Discarded>,
    /// Goodput; `None` where no pair counts.
    pub goodput: Option<Effect<BitRate>>,
    /// Round trip under load, 95th percentile. Without a change under which nothing was acknowledged, the smallest round
    /// trip stands for it.
    pub round_trip: Option<Effect<Duration>>,
    /// Share of bytes sent again.
    pub retransmitted: Option<Effect<Ratio>>,
    /// The busiest processor.
    pub processor: Option<Effect<Ratio>>,
    /// Before and after, line by line.
    pub table: Vec<Row>,
}

/// What one group of changes brought.
#[derive(Clone, Debug, PartialEq)]
pub struct Contribution {
    /// The group.
    pub group: Group,
    /// What became of it.
    pub decision: Decision,
    /// Goodput without and with it, at the time when it was tried.
    pub goodput: Option<Effect<BitRate>>,
    /// Its part of what all kept groups gained; `None` where it was not kept.
    pub part: Option<Ratio>,
}

/// Judges the pairs of a trial.
#[must_use]
pub fn judge(objective: &Objective, pairs: &[Pair], bootstrap: &Bootstrap) -> Judgement {
    let faults: Vec<Option<String>> = pairs.iter().map(Pair::fault).collect();
    let counting: Vec<&Pair> =
        pairs.iter().zip(&faults).filter_map(|(pair, fault)| fault.is_none().then_some(pair)).collect();
    let discarded =
        faults.into_iter().enumerate().filter_map(|(pair, reason)| Some(Discarded { pair, reason: reason? }));
    let mut judgement = Judgement {
        decision: Decision::Unclear,
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
            // Where nothing arrived, what was sent again is no measure: then the most strict one holds.
            let without = before.retransmitted.filter(|_| !before.goodput.is_zero()).unwrap_or_default();
            Some((without, after.retransmitted?))
        }),
        processor: effect(&counting, bootstrap, |before, after| Some((before.processor?, after.processor?))),
        table: Vec::new(),
    };
    (judgement.decision, judgement.reason) = decide(objective, &judgement);
    judgement.fills_the_path = fills_the_path(objective, &judgement);
    judgement.sentence = words::sentence(&judgement);
    judgement.table = words::table(&judgement);
    judgement
}

/// The effect on one figure; `None` where a pair does not have it.
fn effect<Q: Quantity>(
    pairs: &[&Pair],
    bootstrap: &Bootstrap,
    figure: impl Fn(&Measurement, &Measurement) -> Option<(Q, Q)>,
) -> Option<Effect<Q>> {
    let all: Option<Vec<(Q, Q)>> = pairs.iter().map(|pair| figure(&pair.before, &pair.after)).collect();
    Effect::of(&all?, bootstrap)
}

/// What the aim gained.
struct Gain {
    value: f64,
    interval: Option<(f64, f64)>,
    /// The least that is worth it.
    least: f64,
}

impl Gain {
    fn of(objective: &Objective, judgement: &Judgement) -> Option<Self> {
        let (before, (value, interval)) = match objective.aim {
            Aim::Goodput => judgement.goodput.map(|effect| (effect.before.number(), effect.numbers()))?,
            Aim::RoundTrip => judgement.round_trip.map(|effect| (effect.before.number(), effect.numbers_of_less()))?,
        };
        Some(Self { value, interval, least: objective.least_gain.get() * before })
    }

    /// Large enough, and not chance.
    fn is_real(&self) -> bool {
        self.value > 0.0 && self.value >= self.least && self.interval.is_some_and(|(low, _)| low > 0.0)
    }

    /// Shown to be too small, if there is any.
    fn is_refuted(&self) -> bool {
        self.interval.is_some_and(|(_, high)| high < self.least || high <= 0.0)
    }

    /// Large enough at both ends of the interval, or known to what would matter.
    fn is_settled(&self) -> bool {
        self.is_refuted() || self.interval.is_some_and(|(low, high)| low > self.least || high - low <= self.least)
    }
}

fn decide(objective: &Objective, judgement: &Judgement) -> (Decision, String) {
    let say = |decision, reason: &str| (decision, reason.to_owned());
    if judgement.counted < FEWEST_PAIRS {
        let reason = format!("fewer than {FEWEST_PAIRS} pairs of measurements count");
        return (Decision::Unclear, reason);
    }
    if let Some(harm) = harm(objective, judgement) {
        return (Decision::RollBack, harm);
    }
    let aim = match objective.aim {
        Aim::Goodput => "goodput",
        Aim::RoundTrip => "the round trip under load",
    };
    let Some(gain) = Gain::of(objective, judgement) else {
        return (Decision::Unclear, format!("{aim} was not measured in each pair"));
    };
    if gain.is_refuted() {
        let reason = format!("{aim} gains less than {:.0} %, and that is sure", objective.least_gain.percent());
        return (Decision::RollBack, reason);
    }
    if !gain.is_real() {
        return (
            Decision::Unclear,
            format!("what {aim} gained could be chance, or is below {:.0} %", objective.least_gain.percent()),
        );
    }
    if judgement.round_trip.is_none() {
        return say(Decision::Unclear, "the round trip under load was not measured in each pair");
    }
    if judgement.retransmitted.is_none() {
        return say(Decision::Unclear, "what was sent again was not counted in each pair");
    }
    (Decision::Keep, format!("{aim} gains, and nothing else pays for it"))
}

/// What else became worse than it may.
fn harm(objective: &Objective, judgement: &Judgement) -> Option<String> {
    let repairs = judgement.retransmitted.filter(|effect| {
        let (before, after) = (effect.before.get(), effect.after.get());
        after > before * MORE_REPAIRS && after - before > UNNOTICED_REPAIRS
    });
    if repairs.is_some() {
        return Some("more than twice as much is sent again".to_owned());
    }
    let cost = objective.cost.get();
    let percent = objective.cost.percent();
    match objective.aim {
        Aim::Goodput => {
            let effect = judgement.round_trip?;
            let longer = effect.difference.or_zero();
            (longer > effect.before.mul_f64(cost) && longer > objective.unnoticed)
                .then(|| format!("the round trip under load is more than {percent:.0} % longer"))
        }
        Aim::RoundTrip => {
            let effect = judgement.goodput?;
            let less = effect.difference.negative && effect.difference.magnitude > effect.before * cost;
            less.then(|| format!("goodput is more than {percent:.0} % less"))
        }
    }
}

/// Whether the goodput gains enough, and is paid for by the round trip alone.
fn fills_the_path(objective: &Objective, judgement: &Judgement) -> bool {
    let gains = Gain::of(objective, judgement).is_some_and(|gain| gain.is_real());
    let without = Judgement { round_trip: None, ..judgement.clone() };
    let is_refused = judgement.decision == Decision::RollBack && harm(objective, judgement).is_some();
    objective.aim == Aim::Goodput && gains && is_refused && harm(objective, &without).is_none()
}

/// Whether another pair should be measured: while the decision could still become another one, and the budget is not spent.
///
/// It is asked again after each pair. The interval alone ends the series, not a gain that looks good for a moment: that
/// would keep what chance has made, given enough looks.
#[must_use]
pub fn more_pairs_needed(objective: &Objective, pairs: &[Pair], budget: Budget, bootstrap: &Bootstrap) -> bool {
    if pairs.len() >= budget.most {
        return false;
    }
    let judgement = judge(objective, pairs, bootstrap);
    if judgement.counted < budget.fewest.max(FEWEST_PAIRS) {
        return true;
    }
    let is_settled = Gain::of(objective, &judgement).is_some_and(|gain| gain.is_settled());
    !is_settled && harm(objective, &judgement).is_none()
}

/// What each group brought, in the order in which they were tried.
#[must_use]
pub fn contributions(trials: &[(Group, Judgement)]) -> Vec<Contribution> {
    let gained = |judgement: &Judgement| -> Option<BitRate> {
        let effect = judgement.goodput.filter(|_| judgement.decision == Decision::Keep)?;
        Some(Signed::or_zero(effect.difference))
    };
    let whole: BitRate = trials.iter().filter_map(|(_, judgement)| gained(judgement)).sum();
    let one = |(group, judgement): &(Group, Judgement)| Contribution {
        group: *group,
        decision: judgement.decision,
        goodput: judgement.goodput,
        part: gained(judgement).and_then(|gain| gain / whole),
    };
    trials.iter().map(one).collect()
}
