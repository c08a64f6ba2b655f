//! Receive buffers do not grow with the path.

use linerate_model::change::Group;
use linerate_model::finding::{Finding, Severity};
use linerate_model::host::HostFacts;

use super::Rule;
use super::settings_support::{Expected, expect, host};

const ID: &str = "receive-autotuning-off";
const KEY: &str = "net.ipv4.tcp_moderate_rcvbuf";
const CITATION: &str = "Documentation/networking/ip-sysctl.rst (tcp_moderate_rcvbuf)";

pub(super) const RULE: Rule = Rule {
    id: ID,
    title: "Receive buffers do not grow with the path.",
    explanation: "Auto-tuning raises a connection's receive buffer towards the third number of tcp_rmem while data \
                  arrives faster. Without it each connection keeps the second number, however long the path is. A \
                  program that sets SO_RCVBUF switches it off for its own sockets only.",
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
        text: "Receive auto-tuning is off: every connection keeps its first buffer. With 131072 bytes that is about \
               33 Mbit/s at 20 ms.",
        severity: Severity::Critical,
        group: Group::Buffers,
        source: CITATION,
        risk: "none known",
    };
    expect(host, &expected)
}
