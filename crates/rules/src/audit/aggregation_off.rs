//! Segmentation offload (TSO, GSO) or receive offload (GRO) is switched off.

use linerate_model::change::{ChangeGroup, ChangeTarget, EffectTiming};
use linerate_model::finding::{AuditFinding, FindingSeverity};
use linerate_model::host::HostFacts;
use linerate_model::host::link::NetworkLink;

use super::AuditRule;
use super::link_support::{FindingChange, FindingDraft, host_with, link_with_offload, working};

const ID: &str = "aggregation-off";
const CITATION: &str = "kernel: Documentation/networking/segmentation-offloads.rst";

pub(super) const RULE: AuditRule = AuditRule {
    id: ID,
    title: "Segmentation or receive offload (TSO, GSO, GRO) is switched off.",
    explanation: "With these offloads the network stack handles up to 64 KiB at once instead of one segment of 1448 \
        bytes, which takes a fraction of the processor's time for each byte. They have been on by default for more \
        than ten years. They are switched off by recipes against faults of single drivers, by virtual switches, and \
        for captures that must show the packets on the wire.",
    citation: CITATION,
    keys: &[],
    check,
    fires: || host_with(vec![link_with_offload("rx-gro", false)]),
    silent: || host_with(vec![link_with_offload("rx-gro", true)]),
};

/// ethtool's feature names, the options of `ethtool -K`, and the cost of switching them off.
const OFFLOADS: [(&str, &str, &str); 3] = [
    ("rx-gro", "gro", "each received segment goes through the stack by itself"),
    ("tx-generic-segmentation", "gso", "each sent segment goes through the stack by itself"),
    ("tx-tcp-segmentation", "tso", "the processor segments what the device could segment"),
];

fn check(host: &HostFacts) -> Vec<AuditFinding> {
    working(host).flat_map(|link| OFFLOADS.iter().filter_map(|offload| check_offload(link, *offload))).collect()
}

fn check_offload(link: &NetworkLink, (feature, option, loss): (&str, &str, &str)) -> Option<AuditFinding> {
    let state = link.offload(feature).filter(|state| state.could_be_on())?;
    // Virtual devices pass packets on within the host: what is not coalesced there is coalesced elsewhere.
    let severity = if link.is_hardware() { FindingSeverity::Warning } else { FindingSeverity::Note };
    let name = &link.name;
    let draft = FindingDraft {
        rule: (ID, CITATION),
        severity,
        subject: name.clone(),
        text: format!("{name} has {feature} off: {loss}, at several times the processor's time per byte."),
        evidence: vec![format!(
            "{name}: {feature}: off{}",
            if state.wanted { " (asked for, but not possible)" } else { "" }
        )],
        remedy: vec![format!("ethtool -K {name} {option} on")],
        risk: "it may have been switched off because of a driver fault: watch the driver's error counters",
    };
    if state.wanted {
        // A feature that it needs is off, which has a finding of its own.
        return Some(draft.finding());
    }
    Some(draft.with_change(FindingChange {
        target: ChangeTarget::Offload { interface: name.clone(), feature: feature.to_owned() },
        from: "off".to_owned(),
        to: "on".to_owned(),
        group: ChangeGroup::Device,
        takes_effect: EffectTiming::Now,
        arithmetic: None,
    }))
}
