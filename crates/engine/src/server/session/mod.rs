//! One client's test, on a thread of its own: from its parameters to the results.

mod ending;

use core::fmt::Write;
use core::time::Duration;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use linerate_model::event::{ConnectionEstablished, TestEvent, TestStart};
use linerate_model::parameters::{TestDirection, TestParameters, TestProtocol};
use linerate_model::sample::IntervalReport;
use linerate_model::stream::EndpointRole;
use linerate_sys::poll::{self, PollInterest, PollItem};
use linerate_sys::{clock, host, options, resources as host_resources, tcp_info};
use linerate_units::{BitRate, ByteCount, MonotonicTime, Port};
use linerate_wire::cookie::Cookie;
use linerate_wire::error::ErrorCode;
use linerate_wire::extension::{ExtensionMessage, ServerHello, TLS_DATA_FEATURE};
use linerate_wire::failure::ControlFailure;
use linerate_wire::parameters::{self, ParametersExtra, ReceivedParameters};
use linerate_wire::results;
use linerate_wire::server::{ServerAction, ServerEvent, ServerMachine};

use super::gate::UdpOpening;
use super::inbox::{SessionInbox, SessionMessage};
use super::opening::{AcceptedStreams, first_memory};
use super::registry::SessionRegistry;
use super::tcp_turns::TcpOpening;
use super::watchdog::TestWatchdog;
use super::{ServerOptions, SessionObserver};
use crate::client::byte_limits;
use crate::control::{ControlConnection, ControlRead};
use crate::error::Error;
use crate::host_watch::HostWatch;
use crate::measurement::{MeasurementIntervals, TestMeasurement, watch_host};
use crate::outcome::PeerReport;
use crate::resources::{DESCRIPTORS_PER_STREAM, MemoryLease, ResourceAccount};
use crate::server_rate::RateAccount;
use crate::stream::{SessionState, StreamOptions, TestPhase, TransferFile};

/// Time limit of a client to open its streams once it may.
const OPENING_TIMEOUT: Duration = Duration::from_secs(30);

/// Cadence of `tcp_info` samples with few sessions; with many, each gets fewer, so that the sum stays the same.
const SAMPLING: Duration = Duration::from_millis(10);
const SESSIONS_AT_FULL_CADENCE: u64 = 8;
const STREAMS_AT_FULL_CADENCE: u64 = 128;

/// Reports of streams per second, of each test if all have as many streams as the last one: at 10 to 20 µs each, a fifth
/// of a processor at most.
const MAX_REPORTS_PER_SECOND: u32 = 10_000;

/// Time for a client to end a test itself after an error message.
const REACTION_TIMEOUT: Duration = Duration::from_millis(200);

/// Most held reports that are sent one by one: to compress them costs more processor time than it saves bytes.
const MAX_PLAIN_REPORTS: usize = 4;

/// Time for the client to close its end of the control connection after the last message.
const LINGER_TIMEOUT: Duration = Duration::from_millis(500);

/// Most reports of streams that a server holds back for a client, some 200 kB: half a minute of one stream, four times a second.
const MAX_HELD_REPORTS: usize = 128;

/// Features of this server, in its hello.
const FEATURES: &[&str] = &["intervals", "tcp_info", TLS_DATA_FEATURE];

/// Initial state of a session.
pub(super) struct SessionStart {
    pub(super) number: u64,
    pub(super) control: ControlConnection,
    pub(super) peer: SocketAddr,
    pub(super) cookie: Cookie,
    pub(super) inbox: Arc<SessionInbox>,
    pub(super) registry: Arc<SessionRegistry>,
    pub(super) options: Arc<ServerOptions>,
    /// True when connections can have a window from the handshake on.
    pub(super) has_windows: bool,
    /// Its account in the budget of the server.
    pub(super) account: ResourceAccount,
    /// Its share of the descriptors.
    pub(super) _descriptors: Option<MemoryLease>,
    pub(super) observer: Box<dyn SessionObserver>,
}

