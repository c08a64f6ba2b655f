//! Limiting cause per direction of a result.

use linerate_documents::fleet_result::FleetResult;
use linerate_documents::run::RunResult;
use linerate_model::diagnosis::Cause;
use linerate_model::direction::Direction;

/// Most important cause of each direction that was diagnosed. Of several tests in one direction the last one counts, which
/// has the most connections.
pub(crate) fn limiting_causes(result: &FleetResult) -> Vec<(Direction, Cause)> {
    let mut causes: Vec<(Direction, Cause)> = Vec::new();
    let mut add = |direction, cause: Option<Cause>| {
        causes.retain(|(known, _)| *known != direction || cause.is_none());
        causes.extend(cause.map(|cause| (direction, cause)));
    };
    match result.run.as_ref().map(|run| &run.result) {
        Some(RunResult::Diagnose(document)) => {
            add(document.direction, document.verdicts.first().map(|verdict| verdict.cause));
        }
        Some(RunResult::Throughput(document)) => {
            for test in &document.runs {
                let first = test.diagnosis.as_ref().and_then(|diagnosis| diagnosis.verdicts.first());
                add(test.direction, first.map(|verdict| verdict.cause));
            }
        }
        _ => {}
    }
    causes
}
