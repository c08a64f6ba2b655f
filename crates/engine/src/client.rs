//! The client: connects, agrees on a test, runs it, brings the results together.

use core::time::Duration;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;

use linerate_model::event::{Connected, Event, TestStart};
use linerate_model::parameters::{Cpu, Direction, EndCondition, Protocol, TestParameters};
use linerate_model::report::{FarReport, Termination};
use linerate_model::sample::IntervalReport;
use linerate_model::stream::{Role, Side};
use linerate_sys::net::{self, ConnectOptions, Family, SocketSettings};
use linerate_sys::options::{self, Keepalive};
use linerate_sys::poll::{self, Interest, PollItem};
use linerate_sys::signals::Interrupts;
use linerate_sys::{clock, host, tcp_info};
use linerate_units::{BitRate, ByteCount, MonotonicTime, Port};
use linerate_wire::Deadlines;
use linerate_wire::authentication::{self, Padding};
use linerate_wire::client::{ClientMachine, Input, Output};
use linerate_wire::cookie::{self, Cookie};
use linerate_wire::error::ErrorCode;
use linerate_wire::extension::{Hello, Message};
use linerate_wire::failure::Failure;
use linerate_wire::parameters::{self, ParametersExtra};
use linerate_wire::results;

pub use crate::client_turns::{Acquaintance, when_free};

use crate::client_setup::Opening;
use crate::control::{Control, Incoming};
use crate::error::{Error, Result};
use crate::measurement::{Measurement, Pace};
use crate::outcome::{self, Peer};
use crate::probe::Target;
use crate::stream::{Broken, FileUse, Phase, Shared, Stream, StreamOptions};

/// The version of iperf3 whose wire profile this is, announced to the server, which does not look at it.
const WIRE_PROFILE: &str = "3.21";

/// Cadence of `tcp_info` readings.
const SAMPLING: Duration = Duration::from_millis(10);

/// After a stream has broken, the server has this long to say why on the control connection.
const REASON_LIMIT: Duration = Duration::from_millis(500);

/// The shortest time between interval reports that iperf3 and linerate know (`-i`).
const SHORTEST_INTERVAL: Duration = Duration::from_millis(100);

/// A server's clock may run ahead of ours, and its last interval is a short one.
const FAR_INTERVALS_AHEAD: Duration = Duration::from_secs(1);

/// A receiver hears nothing of a server that has gone away; one that is there sends, however slow the path.
const SILENCE_LIMIT: Duration = Duration::from_secs(30);

/// A test to run as a client.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// The server, by name or address.
    pub host: String,
    /// Its port.
    pub port: Port,
    /// Address families to use.
    pub family: Family,
    /// Address to connect from (`-B`).
    pub bind: Option<IpAddr>,
    /// Interface to use (`--bind-dev`).
    pub device: Option<String>,
    /// Port of the first data stream; the others follow it (`--cport`).
    pub client_port: Option<Port>,
    /// The test. Its block size counts only for what [`ClientOptions::block_size_given`] says.
    pub parameters: TestParameters,
    /// Whether the block size was asked for. If not, UDP takes what fits into a segment of the control connection.
    pub block_size_given: bool,
    /// Time between interval reports; `None` for none.
    pub interval: Option<Duration>,
    /// Time limit for connecting; `None` is the system's.
    pub connect_timeout: Option<Duration>,
    /// A receiving client gives up when nothing has come for this long (`--rcv-timeout`); `None` never.
    pub receive_timeout: Option<Duration>,
    /// `TCP_USER_TIMEOUT` (`--snd-timeout`).
    pub send_timeout: Option<Duration>,
    /// Probes of a silent server on the control connection (`--cntl-ka`).
    pub keepalive: Option<Keepalive>,
    /// For a server that wants to know who tests.
    pub credentials: Option<Credentials>,
    /// File to send from or receive into (`-F`).
    pub file: Option<PathBuf>,
    /// Processor to run on (`-A`).
    pub cpu: Option<Cpu>,
}

