//! Client side of the control connection.

use std::collections::VecDeque;

use linerate_units::{ByteCount, MonotonicTime, StreamCount};

use crate::cookie::{Cookie, ExtensionVersion};
use crate::error;
use crate::extension::{self, ExtensionMessage, ServerHello};
use crate::failure::{AwaitedMessage, ControlFailure, ProtocolError};
use crate::frame::{self, JsonFrameDecoder};
use crate::results::{self, TestResults};
use crate::state::ControlState;
use crate::timer::{ControlDeadlines, WaitTimer};

/// An event for the client.
#[derive(Clone, Debug)]
pub enum ClientEvent<'a> {
    /// Bytes from the server.
    Bytes(&'a [u8]),
    /// The server closed the connection, or it failed.
    Closed,
    /// The parameters document, requested by [`ClientAction::ParametersWanted`].
    Parameters(String),
    /// The streams are open, as requested by [`ClientAction::OpenStreams`]. Not required: the server's state byte decides.
    StreamsOpen,
    /// The test has reached its end.
    TestOver,
    /// The client's results, requested by [`ClientAction::ResultsWanted`].
    Results(TestResults),
    /// This process received a signal: notify the server. Only bytes to send follow.
    Interrupted,
    /// The test has failed at this end: notify the server, if it has accepted the client. Only bytes to send follow.
    Failed,
    /// Time has passed.
    Tick,
}

/// An action for the caller.
#[derive(Clone, Debug, PartialEq)]
pub enum ClientAction {
    /// Send these bytes.
    Send(Vec<u8>),
    /// Provide the parameters ([`ClientEvent::Parameters`]).
    ParametersWanted {
        /// The server's hello; `None` when it is not a linerate.
        peer: Option<ServerHello>,
    },
    /// Open the streams; with UDP, perform their handshakes.
    OpenStreams,
    /// The server sees all streams (01): it has answered every handshake, even if a reply was lost.
    Prepare,
    /// Send and receive (02).
    Run,
    /// Stop, and provide the results ([`ClientEvent::Results`]).
    ResultsWanted,
    /// The server's results.
    PeerResults(Box<TestResults>),
    /// A message of the extension, from a linerate server.
    Far(Box<ExtensionMessage>),
    /// The conversation is complete. Nothing follows.
    Finished,
    /// The conversation ended early. Nothing follows.
    Failed(ControlFailure),
}

/// Phase of the conversation, named after the next message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClientPhase {
    Admission,
    /// Waiting for the caller's parameters.
    OwnParameters,
    Acceptance,
    TestStart,
    TestRunning,
    TestEnd,
    ExchangeResults,
    /// Waiting for the caller's results.
    OwnResults,
    PeerResults,
    DisplayResults,
    Over,
}

impl ClientPhase {
    fn awaited(self) -> AwaitedMessage {
        match self {
            Self::Admission => AwaitedMessage::Admission,
            Self::OwnParameters | Self::OwnResults | Self::Over => AwaitedMessage::Silence,
            Self::Acceptance => AwaitedMessage::Acceptance,
            Self::TestStart => AwaitedMessage::TestStart,
            Self::TestRunning => AwaitedMessage::TestRunning,
            Self::TestEnd => AwaitedMessage::TestEnd,
            Self::ExchangeResults => AwaitedMessage::ExchangeResults,
            Self::PeerResults => AwaitedMessage::Results,
            Self::DisplayResults => AwaitedMessage::DisplayResults,
        }
    }
}

/// Bytes of iperf3's error number in an error message; the system's `errno` follows.
const ERROR_NUMBER_LENGTH: usize = 4;

/// A partly received message.
#[derive(Debug)]
enum PartialMessage {
    Error { received: [u8; error::ERROR_LENGTH], length: usize },
    Extension(JsonFrameDecoder),
    Results(JsonFrameDecoder),
}

/// State machine of a client's control connection, from the first byte to the last.
///
/// Pass each event to [`ClientMachine::handle`], then call [`ClientMachine::poll`] until it returns `None`, and pass
/// [`ClientEvent::Tick`] at [`ClientMachine::deadline`] at the latest. The first action is to send the cookie. An event that
/// does not fit the phase, such as [`ClientEvent::TestOver`] after the end, changes nothing.
///
/// Every wait for the server is limited, except while the test runs: its end is the caller's ([`ClientEvent::TestOver`]).
#[derive(Debug)]
pub struct ClientMachine {
    phase: ClientPhase,
    partial: Option<PartialMessage>,
    outputs: VecDeque<ClientAction>,
    deadlines: ControlDeadlines,
    /// Limits the wait for the state byte or document of the phase.
    phase_timer: Option<WaitTimer>,
    /// Limits the wait for the remainder of a message that may come at any time.
    partial_timer: Option<WaitTimer>,
    streams: StreamCount,
    announces_extension: bool,
    speaks_extension: bool,
}

