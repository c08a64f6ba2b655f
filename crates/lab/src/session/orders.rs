//! What the supervisor is told, and what it reports: JSON in a file, and lines of JSON in a pipe.

use std::os::fd::RawFd;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// What the supervisor is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Orders {
    /// Whether a process namespace holds everything together, or else the supervisor as the parent of all.
    pub(super) in_namespace: bool,
    /// Whether the program gets a network and mounts of its own: it is the guest itself, not a kernel.
    pub(super) own_network: bool,
    /// The processor to which everything is bound; `None` for any.
    pub(super) processor: Option<u16>,
    /// The linerate binary.
    pub(super) linerate: PathBuf,
    /// What to start.
    pub(super) program: PathBuf,
    /// Its arguments.
    pub(super) arguments: Vec<String>,
    /// Its whole environment.
    pub(super) environment: Vec<(String, String)>,
    /// The reading end of a pipe of which the session has the other: its end means that the session is gone.
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

/// What the supervisor reports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Report {
    /// The program runs.
    Started {
        /// The process below which everything is: the first of the namespace, if there is one.
        process: u32,
    },
    /// The program does not run.
    Failed {
        /// What was tried, and what came of it.
        error: String,
        /// Whether it was the namespace that failed.
        namespace: bool,
    },
    /// The program has ended, and nothing of it is left.
    Ended {
        /// Its exit code; 128 and the signal's number when a signal ended it.
        code: i32,
    },
}

impl Report {
    /// The report as a line.
    pub(super) fn line(&self) -> Vec<u8> {
        // These types always have a JSON form; an empty line would be seen as damage.
        let mut line = serde_json::to_vec(self).unwrap_or_default();
        line.push(b'\n');
        line
    }

    /// A line as a report; `None` for anything else.
    pub(super) fn parse(line: &[u8]) -> Option<Self> {
        serde_json::from_slice(line).ok()
    }
}

/// How a guest's process ended, for a sentence that begins with "the guest".
pub(super) fn how_ended(code: Option<i32>) -> String {
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
        let report = Report::Started { process: 7 };
        let line = report.line();
        assert_eq!(line.iter().position(|byte| *byte == b'\n'), Some(line.len() - 1));
        assert_eq!(Report::parse(&line), Some(report));
        assert_eq!(Report::parse(b"\n"), None);
    }

    #[test]
    fn ends_in_words() {
        assert_eq!(how_ended(Some(1)), "ended with status 1");
        assert_eq!(how_ended(Some(137)), "was ended by signal 9");
    }
}
