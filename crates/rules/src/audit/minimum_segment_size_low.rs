//! A peer may force tiny segments.

use linerate_model::change::Group;
use linerate_model::finding::{Finding, Severity};
use linerate_model::host::HostFacts;

use super::Rule;
use super::settings_support::{Expected, expect, host};

const ID: &str = "minimum-segment-size-low";
const KEY: &str = "net.ipv4.tcp_min_snd_mss";
const CITATION: &str = "Documentation/networking/ip-sysctl.rst (tcp_min_snd_mss); CVE-2019-11479";

pub(super) const RULE: Rule = Rule {
    id: ID,
    title: "A peer may force tiny segments.",
    explanation: "The least segment size that a peer may impose was made a setting against CVE-2019-11479: with very \
                  small segments a peer makes this host work for every few bytes.",
    citation: CITATION,
    keys: &[KEY],
    check,
    fires: || host(&[(KEY, "40")]),
    silent: || host(&[(KEY, "48")]),
};

fn check(host: &HostFacts) -> Vec<Finding> {
    let expected = Expected {
        rule: ID,
        key: KEY,
        right: |value| value >= 48,
        to: "48",
        text: "A peer may force segments of {} bytes of which most are headers (CVE-2019-11479).",
        severity: Severity::Warning,
        group: Group::Features,
        source: CITATION,
        risk: "none known: no honest path needs less",
    };
    expect(host, &expected)
}
