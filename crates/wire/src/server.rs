//! Server side of the control connection.

use std::collections::VecDeque;

use linerate_units::{ByteCount, MonotonicTime, StreamCount};

use crate::cookie::{Cookie, ExtensionVersion};
use crate::error::{self, ErrorCode};
use crate::extension::{ExtensionMessage, ServerHello};
use crate::failure::{AwaitedMessage, ControlFailure, ProtocolError};
use crate::frame::{self, JsonFrameDecoder};
use crate::parameters::{self, ReceivedParameters, ServerLimits};
use crate::results::{self, TestResults};
use crate::state::ControlState;
use crate::timer::{ControlDeadlines, WaitTimer};

/// An event, or a decision of the caller, for the server.
#[derive(Clone, Debug)]
pub enum ServerEvent<'a> {
    /// Bytes from the client.
    Bytes(&'a [u8]),
    /// The client closed the connection, or it failed.
    Closed,
    /// Admit the client. A linerate is answered with `hello`, if there is one.
    Admit {
        /// The server's hello.
        hello: Option<ServerHello>,
    },
    /// Refuse the client, or its parameters: busy. Nothing follows.
    Refuse,
    /// Accept the parameters, in the client's turn: it opens its streams.
    Accept,
    /// Reject the parameters or the client's credentials.
    Reject(ErrorCode),
    /// All streams are open.
    StreamsOpen,
    /// The streams are closed, as requested by [`ServerAction::EndRequested`].
    StreamsStopped,
    /// The server's results, requested by [`ServerAction::ResultsWanted`].
    Results(TestResults),
    /// A message of the extension; sent to a linerate only.
    Extension(ExtensionMessage),
    /// This process received a signal: notify the client. Only the byte to send follows.
    Terminate,
    /// The test cannot continue.
    Fail(ErrorCode),
    /// Time has passed.
    Tick,
}

/// An action for the caller.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerAction {
    /// Send these bytes.
    Send(Vec<u8>),
    /// The client's parameters: decide ([`ServerEvent::Accept`], [`ServerEvent::Reject`]). The client waits without a time limit.
    Parameters(Box<ReceivedParameters>),
    /// Send and receive; the client has been notified.
    Run,
    /// The client has ended the test: stop ([`ServerEvent::StreamsStopped`]).
    EndRequested,
    /// The client's results.
    PeerResults(Box<TestResults>),
    /// Provide the results ([`ServerEvent::Results`]).
    ResultsWanted,
    /// The conversation is complete. Nothing follows.
    Finished,
    /// The client received a signal, or gave up. Nothing follows.
    ClientTerminated,
    /// The conversation ended early; an error message was sent before, where it can reach the client. Nothing follows.
    Failed(ControlFailure),
}

/// Phase of the conversation, named after the next message.
#[derive(Debug)]
enum ServerPhase {
    /// Waiting for the caller to admit or refuse the client.
    Admission,
    Parameters(JsonFrameDecoder),
    /// Waiting for the caller's decision on the parameters.
    Decision,
    /// Waiting for the streams.
    Streams,
    TestEnd,
    /// Waiting for the caller to stop its streams.
    Stopping,
    PeerResults(JsonFrameDecoder),
    /// Waiting for the caller's results.
    OwnResults,
    Done,
    Over,
}

impl ServerPhase {
    fn awaited(&self) -> AwaitedMessage {
        match self {
            Self::Parameters(_) => AwaitedMessage::Parameters,
            Self::TestEnd => AwaitedMessage::TestEnd,
            Self::PeerResults(_) => AwaitedMessage::Results,
            Self::Done => AwaitedMessage::Done,
            Self::Admission | Self::Decision | Self::Streams | Self::Stopping | Self::OwnResults | Self::Over => {
                AwaitedMessage::Silence
            }
        }
    }

    fn decoder(&self) -> Option<&JsonFrameDecoder> {
        match self {
            Self::Parameters(decoder) | Self::PeerResults(decoder) => Some(decoder),
            _ => None,
        }
    }
}

/// State machine of a server's control connection, from after the cookie to the last byte.
///
/// Pass each event to [`ServerMachine::handle`], then call [`ServerMachine::poll`] until it returns `None`, and pass
/// [`ServerEvent::Tick`] at [`ServerMachine::deadline`] at the latest. An event that does not fit the phase changes nothing.
///
/// The machine limits the time for documents and for the client's last byte. The time that a client may be queued, open
/// its streams or run is limited by the caller ([`ServerEvent::Fail`]).
#[derive(Debug)]
pub struct ServerMachine {
    phase: ServerPhase,
    outputs: VecDeque<ServerAction>,
    limits: ServerLimits,
    deadlines: ControlDeadlines,
    timer: Option<WaitTimer>,
    streams: StreamCount,
    understands_extension: bool,
    speaks_extension: bool,
    /// Number of bytes that had no meaning, and were ignored as iperf3 does.
    ignored: u32,
}

/// Most bytes without meaning: reading them would cost more than sending them.
const MAX_IGNORED: u32 = 1024;

