//! Document and history record of a guided run.

use linerate_documents::doctor::{DoctorDocument, DoctorStep, RecommendationComparison, SCHEMA};
use linerate_documents::run::{RunDocument, RunEnvironment};
use linerate_documents::tune::TuneDocument;
use linerate_engine::surroundings::{LocalEnvironment, OwnTraffic};
use linerate_model::load::LoadDocument;
use linerate_model::path::PathDocument;
use linerate_units::serde::nanoseconds;

use super::DoctorRequest;
use crate::diagnose::{RunStart, TransferRequest};
use crate::tuning::session::TuningOutcome;
use crate::tuning::{self as tune, CompletedTuning};

/// Results of a run.
pub(super) struct DoctorResult<'a> {
    pub(super) request: &'a DoctorRequest,
    pub(super) begun: &'a RunStart,
    pub(super) session: &'a CompletedTuning,
    pub(super) path: Option<Box<PathDocument>>,
    pub(super) load: Option<Box<LoadDocument>>,
    pub(super) after: Option<LoadDocument>,
    pub(super) steps: Vec<DoctorStep>,
    pub(super) notes: Vec<String>,
}

impl DoctorResult<'_> {
    pub(super) fn document(self) -> DoctorDocument {
        let Self { request, begun, session: done, path, load, after, steps, notes } = self;
        let tuned = tuned(request, begun, done);
        DoctorDocument {
            schema: SCHEMA,
            linerate_version: env!("CARGO_PKG_VERSION").to_owned(),
            host: request.host.clone(),
            port: request.settings.target.port.get(),
            started_at_unix_ns: nanoseconds(begun.at.since_unix_epoch()),
            duration_ns: nanoseconds(begun.lasted()),
            termination: tune::document::termination(&done.outcome),
            sentence: tuned.sentence.clone(),
            steps,
            path,
            load_before: load,
            effects: tuned.effects.clone(),
            tune: Some(Box::new(tuned)),
            comparison: comparison(&done.outcome),
            load_after: after.map(Box::new),
            unknown: Vec::new(),
            notes,
        }
    }
}

fn tuned(request: &DoctorRequest, begun: &RunStart, done: &CompletedTuning) -> TuneDocument {
    let asked =
        TransferRequest { host: &request.host, port: request.settings.target.port, transfer: &request.transfer };
    let role = request.settings.goal;
    tune::document::TuningResult {
        request: asked,
        role,
        seed: request.settings.seed,
        begun,
        outcome: &done.outcome,
        kept: &done.kept,
        far: request.hosts.far.as_ref(),
        notes: Vec::new(),
    }
    .document()
}

fn comparison(outcome: &TuningOutcome) -> Option<RecommendationComparison> {
    let (found, measured) = outcome.compared.as_ref()?;
    let mut settings: Vec<String> =
        found.changes.iter().map(|one| format!("{} = {}", one.change.target, one.change.to)).collect();
    settings.sort_unstable();
    settings.dedup();
    let capacity = outcome.before.as_ref().and_then(|seen| {
        let observation = seen.outcome.observation.as_ref()?;
        linerate_rules::diagnosis::TransferEvidence::from_observation(observation).capacity
    });
    Some(RecommendationComparison {
        source: found.source.to_owned(),
        settings,
        arithmetic: found.arithmetic.clone(),
        predicted_bits_per_second: found.predicted.map(linerate_units::BitRate::bits_per_second),
        measured_bits_per_second: measured.as_ref().map(|one| one.goodput.bits_per_second()),
        capacity_bits_per_second: capacity.map(linerate_units::BitRate::bits_per_second),
    })
}

/// Record of the run in the history.
pub(super) fn run(
    document: &DoctorDocument,
    done: &CompletedTuning,
    surroundings: LocalEnvironment,
    arguments: Vec<String>,
) -> RunDocument {
    let first = done.outcome.before.as_ref();
    RunDocument {
        arguments,
        verdict: document.sentence.clone(),
        figures: tune::document::figures(&document.effects, first),
        environment: RunEnvironment { near: Some(surroundings.finish(OwnTraffic::default())), far: None, lab: None },
        ..RunDocument::from(document.clone())
    }
}
