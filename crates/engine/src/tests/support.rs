//! Peers of the tests: a recording server, a client run to its end, and raw control connections.

use core::sync::atomic::{AtomicU8, Ordering};
use core::time::Duration;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use linerate_model::address_family::AddressFamily;
use linerate_model::event::TestEvent;
use linerate_model::parameters::{EndCondition, TestParameters};
use linerate_model::report::Outcome;
use linerate_model::report::{ServerOutput, TestReport};
use linerate_model::sample::IntervalReport;
use linerate_model::stream::{StreamId, StreamRole};
use linerate_sys::net::{self, ConnectOptions};
use linerate_units::{ByteCount, PacketCount, Port};
use linerate_wire::cookie::Cookie;
use linerate_wire::error::{self, ErrorCode};
use linerate_wire::parameters::{self, ParametersExtra};
use linerate_wire::results::{self, StreamCounts, TestResults};
use linerate_wire::state::ControlState;

use crate::client::{self, ClientOptions, ClientOutcome};
use crate::phases::AbortReason;
use crate::probe::{ProbeError, ProbeTarget};
use crate::resources::ServerResources;
use crate::server::{Server, ServerObserver, ServerOptions, SessionObserver};
use crate::{Error, Result};

/// Longest wait for an event: only a failing test waits that long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Event of a recorded server.
#[derive(Debug)]
#[expect(dead_code, reason = "texts are shown when a test fails")]
pub(crate) enum ServerNews {
    Idle(u64),
    Session(u64),
    Event(u64, TestEvent),
    Failed(u64, Error),
    Problem(String),
    Note(String),
}

struct ServerRecorder {
    news: Sender<ServerNews>,
    output: Option<ServerOutput>,
}

struct SessionRecorder {
    number: u64,
    news: Sender<ServerNews>,
    output: Option<ServerOutput>,
}

impl ServerObserver for ServerRecorder {
    fn idle(&self, next_session: u64) {
        let _ = self.news.send(ServerNews::Idle(next_session));
    }

    fn session(&self, number: u64) -> Box<dyn SessionObserver> {
        let _ = self.news.send(ServerNews::Session(number));
        Box::new(SessionRecorder { number, news: self.news.clone(), output: self.output.clone() })
    }

    fn problem(&self, text: &str) {
        let _ = self.news.send(ServerNews::Problem(text.to_owned()));
    }

    fn note(&self, text: &str) {
        let _ = self.news.send(ServerNews::Note(text.to_owned()));
    }
}

impl SessionObserver for SessionRecorder {
    fn event(&mut self, event: &TestEvent) {
        let _ = self.news.send(ServerNews::Event(self.number, event.clone()));
    }

    fn output(&mut self) -> Option<ServerOutput> {
        self.output.take()
    }

    fn failed(&mut self, error: &Error) {
        let _ = self.news.send(ServerNews::Failed(self.number, error.clone()));
    }
}

/// A server on a thread of its own, which runs until the test program ends, or, with `one_off`, until its test is over.
pub(crate) struct TestServer {
    pub(crate) address: SocketAddr,
    /// Budget of all probe sessions.
    pub(crate) resources: Arc<ServerResources>,
    news: Receiver<ServerNews>,
    thread: JoinHandle<Result<()>>,
}

impl TestServer {
    /// Serves on a free port of 127.0.0.1.
    pub(crate) fn start(options: ServerOptions) -> Self {
        Self::start_on(LOOPBACK, options)
    }

    pub(crate) fn start_on(address: IpAddr, options: ServerOptions) -> Self {
        Self::start_with(address, options, None)
    }

    /// Serves with sessions that have this output for clients that request it.
    pub(crate) fn start_with(address: IpAddr, options: ServerOptions, output: Option<ServerOutput>) -> Self {
        let server = Server::bind(ServerOptions { address: Some(address), port: None, ..options });
        Self::run(server.expect("a free port"), output)
    }

    /// Serves with this much memory for all probe sessions.
    pub(crate) fn start_within(memory: ByteCount, options: ServerOptions) -> Self {
        let server = Server::bind(ServerOptions { address: Some(LOOPBACK), port: None, ..options });
        let mut server = server.expect("a free port");
        server.set_resources(ServerResources::limited(memory, u64::MAX, None));
        Self::run(server, None)
    }

    fn run(server: Server, output: Option<ServerOutput>) -> Self {
        let (address, resources) = (server.address(), Arc::clone(&server.resources));
        let (sender, news) = channel();
        let observer = ServerRecorder { news: sender, output };
        let thread = std::thread::spawn(move || server.run(None, &observer));
        Self { address, resources, news, thread }
    }

