//! Lines of settings files that nobody understands, and files that nobody can read.

use linerate_model::fact::Fact;
use linerate_model::finding::{Finding, Severity};
use linerate_model::host::HostFacts;
use linerate_model::host::settings::{Content, Order, SettingsFile};

use super::Rule;
use super::settings_support::{host, host_with_files};

const ID: &str = "settings-line-ignored";
const CITATION: &str = "sysctl.d(5), sysctl.conf(5): `key = value`, comments begin with # or ;";

pub(super) const RULE: Rule = Rule {
    id: ID,
    title: "A line of a settings file is no assignment, or the file cannot be read.",
    explanation: "Both programs pass over such a line with one message in the journal, and read on.",
    citation: CITATION,
    keys: &[],
    check,
    fires: || host_with_files(&[], &[("/etc/sysctl.d/a.conf", "net.ipv4.tcp_rmem 4096 131072 33554432\n")]),
    silent: || host(&[]),
};

fn check(host: &HostFacts) -> Vec<Finding> {
    host.settings.files_read(Order::Procps).into_iter().flat_map(of_file).collect()
}

fn of_file(file: &SettingsFile) -> Vec<Finding> {
    let finding = |severity, text: String, evidence: String, remedy: String| Finding {
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
    let content: &Content = match &file.content {
        Fact::Known(content) => content,
        Fact::Unknown(why) => {
            let text = format!("{} cannot be read, so what it sets is not known here.", file.path);
            return vec![finding(Severity::Note, text, why.to_string(), format!("ls -lL {}", file.path))];
        }
    };
    let lines = content.nonsense.iter().map(|line| {
        let place = format!("{}:{}", file.leads_to.as_deref().unwrap_or(&file.path), line.line);
        let text = format!("{place} is no assignment, and does nothing.");
        let remedy = match line.text.split_once([' ', '\t']) {
            Some((key, value)) if key.contains(['.', '/']) => format!("edit {place}: {key} = {}", value.trim()),
            _ => format!("delete {place}"),
        };
        finding(Severity::Warning, text, format!("{place}: {}", line.text), remedy)
    });
    lines.collect()
}
