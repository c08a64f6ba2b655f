//! TCP timestamps are switched off.

use linerate_model::change::Group;
use linerate_model::finding::{Finding, Severity};
use linerate_model::host::HostFacts;

use super::Rule;
use super::settings_support::{Expected, expect, host};

const ID: &str = "timestamps-off";
const KEY: &str = "net.ipv4.tcp_timestamps";
const CITATION: &str = "RFC 7323 sections 4 and 5; lab:300m-20ms-half-buffer-no-timestamps; docs/seeds.md";

pub(super) const RULE: Rule = Rule {
    id: ID,
    title: "TCP timestamps are switched off.",
    explanation: "They take 12 of 1460 bytes and give a round trip for every acknowledgement, protection against \
                  sequence numbers that come round (PAWS; from 286 Mbit/s on within one segment lifetime), the \
                  recognition of needless retransmissions, and the reuse of ports in TIME-WAIT.",
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
        text: "Timestamps are off. That gains 0.8 % at best (measured: 238 Mbit/s with them, 218 without, which is \
               noise), and loses protection against sequence numbers that come round, which at 1 Gbit/s takes 34 s.",
        severity: Severity::Warning,
        group: Group::Features,
        source: CITATION,
        risk: "each host's uptime can be guessed from them only with the value 2: keep 1",
    };
    expect(host, &expected)
}
