//! Time-outs that came too early are not recognised.

use linerate_model::change::Group;
use linerate_model::finding::{Finding, Severity};
use linerate_model::host::HostFacts;

use super::Rule;
use super::settings_support::{Expected, expect, host};

const ID: &str = "frto-off";
const KEY: &str = "net.ipv4.tcp_frto";
const CITATION: &str = "RFC 5682; Documentation/networking/ip-sysctl.rst";

pub(super) const RULE: Rule = Rule {
    id: ID,
    title: "Time-outs that came too early are not recognised.",
    explanation: "On paths whose delay jumps (mobile and wireless ones above all) the retransmission timer fires \
                  although nothing is lost. F-RTO finds that out from the next acknowledgements and takes the \
                  collapse of the window back.",
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
        text: "F-RTO is off: a jump of the delay that looks like a loss costs the whole window.",
        severity: Severity::Advice,
        group: Group::Features,
        source: CITATION,
        risk: "none known",
    };
    expect(host, &expected)
}
