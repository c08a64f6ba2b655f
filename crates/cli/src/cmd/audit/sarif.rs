//! An audit as SARIF 2.1.0 (OASIS), which code scanning services and editors read.

use linerate_model::finding::{AuditFinding, FindingSeverity};
use linerate_model::host::HostFacts;
use linerate_model::host::settings::{ReadOrder, SettingSource};
use linerate_rules::audit::{AuditRule, RULES};
use serde_json::{Value, json};

use super::VERSION;

/// Complete log: one run, all rules, a result per finding.
pub(super) fn document(host: &HostFacts, findings: &[AuditFinding]) -> Value {
    let results: Vec<Value> = findings.iter().map(|finding| result(host, finding)).collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "linerate",
                "semanticVersion": VERSION,
                "rules": RULES.iter().map(rule).collect::<Vec<_>>(),
            }},
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}

fn rule(rule: &AuditRule) -> Value {
    json!({
        "id": rule.id,
        "shortDescription": { "text": rule.title },
        "fullDescription": { "text": rule.explanation },
        "help": { "text": format!("{}\n\nSource: {}", rule.explanation, rule.citation) },
        "properties": { "settings": rule.keys, "source": rule.citation },
    })
}

fn result(host: &HostFacts, finding: &AuditFinding) -> Value {
    let mut result = json!({
        "ruleId": finding.rule,
        "level": level(finding.severity),
        "message": { "text": message(finding) },
        "locations": locations(host, finding),
        "properties": {
            "severity": finding.severity.name(),
            "evidence": finding.evidence,
            "remedy": finding.remedy,
            "risk": finding.risk,
        },
    });
    if let Some(index) = RULES.iter().position(|rule| rule.id == finding.rule) {
        result["ruleIndex"] = json!(index);
    }
    result
}

/// SARIF has three levels; advice and notes are both for information.
const fn level(severity: FindingSeverity) -> &'static str {
    match severity {
        FindingSeverity::Critical => "error",
        FindingSeverity::Warning => "warning",
        FindingSeverity::Advice | FindingSeverity::Note => "note",
    }
}

fn message(finding: &AuditFinding) -> String {
    let mut lines = vec![finding.text.clone()];
    lines.extend(finding.notes.iter().map(|note| format!("Also: {note}")));
    lines.extend(finding.remedy.iter().map(|line| format!("Do: {line}")));
    lines.join("\n")
}

/// Locations in the files that set it; a logical location of its name when no file does.
fn locations(host: &HostFacts, finding: &AuditFinding) -> Vec<Value> {
    let sources = host.settings.sources(&finding.subject, ReadOrder::Procps);
    let mut places: Vec<Value> = Vec::new();
    for place in sources.iter().filter_map(physical) {
        if !places.contains(&place) {
            places.push(place);
        }
    }
    if places.is_empty() && finding.subject.starts_with('/') {
        places.push(file(&finding.subject, finding.evidence.first().and_then(|text| line_number(text)).unwrap_or(1)));
    }
    if places.is_empty() {
        let name = &finding.subject;
        places.push(json!({ "logicalLocations": [{ "name": name, "fullyQualifiedName": name, "kind": "resource" }] }));
    }
    places
}

fn physical(source: &SettingSource) -> Option<Value> {
    let path = source.leads_to.as_deref().or(source.file.as_deref())?;
    Some(file(path, source.assignment.line))
}

fn file(path: &str, line: usize) -> Value {
    json!({ "physicalLocation": {
        "artifactLocation": { "uri": format!("file://{}", percent_encode(path)) },
        "region": { "startLine": line },
    }})
}

/// Line number in `/etc/sysctl.d/a.conf:12: …`.
fn line_number(evidence: &str) -> Option<usize> {
    evidence.split(':').nth(1)?.trim().parse().ok()
}

/// Percent-encodes a file path for a URI (RFC 3986 section 2.3).
fn percent_encode(path: &str) -> String {
    let encode = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    };
    path.bytes().map(encode).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_addresses() {
        assert_eq!(percent_encode("/etc/sysctl.d/99 old%.conf"), "/etc/sysctl.d/99%20old%25.conf");
        assert_eq!(line_number("/etc/sysctl.d/a.conf:12: nonsense"), Some(12));
        assert_eq!(line_number("reading it: Permission denied"), None);
    }
}
