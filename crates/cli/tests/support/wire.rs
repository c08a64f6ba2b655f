//! A small speaker of iperf3's protocol, written by hand: what a hostile peer sends must not come from the code under
//! test. Both roles: [`Client`] talks to a server, [`Listener`] and [`Served`] to a client.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses a part")]

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The state bytes of iperf3 that go over the wire.
pub mod state {
    pub const TEST_START: u8 = 1;
    pub const TEST_RUNNING: u8 = 2;
    pub const TEST_END: u8 = 4;
    pub const PARAM_EXCHANGE: u8 = 9;
    pub const CREATE_STREAMS: u8 = 10;
    pub const SERVER_TERMINATE: u8 = 11;
    pub const CLIENT_TERMINATE: u8 = 12;
    pub const EXCHANGE_RESULTS: u8 = 13;
    pub const DISPLAY_RESULTS: u8 = 14;
    pub const IPERF_DONE: u8 = 16;
    pub const SERVER_ERROR: u8 = 0xFE;
    pub const ACCESS_DENIED: u8 = 0xFF;
    /// linerate's own: a message of its extension follows.
    pub const EXTENSION: u8 = b'L';
}

/// Bytes of a cookie.
pub const COOKIE: usize = 37;

/// An answer that is due now, on a machine that is busy with other tests.
pub const SOON: Duration = Duration::from_secs(3);

/// The parameters of an ordinary test, without an end of its own.
pub const TCP: &str = r#"{"tcp":true,"omit":0,"time":0,"num":0,"blockcount":0,"parallel":1,"len":131072,"pacing_timer":1000,"client_version":"3.21"}"#;

/// The same over UDP.
pub const UDP: &str = r#"{"udp":true,"omit":0,"time":0,"num":0,"blockcount":0,"parallel":1,"len":1000,"pacing_timer":1000,"client_version":"3.21"}"#;

/// What a UDP client sends first, and what it is answered.
pub const UDP_REQUEST: [u8; 4] = *b"9876";
pub const UDP_REPLY: [u8; 4] = *b"6789";

/// Results of a client that has one TCP stream and sent nothing.
pub const CLIENT_RESULTS: &str = r#"{"cpu_util_total":1,"cpu_util_user":1,"cpu_util_system":0,"sender_has_retransmits":1,"streams":[{"id":1,"bytes":0,"retransmits":0,"jitter":0,"errors":0,"omitted_errors":0,"packets":0,"omitted_packets":0,"start_time":0,"end_time":1}]}"#;

/// Results of a server with one receiving TCP stream.
pub const SERVER_RESULTS: &str = r#"{"cpu_util_total":1,"cpu_util_user":1,"cpu_util_system":0,"sender_has_retransmits":-1,"streams":[{"id":1,"bytes":0,"retransmits":-1,"jitter":0,"errors":0,"omitted_errors":0,"packets":0,"omitted_packets":0,"start_time":0,"end_time":1}]}"#;

/// A cookie as a stock client makes it, another one each time.
pub fn cookie() -> [u8; COOKIE] {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let mut number = NEXT.fetch_add(1, Ordering::Relaxed) << 32 | u64::from(std::process::id());
    let mut cookie = [b'a'; COOKIE];
    for byte in &mut cookie[..13] {
        *byte = b"abcdefghijklmnopqrstuvwxyz234567"[usize::try_from(number % 32).expect("small")];
        number /= 32;
    }
    cookie[COOKIE - 1] = 0;
    cookie
}

/// A cookie by which a linerate introduces itself.
pub fn linerate_cookie() -> [u8; COOKIE] {
    let mut cookie = cookie();
    cookie.rotate_right(10);
    cookie[..9].copy_from_slice(b"lineratea");
    cookie[9] = b'2';
    cookie[COOKIE - 1] = 0;
    cookie
}

/// `document` with `"key":value` in place of the key's value, or added.
pub fn with(document: &str, key: &str, value: &str) -> String {
    let mut parsed: serde_json::Map<String, serde_json::Value> = serde_json::from_str(document).expect("JSON");
    parsed.remove(key);
    let mut text = serde_json::to_string(&parsed).expect("JSON");
    text.pop();
    let comma = if parsed.is_empty() { "" } else { "," };
    format!("{text}{comma}\"{key}\":{value}}}")
}

/// A document with its length before it.
pub fn framed(document: impl AsRef<[u8]>) -> Vec<u8> {
    let document = document.as_ref();
    let length = u32::try_from(document.len()).expect("short");
    [&length.to_be_bytes(), document].concat()
}

