//! Malformed lines of settings files, and unreadable files.

use linerate_model::fact::Fact;
use linerate_model::finding::{AuditFinding, FindingSeverity};
use linerate_model::host::HostFacts;
use linerate_model::host::settings::{ReadOrder, SettingsContent, SettingsFile, syntax};

use super::AuditRule;
use super::settings_support::{host, host_with_files, is_advisable};

const ID: &str = "settings-line-ignored";
const CITATION: &str = "sysctl.d(5), sysctl.conf(5): `key = value`, comments begin with # or ;";

pub(super) const RULE: AuditRule = AuditRule {
    id: ID,
    title: "A line of a settings file is not an assignment, or the file cannot be read.",
    explanation: "systemd-sysctl and sysctl skip such a line with one message in the journal.",
    citation: CITATION,
    keys: &[],
    check,
    fires: || host_with_files(&[], &[("/etc/sysctl.d/a.conf", "net.ipv4.tcp_rmem 4096 131072 33554432\n")]),
    silent: || host(&[]),
};

fn check(host: &HostFacts) -> Vec<AuditFinding> {
    host.settings.files_read(ReadOrder::Procps).into_iter().flat_map(|file| file_findings(host, file)).collect()
}

fn file_findings(host: &HostFacts, file: &SettingsFile) -> Vec<AuditFinding> {
    let finding = |severity, text: String, evidence: String, remedy: String| AuditFinding {
        notes: Vec::new(),
        rule: ID.to_owned(),
        severity,
        subject: file.path.clone(),
        text,
        evidence: vec![evidence],
        source: CITATION.to_owned(),
        risk: "none known".to_owned(),
        remedy: vec![remedy],
        change: None,
    };
    let content: &SettingsContent = match &file.content {
        Fact::Known(content) => content,
        Fact::Unknown(why) => {
            let text = format!("{} cannot be read: its settings are unknown.", file.path);
            return vec![finding(FindingSeverity::Note, text, why.to_string(), format!("ls -lL {}", file.path))];
        }
    };
    let lines = content.nonsense.iter().map(|line| {
        let place = format!("{}:{}", file.leads_to.as_deref().unwrap_or(&file.path), line.line);
        let text = format!("{place} is not an assignment and has no effect.");
        let remedy = match line.text.split_once([' ', '\t']) {
            Some((key, value)) if is_assignment(host, key, value) => format!("edit {place}: {key} = {}", value.trim()),
            _ => format!("delete {place}"),
        };
        finding(FindingSeverity::Warning, text, format!("{place}: {}", line.text), remedy)
    });
    lines.collect()
}

/// True when the line would be an assignment with an equals sign, and an advisable one.
fn is_assignment(host: &HostFacts, key: &str, value: &str) -> bool {
    key.contains(['.', '/']) && is_advisable(host, &syntax::normalised_name(key), value)
}
