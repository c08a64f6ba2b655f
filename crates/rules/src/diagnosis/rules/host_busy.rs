//! Other programs keep a host's processors busy, and the transfer's thread waited for one while there was work for it.

use linerate_model::diagnosis::{Cause, Confidence, DiagnosisVerdict};

use super::super::DiagnosisRule;
use super::super::evidence::TransferEvidence;
use super::super::host_load::{all_processors, occupant};
use super::super::kernel_events;
use super::super::text::{VerdictBuilder, percent, percent_of, verdict};

/// Other programs keep a host's processors busy, and the transfer's thread waited for one while there was work for it.
pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    id: "host-busy",
    test: "Other programs keep a host's processors busy, and the transfer's thread waited for one while there was work \
        for it.",
    citation: "Documentation/scheduler/sched-stats.rst, /proc/PID/schedstat (run delay); proc(5), /proc/stat",
    check,
};

fn check(evidence: &TransferEvidence<'_>) -> Option<DiagnosisVerdict> {
    let end = evidence.late_end()?;
    let wait = evidence.limiting_wait(end)?;
    let load = evidence.processor_load(end).copied().unwrap_or_default();
    let text = match evidence.occupant_text(end) {
        Some(occupant) => format!(
            "The {} host is late: this transfer waited {} of the time for a processor, {occupant}.",
            end.participle(),
            percent(wait)
        ),
        None => format!(
            "The {} host is busy: {} take {}, and this transfer waited {} of the time for one.",
            end.participle(),
            occupant(&load),
            all_processors(load.processors),
            percent(wait)
        ),
    };
    let is_named = evidence.occupant(end).is_some_and(|occupant| occupant.is_reason());
    // Without the load of other programs, the wait alone shows it.
    let sure = if is_named || load.others.is_some_and(|others| others >= 0.25) || load.stolen >= 0.25 {
        Confidence::High
    } else {
        Confidence::Medium
    };
    Some(
        verdict(Cause::HostBusy, sure, text)
            .figure("processor time of the transfer's thread", evidence.thread_share(end).map(percent))
            .figure("all processors, by other programs", load.others.map(percent_of))
            .figure(
                "all processors, taken by the hypervisor",
                Some(load.stolen).filter(|stolen| *stolen > 0.0).map(percent_of),
            )
            .figure("longest wait for a processor", evidence.kernel_events(end).and_then(kernel_events::longest_wait))
            .advice(
                "`top` on that host lists what runs there; measure again without it, or give the transfer precedence \
                (`nice -n -5`, as root)",
            ),
    )
}