    pub(crate) fn next(&self) -> ServerNews {
        self.news.recv_timeout(PATIENCE).expect("an event of the server")
    }

    /// Returns the first match among the following events; those before it are dropped.
    pub(crate) fn find<T>(&self, mut wanted: impl FnMut(ServerNews) -> Option<T>) -> T {
        loop {
            if let Some(found) = wanted(self.next()) {
                return found;
            }
        }
    }

    /// Report of the next test that ends.
    pub(crate) fn report(&self) -> TestReport {
        self.find(|news| match news {
            ServerNews::Event(_, TestEvent::Finished(report)) => Some(*report),
            _ => None,
        })
    }

    /// Failure of the next session that fails.
    pub(crate) fn failure(&self) -> Error {
        self.find(|news| match news {
            ServerNews::Failed(_, error) => Some(error),
            _ => None,
        })
    }

    /// Waits until no session is left; returns the number of the next one.
    pub(crate) fn idle(&self) -> u64 {
        self.find(|news| match news {
            ServerNews::Idle(next) => Some(next),
            _ => None,
        })
    }

    pub(crate) fn session(&self) -> u64 {
        self.find(|news| match news {
            ServerNews::Session(number) => Some(number),
            _ => None,
        })
    }

    /// Waits for the end of a server that ends by itself.
    pub(crate) fn join(self) -> Result<()> {
        self.thread.join().expect("no panic")
    }
}

pub(crate) fn target(address: SocketAddr) -> ProbeTarget {
    let port = Port::new(address.port()).expect("bound");
    let family = Some(AddressFamily::of(address.ip()));
    ProbeTarget { family, ..ProbeTarget::new(address.ip().to_string(), port) }
}

/// Parameters of a test over `bytes` per direction.
/// A test of `bytes` in whole blocks: a client sends no other to a server that is not a linerate.
pub(crate) fn exact(bytes: u64) -> TestParameters {
    let block = if bytes.is_multiple_of(1000) { 1000 } else { bytes.min(1 << 20) };
    TestParameters {
        end: EndCondition::Bytes(ByteCount::new(bytes)),
        block_size: ByteCount::new(block),
        ..TestParameters::default()
    }
}

/// A finished client.
pub(crate) struct ClientRun {
    pub(crate) events: Vec<TestEvent>,
    pub(crate) outcome: ClientOutcome,
}

impl ClientRun {
    /// Runs a test with iperf3's defaults and reports of each tenth of a second.
    pub(crate) fn against(address: SocketAddr, parameters: TestParameters) -> Self {
        Self::with(&client_options(address, parameters))
    }

    pub(crate) fn with(options: &ClientOptions) -> Self {
        let mut events = Vec::new();
        let outcome = client::run(options, None, &mut |event| events.push(event.clone()));
        Self { events, outcome }
    }

    pub(crate) fn report(&self) -> &TestReport {
        let reports: Vec<_> = self
            .events
            .iter()
            .filter_map(|event| match event {
                TestEvent::Finished(report) => Some(&**report),
                _ => None,
            })
            .collect();
        assert_eq!(reports.len(), 1, "one report per run: {:?}", self.events);
        reports[0]
    }

    pub(crate) fn intervals(&self) -> Vec<&IntervalReport> {
        let intervals = self.events.iter().filter_map(|event| match event {
            TestEvent::Interval(report) => Some(report),
            _ => None,
        });
        intervals.collect()
    }

    pub(crate) fn far_intervals(&self) -> Vec<&IntervalReport> {
        let intervals = self.events.iter().filter_map(|event| match event {
            TestEvent::FarInterval(report) => Some(report),
            _ => None,
        });
        intervals.collect()
    }

    pub(crate) fn code(&self) -> Option<ErrorCode> {
        self.outcome.error.as_ref().map(Error::code)
    }

    /// The run, which must have succeeded.
    pub(crate) fn successful(self) -> Self {
        assert_eq!(self.outcome.error, None);
        self
    }
}

pub(crate) fn client_options(address: SocketAddr, parameters: TestParameters) -> ClientOptions {
    ClientOptions::new(&target(address), parameters, Some(Duration::from_millis(100)))
}

