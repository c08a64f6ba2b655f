//! Checksum offload is switched off although the device supports it.

use linerate_model::change::{ChangeGroup, ChangeTarget, EffectTiming};
use linerate_model::finding::{AuditFinding, FindingSeverity};
use linerate_model::host::HostFacts;
use linerate_model::host::link::NetworkLink;

use super::AuditRule;
use super::link_support::{FindingChange, FindingDraft, host_with, link_with_offload, working};

const ID: &str = "checksum-offload-off";
const CITATION: &str = "kernel: Documentation/networking/checksum-offloads.rst";

pub(super) const RULE: AuditRule = AuditRule {
    id: ID,
    title: "Checksum offload is switched off although the device supports it.",
    explanation: "Without it the processor reads every byte once more, and on transmit segmentation by the device \
    (TSO) is not possible either. The kernel switches segmentation off together with checksums, and on again.",
    citation: CITATION,
    keys: &[],
    check,
    fires: || host_with(vec![link_with_offload("rx-checksum", false)]),
    silent: || host_with(vec![link_with_offload("rx-checksum", true)]),
};

/// Transmit checksum features, of which one is enough.
const TRANSMIT_CHECKSUM_FEATURES: [&str; 3] = ["tx-checksum-ip-generic", "tx-checksum-ipv4", "tx-checksum-ipv6"];

fn check(host: &HostFacts) -> Vec<AuditFinding> {
    let hardware = working(host).filter(|link| link.is_hardware());
    hardware.flat_map(|link| [receiving(link), sending(link)].into_iter().flatten()).collect()
}

fn receiving(link: &NetworkLink) -> Option<AuditFinding> {
    let is_off = link.offload("rx-checksum").is_some_and(|state| state.could_be_on() && !state.wanted);
    is_off.then(|| finding(link, "rx-checksum", "rx", "receives"))
}

fn sending(link: &NetworkLink) -> Option<AuditFinding> {
    let states: Vec<_> =
        TRANSMIT_CHECKSUM_FEATURES.iter().filter_map(|name| Some((*name, link.offload(name)?))).collect();
    let any_on = states.iter().any(|(_, state)| state.active);
    let (feature, _) = states.iter().find(|(_, state)| state.could_be_on() && !state.wanted)?;
    (!any_on).then(|| finding(link, feature, "tx", "sends"))
}

fn finding(link: &NetworkLink, feature: &str, option: &str, verb: &str) -> AuditFinding {
    let name = &link.name;
    let draft = FindingDraft {
        rule: (ID, CITATION),
        severity: FindingSeverity::Warning,
        subject: name.clone(),
        text: format!(
            "{name} leaves the checksums of the packets it {verb} to the processor, though it could compute them."
        ),
        evidence: vec![format!("{name}: {feature}: off")],
        remedy: vec![format!("ethtool -K {name} {option} on")],
        risk: "devices that compute them wrongly exist: TcpInCsumErrors must not grow afterwards",
    };
    draft.with_change(FindingChange {
        target: ChangeTarget::Offload { interface: name.clone(), feature: feature.to_owned() },
        from: "off".to_owned(),
        to: "on".to_owned(),
        group: ChangeGroup::Device,
        takes_effect: EffectTiming::Now,
        arithmetic: None,
    })
}
