//! Findings about one setting, merged into one.

use linerate_units::CompactSort;
use std::collections::BTreeMap;

use linerate_model::finding::AuditFinding;

/// Rules about the location of a line, from the more to the less specific; all other rules come before them.
const GENERAL_RULES: [&str; 5] =
    ["copied-recipe", "below-kernel-default", "vendor-file-wins", "setting-overridden", "runtime-differs"];

/// Merges the findings of each setting: the most severe and most specific one remains, with its commands, and the others
/// become its notes. Two proposals for one setting, which could contradict each other, are thereby impossible.
pub(super) fn merge(findings: Vec<AuditFinding>) -> Vec<AuditFinding> {
    let mut settings: BTreeMap<String, Vec<AuditFinding>> = BTreeMap::new();
    let mut others = Vec::new();
    for finding in findings {
        if is_setting(&finding.subject) {
            settings.entry(finding.subject.clone()).or_default().push(finding);
        } else {
            others.push(finding);
        }
    }
    others.extend(settings.into_values().filter_map(merge_setting));
    others
}

fn is_setting(subject: &str) -> bool {
    subject.starts_with("net.")
}

fn merge_setting(mut findings: Vec<AuditFinding>) -> Option<AuditFinding> {
    findings.sort_compactly_by_key(|finding| (core::cmp::Reverse(finding.severity), generality(&finding.rule)));
    let mut findings = findings.into_iter();
    let mut first = findings.next()?;
    for other in findings {
        add_remedy(&mut first, &other);
        if other.rule != first.rule || other.text != first.text {
            first.notes.push(format!("{}: {}", other.rule, other.text));
        }
        for evidence in other.evidence {
            if !first.evidence.contains(&evidence) {
                first.evidence.push(evidence);
            }
        }
    }
    Some(first)
}

/// Adds the commands of another finding that concern lines which the first one does not mention.
fn add_remedy(first: &mut AuditFinding, other: &AuditFinding) {
    // Rules about the order of lines name lines to delete on the condition that the others stay.
    let is_about_order = ["orders-disagree", "runtime-differs", "setting-overridden", "vendor-file-wins"];
    if is_about_order.contains(&other.rule.as_str()) {
        return;
    }
    for line in &other.remedy {
        let Some(location) = line.strip_prefix("delete ") else { continue };
        let location = location.split_ascii_whitespace().next().unwrap_or_default().trim_end_matches(':');
        let is_mentioned = first.remedy.iter().any(|known| known.contains(location));
        if !is_mentioned {
            first.remedy.push(line.clone());
        }
    }
}

/// Position in [`GENERAL_RULES`], from 1; 0 for specific rules.
fn generality(rule: &str) -> usize {
    GENERAL_RULES.iter().position(|general| *general == rule).map_or(0, |position| position + 1)
}
