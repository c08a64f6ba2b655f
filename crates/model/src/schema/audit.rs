//! The documents of `linerate audit --json`: what was found on a host, and everything that was read.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::change::ChangeDocument;
use crate::fact::{Fact, Obstacle};
use crate::finding::{Finding, Severity};
use crate::host::HostFacts;
use crate::host::settings::{Order, Source};

/// Version of the shape.
pub const SCHEMA: u32 = 1;

/// An audit of one host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AuditDocument {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The linerate that looked.
    pub linerate_version: String,
    /// Findings by severity, however many of them are listed.
    pub counts: Counts,
    /// The findings, the gravest first.
    pub findings: Vec<FindingDocument>,
    /// Every fact by name, read or not.
    pub facts: BTreeMap<String, FactDocument>,
}

/// How many findings there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Counts {
    /// Breaks or cripples transfers.
    pub critical: u64,
    /// Costs performance or will surprise somebody.
    pub warning: u64,
    /// Could be better under conditions.
    pub advice: u64,
    /// Worth knowing.
    pub note: u64,
}

impl Counts {
    /// Counts findings.
    #[must_use]
    pub fn of(findings: &[Finding]) -> Self {
        let mut counts = Self::default();
        for finding in findings {
            *match finding.severity {
                Severity::Critical => &mut counts.critical,
                Severity::Warning => &mut counts.warning,
                Severity::Advice => &mut counts.advice,
                Severity::Note => &mut counts.note,
            } += 1;
        }
        counts
    }
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FindingDocument {
    /// Identifier of the rule.
    pub rule: String,
    /// `critical`, `warning`, `advice` or `note`.
    pub severity: String,
    /// What it is about: a setting, an interface, a file.
    pub subject: String,
    /// What is wrong.
    pub text: String,
    /// What shows it.
    pub evidence: Vec<String>,
    /// Lines of files that set what it is about, as the boot reads them.
    pub places: Vec<Place>,
    /// Who says so.
    pub source: String,
    /// What following the advice may cost.
    pub risk: String,
    /// Commands and edits.
    pub remedy: Vec<String>,
    /// The change that linerate can make itself.
    pub change: Option<ChangeDocument>,
}

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Place {
    /// The file, where its link leads; `null` for the kernel's command line.
    pub file: Option<String>,
    /// The line, from 1; a word of the kernel's command line.
    pub line: u64,
    /// What it sets.
    pub value: Option<String>,
}

/// A fact, or why it is not known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FactDocument {
    /// What is so; `null` where it is not known.
    pub value: Option<String>,
    /// `absent`, `denied`, `failed` or `not_read`, where it is not known.
    pub obstacle: Option<String>,
    /// What was tried and what the kernel said, where it is not known.
    pub reason: Option<String>,
}

/// Everything about one setting (`linerate audit --explain KEY --json`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ExplanationDocument {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The linerate that looked.
    pub linerate_version: String,
    /// The setting by sysctl's name.
    pub key: String,
    /// What it does.
    pub what: Option<String>,
    /// What it is now.
    pub now: FactDocument,
    /// What the kernel would set by itself.
    pub kernel_default: Option<DefaultDocument>,
    /// Whether this process can write it: `yes`, `needs_privilege`, `no` or `unknown`.
    pub writable: String,
    /// Why it cannot be written.
    pub not_writable_because: Option<String>,
    /// The line that decides at boot; `null` where the kernel's default stays.
    pub at_boot: Option<Place>,
    /// The line that decides when `sysctl --system` is run.
    pub by_sysctl_system: Option<Place>,
    /// Every line about it in the order of the boot.
    pub lines_at_boot: Vec<Place>,
    /// Every line about it in the order of `sysctl --system`.
    pub lines_by_sysctl_system: Vec<Place>,
    /// Rules that look at it.
    pub rules: Vec<String>,
    /// What they found.
    pub findings: Vec<FindingDocument>,
}