impl SessionStart {
    /// Account of the client in the rate of the server.
    fn rate(&self) -> Option<RateAccount> {
        self.account.rate()
    }

    /// Sends a message to the client, which counts towards the rate of the server.
    fn send(&mut self, message: &[u8]) -> io::Result<()> {
        if let Some(rate) = self.rate() {
            rate.count(ByteCount::from_usize(message.len()), clock::monotonic_now());
        }
        self.control.queue(message)
    }
}

/// A client that is admitted, and whose session is to run.
pub(super) struct AdmittedClient {
    start: SessionStart,
    machine: ServerMachine,
}

impl AdmittedClient {
    /// Admits a client before its session has a thread: while that starts, the client prepares its parameters.
    pub(super) fn admit(mut start: SessionStart) -> Self {
        let _ = options::set_keepalive(start.control.stream(), start.options.keepalive);
        let mut machine = ServerMachine::new(&start.cookie, start.options.limits, start.options.deadlines);
        let hello = Some(ServerHello::new(FEATURES));
        machine.handle(clock::monotonic_now(), ServerEvent::Admit { hello });
        if let Some(ServerAction::Send(message)) = machine.poll()
            && start.send(&message).is_err()
        {
            machine.handle(clock::monotonic_now(), ServerEvent::Closed);
        }
        Self { start, machine }
    }

    /// Runs the session to its end, and always unregisters it.
    pub(super) fn run(self) {
        struct SessionSlot(Arc<SessionRegistry>, u64, Cookie);
        impl Drop for SessionSlot {
            fn drop(&mut self) {
                self.0.leave(self.1, &self.2);
            }
        }
        let start = &self.start;
        let _leave = SessionSlot(Arc::clone(&start.registry), start.number, start.cookie);
        TestSession::new(self).serve();
    }
}

struct TestSession {
    start: SessionStart,
    machine: ServerMachine,
    parameters: Option<Arc<TestParameters>>,
    opening: Option<(AcceptedStreams, MonotonicTime)>,
    measurement: Option<TestMeasurement>,
    /// Reports that the client wants together at the end.
    held: Vec<IntervalReport>,
    /// Watch on this host until the measurement has it.
    host: Option<HostWatch>,
    /// Memory and descriptors of the streams.
    memory: MemoryLease,
    file: Option<Arc<TransferFile>>,
    watchdog: Option<TestWatchdog>,
    peer: PeerReport,
    overlapping: u64,
    over: bool,
    done: bool,
    terminated: Option<String>,
    error: Option<Error>,
    /// Longest wait for the client to close, too.
    linger: Duration,
}

impl TestSession {
    fn new(AdmittedClient { start, machine }: AdmittedClient) -> Self {
        Self {
            start,
            machine,
            parameters: None,
            opening: None,
            measurement: None,
            held: Vec::new(),
            host: None,
            memory: MemoryLease::default(),
            file: None,
            watchdog: None,
            peer: PeerReport::default(),
            overlapping: 0,
            over: false,
            done: false,
            terminated: None,
            error: None,
            linger: LINGER_TIMEOUT,
        }
    }

    fn serve(mut self) {
        self.observe(&TestEvent::Connected(ConnectionEstablished {
            side: EndpointRole::Server,
            host: self.start.peer.ip().to_string(),
            port: Port::new(self.start.peer.port()).unwrap_or(Port::IPERF3),
            control_mss: options::mss(self.start.control.stream()).ok(),
            session: Some(self.start.number),
            request: None,
        }));
        loop {
            while let Some(output) = self.machine.poll() {
                self.perform(output);
            }
            if self.done {
                break;
            }
            self.wait();
            self.advance_opening();
            self.follow_measurement();
        }
        self.conclude();
    }

    fn observe(&mut self, event: &TestEvent) {
        self.start.observer.event(event);
    }

    /// Reports a document of the control connection, where that is requested: writing it again would delay the test.
    fn debug(&mut self, name: &str, document: impl FnOnce() -> String) {
        if self.start.options.debug {
            self.observe(&TestEvent::Debug(format!("{name}:\n{}", document())));
        }
    }