impl ClientOptions {
    /// A test with a server as iperf3 makes it when nothing else is asked for, but given up when the server is silent:
    /// `block_size_given` and the rest may be changed.
    #[must_use]
    pub fn new(target: &Target, parameters: TestParameters, interval: Option<Duration>) -> Self {
        Self {
            host: target.host.clone(),
            port: target.port,
            family: target.family,
            bind: target.bind,
            device: target.device.clone(),
            client_port: None,
            parameters,
            block_size_given: false,
            interval,
            connect_timeout: target.connect_timeout,
            receive_timeout: Some(SILENCE_LIMIT),
            send_timeout: None,
            keepalive: None,
            credentials: None,
            file: None,
            cpu: None,
        }
    }
}

/// A user of a server that asks for authentication.
#[derive(Clone)]
pub struct Credentials {
    /// Name.
    pub user: String,
    /// Password.
    pub password: String,
    /// The server's public key, PEM.
    pub public_key: String,
    /// How to pad.
    pub padding: Padding,
}

impl core::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Credentials").field("user", &self.user).finish_non_exhaustive()
    }
}

/// How a run ended.
#[derive(Debug)]
pub struct ClientOutcome {
    /// What went wrong; an interrupted test has nothing here.
    pub error: Option<Error>,
    /// Signal that ended it, as iperf3 names it.
    pub interrupted: Option<String>,
    /// Round-trip times of the connections' handshakes, before any load.
    pub handshake_rtts: Vec<Duration>,
}

/// Runs one test; all that happens is told to `observer`. `stop` ends it early, with what has been measured so far.
pub fn run(options: &ClientOptions, stop: Option<&Interrupts>, observer: &mut dyn FnMut(&Event)) -> ClientOutcome {
    let mut handshake_rtts = Vec::new();
    let mut interrupted = None;
    let error = match Client::connect(options, stop, observer) {
        Err(error) => Some(error),
        Ok(mut client) => {
            let result = client.converse();
            client.finish(result.as_ref().err());
            handshake_rtts = core::mem::take(&mut client.handshake_rtts);
            interrupted = client.interrupted.take();
            result.err()
        }
    };
    let interrupted =
        interrupted.or_else(|| stop.and_then(Interrupts::pending).map(linerate_sys::signals::Signal::describe));
    ClientOutcome { error: error.filter(|_| interrupted.is_none()), interrupted, handshake_rtts }
}

struct Client<'a> {
    options: &'a ClientOptions,
    parameters: Arc<TestParameters>,
    derived_block_size: Option<ByteCount>,
    stop: Option<&'a Interrupts>,
    observer: &'a mut dyn FnMut(&Event),
    control: Control,
    cookie: Cookie,
    machine: ClientMachine,
    file: Option<Arc<FileUse>>,
    streams: Vec<Stream>,
    measurement: Option<Measurement>,
    peer: Peer,
    hello: Option<Hello>,
    handshake_rtts: Vec<Duration>,
    interrupted: Option<String>,
    broken: Option<(MonotonicTime, Broken)>,
    over: bool,
    finished: bool,
}

impl<'a> Client<'a> {
    fn connect(
        options: &'a ClientOptions,
        stop: Option<&'a Interrupts>,
        observer: &'a mut dyn FnMut(&Event),
    ) -> Result<Self> {
        let file = open_file(options)?;
        let stream = connect_control(options, stop)?;
        let mss = options::mss(&stream).ok();
        let handshake_rtts = tcp_info::read(&stream).ok().and_then(|info| info.rtt).into_iter().collect();
        let control = Control::new(stream).map_err(|cause| Error::io(ErrorCode::SET_NON_BLOCKING, &cause))?;
        let cookie = new_cookie()?;
        let mut parameters = options.parameters.clone();
        let derive = parameters.protocol == Protocol::Udp && !options.block_size_given;
        let derived_block_size =
            derive.then(|| mss.map_or(parameters::DEFAULT_UDP_BLOCK_SIZE, linerate_units::Mss::byte_count));
        parameters.block_size = derived_block_size.unwrap_or(parameters.block_size);
        if let (Protocol::Udp, Some(mss), false) = (parameters.protocol, mss, derive)
            && parameters.block_size > mss.byte_count()
        {
            observer(&Event::Warning(format!(
                "UDP block size {} exceeds TCP MSS {}, may result in fragmentation / drops",
                parameters.block_size.get(),
                mss.get()
            )));
        }
        Ok(Self {
            options,
            machine: ClientMachine::new(&cookie, parameters.total_streams(), Deadlines::default()),
            parameters: Arc::new(parameters),
            derived_block_size,
            stop,
            observer,
            control,
            cookie,
            file,
            streams: Vec::new(),
            measurement: None,
            peer: Peer::default(),
            hello: None,
            handshake_rtts,
            interrupted: None,
            broken: None,
            over: false,
            finished: false,
        })
    }