/// Sum of the bytes that one side reports for the streams of a role.
pub(crate) fn bytes_of(report: &TestReport, role: StreamRole, received: bool) -> u64 {
    let streams = report.streams.iter().filter(|stream| stream.description.role == role);
    let side = streams.map(|stream| if received { stream.received } else { stream.sent });
    side.map(|side| side.expect("both sides reported").bytes.get()).sum()
}

/// A client with hand-written messages, under iperf3's protocol.
pub(crate) struct RawClient {
    pub(crate) stream: TcpStream,
    pub(crate) cookie: Cookie,
    address: SocketAddr,
}

/// Cookie of a stock client, different at each call.
pub(crate) fn stock_cookie() -> Cookie {
    static NEXT: AtomicU8 = AtomicU8::new(1);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let mut entropy = [b'a'; 36];
    (entropy[0], entropy[1]) = (number % 16, number / 16);
    Cookie::random(entropy)
}

pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("an option");
    stream.set_nodelay(true).expect("an option");
    stream
}

impl RawClient {
    /// Connects and sends the cookie.
    pub(crate) fn connect(address: SocketAddr) -> Self {
        Self::connect_as(address, stock_cookie())
    }

    /// Connects from another address of this host, and sends the cookie.
    pub(crate) fn connect_from(address: SocketAddr, from: IpAddr) -> Self {
        let bind = Some(SocketAddr::new(from, 0));
        let options = ConnectOptions { bind, ..ConnectOptions::to(address) };
        let mut stream = net::connect_tcp(&options, None).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("an option");
        let cookie = stock_cookie();
        stream.write_all(cookie.as_bytes()).expect("buffer space");
        Self { stream, cookie, address }
    }

    pub(crate) fn connect_as(address: SocketAddr, cookie: Cookie) -> Self {
        let mut stream = connect(address);
        stream.write_all(cookie.as_bytes()).expect("buffer space");
        Self { stream, cookie, address }
    }

    /// A client whose parameters the server has accepted: it may open its streams.
    pub(crate) fn accepted(address: SocketAddr, parameters: &TestParameters) -> Self {
        let mut client = Self::connect(address);
        client.expect_state(ControlState::ParamExchange);
        client.send_parameters(parameters);
        client.expect_state(ControlState::CreateStreams);
        client
    }

    /// A client with a running test, and its data streams.
    pub(crate) fn running(address: SocketAddr, parameters: &TestParameters) -> (Self, Vec<TcpStream>) {
        let mut client = Self::accepted(address, parameters);
        let count = parameters.total_streams().to_usize();
        let streams = (0..count).map(|_| client.open_stream()).collect();
        client.expect_state(ControlState::TestStart);
        client.expect_state(ControlState::TestRunning);
        (client, streams)
    }

    pub(crate) fn open_stream(&self) -> TcpStream {
        let mut stream = connect(self.address);
        stream.write_all(self.cookie.as_bytes()).expect("buffer space");
        stream
    }

    pub(crate) fn byte(&mut self) -> u8 {
        let mut byte = [0];
        self.stream.read_exact(&mut byte).expect("a state byte");
        byte[0]
    }

    pub(crate) fn expect_state(&mut self, state: ControlState) {
        assert_eq!(ControlState::from_byte(self.byte()), Some(state));
    }

    pub(crate) fn send_state(&mut self, state: ControlState) {
        self.stream.write_all(&[state.byte()]).expect("buffer space");
    }

    pub(crate) fn send_parameters(&mut self, parameters: &TestParameters) {
        self.send_document(&parameters::encode(parameters, &ParametersExtra::default()));
    }

    pub(crate) fn send_document(&mut self, document: &str) {
        self.stream.write_all(&framed(document)).expect("buffer space");
    }

    pub(crate) fn document(&mut self) -> Vec<u8> {
        read_document(&mut self.stream)
    }

    /// Reads the server's error message.
    pub(crate) fn expect_error(&mut self) -> ErrorCode {
        self.expect_state(ControlState::ServerError);
        let mut message = [0; error::ERROR_LENGTH];
        self.stream.read_exact(&mut message).expect("an error number");
        error::decode(message).0
    }

    /// Reads until the server closes; returns the bytes that were left.
    pub(crate) fn remainder(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let _ = self.stream.read_to_end(&mut bytes);
        bytes
    }
}

/// A document with its length.
pub(crate) fn framed(document: &str) -> Vec<u8> {
    let length = u32::try_from(document.len()).expect("short");
    [&length.to_be_bytes()[..], document.as_bytes()].concat()
}

