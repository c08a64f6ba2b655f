//! The server's side of the control connection.

use std::collections::VecDeque;

use linerate_units::{ByteCount, MonotonicTime, StreamCount};

use crate::cookie::{Cookie, ExtensionVersion};
use crate::error::{self, ErrorCode};
use crate::extension::{Hello, Message};
use crate::failure::{Awaited, Failure, ProtocolError};
use crate::frame::{self, Decoder};
use crate::parameters::{self, ReceivedParameters, ServerLimits};
use crate::results::{self, Results};
use crate::state::State;
use crate::timer::{Deadlines, Timer};

/// What has happened, or what was decided.
#[derive(Clone, Debug)]
pub enum Input<'a> {
    /// These bytes came from the client.
    Bytes(&'a [u8]),
    /// The client closed the connection, or it broke.
    Closed,
    /// Let the client in. A linerate is answered with `hello`, if there is one.
    Admit {
        /// What to say of this server.
        hello: Option<Hello>,
    },
    /// Turn the client away: busy. Nothing follows.
    Refuse,
    /// The parameters are good and it is this client's turn: have it open its streams.
    Accept,
    /// The parameters are not good, or the client is not who it should be.
    Reject(ErrorCode),
    /// All streams are there.
    StreamsOpen,
    /// The streams are closed, as [`Output::EndRequested`] asked for.
    StreamsStopped,
    /// This side's results, asked for by [`Output::ResultsWanted`].
    Results(Results),
    /// Tell a linerate something; to others nothing is sent.
    Extension(Message),
    /// This process got a signal: tell the client. Nothing follows but the byte to send.
    Terminate,
    /// The test cannot go on.
    Fail(ErrorCode),
    /// Time has passed.
    Tick,
}

/// What to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Send these bytes.
    Send(Vec<u8>),
    /// What the client wants: decide ([`Input::Accept`], [`Input::Reject`]). The client waits as long as it takes.
    Parameters(Box<ReceivedParameters>),
    /// Send and receive; the client has been told.
    Run,
    /// The client has ended the test: stop ([`Input::StreamsStopped`]).
    EndRequested,
    /// The client's results.
    PeerResults(Box<Results>),
    /// Give the results ([`Input::Results`]).
    ResultsWanted,
    /// All has been said. Nothing follows.
    Finished,
    /// The client got a signal. Nothing follows.
    ClientTerminated,
    /// It ended early; where an answer is of use, it was sent before. Nothing follows.
    Failed(Failure),
}

/// Where the conversation stands: named after what comes next.
#[derive(Debug)]
enum Phase {
    /// This end owes an admission.
    Admission,
    Parameters(Decoder),
    /// This end owes a decision.
    Decision,
    /// This end waits for the streams.
    Streams,
    TestEnd,
    /// This end stops its streams.
    Stopping,
    PeerResults(Decoder),
    /// This end owes its results.
    OwnResults,
    Done,
    Over,
}

impl Phase {
    fn awaited(&self) -> Awaited {
        match self {
            Self::Parameters(_) => Awaited::Parameters,
            Self::TestEnd => Awaited::TestEnd,
            Self::PeerResults(_) => Awaited::Results,
            Self::Done => Awaited::Done,
            Self::Admission | Self::Decision | Self::Streams | Self::Stopping | Self::OwnResults | Self::Over => {
                Awaited::Silence
            }
        }
    }

    fn decoder(&self) -> Option<&Decoder> {
        match self {
            Self::Parameters(decoder) | Self::PeerResults(decoder) => Some(decoder),
            _ => None,
        }
    }
}

/// A client's control connection as the server sees it, from after the cookie to the last byte.
///
/// [`ServerMachine::handle`] what happens, then [`ServerMachine::poll`] until there is nothing more, and call
/// [`Input::Tick`] at [`ServerMachine::deadline`] at the latest. An input that does not fit the moment changes nothing.
///
/// The machine limits the time for documents and for the client's last byte. How long a client may be queued, take to
/// open its streams or run is the caller's to decide ([`Input::Fail`]).
#[derive(Debug)]
pub struct ServerMachine {
    phase: Phase,
    outputs: VecDeque<Output>,
    limits: ServerLimits,
    deadlines: Deadlines,
    timer: Option<Timer>,
    streams: StreamCount,
    understands_extension: bool,
    speaks_extension: bool,
}

