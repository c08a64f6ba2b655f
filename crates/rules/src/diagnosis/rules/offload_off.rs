//! A processor is saturated, and its host's interface has the offloads off that make several packets travel as one.

use linerate_model::diagnosis::{Cause, Confidence, DiagnosisVerdict};

use super::super::DiagnosisRule;
use super::super::evidence::TransferEvidence;
use super::super::host_load::TransferEnd;
use super::super::text::{VerdictBuilder, percent, printable, verdict};
use super::interrupts_on_one_core;

/// A processor is saturated, and its host's interface has the offloads off that make several packets travel as one.
pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    id: "offload-off",
    test: "A processor is saturated, and its host's interface has the offloads off that make several packets travel as \
        one.",
    citation: "Documentation/networking/segmentation-offloads.rst; ethtool(8), -K",
    check,
};

fn check(evidence: &TransferEvidence<'_>) -> Option<DiagnosisVerdict> {
    let interrupts = (interrupts_on_one_core::RULE.check)(evidence).is_some();
    let (end, missing) = TransferEnd::ALL
        .into_iter()
        .filter(|end| interrupts || evidence.is_thread_saturated(*end) || evidence.limiting_wait(*end).is_some())
        .filter(|end| interrupts || evidence.is_thread_saturated(*end) || evidence.is_own_load(*end))
        .find_map(|end| Some((end, missing(evidence, end)?)))?;
    let link = evidence.link(end)?;
    let device = printable(&link.interface);
    let names: Vec<&str> = missing.iter().map(|(name, _)| *name).collect();
    let options: Vec<String> = missing.iter().map(|(_, option)| format!("{option} on")).collect();
    let text = format!(
        "Offloads of {device} are off on the {} ({}), so that each packet costs processor time, and its processor is \
            saturated.",
        end.name(),
        names.join(", ")
    );
    Some(
        verdict(Cause::OffloadOff, Confidence::Medium, text)
            .figure("processor time of the transfer's thread", evidence.thread_share(end).map(percent))
            .advice(format!("on the {}: `ethtool -K {device} {}`", end.name(), options.join(" "))),
    )
}

/// Offloads that are off and concern this end, each with ethtool's option.
fn missing(evidence: &TransferEvidence<'_>, end: TransferEnd) -> Option<Vec<(&'static str, &'static str)>> {
    let link = evidence.link(end).filter(|link| !link.is_loopback)?;
    let is_off = |name: &str| link.offloads.get(name) == Some(&false);
    let candidates: &[(&str, &str)] = match end {
        TransferEnd::Sender => &[("tx-tcp-segmentation", "tso"), ("tx-generic-segmentation", "gso")],
        // A virtual device passes on what its other end has combined.
        TransferEnd::Receiver if link.kind.is_none() => &[("rx-gro", "gro"), ("rx-checksum", "rx")],
        TransferEnd::Receiver => &[],
    };
    let missing: Vec<(&str, &str)> = candidates.iter().copied().filter(|(name, _)| is_off(name)).collect();
    (!missing.is_empty()).then_some(missing)
}
