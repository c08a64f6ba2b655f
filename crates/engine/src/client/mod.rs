//! The client: connects, negotiates a test, runs it, and merges the results.

mod connect;
mod exchange;
mod limits;
mod options;
pub(crate) mod setup;
mod turns;

use core::time::Duration;
use std::os::fd::AsFd;
use std::sync::Arc;

use linerate_model::event::{ConnectionEstablished, TestEvent, TestRequest, TestStart};
use linerate_model::parameters::{TestParameters, TestProtocol};
use linerate_model::stream::EndpointRole;
use linerate_sys::net;
use linerate_sys::options as socket_options;
use linerate_sys::poll::{self, PollInterest, PollItem, Waker};
use linerate_sys::signals::InterruptSignals;
use linerate_sys::{clock, tcp_info};
use linerate_units::{BitRate, ByteCount, MonotonicTime, Port};
use linerate_wire::authentication;
use linerate_wire::client::{ClientAction, ClientEvent, ClientMachine};
use linerate_wire::cookie::Cookie;
use linerate_wire::error::ErrorCode;
use linerate_wire::extension::{ServerHello, TLS_DATA_FEATURE};
use linerate_wire::failure::ControlFailure;
use linerate_wire::parameters::{self, ParametersExtra};
use linerate_wire::results;

pub(crate) use connect::tls_error;
pub(crate) use limits::byte_limits;
pub use options::{ClientOptions, MAX_EXACT_TIME, STALL_TIMEOUT, UserCredentials};
pub use turns::{PriorContact, retry_while_busy};

use connect::{AUTHORIZATION_ADVICE, connect_control, new_cookie, open_file, tls_client};
use limits::ANSWER_NOTE_TIME;
use setup::StreamOpening;

use crate::control::{ControlConnection, ControlRead};
use crate::error::{Error, Result};
use crate::host_watch::HostWatch;
use crate::measurement::{MeasurementIntervals, TestMeasurement, watch_host};
use crate::outcome::PeerReport;
use crate::resources::ResourceAccount;
use crate::stream::{
    ConnectedStream, SessionState, StreamFailure, StreamOptions, StreamPayload, TestPhase, TransferFile,
};
use crate::tls::{ConnectionUse, TlsClient};

/// iperf3 version whose wire profile this is, announced to the server, which ignores it.
const WIRE_PROFILE: &str = "3.21";

/// Cadence of `tcp_info` samples.
const SAMPLING: Duration = Duration::from_millis(10);

/// After a stream has failed, the server has this long to send the reason on the control connection.
const REASON_TIMEOUT: Duration = Duration::from_millis(500);

/// Result of a run.
#[derive(Debug)]
pub struct ClientOutcome {
    /// Reason of a failure; `None` after an interrupt.
    pub error: Option<Error>,
    /// Signal that interrupted it, as iperf3 names it.
    pub interrupted: Option<String>,
    /// Round-trip times of the connections' handshakes, before any load.
    pub handshake_rtts: Vec<Duration>,
}

/// Runs one test and reports its events to `observer`. `stop` ends it early with a partial result.
pub fn run(
    options: &ClientOptions,
    stop: Option<&InterruptSignals>,
    observer: &mut dyn FnMut(&TestEvent),
) -> ClientOutcome {
    let mut handshake_rtts = Vec::new();
    let mut interrupted = None;
    let error = match ClientDriver::connect(options, stop, observer) {
        Err(error) => Some(error),
        Ok(mut client) => {
            let result = client.converse();
            if result.is_err() {
                client.notify_server();
            }
            client.finish(result.as_ref().err());
            handshake_rtts = core::mem::take(&mut client.handshake_rtts);
            interrupted = client.interrupted.take();
            result.err()
        }
    };
    let interrupted =
        interrupted.or_else(|| stop.and_then(InterruptSignals::pending).map(linerate_sys::signals::Signal::describe));
    ClientOutcome { error: error.filter(|_| interrupted.is_none()), interrupted, handshake_rtts }
}

