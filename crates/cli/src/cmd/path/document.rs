//! History record of a run.

use linerate_documents::run::{RunDocument, RunEnvironment};
use linerate_engine::path::PathOutcome;
use linerate_engine::surroundings::{LocalEnvironment, OwnTraffic, far};
use linerate_report::sentence::path;

use super::figures;
use crate::cmd::measurement::own_arguments;

/// Assembles the record.
pub(crate) fn history_record(outcome: &PathOutcome, surroundings: LocalEnvironment) -> RunDocument {
    let document = &outcome.document;
    let near = surroundings.finish(OwnTraffic { received: outcome.received, sent: outcome.sent });
    RunDocument {
        arguments: own_arguments(),
        verdict: path::sentence(document),
        figures: figures::all_figures(outcome),
        environment: RunEnvironment { near: Some(near), far: outcome.far.as_ref().map(far), lab: None },
        series: outcome.series.clone(),
        phases: outcome.phases.clone(),
        ..RunDocument::from(document.clone())
    }
}
