//! The PCI Express link is too narrow for the network link.

use linerate_model::fact::Fact;
use linerate_model::finding::{AuditFinding, FindingSeverity};
use linerate_model::host::HostFacts;
use linerate_model::host::link::{NetworkLink, PciLink};
use linerate_units::BitRate;

use super::AuditRule;
use super::link_support::{FindingDraft, host_with, link, working};

const ID: &str = "pci-link-narrow";
const CITATION: &str = "PCI Express Base Specification (8b/10b and 128b/130b encoding); 90 % of what is left for \
    headers and acknowledgements";
/// PCI Express bandwidth needed per link bandwidth: descriptors and completions use it, too.
const MIN_PCI_BANDWIDTH_FACTOR: f64 = 1.1;

pub(super) const RULE: AuditRule = AuditRule {
    id: ID,
    title: "The PCI Express link has fewer or slower lanes than the device supports, or than its network link needs.",
    explanation: "A device can move what its PCI Express link carries: transfers per second, times lanes, times 0.8 \
        (up to 5 GT/s) or 128/130, times 0.9. When that is below 1.1 times the speed of its network link, the \
        network link cannot be filled. The cause is a slot with fewer lanes, a riser, a setting of the firmware, or \
        a bad contact: cards that once ran at full width and now do not are not rare.",
    citation: CITATION,
    keys: &[],
    check,
    fires: || host_with(vec![link_in_slot(2.5e9, 4)]),
    silent: || host_with(vec![link_in_slot(8e9, 8)]),
};

fn link_in_slot(lane_rate: f64, lanes: u32) -> NetworkLink {
    let rate = BitRate::from_bits_per_second;
    let pci = PciLink { lane_rate: rate(lane_rate), lanes, highest_lane_rate: rate(8e9), most_lanes: 8 };
    NetworkLink { pci: Fact::Known(pci), ..link("eth0") }
}

fn check(host: &HostFacts) -> Vec<AuditFinding> {
    working(host).filter_map(check_link).collect()
}

fn check_link(link: &NetworkLink) -> Option<AuditFinding> {
    let (pci, speed) = (link.pci.known()?, *link.speed.known()?);
    let needed = BitRate::from_bits_per_second(speed.bits_per_second() * MIN_PCI_BANDWIDTH_FACTOR);
    let name = &link.name;
    let gigatransfers = |rate: BitRate| format!("{} GT/s", rate.bits_per_second() / 1e9);
    let slot = format!("{} x {}", gigatransfers(pci.lane_rate), pci.lanes);
    let (severity, text) = if pci.usable() < needed {
        let text = format!(
            "{name} is in a slot that carries {} per direction ({slot}); its link at {speed} needs \
            {needed}.",
            pci.usable()
        );
        (FindingSeverity::Warning, text)
    } else if pci.is_reduced() {
        let text = format!(
            "{name} runs at {slot}, below the {} x {} that it supports; that is still enough for \
            {speed}.",
            gigatransfers(pci.highest_lane_rate),
            pci.most_lanes
        );
        (FindingSeverity::Note, text)
    } else {
        return None;
    };
    let draft = FindingDraft {
        rule: (ID, CITATION),
        severity,
        subject: name.clone(),
        text,
        evidence: vec![
            format!(
                "{name}: PCI Express {slot}, at most {} x {}",
                gigatransfers(pci.highest_lane_rate),
                pci.most_lanes
            ),
            format!("{name}: {speed}"),
        ],
        remedy: vec![
            format!("lspci -vv -s $(basename $(readlink /sys/class/net/{name}/device)) (LnkCap and LnkSta)"),
            "move the card to a wider slot, or check the firmware for a setting that splits the lanes".to_owned(),
        ],
        risk: "the host must be switched off for it",
    };
    Some(draft.finding())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_narrow_is_worse_than_reduced() {
        let severity =
            |rate, lanes| check(&host_with(vec![link_in_slot(rate, lanes)])).first().map(|finding| finding.severity);
        // 5 GT/s x 4 x 0.8 x 0.9 = 14.4 Gbit/s is enough for 11 Gbit/s; 2.5 GT/s x 4 is 7.2.
        assert_eq!(
            (severity(2.5e9, 4), severity(5e9, 4)),
            (Some(FindingSeverity::Warning), Some(FindingSeverity::Note))
        );
        assert_eq!(severity(8e9, 8), None);
    }
}
