//! Command line of `linerate audit`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use linerate_model::finding::FindingSeverity;

/// `linerate audit`.
#[derive(Debug, Args)]
#[command(
    long_about = "Reads this host's settings, links and counters, reports what slows transfers or behaves \
                  unexpectedly, the source and the change. Nothing is changed, no other host is needed, and reading \
                  needs no root.",
    after_help = "Examples:\n  linerate audit\n  linerate audit --min-severity warning\n  linerate audit --explain \
                  net.ipv4.tcp_rmem\n  linerate audit --sarif > audit.sarif\n\nExit codes: 0 nothing that would cost \
                  performance, 1 at least one warning or critical finding is shown, 2 usage."
)]
pub(crate) struct AuditArguments {
    /// Explain one setting: its value, default, every line that sets it, and the one in effect at boot
    #[arg(long, value_name = "KEY")]
    pub(crate) explain: Option<String>,
    /// Leave out findings below this severity
    #[arg(long, value_enum, default_value = "note", value_name = "LEVEL")]
    pub(crate) min_severity: SeverityThreshold,
    /// Print one JSON document (schema 1) instead of text
    #[arg(long)]
    pub(crate) json: bool,
    /// Print each finding with its evidence, source, risk and remedy
    #[arg(short, long, conflicts_with_all = ["json", "sarif"])]
    pub(crate) verbose: bool,
    /// Print the number of findings per severity, and the first one
    #[arg(long, conflicts_with_all = ["json", "sarif", "verbose"])]
    pub(crate) brief: bool,
    /// Print SARIF 2.1.0 instead of text, for code scanning
    #[arg(long, conflicts_with_all = ["json", "explain"])]
    pub(crate) sarif: bool,
    /// Read settings, files and kernel below this directory instead of this host
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, hide = true)]
    pub(crate) root: Option<PathBuf>,
}

impl AuditArguments {
    /// Arguments for all findings about this host.
    pub(crate) const fn of_all(json: bool, verbose: bool) -> Self {
        let (brief, sarif) = (false, false);
        Self { explain: None, min_severity: SeverityThreshold::Note, json, verbose, brief, sarif, root: None }
    }
}

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SeverityThreshold {
    /// Everything
    Note,
    /// Improvements
    Advice,
    /// Findings that cost performance or behave unexpectedly
    Warning,
    /// Findings that break or cripple transfers
    Critical,
}

impl From<SeverityThreshold> for FindingSeverity {
    fn from(level: SeverityThreshold) -> Self {
        match level {
            SeverityThreshold::Note => Self::Note,
            SeverityThreshold::Advice => Self::Advice,
            SeverityThreshold::Warning => Self::Warning,
            SeverityThreshold::Critical => Self::Critical,
        }
    }
}
