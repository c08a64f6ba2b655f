//! The exit codes of every command but iperf3's own.

use std::process::ExitCode;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done.
    Success,
    /// Done, but a threshold was missed.
    Missed,
    /// The command line, or this host, or the other one, did not allow it.
    Unable,
    /// Broken off; what was measured until then has been shown.
    Partial,
    /// Only with more privilege.
    Privilege,
    /// Changes were tried, and taken back.
    RolledBack,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Success => 0,
            Exit::Missed => 1,
            Exit::Unable => 2,
            Exit::Partial => 3,
            Exit::Privilege => 4,
            Exit::RolledBack => 5,
        })
    }
}

impl Exit {
    /// For a refusal of the operating system.
    pub(crate) fn of(cause: &linerate_sys::Error) -> Self {
        match cause.kind() {
            std::io::ErrorKind::PermissionDenied => Self::Privilege,
            _ => Self::Unable,
        }
    }
}
