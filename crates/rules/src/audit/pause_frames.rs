//! Ethernet's flow control has stopped somebody.

use linerate_model::fact::Fact;
use linerate_model::finding::{Finding, Severity};
use linerate_model::host::HostFacts;
use linerate_model::host::link::Link;
use linerate_units::PacketCount;

use super::Rule;
use super::link_support::{
    Saying, driver_counters, exceeds, host_with, link_that_received, part_of, received, working,
};

const ID: &str = "pause-frames";
const CITATION: &str = "IEEE 802.3 annex 31B; drivers' documentation";
/// From one pause for ten thousand packets on, it is no accident.
const USUAL: f64 = 1e-4;

pub(super) const RULE: Rule = Rule {
    id: ID,
    title: "Pause frames were sent or received.",
    explanation: "A device that cannot keep up asks its neighbour to stop for a moment. Sent pauses say that this \
        host was too slow: its rings, its processor, or its slot. Received ones say that the switch or the other \
        host was. Nothing is lost, but everything waits, also what goes elsewhere: a paused port of a switch fills \
        the switch's memory.",
    citation: CITATION,
    keys: &[],
    check,
    fires: || host_with(vec![link_with(&[("tx_pause_ctrl_phy", 900)])]),
    silent: || host_with(vec![link_with(&[("tx_pause_ctrl_phy", 0), ("rx_errors", 7)])]),
};

fn link_with(counters: &[(&str, u64)]) -> Link {
    let counters = counters.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
    Link { driver_counters: Fact::Known(counters), ..link_that_received(1_000_000) }
}

fn check(host: &HostFacts) -> Vec<Finding> {
    working(host).flat_map(|link| [sent(link), heard(link)].into_iter().flatten()).collect()
}

fn is_pause(name: &str, direction: &str) -> bool {
    // Durations and settings are no numbers of frames.
    let is_count = (name.contains("pause") || name.contains("flow_control")) && !name.contains("duration");
    is_count && name.contains(direction) && !name.contains("storm")
}

fn sent(link: &Link) -> Option<Finding> {
    let name = &link.name;
    let text = |part: &str| {
        format!(
            "{name} has asked its neighbour to stop for every {part} packets received: this \
        host could not take them in time."
        )
    };
    let remedy = vec![
        format!("ip -s -s link show {name} (missed packets?)"),
        format!("ethtool -g {name} (is the receive ring at its largest?)"),
        "linerate audit --explain pci-link-narrow".to_owned(),
    ];
    look(link, "tx_", Severity::Advice, text, remedy)
}

fn heard(link: &Link) -> Option<Finding> {
    let name = &link.name;
    let text = |part: &str| {
        format!(
            "{name} was asked to stop sending for every {part} packets received: the switch \
        or the other end could not take them in time."
        )
    };
    let remedy =
        vec!["look at the switch's port: which way out of it is full, or which host behind it sends pauses".to_owned()];
    look(link, "rx_", Severity::Note, text, remedy)
}

fn look(
    link: &Link,
    direction: &str,
    severity: Severity,
    text: impl Fn(&str) -> String,
    remedy: Vec<String>,
) -> Option<Finding> {
    let (pauses, evidence) = driver_counters(link, |name| is_pause(name, direction));
    let packets = received(link).map_or(0, PacketCount::get);
    (pauses > 0).then(|| {
        let saying = Saying {
            rule: (ID, CITATION),
            severity: if exceeds(pauses, packets, USUAL) { severity } else { Severity::Note },
            subject: link.name.clone(),
            text: text(&part_of(pauses, packets)),
            evidence,
            remedy,
            risk: "without flow control the same packets are lost instead; switch it off only where something else \
                slows the sender",
        };
        saying.finding()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_directions_and_their_weight() {
        let found = check(&host_with(vec![link_with(&[
            ("tx_pause", 900),
            ("rx_flow_control_xoff", 5),
            ("rx_pause_duration", 9),
        ])]));
        let severities: Vec<_> = found.iter().map(|finding| finding.severity).collect();
        assert_eq!(severities, [Severity::Advice, Severity::Note]);
        assert_eq!(found[1].evidence, ["eth0: rx_flow_control_xoff = 5"]);
        let few = check(&host_with(vec![link_with(&[("tx_pause", 9)])]));
        assert_eq!(few[0].severity, Severity::Note);
    }
}
