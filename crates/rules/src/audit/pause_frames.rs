//! Ethernet pause frames were sent or received.

use linerate_model::fact::Fact;
use linerate_model::finding::{AuditFinding, FindingSeverity};
use linerate_model::host::HostFacts;
use linerate_model::host::link::NetworkLink;
use linerate_units::PacketCount;

use super::AuditRule;
use super::link_support::{
    FindingDraft, driver_counters, exceeds, host_with, link_that_received, part_of, received, working,
};

const ID: &str = "pause-frames";
const CITATION: &str = "IEEE 802.3 annex 31B; drivers' documentation";
/// Ratio of pause frames to packets from which they are no exception.
const MAX_USUAL_PAUSE_RATIO: f64 = 1e-4;

pub(super) const RULE: AuditRule = AuditRule {
    id: ID,
    title: "Pause frames were sent or received.",
    explanation: "A device that cannot keep up asks its neighbour to stop for a moment. Sent pauses mean that this \
    host was too slow: its rings, its processor, or its slot. Received ones mean that the switch or the other \
    host was. Nothing is lost, but all traffic waits, also traffic to other hosts: a paused switch port fills \
    the switch's memory.",
    citation: CITATION,
    keys: &[],
    check,
    fires: || host_with(vec![link_with(&[("tx_pause_ctrl_phy", 900)])]),
    silent: || host_with(vec![link_with(&[("tx_pause_ctrl_phy", 0), ("rx_errors", 7)])]),
};

fn link_with(counters: &[(&str, u64)]) -> NetworkLink {
    let counters = counters.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
    NetworkLink { driver_counters: Fact::Known(counters), ..link_that_received(1_000_000) }
}

fn check(host: &HostFacts) -> Vec<AuditFinding> {
    working(host).flat_map(|link| [sent_pauses(link), received_pauses(link)].into_iter().flatten()).collect()
}

fn is_pause(name: &str, direction: &str) -> bool {
    // Durations and settings do not count frames.
    let is_count = (name.contains("pause") || name.contains("flow_control")) && !name.contains("duration");
    is_count && name.contains(direction) && !name.contains("storm")
}

fn sent_pauses(link: &NetworkLink) -> Option<AuditFinding> {
    let name = &link.name;
    let text = |part: &str| {
        format!(
            "{name} asked its neighbour to pause (frames per packets received: {part}): this host could not \
            process packets in time."
        )
    };
    let remedy = vec![
        format!("ip -s -s link show {name} (missed packets?)"),
        format!("ethtool -g {name} (is the receive ring at its largest?)"),
        "linerate audit --explain pci-link-narrow".to_owned(),
    ];
    check_pauses(link, "tx_", FindingSeverity::Advice, text, remedy)
}

fn received_pauses(link: &NetworkLink) -> Option<AuditFinding> {
    let name = &link.name;
    let text = |part: &str| {
        format!(
            "{name} was asked to pause (frames per packets received: {part}): the switch or the peer could not \
            process packets in time."
        )
    };
    let remedy = vec![
        "check the switch port: which of its outgoing ports is full, or which host behind it sends pauses".to_owned(),
    ];
    check_pauses(link, "rx_", FindingSeverity::Note, text, remedy)
}

fn check_pauses(
    link: &NetworkLink,
    direction: &str,
    severity: FindingSeverity,
    text: impl Fn(&str) -> String,
    remedy: Vec<String>,
) -> Option<AuditFinding> {
    let (pauses, evidence) = driver_counters(link, |name| is_pause(name, direction));
    let packets = received(link).map_or(0, PacketCount::get);
    (pauses > 0).then(|| {
        let draft = FindingDraft {
            rule: (ID, CITATION),
            severity: if exceeds(pauses, packets, MAX_USUAL_PAUSE_RATIO) { severity } else { FindingSeverity::Note },
            subject: link.name.clone(),
            text: text(&part_of(pauses, packets)),
            evidence,
            remedy,
            risk: "without flow control the same packets are lost; switch it off only where something else \
            slows the sender",
        };
        draft.finding()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_directions_and_their_severity() {
        let found = check(&host_with(vec![link_with(&[
            ("tx_pause", 900),
            ("rx_flow_control_xoff", 5),
            ("rx_pause_duration", 9),
        ])]));
        let severities: Vec<_> = found.iter().map(|finding| finding.severity).collect();
        assert_eq!(severities, [FindingSeverity::Advice, FindingSeverity::Note]);
        assert_eq!(found[1].evidence, ["eth0: rx_flow_control_xoff = 5"]);
        let few = check(&host_with(vec![link_with(&[("tx_pause", 9)])]));
        assert_eq!(few[0].severity, FindingSeverity::Note);
    }
}
