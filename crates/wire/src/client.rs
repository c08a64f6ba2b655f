//! The client's side of the control connection.

use std::collections::VecDeque;

use linerate_units::{ByteCount, MonotonicTime, StreamCount};

use crate::cookie::{Cookie, ExtensionVersion};
use crate::error;
use crate::extension::{self, Hello, Message};
use crate::failure::{Awaited, Failure, ProtocolError};
use crate::frame::{self, Decoder};
use crate::results::{self, Results};
use crate::state::State;
use crate::timer::{Deadlines, Timer};

/// What has happened.
#[derive(Clone, Debug)]
pub enum Input<'a> {
    /// These bytes came from the server.
    Bytes(&'a [u8]),
    /// The server closed the connection, or it broke.
    Closed,
    /// The parameters document, asked for by [`Output::ParametersWanted`].
    Parameters(String),
    /// The streams are open, as [`Output::OpenStreams`] asked for. Not needed to go on: the server knows better.
    StreamsOpen,
    /// The test has reached its end.
    TestOver,
    /// This side's results, asked for by [`Output::ResultsWanted`].
    Results(Results),
    /// This process got a signal: tell the server. Nothing follows but the bytes to send.
    Interrupted,
    /// Time has passed.
    Tick,
}

/// What to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Send these bytes.
    Send(Vec<u8>),
    /// Give the parameters ([`Input::Parameters`]).
    ParametersWanted {
        /// What the server said of itself; `None` when it is not a linerate.
        peer: Option<Hello>,
    },
    /// Open the streams; with UDP, do their handshakes.
    OpenStreams,
    /// The server sees all streams (01): every handshake was answered, also those whose answer got lost.
    Prepare,
    /// Send and receive (02).
    Run,
    /// Stop, and give the results ([`Input::Results`]).
    ResultsWanted,
    /// The server's results.
    PeerResults(Box<Results>),
    /// A linerate at the far end says something.
    Far(Box<Message>),
    /// All has been said. Nothing follows.
    Finished,
    /// It ended early. Nothing follows.
    Failed(Failure),
}

/// Where the conversation stands: named after what comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Admission,
    /// This end owes the parameters.
    OwnParameters,
    Acceptance,
    TestStart,
    TestRunning,
    TestEnd,
    ExchangeResults,
    /// This end owes its results.
    OwnResults,
    PeerResults,
    DisplayResults,
    Over,
}

impl Phase {
    fn awaited(self) -> Awaited {
        match self {
            Self::Admission => Awaited::Admission,
            Self::OwnParameters | Self::OwnResults | Self::Over => Awaited::Silence,
            Self::Acceptance => Awaited::Acceptance,
            Self::TestStart => Awaited::TestStart,
            Self::TestRunning => Awaited::TestRunning,
            Self::TestEnd => Awaited::TestEnd,
            Self::ExchangeResults => Awaited::ExchangeResults,
            Self::PeerResults => Awaited::Results,
            Self::DisplayResults => Awaited::DisplayResults,
        }
    }
}

/// Bytes of iperf3's own number in an error message; the system's follows.
const ERROR_NUMBER_LENGTH: usize = 4;

/// The message of which a part has come.
#[derive(Debug)]
enum Partial {
    Error { received: [u8; error::ERROR_LENGTH], length: usize },
    Extension(Decoder),
    Results(Decoder),
}

/// A client's control connection, from the first byte to the last.
///
/// [`ClientMachine::handle`] what happens, then [`ClientMachine::poll`] until there is nothing more, and call
/// [`Input::Tick`] at [`ClientMachine::deadline`] at the latest. The first output is the cookie. An input that does not
/// fit the moment, such as [`Input::TestOver`] after the end, changes nothing.
///
/// There is no time limit where a server may be queueing (before 09, 0A and 01), nor while the test runs.
#[derive(Debug)]
pub struct ClientMachine {
    phase: Phase,
    partial: Option<Partial>,
    outputs: VecDeque<Output>,
    deadlines: Deadlines,
    /// For the state byte or document that the phase waits for.
    phase_timer: Option<Timer>,
    /// For the rest of a message that may come at any time.
    partial_timer: Option<Timer>,
    streams: StreamCount,
    announces_extension: bool,
    speaks_extension: bool,
}

impl ClientMachine {
    /// A conversation over a connection that has just been made, about a test of `streams` streams over both
    /// directions.
    #[must_use]
    pub fn new(cookie: &Cookie, streams: StreamCount, deadlines: Deadlines) -> Self {
        Self {
            phase: Phase::Admission,
            partial: None,
            outputs: VecDeque::from([Output::Send(cookie.as_bytes().to_vec())]),
            deadlines,
            phase_timer: None,
            partial_timer: None,
            streams,
            announces_extension: cookie.extension_version() == Some(ExtensionVersion::Tests),
            speaks_extension: false,
        }
    }

