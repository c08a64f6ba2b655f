//! Every connection searches for its path MTU, needed or not.

use linerate_model::change::Group;
use linerate_model::finding::{Finding, Severity};
use linerate_model::host::HostFacts;

use super::Rule;
use super::settings_support::{Expected, expect, host};

const ID: &str = "mtu-probing-always";
const KEY: &str = "net.ipv4.tcp_mtu_probing";
const CITATION: &str = "RFC 4821; lab:300m-20ms-black-hole-probing-always (285 of 287 Mbit/s)";

pub(super) const RULE: Rule = Rule {
    id: ID,
    title: "Every connection searches for its path MTU, needed or not.",
    explanation: "With 2, each connection begins with segments of tcp_base_mss (1024 bytes) and searches upwards. \
                  With 1 it does so only when full segments vanish. 2 is right on a path that is known to swallow \
                  ICMP.",
    citation: CITATION,
    keys: &[KEY],
    check,
    fires: || host(&[(KEY, "2")]),
    silent: || host(&[(KEY, "1")]),
};

fn check(host: &HostFacts) -> Vec<Finding> {
    let expected = Expected {
        rule: ID,
        key: KEY,
        right: |value| value != 2,
        to: "1",
        text: "Path MTU probing is always on: each connection starts with segments of 1024 bytes and searches, which \
               only a path that swallows ICMP needs; 1 does it when packets vanish.",
        severity: Severity::Note,
        group: Group::Mtu,
        source: CITATION,
        risk: "on a path that swallows ICMP, 1 stalls for some seconds before it searches",
    };
    expect(host, &expected)
}