    fn handle(&mut self, input: ServerEvent<'_>) {
        self.machine.handle(clock::monotonic_now(), input);
    }

    /// Aborts the test and reports the reason to the client.
    fn give_up(&mut self, error: Error) {
        let code = error.code();
        self.error.get_or_insert(error);
        self.handle(ServerEvent::Fail(code));
    }

    fn wait(&mut self) {
        let now = clock::monotonic_now();
        let running = self.measurement.as_ref().filter(|_| !self.over);
        let unread = self.start.control.has_unread();
        // Streams that end wake the inbox, too.
        let deadlines = [
            self.machine.deadline(),
            self.start.control.write_deadline(),
            self.opening.as_ref().map(|(_, since)| *since + OPENING_TIMEOUT),
            running.map(TestMeasurement::next_duty),
            running.map(|one| one.next_stall_check(now, self.start.options.stall_timeout)),
            unread.then_some(now),
        ];
        let timeout = deadlines.into_iter().flatten().min().map(|deadline| deadline.since(now));
        let mut items = [
            PollItem::new(&self.start.control, self.start.control.interest(true)),
            PollItem::new(&*self.start.inbox, PollInterest::READ),
        ];
        // Without poll, no other wait is possible.
        let (control_ready, inbox_ready) =
            poll::wait(&mut items, timeout).map_or((true, true), |_| (items[0].is_readable(), items[1].is_readable()));
        if inbox_ready {
            self.take_arrivals();
        }
        if control_ready || unread {
            self.read_control();
        } else {
            self.handle(ServerEvent::Tick);
        }
        if self.start.control.flush().is_err() {
            self.handle(ServerEvent::Closed);
        }
    }

    fn read_control(&mut self) {
        let mut buffer = [0; 8 << 10];
        match self.start.control.read(&mut buffer) {
            ControlRead::Bytes(count) => self.handle(ServerEvent::Bytes(&buffer[..count])),
            ControlRead::Closed => self.handle(ServerEvent::Closed),
            ControlRead::Nothing => self.handle(ServerEvent::Tick),
        }
    }

    fn perform(&mut self, output: ServerAction) {
        match output {
            ServerAction::Send(bytes) => {
                if self.start.send(&bytes).is_err() {
                    self.handle(ServerEvent::Closed);
                }
            }
            ServerAction::Parameters(received) => self.decide(*received),
            ServerAction::Run => self.begin(),
            ServerAction::EndRequested => self.end_test(),
            ServerAction::PeerResults(peer) => {
                self.debug("get_results", || results::encode(&peer));
                self.peer.results = Some(*peer);
            }
            ServerAction::ResultsWanted => self.give_results(),
            ServerAction::Finished => self.done = true,
            ServerAction::ClientTerminated => {
                self.error = Some(Error::new(ErrorCode::CLIENT_TERMINATED));
                self.done = true;
            }
            ServerAction::Failed(failure) => {
                self.error.get_or_insert_with(|| failure_error(&failure));
                self.done = true;
            }
        }
    }

