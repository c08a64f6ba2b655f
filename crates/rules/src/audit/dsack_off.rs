//! The receiver does not say which segments arrived twice.

use linerate_model::change::Group;
use linerate_model::finding::{Finding, Severity};
use linerate_model::host::HostFacts;

use super::Rule;
use super::settings_support::{Expected, expect, host};

const ID: &str = "dsack-off";
const KEY: &str = "net.ipv4.tcp_dsack";
const CITATION: &str = "RFC 2883; RFC 3708; Documentation/networking/ip-sysctl.rst";

pub(super) const RULE: Rule = Rule {
    id: ID,
    title: "The receiver does not say which segments arrived twice.",
    explanation: "With duplicate selective acknowledgements a sender that slowed down for packets that had only been \
                  overtaken learns of its error and undoes it.",
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
        text: "Duplicate selective acknowledgements are off: where packets overtake each other, the other end's \
               slow-downs for losses that were none are not undone.",
        severity: Severity::Warning,
        group: Group::Features,
        source: CITATION,
        risk: "none known",
    };
    expect(host, &expected)
}
