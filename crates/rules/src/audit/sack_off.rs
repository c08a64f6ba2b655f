//! Selective acknowledgements are switched off.

use linerate_model::change::Group;
use linerate_model::finding::{Finding, Severity};
use linerate_model::host::HostFacts;

use super::Rule;
use super::settings_support::{Expected, expect, host};

const ID: &str = "sack-off";
const KEY: &str = "net.ipv4.tcp_sack";
const CITATION: &str = "RFC 2018; lab:300m-20ms-half-buffer-no-sack; docs/seeds.md";

pub(super) const RULE: Rule = Rule {
    id: ID,
    title: "Selective acknowledgements are switched off.",
    explanation: "Without them the sender learns of one lost segment per round trip, and a queue that overflows in \
                  slow start costs hundreds of round trips. Old recipes for 10 Gbit/s switch them off as a gain; \
                  those lines come from the README of Intel's ixgb driver of 2004, whose processors could not search \
                  long lists. It was also done against CVE-2019-11477, which kernels since June 2019 do not have.",
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
        text: "Selective acknowledgements are off: each lost segment costs a round trip. Measured at 300 Mbit/s and \
               20 ms with a queue of half a bandwidth-delay product: 4.9 to 8.0 instead of 212 Mbit/s (kernel 6.18), a \
               little more than half in the lab (6.12); with 0.1 % loss BBR falls from 280 to 96-115 Mbit/s.",
        severity: Severity::Critical,
        group: Group::Features,
        source: CITATION,
        risk: "none known: kernels without the errors of 2019 search their lists quickly",
    };
    expect(host, &expected)
}
