//! Errors of a session, and their remedies.

use core::time::Duration;

use crate::session::kernel_log::KernelProblem;

/// Reason why a session had no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// This host's kernel refused something.
    #[error(transparent)]
    System(#[from] linerate_sys::Error),
    /// A requirement of the guest is missing.
    #[error("{problem}")]
    Missing {
        /// The missing requirement, with figures.
        problem: String,
        /// Remedy.
        advice: String,
    },
    /// A file of the session could not be written or read.
    #[error("{operation}: {}", linerate_sys::describe_os_error(cause))]
    File {
        /// Operation, and its file.
        operation: String,
        /// Error of the system.
        cause: std::io::Error,
    },
    /// The guest could not set the path up or start the command.
    #[error("{error}")]
    Guest {
        /// Operation, its object, and its error.
        error: String,
        /// Remedy, where the guest has one.
        advice: Option<String>,
    },
    /// The supervisor could not start the guest.
    #[error("the lab's supervisor: {error}")]
    Supervisor {
        /// Error.
        error: String,
    },
    /// The processes could not be contained in a namespace after all.
    #[error("the lab's supervisor: {error}")]
    NotContained {
        /// Error.
        error: String,
    },
    /// The guest ended without reporting how the command ended.
    #[error("{}", ended_text(trouble.as_ref(), how))]
    Ended {
        /// Explanation from its kernel log, if any.
        trouble: Option<KernelProblem>,
        /// End of its process.
        how: String,
        /// The end of the kernel's log.
        log: String,
    },
    /// The guest's time has stalled.
    #[error("{}", stalled_text(*silence, culprits))]
    Stalled {
        /// Duration of the silence, in this host's time.
        silence: Duration,
        /// Processes that are running in the guest, as it reports, or else as this host sees them; empty when neither
        /// is known.
        culprits: Vec<StallingProcess>,
        /// The guest's time of its last message, since its boot.
        last_heard: Option<Duration>,
        /// The end of the kernel's log.
        log: String,
    },
    /// Data from the guest that is not a frame.
    #[error("the guest's stream is damaged: {0}")]
    Damaged(String),
}

/// A process that stalls the guest's time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StallingProcess {
    /// Process identifier in the guest; `None` when only this host could see it.
    pub process: Option<u32>,
    /// Command line; of a guest that does not answer, only the program.
    pub command: String,
}

impl SessionError {
    /// Remedy, where it is known.
    #[must_use]
    pub fn advice(&self) -> Option<String> {
        match self {
            Self::Missing { advice, .. } => Some(advice.clone()),
            Self::Guest { advice, .. } => advice.clone(),
            Self::Ended { trouble, .. } => trouble.as_ref().map(|trouble| trouble.advice.clone()),
            Self::Stalled { culprits, .. } => Some(stall_advice(culprits)),
            Self::NotContained { .. } => {
                Some("a container needs CAP_SYS_ADMIN for this (docker run --privileged)".into())
            }
            _ => None,
        }
    }

    /// The end of the guest's kernel log, where there is one.
    #[must_use]
    pub fn kernel_log(&self) -> Option<&str> {
        match self {
            Self::Ended { log, .. } | Self::Stalled { log, .. } if !log.is_empty() => Some(log),
            _ => None,
        }
    }
}

fn ended_text(trouble: Option<&KernelProblem>, how: &str) -> String {
    match trouble {
        Some(trouble) => format!("the guest {how}: {}", trouble.problem),
        None => format!("the guest {how} without reporting the command's end"),
    }
}

fn stalled_text(silence: Duration, culprits: &[StallingProcess]) -> String {
    let seconds = silence.as_secs();
    if culprits.is_empty() {
        return format!("the guest has not advanced for {seconds} s, and does not answer");
    }
    let list = culprits.iter().map(|StallingProcess { process, command }| match process {
        Some(process) => format!("{process} {command}"),
        None => command.clone(),
    });
    format!("the guest has not advanced for {seconds} s; running: {}", list.collect::<Vec<_>>().join(", "))
}

fn stall_advice(culprits: &[StallingProcess]) -> String {
    let what = "in the lab time passes only while every program sleeps or waits: one that computes without end, or asks \
                for the time in a loop, stops it";
    if culprits.is_empty() {
        format!("{what}; if the host is busy or suspended, raise the stall limit")
    } else {
        format!("{what}; have it sleep, or run it with the namespaces back end, in real time")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stall_names_its_culprits_and_the_way_out() {
        let seen_from_here = StallingProcess { process: None, command: "/usr/bin/yes".into() };
        let culprits = vec![StallingProcess { process: Some(71), command: "sh -c while".into() }, seen_from_here];
        let error =
            SessionError::Stalled { silence: Duration::from_secs(60), culprits, last_heard: None, log: String::new() };
        assert_eq!(error.to_string(), "the guest has not advanced for 60 s; running: 71 sh -c while, /usr/bin/yes");
        assert!(error.advice().is_some_and(|advice| advice.contains("sleep")));
        assert_eq!(error.kernel_log(), None);
    }

    #[test]
    fn an_end_without_a_report() {
        let ended = |trouble| SessionError::Ended { trouble, how: "ended with status 1".into(), log: "x".into() };
        assert_eq!(ended(None).to_string(), "the guest ended with status 1 without reporting the command's end");
        let trouble = KernelProblem { problem: "its kernel panicked".into(), advice: "report it".into() };
        let error = ended(Some(trouble));
        assert_eq!(error.to_string(), "the guest ended with status 1: its kernel panicked");
        assert_eq!((error.advice().as_deref(), error.kernel_log()), (Some("report it"), Some("x")));
    }
}