struct ClientDriver<'a> {
    options: &'a ClientOptions,
    parameters: Arc<TestParameters>,
    derived_block_size: Option<ByteCount>,
    stop: Option<&'a InterruptSignals>,
    observer: &'a mut dyn FnMut(&TestEvent),
    control: ControlConnection,
    tls: Option<TlsClient>,
    cookie: Cookie,
    machine: ClientMachine,
    file: Option<Arc<TransferFile>>,
    payload: Arc<StreamPayload>,
    streams: Vec<ConnectedStream>,
    measurement: Option<TestMeasurement>,
    /// Watch on this host until the measurement has it.
    host: Option<HostWatch>,
    peer: PeerReport,
    hello: Option<ServerHello>,
    handshake_rtts: Vec<Duration>,
    /// Time at which the connection was accepted, until the server has answered or its silence is reported.
    unanswered: Option<MonotonicTime>,
    interrupted: Option<String>,
    broken: Option<(MonotonicTime, StreamFailure)>,
    over: bool,
    finished: bool,
}

impl<'a> ClientDriver<'a> {
    fn connect(
        options: &'a ClientOptions,
        stop: Option<&'a InterruptSignals>,
        observer: &'a mut dyn FnMut(&TestEvent),
    ) -> Result<Self> {
        let file = open_file(options)?;
        let stream = connect_control(options, stop)?;
        let handshake_rtts = tcp_info::read(&stream).ok().and_then(|info| info.rtt).into_iter().collect();
        let tls = tls_client(options)?;
        let control = match &tls {
            Some(tls) => {
                tls.secure(stream, ConnectionUse::Control, stop.map(AsFd::as_fd)).map_err(|cause| tls_error(&cause))?
            }
            None => ControlConnection::new(stream).map_err(|cause| Error::io(ErrorCode::SET_NON_BLOCKING, &cause))?,
        };
        let cookie = new_cookie(options.key.as_ref())?;
        let parameters = options.parameters.clone();
        Ok(Self {
            options,
            machine: ClientMachine::new(clock::monotonic_now(), &cookie, parameters.total_streams(), options.deadlines),
            parameters: Arc::new(parameters),
            derived_block_size: None,
            stop,
            observer,
            control,
            tls,
            cookie,
            file,
            payload: Arc::default(),
            streams: Vec::new(),
            measurement: None,
            host: None,
            peer: PeerReport::default(),
            hello: None,
            handshake_rtts,
            unanswered: Some(clock::monotonic_now()),
            interrupted: None,
            broken: None,
            over: false,
            finished: false,
        })
    }

    /// Drives the control protocol to its end.
    fn converse(&mut self) -> Result<()> {
        loop {
            while let Some(output) = self.machine.poll() {
                self.perform(output)?;
            }
            // After an interrupt no reply is awaited: the server has been notified.
            if self.finished || self.machine.is_over() {
                return Ok(());
            }
            self.wait()?;
            self.follow_measurement()?;
        }
    }

    /// Reports a document of the control connection, where that is requested: writing it again would delay the test.
    fn debug(&mut self, name: &str, document: impl FnOnce() -> String) {
        if self.options.debug {
            (self.observer)(&TestEvent::Debug(format!("{name}:\n{}", document())));
        }
    }

    fn handle(&mut self, input: ClientEvent<'_>) {
        self.machine.handle(clock::monotonic_now(), input);
    }

    /// Notifies the server of a failure at this end.
    fn notify_server(&mut self) {
        self.handle(ClientEvent::Failed);
        while let Some(output) = self.machine.poll() {
            if let ClientAction::Send(bytes) = output {
                // The connection may have failed, too.
                let _ = self.control.send(&bytes);
            }
        }
    }

    /// Waits for the control connection, a signal, a stream or the clock, and feeds the machine.
    fn wait(&mut self) -> Result<()> {
        let now = clock::monotonic_now();
        let running = self.measurement.as_ref().filter(|_| !self.over);
        let next_wakeup = running.filter(|_| self.broken.is_none()).map(TestMeasurement::next_wakeup);
        let stall = running.filter(|_| self.broken.is_none()).zip(self.stall_limit());
        let stall = stall.map(|(measurement, limit)| measurement.next_stall_check(now, limit));
        let unread = self.control.has_unread();
        let note = self.unanswered.map(|since| since + ANSWER_NOTE_TIME);
        let timeout = [self.machine.deadline(), next_wakeup, stall, note, unread.then_some(now)]
            .into_iter()
            .flatten()
            .chain(self.broken.as_ref().map(|(since, _)| *since + REASON_TIMEOUT))
            .min()
            .map(|deadline| deadline.since(now));
        let stopping = self.interrupted.is_some();
        let (readable, signalled) = {
            let mut items = vec![PollItem::new(&self.control, PollInterest::READ)];
            items.extend(self.stop.filter(|_| !stopping).map(|stop| PollItem::new(stop, PollInterest::READ)));
            if let Some(measurement) = running {
                items.push(PollItem::new(measurement.shared().waker(), PollInterest::READ));
            }
            poll::wait(&mut items, timeout).map_err(|cause| Error::system(ErrorCode::SELECT, &cause))?;
            let signalled = self.stop.as_ref().is_some_and(|_| !stopping) && items[1].is_readable();
            (items[0].is_readable() || unread, signalled)
        };
        if let Some(measurement) = &self.measurement {
            measurement.shared().drain_waker();
        }
        if signalled {
            self.interrupt();
        }
        self.report_silence(readable);
        if readable {
            self.read_control();
        } else {
            self.handle(ClientEvent::Tick);
        }
        Ok(())
    }

