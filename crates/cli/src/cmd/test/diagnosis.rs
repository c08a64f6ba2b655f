//! Diagnosis of a run, from the statistics of both hosts.

use std::time::Duration;

use linerate_model::diagnosis::{PathEvidence, TransferDiagnosis, TransferObservation};
use linerate_model::parameters::TestParameters;
use linerate_model::report::TestReport;
use linerate_model::sample::IntervalReport;
use linerate_rules::diagnosis;

/// Diagnoses a run without a path measurement but for the shortest handshake, so that the capacity is unknown; `None` without
/// the sender's sockets, as in a download from a stock server: the receiver alone would attribute the sender's pauses to
/// others.
pub(super) fn diagnose_run(
    parameters: &TestParameters,
    intervals: &[IntervalReport],
    report: &TestReport,
    handshakes: &[Duration],
) -> Option<TransferDiagnosis> {
    let path = PathEvidence { round_trip: handshakes.iter().min().copied(), ..PathEvidence::default() };
    let observation =
        TransferObservation { path: Some(path), ..TransferObservation::new(parameters, intervals, report, None) };
    let is_seen = observation.connections.iter().any(|connection| !connection.sender.is_empty());
    is_seen.then(|| diagnosis::diagnose(&observation))
}
