//! A handshake that ECN breaks is not tried without it.

use linerate_model::change::Group;
use linerate_model::finding::{Finding, Severity};
use linerate_model::host::HostFacts;

use super::Rule;
use super::settings_support::{Expected, expect, host};

const ID: &str = "ecn-fallback-off";
const KEY: &str = "net.ipv4.tcp_ecn_fallback";
const CITATION: &str = "RFC 3168 section 6.1.1.1; Documentation/networking/ip-sysctl.rst";

pub(super) const RULE: Rule = Rule {
    id: ID,
    title: "A handshake that ECN breaks is not tried without it.",
    explanation: "RFC 3168 allows a host to try again without ECN when packets with it vanish. With the fallback off, \
                  such hosts cannot be reached at all.",
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
        right: |value| value != 0,
        to: "1",
        text: "Where a firewall drops the packets of an ECN handshake, connections fail instead of being tried \
               without.",
        severity: Severity::Advice,
        group: Group::Features,
        source: CITATION,
        risk: "none known",
    };
    expect(host, &expected)
}
