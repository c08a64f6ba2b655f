//! Verdict about a processor that a transfer's own threads saturate.

use linerate_model::diagnosis::{Cause, Confidence, DiagnosisVerdict};

use super::super::evidence::TransferEvidence;
use super::super::host_load::{MIN_SATURATED_SHARE, TransferEnd, all_processors};
use super::super::text::{VerdictBuilder, percent, percent_of, verdict};

/// Returns the verdict about the processors of one end, where they limit the transfer by its own work.
pub(super) fn saturated(evidence: &TransferEvidence<'_>, end: TransferEnd, cause: Cause) -> Option<DiagnosisVerdict> {
    let text = if evidence.is_thread_saturated(end) {
        let used = evidence.thread_share(end)?;
        let waited = evidence.wait_share(end).filter(|_| used.get() < MIN_SATURATED_SHARE);
        let waited = waited.map(|wait| format!(", and waited {} of the time for it", percent(wait)));
        let interrupted = evidence.interruption_text(end).map(|text| format!("; {text}"));
        format!(
            "The {}'s processor is saturated: its thread used {} of one{}{}.",
            end.name(),
            percent(used),
            waited.unwrap_or_default(),
            interrupted.unwrap_or_default()
        )
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
