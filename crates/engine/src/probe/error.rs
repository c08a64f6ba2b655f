//! Errors of a probe session.

use core::time::Duration;

use linerate_units::Port;

use crate::tls::TlsError;

/// Service that answers on the port in place of a server with probe sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AnsweringService {
    /// A server that took the cookie for an iperf3 client's: iperf3, or a linerate without probe sessions.
    Iperf3,
    /// A busy server that accepts no more clients now (iperf3's `ACCESS_DENIED`).
    Busy,
    /// A linerate whose hello does not list probe sessions.
    WithoutProbes,
    /// A linerate whose hello does not list requests and responses.
    WithoutRequests,
    /// A server that refuses clients without TLS.
    WantsTls,
    /// Something that closed the connection, or sent an unexpected reply.
    Something,
    /// Something that sent nothing for ten seconds.
    Silence,
}

/// Reason why a probe session was not opened, ended early, or refused a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProbeError {
    /// The port is open, but its service has no probe sessions.
    #[error("the far end has no probe service: {}", describe(*.0))]
    NoProbeService(AnsweringService),
    /// The service has no probe sessions, which traffic profiles need.
    #[error(
        "traffic profiles need a linerate at the far end ({}): start `linerate serve` there, or omit --profile",
        describe(*.0)
    )]
    NoProfiles(AnsweringService),
    /// The service has no probe sessions, which requests over TLS and QUIC need.
    #[error(
        "requests over TLS and QUIC need a linerate at the far end ({}): start `linerate serve` there, or omit --probe",
        describe(*.0)
    )]
    NoRequestProbes(AnsweringService),
    /// The far end is unreachable: the failed operation, and the kernel's reason.
    #[error("{0}")]
    Unreachable(String),
    /// TCP gets through, and UDP does not.
    #[error(
        "no datagram reached the reflector within {} s (UDP port {port}): check the path for a firewall that drops UDP",
        after.as_secs()
    )]
    NoDatagrams {
        /// UDP port of the reflector.
        port: Port,
        /// Duration of the attempts.
        after: Duration,
    },
    /// The server opens the connections, and no datagram reaches it.
    #[error("{0}")]
    NoDatagramsToDialer(&'static str),
    /// No datagram channel is open yet.
    #[error("the session has no datagram channel yet")]
    NotOpened,
    /// The far end refused.
    #[error("the far end refused \"{request}\": {reason}")]
    Refused {
        /// Request.
        request: String,
        /// Reason.
        reason: String,
    },
    /// The far end did not answer in time.
    #[error("the far end did not answer \"{request}\" within {} s", after.as_secs())]
    TimedOut {
        /// Request.
        request: String,
        /// Time limit.
        after: Duration,
    },
    /// The control connection is gone.
    #[error("the control connection of the probe session is gone: {0}")]
    Lost(String),
    /// TLS failed: what was tried, the reason, and the remedy.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// Interrupted by a signal.
    #[error("interrupted")]
    Interrupted,
    /// This host refused an operation: the operation, and the kernel's reason.
    #[error("{0}")]
    System(String),
}

/// Result of an operation on a probe session.
pub type Result<T> = core::result::Result<T, ProbeError>;

impl ProbeError {
    /// Note on a measurement without datagrams.
    pub(crate) fn without_datagrams(&self, measured: &str) -> String {
        match self {
            Self::NoDatagramsToDialer(_) => format!("Neither UDP nor ICMP was used: {self}"),
            _ => format!("UDP does not get through, so that only TCP and ICMP {measured}: {self}"),
        }
    }

    /// This host refused `operation`.
    pub(crate) fn io(operation: &str, cause: &std::io::Error) -> Self {
        Self::System(format!("{operation}: {}", linerate_sys::describe_os_error(cause)))
    }
}

impl From<crate::resources::MemoryExhausted> for ProbeError {
    fn from(cause: crate::resources::MemoryExhausted) -> Self {
        Self::System(cause.to_string())
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

fn describe(answering: AnsweringService) -> &'static str {
    match answering {
        AnsweringService::Iperf3 => "the server is iperf3, or a linerate without probe sessions",
        AnsweringService::Busy => "the server is busy and accepts no more clients now",
        AnsweringService::WithoutRequests => "the server is a linerate that does not answer requests yet: update it",
        AnsweringService::WithoutProbes => "the server is a linerate without probe sessions",
        AnsweringService::WantsTls => {
            "the server serves only clients with TLS: use --tls, --tls-pin, --tls-ca or --shared-key-file"
        }
        AnsweringService::Something => "the service uses neither iperf3's protocol nor linerate's",
        AnsweringService::Silence => "the port is open, but its service sends nothing",
    }
}