impl ServerMachine {
    /// A conversation with a client that has sent its cookie.
    #[must_use]
    pub fn new(cookie: &Cookie, limits: ServerLimits, deadlines: Deadlines) -> Self {
        Self {
            phase: Phase::Admission,
            outputs: VecDeque::new(),
            limits,
            deadlines,
            timer: None,
            streams: StreamCount::ZERO,
            understands_extension: cookie.extension_version() == Some(ExtensionVersion::Tests),
            speaks_extension: false,
        }
    }

    /// Takes note of what has happened.
    pub fn handle(&mut self, now: MonotonicTime, input: Input<'_>) {
        match input {
            Input::Bytes(bytes) => self.receive(now, bytes),
            Input::Closed => self.closed(),
            Input::Admit { hello } => self.admit(now, hello),
            Input::Refuse => self.refuse(),
            Input::Accept => self.accept(),
            Input::Reject(code) => self.reject(code),
            Input::StreamsOpen => self.start(),
            Input::StreamsStopped => self.ask_for_results(now),
            Input::Results(results) => self.send_results(now, &results),
            Input::Extension(message) => self.tell(&message),
            Input::Terminate => self.terminate(),
            Input::Fail(code) => self.give_up(code),
            Input::Tick => {}
        }
        // After the bytes: they may have waited in the socket while this process did not run.
        self.check_timer(now);
    }

    /// The next thing to do.
    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When to call [`Input::Tick`] at the latest; `None` while nothing is limited.
    #[must_use]
    pub fn deadline(&self) -> Option<MonotonicTime> {
        self.timer.map(|timer| timer.deadline())
    }

