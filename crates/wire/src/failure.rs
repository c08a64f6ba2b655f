//! Failures of a conversation.

use core::fmt;

use crate::error::ErrorCode;
use crate::frame::JsonFrameError;
use crate::parameters::ParametersRefusal;
use crate::results::ResultsError;
use crate::state::ControlState;

/// The message awaited from the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AwaitedMessage {
    /// The server's first byte: 09, or a linerate's hello.
    Admission,
    /// The client's parameters.
    Parameters,
    /// The server's 0A.
    Acceptance,
    /// The server's 01.
    TestStart,
    /// The server's 02.
    TestRunning,
    /// The end of the test: 04 from the client, nothing from the server.
    TestEnd,
    /// The server's 0D.
    ExchangeResults,
    /// The peer's results.
    Results,
    /// The server's 0E.
    DisplayResults,
    /// The client's 10.
    Done,
    /// The remainder of an error message, after FE.
    ErrorDetails,
    /// The remainder of a message of the extension.
    Extension,
    /// Nothing: the caller's action is next.
    Silence,
}

impl fmt::Display for AwaitedMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Admission => "the server to admit this client",
            Self::Parameters => "the client's test parameters",
            Self::Acceptance => "the server to accept the test parameters",
            Self::TestStart => "the server to see all streams",
            Self::TestRunning => "the server to start the test",
            Self::TestEnd => "the end of the test",
            Self::ExchangeResults => "the server to ask for results",
            Self::Results => "the peer's results",
            Self::DisplayResults => "the server to close the test",
            Self::Done => "the client to close the test",
            Self::ErrorDetails => "the remainder of the server's error message",
            Self::Extension => "the remainder of a message",
            Self::Silence => "this host's own message",
        })
    }
}

/// A violation of the protocol by the peer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolError {
    /// An unexpected byte.
    #[error("byte {}, while waiting for {waiting_for}", describe(*byte))]
    UnexpectedByte {
        /// The byte.
        byte: u8,
        /// The message that was awaited.
        waiting_for: AwaitedMessage,
    },
    /// A document with an invalid length.
    #[error("{error}, while waiting for {waiting_for}")]
    Frame {
        /// The error of the length.
        error: JsonFrameError,
        /// The document.
        waiting_for: AwaitedMessage,
    },
    /// A message of the extension that cannot be read.
    #[error("unreadable message of the linerate extension: {0}")]
    Extension(String),
}

fn describe(byte: u8) -> String {
    match ControlState::from_byte(byte) {
        Some(state) => format!("0x{byte:02X} ({state:?})"),
        None => format!("0x{byte:02X}"),
    }
}

/// Reason why a conversation ended early.
///
/// `Display` prints iperf3's text, then details after a colon; [`ControlFailure::code`] gives iperf3's text alone.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ControlFailure {
    /// Client: the server is running another test (FF).
    Busy,
    /// Client: the server received a signal (0B).
    ServerTerminated,
    /// Client: the server reported an error (FE).
    ServerError {
        /// iperf3's error number.
        code: ErrorCode,
        /// `errno` of the server; 0 when unknown.
        errno: i32,
    },
    /// The peer broke the protocol.
    Protocol(ProtocolError),
    /// A message of the peer did not arrive in time.
    Timeout {
        /// The message that was awaited.
        waiting_for: AwaitedMessage,
    },
    /// The peer closed the connection.
    ClosedUnexpectedly {
        /// The message that was awaited.
        waiting_for: AwaitedMessage,
    },
    /// Server: the parameters were refused; the client has been notified.
    Refused(ParametersRefusal),
    /// The peer's results cannot be used.
    Results(ResultsError),
    /// Server: the caller gave up ([`crate::server::ServerEvent::Fail`], [`crate::server::ServerEvent::Reject`]); the client has
    /// been notified.
    GaveUp(ErrorCode),
}

impl ControlFailure {
    /// iperf3's error number, whose text scripts match.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Busy => ErrorCode::ACCESS_DENIED,
            Self::ServerTerminated => ErrorCode::SERVER_TERMINATED,
            Self::ServerError { code, .. } | Self::GaveUp(code) => *code,
            Self::Protocol(ProtocolError::Frame { waiting_for, .. }) => document_code(*waiting_for),
            Self::Protocol(_) => ErrorCode::UNKNOWN_MESSAGE,
            Self::Timeout { waiting_for: AwaitedMessage::Parameters } => ErrorCode::RECEIVE_PARAMETERS,
            Self::Timeout { waiting_for: AwaitedMessage::Results } => ErrorCode::RECEIVE_RESULTS,
            Self::Timeout { .. } => ErrorCode::RECEIVE_MESSAGE,
            Self::ClosedUnexpectedly { .. } => ErrorCode::CONTROL_CLOSED,
            Self::Refused(refusal) => refusal.code,
            Self::Results(error) => error.code(),
        }
    }
}

/// Error number of iperf3 when this document cannot be read.
const fn document_code(waiting_for: AwaitedMessage) -> ErrorCode {
    match waiting_for {
        AwaitedMessage::Parameters => ErrorCode::RECEIVE_PARAMETERS,
        AwaitedMessage::Results => ErrorCode::RECEIVE_RESULTS,
        _ => ErrorCode::UNKNOWN_MESSAGE,
    }
}

impl fmt::Display for ControlFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.code().text();
        match self {
            Self::Busy | Self::ServerTerminated | Self::ServerError { .. } | Self::GaveUp(_) => f.write_str(&text),
            Self::Protocol(error) => write!(f, "{text}: {error}"),
            Self::Timeout { waiting_for } => write!(f, "{text}: timed out waiting for {waiting_for}"),
            Self::ClosedUnexpectedly { waiting_for: AwaitedMessage::Acceptance } => write!(
                f,
                "{text} while waiting for {}; iperf3 3.21 answers a wrong user, password or key in this way",
                AwaitedMessage::Acceptance
            ),
            Self::ClosedUnexpectedly { waiting_for } => write!(f, "{text} while waiting for {waiting_for}"),
            Self::Refused(refusal) => write!(f, "{text}: {}", refusal.detail),
            Self::Results(error) => write!(f, "{text}: {error}"),
        }
    }
}

impl core::error::Error for ControlFailure {}