    /// The conversation up to its end.
    fn converse(&mut self) -> Result<()> {
        loop {
            while let Some(output) = self.machine.poll() {
                self.perform(output)?;
            }
            // After an interrupt nothing is left to wait for: the server has been told.
            if self.finished || self.machine.is_over() {
                return Ok(());
            }
            self.wait()?;
            self.follow_measurement()?;
        }
    }

    fn handle(&mut self, input: Input<'_>) {
        self.machine.handle(clock::monotonic_now(), input);
    }

    /// Waits for the control connection, a signal, a stream or the clock, and tells the machine.
    fn wait(&mut self) -> Result<()> {
        let now = clock::monotonic_now();
        let running = self.measurement.as_ref().filter(|_| !self.over);
        let next_wakeup = running.filter(|_| self.broken.is_none()).map(Measurement::next_wakeup);
        let timeout = [self.machine.deadline(), next_wakeup]
            .into_iter()
            .flatten()
            .chain(self.broken.as_ref().map(|(since, _)| *since + REASON_LIMIT))
            .min()
            .map(|deadline| deadline.since(now));
        let stopping = self.interrupted.is_some();
        let (readable, signalled) = {
            let mut items = vec![PollItem::new(&self.control, Interest::READ)];
            items.extend(self.stop.filter(|_| !stopping).map(|stop| PollItem::new(stop, Interest::READ)));
            if let Some(measurement) = running {
                items.push(PollItem::new(measurement.shared().waker(), Interest::READ));
            }
            poll::wait(&mut items, timeout).map_err(|cause| Error::system(ErrorCode::SELECT, &cause))?;
            let signalled = self.stop.as_ref().is_some_and(|_| !stopping) && items[1].is_readable();
            (items[0].is_readable(), signalled)
        };
        if let Some(measurement) = &self.measurement {
            measurement.shared().drain_waker();
        }
        if signalled {
            self.interrupt();
        }
        if readable {
            self.read_control();
        } else {
            self.handle(Input::Tick);
        }
        Ok(())
    }

    fn read_control(&mut self) {
        let mut buffer = [0; 16 << 10];
        match self.control.read(&mut buffer) {
            Incoming::Bytes(count) => self.handle(Input::Bytes(&buffer[..count])),
            Incoming::Closed => self.handle(Input::Closed),
            Incoming::Nothing => self.handle(Input::Tick),
        }
    }

    fn interrupt(&mut self) {
        let Some(signal) = self.stop.and_then(Interrupts::pending) else { return };
        self.interrupted = Some(signal.describe());
        self.end_measurement();
        self.handle(Input::Interrupted);
    }

    fn perform(&mut self, output: Output) -> Result<()> {
        match output {
            Output::Send(bytes) => {
                if let Err(cause) = self.control.send(&bytes) {
                    // What the server said before it closed explains more than the failure to write.
                    self.read_control();
                    if self.interrupted.is_none() {
                        self.handle(Input::Closed);
                    } else {
                        return Err(Error::io(ErrorCode::CONTROL_WRITE, &cause));
                    }
                }
            }
            Output::ParametersWanted { peer } => self.send_parameters(peer)?,
            Output::OpenStreams => self.open_streams()?,
            Output::Prepare => {}
            Output::Run => self.start()?,
            Output::ResultsWanted => self.give_results(),
            Output::PeerResults(peer) => {
                (self.observer)(&Event::Debug(format!("get_results:\n{}", results::encode(&peer))));
                self.peer.results = Some(*peer);
            }
            Output::Far(message) => self.take_far(*message),
            Output::Finished => self.finished = true,
            Output::Failed(failure) => return self.fail(&failure),
        }
        Ok(())
    }

