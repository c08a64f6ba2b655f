//! Errors of the transport.

use core::error::Error;
use core::time::Duration;

/// Failure of an operation on the servers.
#[derive(Debug, thiserror::Error)]
pub enum NatsError {
    /// A setting that cannot be used.
    #[error("{0}")]
    Setting(String),
    /// A file of the settings that cannot be read or has something else in it.
    #[error("reading {file}: {reason}")]
    File {
        /// File.
        file: String,
        /// Answer of the kernel or of the parser, with the remedy.
        reason: String,
    },
    /// No server could be connected to.
    #[error("connecting to {server}: {answer}: {remedy}")]
    NotConnected {
        /// Server, as given.
        server: String,
        /// Answer of the server or of the kernel.
        answer: String,
        /// Remedy.
        remedy: &'static str,
        /// True when the server refuses this client, rather than not being there.
        is_refusal: bool,
    },
    /// A server older than the schedules need.
    #[error("{server} is nats-server {version}, and fleets need 2.14 or later: update it")]
    OldServer {
        /// Server.
        server: String,
        /// Version that it reports.
        version: String,
    },
    /// A server without `JetStream`.
    #[error(
        "{server} has no JetStream for this account ({answer}): start nats-server with `-js`, or enable it for the account"
    )]
    NoJetStream {
        /// Server.
        server: String,
        /// Answer of the server.
        answer: String,
    },
    /// A stream or bucket that is not there.
    #[error("{server} has no stream {stream:?}: publish a description first (linerate fleet publish)")]
    Unprepared {
        /// Server.
        server: String,
        /// Name of the stream.
        stream: String,
    },
    /// An agent of the same name that is alive.
    #[error(
        "another agent is the member {name:?}: instance {instance}, linerate {version}; stop it, or use another address"
    )]
    NameTaken {
        /// Name.
        name: String,
        /// Instance of the other agent.
        instance: String,
        /// Version of the other agent.
        version: String,
    },
    /// An entry that another client changed at the same time.
    #[error("{0} was changed by another client at the same time: look at it, then try again")]
    Changed(&'static str),
    /// A message that is larger than the server accepts.
    #[error("{what} has {bytes} bytes, and {server} accepts messages of {limit}: raise `max_payload` of the servers")]
    TooLarge {
        /// Message.
        what: String,
        /// Its size.
        bytes: usize,
        /// Server.
        server: String,
        /// Largest size.
        limit: usize,
    },
    /// A message that is not valid.
    #[error("{what} on {server} is not valid: {reason}")]
    Invalid {
        /// Message.
        what: String,
        /// Server.
        server: String,
        /// Reason.
        reason: String,
    },
    /// No answer in time, or a refusal that may end by itself: an election, a server that ended, a full disk.
    #[error("{action} on {server}: {answer}")]
    Request {
        /// Action that was tried.
        action: String,
        /// Servers.
        server: String,
        /// Answer.
        answer: String,
    },
}

impl NatsError {
    /// True when the same operation may succeed later without a change by the user.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        matches!(self, Self::Request { .. } | Self::NotConnected { is_refusal: false, .. })
    }
}

/// Causes of an error in one line, without repetitions.
pub(crate) fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        next = cause.source();
    }
    text
}

/// Longest time that an operation may take with its repetitions.
pub(crate) const MAX_OPERATION: Duration = Duration::from_secs(15);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_joined_without_repetitions() {
        #[derive(Debug, thiserror::Error)]
        #[error("IO error: refused")]
        struct Outer(#[source] Inner);
        #[derive(Debug, thiserror::Error)]
        #[error("refused")]
        struct Inner(#[source] std::io::Error);
        let error = Outer(Inner(std::io::Error::other("port closed")));
        assert_eq!(chain(&error), "IO error: refused: port closed");
    }
}
