//! Loss detection by time is switched off.

use linerate_model::change::Group;
use linerate_model::finding::{Finding, Severity};
use linerate_model::host::HostFacts;

use super::Rule;
use super::settings_support::{Expected, expect, host};

const ID: &str = "rack-off";
const KEY: &str = "net.ipv4.tcp_recovery";
const CITATION: &str = "RFC 8985; Documentation/networking/ip-sysctl.rst";

pub(super) const RULE: Rule = Rule {
    id: ID,
    title: "Loss detection by time is switched off.",
    explanation: "RACK finds lost segments by the time at which others were sent. Without it, retransmissions that \
                  are lost again wait for a time-out, and packets that overtake count as lost.",
    citation: CITATION,
    keys: &[KEY],
    check,
    fires: || host(&[(KEY, "0")]),
    silent: || host(&[(KEY, "1")]),
};

fn check(host: &HostFacts) -> Vec<Finding> {
    let expected = Expected {
        rule: ID,
        key: KEY,
        right: |value| value & 1 == 1,
        to: "1",
        text: "RACK is off (tcp_recovery = {}): a retransmission that is lost again waits for a time-out of at least \
               200 ms.",
        severity: Severity::Warning,
        group: Group::Features,
        source: CITATION,
        risk: "none known",
    };
    expect(host, &expected)
}
