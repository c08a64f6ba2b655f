//! Exit codes of every command except `linerate iperf3`.

use std::process::ExitCode;

/// Exit status of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExitStatus {
    /// Complete.
    Success,
    /// Complete, but a threshold was missed.
    Missed,
    /// Refused because of the command line, this host or the other one.
    Unable,
    /// Interrupted; partial results have been printed.
    Partial,
    /// More privilege is needed.
    Privilege,
    /// Changes were tried and rolled back.
    RolledBack,
}

impl From<ExitStatus> for ExitCode {
    fn from(exit: ExitStatus) -> Self {
        Self::from(match exit {
            ExitStatus::Success => 0,
            ExitStatus::Missed => 1,
            ExitStatus::Unable => 2,
            ExitStatus::Partial => 3,
            ExitStatus::Privilege => 4,
            ExitStatus::RolledBack => 5,
        })
    }
}

impl ExitStatus {
    /// Exit status for an error of the operating system.
    pub(crate) fn from_error(cause: &linerate_sys::Error) -> Self {
        match cause.kind() {
            std::io::ErrorKind::PermissionDenied => Self::Privilege,
            _ => Self::Unable,
        }
    }
}
