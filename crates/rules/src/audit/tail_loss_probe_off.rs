//! The end of a transfer is not probed for loss.

use linerate_model::change::Group;
use linerate_model::finding::{Finding, Severity};
use linerate_model::host::HostFacts;

use super::Rule;
use super::settings_support::{Expected, expect, host};

const ID: &str = "tail-loss-probe-off";
const KEY: &str = "net.ipv4.tcp_early_retrans";
const CITATION: &str = "RFC 8985 section 7; Documentation/networking/ip-sysctl.rst";

pub(super) const RULE: Rule = Rule {
    id: ID,
    title: "The end of a transfer is not probed for loss.",
    explanation: "When the last segments of a request or answer are lost, nothing arrives that would tell. A probe \
                  after two round trips finds out; without it the sender waits for its time-out.",
    citation: CITATION,
    keys: &[KEY],
    check,
    fires: || host(&[(KEY, "0")]),
    silent: || host(&[(KEY, "3")]),
};

fn check(host: &HostFacts) -> Vec<Finding> {
    let expected = Expected {
        rule: ID,
        key: KEY,
        right: |value| value >= 3,
        to: "3",
        text: "Tail loss probes are off (tcp_early_retrans = {}): a loss at the end of a request waits for a time-out \
               of at least 200 ms.",
        severity: Severity::Warning,
        group: Group::Features,
        source: CITATION,
        risk: "none known",
    };
    expect(host, &expected)
}
