//! The link is slower than the device could be.

use linerate_model::fact::Fact;
use linerate_model::finding::{Finding, Severity};
use linerate_model::host::HostFacts;
use linerate_model::host::link::Link;
use linerate_units::BitRate;

use super::Rule;
use super::link_support::{Saying, host_with, link, working};

const ID: &str = "link-speed-low";
const CITATION: &str = "IEEE 802.3 clause 28 (autonegotiation) and clause 40 (1000BASE-T needs all four pairs)";
/// At this speed and below, a device for a gigabit has lost a pair of wires, or talks to something very old.
const TWO_PAIRS: f64 = 1e8;

pub(super) const RULE: Rule = Rule {
    id: ID,
    title: "The link is slower than the device could be.",
    explanation: "Both ends agree on the highest speed that both can do over this cable. 100 Mbit/s on a device for \
        a gigabit nearly always means that two of the four pairs have no contact, or that somebody has fixed the \
        speed at one end. A card for 25 Gbit/s at a switch's port of 10 is no fault, but worth knowing before one \
        looks elsewhere.",
    citation: CITATION,
    keys: &[],
    check,
    fires: || host_with(vec![link_at(1e8, 1e9)]),
    silent: || host_with(vec![link_at(1e9, 1e9)]),
};

fn link_at(speed: f64, highest: f64) -> Link {
    let rate = |bits| Fact::Known(BitRate::from_bits_per_second(bits));
    Link { speed: rate(speed), highest_speed: rate(highest), ..link("eth0") }
}

fn check(host: &HostFacts) -> Vec<Finding> {
    working(host).filter(|link| link.is_hardware()).filter_map(look).collect()
}

fn look(link: &Link) -> Option<Finding> {
    let (speed, highest) = (*link.speed.known()?, *link.highest_speed.known()?);
    (speed < highest).then_some(())?;
    let lost_pairs = speed.bits_per_second() <= TWO_PAIRS;
    let name = &link.name;
    let saying = Saying {
        rule: (ID, CITATION),
        severity: if lost_pairs { Severity::Warning } else { Severity::Note },
        subject: name.clone(),
        text: format!("{name} runs at {speed}; the device could do {highest}."),
        evidence: vec![format!("{name}: speed {speed}, at most {highest}")],
        remedy: vec![
            format!("ethtool {name} (what does the link partner offer?)"),
            "try another cable and another port of the switch; leave autonegotiation on at both ends".to_owned(),
        ],
        risk: "the link goes down for some seconds",
    };
    Some(saying.finding())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slower_switch_is_worth_a_note() {
        assert_eq!(check(&host_with(vec![link_at(1e10, 2.5e10)]))[0].severity, Severity::Note);
        assert_eq!(check(&host_with(vec![link_at(1e8, 1e9)]))[0].severity, Severity::Warning);
    }
}