    /// Takes note of what has happened.
    pub fn handle(&mut self, now: MonotonicTime, input: Input<'_>) {
        match input {
            Input::Bytes(bytes) => self.receive(now, bytes),
            Input::Closed => self.closed(),
            Input::Parameters(document) => self.send_parameters(&document),
            Input::StreamsOpen | Input::Tick => {}
            Input::TestOver => self.end_test(now),
            Input::Results(results) => self.send_results(now, &results),
            Input::Interrupted => self.interrupt(),
        }
        // After the bytes: they may have waited in the socket while this process did not run.
        self.check_timers(now);
    }

    /// The next thing to do.
    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When to call [`Input::Tick`] at the latest; `None` while nothing is limited.
    #[must_use]
    pub fn deadline(&self) -> Option<MonotonicTime> {
        self.timers().map(|timer| timer.deadline()).min()
    }

    /// Whether nothing but what is left to poll will come.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    /// Memory held for an unfinished message.
    #[must_use]
    pub fn buffered(&self) -> ByteCount {
        match &self.partial {
            Some(Partial::Extension(decoder) | Partial::Results(decoder)) => decoder.buffered(),
            Some(Partial::Error { .. }) | None => ByteCount::ZERO,
        }
    }

    fn timers(&self) -> impl Iterator<Item = Timer> {
        [self.phase_timer, self.partial_timer].into_iter().flatten()
    }

    fn check_timers(&mut self, now: MonotonicTime) {
        if self.timers().any(|timer| timer.expired(now)) {
            self.fail(Failure::Timeout { waiting_for: self.awaited() });
        }
    }

    fn awaited(&self) -> Awaited {
        match &self.partial {
            Some(Partial::Error { .. }) => Awaited::ErrorDetails,
            Some(Partial::Extension(_)) => Awaited::Extension,
            Some(Partial::Results(_)) | None => self.phase.awaited(),
        }
    }

    fn send(&mut self, bytes: Vec<u8>) {
        self.outputs.push_back(Output::Send(bytes));
    }

    fn enter(&mut self, phase: Phase, timer: Option<Timer>) {
        self.phase = phase;
        self.phase_timer = timer;
    }

    fn end(&mut self) {
        self.enter(Phase::Over, None);
        self.partial = None;
        self.partial_timer = None;
    }

    fn fail(&mut self, failure: Failure) {
        self.end();
        self.outputs.push_back(Output::Failed(failure));
    }

    fn closed(&mut self) {
        if self.phase == Phase::Over {
            return;
        }
        // iperf3 3.18 closes after the number when it refuses a user, without the `errno` that should follow.
        self.fail(match self.partial {
            Some(Partial::Error { received, length }) if length >= ERROR_NUMBER_LENGTH => {
                Failure::ServerError { code: error::decode(received).0, errno: 0 }
            }
            _ => Failure::ClosedUnexpectedly { waiting_for: self.awaited() },
        });
    }

    fn send_parameters(&mut self, document: &str) {
        if self.phase == Phase::OwnParameters {
            self.send(frame::encode(document));
            self.enter(Phase::Acceptance, None);
        }
    }

    fn end_test(&mut self, now: MonotonicTime) {
        if self.phase == Phase::TestEnd {
            self.send(vec![State::TestEnd.byte()]);
            self.enter(Phase::ExchangeResults, Some(Timer::reply(now, &self.deadlines)));
        }
    }

    fn send_results(&mut self, now: MonotonicTime, results: &Results) {
        if self.phase == Phase::OwnResults {
            self.send(frame::encode(&results::encode(results)));
            self.enter(Phase::PeerResults, Some(Timer::message(now, &self.deadlines)));
        }
    }

    fn interrupt(&mut self) {
        if self.phase != Phase::Over {
            self.end();
            self.send(vec![State::ClientTerminate.byte()]);
        }
    }

    fn receive(&mut self, now: MonotonicTime, mut bytes: &[u8]) {
        for timer in [&mut self.phase_timer, &mut self.partial_timer].into_iter().flatten() {
            timer.progress(now);
        }
        while !bytes.is_empty() && self.phase != Phase::Over {
            let step = match self.partial.take() {
                None => self.begin(now, &mut bytes),
                Some(partial) => self.go_on(now, partial, &mut bytes),
            };
            if let Err(failure) = step {
                self.fail(failure);
            }
        }
    }

    /// The first byte of something.
    fn begin(&mut self, now: MonotonicTime, bytes: &mut &[u8]) -> Result<(), Failure> {
        let byte = bytes[0];
        let starts_document = self.phase == Phase::PeerResults && !self.interrupts_document(byte);
        if starts_document {
            self.partial = Some(Partial::Results(Decoder::new(frame::SERVER_RESULTS_LIMIT)));
            return Ok(());
        }
        *bytes = &bytes[1..];
        if byte == extension::MARKER && self.expects_extension() {
            self.partial_timer = Some(Timer::message(now, &self.deadlines));
            self.partial = Some(Partial::Extension(Decoder::new(frame::EXTENSION_LIMIT)));
            return Ok(());
        }
        match State::from_byte(byte) {
            Some(State::ServerError) => {
                self.partial_timer = Some(Timer::message(now, &self.deadlines));
                self.partial = Some(Partial::Error { received: [0; error::ERROR_LENGTH], length: 0 });
                Ok(())
            }
            Some(State::ServerTerminate) => Err(Failure::ServerTerminated),
            Some(State::AccessDenied) => Err(Failure::Busy),
            Some(state) => self.advance(now, state),
            None => Err(self.unexpected(byte)),
        }
    }

