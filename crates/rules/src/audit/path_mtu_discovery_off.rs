//! Path MTU discovery is switched off.

use linerate_model::change::Group;
use linerate_model::finding::{Finding, Severity};
use linerate_model::host::HostFacts;

use super::Rule;
use super::settings_support::{Expected, expect, host};

const ID: &str = "path-mtu-discovery-off";
const KEY: &str = "net.ipv4.ip_no_pmtu_disc";
const CITATION: &str = "RFC 1191; RFC 4821; Documentation/networking/ip-sysctl.rst (ip_no_pmtu_disc)";

pub(super) const RULE: Rule = Rule {
    id: ID,
    title: "Path MTU discovery is switched off.",
    explanation: "The value 1 sends packets that may be fragmented, and answers ICMP messages by going down to the \
                  least size; 2 and 3 do so for sockets that do not ask otherwise. Large packets then are fragmented \
                  or TCP works with 552 bytes. If ICMP is lost on the way, the remedy is tcp_mtu_probing.",
    citation: CITATION,
    keys: &[KEY],
    check,
    fires: || host(&[(KEY, "1")]),
    silent: || host(&[(KEY, "0")]),
};

fn check(host: &HostFacts) -> Vec<Finding> {
    let expected = Expected {
        rule: ID,
        key: KEY,
        right: |value| value == 0,
        to: "0",
        text: "Path MTU discovery is off (ip_no_pmtu_disc = {}): where a link is smaller, packets are fragmented, or \
               segments shrink to the least size.",
        severity: Severity::Warning,
        group: Group::Mtu,
        source: CITATION,
        risk: "where ICMP is filtered, connections may hang that worked: then set net.ipv4.tcp_mtu_probing=1",
    };
    expect(host, &expected)
}