    /// Decides whether the client may run this test, and when it may open its streams.
    fn decide(&mut self, received: ReceivedParameters) {
        self.debug("get_parameters", || parameters::encode(&received.parameters, &ParametersExtra::default()));
        self.start.registry.mark_parameters_received(self.start.number);
        if let Some(authenticator) = &self.start.options.authenticator {
            let token = received.authentication_token.as_deref().unwrap_or_default();
            if let Err(cause) = authenticator.check(token, clock::realtime_now()) {
                let error = Error::new(ErrorCode::AUTHORIZATION).with_detail(cause.to_string());
                self.error = Some(error);
                self.handle(ServerEvent::Reject(ErrorCode::AUTHORIZATION));
                return;
            }
        }
        if let Some(name) = &self.start.options.file {
            match open_file(name, received.parameters.direction) {
                Ok(file) => self.file = Some(Arc::new(file)),
                Err(cause) => {
                    self.error = Some(Error::io(ErrorCode::FILE, &cause));
                    self.handle(ServerEvent::Reject(ErrorCode::FILE));
                    return;
                }
            }
        }
        let processors = host_resources::allowed_processors().unwrap_or_default();
        if let Some(error) = self.start.options.choices.refusal(&received.parameters, &processors) {
            let code = error.code();
            self.error = Some(error);
            self.handle(ServerEvent::Reject(code));
            return;
        }
        let mut parameters = received.parameters;
        if !self.lease_memory(&parameters) {
            return;
        }
        if let Some(name) = &parameters.congestion
            && !self.start.options.choices.grants_congestion(name, &host::allowed_congestion_controls())
        {
            // As where the kernel does not have it: the test goes on with the server's own.
            parameters.congestion = None;
        }
        if parameters.congestion.as_deref().is_some_and(|name| options::check_congestion(name).is_err()) {
            self.observe(&TestEvent::Warning("TCP congestion control algorithm not supported".to_owned()));
        }
        parameters.kernel_events &= self.start.options.choices.grants_kernel_events();
        let parameters = Arc::new(parameters);
        self.parameters = Some(Arc::clone(&parameters));
        let registry = &self.start.registry;
        let round_trip = tcp_info::read(self.start.control.stream()).ok().and_then(|info| info.rtt);
        let (session, client) = (self.start.number, self.start.peer.ip());
        match parameters.protocol {
            TestProtocol::Tcp => {
                let streams = parameters.total_streams();
                let window = parameters.window.filter(|_| self.start.has_windows);
                if registry.expect_streams(self.start.cookie, &self.start.inbox, streams) {
                    let opening = TcpOpening { session, client, streams, window, round_trip };
                    if registry.request_tcp_turn(opening, clock::monotonic_now()) {
                        self.accept();
                    }
                } else {
                    self.error = Some(Error::new(ErrorCode::RECEIVE_COOKIE).with_detail("its cookie is in use"));
                    self.handle(ServerEvent::Reject(ErrorCode::RECEIVE_COOKIE));
                }
            }
            TestProtocol::Udp => {
                registry.request_turn(UdpOpening {
                    session,
                    client,
                    streams: parameters.total_streams(),
                    block_size: parameters.block_size,
                    sends: parameters.direction != TestDirection::Forward,
                    round_trip,
                });
            }
        }
    }

    /// Takes the memory of a test; returns `false` where it has to be refused.
    fn lease_memory(&mut self, parameters: &TestParameters) -> bool {
        let account = &self.start.account;
        let has_file = self.start.options.file.is_some();
        let memory = first_memory(parameters, has_file);
        // A stream in TLS writes by a descriptor of its own.
        let descriptors = DESCRIPTORS_PER_STREAM + u64::from(has_file) + u64::from(parameters.tls_data);
        match account.lease_flows(memory, parameters.total_streams().get().saturating_mul(descriptors)) {
            Ok(lease) => self.memory = lease,
            Err(cause) => {
                self.error = Some(Error::new(ErrorCode::ACCESS_DENIED).with_detail(cause.to_string()));
                // The client may try again: the server is busy.
                self.handle(ServerEvent::Refuse);
                self.done = true;
            }
        }
        !self.done
    }

    fn accept(&mut self) {
        self.opening = Some((AcceptedStreams::default(), clock::monotonic_now()));
        self.handle(ServerEvent::Accept);
    }

    fn take_arrivals(&mut self) {
        while let Some(arrived) = self.start.inbox.take() {
            match arrived {
                SessionMessage::Turn => self.accept(),
                SessionMessage::Terminate(signal) => self.terminate(signal),
                SessionMessage::Displaced => {
                    self.linger = Duration::ZERO;
                    self.give_up(Error::new(ErrorCode::ACCESS_DENIED));
                }
                SessionMessage::Tcp(stream) => {
                    self.add_stream(|opening, parameters| opening.add_tcp(parameters, stream));
                }
                SessionMessage::Udp(socket) => {
                    self.add_stream(|opening, parameters| opening.add_udp(parameters, socket));
                }
            }
        }
    }

