//! The run as it is kept.

use linerate_engine::path::PathOutcome;
use linerate_model::schema::run::{Kind, RunDocument, RunEnvironment, RunResult, SCHEMA};

use super::{figures, verdict};
use crate::surroundings::{OwnTraffic, Surroundings, far};

/// Everything together.
pub(super) fn of(outcome: &PathOutcome, surroundings: Surroundings) -> RunDocument {
    let document = &outcome.document;
    let near = surroundings.finish(OwnTraffic { received: outcome.received, sent: outcome.sent });
    RunDocument {
        schema: SCHEMA,
        linerate_version: document.linerate_version.clone(),
        kind: Kind::Path,
        started_at_unix_ns: document.started_at_unix_ns,
        duration_ns: document.duration_ns,
        host: document.host.clone(),
        port: document.port,
        arguments: std::env::args().skip(1).collect(),
        termination: document.termination.clone(),
        verdict: verdict::sentence(document),
        figures: figures::of(outcome),
        environment: RunEnvironment { near: Some(near), far: outcome.far.as_ref().map(far), lab: None },
        series: outcome.series.clone(),
        phases: outcome.phases.clone(),
        result: RunResult::Path(Box::new(document.clone())),
    }
}
