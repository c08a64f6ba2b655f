//! The receiving thread uses a whole processor, or the transfer's own threads all processors.

use linerate_model::diagnosis::{Cause, DiagnosisVerdict};

use super::super::DiagnosisRule;
use super::super::evidence::TransferEvidence;
use super::super::host_load::TransferEnd;
use super::processor;

/// The receiving thread uses a whole processor, or the transfer's own threads all processors.
pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    id: "receiver-processor",
    test: "The receiving thread uses a whole processor, or the transfer's own threads all processors.",
    citation: "getrusage(2), RUSAGE_THREAD; Documentation/scheduler/sched-stats.rst, /proc/PID/schedstat",
    check,
};

fn check(evidence: &TransferEvidence<'_>) -> Option<DiagnosisVerdict> {
    processor::saturated(evidence, TransferEnd::Receiver, Cause::ReceiverProcessor)
}
