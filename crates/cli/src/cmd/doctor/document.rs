//! What is printed and kept of a guided run.

use linerate_model::schema::doctor::{Comparison, DoctorDocument, SCHEMA, Step};
use linerate_model::schema::load::LoadDocument;
use linerate_model::schema::nanoseconds;
use linerate_model::schema::path::PathDocument;
use linerate_model::schema::run::{RunDocument, RunEnvironment};
use linerate_model::schema::tune::TuneDocument;

use super::DoctorArguments;
use crate::cmd::diagnose::document::{Asked, Begun};
use crate::cmd::measurement::own_arguments;
use crate::cmd::tune::course::CourseOutcome;
use crate::cmd::tune::{self, Done};
use crate::surroundings::{OwnTraffic, Surroundings};

/// Everything that a run has to tell.
pub(super) struct Told<'a> {
    pub(super) arguments: &'a DoctorArguments,
    pub(super) begun: &'a Begun,
    pub(super) done: &'a Done,
    pub(super) path: Option<Box<PathDocument>>,
    pub(super) load: Option<Box<LoadDocument>>,
    pub(super) after: Option<LoadDocument>,
    pub(super) steps: Vec<Step>,
    pub(super) notes: Vec<String>,
}

impl Told<'_> {
    pub(super) fn document(self) -> DoctorDocument {
        let Self { arguments, begun, done, path, load, after, steps, notes } = self;
        let tuned = tuned(arguments, begun, done);
        DoctorDocument {
            schema: SCHEMA,
            linerate_version: env!("CARGO_PKG_VERSION").to_owned(),
            host: arguments.host.clone(),
            port: arguments.common.port.get(),
            started_at_unix_ns: nanoseconds(begun.at.since_unix_epoch()),
            duration_ns: nanoseconds(begun.lasted()),
            termination: (&tune::document::termination(&done.outcome)).into(),
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

fn tuned(arguments: &DoctorArguments, begun: &Begun, done: &Done) -> TuneDocument {
    let asked = Asked { host: &arguments.host, port: arguments.common.port, transfer: &arguments.transfer };
    let role = arguments.how.role.name();
    tune::document::Told {
        asked,
        role,
        begun,
        outcome: &done.outcome,
        kept: &done.kept,
        far: arguments.how.far.as_ref(),
        notes: Vec::new(),
    }
    .document()
}

fn comparison(outcome: &CourseOutcome) -> Option<Comparison> {
    let (found, measured) = outcome.compared.as_ref()?;
    let mut settings: Vec<String> =
        found.changes.iter().map(|one| format!("{} = {}", one.change.target, one.change.to)).collect();
    settings.sort_unstable();
    settings.dedup();
    let capacity = outcome.before.as_ref().and_then(|seen| {
        let observation = seen.outcome.observation.as_ref()?;
        linerate_rules::diagnosis::Evidence::of(observation).capacity
    });
    Some(Comparison {
        source: found.source.to_owned(),
        settings,
        arithmetic: found.arithmetic.clone(),
        predicted_bits_per_second: found.predicted.map(linerate_units::BitRate::bits_per_second),
        measured_bits_per_second: measured.as_ref().map(|one| one.goodput.bits_per_second()),
        capacity_bits_per_second: capacity.map(linerate_units::BitRate::bits_per_second),
    })
}

/// The run as it is kept.
pub(super) fn run(document: &DoctorDocument, done: &Done, surroundings: Surroundings) -> RunDocument {
    let first = done.outcome.before.as_ref();
    RunDocument {
        arguments: own_arguments(),
        verdict: document.sentence.clone(),
        figures: tune::document::figures(&document.effects, first),
        environment: RunEnvironment { near: Some(surroundings.finish(OwnTraffic::default())), far: None, lab: None },
        ..RunDocument::from(document.clone())
    }
}
