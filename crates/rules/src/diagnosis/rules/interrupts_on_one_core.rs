//! One processor of a host spends its time on interrupts, and others do not.

use linerate_model::diagnosis::{Cause, Confidence, DiagnosisVerdict};
use linerate_model::far::InterruptedProcessor;

use super::super::DiagnosisRule;
use super::super::evidence::TransferEvidence;
use super::super::host_load::TransferEnd;
use super::super::text::{VerdictBuilder, percent_of, verdict};

/// Share of a processor's time in interrupts from which it has none left for more packets.
const MIN_INTERRUPT_SHARE: f64 = 0.85;
/// Share in which such a processor is busy.
const MIN_BUSY_SHARE: f64 = 0.95;
/// Share of interrupts of the next processor, relative to the first, up to which they are on one.
const MAX_ELSEWHERE: f64 = 0.5;

/// One processor of a host spends its time on interrupts, and others do not.
pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    id: "interrupts-on-one-core",
    test: "One processor of a host spends its time on interrupts, and others do not.",
    citation: "proc(5), /proc/stat (irq, softirq); Documentation/networking/scaling.rst (RSS, RPS)",
    check,
};

fn check(evidence: &TransferEvidence<'_>) -> Option<DiagnosisVerdict> {
    let (end, processor) = TransferEnd::ALL.into_iter().find_map(|end| Some((end, overloaded(evidence, end)?)))?;
    let load = evidence.processor_load(end)?;
    let text = format!(
        "Processor {} of the {} host handles the packets alone: {} of its time is spent on interrupts, {} on the next \
            one.",
        processor.number,
        end.participle(),
        percent_of(processor.interrupts),
        percent_of(load.interrupts_elsewhere.unwrap_or(0.0))
    );
    let receiving = evidence.host(end).and_then(|host| host.receiving);
    Some(
        verdict(Cause::InterruptsOnOneCore, Confidence::Medium, text)
            .figure("all processors, in interrupts", Some(percent_of(load.interrupts)))
            .figure("software interrupt there", evidence.softirq_of(end, processor.number))
            .figure("times that packets were left over", receiving.map(|receiving| receiving.squeezed.to_string()))
            .figure("packets dropped before the network stack", receiving.map(|receiving| receiving.dropped.to_string()))
            .advice(
                "let several queues of the interface interrupt several processors (`ethtool -L`, irqbalance), or spread \
                the packets in software (receive packet steering, rps_cpus): `linerate audit` names the settings",
            ),
    )
}

fn overloaded(evidence: &TransferEvidence<'_>, end: TransferEnd) -> Option<InterruptedProcessor> {
    let load = evidence.processor_load(end)?;
    let processor = load.most_interrupted?;
    let elsewhere = load.interrupts_elsewhere?;
    let is_alone = elsewhere <= processor.interrupts * MAX_ELSEWHERE;
    let is_overloaded = processor.interrupts >= MIN_INTERRUPT_SHARE && processor.busy >= MIN_BUSY_SHARE;
    // Packets that wait for this processor look like a queue on the path; then it has to show that it is behind.
    let receiving = evidence.host(end).and_then(|host| host.receiving);
    let is_behind = receiving.is_some_and(|receiving| receiving.squeezed > 0 || receiving.dropped > 0);
    let fits = !evidence.is_full() && (is_behind || !evidence.has_queue_mostly());
    (is_alone && is_overloaded && fits).then_some(processor)
}
