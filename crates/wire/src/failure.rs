//! How a conversation fails.

use core::fmt;

use crate::error::ErrorCode;
use crate::frame::FrameError;
use crate::parameters::Refusal;
use crate::results::ResultsError;
use crate::state::State;

/// What a peer owes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaited {
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
    /// The rest of an error message, after FE.
    ErrorDetails,
    /// The rest of a message of the extension.
    Extension,
    /// Nothing: this end has to speak first.
    Silence,
}

impl fmt::Display for Awaited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Admission => "the server to let this client in",
            Self::Parameters => "the client's test parameters",
            Self::Acceptance => "the server to accept the test parameters",
            Self::TestStart => "the server to see all streams",
            Self::TestRunning => "the server to start the test",
            Self::TestEnd => "the end of the test",
            Self::ExchangeResults => "the server to ask for results",
            Self::Results => "the peer's results",
            Self::DisplayResults => "the server to close the test",
            Self::Done => "the client to close the test",
            Self::ErrorDetails => "the rest of the server's error message",
            Self::Extension => "the rest of a message",
            Self::Silence => "this end's own message",
        })
    }
}

/// A peer that does not keep to the protocol.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolError {
    /// A byte that does not fit here, and perhaps nowhere.
    #[error("byte {}, while waiting for {waiting_for}", describe(*byte))]
    UnexpectedByte {
        /// The byte.
        byte: u8,
        /// What would have fitted.
        waiting_for: Awaited,
    },
    /// A document with a length that is not acceptable.
    #[error("{error}, while waiting for {waiting_for}")]
    Frame {
        /// What is wrong with it.
        error: FrameError,
        /// Which document.
        waiting_for: Awaited,
    },
    /// A message of the extension that cannot be read.
    #[error("a message of the linerate extension that cannot be read: {0}")]
    Extension(String),
}

fn describe(byte: u8) -> String {
    match State::from_byte(byte) {
        Some(state) => format!("0x{byte:02X} ({state:?})"),
        None => format!("0x{byte:02X}"),
    }
}

/// Why a conversation ended early.
///
/// Printed, it is iperf3's text with what is known besides after a colon; [`Failure::code`] has iperf3's text alone.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Failure {
    /// Client: the server runs another test (FF).
    Busy,
    /// Client: the server got a signal (0B).
    ServerTerminated,
    /// Client: the server reported an error (FE).
    ServerError {
        /// Which.
        code: ErrorCode,
        /// `errno` there; 0 when it says nothing.
        errno: i32,
    },
    /// The peer broke the protocol.
    Protocol(ProtocolError),
    /// The peer did not say what it owed in time.
    Timeout {
        /// What it owed.
        waiting_for: Awaited,
    },
    /// The peer closed the connection.
    ClosedUnexpectedly {
        /// What it owed.
        waiting_for: Awaited,
    },
    /// Server: the parameters were refused; the client has been told.
    Refused(Refusal),
    /// The peer's results cannot be used.
    Results(ResultsError),
    /// Server: it gave up ([`crate::server::Input::Fail`], [`crate::server::Input::Reject`]); the client has been told.
    GaveUp(ErrorCode),
}

impl Failure {
    /// iperf3's number for it, and with it the text that scripts look for.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Busy => ErrorCode::ACCESS_DENIED,
            Self::ServerTerminated => ErrorCode::SERVER_TERMINATED,
            Self::ServerError { code, .. } | Self::GaveUp(code) => *code,
            Self::Protocol(ProtocolError::Frame { waiting_for, .. }) => document_code(*waiting_for),
            Self::Protocol(_) => ErrorCode::UNKNOWN_MESSAGE,
            Self::Timeout { waiting_for: Awaited::Parameters } => ErrorCode::RECEIVE_PARAMETERS,
            Self::Timeout { waiting_for: Awaited::Results } => ErrorCode::RECEIVE_RESULTS,
            Self::Timeout { .. } => ErrorCode::RECEIVE_MESSAGE,
            Self::ClosedUnexpectedly { .. } => ErrorCode::CONTROL_CLOSED,
            Self::Refused(refusal) => refusal.code,
            Self::Results(error) => error.code(),
        }
    }
}

/// What iperf3 reports when this document cannot be read.
const fn document_code(waiting_for: Awaited) -> ErrorCode {
    match waiting_for {
        Awaited::Parameters => ErrorCode::RECEIVE_PARAMETERS,
        Awaited::Results => ErrorCode::RECEIVE_RESULTS,
        _ => ErrorCode::UNKNOWN_MESSAGE,
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.code().text();
        match self {
            Self::Busy | Self::ServerTerminated | Self::ServerError { .. } | Self::GaveUp(_) => f.write_str(&text),
            Self::Protocol(error) => write!(f, "{text}: {error}"),
            Self::Timeout { waiting_for } => write!(f, "{text}: timed out waiting for {waiting_for}"),
            Self::ClosedUnexpectedly { waiting_for: Awaited::Acceptance } => write!(
                f,
                "{text} while waiting for {}; iperf3 3.21 answers a wrong user, password or key in this way",
                Awaited::Acceptance
            ),
            Self::ClosedUnexpectedly { waiting_for } => write!(f, "{text} while waiting for {waiting_for}"),
            Self::Refused(refusal) => write!(f, "{text}: {}", refusal.detail),
            Self::Results(error) => write!(f, "{text}: {error}"),
        }
    }
}

impl core::error::Error for Failure {}