    fn read_control(&mut self) {
        let mut buffer = [0; 16 << 10];
        match self.control.read(&mut buffer) {
            ControlRead::Bytes(count) => self.handle(ClientEvent::Bytes(&buffer[..count])),
            ControlRead::Closed => self.handle(ClientEvent::Closed),
            ControlRead::Nothing => self.handle(ClientEvent::Tick),
        }
    }

    fn interrupt(&mut self) {
        let Some(signal) = self.stop.and_then(InterruptSignals::pending) else { return };
        self.interrupted = Some(signal.describe());
        self.end_measurement();
        self.handle(ClientEvent::Interrupted);
    }

    fn perform(&mut self, output: ClientAction) -> Result<()> {
        match output {
            ClientAction::Send(bytes) => {
                if let Err(cause) = self.control.send(&bytes) {
                    // The server's last message explains more than the failed write.
                    self.read_control();
                    if self.interrupted.is_none() {
                        self.handle(ClientEvent::Closed);
                    } else {
                        return Err(Error::io(ErrorCode::CONTROL_WRITE, &cause));
                    }
                }
            }
            ClientAction::ParametersWanted { peer } => self.send_parameters(peer)?,
            ClientAction::OpenStreams => self.open_streams()?,
            ClientAction::Prepare => {}
            ClientAction::Run => self.start()?,
            ClientAction::ResultsWanted => self.give_results(),
            ClientAction::PeerResults(peer) => {
                self.debug("get_results", || results::encode(&peer));
                self.peer.results = Some(*peer);
            }
            ClientAction::Far(message) => self.handle_far_message(*message),
            ClientAction::Finished => self.finished = true,
            ClientAction::Failed(failure) => return self.fail(&failure),
        }
        Ok(())
    }

    fn fail(&mut self, failure: &ControlFailure) -> Result<()> {
        self.end_measurement();
        if self.interrupted.is_some() {
            self.finished = true;
            return Ok(());
        }
        Err(match failure {
            ControlFailure::ServerError { code, errno } => {
                let reason =
                    (*errno > 0).then(|| linerate_sys::describe_os_error(&std::io::Error::from_raw_os_error(*errno)));
                let error = Error::from_server(*code, reason);
                let lacks_credentials = self.tls.is_none() && self.options.credentials.is_none();
                if *code == ErrorCode::AUTHORIZATION && lacks_credentials {
                    return Err(error.with_detail(AUTHORIZATION_ADVICE));
                }
                error
            }
            // A stream that failed at the same time explains more than a closed control connection.
            ControlFailure::ClosedUnexpectedly { .. } => match self.broken.take() {
                Some((_, broken)) if !matches!(broken, StreamFailure::Closed) => stream_error(broken),
                _ => match self.control.tls_failure() {
                    Some(reason) => tls_error(&reason),
                    None => Error::new(failure.code()).with_detail(failure.to_string()),
                },
            },
            other => Error::new(other.code()).with_detail(other.to_string()),
        })
    }

    /// The server has accepted the client. A busy one has not: iperf3 reports no connection then.
    fn announce(&mut self) {
        let control = self.control.stream();
        let port = control.peer_addr().ok().and_then(|remote| Port::new(remote.port()));
        let connected = ConnectionEstablished {
            side: EndpointRole::Client,
            host: self.options.host.clone(),
            port: port.unwrap_or(self.options.port),
            control_mss: socket_options::mss(control).ok(),
            session: None,
            request: Some(Box::new(TestRequest {
                at: clock::realtime_now(),
                cookie: self.cookie.to_string(),
                parameters: (*self.parameters).clone(),
            })),
        };
        (self.observer)(&TestEvent::Connected(connected));
    }

