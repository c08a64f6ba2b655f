//! One client's test, on a thread of its own: from its parameters to the results.

use core::time::Duration;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use linerate_model::event::{Connected, Event, TestStart};
use linerate_model::parameters::{Direction, EndCondition, Protocol, TestParameters};
use linerate_model::report::Termination;
use linerate_model::sample::IntervalReport;
use linerate_model::stream::Side;
use linerate_sys::poll::{self, Interest, PollItem};
use linerate_sys::{clock, net, options, tcp_info};
use linerate_units::{BitRate, MonotonicTime, Port};
use linerate_wire::cookie::Cookie;
use linerate_wire::error::ErrorCode;
use linerate_wire::extension::{Hello, Message};
use linerate_wire::failure::Failure;
use linerate_wire::parameters::{self, ParametersExtra, ReceivedParameters};
use linerate_wire::results;
use linerate_wire::server::{Input, Output, ServerMachine};

use super::gate::UdpOpening;
use super::opening::Opening;
use super::registry::{Arrived, Inbox, Registry};
use super::watchdog::Watchdog;
use super::{ServerOptions, SessionObserver};
use crate::client::exact_bytes;
use crate::control::{Control, Incoming};
use crate::error::Error;
use crate::measurement::{Measurement, Pace};
use crate::outcome::{self, Peer};
use crate::stream::{FileUse, Phase, Shared, StreamOptions};

/// A client has this long to open its streams once it has been told to.
const OPENING_LIMIT: Duration = Duration::from_secs(30);

/// Cadence of `tcp_info` readings with few sessions; with many, each gets fewer, so that the sum stays the same.
const SAMPLING: Duration = Duration::from_millis(10);
const SESSIONS_AT_FULL_CADENCE: u64 = 8;

/// A client that is told that its test has failed has this long to end it itself.
const REACTION_LIMIT: Duration = Duration::from_millis(200);

/// After the end of an exact test, what is still on its way has this long to arrive.
const DRAIN_LIMIT: Duration = Duration::from_secs(1);
/// … as long as something arrives at least this often, or waits to be read.
const DRAIN_QUIET: Duration = Duration::from_millis(50);

/// When all has been said, the client has this long to close its end of the control connection.
const LINGER: Duration = Duration::from_millis(500);

/// Features of this server, in its hello.
const FEATURES: &[&str] = &["intervals", "tcp_info"];

/// What a session begins with.
pub(super) struct SessionStart {
    pub(super) number: u64,
    pub(super) control: Control,
    pub(super) peer: SocketAddr,
    pub(super) cookie: Cookie,
    pub(super) inbox: Arc<Inbox>,
    pub(super) registry: Arc<Registry>,
    pub(super) options: Arc<ServerOptions>,
    pub(super) observer: Box<dyn SessionObserver>,
}

/// Runs a session to its end, and takes it off the books whatever happens.
pub(super) fn run(start: SessionStart) {
    struct Leave(Arc<Registry>, u64, Cookie);
    impl Drop for Leave {
        fn drop(&mut self) {
            self.0.leave(self.1, &self.2);
        }
    }
    let _leave = Leave(Arc::clone(&start.registry), start.number, start.cookie);
    Session::new(start).serve();
}

struct Session {
    start: SessionStart,
    machine: ServerMachine,
    parameters: Option<Arc<TestParameters>>,
    opening: Option<(Opening, MonotonicTime)>,
    measurement: Option<Measurement>,
    file: Option<Arc<FileUse>>,
    watchdog: Option<Watchdog>,
    peer: Peer,
    overlapping: u64,
    over: bool,
    done: bool,
    terminated: Option<String>,
    error: Option<Error>,
    /// How long to wait for the client to close, too.
    linger: Duration,
}

