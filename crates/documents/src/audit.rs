//! Documents of `linerate audit --json`: findings on a host, and all facts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use linerate_model::fact::Fact;
use linerate_model::finding::{AuditFinding, FindingSeverity};
use linerate_model::host::HostFacts;
use linerate_model::host::settings::{ReadOrder, SettingSource};

/// Version of this document's schema.
pub const SCHEMA: u32 = 1;

/// Audit of one host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AuditDocument {
    /// Schema version ([`SCHEMA`]).
    pub schema: u32,
    /// Version of linerate that read the host.
    pub linerate_version: String,
    /// Number of findings by severity, including those that are not listed.
    pub counts: SeverityCounts,
    /// Findings, the most severe first.
    pub findings: Vec<LocatedFinding>,
    /// Every fact by name, read or not.
    pub facts: BTreeMap<String, Fact<String>>,
}

/// Number of findings by severity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SeverityCounts {
    /// Findings that break or severely slow transfers.
    pub critical: u64,
    /// Findings that cost performance or have surprising effects.
    pub warning: u64,
    /// Possible improvements under conditions.
    pub advice: u64,
    /// Informational findings.
    pub note: u64,
}

impl SeverityCounts {
    /// Counts findings.
    #[must_use]
    pub fn of(findings: &[AuditFinding]) -> Self {
        let mut counts = Self::default();
        for finding in findings {
            *match finding.severity {
                FindingSeverity::Critical => &mut counts.critical,
                FindingSeverity::Warning => &mut counts.warning,
                FindingSeverity::Advice => &mut counts.advice,
                FindingSeverity::Note => &mut counts.note,
            } += 1;
        }
        counts
    }
}

/// Finding with the lines that set its subject.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LocatedFinding {
    /// Finding.
    #[serde(flatten)]
    pub finding: AuditFinding,
    /// Lines of files that set the subject, in the order of the boot.
    pub locations: Vec<FileLocation>,
}

/// Location in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FileLocation {
    /// File, with symbolic links resolved; `null` for the kernel command line.
    pub file: Option<String>,
    /// Line number, from 1; position of the argument on the kernel command line.
    pub line: u64,
    /// Assigned value.
    pub value: Option<String>,
}

/// Explanation of one setting (`linerate audit --explain KEY --json`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ExplanationDocument {
    /// Schema version ([`SCHEMA`]).
    pub schema: u32,
    /// Version of linerate that read the host.
    pub linerate_version: String,
    /// sysctl name of the setting.
    pub key: String,
    /// Description of the setting.
    pub description: Option<String>,
    /// Present value.
    pub present_value: Fact<String>,
    /// Default of the kernel.
    pub kernel_default: Option<DefaultDocument>,
    /// Write access of this process.
    pub writable: WriteAccess,
    /// Reason why it cannot be written.
    pub not_writable_because: Option<String>,
    /// Line that takes effect at boot; `null` where the kernel's default applies.
    pub at_boot: Option<FileLocation>,
    /// Line that takes effect when `sysctl --system` is run.
    pub by_sysctl_system: Option<FileLocation>,
    /// All lines about it in the order of the boot.
    pub lines_at_boot: Vec<FileLocation>,
    /// All lines about it in the order of `sysctl --system`.
    pub lines_by_sysctl_system: Vec<FileLocation>,
    /// Rules that examine it.
    pub rules: Vec<String>,
    /// Findings of these rules.
    pub findings: Vec<LocatedFinding>,
}

/// Write access of this process to a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WriteAccess {
    /// Writable.
    Yes,
    /// Writable for root.
    NeedsPrivilege,
    /// Not writable here even for root.
    No,
    /// Not examined.
    Unknown,
}

/// Default of the kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DefaultDocument {
    /// Value.
    pub value: String,
    /// True when the value is exact, false when it is an approximation derived from the memory.
    pub exact: bool,
    /// Derivation of the value.
    pub reason: String,
}

impl AuditDocument {
    /// Creates the document of a host and its findings.
    #[must_use]
    pub fn new(linerate_version: &str, host: &HostFacts, findings: &[AuditFinding]) -> Self {
        Self {
            schema: SCHEMA,
            linerate_version: linerate_version.to_owned(),
            counts: SeverityCounts::of(findings),
            findings: findings.iter().map(|finding| LocatedFinding::new(host, finding)).collect(),
            facts: host.listed().into_iter().collect(),
        }
    }
}

impl LocatedFinding {
    /// Adds the locations to a finding.
    #[must_use]
    pub fn new(host: &HostFacts, finding: &AuditFinding) -> Self {
        let locations = setting_locations(host, &finding.subject, ReadOrder::Procps);
        Self { finding: finding.clone(), locations }
    }
}

/// Lines about a setting.
#[must_use]
pub fn setting_locations(host: &HostFacts, key: &str, order: ReadOrder) -> Vec<FileLocation> {
    host.settings.sources(key, order).iter().map(FileLocation::from).collect()
}

impl From<&SettingSource> for FileLocation {
    fn from(source: &SettingSource) -> Self {
        Self {
            file: source.leads_to.clone().or_else(|| source.file.clone()),
            line: u64::try_from(source.assignment.line).unwrap_or(u64::MAX),
            value: source.assignment.value.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::host::settings::SettingsFile;

    #[test]
    fn unknown_is_null_with_its_reason() {
        let mut host = HostFacts::default();
        host.settings.values.insert(
            "net.ipv4.tcp_mem".to_owned(),
            linerate_model::host::settings::KernelSetting {
                value: Fact::absent("reading /proc/sys/net/ipv4/tcp_mem: No such file or directory"),
                ..linerate_model::host::settings::KernelSetting::default()
            },
        );
        host.settings.files.push(SettingsFile::parsed("/etc/sysctl.d/a.conf", "# x\nnet.ipv4.tcp_sack = 0\n"));
        let finding = AuditFinding {
            notes: Vec::new(),
            rule: "sack-off".to_owned(),
            severity: FindingSeverity::Critical,
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
        let json = serde_json::to_value(fact).expect("JSON");
        assert_eq!((&json["value"], &json["obstacle"]), (&serde_json::Value::Null, &"absent".into()));
        assert_eq!(document.counts, SeverityCounts { critical: 1, ..SeverityCounts::default() });
        let place =
            FileLocation { file: Some("/etc/sysctl.d/a.conf".to_owned()), line: 2, value: Some("0".to_owned()) };
        assert_eq!(document.findings[0].locations, [place]);
    }
}
