//! Diagnosis of a transfer's limit: rules over the observations of both ends, ranked by what each cause costs.
//!
//! [`TransferEvidence`] is computed once from an observation; each rule of [`RULES`] checks it and returns a verdict, or
//! none. `counterfactual` estimates the goodput without each cause found, and `ranking` puts the one first whose
//! removal gains most.

mod acknowledgements;
mod bounds;
mod capacity;
mod cost;
mod counterfactual;
mod delivery;
mod early_loss;
mod evidence;
mod figures;
mod host_load;
mod kernel_events;
mod lateness;
mod losses;
mod overfull_buffer;
mod own_queue;
mod path_loss;
mod ranking;
mod receiver_wait;
mod remedy;
mod rules;
mod searched_queue;
mod stalls;
mod states;
mod steady;
mod text;

use linerate_model::diagnosis::{
    BoundKind, CauseLocation, DiagnosisVerdict, ThroughputBound, TransferDiagnosis, TransferObservation,
};

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
    let (bounds, refuted) = bounds::bounds(&evidence);
    let contradictions = contradictions(&evidence, &refuted);
    let mut verdicts = ranking::ranked(&evidence, found(&evidence), &bounds, contradictions.is_empty());
    if let Some(first) = verdicts.first_mut() {
        first.advice.extend(remedy::advice(first.cause, &evidence));
    }
    let cost = verdicts.first().and_then(|first| cost::cost(first.cause, &evidence));
    let own = cost.map_or(&[BoundKind::Path][..], |cost| cost.own);
    TransferDiagnosis {
        states: states::shares(&evidence),
        goodput: evidence.goodput,
        next: bounds::next(&bounds, own),
        bounds,
        contradictions,
        notes: [host_load::notes(&evidence, &verdicts), kernel_events::notes(&evidence, &verdicts)].concat(),
        verdicts,
    }
}

/// Returns the verdicts of all rules that match. An unknown cause is only reported when no other rule matched.
fn found(evidence: &TransferEvidence<'_>) -> Vec<DiagnosisVerdict> {
    let mut verdicts: Vec<DiagnosisVerdict> = Vec::new();
    for verdict in RULES.iter().filter_map(|rule| (rule.check)(evidence)) {
        let is_news = verdict.cause.location() != CauseLocation::Unknown || verdicts.is_empty();
        if is_news && verdicts.iter().all(|earlier| earlier.cause != verdict.cause) {
            verdicts.push(verdict);
        }
    }
    verdicts
}

/// Returns the figures that the transfer refutes, each in one sentence.
fn contradictions(evidence: &TransferEvidence<'_>, refuted: &[ThroughputBound]) -> Vec<String> {
    let steady = text::rate(evidence.steady);
    let capacity = evidence.refuted_capacity.map(|capacity| {
        format!("the path measurement reported {} of payload, but the transfer reached {steady}", text::rate(capacity))
    });
    // The response to losses is a mean over many of them: a single transfer may reach more.
    let bounds = refuted.iter().filter(|one| !matches!(one.kind, BoundKind::Loss | BoundKind::Path)).map(|one| {
        format!("{} would allow {}, but the transfer reached {steady}", one.kind.title(), text::rate(one.rate))
    });
    capacity.into_iter().chain(bounds).collect()
}

/// Returns the figures that the rules checked, by name with unit.
#[must_use]
pub fn figures(observation: &TransferObservation) -> Vec<(&'static str, Option<f64>)> {
    figures::named_figures(&TransferEvidence::from_observation(observation))
}