impl ServerMachine {
    /// Begins a conversation with a client that has sent its cookie.
    #[must_use]
    pub fn new(cookie: &Cookie, limits: ServerLimits, deadlines: ControlDeadlines) -> Self {
        Self {
            phase: ServerPhase::Admission,
            outputs: VecDeque::new(),
            limits,
            deadlines,
            timer: None,
            streams: StreamCount::ZERO,
            understands_extension: cookie.extension_version() == Some(ExtensionVersion::Tests),
            speaks_extension: false,
            ignored: 0,
        }
    }

    /// Handles an event.
    pub fn handle(&mut self, now: MonotonicTime, input: ServerEvent<'_>) {
        match input {
            ServerEvent::Bytes(bytes) => self.receive(now, bytes),
            ServerEvent::Closed => self.closed(),
            ServerEvent::Admit { hello } => self.admit(now, hello),
            ServerEvent::Refuse => self.refuse(),
            ServerEvent::Accept => self.accept(),
            ServerEvent::Reject(code) => self.reject(code),
            ServerEvent::StreamsOpen => self.start(),
            ServerEvent::StreamsStopped => self.ask_for_results(now),
            ServerEvent::Results(results) => self.send_results(now, &results),
            ServerEvent::Extension(message) => self.send_extension(&message),
            ServerEvent::Terminate => self.terminate(),
            ServerEvent::Fail(code) => self.give_up(code),
            ServerEvent::Tick => {}
        }
        // After the bytes: they may have been in the socket while this process did not run.
        self.check_timer(now);
    }

    /// Returns the next action.
    pub fn poll(&mut self) -> Option<ServerAction> {
        self.outputs.pop_front()
    }

    /// Latest time of the next [`ServerEvent::Tick`]; `None` while no wait is limited.
    #[must_use]
    pub fn deadline(&self) -> Option<MonotonicTime> {
        self.timer.map(|timer| timer.deadline())
    }

    /// True when no actions will follow those left to poll.
    #[must_use]
    pub fn is_over(&self) -> bool {
        matches!(self.phase, ServerPhase::Over)
    }

    /// True when this server has sent its hello.
    #[must_use]
    pub fn speaks_extension(&self) -> bool {
        self.speaks_extension
    }

    /// Memory held for an incomplete message.
    #[must_use]
    pub fn buffered(&self) -> ByteCount {
        self.phase.decoder().map_or(ByteCount::ZERO, JsonFrameDecoder::buffered)
    }

    fn send(&mut self, bytes: Vec<u8>) {
        self.outputs.push_back(ServerAction::Send(bytes));
    }

    fn enter(&mut self, phase: ServerPhase, timer: Option<WaitTimer>) {
        self.phase = phase;
        self.timer = timer;
    }

    fn end(&mut self, last: Option<ServerAction>) {
        self.enter(ServerPhase::Over, None);
        self.outputs.extend(last);
    }

    /// Ends with an error message to the client.
    fn fail(&mut self, failure: ControlFailure) {
        self.send(error::encode(failure.code()).to_vec());
        self.end(Some(ServerAction::Failed(failure)));
    }

    fn check_timer(&mut self, now: MonotonicTime) {
        if !self.timer.is_some_and(|timer| timer.expired(now)) {
            return;
        }
        match self.phase {
            // The results have been exchanged: a missing last byte does not matter.
            ServerPhase::Done => self.end(Some(ServerAction::Finished)),
            _ => self.fail(ControlFailure::Timeout { waiting_for: self.phase.awaited() }),
        }
    }

    fn closed(&mut self) {
        match self.phase {
            ServerPhase::Over => {}
            ServerPhase::Done => self.end(Some(ServerAction::Finished)),
            _ => {
                let waiting_for = self.phase.awaited();
                self.end(Some(ServerAction::Failed(ControlFailure::ClosedUnexpectedly { waiting_for })));
            }
        }
    }

    fn admit(&mut self, now: MonotonicTime, hello: Option<ServerHello>) {
        if !matches!(self.phase, ServerPhase::Admission) {
            return;
        }
        match hello.filter(|_| self.understands_extension) {
            Some(hello) => {
                self.speaks_extension = true;
                self.send(ExtensionMessage::Hello(hello).encode());
            }
            None => self.send(vec![ControlState::ParamExchange.byte()]),
        }
        let decoder = JsonFrameDecoder::new(frame::PARAMETERS_LIMIT);
        self.enter(ServerPhase::Parameters(decoder), Some(WaitTimer::message(now, &self.deadlines)));
    }

    fn refuse(&mut self) {
        if matches!(self.phase, ServerPhase::Admission | ServerPhase::Decision) {
            self.send(vec![ControlState::AccessDenied.byte()]);
            self.end(None);
        }
    }

    fn accept(&mut self) {
        if matches!(self.phase, ServerPhase::Decision) {
            self.send(vec![ControlState::CreateStreams.byte()]);
            self.enter(ServerPhase::Streams, None);
        }
    }

    fn reject(&mut self, code: ErrorCode) {
        if matches!(self.phase, ServerPhase::Decision) {
            self.fail(ControlFailure::GaveUp(code));
        }
    }

