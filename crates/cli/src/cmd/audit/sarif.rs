//! An audit as SARIF 2.1.0 (OASIS), which code scanning services and editors read.

use linerate_model::finding::{Finding, Severity};
use linerate_model::host::HostFacts;
use linerate_model::host::settings::{Order, Source};
use linerate_rules::audit::{RULES, Rule};
use serde_json::{Value, json};

use super::VERSION;

/// The whole log: one run, all rules, a result per finding.
pub(super) fn document(host: &HostFacts, findings: &[Finding]) -> Value {
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

fn rule(rule: &Rule) -> Value {
    json!({
        "id": rule.id,
        "shortDescription": { "text": rule.title },
        "fullDescription": { "text": rule.explanation },
        "help": { "text": format!("{}\n\nSource: {}", rule.explanation, rule.citation) },
        "properties": { "settings": rule.keys, "source": rule.citation },
    })
}

fn result(host: &HostFacts, finding: &Finding) -> Value {
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
const fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Critical => "error",
        Severity::Warning => "warning",
        Severity::Advice | Severity::Note => "note",
    }
}

fn message(finding: &Finding) -> String {
    let mut lines = vec![finding.text.clone()];
    lines.extend(finding.remedy.iter().map(|line| format!("Do: {line}")));
    lines.join("\n")
}

/// Where files set it; what no file sets has its name as a logical place.
fn locations(host: &HostFacts, finding: &Finding) -> Vec<Value> {
    let sources = host.settings.sources(&finding.subject, Order::Procps);
    let mut places: Vec<Value> = Vec::new();
    for place in sources.iter().filter_map(physical) {
        if !places.contains(&place) {
            places.push(place);
        }
    }
    if places.is_empty() && finding.subject.starts_with('/') {
        places.push(file(&finding.subject, finding.evidence.first().and_then(|text| line_in(text)).unwrap_or(1)));
    }
    if places.is_empty() {
        let name = &finding.subject;
        places.push(json!({ "logicalLocations": [{ "name": name, "fullyQualifiedName": name, "kind": "resource" }] }));
    }
    places
}

fn physical(source: &Source) -> Option<Value> {
    let path = source.leads_to.as_deref().or(source.file.as_deref())?;
    Some(file(path, source.assignment.line))
}

fn file(path: &str, line: usize) -> Value {
    json!({ "physicalLocation": {
        "artifactLocation": { "uri": format!("file://{}", encoded(path)) },
        "region": { "startLine": line },
    }})
}

/// The line of `/etc/sysctl.d/a.conf:12: …`.
fn line_in(evidence: &str) -> Option<usize> {
    evidence.split(':').nth(1)?.trim().parse().ok()
}

/// A path as it stands in a URI (RFC 3986 section 2.3).
fn encoded(path: &str) -> String {
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
        assert_eq!(encoded("/etc/sysctl.d/99 old%.conf"), "/etc/sysctl.d/99%20old%25.conf");
        assert_eq!(line_in("/etc/sysctl.d/a.conf:12: nonsense"), Some(12));
        assert_eq!(line_in("reading it: Permission denied"), None);
    }
}