/// A default of the kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DefaultDocument {
    /// The value.
    pub value: String,
    /// Whether it is exactly this, or follows from the memory and is near.
    pub exact: bool,
    /// How it comes about.
    pub reason: String,
}

impl Severity {
    /// As documents and options write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Advice => "advice",
            Self::Warning => "warning",
            Self::Critical => "critical",
        }
    }
}

impl AuditDocument {
    /// What was found on a host, and what it was found in.
    #[must_use]
    pub fn new(linerate_version: &str, host: &HostFacts, findings: &[Finding]) -> Self {
        Self {
            schema: SCHEMA,
            linerate_version: linerate_version.to_owned(),
            counts: Counts::of(findings),
            findings: findings.iter().map(|finding| FindingDocument::new(host, finding)).collect(),
            facts: host.listed().into_iter().map(|(name, fact)| (name, FactDocument::from(&fact))).collect(),
        }
    }
}

impl FindingDocument {
    /// A finding with its places.
    #[must_use]
    pub fn new(host: &HostFacts, finding: &Finding) -> Self {
        Self {
            rule: finding.rule.clone(),
            severity: finding.severity.name().to_owned(),
            subject: finding.subject.clone(),
            text: finding.text.clone(),
            evidence: finding.evidence.clone(),
            places: places(host, &finding.subject, Order::Procps),
            source: finding.source.clone(),
            risk: finding.risk.clone(),
            remedy: finding.remedy.clone(),
            change: finding.change.as_ref().map(ChangeDocument::from),
        }
    }
}

/// The lines about a setting.
#[must_use]
pub fn places(host: &HostFacts, key: &str, order: Order) -> Vec<Place> {
    host.settings.sources(key, order).iter().map(Place::from).collect()
}

impl From<&Source> for Place {
    fn from(source: &Source) -> Self {
        Self {
            file: source.leads_to.clone().or_else(|| source.file.clone()),
            line: u64::try_from(source.assignment.line).unwrap_or(u64::MAX),
            value: source.assignment.value.clone(),
        }
    }
}

impl From<&Fact<String>> for FactDocument {
    fn from(fact: &Fact<String>) -> Self {
        let obstacle = |obstacle| match obstacle {
            Obstacle::Absent => "absent",
            Obstacle::Denied => "denied",
            Obstacle::Failed => "failed",
            Obstacle::NotRead => "not_read",
        };
        Self {
            value: fact.known().cloned(),
            obstacle: fact.unread().map(|unread| obstacle(unread.obstacle).to_owned()),
            reason: fact.unread().map(|unread| unread.reason.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::settings::SettingsFile;

    #[test]
    fn unknown_is_null_with_its_reason() {
        let mut host = HostFacts::default();
        host.settings.values.insert(
            "net.ipv4.tcp_mem".to_owned(),
            crate::host::settings::Setting {
                value: Fact::absent("reading /proc/sys/net/ipv4/tcp_mem: No such file or directory"),
                ..crate::host::settings::Setting::default()
            },
        );
        host.settings.files.push(SettingsFile::parsed("/etc/sysctl.d/a.conf", "# x\nnet.ipv4.tcp_sack = 0\n"));
        let finding = Finding {
            rule: "sack-off".to_owned(),
            severity: Severity::Critical,
            subject: "net.ipv4.tcp_sack".to_owned(),
            text: String::new(),
            evidence: Vec::new(),
            source: String::new(),
            risk: String::new(),
            remedy: Vec::new(),
            change: None,
        };
        let document = AuditDocument::new("1.0", &host, &[finding]);
        let fact = &document.facts["net.ipv4.tcp_mem"];
        assert_eq!((fact.value.as_deref(), fact.obstacle.as_deref()), (None, Some("absent")));
        assert_eq!(document.counts, Counts { critical: 1, ..Counts::default() });
        let place = Place { file: Some("/etc/sysctl.d/a.conf".to_owned()), line: 2, value: Some("0".to_owned()) };
        assert_eq!(document.findings[0].places, [place]);
    }
}
