//! Rules that look at one host alone, without a peer and without a measurement.

use linerate_model::finding::Finding;
use linerate_model::host::HostFacts;

/// A rule of `linerate audit`.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// Its identifier, in words joined by hyphens.
    pub id: &'static str,
    /// What it looks for, in one sentence.
    pub title: &'static str,
    /// Why it matters and when it does not; an empty line between paragraphs.
    pub explanation: &'static str,
    /// Who says so.
    pub citation: &'static str,
    /// Settings that it is about, by sysctl's names; empty for rules about something else.
    pub keys: &'static [&'static str],
    /// Looks. Facts that are not known lead to no finding.
    pub check: fn(&HostFacts) -> Vec<Finding>,
    /// A host on which it finds something, for the tests that walk the list.
    pub fires: fn() -> HostFacts,
    /// A host much like it on which it finds nothing.
    pub silent: fn() -> HostFacts,
}

/// All rules, in the order of their identifiers.
pub const RULES: &[Rule] = &[];

/// Every rule's findings, the gravest first.
#[must_use]
pub fn audit(host: &HostFacts) -> Vec<Finding> {
    let mut findings: Vec<Finding> = RULES.iter().flat_map(|rule| (rule.check)(host)).collect();
    findings.sort_by(|one, other| {
        other.severity.cmp(&one.severity).then_with(|| (&one.rule, &one.subject).cmp(&(&other.rule, &other.subject)))
    });
    findings
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn rules_are_listed_in_order_once_and_documented() {
        assert!(RULES.is_sorted_by(|one, other| one.id < other.id));
        for rule in RULES {
            assert!(rule.id.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-' || byte.is_ascii_digit()));
            assert!(!rule.title.is_empty() && !rule.explanation.is_empty() && !rule.citation.is_empty(), "{}", rule.id);
        }
    }

    #[test]
    fn each_rule_has_a_case_that_fires_and_one_that_does_not() {
        for rule in RULES {
            let found = (rule.check)(&(rule.fires)());
            assert!(!found.is_empty(), "{} finds nothing where it should", rule.id);
            for finding in &found {
                assert_eq!(finding.rule, rule.id);
                assert!(!finding.evidence.is_empty() && !finding.text.is_empty(), "{finding:?}");
                assert!(!finding.remedy.is_empty() || finding.change.is_some(), "no way out: {finding:?}");
            }
            assert_eq!((rule.check)(&(rule.silent)()), [], "{}", rule.id);
            assert_eq!((rule.check)(&HostFacts::default()), [], "{}: nothing is known, nothing is found", rule.id);
        }
    }

    #[test]
    fn findings_begin_with_the_gravest() {
        let hosts: Vec<HostFacts> = RULES.iter().map(|rule| (rule.fires)()).collect();
        for host in &hosts {
            assert!(audit(host).is_sorted_by(|one, other| one.severity >= other.severity));
        }
        let identifiers: BTreeSet<&str> = RULES.iter().map(|rule| rule.id).collect();
        assert_eq!(identifiers.len(), RULES.len());
    }
}
