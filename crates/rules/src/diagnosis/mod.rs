//! Diagnosis of a transfer's limit: an ordered table of rules over the observations of both ends.
//!
//! [`TransferEvidence`] is computed once from an observation; each rule of [`RULES`] checks it and returns a verdict, or none.
//! The first match is the main verdict; later ones are additional findings. The order is that in which one cause hides
//! another: a program that paces itself leaves windows half used, a small window leaves the path's queue empty.

mod bounds;
mod evidence;
mod figures;
mod host_load;
mod own_queue;
mod remedy;
mod rules;
mod states;
mod text;

use linerate_model::diagnosis::{Cause, CauseLocation, DiagnosisVerdict, TransferDiagnosis, TransferObservation};

pub use evidence::TransferEvidence;
pub use rules::RULES;

/// Condition under which one cause is named.
#[derive(Clone, Copy, Debug)]
pub struct DiagnosisRule {
    /// Identifier in kebab case.
    pub id: &'static str,
    /// Tested condition, in one sentence.
    pub test: &'static str,
    /// Source: RFC section, kernel function or paper.
    pub citation: &'static str,
    /// Checks the figures of a transfer.
    pub check: fn(&TransferEvidence<'_>) -> Option<DiagnosisVerdict>,
}

impl DiagnosisRule {
    /// True when the rule does not match.
    fn is_silent(&self, evidence: &TransferEvidence<'_>) -> bool {
        (self.check)(evidence).is_none()
    }
}

/// Diagnoses the limit of a transfer.
#[must_use]
pub fn diagnose(observation: &TransferObservation) -> TransferDiagnosis {
    let evidence = TransferEvidence::from_observation(observation);
    let mut verdicts: Vec<DiagnosisVerdict> = Vec::new();
    for verdict in RULES.iter().filter_map(|rule| (rule.check)(&evidence)) {
        // An unknown cause is only reported when no other rule matched.
        let is_news = verdict.cause.location() != CauseLocation::Unknown || verdicts.is_empty();
        if is_news && verdicts.iter().all(|earlier| earlier.cause != verdict.cause) {
            verdicts.push(verdict);
        }
    }
    if let Some(first) = verdicts.first_mut() {
        first.advice.extend(remedy::advice(first.cause, &evidence));
    }
    let bounds = bounds::bounds(&evidence);
    let cause = verdicts.first().map_or(Cause::Unclear, |verdict| verdict.cause);
    TransferDiagnosis {
        states: states::shares(&evidence),
        goodput: evidence.goodput,
        next: bounds::next(&bounds, cause),
        bounds: bounds.into_iter().map(|(_, bound)| bound).collect(),
        notes: host_load::notes(&evidence, &verdicts),
        verdicts,
    }
}

/// Returns the figures that the rules checked, by name with unit.
#[must_use]
pub fn figures(observation: &TransferObservation) -> Vec<(&'static str, Option<f64>)> {
    figures::named_figures(&TransferEvidence::from_observation(observation))
}