impl Session {
    fn new(start: SessionStart) -> Self {
        let machine = ServerMachine::new(&start.cookie, start.options.limits, start.options.deadlines);
        Self {
            start,
            machine,
            parameters: None,
            opening: None,
            measurement: None,
            file: None,
            watchdog: None,
            peer: Peer::default(),
            overlapping: 0,
            over: false,
            done: false,
            terminated: None,
            error: None,
            linger: LINGER,
        }
    }

    fn serve(mut self) {
        let _ = options::set_keepalive(self.start.control.stream(), self.start.options.keepalive);
        self.observe(&Event::Connected(Connected {
            side: Side::Server,
            host: self.start.peer.ip().to_string(),
            port: Port::new(self.start.peer.port()).unwrap_or(Port::IPERF3),
            control_mss: options::mss(self.start.control.stream()).ok(),
            session: Some(self.start.number),
        }));
        self.handle(Input::Admit { hello: Some(Hello::new(FEATURES)) });
        loop {
            while let Some(output) = self.machine.poll() {
                self.perform(output);
            }
            if self.done {
                break;
            }
            self.wait();
            self.follow_opening();
            self.follow_measurement();
        }
        self.conclude();
    }

    fn observe(&mut self, event: &Event) {
        self.start.observer.event(event);
    }

    fn handle(&mut self, input: Input<'_>) {
        self.machine.handle(clock::monotonic_now(), input);
    }

    /// Gives up the test and tells the client why.
    fn give_up(&mut self, error: Error) {
        let code = error.code();
        self.error.get_or_insert(error);
        self.handle(Input::Fail(code));
    }

    fn wait(&mut self) {
        let now = clock::monotonic_now();
        let running = self.measurement.as_ref().filter(|_| !self.over);
        let deadlines = [
            self.machine.deadline(),
            self.opening.as_ref().map(|(_, since)| *since + OPENING_LIMIT),
            running.map(Measurement::next_duty),
        ];
        let timeout = deadlines.into_iter().flatten().min().map(|deadline| deadline.since(now));
        let (control_ready, inbox_ready) = {
            let mut items = vec![
                PollItem::new(&self.start.control, Interest::READ),
                PollItem::new(&*self.start.inbox, Interest::READ),
            ];
            items.extend(running.map(|running| PollItem::new(running.shared().waker(), Interest::READ)));
            match poll::wait(&mut items, timeout) {
                Ok(_) => (items[0].is_readable(), items[1].is_readable()),
                // Without poll there is nothing left to wait with.
                Err(_) => (true, false),
            }
        };
        if let Some(measurement) = &self.measurement {
            measurement.shared().drain_waker();
        }
        if inbox_ready {
            self.take_arrivals();
        }
        if control_ready { self.read_control() } else { self.handle(Input::Tick) }
    }

    fn read_control(&mut self) {
        let mut buffer = [0; 8 << 10];
        match self.start.control.read(&mut buffer) {
            Incoming::Bytes(count) => self.handle(Input::Bytes(&buffer[..count])),
            Incoming::Closed => self.handle(Input::Closed),
            Incoming::Nothing => self.handle(Input::Tick),
        }
    }

    fn perform(&mut self, output: Output) {
        match output {
            Output::Send(bytes) => {
                if self.start.control.send(&bytes).is_err() {
                    self.handle(Input::Closed);
                }
            }
            Output::Parameters(received) => self.decide(*received),
            Output::Run => self.begin(),
            Output::EndRequested => self.end_test(),
            Output::PeerResults(peer) => {
                self.observe(&Event::Debug(format!("get_results:\n{}", results::encode(&peer))));
                self.peer.results = Some(*peer);
            }
            Output::ResultsWanted => self.give_results(),
            Output::Finished => self.done = true,
            Output::ClientTerminated => {
                self.error = Some(Error::new(ErrorCode::CLIENT_TERMINATED));
                self.done = true;
            }
            Output::Failed(failure) => {
                self.error.get_or_insert_with(|| failure_error(&failure));
                self.done = true;
            }
        }
    }

