//! History record of a run.

use linerate_documents::run::{RunDocument, RunEnvironment};
use linerate_engine::rfc6349::Rfc6349Outcome;
use linerate_engine::surroundings::{LocalEnvironment, OwnTraffic, far};

use super::{figures, verdict};
use crate::cmd::measurement::own_arguments;

/// Assembles the record.
pub(super) fn history_record(outcome: &Rfc6349Outcome, surroundings: LocalEnvironment) -> RunDocument {
    let document = &outcome.document;
    let near = surroundings.finish(OwnTraffic { received: outcome.received, sent: outcome.sent });
    RunDocument {
        arguments: own_arguments(),
        verdict: verdict::sentence(document),
        figures: figures::all_figures(outcome),
        environment: RunEnvironment { near: Some(near), far: outcome.far.as_ref().map(far), lab: None },
        series: outcome.series.clone(),
        phases: outcome.phases.clone(),
        ..RunDocument::from(document.clone())
    }
}
