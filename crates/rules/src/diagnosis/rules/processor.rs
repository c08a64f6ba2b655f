//! Verdict about a processor that a transfer's own threads saturate.

use linerate_model::diagnosis::{Cause, Confidence, DiagnosisVerdict};

use super::super::evidence::TransferEvidence;
use super::super::host_load::{TransferEnd, all_processors};
use super::super::text::{VerdictBuilder, percent, percent_of, verdict};

/// Returns the verdict about the processors of one end, where they limit the transfer by its own work.
pub(super) fn saturated(evidence: &TransferEvidence<'_>, end: TransferEnd, cause: Cause) -> Option<DiagnosisVerdict> {
    let text = if evidence.is_thread_saturated(end) {
        let used = percent(evidence.thread_share(end)?);
        let interrupted = evidence.interruption_text(end).map(|text| format!("; {text}"));
        let interrupted = interrupted.unwrap_or_default();
        format!("The {}'s processor is saturated: its thread used {used} of one{interrupted}.", end.name())
    } else {
        let wait = evidence.limiting_wait(end).filter(|_| evidence.is_own_load(end))?;
        let processors = all_processors(evidence.processor_load(end)?.processors);
        format!(
            "The transfer's own threads use {processors} of the {} host: each waited up to {} of the time for one.",
            end.participle(),
            percent(wait)
        )
    };
    let host = evidence.host(end);
    let load = evidence.processor_load(end);
    Some(
        verdict(cause, Confidence::High, text)
            .figure("waiting for a processor", evidence.wait_share(end).map(percent))
            .figure("waits", evidence.occupant_text(end))
            .figure("all processors of the host, by all programs", host.and_then(|host| host.busy).map(percent_of))
            .figure("all processors, in interrupts", load.map(|load| percent_of(load.interrupts)))
            .advice(
                "check the offloads of the interface (`linerate audit`), and try several connections: they use \
                several processors",
            ),
    )
}