    /// Derives the block size of a UDP test from the segment size of the control connection, after the server's first
    /// byte: the kernel bounds the segment size by half the largest window seen (`tcp_bound_to_half_wnd`).
    fn choose_block_size(&mut self) {
        if self.parameters.protocol != TestProtocol::Udp {
            return;
        }
        let mss = socket_options::mss(self.control.stream()).ok();
        if !self.options.block_size_given {
            let derived = mss.map_or(parameters::DEFAULT_UDP_BLOCK_SIZE, linerate_units::Mss::byte_count);
            Arc::make_mut(&mut self.parameters).block_size = derived;
            self.derived_block_size = Some(derived);
        } else if let Some(mss) = mss.filter(|mss| self.parameters.block_size > mss.byte_count()) {
            (self.observer)(&TestEvent::Warning(format!(
                "UDP block size {} exceeds TCP MSS {}, may result in fragmentation / drops",
                self.parameters.block_size.get(),
                mss.get()
            )));
        }
    }

    /// Refuses encrypted data where an end has none.
    fn check_tls_data(&self, peer: Option<&ServerHello>) -> Result<()> {
        let parameters = &self.parameters;
        let has_file = self.file.is_some();
        let reason = match peer {
            _ if !parameters.tls_data => return Ok(()),
            _ if self.tls.is_none() => {
                "--tls-data encrypts with the keys of the conversation: use --shared-key-file, --tls-pin, --tls-ca or --tls, too"
            }
            _ if parameters.protocol == TestProtocol::Udp => "--tls-data is for TCP: datagrams have no TLS",
            _ if has_file || parameters.zero_copy => "--tls-data encrypts payload of this program, and no file",
            Some(hello) if hello.features.iter().any(|feature| feature == TLS_DATA_FEATURE) => return Ok(()),
            Some(_) => "the server is a linerate without --tls-data: a newer one is needed there",
            None => "the server is an iperf3, which has no TLS: omit --tls-data",
        };
        Err(Error::new(ErrorCode::STREAM_CONNECT).with_detail(reason))
    }

    fn send_parameters(&mut self, peer: Option<ServerHello>) -> Result<()> {
        self.check_tls_data(peer.as_ref())?;
        self.choose_block_size();
        self.announce();
        let token = match &self.options.credentials {
            None => None,
            Some(credentials) => Some(
                authentication::encrypt_token(
                    &credentials.public_key,
                    &credentials.user,
                    &credentials.password,
                    clock::realtime_now(),
                    credentials.padding,
                )
                .map_err(|cause| Error::new(ErrorCode::CLIENT_AUTHENTICATION).with_detail(cause.to_string()))?,
            ),
        };
        let extra = ParametersExtra {
            authentication_token: token,
            congestion_used: socket_options::congestion(self.control.stream()).ok(),
            client_version: WIRE_PROFILE,
            announces_linerate: peer.is_some(),
        };
        self.hello = peer;
        let document = parameters::encode(&self.parameters, &extra);
        self.debug("send_parameters", || document.clone());
        self.handle(ClientEvent::Parameters(document));
        Ok(())
    }

    fn open_streams(&mut self) -> Result<()> {
        let opening = StreamOpening {
            options: self.options,
            parameters: &self.parameters,
            control: &self.control,
            cookie: self.cookie.as_bytes(),
            tls: self.tls.as_ref(),
            cancel: self.stop.map(AsFd::as_fd),
        };
        match opening.open_streams() {
            Ok(streams) => self.streams = streams,
            Err(_) if self.stop.and_then(InterruptSignals::pending).is_some() => {
                self.interrupt();
                return Ok(());
            }
            Err(error) => return Err(error),
        }
        let rtts = self.streams.iter().filter_map(|stream| tcp_info::read(stream).ok()?.rtt);
        self.handshake_rtts.extend(rtts);
        let remote = self.streams.first().map(|stream| stream.description.remote);
        self.host = remote.and_then(|remote| watch_host(remote, &self.parameters));
        self.handle(ClientEvent::StreamsOpen);
        let options = self.stream_options();
        self.streams.iter().for_each(|stream| stream.prepare(&options));
        Ok(())
    }

