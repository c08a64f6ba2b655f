//! The link is slower than the device supports.

use linerate_model::fact::Fact;
use linerate_model::finding::{AuditFinding, FindingSeverity};
use linerate_model::host::HostFacts;
use linerate_model::host::link::NetworkLink;
use linerate_units::BitRate;

use super::AuditRule;
use super::link_support::{FindingDraft, host_with, link, working};

const ID: &str = "link-speed-low";
const CITATION: &str = "IEEE 802.3 clause 28 (autonegotiation) and clause 40 (1000BASE-T needs all four pairs)";
/// Speed in bit/s up to which a gigabit device has lost a wire pair, or has a very old link partner.
const MAX_TWO_PAIR_RATE: f64 = 1e8;

pub(super) const RULE: AuditRule = AuditRule {
    id: ID,
    title: "The link is slower than the device supports.",
    explanation: "Both ends agree on the highest speed that both support over this cable. 100 Mbit/s on a \
    gigabit device nearly always means that two of the four pairs have no contact, or that the speed is \
    fixed at one end. A 25 Gbit/s card at a 10 Gbit/s switch port is no fault, but limits the \
    transfer.",
    citation: CITATION,
    keys: &[],
    check,
    fires: || host_with(vec![link_at(1e8, 1e9)]),
    silent: || host_with(vec![link_at(1e9, 1e9)]),
};

fn link_at(speed: f64, highest: f64) -> NetworkLink {
    let rate = |bits| Fact::Known(BitRate::from_bits_per_second(bits));
    NetworkLink { speed: rate(speed), max_speed: rate(highest), ..link("eth0") }
}

fn check(host: &HostFacts) -> Vec<AuditFinding> {
    working(host).filter(|link| link.is_hardware()).filter_map(check_link).collect()
}

fn check_link(link: &NetworkLink) -> Option<AuditFinding> {
    let (speed, highest) = (*link.speed.known()?, *link.max_speed.known()?);
    (speed < highest).then_some(())?;
    let lost_pairs = speed.bits_per_second() <= MAX_TWO_PAIR_RATE;
    let name = &link.name;
    let draft = FindingDraft {
        rule: (ID, CITATION),
        severity: if lost_pairs { FindingSeverity::Warning } else { FindingSeverity::Note },
        subject: name.clone(),
        text: format!("{name} runs at {speed}; the device supports {highest}."),
        evidence: vec![format!("{name}: speed {speed}, at most {highest}")],
        remedy: vec![
            format!("ethtool {name} (which speeds does the link partner advertise?)"),
            "try another cable and another port of the switch; leave autonegotiation on at both ends".to_owned(),
        ],
        risk: "the link goes down for some seconds",
    };
    Some(draft.finding())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slower_switch_is_worth_a_note() {
        assert_eq!(check(&host_with(vec![link_at(1e10, 2.5e10)]))[0].severity, FindingSeverity::Note);
        assert_eq!(check(&host_with(vec![link_at(1e8, 1e9)]))[0].severity, FindingSeverity::Warning);
    }
}
