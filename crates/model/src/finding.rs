//! Findings of the audit rules on a host.

use crate::change::HostChange;
use serde::{Deserialize, Serialize};

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FindingSeverity {
    /// Information; nothing is wrong.
    Note,
    /// Possible improvement; costs performance only under conditions that the finding names.
    Advice,
    /// Costs performance or has surprising effects.
    Warning,
    /// Breaks or severely slows transfers.
    Critical,
}

/// Finding of one rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AuditFinding {
    /// Identifier of the rule, for example `sack-off`.
    pub rule: String,
    /// Severity.
    pub severity: FindingSeverity,
    /// Subject: name of a setting, an interface, a file.
    pub subject: String,
    /// Problem in one sentence, with the figures.
    pub text: String,
    /// Findings of other rules on the same setting, each with its rule: `below-kernel-default: ...`.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Facts that show it: `net.ipv4.tcp_sack = 0 (/etc/sysctl.d/99-old.conf:12)`.
    pub evidence: Vec<String>,
    /// Reference: section of an RFC, documentation of the kernel, a measurement in the lab.
    pub source: String,
    /// Risk of following the advice; empty where none is known.
    pub risk: String,
    /// Commands or edits, exactly as to be typed.
    pub remedy: Vec<String>,
    /// Change that linerate itself can apply; `None` where the remedy is manual.
    pub change: Option<HostChange>,
}

impl FindingSeverity {
    /// Name used in documents and options.
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
