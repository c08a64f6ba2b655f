//! A daemon (bpftune) changes settings at run time.

use linerate_model::fact::Fact;
use linerate_model::finding::{AuditFinding, FindingSeverity};
use linerate_model::host::HostFacts;

use super::AuditRule;
use super::link_support::FindingDraft;

const ID: &str = "settings-change-themselves";
const CITATION: &str = "bpftune(8)";

pub(super) const RULE: AuditRule = AuditRule {
    id: ID,
    title: "bpftune is running and changes settings automatically.",
    explanation: "bpftune raises buffers, backlogs and more when they are too small. It leaves settings alone once \
        they are set by hand, but a comparison of before and after may compare two states that it made, and the values \
        in files are not those in effect.",
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

fn check(host: &HostFacts) -> Vec<AuditFinding> {
    if host.managers.bpftune.known() != Some(&true) {
        return Vec::new();
    }
    let draft = FindingDraft {
        rule: (ID, CITATION),
        severity: FindingSeverity::Note,
        subject: "bpftune".to_owned(),
        text: "bpftune is running: settings may change during a measurement, and differ from all files.".to_owned(),
        evidence: vec!["process bpftune".to_owned()],
        remedy: vec!["systemctl stop bpftune (while settings are compared)".to_owned()],
        risk: "settings that it would have raised stay unchanged meanwhile",
    };
    vec![draft.finding()]
}
