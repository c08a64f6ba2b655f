//! The link is half duplex: only one end may send at a time.

use linerate_model::fact::Fact;
use linerate_model::finding::{AuditFinding, FindingSeverity};
use linerate_model::host::HostFacts;
use linerate_model::host::link::{DuplexMode, NetworkLink};

use super::AuditRule;
use super::link_support::{FindingDraft, host_with, link, working};

const ID: &str = "half-duplex";
const CITATION: &str = "IEEE 802.3 clause 28 (a device without answer to its autonegotiation has to assume half \
    duplex)";

pub(super) const RULE: AuditRule = AuditRule {
    id: ID,
    title: "The link is half duplex: only one end may send at a time.",
    explanation: "Half duplex on a cable with two ends is nearly always a mismatch: one end was set to full duplex \
    by hand, the other one negotiated, got no answer and had to assume half. Frames that both ends send at the \
    same time are then lost as late collisions, which shows only under load, and most with both directions busy.",
    citation: CITATION,
    keys: &[],
    check,
    fires: || host_with(vec![NetworkLink { duplex: Fact::Known(DuplexMode::Half), ..link("eth0") }]),
    silent: || host_with(vec![NetworkLink { duplex: Fact::Known(DuplexMode::Full), ..link("eth0") }]),
};

fn check(host: &HostFacts) -> Vec<AuditFinding> {
    let half = |link: &&NetworkLink| link.is_hardware() && link.duplex.known() == Some(&DuplexMode::Half);
    let to_finding = |link: &NetworkLink| {
        let name = &link.name;
        let speed = link.speed.known().map(|speed| format!(" at {speed}")).unwrap_or_default();
        let draft = FindingDraft {
            rule: (ID, CITATION),
            severity: FindingSeverity::Critical,
            subject: name.clone(),
            text: format!("{name} is half duplex{speed}: packets are lost as soon as both ends send."),
            evidence: vec![format!("{name}: half duplex{speed}")],
            remedy: vec![
                format!("ethtool -s {name} autoneg on"),
                "switch autonegotiation on at the switch port, too".to_owned(),
            ],
            risk: "the link goes down for some seconds",
        };
        draft.finding()
    };
    working(host).filter(half).map(to_finding).collect()
}
