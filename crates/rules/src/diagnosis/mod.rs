//! What limits a transfer: an ordered table of rules over what both ends saw.
//!
//! [`Evidence`] is computed once from an observation; each rule of [`RULES`] looks at it and says what it finds, or
//! nothing. The first that speaks is the first verdict; those after it are what also shows. The order is that in which one
//! cause hides another: a program that paces itself leaves windows half used, a small window leaves the path's queue empty.

mod bounds;
mod evidence;
mod figures;
mod remedy;
mod rules;
mod states;
mod words;

use linerate_model::diagnosis::{Cause, Diagnosis, Observation, Place, Verdict};

pub use evidence::Evidence;
pub use rules::RULES;

/// One rule: when one cause is named.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// Identifier, in words joined by hyphens.
    pub id: &'static str,
    /// What is tested, in one sentence.
    pub test: &'static str,
    /// Who says so.
    pub citation: &'static str,
    /// Looks.
    pub check: fn(&Evidence<'_>) -> Option<Verdict>,
}

impl Rule {
    /// Whether it has nothing to say.
    fn check_is_silent(&self, evidence: &Evidence<'_>) -> bool {
        (self.check)(evidence).is_none()
    }
}

/// What limits the transfer.
#[must_use]
pub fn diagnose(observation: &Observation) -> Diagnosis {
    let evidence = Evidence::of(observation);
    let mut verdicts: Vec<Verdict> = Vec::new();
    for verdict in RULES.iter().filter_map(|rule| (rule.check)(&evidence)) {
        // Where something else has spoken, that nothing is known is no news.
        let is_news = verdict.cause.place() != Place::Unknown || verdicts.is_empty();
        if is_news && verdicts.iter().all(|earlier| earlier.cause != verdict.cause) {
            verdicts.push(verdict);
        }
    }
    if let Some(first) = verdicts.first_mut() {
        first.advice.extend(remedy::advice(first.cause, &evidence));
    }
    let bounds = bounds::bounds(&evidence);
    let cause = verdicts.first().map_or(Cause::Unclear, |verdict| verdict.cause);
    Diagnosis {
        states: states::shares(&evidence),
        goodput: evidence.goodput,
        next: bounds::next(&bounds, cause),
        bounds: bounds.into_iter().map(|(_, bound)| bound).collect(),
        verdicts,
    }
}

/// The figures that the rules looked at, by name with its unit.
#[must_use]
pub fn figures(observation: &Observation) -> Vec<(&'static str, Option<f64>)> {
    figures::all(&Evidence::of(observation))
}
