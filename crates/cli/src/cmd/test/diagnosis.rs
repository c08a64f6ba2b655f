//! Diagnosis of a run, from the statistics of both hosts.

use linerate_model::diagnosis::{TransferDiagnosis, TransferObservation};
use linerate_model::parameters::TestParameters;
use linerate_model::report::TestReport;
use linerate_model::sample::IntervalReport;
use linerate_rules::diagnosis;

/// Diagnoses a run without a path measurement, so that its capacity is unknown; `None` without the sender's sockets, as
/// in a download from a stock server: the receiver alone would attribute the sender's pauses to others.
pub(super) fn diagnose_run(
    parameters: &TestParameters,
    intervals: &[IntervalReport],
    report: &TestReport,
) -> Option<TransferDiagnosis> {
    let observation = TransferObservation::new(parameters, intervals, report, None);
    let is_seen = observation.connections.iter().any(|connection| !connection.sender.is_empty());
    is_seen.then(|| diagnosis::diagnose(&observation))
}
