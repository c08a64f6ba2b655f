//! The run as it is kept.

use linerate_engine::path::PathOutcome;
use linerate_model::schema::run::{RunDocument, RunEnvironment};

use super::{figures, verdict};
use crate::cmd::measurement::own_arguments;
use crate::surroundings::{OwnTraffic, Surroundings, far};

/// Everything together.
pub(super) fn of(outcome: &PathOutcome, surroundings: Surroundings) -> RunDocument {
    let document = &outcome.document;
    let near = surroundings.finish(OwnTraffic { received: outcome.received, sent: outcome.sent });
    RunDocument {
        arguments: own_arguments(),
        verdict: verdict::sentence(document),
        figures: figures::of(outcome),
        environment: RunEnvironment { near: Some(near), far: outcome.far.as_ref().map(far), lab: None },
        series: outcome.series.clone(),
        phases: outcome.phases.clone(),
        ..RunDocument::from(document.clone())
    }
}