    fn fail(&mut self, failure: &Failure) -> Result<()> {
        self.end_measurement();
        if self.interrupted.is_some() {
            self.finished = true;
            return Ok(());
        }
        Err(match failure {
            Failure::ServerError { code, errno } => {
                let reason =
                    (*errno > 0).then(|| linerate_sys::describe_os_error(&std::io::Error::from_raw_os_error(*errno)));
                Error::from_server(*code, reason)
            }
            // A stream that broke at the same time says more than a closed control connection.
            Failure::ClosedUnexpectedly { .. } => match self.broken.take() {
                Some((_, broken)) => stream_error(broken),
                None => Error::new(failure.code()).with_detail(failure.to_string()),
            },
            other => Error::new(other.code()).with_detail(other.to_string()),
        })
    }

    /// The server has let us in. One that is busy has not: iperf3 does not speak of a connection then.
    fn announce(&mut self) {
        let control = self.control.stream();
        let port = control.peer_addr().ok().and_then(|remote| Port::new(remote.port()));
        let connected = Connected {
            side: Side::Client,
            host: self.options.host.clone(),
            port: port.unwrap_or(self.options.port),
            control_mss: options::mss(control).ok(),
            session: None,
        };
        (self.observer)(&Event::Connected(connected));
    }

    fn send_parameters(&mut self, peer: Option<Hello>) -> Result<()> {
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
            congestion_used: options::congestion(self.control.stream()).ok(),
            client_version: WIRE_PROFILE,
            linerate: peer.is_some(),
        };
        self.hello = peer;
        let document = parameters::encode(&self.parameters, &extra);
        (self.observer)(&Event::Debug(format!("send_parameters:\n{document}")));
        self.handle(Input::Parameters(document));
        Ok(())
    }

    fn open_streams(&mut self) -> Result<()> {
        let opening = Opening {
            options: self.options,
            parameters: &self.parameters,
            control: &self.control,
            cookie: self.cookie.as_bytes(),
            cancel: self.stop.map(AsFd::as_fd),
        };
        match opening.open_streams() {
            Ok(streams) => self.streams = streams,
            Err(_) if self.stop.and_then(Interrupts::pending).is_some() => {
                self.interrupt();
                return Ok(());
            }
            Err(error) => return Err(error),
        }
        let rtts = self.streams.iter().filter_map(|stream| tcp_info::read(stream).ok()?.rtt);
        self.handshake_rtts.extend(rtts);
        self.handle(Input::StreamsOpen);
        Ok(())
    }

    fn start(&mut self) -> Result<()> {
        let parameters = &self.parameters;
        let failed = |cause: std::io::Error| Error::io(ErrorCode::THREAD_CREATE, &cause);
        let limit = exact_bytes(parameters);
        let phase = if parameters.omit.is_zero() { Phase::Counting } else { Phase::Omitted };
        let shared = Arc::new(Shared::new(phase, limit).map_err(failed)?);
        let streams = core::mem::take(&mut self.streams);
        let started = self.describe_start(&streams);
        (self.observer)(&Event::Started(Box::new(started)));
        let stream_options = StreamOptions {
            parameters: Arc::clone(parameters),
            file: self.file.clone(),
            payload: Arc::default(),
            cpu: self.options.cpu,
            read_rate: None,
        };
        let pace = Pace { interval: self.options.interval, sampling: SAMPLING };
        self.measurement = Some(Measurement::start(streams, shared, &stream_options, pace).map_err(failed)?);
        Ok(())
    }

    fn describe_start(&self, streams: &[Stream]) -> TestStart {
        let first = streams.first();
        TestStart {
            side: Side::Client,
            parameters: (*self.parameters).clone(),
            cookie: self.cookie.to_string(),
            at: clock::realtime_now(),
            streams: streams.iter().map(|stream| stream.description.clone()).collect(),
            interval: self.options.interval,
            send_buffer: first.and_then(|stream| options::send_buffer(stream).ok()),
            receive_buffer: first.and_then(|stream| options::receive_buffer(stream).ok()),
            derived_block_size: self.derived_block_size,
            target_rate: self.parameters.rate.unwrap_or(BitRate::ZERO),
            peer: self.control.stream().peer_addr().ok().map(net::canonical),
            peer_is_linerate: self.hello.is_some(),
        }
    }

    /// Keeps the interval clock, and ends the test when it is time.
    fn follow_measurement(&mut self) -> Result<()> {
        let Some(measurement) = self.measurement.as_mut().filter(|_| !self.over) else { return Ok(()) };
        let now = clock::monotonic_now();
        if self.broken.is_none() {
            self.broken = measurement.broken().map(|broken| (now, broken));
        }
        // A stream that broke has ended, too, but that is not the end of the test.
        if self.broken.is_none() && measurement.is_over(now) {
            self.end_measurement();
            self.handle(Input::TestOver);
            return Ok(());
        }
        let observer = &mut *self.observer;
        measurement.advance(now, |report| observer(&Event::Interval(report)));
        if let Some((_, broken)) = self.broken.take_if(|(since, _)| now.since(*since) >= REASON_LIMIT) {
            self.end_measurement();
            return Err(stream_error(broken));
        }
        self.check_silence(now)
    }

    /// `--rcv-timeout`: valid for a client that only receives.
    fn check_silence(&mut self, now: MonotonicTime) -> Result<()> {
        let receives = self.parameters.direction == Direction::Reverse;
        let (Some(limit), Some(measurement), true) = (self.options.receive_timeout, &mut self.measurement, receives)
        else {
            return Ok(());
        };
        if measurement.stalled_for(now) < limit {
            return Ok(());
        }
        self.end_measurement();
        Err(Error::new(ErrorCode::IDLE_RECEIVER))
    }

    fn end_measurement(&mut self) {
        if let Some(measurement) = self.measurement.as_mut().filter(|_| !self.over) {
            let observer = &mut *self.observer;
            measurement.end(|report| observer(&Event::Interval(report)));
        }
        self.over = true;
    }

    fn give_results(&mut self) {
        self.end_measurement();
        let Some(measurement) = &mut self.measurement else { return };
        measurement.stop_and_join();
        let results = outcome::results(measurement);
        (self.observer)(&Event::Debug(format!("send_results:\n{}", results::encode(&results))));
        self.handle(Input::Results(results));
    }

    fn take_far(&mut self, message: Message) {
        if matches!(&message, Message::Interval(report) if !self.expects_far_interval(report)) {
            return;
        }
        let version = self.hello.as_ref().map(|hello| hello.version.clone()).unwrap_or_default();
        let far = self.peer.far.get_or_insert_with(|| FarReport { version, ..FarReport::default() });
        match message {
            Message::Hello(_) => {}
            Message::Interval(report) => {
                far.intervals.push(report.clone());
                (self.observer)(&Event::FarInterval(report));
            }
            Message::End(end) => {
                far.overlapping_tests = end.overlapping_tests;
                far.host.clone_from(&end.host);
                self.peer.end = Some(end);
            }
        }
    }

    /// Whether a server may have one more interval to tell of: what it sends beyond that is not kept, however much it is.
    fn expects_far_interval(&self, report: &IntervalReport) -> bool {
        let Some(measurement) = &self.measurement else { return false };
        let so_far = self.peer.far.as_ref().map_or(0, |far| far.intervals.len());
        let lasted = measurement.wall_time(clock::monotonic_now()) + FAR_INTERVALS_AHEAD;
        let interval = self.parameters.far_interval.map_or(SHORTEST_INTERVAL, |asked| asked.min(SHORTEST_INTERVAL));
        let possible = lasted.as_nanos() / interval.as_nanos().max(1);
        (so_far as u128) < possible && report.streams.len() <= self.parameters.total_streams().to_usize()
    }

    /// Tells the observer what came out, however it ended.
    fn finish(&mut self, error: Option<&Error>) {
        self.end_measurement();
        let termination = match (&self.interrupted, error) {
            (Some(signal), _) => Termination::Interrupted { signal: signal.clone() },
            (None, None) => Termination::Complete,
            (None, Some(error)) if error.code() == ErrorCode::SERVER_TERMINATED => Termination::PeerTerminated,
            (None, Some(error)) => Termination::Failed { message: error.to_string() },
        };
        let peer = core::mem::take(&mut self.peer);
        let report = match &mut self.measurement {
            Some(measurement) => {
                measurement.stop_and_join();
                outcome::report(measurement, peer, self.file.as_ref(), termination)
            }
            None => outcome::empty_report(termination),
        };
        (self.observer)(&Event::Finished(Box::new(report)));
    }
}

