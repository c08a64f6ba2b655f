//! Explicit congestion notification is refused.

use linerate_model::change::Group;
use linerate_model::finding::{Finding, Severity};
use linerate_model::host::HostFacts;

use super::Rule;
use super::settings_support::{Expected, expect, host};

const ID: &str = "ecn-off";
const KEY: &str = "net.ipv4.tcp_ecn";
const CITATION: &str = "RFC 3168; lab:300m-20ms-ecn";

pub(super) const RULE: Rule = Rule {
    id: ID,
    title: "Explicit congestion notification is refused.",
    explanation: "2, the kernel's default, agrees when the other end asks. Queues can then mark packets instead of \
                  dropping them. 0 refuses.",
    citation: CITATION,
    keys: &[KEY],
    check,
    fires: || host(&[(KEY, "0")]),
    silent: || host(&[(KEY, "2")]),
};

fn check(host: &HostFacts) -> Vec<Finding> {
    let expected = Expected {
        rule: ID,
        key: KEY,
        right: |value| value != 0,
        to: "2",
        text: "ECN is refused even when the other end asks for it: queues that could mark packets have to drop them.",
        severity: Severity::Advice,
        group: Group::Features,
        source: CITATION,
        risk: "a few old firewalls drop packets that use it: ask for it (1) only after linerate path has shown that \
               marks survive",
    };
    expect(host, &expected)
}
