//! Only one end of the link may send at a time.

use linerate_model::fact::Fact;
use linerate_model::finding::{Finding, Severity};
use linerate_model::host::HostFacts;
use linerate_model::host::link::{Duplex, Link};

use super::Rule;
use super::link_support::{Saying, host_with, link, working};

const ID: &str = "half-duplex";
const CITATION: &str = "IEEE 802.3 clause 28 (a device without answer to its autonegotiation has to assume half \
    duplex)";

pub(super) const RULE: Rule = Rule {
    id: ID,
    title: "Only one end of the link may send at a time.",
    explanation: "Half duplex on a cable with two ends is nearly always a mismatch: one end was set to full duplex \
        by hand, the other one negotiated, got no answer and had to assume half. Then what one end sends while the \
        other does is lost as a late collision, which shows only under load, and more with both directions busy.",
    citation: CITATION,
    keys: &[],
    check,
    fires: || host_with(vec![Link { duplex: Fact::Known(Duplex::Half), ..link("eth0") }]),
    silent: || host_with(vec![Link { duplex: Fact::Known(Duplex::Full), ..link("eth0") }]),
};

fn check(host: &HostFacts) -> Vec<Finding> {
    let half = |link: &&Link| link.is_hardware() && link.duplex.known() == Some(&Duplex::Half);
    let say = |link: &Link| {
        let name = &link.name;
        let speed = link.speed.known().map(|speed| format!(" at {speed}")).unwrap_or_default();
        let saying = Saying {
            rule: (ID, CITATION),
            severity: Severity::Critical,
            subject: name.clone(),
            text: format!("{name} is half duplex{speed}: packets are lost as soon as both ends send."),
            evidence: vec![format!("{name}: half duplex{speed}")],
            remedy: vec![
                format!("ethtool -s {name} autoneg on"),
                "switch autonegotiation on at the switch's port, too".to_owned(),
            ],
            risk: "the link goes down for some seconds",
        };
        saying.finding()
    };
    working(host).filter(half).map(say).collect()
}