/// How many bytes an exact test has per direction; `None` for a timed one.
pub(crate) fn exact_bytes(parameters: &TestParameters) -> Option<ByteCount> {
    match parameters.end {
        EndCondition::Time(_) => None,
        EndCondition::Bytes(bytes) => Some(bytes),
        EndCondition::Blocks(blocks) => Some(blocks * parameters.block_size),
    }
}

fn stream_error(broken: Broken) -> Error {
    match broken {
        Broken::Write(cause) => Error::io(ErrorCode::STREAM_WRITE, &cause),
        Broken::Read(cause) => Error::io(ErrorCode::STREAM_READ, &cause),
        Broken::Closed => Error::new(ErrorCode::STREAM_CLOSED),
        Broken::File(cause) => Error::io(ErrorCode::FILE, &cause),
        Broken::SetUp(cause) => Error::io(ErrorCode::INIT_STREAM, &cause),
    }
}

fn new_cookie() -> Result<Cookie> {
    let mut entropy = [0; cookie::LENGTH - 1];
    host::random_bytes(&mut entropy).map_err(|cause| Error::system(ErrorCode::INIT_TEST, &cause))?;
    Ok(Cookie::linerate(entropy))
}

fn open_file(options: &ClientOptions) -> Result<Option<Arc<FileUse>>> {
    let Some(name) = options.file.clone() else { return Ok(None) };
    let role = if options.parameters.direction == Direction::Forward { Role::Sender } else { Role::Receiver };
    let file = match role {
        Role::Sender => FileUse::source(name),
        Role::Receiver => FileUse::sink(name),
    };
    file.map(|file| Some(Arc::new(file))).map_err(|cause| Error::io(ErrorCode::FILE, &cause))
}

/// Tries the host's addresses in order; the last failure is reported.
fn connect_control(options: &ClientOptions, stop: Option<&Interrupts>) -> Result<std::net::TcpStream> {
    let failed = |cause: linerate_sys::Error| crate::client_setup::setup_error(&cause, ErrorCode::CONNECT);
    let addresses = net::resolve(&options.host, options.port, options.family).map_err(failed)?;
    let mut last = Error::new(ErrorCode::CONNECT);
    for remote in addresses {
        let connect = ConnectOptions {
            bind: options.bind.map(|address| SocketAddr::new(address, 0)),
            device: options.device.clone(),
            timeout: options.connect_timeout,
            settings: SocketSettings {
                mss: options.parameters.mss,
                user_timeout: options.send_timeout,
                keepalive: options.keepalive,
                ..SocketSettings::default()
            },
            ..ConnectOptions::to(remote)
        };
        match net::connect_tcp(&connect, stop.map(AsFd::as_fd)) {
            Ok(stream) => return Ok(stream),
            Err(cause) => last = failed(cause),
        }
    }
    Err(last)
}