impl ClientMachine {
    /// Begins a conversation at `now` over a new connection, for a test of `streams` streams over both directions.
    #[must_use]
    pub fn new(now: MonotonicTime, cookie: &Cookie, streams: StreamCount, deadlines: ControlDeadlines) -> Self {
        Self {
            phase: ClientPhase::Admission,
            partial: None,
            outputs: VecDeque::from([ClientAction::Send(cookie.as_bytes().to_vec())]),
            deadlines,
            phase_timer: Some(WaitTimer::turn(now, &deadlines)),
            partial_timer: None,
            streams,
            announces_extension: cookie.extension_version() == Some(ExtensionVersion::Tests),
            speaks_extension: false,
        }
    }

    /// Handles an event.
    pub fn handle(&mut self, now: MonotonicTime, input: ClientEvent<'_>) {
        match input {
            ClientEvent::Bytes(bytes) => self.receive(now, bytes),
            ClientEvent::Closed => self.closed(),
            ClientEvent::Parameters(document) => self.send_parameters(now, &document),
            ClientEvent::StreamsOpen | ClientEvent::Tick => {}
            ClientEvent::TestOver => self.end_test(now),
            ClientEvent::Results(results) => self.send_results(now, &results),
            ClientEvent::Interrupted => self.interrupt(),
            ClientEvent::Failed => self.give_up(),
        }
        // After the bytes: they may have been in the socket while this process did not run.
        self.check_timers(now);
    }

    /// Returns the next action.
    pub fn poll(&mut self) -> Option<ClientAction> {
        self.outputs.pop_front()
    }

    /// Latest time of the next [`ClientEvent::Tick`]; `None` while no wait is limited.
    #[must_use]
    pub fn deadline(&self) -> Option<MonotonicTime> {
        self.timers().map(|timer| timer.deadline()).min()
    }

