//! What a rule has to say about a host.

use crate::change::Change;

/// How much it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Worth knowing; nothing is wrong.
    Note,
    /// Could be better; costs something only under conditions that the finding names.
    Advice,
    /// Costs performance or will surprise somebody.
    Warning,
    /// Breaks or cripples transfers.
    Critical,
}

/// One thing that a rule found.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// Identifier of the rule, for example `sack-off`.
    pub rule: String,
    /// How much it matters.
    pub severity: Severity,
    /// What it is about: a setting's name, an interface, a file.
    pub subject: String,
    /// What is wrong, in one sentence with the figures.
    pub text: String,
    /// What was read that shows it, one fact each: `net.ipv4.tcp_sack = 0 (/etc/sysctl.d/99-old.conf:12)`.
    pub evidence: Vec<String>,
    /// Who says so: an RFC's section, the kernel's documentation, a measurement of the lab.
    pub source: String,
    /// What following the advice may cost; empty where nothing is known against it.
    pub risk: String,
    /// What to do where a command or an edit is the answer, exactly as it would be typed.
    pub remedy: Vec<String>,
    /// The change that linerate itself can make; `None` where the remedy is somebody's hands.
    pub change: Option<Change>,
}