    /// Whether the client may run this test, and when it may open its streams.
    fn decide(&mut self, received: ReceivedParameters) {
        let document = parameters::encode(&received.parameters, &ParametersExtra::default());
        self.observe(&Event::Debug(format!("get_parameters:\n{document}")));
        self.start.registry.has_asked(self.start.number);
        if let Some(authenticator) = &self.start.options.authenticator {
            let token = received.authentication_token.as_deref().unwrap_or_default();
            if let Err(cause) = authenticator.check(token, clock::realtime_now()) {
                let error = Error::new(ErrorCode::AUTHORIZATION).with_detail(cause.to_string());
                self.error = Some(error);
                self.handle(Input::Reject(ErrorCode::AUTHORIZATION));
                return;
            }
        }
        if let Some(name) = &self.start.options.file {
            match open_file(name, received.parameters.direction) {
                Ok(file) => self.file = Some(Arc::new(file)),
                Err(cause) => {
                    self.error = Some(Error::io(ErrorCode::FILE, &cause));
                    self.handle(Input::Reject(ErrorCode::FILE));
                    return;
                }
            }
        }
        let parameters = Arc::new(received.parameters);
        self.parameters = Some(Arc::clone(&parameters));
        let registry = &self.start.registry;
        match parameters.protocol {
            Protocol::Tcp => {
                let streams = parameters.total_streams();
                if registry.expect_streams(self.start.cookie, &self.start.inbox, streams) {
                    self.accept();
                } else {
                    self.error = Some(Error::new(ErrorCode::RECEIVE_COOKIE).with_detail("its cookie is in use"));
                    self.handle(Input::Reject(ErrorCode::RECEIVE_COOKIE));
                }
            }
            Protocol::Udp => {
                let round_trip = tcp_info::read(self.start.control.stream()).ok().and_then(|info| info.rtt);
                registry.request_turn(UdpOpening {
                    session: self.start.number,
                    client: self.start.peer.ip(),
                    streams: parameters.total_streams(),
                    block_size: parameters.block_size,
                    sends: parameters.direction != Direction::Forward,
                    round_trip,
                });
            }
        }
    }

    fn accept(&mut self) {
        self.opening = Some((Opening::default(), clock::monotonic_now()));
        self.handle(Input::Accept);
    }

    fn take_arrivals(&mut self) {
        while let Some(arrived) = self.start.inbox.take() {
            match arrived {
                Arrived::Turn => self.accept(),
                Arrived::Terminate(signal) => self.terminate(signal),
                Arrived::Displaced => {
                    self.linger = Duration::ZERO;
                    self.give_up(Error::new(ErrorCode::ACCESS_DENIED));
                }
                Arrived::Tcp(stream) => self.add_stream(|opening, parameters| opening.add_tcp(parameters, stream)),
                Arrived::Udp(socket) => self.add_stream(|opening, parameters| opening.add_udp(parameters, socket)),
            }
        }
    }

    fn add_stream(&mut self, add: impl FnOnce(&mut Opening, &TestParameters) -> crate::Result<()>) {
        let (Some((opening, _)), Some(parameters)) = (&mut self.opening, &self.parameters) else { return };
        if let Err(error) = add(opening, parameters) {
            self.opening = None;
            self.give_up(error);
        }
    }

    fn terminate(&mut self, signal: String) {
        self.terminated = Some(signal);
        self.end_measurement();
        self.handle(Input::Terminate);
        self.done = true;
    }

    fn follow_opening(&mut self) {
        let (Some((opening, since)), Some(parameters)) = (&self.opening, &self.parameters) else { return };
        if opening.is_complete(parameters) {
            self.handle(Input::StreamsOpen);
        } else if clock::monotonic_now().since(*since) >= OPENING_LIMIT {
            self.opening = None;
            let detail = format!("the client did not open its streams within {} s", OPENING_LIMIT.as_secs());
            self.give_up(Error::new(ErrorCode::STREAM_ACCEPT).with_detail(detail));
        }
    }