    fn start(&mut self) -> Result<()> {
        let parameters = &self.parameters;
        let failed = |cause: std::io::Error| Error::io(ErrorCode::THREAD_CREATE, &cause);
        let limits = byte_limits(parameters, EndpointRole::Client, self.hello.is_some());
        let phase = if parameters.omit.is_zero() { TestPhase::Counting } else { TestPhase::Omitted };
        let waker = Arc::new(Waker::new().map_err(|cause| failed(cause.into()))?);
        let shared = Arc::new(SessionState::new(phase, limits, waker));
        let _ = self.stop.map(InterruptSignals::take_phase_end);
        let streams = core::mem::take(&mut self.streams);
        let started = self.describe_start(&streams);
        let stream_options = self.stream_options();
        let pace = MeasurementIntervals { interval: self.options.interval, sampling: SAMPLING };
        let measurement = TestMeasurement::start(streams, shared, &stream_options, pace, self.host.take());
        // Data do not wait for what is shown.
        (self.observer)(&TestEvent::Started(Box::new(started)));
        self.measurement = Some(measurement.map_err(failed)?);
        Ok(())
    }

    fn stream_options(&self) -> StreamOptions {
        StreamOptions {
            parameters: Arc::clone(&self.parameters),
            file: self.file.clone(),
            payload: Arc::clone(&self.payload),
            cpu: self.options.cpu,
            splits_blocks: self.hello.is_some(),
            read_rate: None,
            server_rate: None,
            memory: ResourceAccount::default(),
        }
    }

    fn describe_start(&self, streams: &[ConnectedStream]) -> TestStart {
        let first = streams.first();
        TestStart {
            side: EndpointRole::Client,
            parameters: (*self.parameters).clone(),
            cookie: self.cookie.to_string(),
            at: clock::realtime_now(),
            streams: streams.iter().map(|stream| stream.description.clone()).collect(),
            interval: self.options.interval,
            send_buffer: first.and_then(|stream| socket_options::send_buffer(stream).ok()),
            receive_buffer: first.and_then(|stream| socket_options::receive_buffer(stream).ok()),
            derived_block_size: self.derived_block_size,
            tls_data: first.and_then(ConnectedStream::tls_properties),
            target_rate: self.parameters.rate.unwrap_or(BitRate::ZERO),
            peer: self.control.stream().peer_addr().ok().map(net::canonical),
            peer_is_linerate: self.hello.is_some(),
        }
    }

    /// Keeps the interval clock, and ends the test when its limit is reached.
    fn follow_measurement(&mut self) -> Result<()> {
        let Some(measurement) = self.measurement.as_mut().filter(|_| !self.over) else { return Ok(()) };
        let now = clock::monotonic_now();
        if self.broken.is_none() {
            self.broken = measurement.broken().map(|broken| (now, broken));
        }
        // A failed stream has ended, too, but that does not end the test.
        let is_ended = measurement.is_counting() && self.stop.is_some_and(InterruptSignals::take_phase_end);
        if self.broken.is_none() && (is_ended || measurement.is_over(now)) {
            self.end_measurement();
            self.handle(ClientEvent::TestOver);
            return Ok(());
        }
        let observer = &mut *self.observer;
        measurement.advance(now, |report| observer(&TestEvent::Interval(report)));
        if let Some((_, broken)) = self.broken.take_if(|(since, _)| now.since(*since) >= REASON_TIMEOUT) {
            self.end_measurement();
            return Err(stream_error(broken));
        }
        let Some(error) = self.expired_limit(now) else { return Ok(()) };
        self.end_measurement();
        Err(error)
    }

    fn end_measurement(&mut self) {
        if let Some(measurement) = self.measurement.as_mut().filter(|_| !self.over) {
            let observer = &mut *self.observer;
            measurement.end(|report| observer(&TestEvent::Interval(report)));
        }
        self.over = true;
    }
}

fn stream_error(broken: StreamFailure) -> Error {
    match broken {
        StreamFailure::Write(cause) => Error::io(ErrorCode::STREAM_WRITE, &cause),
        StreamFailure::Read(cause) => Error::io(ErrorCode::STREAM_READ, &cause),
        StreamFailure::Closed => Error::new(ErrorCode::STREAM_CLOSED),
        StreamFailure::File(cause) => Error::io(ErrorCode::FILE, &cause),
        StreamFailure::SetUp(cause) => Error::io(ErrorCode::INIT_STREAM, &cause),
    }
}
