//! Limiting cause per direction of a result.

use linerate_documents::fleet_result::FleetResult;
use linerate_documents::run::RunResult;
use linerate_model::diagnosis::Cause;
use linerate_model::direction::Direction;

/// Most important cause of each direction that was diagnosed: that of one stream, which a program with one connection sees.
pub(crate) fn limiting_causes(result: &FleetResult) -> Vec<(Direction, Cause)> {
    let Some(run) = &result.run else { return Vec::new() };
    let cause = |direction: &Direction| {
        let verdicts = match &run.result {
            RunResult::Diagnose(document) if document.direction == *direction => &document.verdicts,
            RunResult::Throughput(document) => {
                let tests = document.runs.iter().filter(|test| test.direction == *direction);
                &tests.min_by_key(|test| test.streams)?.diagnosis.as_ref()?.verdicts
            }
            _ => return None,
        };
        Some((*direction, verdicts.first()?.cause))
    };
    Direction::BOTH.iter().filter_map(cause).collect()
}