/// An error message of a server.
pub fn error(code: i32, errno: i32) -> Vec<u8> {
    [&[state::SERVER_ERROR][..], &code.to_be_bytes(), &errno.to_be_bytes()].concat()
}

/// What the peer said next on a control connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// A state byte.
    State(u8),
    /// The state byte for an error, with iperf3's number; `errno` was 0.
    Error(i32),
    /// It closed the connection, or reset it.
    Closed,
    /// Nothing within the time.
    Nothing,
}

/// One end of a control connection.
#[derive(Debug)]
pub struct Control(pub TcpStream);

impl Control {
    /// Sends; a peer that is gone already is no failure of the test.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let _ = self.0.write_all(bytes.as_ref());
    }

    /// Sends a JSON document.
    pub fn send_document(&mut self, document: impl AsRef<[u8]>) {
        self.send(framed(document));
    }

    /// Reads up to a full `buffer` within `limit`; how much came, and whether the peer has closed.
    pub fn read(&mut self, buffer: &mut [u8], limit: Duration) -> (usize, bool) {
        let deadline = Instant::now() + limit;
        let mut filled = 0;
        while filled < buffer.len() {
            let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_micros(1));
            self.0.set_read_timeout(Some(left)).expect("a time-out");
            match self.0.read(&mut buffer[filled..]) {
                Ok(0) => return (filled, true),
                Ok(count) => filled += count,
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return (filled, true),
            }
        }
        (filled, false)
    }

    /// The next thing that the peer says within `limit`.
    pub fn said_within(&mut self, limit: Duration) -> Said {
        let mut byte = [0];
        match self.read(&mut byte, limit) {
            (0, true) => return Said::Closed,
            (0, false) => return Said::Nothing,
            _ => {}
        }
        if byte[0] != state::SERVER_ERROR {
            return Said::State(byte[0]);
        }
        let mut details = [0; 8];
        assert_eq!(self.read(&mut details, SOON).0, 8, "an error has its two numbers");
        let [a, b, c, d, errno @ ..] = details;
        assert_eq!(errno, [0; 4], "errno says nothing of what happened");
        Said::Error(i32::from_be_bytes([a, b, c, d]))
    }

    /// The next thing that the peer says.
    pub fn said(&mut self) -> Said {
        self.said_within(SOON)
    }

    /// Reads a document.
    pub fn document(&mut self) -> String {
        let mut length = [0; 4];
        assert_eq!(self.read(&mut length, SOON), (4, false), "a document");
        let mut document = vec![0; usize::try_from(u32::from_be_bytes(length)).expect("small")];
        assert_eq!(self.read(&mut document, SOON).0, document.len(), "a whole document");
        String::from_utf8(document).expect("UTF-8")
    }

    /// Waits until the peer has closed, and throws away what it says before.
    pub fn closed_within(&mut self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        let mut buffer = [0; 4096];
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.read(&mut buffer, left) {
                (_, true) => return true,
                (_, false) if left.is_zero() => return false,
                _ => {}
            }
        }
    }

    /// Ends the connection by a reset: closing with something unread does that on Linux.
    ///
    /// # Panics
    ///
    /// When nothing unread comes.
    pub fn reset(self) {
        self.0.set_read_timeout(Some(SOON)).expect("a time-out");
        assert!(self.0.peek(&mut [0]).is_ok_and(|count| count > 0), "a reset needs something unread");
    }
}

/// A client, as far as it has been driven.
#[derive(Debug)]
pub struct Client {
    pub control: Control,
    pub cookie: [u8; COOKIE],
    pub streams: Vec<TcpStream>,
    pub port: u16,
}

/// A connection to the server on `port` that says nothing.
pub fn connection(port: u16) -> TcpStream {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("the server listens");
    stream.set_nodelay(true).expect("an option");
    stream.set_write_timeout(Some(SOON)).expect("a time-out");
    stream
}

impl Client {
    /// Connects and sends a stock client's cookie.
    pub fn connect(port: u16) -> Self {
        Self::connect_with(port, cookie())
    }

    /// Connects and sends `cookie`.
    pub fn connect_with(port: u16, cookie: [u8; COOKIE]) -> Self {
        let mut control = Control(connection(port));
        control.send(cookie);
        Self { control, cookie, streams: Vec::new(), port }
    }

    /// Connects and is let in.
    pub fn admitted(port: u16) -> Self {
        let mut client = Self::connect(port);
        client.expect(state::PARAM_EXCHANGE);
        client
    }

    /// Is let in and sends `parameters`.
    pub fn asking(port: u16, parameters: impl AsRef<[u8]>) -> Self {
        let mut client = Self::admitted(port);
        client.control.send_document(parameters);
        client
    }