    /// True when no actions will follow those left to poll.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.phase == ClientPhase::Over
    }

    /// Memory held for an incomplete message.
    #[must_use]
    pub fn buffered(&self) -> ByteCount {
        match &self.partial {
            Some(PartialMessage::Extension(decoder) | PartialMessage::Results(decoder)) => decoder.buffered(),
            Some(PartialMessage::Error { .. }) | None => ByteCount::ZERO,
        }
    }

    fn timers(&self) -> impl Iterator<Item = WaitTimer> {
        [self.phase_timer, self.partial_timer].into_iter().flatten()
    }

    fn check_timers(&mut self, now: MonotonicTime) {
        if self.timers().any(|timer| timer.expired(now)) {
            self.fail(ControlFailure::Timeout { waiting_for: self.awaited() });
        }
    }

    fn awaited(&self) -> AwaitedMessage {
        match &self.partial {
            Some(PartialMessage::Error { .. }) => AwaitedMessage::ErrorDetails,
            Some(PartialMessage::Extension(_)) => AwaitedMessage::Extension,
            Some(PartialMessage::Results(_)) | None => self.phase.awaited(),
        }
    }

    fn send(&mut self, bytes: Vec<u8>) {
        self.outputs.push_back(ClientAction::Send(bytes));
    }

    fn enter(&mut self, phase: ClientPhase, timer: Option<WaitTimer>) {
        self.phase = phase;
        self.phase_timer = timer;
    }

    fn end(&mut self) {
        self.enter(ClientPhase::Over, None);
        self.partial = None;
        self.partial_timer = None;
    }

    fn fail(&mut self, failure: ControlFailure) {
        self.end();
        self.outputs.push_back(ClientAction::Failed(failure));
    }

    fn closed(&mut self) {
        if self.phase == ClientPhase::Over {
            return;
        }
        // iperf3 3.18 closes after the number when it refuses a user, without the `errno` that should follow.
        self.fail(match self.partial {
            Some(PartialMessage::Error { received, length }) if length >= ERROR_NUMBER_LENGTH => {
                ControlFailure::ServerError { code: error::decode(received).0, errno: 0 }
            }
            _ => ControlFailure::ClosedUnexpectedly { waiting_for: self.awaited() },
        });
    }

    fn send_parameters(&mut self, now: MonotonicTime, document: &str) {
        if self.phase == ClientPhase::OwnParameters {
            self.send(frame::encode(document));
            self.enter(ClientPhase::Acceptance, Some(WaitTimer::turn(now, &self.deadlines)));
        }
    }

    fn end_test(&mut self, now: MonotonicTime) {
        if self.phase == ClientPhase::TestEnd {
            self.send(vec![ControlState::TestEnd.byte()]);
            self.enter(ClientPhase::ExchangeResults, Some(WaitTimer::reply(now, &self.deadlines)));
        }
    }

    fn send_results(&mut self, now: MonotonicTime, results: &TestResults) {
        if self.phase == ClientPhase::OwnResults {
            self.send(frame::encode(&results::encode(results)));
            self.enter(ClientPhase::PeerResults, Some(WaitTimer::message(now, &self.deadlines)));
        }
    }

    fn interrupt(&mut self) {
        if self.phase != ClientPhase::Over {
            self.end();
            self.send(vec![ControlState::ClientTerminate.byte()]);
        }
    }

    /// As `iperf_client_end` of iperf3: without it, a server takes the end for that of the connection.
    fn give_up(&mut self) {
        if !matches!(self.phase, ClientPhase::Admission | ClientPhase::Over) {
            self.send(vec![ControlState::IperfDone.byte()]);
        }
        self.end();
    }

    fn receive(&mut self, now: MonotonicTime, mut bytes: &[u8]) {
        for timer in [&mut self.phase_timer, &mut self.partial_timer].into_iter().flatten() {
            timer.progress(now);
        }
        while !bytes.is_empty() && self.phase != ClientPhase::Over {
            let step = match self.partial.take() {
                None => self.begin_message(now, &mut bytes),
                Some(partial) => self.continue_message(now, partial, &mut bytes),
            };
            if let Err(failure) = step {
                self.fail(failure);
            }
        }
    }

    /// Handles the first byte of a message.
    fn begin_message(&mut self, now: MonotonicTime, bytes: &mut &[u8]) -> Result<(), ControlFailure> {
        let byte = bytes[0];
        let starts_document = self.phase == ClientPhase::PeerResults && !self.interrupts_document(byte);
        if starts_document {
            self.partial = Some(PartialMessage::Results(JsonFrameDecoder::new(frame::SERVER_RESULTS_LIMIT)));
            return Ok(());
        }
        *bytes = &bytes[1..];
        if byte == extension::MARKER && self.expects_extension() {
            self.partial_timer = Some(WaitTimer::message(now, &self.deadlines));
            self.partial = Some(PartialMessage::Extension(JsonFrameDecoder::new(frame::EXTENSION_LIMIT)));
            return Ok(());
        }
        match ControlState::from_byte(byte) {
            Some(ControlState::ServerError) => {
                self.partial_timer = Some(WaitTimer::message(now, &self.deadlines));
                self.partial = Some(PartialMessage::Error { received: [0; error::ERROR_LENGTH], length: 0 });
                Ok(())
            }
            Some(ControlState::ServerTerminate) => Err(ControlFailure::ServerTerminated),
            Some(ControlState::AccessDenied) => Err(ControlFailure::Busy),
            Some(state) => self.advance(now, state),
            None => Err(self.unexpected(byte)),
        }
    }

    /// True for bytes that may come in place of results: each would begin a length above the limit.
    fn interrupts_document(&self, byte: u8) -> bool {
        [ControlState::ServerError.byte(), ControlState::ServerTerminate.byte()].contains(&byte)
            || (byte == extension::MARKER && self.expects_extension())
    }

    fn expects_extension(&self) -> bool {
        self.speaks_extension || (self.announces_extension && self.phase == ClientPhase::Admission)
    }

    fn unexpected(&self, byte: u8) -> ControlFailure {
        ControlFailure::Protocol(ProtocolError::UnexpectedByte { byte, waiting_for: self.phase.awaited() })
    }

    /// Handles a state byte of the normal sequence.
    fn advance(&mut self, now: MonotonicTime, state: ControlState) -> Result<(), ControlFailure> {
        let output = match (self.phase, state) {
            (ClientPhase::Admission, ControlState::ParamExchange) => {
                self.enter(ClientPhase::OwnParameters, None);
                ClientAction::ParametersWanted { peer: None }
            }
            (ClientPhase::Acceptance, ControlState::CreateStreams) => {
                self.enter(ClientPhase::TestStart, Some(WaitTimer::turn(now, &self.deadlines)));
                ClientAction::OpenStreams
            }
            (ClientPhase::TestStart, ControlState::TestStart) => {
                self.enter(ClientPhase::TestRunning, Some(WaitTimer::reply(now, &self.deadlines)));
                ClientAction::Prepare
            }
            (ClientPhase::TestRunning, ControlState::TestRunning) => {
                self.enter(ClientPhase::TestEnd, None);
                ClientAction::Run
            }
            (ClientPhase::ExchangeResults, ControlState::ExchangeResults) => {
                self.enter(ClientPhase::OwnResults, None);
                ClientAction::ResultsWanted
            }
            (ClientPhase::DisplayResults, ControlState::DisplayResults) => {
                self.end();
                self.send(vec![ControlState::IperfDone.byte()]);
                ClientAction::Finished
            }
            _ => return Err(self.unexpected(state.byte())),
        };
        self.outputs.push_back(output);
        Ok(())
    }

    /// Continues a partly received message.
    fn continue_message(
        &mut self,
        now: MonotonicTime,
        partial: PartialMessage,
        bytes: &mut &[u8],
    ) -> Result<(), ControlFailure> {
        match partial {
            PartialMessage::Error { received, length } => self.continue_error(received, length, bytes),
            PartialMessage::Extension(decoder) => self.continue_extension(decoder, bytes),
            PartialMessage::Results(decoder) => self.continue_results(now, decoder, bytes),
        }
    }

    fn continue_error(
        &mut self,
        mut received: [u8; error::ERROR_LENGTH],
        length: usize,
        bytes: &mut &[u8],
    ) -> Result<(), ControlFailure> {
        received[length] = bytes[0];
        *bytes = &bytes[1..];
        if length + 1 < error::ERROR_LENGTH {
            self.partial = Some(PartialMessage::Error { received, length: length + 1 });
            return Ok(());
        }
        let (code, errno) = error::decode(received);
        Err(ControlFailure::ServerError { code, errno })
    }

    fn continue_extension(&mut self, mut decoder: JsonFrameDecoder, bytes: &mut &[u8]) -> Result<(), ControlFailure> {
        let document = decoder.feed(bytes).map_err(|error| {
            ControlFailure::Protocol(ProtocolError::Frame { error, waiting_for: AwaitedMessage::Extension })
        })?;
        let Some(document) = document else {
            self.partial = Some(PartialMessage::Extension(decoder));
            return Ok(());
        };
        self.partial_timer = None;
        let unreadable = |error: String| ControlFailure::Protocol(ProtocolError::Extension(error));
        match ExtensionMessage::decode(&document).map_err(|error| unreadable(error.to_string()))? {
            Some(ExtensionMessage::Hello(hello)) if self.phase == ClientPhase::Admission => {
                self.speaks_extension = true;
                self.enter(ClientPhase::OwnParameters, None);
                self.outputs.push_back(ClientAction::ParametersWanted { peer: Some(hello) });
            }
            _ if self.phase == ClientPhase::Admission => {
                return Err(unreadable("the first message is not a hello".to_owned()));
            }
            Some(ExtensionMessage::Hello(_)) => return Err(unreadable("a second hello".to_owned())),
            Some(message) => self.outputs.push_back(ClientAction::Far(Box::new(message))),
            None => {}
        }
        Ok(())
    }

    fn continue_results(
        &mut self,
        now: MonotonicTime,
        mut decoder: JsonFrameDecoder,
        bytes: &mut &[u8],
    ) -> Result<(), ControlFailure> {
        let document = decoder.feed(bytes).map_err(|error| {
            ControlFailure::Protocol(ProtocolError::Frame { error, waiting_for: AwaitedMessage::Results })
        })?;
        let Some(document) = document else {
            self.partial = Some(PartialMessage::Results(decoder));
            return Ok(());
        };
        let results = results::decode(&document, self.streams).map_err(ControlFailure::Results)?;
        self.enter(ClientPhase::DisplayResults, Some(WaitTimer::reply(now, &self.deadlines)));
        self.outputs.push_back(ClientAction::PeerResults(Box::new(results)));
        Ok(())
    }
}