    fn add_stream(&mut self, add: impl FnOnce(&mut AcceptedStreams, &TestParameters) -> crate::Result<()>) {
        let (Some((opening, _)), Some(parameters)) = (&mut self.opening, &self.parameters) else { return };
        if let Err(error) = add(opening, parameters) {
            self.opening = None;
            self.give_up(error);
        }
    }

    fn terminate(&mut self, signal: String) {
        self.terminated = Some(signal);
        self.end_measurement();
        self.handle(ServerEvent::Terminate);
        self.done = true;
    }

    fn advance_opening(&mut self) {
        let (Some((opening, since)), Some(parameters)) = (&mut self.opening, &self.parameters) else { return };
        if opening.is_complete(parameters) {
            if let Err(error) = opening.assign_roles(parameters) {
                self.opening = None;
                return self.give_up(error);
            }
            self.host = watch_host(self.start.peer, parameters);
            self.handle(ServerEvent::StreamsOpen);
        } else if clock::monotonic_now().since(*since) >= OPENING_TIMEOUT {
            self.opening = None;
            let mut detail = format!("the client did not open its streams within {} s", OPENING_TIMEOUT.as_secs());
            if let strangers @ 1.. = self.start.inbox.strangers() {
                let _ = write!(detail, "; {strangers} with its cookie came from other addresses and were closed");
            }
            self.give_up(Error::new(ErrorCode::STREAM_ACCEPT).with_detail(detail));
        }
    }

    /// Starts the test on this side, after the client's start message.
    fn begin(&mut self) {
        let (Some((opening, _)), Some(parameters)) = (self.opening.take(), self.parameters.clone()) else { return };
        let streams = opening.into_streams();
        self.start.registry.test_begins(self.start.number, parameters.total_streams());
        let interval = self.interval(&parameters);
        let first = streams.first();
        let started = TestStart {
            side: EndpointRole::Server,
            parameters: (*parameters).clone(),
            cookie: self.start.cookie.to_string(),
            at: clock::realtime_now(),
            streams: streams.iter().map(|stream| stream.description.clone()).collect(),
            interval,
            send_buffer: first.and_then(|stream| options::send_buffer(stream).ok()),
            receive_buffer: first.and_then(|stream| options::receive_buffer(stream).ok()),
            derived_block_size: None,
            tls_data: None,
            target_rate: parameters.rate.unwrap_or(BitRate::ZERO),
            peer: Some(self.start.peer),
            peer_is_linerate: self.machine.speaks_extension(),
        };
        let limits = byte_limits(&parameters, EndpointRole::Server, self.machine.speaks_extension());
        let phase = if parameters.omit.is_zero() { TestPhase::Counting } else { TestPhase::Omitted };
        let cpu = parameters.server_affinity.or(self.start.options.cpu);
        let stream_options = StreamOptions {
            parameters: Arc::clone(&parameters),
            file: self.file.clone(),
            payload: Arc::default(),
            cpu,
            splits_blocks: self.machine.speaks_extension(),
            read_rate: self.start.options.read_rate,
            server_rate: self.start.rate(),
            memory: self.start.account.clone(),
        };
        let (sessions, streams_of_all) = self.start.registry.running();
        let slower = sessions.div_ceil(SESSIONS_AT_FULL_CADENCE).max(streams_of_all.div_ceil(STREAMS_AT_FULL_CADENCE));
        let sampling = SAMPLING * u32::try_from(slower.max(1)).unwrap_or(u32::MAX);
        let pace = MeasurementIntervals { interval, sampling };
        let shared = Arc::new(SessionState::new(phase, limits, self.start.inbox.waker()));
        let measurement = TestMeasurement::start(streams, shared, &stream_options, pace, self.host.take());
        // Data do not wait for what is shown.
        self.observe(&TestEvent::Started(Box::new(started)));
        match measurement {
            Ok(measurement) => self.measurement = Some(measurement),
            Err(cause) => self.give_up(Error::io(ErrorCode::THREAD_CREATE, &cause)),
        }
        self.watchdog =
            Some(TestWatchdog::new(&self.start.options, &parameters, self.start.rate(), clock::monotonic_now()));
    }