    fn start(&mut self) {
        if matches!(self.phase, ServerPhase::Streams) {
            self.send(vec![ControlState::TestStart.byte(), ControlState::TestRunning.byte()]);
            self.enter(ServerPhase::TestEnd, None);
            self.outputs.push_back(ServerAction::Run);
        }
    }

    fn ask_for_results(&mut self, now: MonotonicTime) {
        if matches!(self.phase, ServerPhase::Stopping) {
            self.send(vec![ControlState::ExchangeResults.byte()]);
            let decoder = JsonFrameDecoder::new(frame::client_results_limit(self.streams));
            self.enter(ServerPhase::PeerResults(decoder), Some(WaitTimer::message(now, &self.deadlines)));
        }
    }

    fn send_results(&mut self, now: MonotonicTime, results: &TestResults) {
        if matches!(self.phase, ServerPhase::OwnResults) {
            let mut bytes = frame::encode(&results::encode(results));
            bytes.push(ControlState::DisplayResults.byte());
            self.send(bytes);
            self.enter(ServerPhase::Done, Some(WaitTimer::reply(now, &self.deadlines)));
        }
    }

    /// Sends a message of the extension. The client accepts it wherever it waits for the server, which is always until
    /// the end.
    fn send_extension(&mut self, message: &ExtensionMessage) {
        if self.speaks_extension && !matches!(self.phase, ServerPhase::Done | ServerPhase::Over) {
            self.send(message.encode());
        }
    }

    fn terminate(&mut self) {
        if !self.is_over() {
            self.send(vec![ControlState::ServerTerminate.byte()]);
            self.end(None);
        }
    }

    fn give_up(&mut self, code: ErrorCode) {
        if !self.is_over() {
            self.fail(ControlFailure::GaveUp(code));
        }
    }

    fn receive(&mut self, now: MonotonicTime, mut bytes: &[u8]) {
        if let Some(timer) = &mut self.timer {
            timer.progress(now);
        }
        while !bytes.is_empty() && !self.is_over() {
            // In place of a document, these bytes would begin a length above every limit: a client may be interrupted at
            // any time.
            let ends = [ControlState::ClientTerminate, ControlState::IperfDone].map(ControlState::byte);
            let in_document =
                self.phase.decoder().is_some_and(|decoder| !decoder.is_empty() || !ends.contains(&bytes[0]));
            let step = if in_document { self.receive_document(&mut bytes) } else { self.receive_state(&mut bytes) };
            if let Err(failure) = step {
                self.fail(failure);
            }
        }
    }

    fn receive_document(&mut self, bytes: &mut &[u8]) -> Result<(), ControlFailure> {
        let waiting_for = self.phase.awaited();
        let (ServerPhase::Parameters(decoder) | ServerPhase::PeerResults(decoder)) = &mut self.phase else {
            return Ok(());
        };
        let document = decoder.feed(bytes);
        match document.map_err(|error| ControlFailure::Protocol(ProtocolError::Frame { error, waiting_for }))? {
            Some(document) if waiting_for == AwaitedMessage::Parameters => self.handle_parameters(&document),
            Some(document) => self.handle_results(&document),
            None => Ok(()),
        }
    }

    fn handle_parameters(&mut self, document: &[u8]) -> Result<(), ControlFailure> {
        let received = parameters::decode(document, &self.limits).map_err(ControlFailure::Refused)?;
        self.streams = received.parameters.total_streams();
        self.enter(ServerPhase::Decision, None);
        self.outputs.push_back(ServerAction::Parameters(Box::new(received)));
        Ok(())
    }

    fn handle_results(&mut self, document: &[u8]) -> Result<(), ControlFailure> {
        let results = results::decode(document, self.streams).map_err(ControlFailure::Results)?;
        self.enter(ServerPhase::OwnResults, None);
        self.outputs.push_back(ServerAction::PeerResults(Box::new(results)));
        self.outputs.push_back(ServerAction::ResultsWanted);
        Ok(())
    }

    fn receive_state(&mut self, bytes: &mut &[u8]) -> Result<(), ControlFailure> {
        let byte = bytes[0];
        *bytes = &bytes[1..];
        match (&self.phase, ControlState::from_byte(byte)) {
            // iperf3's server ignores it.
            (_, Some(ControlState::TestStart)) if self.ignored < MAX_IGNORED => self.ignored += 1,
            (ServerPhase::TestEnd, Some(ControlState::TestEnd)) => {
                self.enter(ServerPhase::Stopping, None);
                self.outputs.push_back(ServerAction::EndRequested);
            }
            (ServerPhase::Done, Some(ControlState::IperfDone)) => self.end(Some(ServerAction::Finished)),
            // A client of iperf3 that fails, for instance to open its streams, sends it at any time.
            (_, Some(ControlState::ClientTerminate | ControlState::IperfDone)) => {
                self.end(Some(ServerAction::ClientTerminated));
            }
            _ => {
                let waiting_for = self.phase.awaited();
                return Err(ControlFailure::Protocol(ProtocolError::UnexpectedByte { byte, waiting_for }));
            }
        }
        Ok(())
    }
}