pub(crate) fn read_document(stream: &mut TcpStream) -> Vec<u8> {
    let mut length = [0; 4];
    stream.read_exact(&mut length).expect("a length");
    let mut document = vec![0; u32::from_be_bytes(length) as usize];
    stream.read_exact(&mut document).expect("a document");
    document
}

/// Each way in which a procedure ends, with the outcome and the error of its document.
pub(crate) fn endings() -> [(core::result::Result<(), AbortReason>, Outcome, Option<ProbeError>); 3] {
    let lost = || ProbeError::Lost("gone".to_owned());
    [
        (Ok(()), Outcome::Complete, None),
        (Err(AbortReason::Interrupted), Outcome::Interrupted, None),
        (Err(AbortReason::Failed(lost())), Outcome::Failed, Some(lost())),
    ]
}

/// Results of a peer with these bytes on each of its streams.
pub(crate) fn results_of(bytes: &[u64]) -> String {
    let streams = bytes.iter().enumerate().map(|(index, bytes)| StreamCounts {
        id: StreamId::nth(index),
        bytes: ByteCount::new(*bytes),
        retransmits: None,
        jitter: Duration::ZERO,
        lost: PacketCount::ZERO,
        omitted_lost: Some(PacketCount::ZERO),
        packets: PacketCount::ZERO,
        omitted_packets: Some(PacketCount::ZERO),
        start: Some(Duration::ZERO),
        end: Some(Duration::from_secs(1)),
    });
    results::encode(&TestResults { streams: streams.collect(), ..TestResults::default() })
}

/// A server with hand-written messages, for one client.
pub(crate) struct RawServer {
    pub(crate) address: SocketAddr,
    thread: JoinHandle<()>,
}

/// The one client of a [`RawServer`].
pub(crate) struct RawPeer {
    pub(crate) control: TcpStream,
    pub(crate) listener: TcpListener,
    pub(crate) cookie: [u8; 37],
}

impl RawServer {
    /// Accepts one client, reads its cookie, and runs `script`.
    pub(crate) fn start(script: impl FnOnce(RawPeer) + Send + 'static) -> Self {
        let listener = TcpListener::bind((LOOPBACK, 0)).expect("loopback");
        let address = listener.local_addr().expect("bound");
        let thread = std::thread::spawn(move || {
            let (mut control, _) = listener.accept().expect("a client");
            control.set_read_timeout(Some(PATIENCE)).expect("an option");
            control.set_nodelay(true).expect("an option");
            let mut cookie = [0; 37];
            control.read_exact(&mut cookie).expect("a cookie");
            script(RawPeer { control, listener, cookie });
        });
        Self { address, thread }
    }

    pub(crate) fn join(self) {
        self.thread.join().expect("no panic");
    }
}

impl RawPeer {
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.control.write_all(bytes).expect("buffer space");
    }

    pub(crate) fn send_state(&mut self, state: ControlState) {
        self.send(&[state.byte()]);
    }

    pub(crate) fn expect_state(&mut self, state: ControlState) {
        let mut byte = [0];
        self.control.read_exact(&mut byte).expect("a state byte");
        assert_eq!(ControlState::from_byte(byte[0]), Some(state));
    }

    /// Exchanges the parameters; returns the client's.
    pub(crate) fn parameters(&mut self) -> Vec<u8> {
        self.send_state(ControlState::ParamExchange);
        read_document(&mut self.control)
    }

    /// Accepts a TCP stream with the client's cookie.
    pub(crate) fn accept_stream(&mut self) -> TcpStream {
        let (mut stream, _) = self.listener.accept().expect("a stream");
        stream.set_read_timeout(Some(PATIENCE)).expect("an option");
        let mut cookie = [0; 37];
        stream.read_exact(&mut cookie).expect("a cookie");
        assert_eq!(cookie, self.cookie, "each stream has the cookie of its session");
        stream
    }

    /// Goes on until the test runs; returns its streams.
    pub(crate) fn run(&mut self, streams: usize) -> Vec<TcpStream> {
        self.parameters();
        self.send_state(ControlState::CreateStreams);
        let streams = (0..streams).map(|_| self.accept_stream()).collect();
        self.send(&[ControlState::TestStart.byte(), ControlState::TestRunning.byte()]);
        streams
    }

    pub(crate) fn error(&mut self, code: ErrorCode) {
        self.send(&error::encode(code));
    }
}

/// A directory of a test, removed when dropped.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new(name: &str) -> Self {
        let directory = std::env::temp_dir().join(format!("linerate-engine-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a writable directory");
        Self(directory)
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
