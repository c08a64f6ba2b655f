//! Errors of a QUIC measurement.

use core::time::Duration;

use linerate_units::Port;

/// Reason why a handshake or a transfer over QUIC failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QuicError {
    /// No packet of the server arrived.
    #[error(
        "no QUIC packet was answered within {} s (UDP port {port}): check the path for a firewall that drops UDP; \
        `linerate serve --quic-port 443` uses a port that most let through",
        after.as_secs()
    )]
    Unanswered {
        /// UDP port of the server.
        port: Port,
        /// Time of the attempt.
        after: Duration,
    },
    /// The server has another key than the one that its session announced.
    #[error(
        "UDP port {0} answers with another key than the server announced: another program has the port, or the path redirects it"
    )]
    WrongKey(Port),
    /// The server refused the request.
    #[error("the server refused the QUIC transfer: {0}")]
    Refused(String),
    /// The connection ended early.
    #[error("the QUIC connection is gone: {0}")]
    Lost(String),
    /// Interrupted by a signal.
    #[error("interrupted")]
    Interrupted,
    /// This host refused an operation: the operation, and the kernel's reason.
    #[error("{0}")]
    System(String),
}

impl QuicError {
    /// True when the path, as far as is known, carries no UDP to that port.
    #[must_use]
    pub const fn is_unanswered(&self) -> bool {
        matches!(self, Self::Unanswered { .. })
    }

    /// Reason without the operation, for the message of a peer that names its own.
    pub(crate) fn reason(&self) -> String {
        match self {
            Self::Refused(reason) | Self::Lost(reason) => reason.clone(),
            other => other.to_string(),
        }
    }

    /// This host refused `operation`.
    pub(crate) fn io(operation: &str, cause: &std::io::Error) -> Self {
        Self::System(format!("{operation}: {}", linerate_sys::describe_os_error(cause)))
    }

    /// The connection ended.
    pub(crate) fn lost(cause: &dyn core::fmt::Display) -> Self {
        Self::Lost(cause.to_string())
    }
}

impl From<linerate_sys::Error> for QuicError {
    fn from(cause: linerate_sys::Error) -> Self {
        Self::System(cause.to_string())
    }
}
