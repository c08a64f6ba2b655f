//! How a probe session fails.

use core::time::Duration;

use linerate_units::Port;

/// What answers on the port in place of a server with probe sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Answering {
    /// A server that took the cookie for an iperf3 client's: iperf3, or a linerate from before probe sessions.
    Iperf3,
    /// A server that is busy with others and takes no more clients now (iperf3's `ACCESS_DENIED`).
    Busy,
    /// A linerate that introduced itself and has no probe sessions.
    WithoutProbes,
    /// Something that closed the connection, or said what makes no sense.
    Something,
    /// Something that said nothing for ten seconds.
    Silence,
}

/// Why a probe session could not be opened, broke off, or did not do what it was asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProbeError {
    /// The port is open, but nobody there speaks of probes.
    #[error("the far end has no probe service: {}", describe(*.0))]
    NoProbeService(Answering),
    /// The far end cannot be reached: what was tried, and what the kernel said.
    #[error("{0}")]
    Unreachable(String),
    /// TCP gets through, and UDP does not.
    #[error(
        "no datagram reached the reflector within {} s (UDP port {port}): does a firewall on the way drop UDP?",
        after.as_secs()
    )]
    NoDatagrams {
        /// The reflector's port.
        port: Port,
        /// How long it was tried.
        after: Duration,
    },
    /// No way for datagrams was opened yet.
    #[error("the session has no way for datagrams yet")]
    NotOpened,
    /// The far end refused.
    #[error("the far end refused \"{request}\": {reason}")]
    Refused {
        /// What was asked for.
        request: String,
        /// Its words.
        reason: String,
    },
    /// The far end did not answer in time.
    #[error("the far end did not answer \"{request}\" within {} s", after.as_secs())]
    TimedOut {
        /// What was asked for.
        request: String,
        /// How long it had.
        after: Duration,
    },
    /// The control connection is gone.
    #[error("the control connection of the probe session is gone: {0}")]
    Lost(String),
    /// The user has had enough.
    #[error("interrupted")]
    Interrupted,
    /// This host refused something: what was tried, and what the kernel said.
    #[error("{0}")]
    System(String),
}

/// What comes of an operation on a probe session.
pub type Result<T> = core::result::Result<T, ProbeError>;

impl ProbeError {
    /// This host refused `operation`.
    pub(crate) fn io(operation: &str, cause: &std::io::Error) -> Self {
        Self::System(format!("{operation}: {}", linerate_sys::describe_os_error(cause)))
    }
}

impl From<linerate_sys::Error> for ProbeError {
    fn from(cause: linerate_sys::Error) -> Self {
        match cause {
            linerate_sys::Error::Cancelled { .. } => Self::Interrupted,
            other => Self::System(other.to_string()),
        }
    }
}

fn describe(answering: Answering) -> &'static str {
    match answering {
        Answering::Iperf3 => "an iperf3 server answers, or a linerate from before probe sessions",
        Answering::Busy => "the server is busy with others, and takes no more clients now",
        Answering::WithoutProbes => "a linerate answers that has no probe sessions",
        Answering::Something => "what answers speaks neither iperf3's protocol nor linerate's",
        Answering::Silence => "the port is open, but nothing is said there",
    }
}