    /// Interval of the reports: the client's request, where this server accepts it, else the server's own. With many
    /// streams, no shorter than their reports need.
    fn interval(&self, parameters: &TestParameters) -> Option<Duration> {
        let options = &self.start.options;
        let wish = parameters.far_interval.filter(|_| options.interval_by_client && self.machine.speaks_extension());
        let (_, streams) = self.start.registry.running();
        let least = Duration::from_secs(1) / MAX_REPORTS_PER_SECOND * u32::try_from(streams).unwrap_or(u32::MAX);
        wish.or(options.interval).map(|interval| interval.max(least))
    }

    /// Keeps the interval clock and the limits.
    fn follow_measurement(&mut self) {
        let Some(measurement) = self.measurement.as_mut().filter(|_| !self.over) else { return };
        let now = clock::monotonic_now();
        let mut reports = Vec::new();
        measurement.advance(now, |report| reports.push(report));
        let stalled = measurement.stalled_for(now);
        let received = measurement.bytes_received();
        let sessions = || self.start.registry.sessions_with_traffic(self.start.peer.ip(), now);
        if self.watchdog.as_ref().is_some_and(|watchdog| watchdog.ends_traffic(now)) {
            measurement.halt();
        }
        let verdict = self.watchdog.as_mut().and_then(|watchdog| watchdog.check(now, stalled, received, sessions));
        for report in reports {
            self.report_interval(report);
        }
        if let Some(error) = verdict {
            self.give_up(error);
            // A stock client that finds its streams closed first reports a broken pipe instead of the reason.
            while let Some(output) = self.machine.poll() {
                self.perform(output);
            }
            let _ = poll::wait_for(&self.start.control, PollInterest::READ, Some(REACTION_TIMEOUT));
            self.end_measurement();
        }
    }

    fn report_interval(&mut self, report: IntervalReport) {
        if self.machine.speaks_extension() {
            self.tell_interval(report.clone());
        }
        self.observe(&TestEvent::Interval(report));
    }

    /// Sends a report to a linerate, or holds it back if its client wants all together. A client that does not read its reports
    /// loses some, and the server no memory.
    fn tell_interval(&mut self, report: IntervalReport) {
        let is_held = self.parameters.as_ref().is_some_and(|parameters| parameters.far_reports_at_end);
        if is_held {
            let most = MAX_HELD_REPORTS / report.streams.len().max(1);
            self.held.push(report);
            if self.held.len() >= most {
                self.send_held_reports();
            }
        } else if self.start.control.is_flushed() {
            self.handle(ServerEvent::Extension(ExtensionMessage::Interval(report)));
        }
    }

    fn send_held_reports(&mut self) {
        let reports = core::mem::take(&mut self.held);
        if reports.is_empty() || !self.start.control.is_flushed() {
            return;
        }
        if reports.len() > MAX_PLAIN_REPORTS {
            return self.handle(ServerEvent::Extension(ExtensionMessage::Intervals(reports)));
        }
        for report in reports {
            self.handle(ServerEvent::Extension(ExtensionMessage::Interval(report)));
        }
    }
}

fn failure_error(failure: &ControlFailure) -> Error {
    Error::new(failure.code()).with_detail(failure.to_string())
}

fn open_file(name: &std::path::Path, direction: TestDirection) -> io::Result<TransferFile> {
    match direction {
        TestDirection::Reverse => TransferFile::source(name.to_owned()),
        TestDirection::Forward | TestDirection::Bidirectional => TransferFile::sink(name.to_owned()),
    }
}
