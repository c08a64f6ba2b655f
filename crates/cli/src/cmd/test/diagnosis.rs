//! What limited a run, from what both ends saw of it.

use linerate_model::diagnosis::{Diagnosis, Observation};
use linerate_model::parameters::TestParameters;
use linerate_model::report::TestReport;
use linerate_model::sample::IntervalReport;
use linerate_rules::diagnosis;

/// The diagnosis without the path's own measurement, so that its capacity is unknown; `None` where the sender's sockets
/// were not seen, as in a download from a stock server: the receiver alone would take what it lacks for somebody else's.
pub(super) fn explain(
    parameters: &TestParameters,
    intervals: &[IntervalReport],
    report: &TestReport,
) -> Option<Diagnosis> {
    let observation = Observation::new(parameters, intervals, report, None);
    let is_seen = observation.connections.iter().any(|connection| !connection.sender.is_empty());
    is_seen.then(|| diagnosis::diagnose(&observation))
}