    /// Whether nothing but what is left to poll will come.
    #[must_use]
    pub fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Over)
    }

    /// Whether the client has been told that this server is a linerate.
    #[must_use]
    pub fn speaks_extension(&self) -> bool {
        self.speaks_extension
    }

    /// Memory held for an unfinished message.
    #[must_use]
    pub fn buffered(&self) -> ByteCount {
        self.phase.decoder().map_or(ByteCount::ZERO, Decoder::buffered)
    }

    fn send(&mut self, bytes: Vec<u8>) {
        self.outputs.push_back(Output::Send(bytes));
    }

    fn enter(&mut self, phase: Phase, timer: Option<Timer>) {
        self.phase = phase;
        self.timer = timer;
    }

    fn end(&mut self, last: Option<Output>) {
        self.enter(Phase::Over, None);
        self.outputs.extend(last);
    }

    /// Ends with an error, of which the client is told.
    fn fail(&mut self, failure: Failure) {
        self.send(error::encode(failure.code()).to_vec());
        self.end(Some(Output::Failed(failure)));
    }

    fn check_timer(&mut self, now: MonotonicTime) {
        if !self.timer.is_some_and(|timer| timer.expired(now)) {
            return;
        }
        match self.phase {
            // The results have been exchanged; a client that does not say goodbye changes nothing about them.
            Phase::Done => self.end(Some(Output::Finished)),
            _ => self.fail(Failure::Timeout { waiting_for: self.phase.awaited() }),
        }
    }

    fn closed(&mut self) {
        match self.phase {
            Phase::Over => {}
            Phase::Done => self.end(Some(Output::Finished)),
            _ => {
                let waiting_for = self.phase.awaited();
                self.end(Some(Output::Failed(Failure::ClosedUnexpectedly { waiting_for })));
            }
        }
    }

    fn admit(&mut self, now: MonotonicTime, hello: Option<Hello>) {
        if !matches!(self.phase, Phase::Admission) {
            return;
        }
        match hello.filter(|_| self.understands_extension) {
            Some(hello) => {
                self.speaks_extension = true;
                self.send(Message::Hello(hello).encode());
            }
            None => self.send(vec![State::ParamExchange.byte()]),
        }
        let decoder = Decoder::new(frame::PARAMETERS_LIMIT);
        self.enter(Phase::Parameters(decoder), Some(Timer::message(now, &self.deadlines)));
    }

    fn refuse(&mut self) {
        if matches!(self.phase, Phase::Admission) {
            self.send(vec![State::AccessDenied.byte()]);
            self.end(None);
        }
    }

    fn accept(&mut self) {
        if matches!(self.phase, Phase::Decision) {
            self.send(vec![State::CreateStreams.byte()]);
            self.enter(Phase::Streams, None);
        }
    }

    fn reject(&mut self, code: ErrorCode) {
        if matches!(self.phase, Phase::Decision) {
            self.fail(Failure::GaveUp(code));
        }
    }

    fn start(&mut self) {
        if matches!(self.phase, Phase::Streams) {
            self.send(vec![State::TestStart.byte(), State::TestRunning.byte()]);
            self.enter(Phase::TestEnd, None);
            self.outputs.push_back(Output::Run);
        }
    }

    fn ask_for_results(&mut self, now: MonotonicTime) {
        if matches!(self.phase, Phase::Stopping) {
            self.send(vec![State::ExchangeResults.byte()]);
            let decoder = Decoder::new(frame::CLIENT_RESULTS_LIMIT);
            self.enter(Phase::PeerResults(decoder), Some(Timer::message(now, &self.deadlines)));
        }
    }

    fn send_results(&mut self, now: MonotonicTime, results: &Results) {
        if matches!(self.phase, Phase::OwnResults) {
            let mut bytes = frame::encode(&results::encode(results));
            bytes.push(State::DisplayResults.byte());
            self.send(bytes);
            self.enter(Phase::Done, Some(Timer::reply(now, &self.deadlines)));
        }
    }

    /// The client takes messages wherever it waits for this end, and that is always until it has said all.
    fn tell(&mut self, message: &Message) {
        if self.speaks_extension && !matches!(self.phase, Phase::Done | Phase::Over) {
            self.send(message.encode());
        }
    }

    fn terminate(&mut self) {
        if !self.is_over() {
            self.send(vec![State::ServerTerminate.byte()]);
            self.end(None);
        }
    }

    fn give_up(&mut self, code: ErrorCode) {
        if !self.is_over() {
            self.fail(Failure::GaveUp(code));
        }
    }

    fn receive(&mut self, now: MonotonicTime, mut bytes: &[u8]) {
        if let Some(timer) = &mut self.timer {
            timer.progress(now);
        }
        while !bytes.is_empty() && !self.is_over() {
            // Where a document is due, 0C would be a length beyond every limit: a client may be interrupted any time.
            let in_document = self
                .phase
                .decoder()
                .is_some_and(|decoder| !decoder.is_empty() || bytes[0] != State::ClientTerminate.byte());
            let step = if in_document { self.receive_document(&mut bytes) } else { self.receive_state(&mut bytes) };
            if let Err(failure) = step {
                self.fail(failure);
            }
        }
    }

    fn receive_document(&mut self, bytes: &mut &[u8]) -> Result<(), Failure> {
        let waiting_for = self.phase.awaited();
        let (Phase::Parameters(decoder) | Phase::PeerResults(decoder)) = &mut self.phase else { return Ok(()) };
        let document = decoder.feed(bytes);
        match document.map_err(|error| Failure::Protocol(ProtocolError::Frame { error, waiting_for }))? {
            Some(document) if waiting_for == Awaited::Parameters => self.take_parameters(&document),
            Some(document) => self.take_results(&document),
            None => Ok(()),
        }
    }

    fn take_parameters(&mut self, document: &[u8]) -> Result<(), Failure> {
        let received = parameters::decode(document, &self.limits).map_err(Failure::Refused)?;
        self.streams = received.parameters.total_streams();
        self.enter(Phase::Decision, None);
        self.outputs.push_back(Output::Parameters(Box::new(received)));
        Ok(())
    }

    fn take_results(&mut self, document: &[u8]) -> Result<(), Failure> {
        let results = results::decode(document, self.streams).map_err(Failure::Results)?;
        self.enter(Phase::OwnResults, None);
        self.outputs.push_back(Output::PeerResults(Box::new(results)));
        self.outputs.push_back(Output::ResultsWanted);
        Ok(())
    }

    fn receive_state(&mut self, bytes: &mut &[u8]) -> Result<(), Failure> {
        let byte = bytes[0];
        *bytes = &bytes[1..];
        match (&self.phase, State::from_byte(byte)) {
            (_, Some(State::ClientTerminate)) => self.end(Some(Output::ClientTerminated)),
            // iperf3's server has always ignored it.
            (_, Some(State::TestStart)) => {}
            (Phase::TestEnd, Some(State::TestEnd)) => {
                self.enter(Phase::Stopping, None);
                self.outputs.push_back(Output::EndRequested);
            }
            (Phase::Done, Some(State::IperfDone)) => self.end(Some(Output::Finished)),
            _ => {
                let waiting_for = self.phase.awaited();
                return Err(Failure::Protocol(ProtocolError::UnexpectedByte { byte, waiting_for }));
            }
        }
        Ok(())
    }
}