    /// Where results are due, what else may come instead: each of these would be a length beyond the limit.
    fn interrupts_document(&self, byte: u8) -> bool {
        [State::ServerError.byte(), State::ServerTerminate.byte()].contains(&byte)
            || (byte == extension::MARKER && self.expects_extension())
    }

    fn expects_extension(&self) -> bool {
        self.speaks_extension || (self.announces_extension && self.phase == Phase::Admission)
    }

    fn unexpected(&self, byte: u8) -> Failure {
        Failure::Protocol(ProtocolError::UnexpectedByte { byte, waiting_for: self.phase.awaited() })
    }

    /// A state byte of the normal course.
    fn advance(&mut self, now: MonotonicTime, state: State) -> Result<(), Failure> {
        let output = match (self.phase, state) {
            (Phase::Admission, State::ParamExchange) => {
                self.enter(Phase::OwnParameters, None);
                Output::ParametersWanted { peer: None }
            }
            (Phase::Acceptance, State::CreateStreams) => {
                self.enter(Phase::TestStart, None);
                Output::OpenStreams
            }
            (Phase::TestStart, State::TestStart) => {
                self.enter(Phase::TestRunning, Some(Timer::reply(now, &self.deadlines)));
                Output::Prepare
            }
            (Phase::TestRunning, State::TestRunning) => {
                self.enter(Phase::TestEnd, None);
                Output::Run
            }
            (Phase::ExchangeResults, State::ExchangeResults) => {
                self.enter(Phase::OwnResults, None);
                Output::ResultsWanted
            }
            (Phase::DisplayResults, State::DisplayResults) => {
                self.end();
                self.send(vec![State::IperfDone.byte()]);
                Output::Finished
            }
            _ => return Err(self.unexpected(state.byte())),
        };
        self.outputs.push_back(output);
        Ok(())
    }

    /// More of a message.
    fn go_on(&mut self, now: MonotonicTime, partial: Partial, bytes: &mut &[u8]) -> Result<(), Failure> {
        match partial {
            Partial::Error { received, length } => self.go_on_with_error(received, length, bytes),
            Partial::Extension(decoder) => self.go_on_with_extension(decoder, bytes),
            Partial::Results(decoder) => self.go_on_with_results(now, decoder, bytes),
        }
    }

    fn go_on_with_error(
        &mut self,
        mut received: [u8; error::ERROR_LENGTH],
        length: usize,
        bytes: &mut &[u8],
    ) -> Result<(), Failure> {
        received[length] = bytes[0];
        *bytes = &bytes[1..];
        if length + 1 < error::ERROR_LENGTH {
            self.partial = Some(Partial::Error { received, length: length + 1 });
            return Ok(());
        }
        let (code, errno) = error::decode(received);
        Err(Failure::ServerError { code, errno })
    }

    fn go_on_with_extension(&mut self, mut decoder: Decoder, bytes: &mut &[u8]) -> Result<(), Failure> {
        let document = decoder
            .feed(bytes)
            .map_err(|error| Failure::Protocol(ProtocolError::Frame { error, waiting_for: Awaited::Extension }))?;
        let Some(document) = document else {
            self.partial = Some(Partial::Extension(decoder));
            return Ok(());
        };
        self.partial_timer = None;
        let unreadable = |error: String| Failure::Protocol(ProtocolError::Extension(error));
        match Message::decode(&document).map_err(|error| unreadable(error.to_string()))? {
            Some(Message::Hello(hello)) if self.phase == Phase::Admission => {
                self.speaks_extension = true;
                self.enter(Phase::OwnParameters, None);
                self.outputs.push_back(Output::ParametersWanted { peer: Some(hello) });
            }
            _ if self.phase == Phase::Admission => {
                return Err(unreadable("the first one is not a hello".to_owned()));
            }
            Some(Message::Hello(_)) => return Err(unreadable("a second hello".to_owned())),
            Some(message) => self.outputs.push_back(Output::Far(Box::new(message))),
            None => {}
        }
        Ok(())
    }

    fn go_on_with_results(
        &mut self,
        now: MonotonicTime,
        mut decoder: Decoder,
        bytes: &mut &[u8],
    ) -> Result<(), Failure> {
        let document = decoder
            .feed(bytes)
            .map_err(|error| Failure::Protocol(ProtocolError::Frame { error, waiting_for: Awaited::Results }))?;
        let Some(document) = document else {
            self.partial = Some(Partial::Results(decoder));
            return Ok(());
        };
        let results = results::decode(&document, self.streams).map_err(Failure::Results)?;
        self.enter(Phase::DisplayResults, Some(Timer::reply(now, &self.deadlines)));
        self.outputs.push_back(Output::PeerResults(Box::new(results)));
        Ok(())
    }
}
