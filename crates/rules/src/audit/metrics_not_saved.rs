//! What connections learn of their paths is forgotten.

use linerate_model::change::Group;
use linerate_model::finding::{Finding, Severity};
use linerate_model::host::HostFacts;

use super::Rule;
use super::settings_support::{Expected, expect, host};

const ID: &str = "metrics-not-saved";
const KEY: &str = "net.ipv4.tcp_no_metrics_save";
const CITATION: &str = "Documentation/networking/ip-sysctl.rst (tcp_no_metrics_save, tcp_no_ssthresh_metrics_save)";

pub(super) const RULE: Rule = Rule {
    id: ID,
    title: "What connections learn of their paths is forgotten.",
    explanation: "The kernel keeps the round trip and the reordering that it saw, for the next connection to the same \
                  host. Old guides switch that off, as the slow start threshold used to be kept, too, and one bad \
                  transfer slowed the next ones down; since tcp_no_ssthresh_metrics_save exists and is 1, it no \
                  longer does.",
    citation: CITATION,
    keys: &[KEY],
    check,
    fires: || host(&[(KEY, "1")]),
    silent: || host(&[(KEY, "0")]),
};

fn check(host: &HostFacts) -> Vec<Finding> {
    let expected = Expected {
        rule: ID,
        key: KEY,
        right: |value| value == 0,
        to: "0",
        text: "New connections know nothing of earlier ones to the same host (tcp_no_metrics_save = 1). Its old \
               reason, the remembered slow start threshold, went with tcp_no_ssthresh_metrics_save.",
        severity: Severity::Note,
        group: Group::Features,
        source: CITATION,
        risk: "for a series of measurements, flush the memory between runs instead: ip tcp_metrics flush",
    };
    expect(host, &expected)
}
