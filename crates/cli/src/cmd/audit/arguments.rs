//! The command line of `linerate audit`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use linerate_model::finding::Severity;

/// `linerate audit`.
#[derive(Debug, Args)]
#[command(
    long_about = "Reads this host's settings, links and counters, says what of it slows transfers or will surprise \
                  somebody, who says so, and the exact change. Nothing is changed, no other host is needed, and reading \
                  needs no root.",
    after_help = "Examples:\n  linerate audit\n  linerate audit --min-severity warning\n  linerate audit --explain \
                  net.ipv4.tcp_rmem\n  linerate audit --sarif > audit.sarif\n\nExit codes: 0 nothing that would cost \
                  performance, 1 at least one warning or critical finding is shown, 2 usage."
)]
pub(crate) struct AuditArguments {
    /// Say everything about one setting: its value, default, every line that sets it, and who wins at boot
    #[arg(long, value_name = "KEY")]
    pub(crate) explain: Option<String>,
    /// Leave out what matters less
    #[arg(long, value_enum, default_value = "note", value_name = "LEVEL")]
    pub(crate) min_severity: Level,
    /// Print one JSON document (schema 1) instead of text
    #[arg(long)]
    pub(crate) json: bool,
    /// Print SARIF 2.1.0 instead of text, for code scanning
    #[arg(long, conflicts_with_all = ["json", "explain"])]
    pub(crate) sarif: bool,
    /// Read settings, files and kernel below this directory instead of this host
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, hide = true)]
    pub(crate) root: Option<PathBuf>,
}

impl AuditArguments {
    /// Everything about this host.
    pub(crate) const fn of_all(json: bool) -> Self {
        Self { explain: None, min_severity: Level::Note, json, sarif: false, root: None }
    }
}

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Level {
    /// Everything
    Note,
    /// What could be better
    Advice,
    /// What costs performance or will surprise somebody
    Warning,
    /// What breaks or cripples transfers
    Critical,
}

impl From<Level> for Severity {
    fn from(level: Level) -> Self {
        match level {
            Level::Note => Self::Note,
            Level::Advice => Self::Advice,
            Level::Warning => Self::Warning,
            Level::Critical => Self::Critical,
        }
    }
}