    /// The client has been told to go: so do we.
    fn begin(&mut self) {
        let (Some((opening, _)), Some(parameters)) = (self.opening.take(), self.parameters.clone()) else { return };
        let streams = opening.into_streams();
        let first = streams.first();
        let started = TestStart {
            side: Side::Server,
            parameters: (*parameters).clone(),
            cookie: self.start.cookie.to_string(),
            at: clock::realtime_now(),
            streams: streams.iter().map(|stream| stream.description.clone()).collect(),
            interval: self.interval(&parameters),
            send_buffer: first.and_then(|stream| options::send_buffer(stream).ok()),
            receive_buffer: first.and_then(|stream| options::receive_buffer(stream).ok()),
            derived_block_size: None,
            target_rate: parameters.rate.unwrap_or(BitRate::ZERO),
            peer: Some(self.start.peer),
            peer_is_linerate: self.machine.speaks_extension(),
        };
        self.observe(&Event::Started(Box::new(started)));
        self.start.registry.test_begins(self.start.number);
        let limit = exact_bytes(&parameters);
        let phase = if parameters.omit.is_zero() { Phase::Counting } else { Phase::Omitted };
        let cpu = parameters.server_affinity.or(self.start.options.cpu);
        let stream_options = StreamOptions {
            parameters: Arc::clone(&parameters),
            file: self.file.clone(),
            payload: Arc::default(),
            cpu,
            read_rate: self.start.options.read_rate,
        };
        let sessions = self.start.registry.running().div_ceil(SESSIONS_AT_FULL_CADENCE).max(1);
        let sampling = SAMPLING * u32::try_from(sessions).unwrap_or(u32::MAX);
        let pace = Pace { interval: self.interval(&parameters), sampling };
        let measurement = Shared::new(phase, limit)
            .and_then(|shared| Measurement::start(streams, Arc::new(shared), &stream_options, pace));
        match measurement {
            Ok(measurement) => self.measurement = Some(measurement),
            Err(cause) => self.give_up(Error::io(ErrorCode::THREAD_CREATE, &cause)),
        }
        self.watchdog = Some(Watchdog::new(&self.start.options, &parameters, clock::monotonic_now()));
    }

    /// Time between interval reports: the client's wish, where this server grants wishes, else the server's own.
    fn interval(&self, parameters: &TestParameters) -> Option<Duration> {
        let options = &self.start.options;
        let wish = parameters.far_interval.filter(|_| options.interval_by_client && self.machine.speaks_extension());
        wish.or(options.interval)
    }

    /// Keeps the interval clock and the limits.
    fn follow_measurement(&mut self) {
        let Some(measurement) = self.measurement.as_mut().filter(|_| !self.over) else { return };
        let now = clock::monotonic_now();
        let mut reports = Vec::new();
        measurement.advance(now, |report| reports.push(report));
        let stalled = measurement.stalled_for(now);
        let bytes = measurement.bytes_moved();
        let verdict = self.watchdog.as_mut().and_then(|watchdog| watchdog.check(now, stalled, bytes));
        for report in reports {
            self.report_interval(report);
        }
        if let Some(error) = verdict {
            self.give_up(error);
            // A stock client that finds its streams closed first tells its user of a broken pipe, not of the reason.
            while let Some(output) = self.machine.poll() {
                self.perform(output);
            }
            let _ = poll::wait_for(&self.start.control, Interest::READ, Some(REACTION_LIMIT));
            self.end_measurement();
        }
    }

    fn report_interval(&mut self, report: IntervalReport) {
        if self.machine.speaks_extension() {
            self.handle(Input::Extension(Message::Interval(report.clone())));
        }
        self.observe(&Event::Interval(report));
    }

    /// The client says that it is over.
    fn end_test(&mut self) {
        self.drain();
        self.end_measurement();
        self.handle(Input::StreamsStopped);
    }

