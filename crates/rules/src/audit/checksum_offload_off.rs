//! The device could compute checksums, and does not.

use linerate_model::change::{Group, TakesEffect, Target};
use linerate_model::finding::{Finding, Severity};
use linerate_model::host::HostFacts;
use linerate_model::host::link::Link;

use super::Rule;
use super::link_support::{Edit, Saying, host_with, link_with_offload, working};

const ID: &str = "checksum-offload-off";
const CITATION: &str = "kernel: Documentation/networking/checksum-offloads.rst";

pub(super) const RULE: Rule = Rule {
    id: ID,
    title: "The device could compute checksums, and does not.",
    explanation: "Without it the processor reads every byte once more, and on the way out segmentation by the device \
        (TSO) is not possible either. The kernel switches segmentation off together with checksums, and on again.",
    citation: CITATION,
    keys: &[],
    check,
    fires: || host_with(vec![link_with_offload("rx-checksum", false)]),
    silent: || host_with(vec![link_with_offload("rx-checksum", true)]),
};

/// Ways to compute checksums on the way out, of which one is enough.
const SENDING: [&str; 3] = ["tx-checksum-ip-generic", "tx-checksum-ipv4", "tx-checksum-ipv6"];

fn check(host: &HostFacts) -> Vec<Finding> {
    let hardware = working(host).filter(|link| link.is_hardware());
    hardware.flat_map(|link| [receiving(link), sending(link)].into_iter().flatten()).collect()
}

fn receiving(link: &Link) -> Option<Finding> {
    let is_off = link.offload("rx-checksum").is_some_and(|state| state.could_be_on() && !state.wanted);
    is_off.then(|| finding(link, "rx-checksum", "rx", "receives"))
}

fn sending(link: &Link) -> Option<Finding> {
    let states: Vec<_> = SENDING.iter().filter_map(|name| Some((*name, link.offload(name)?))).collect();
    let any_on = states.iter().any(|(_, state)| state.active);
    let (feature, _) = states.iter().find(|(_, state)| state.could_be_on() && !state.wanted)?;
    (!any_on).then(|| finding(link, feature, "tx", "sends"))
}

fn finding(link: &Link, feature: &str, option: &str, verb: &str) -> Finding {
    let name = &link.name;
    let saying = Saying {
        rule: (ID, CITATION),
        severity: Severity::Warning,
        subject: name.clone(),
        text: format!("{name} leaves the checksums of what it {verb} to the processor, though it could compute them."),
        evidence: vec![format!("{name}: {feature}: off")],
        remedy: vec![format!("ethtool -K {name} {option} on")],
        risk: "devices that compute them wrongly exist: TcpInCsumErrors must not grow afterwards",
    };
    saying.with_change(Edit {
        target: Target::Offload { interface: name.clone(), feature: feature.to_owned() },
        from: "off".to_owned(),
        to: "on".to_owned(),
        group: Group::Device,
        takes_effect: TakesEffect::Now,
        arithmetic: None,
    })
}
