//! Windows are limited to 65535 bytes.

use linerate_model::change::Group;
use linerate_model::finding::{Finding, Severity};
use linerate_model::host::HostFacts;

use super::Rule;
use super::settings_support::{Expected, expect, host};

const ID: &str = "window-scaling-off";
const KEY: &str = "net.ipv4.tcp_window_scaling";
const CITATION: &str = "RFC 7323 section 2; lab:rhel-1g-1500us-no-window-scaling; docs/seeds.md";

pub(super) const RULE: Rule = Rule {
    id: ID,
    title: "Windows are limited to 65535 bytes.",
    explanation: "The window field of TCP has 16 bits; the scale that both ends agree on in the handshake makes \
                  larger ones possible. Without it no connection is faster than 65535 bytes per round trip, whatever \
                  its buffers are.",
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
        text: "Window scaling is off: no connection gets more than 65535 bytes per round trip, that is 26 Mbit/s at \
               20 ms and 5.2 Mbit/s at 100 ms. Measured at 1 Gbit/s and 1.5 ms: 272 instead of 956 Mbit/s.",
        severity: Severity::Critical,
        group: Group::Features,
        source: CITATION,
        risk: "none known",
    };
    expect(host, &expected)
}
