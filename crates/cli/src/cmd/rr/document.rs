//! History record of a run.

use linerate_documents::run::{RunDocument, RunEnvironment};
use linerate_engine::rr::RrOutcome;
use linerate_engine::surroundings::{LocalEnvironment, OwnTraffic, far};
use linerate_report::sentence::rr::sentence;

use super::figures;
use crate::cmd::measurement::own_arguments;

/// Assembles the record.
pub(super) fn history_record(outcome: &RrOutcome, surroundings: LocalEnvironment) -> RunDocument {
    let document = &outcome.document;
    let near = surroundings.finish(OwnTraffic { received: outcome.received, sent: outcome.sent });
    RunDocument {
        arguments: own_arguments(),
        verdict: sentence(document),
        figures: figures::all_figures(document),
        environment: RunEnvironment { near: Some(near), far: outcome.far.as_ref().map(far), lab: None },
        series: outcome.series.clone(),
        ..RunDocument::from(document.clone())
    }
}
