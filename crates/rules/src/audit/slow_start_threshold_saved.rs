//! One bad transfer slows the next ones down.

use linerate_model::change::Group;
use linerate_model::finding::{Finding, Severity};
use linerate_model::host::HostFacts;

use super::Rule;
use super::settings_support::{Expected, expect, host};

const ID: &str = "slow-start-threshold-saved";
const KEY: &str = "net.ipv4.tcp_no_ssthresh_metrics_save";
const CITATION: &str = "Documentation/networking/ip-sysctl.rst (tcp_no_ssthresh_metrics_save)";

pub(super) const RULE: Rule = Rule {
    id: ID,
    title: "One bad transfer slows the next ones down.",
    explanation: "With the value 0 the slow start threshold of a connection is remembered for the next one to the \
                  same host: after a transfer with losses, the next leaves slow start too early.",
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
        text: "The slow start threshold is remembered from one connection to the next: after one with losses, the \
               next one to the same host begins slowly.",
        severity: Severity::Warning,
        group: Group::Features,
        source: CITATION,
        risk: "none known",
    };
    expect(host, &expected)
}