    /// What an exact test has sent is on its way when the client says that it is over: it is received first.
    fn drain(&mut self) {
        let exact = self.parameters.as_ref().is_some_and(|parameters| !matches!(parameters.end, EndCondition::Time(_)));
        let Some(measurement) = self.measurement.as_mut().filter(|_| exact) else { return };
        let start = clock::monotonic_now();
        loop {
            let now = clock::monotonic_now();
            let quiet = measurement.stalled_for(now);
            let waited = now.since(start);
            let is_quiet = quiet.min(waited) > DRAIN_QUIET && !measurement.has_unread();
            if measurement.is_over(now) || waited > DRAIN_LIMIT || is_quiet {
                return;
            }
            clock::sleep_until(now + Duration::from_millis(1));
        }
    }

    fn end_measurement(&mut self) {
        let Some(measurement) = self.measurement.as_mut().filter(|_| !self.over) else {
            self.over = true;
            return;
        };
        self.over = true;
        let mut last = None;
        measurement.end(|report| last = Some(report));
        measurement.close_streams();
        self.overlapping = self.start.registry.test_ends(self.start.number);
        if let Some(report) = last {
            self.report_interval(report);
        }
    }

    fn give_results(&mut self) {
        let Some(measurement) = &self.measurement else {
            self.give_up(Error::new(ErrorCode::SEND_RESULTS));
            return;
        };
        let mut results = outcome::results(measurement);
        if self.machine.speaks_extension() {
            let end = outcome::far_end(measurement, self.overlapping);
            self.handle(Input::Extension(Message::End(end)));
        }
        self.finish(Termination::Complete);
        if self.parameters.as_ref().is_some_and(|parameters| parameters.get_server_output) {
            results.server_output = self.start.observer.output();
        }
        self.observe(&Event::Debug(format!("send_results:\n{}", results::encode(&results))));
        self.handle(Input::Results(results));
    }

    /// Tells the observer what came out, once.
    fn finish(&mut self, termination: Termination) {
        let peer = core::mem::take(&mut self.peer);
        let mut report = match self.measurement.take() {
            Some(mut measurement) => {
                measurement.stop_and_join();
                outcome::report(&measurement, peer, self.file.as_ref(), termination)
            }
            None => outcome::empty_report(termination),
        };
        report.overlapping_tests = Some(self.overlapping);
        self.observe(&Event::Finished(Box::new(report)));
    }

    fn conclude(mut self) {
        let complete = self.measurement.is_none() && self.error.is_none() && self.terminated.is_none();
        while let Some(Output::Send(bytes)) = self.machine.poll() {
            let _ = self.start.control.send(&bytes);
        }
        if !complete {
            self.end_measurement();
            let termination = match (&self.terminated, &self.error) {
                (Some(signal), _) => Termination::Interrupted { signal: signal.clone() },
                (None, Some(error)) if error.code() == ErrorCode::CLIENT_TERMINATED => Termination::PeerTerminated,
                (None, error) => {
                    Termination::Failed { message: error.as_ref().map(ToString::to_string).unwrap_or_default() }
                }
            };
            self.finish(termination);
        }
        if let Some(error) = &self.error {
            self.start.observer.failed(error);
        }
        // Who was not let in has had no test.
        if self.error.as_ref().is_none_or(|error| error.code() != ErrorCode::AUTHORIZATION) {
            self.start.registry.count_test();
        }
        // What was said last is to arrive: closing with unread bytes in the socket would reset the connection.
        let _ = net::close_gracefully(self.start.control.into_stream(), self.linger);
    }
}

fn failure_error(failure: &Failure) -> Error {
    Error::new(failure.code()).with_detail(failure.to_string())
}

fn open_file(name: &std::path::Path, direction: Direction) -> io::Result<FileUse> {
    match direction {
        Direction::Reverse => FileUse::source(name.to_owned()),
        Direction::Forward | Direction::Bidirectional => FileUse::sink(name.to_owned()),
    }
}
