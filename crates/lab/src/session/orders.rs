//! Orders to the supervisor, and its reports: JSON in a file, and lines of JSON in a pipe.

use std::os::fd::RawFd;
use std::path::PathBuf;

use linerate_model::json;
use serde::{Deserialize, Serialize};

/// Orders to the supervisor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SupervisorOrders {
    /// True when a process namespace contains everything; otherwise the supervisor does, as the parent of all.
    pub(super) in_namespace: bool,
    /// True when the program gets a network and mounts of its own: it is the guest itself, not a kernel.
    pub(super) own_network: bool,
    /// The processor to which everything is bound; `None` for any.
    pub(super) processor: Option<u16>,
    /// The linerate binary.
    pub(super) linerate: PathBuf,
    /// Program to start.
    pub(super) program: PathBuf,
    /// Arguments.
    pub(super) arguments: Vec<String>,
    /// Whole environment.
    pub(super) environment: Vec<(String, String)>,
    /// The reading end of a pipe whose other end the session has: its end means that the session is gone.
    pub(super) alive: RawFd,
    /// The writing end of the pipe for reports.
    pub(super) reports: RawFd,
    /// The reading end of the pipe for requests to the guest.
    pub(super) requests: RawFd,
    /// The writing end of the pipe for the guest's frames.
    pub(super) frames: RawFd,
    /// A directory to remove at the end.
    pub(super) directory: PathBuf,
}

/// Report of the supervisor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum SupervisorReport {
    /// The program runs.
    Started {
        /// Root of all processes: the first of the namespace, if there is one.
        process: u32,
    },
    /// The program does not run.
    Failed {
        /// Operation and error.
        error: String,
        /// True when the namespace failed.
        namespace: bool,
    },
    /// The program has ended, and nothing of it is left.
    Ended {
        /// Exit code; 128 and the signal's number when a signal ended it.
        code: i32,
    },
}

impl SupervisorReport {
    /// The report as a line.
    pub(super) fn line(&self) -> Vec<u8> {
        // These types always have a JSON form; an empty line would be seen as damage.
        let mut line = serde_json::to_vec(self).unwrap_or_default();
        line.push(b'\n');
        line
    }

    /// A line as a report; `None` for anything else.
    pub(super) fn parse(line: &[u8]) -> Option<Self> {
        json::from_slice(line).ok()
    }
}

/// Describes how a guest's process ended, for a sentence that begins with "the guest".
pub(super) fn exit_description(code: Option<i32>) -> String {
    match code {
        None => "was killed together with its supervisor".into(),
        Some(code @ 129..=192) => format!("was ended by signal {}", code - 128),
        Some(code) => format!("ended with status {code}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_lines() {
        let report = SupervisorReport::Started { process: 7 };
        let line = report.line();
        assert_eq!(line.iter().position(|byte| *byte == b'\n'), Some(line.len() - 1));
        assert_eq!(SupervisorReport::parse(&line), Some(report));
        assert_eq!(SupervisorReport::parse(b"\n"), None);
    }

    #[test]
    fn ends_as_text() {
        assert_eq!(exit_description(Some(1)), "ended with status 1");
        assert_eq!(exit_description(Some(137)), "was ended by signal 9");
    }
}