    /// Is told to open its streams.
    pub fn accepted(port: u16, parameters: &str) -> Self {
        let mut client = Self::asking(port, parameters);
        client.expect(state::CREATE_STREAMS);
        client
    }

    /// Runs a test with `count` TCP streams, which `parameters` ask for.
    pub fn running(port: u16, parameters: &str, count: usize) -> Self {
        let mut client = Self::accepted(port, parameters);
        for _ in 0..count {
            client.open_stream();
        }
        client.expect_start();
        client
    }

    /// Runs a test with one UDP stream.
    pub fn running_udp(port: u16, parameters: &str) -> (Self, UdpSocket) {
        let mut client = Self::accepted(port, parameters);
        let socket = udp_stream(port, Ipv4Addr::LOCALHOST);
        client.expect_start();
        (client, socket)
    }

    /// Has ended its test.
    pub fn ended(port: u16, parameters: &str) -> Self {
        let mut client = Self::running(port, parameters, 1);
        client.end();
        client
    }

    /// Has got the results.
    pub fn displaying(port: u16, parameters: &str) -> Self {
        let mut client = Self::ended(port, parameters);
        client.control.send_document(CLIENT_RESULTS);
        client.control.document();
        client.expect(state::DISPLAY_RESULTS);
        client
    }

    /// One more TCP stream.
    pub fn open_stream(&mut self) {
        let mut stream = connection(self.port);
        stream.write_all(&self.cookie).expect("a fresh connection");
        self.streams.push(stream);
    }

    /// # Panics
    ///
    /// When the server says something else.
    #[track_caller]
    pub fn expect(&mut self, state: u8) {
        assert_eq!(self.control.said(), Said::State(state));
    }

    #[track_caller]
    pub fn expect_start(&mut self) {
        self.expect(state::TEST_START);
        self.expect(state::TEST_RUNNING);
    }

    /// Ends the test, up to the exchange of results.
    #[track_caller]
    pub fn end(&mut self) {
        self.control.send([state::TEST_END]);
        self.expect(state::EXCHANGE_RESULTS);
    }
}

/// A UDP stream from `source`, answered by the server.
pub fn udp_stream(port: u16, source: Ipv4Addr) -> UdpSocket {
    let socket = udp_socket(port, source);
    socket.send(&UDP_REQUEST).expect("a request");
    let mut answer = [0; 64];
    assert_eq!(socket.recv(&mut answer).expect("an answer"), 4);
    assert_eq!(answer[..4], UDP_REPLY);
    socket
}

/// A UDP socket that is connected to the server and has sent nothing.
pub fn udp_socket(port: u16, source: Ipv4Addr) -> UdpSocket {
    let socket = UdpSocket::bind((source, 0)).expect("a socket");
    socket.connect((Ipv4Addr::LOCALHOST, port)).expect("loopback");
    socket.set_read_timeout(Some(SOON)).expect("a time-out");
    socket
}

/// A datagram of a test: seconds, microseconds and number, then zeros up to `length`.
pub fn datagram(number: u32, length: usize) -> Vec<u8> {
    let mut datagram = vec![0; length.max(12)];
    datagram[3] = 1;
    datagram[8..12].copy_from_slice(&number.to_be_bytes());
    datagram
}

/// Binds to a port that was found free a moment ago. A program that another test starts just then has a copy of the
/// socket that found it free, until it runs its own code.
fn bound<T>(bind: impl Fn() -> std::io::Result<T>) -> T {
    for _ in 0..200 {
        match bind() {
            Err(error) if error.kind() == ErrorKind::AddrInUse => std::thread::sleep(Duration::from_millis(10)),
            other => return other.expect("a free port"),
        }
    }
    panic!("a port that was free is in use for two seconds");
}

/// A hostile server: waits for clients on a port of its own.
#[derive(Debug)]
pub struct Listener {
    tcp: TcpListener,
    udp: UdpSocket,
    pub port: u16,
}

