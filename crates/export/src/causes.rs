//! Limiting cause per direction of a result.

use linerate_documents::fleet_result::FleetResult;
use linerate_model::diagnosis::Cause;
use linerate_model::direction::Direction;

/// Most important cause of each direction that was diagnosed: that of one stream, which a program with one connection sees.
pub(crate) fn limiting_causes(result: &FleetResult) -> Vec<(Direction, Cause)> {
    let Some(run) = &result.run else { return Vec::new() };
    let cause = |direction: Direction| Some((direction, run.first_cause(direction)?.cause));
    Direction::BOTH.into_iter().filter_map(cause).collect()
}
