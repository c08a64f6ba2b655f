//! Segmentation on the way out or joining on the way in is switched off.

use linerate_model::change::{Group, TakesEffect, Target};
use linerate_model::finding::{Finding, Severity};
use linerate_model::host::HostFacts;
use linerate_model::host::link::Link;

use super::Rule;
use super::link_support::{Edit, Saying, host_with, link_with_offload, working};

const ID: &str = "aggregation-off";
const CITATION: &str = "kernel: Documentation/networking/segmentation-offloads.rst";

pub(super) const RULE: Rule = Rule {
    id: ID,
    title: "Segmentation or receive joining (TSO, GSO, GRO) is switched off.",
    explanation: "With these offloads the network stack handles up to 64 KiB at once instead of one segment of 1448 \
        bytes, which takes a fraction of the processor's time for each byte. They have been on by default for more \
        than ten years. They are switched off by recipes against faults of single drivers, by virtual switches, and \
        for captures that are to show the packets of the wire.",
    citation: CITATION,
    keys: &[],
    check,
    fires: || host_with(vec![link_with_offload("rx-gro", false)]),
    silent: || host_with(vec![link_with_offload("rx-gro", true)]),
};

/// ethtool's names, the options of `ethtool -K`, and what is lost without.
const OFFLOADS: [(&str, &str, &str); 3] = [
    ("rx-gro", "gro", "each received segment goes through the stack by itself"),
    ("tx-generic-segmentation", "gso", "each segment to be sent goes through the stack by itself"),
    ("tx-tcp-segmentation", "tso", "the processor cuts what the device could cut"),
];

fn check(host: &HostFacts) -> Vec<Finding> {
    working(host).flat_map(|link| OFFLOADS.iter().filter_map(|offload| look(link, *offload))).collect()
}

fn look(link: &Link, (feature, option, loss): (&str, &str, &str)) -> Option<Finding> {
    let state = link.offload(feature).filter(|state| state.could_be_on())?;
    // Virtual devices hand packets on within the host: what is not joined there is joined elsewhere.
    let severity = if link.is_hardware() { Severity::Warning } else { Severity::Note };
    let name = &link.name;
    let saying = Saying {
        rule: (ID, CITATION),
        severity,
        subject: name.clone(),
        text: format!("{name} has {feature} off: {loss}, at several times the processor's time per byte."),
        evidence: vec![format!(
            "{name}: {feature}: off{}",
            if state.wanted { " (asked for, but not possible)" } else { "" }
        )],
        remedy: vec![format!("ethtool -K {name} {option} on")],
        risk: "somebody may have switched it off for a fault of the driver: watch the driver's error counters",
    };
    if state.wanted {
        // Something that it needs is off: that has a finding of its own.
        return Some(saying.finding());
    }
    Some(saying.with_change(Edit {
        target: Target::Offload { interface: name.clone(), feature: feature.to_owned() },
        from: "off".to_owned(),
        to: "on".to_owned(),
        group: Group::Device,
        takes_effect: TakesEffect::Now,
        arithmetic: None,
    }))
}
