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
mod full_path;
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
    BoundKind, Cause, CauseLocation, DiagnosisVerdict, ThroughputBound, TransferDiagnosis, TransferObservation,
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
    if carries_nothing(verdicts.first(), &evidence) {
        verdicts.retain(|one| stops(one, &evidence));
    }
    if let Some(first) = verdicts.first_mut() {
        remedy::add(first, &evidence);
    }
    TransferDiagnosis {
        states: states::shares(&evidence),
        goodput: evidence.goodput,
        next: next_limit(&bounds, verdicts.first(), &evidence).filter(|_| !shows_only_its_end(&evidence)),
        bounds,
        contradictions,
        notes: [host_load::notes(&evidence, &verdicts), kernel_events::notes(&evidence, &verdicts)].concat(),
        verdicts,
    }
}

/// True for a cause that stops the transfer.
fn stops(verdict: &DiagnosisVerdict, evidence: &TransferEvidence<'_>) -> bool {
    cost::cost(verdict.cause, evidence).is_some_and(|cost| matches!(cost.kind, cost::CostKind::Stalled { .. }))
}

/// True where the first cause stops nearly all of the transfer: figures of the little that was sent show nothing else.
fn carries_nothing(first: Option<&DiagnosisVerdict>, evidence: &TransferEvidence<'_>) -> bool {
    let cost = first.and_then(|first| cost::cost(first.cause, evidence));
    cost.is_some_and(|cost| match cost.kind {
        cost::CostKind::Stalled { share } => cost.cause != Cause::SackOff && share >= counterfactual::MAX_STALLED_SHARE,
        _ => false,
    })
}

/// Returns the lowest bound that stays without the first cause, and without the one that has to go with it. `None` where the
/// path behind a limit is unknown, and no bound below the goodput that is expected without them.
fn next_limit(
    bounds: &[ThroughputBound],
    first: Option<&DiagnosisVerdict>,
    evidence: &TransferEvidence<'_>,
) -> Option<ThroughputBound> {
    let causes = first.map(|first| [Some(first.cause), first.together_with]).into_iter().flatten().flatten();
    let costs: Vec<cost::CauseCost> = causes.filter_map(|cause| cost::cost(cause, evidence)).collect();
    let is_traffic = |cost: &cost::CauseCost| matches!(cost.kind, cost::CostKind::OtherTraffic { .. });
    if costs.iter().any(|cost| cost.own.contains(&BoundKind::Path) && !is_traffic(cost)) {
        return None;
    }
    let own: Vec<BoundKind> = costs.iter().flat_map(|cost| cost.own).copied().collect();
    let own = if costs.is_empty() { vec![BoundKind::Path] } else { own };
    let expected = first.and_then(|first| first.without).map(|without| without.expected);
    // Without an estimate nothing is known of the losses that stay.
    let is_told = |kind: BoundKind| kind != BoundKind::Loss || expected.is_some();
    let mut staying = bounds.iter().filter(|one| !own.contains(&one.kind) && is_told(one.kind));
    staying.find(|one| expected.is_none_or(|expected| one.rate >= expected * bounds::MIN_BOUND_SHARE)).cloned()
}

/// True where the path died, or a far sender's reports of the end are missing: no limit of a host led to that, and tuning none
/// changes it.
fn shows_only_its_end(evidence: &TransferEvidence<'_>) -> bool {
    rules::is_path_dead(evidence) || rules::is_cut_off(evidence)
}

/// Returns the verdicts of all rules that match. An unknown cause is only reported when no other rule matched.
fn found(evidence: &TransferEvidence<'_>) -> Vec<DiagnosisVerdict> {
    let mut verdicts: Vec<DiagnosisVerdict> = Vec::new();
    let has_ended = shows_only_its_end(evidence);
    let is_of_its_end =
        |cause: Cause| matches!(cause, Cause::BlackHole | Cause::PathDead | Cause::Outage | Cause::NotEnoughData);
    let matching = RULES.iter().filter_map(|rule| (rule.check)(evidence));
    for verdict in matching.filter(|one| !has_ended || is_of_its_end(one.cause)) {
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