impl Listener {
    /// On a port that is free for TCP and UDP.
    pub fn new(port: u16) -> Arc<Self> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let tcp = bound(|| TcpListener::bind(address));
        let udp = bound(|| UdpSocket::bind(address));
        udp.set_read_timeout(Some(SOON)).expect("a time-out");
        Arc::new(Self { tcp, udp, port })
    }

    /// The next connection, with its cookie.
    pub fn accept(&self) -> (Control, [u8; COOKIE]) {
        let (stream, _) = self.tcp.accept().expect("a client");
        stream.set_nodelay(true).expect("an option");
        stream.set_write_timeout(Some(SOON)).expect("a time-out");
        let mut control = Control(stream);
        let mut cookie = [0; COOKIE];
        assert_eq!(control.read(&mut cookie, SOON), (COOKIE, false), "a cookie");
        (control, cookie)
    }

    /// A client that has sent its cookie.
    pub fn client(self: &Arc<Self>) -> Served {
        let (control, cookie) = self.accept();
        Served { listener: Arc::clone(self), control, cookie, streams: Vec::new(), parameters: String::new() }
    }

    /// A client led to `step`.
    pub fn client_at(self: &Arc<Self>, step: Step) -> Served {
        let mut client = self.client();
        client.lead_to(step);
        client
    }

    /// The UDP socket on the same port.
    pub fn udp(&self) -> &UdpSocket {
        &self.udp
    }
}

/// A client that a hostile server has driven to some point.
#[derive(Debug)]
pub struct Served {
    listener: Arc<Listener>,
    pub control: Control,
    pub cookie: [u8; COOKIE],
    pub streams: Vec<TcpStream>,
    pub parameters: String,
}

/// How far a server leads a client before it turns hostile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// It has the cookie and has said nothing.
    Cookie,
    /// It has the parameters.
    Parameters,
    /// It has the streams, TCP.
    Streams,
    /// The test runs.
    Running,
    /// The client has ended the test.
    Ended,
    /// It has the client's results.
    Results,
    /// It has sent its own.
    Display,
}

impl Step {
    pub const ALL: [Self; 7] =
        [Self::Cookie, Self::Parameters, Self::Streams, Self::Running, Self::Ended, Self::Results, Self::Display];
}

impl Served {
    /// Behaves until `step`.
    pub fn lead_to(&mut self, step: Step) {
        for next in Step::ALL.into_iter().skip(1).take_while(|next| *next <= step) {
            match next {
                Step::Cookie => {}
                Step::Parameters => {
                    self.control.send([state::PARAM_EXCHANGE]);
                    self.parameters = self.control.document();
                }
                Step::Streams => {
                    self.control.send([state::CREATE_STREAMS]);
                    self.accept_stream();
                }
                Step::Running => self.control.send([state::TEST_START, state::TEST_RUNNING]),
                Step::Ended => {
                    assert_eq!(self.control.said_within(Duration::from_secs(20)), Said::State(state::TEST_END));
                }
                Step::Results => {
                    self.control.send([state::EXCHANGE_RESULTS]);
                    self.control.document();
                }
                Step::Display => self.control.send_document(SERVER_RESULTS),
            }
        }
    }

    /// Behaves from `Step::Running` on to the end.
    pub fn conclude(&mut self, results: &str) {
        assert_eq!(self.control.said_within(Duration::from_secs(20)), Said::State(state::TEST_END));
        self.control.send([state::EXCHANGE_RESULTS]);
        self.control.document();
        self.control.send_document(results);
        self.control.send([state::DISPLAY_RESULTS]);
        assert_eq!(self.control.said(), Said::State(state::IPERF_DONE));
    }

    /// The next TCP stream.
    pub fn accept_stream(&mut self) {
        let (stream, cookie) = self.listener.accept();
        assert_eq!(cookie, self.cookie);
        self.streams.push(stream.0);
    }

    /// Answers the handshake of a UDP stream; where its datagrams come from.
    pub fn accept_udp(&self) -> SocketAddr {
        let mut buffer = [0; 64];
        let (length, source) = self.listener.udp.recv_from(&mut buffer).expect("a request");
        assert_eq!(buffer[..length], UDP_REQUEST);
        self.listener.udp.send_to(&UDP_REPLY, source).expect("an answer");
        source
    }
}

/// What a process holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holdings {
    pub threads: usize,
    pub descriptors: usize,
}

impl Holdings {
    /// Of a running process.
    pub fn of(process: u32) -> Self {
        let count =
            |folder: &str| std::fs::read_dir(format!("/proc/{process}/{folder}")).expect("a running process").count();
        Self { threads: count("task"), descriptors: count("fd") }
    }
}

/// The most memory that a running process has had in RAM, in KiB (`VmHWM`, `proc_pid_status(5)`); `None` once it ended.
pub fn peak_memory(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches(" kB").trim().parse().ok()
}

/// Processor time of a process since its start, in ticks of 10 ms.
pub fn processor_ticks(process: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).expect("a running process");
    // The name in parentheses may hold blanks; utime and stime are fields 14 and 15.
    let rest = stat.rsplit_once(')').expect("a name").1;
    rest.split_whitespace().skip(11).take(2).map(|field| field.parse::<u64>().expect("a number")).sum()
}
