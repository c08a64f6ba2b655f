//! A program changes settings while the host runs.

use linerate_model::fact::Fact;
use linerate_model::finding::{Finding, Severity};
use linerate_model::host::HostFacts;

use super::Rule;
use super::link_support::Saying;

const ID: &str = "settings-change-themselves";
const CITATION: &str = "bpftune(8)";

pub(super) const RULE: Rule = Rule {
    id: ID,
    title: "bpftune runs, which changes settings by itself.",
    explanation: "bpftune raises buffers, backlogs and more when it sees that they are short. What one sets by hand it leaves alone from then on, but a comparison of before and after may compare two states that it made, and what a file says is not what is in force.",
    citation: CITATION,
    keys: &[],
    check,
    fires: || host(true),
    silent: || host(false),
};

fn host(runs: bool) -> HostFacts {
    let mut host = HostFacts::default();
    host.managers.bpftune = Fact::Known(runs);
    host
}

fn check(host: &HostFacts) -> Vec<Finding> {
    if host.managers.bpftune.known() != Some(&true) {
        return Vec::new();
    }
    let saying = Saying {
        rule: (ID, CITATION),
        severity: Severity::Note,
        subject: "bpftune".to_owned(),
        text: "bpftune runs: settings may change while one measures, and differ from all files.".to_owned(),
        evidence: vec!["a process bpftune".to_owned()],
        remedy: vec!["systemctl stop bpftune (while settings are compared)".to_owned()],
        risk: "what it would have raised stays as it is meanwhile",
    };
    vec![saying.finding()]
}
