//! Small hand-written implementation of iperf3's protocol: the messages of a hostile peer must not come from the code
//! under test. Both roles: [`Client`] talks to a server, [`Listener`] and [`Served`] to a client.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::support::process::eventually;

/// State bytes of iperf3 on the wire.
pub(crate) mod state {
    pub(crate) const TEST_START: u8 = 1;
    pub(crate) const TEST_RUNNING: u8 = 2;
    pub(crate) const TEST_END: u8 = 4;
    pub(crate) const PARAM_EXCHANGE: u8 = 9;
    pub(crate) const CREATE_STREAMS: u8 = 10;
    pub(crate) const SERVER_TERMINATE: u8 = 11;
    pub(crate) const CLIENT_TERMINATE: u8 = 12;
    pub(crate) const EXCHANGE_RESULTS: u8 = 13;
    pub(crate) const DISPLAY_RESULTS: u8 = 14;
    pub(crate) const IPERF_DONE: u8 = 16;
    pub(crate) const SERVER_ERROR: u8 = 0xFE;
    pub(crate) const ACCESS_DENIED: u8 = 0xFF;
    /// State byte before a message of linerate's extension.
    pub(crate) const EXTENSION: u8 = b'L';
}

/// Length of a cookie in bytes.
pub(crate) const COOKIE: usize = 37;

/// Longest wait for an expected event. It only ends a hang: a busy host can delay each event by seconds.
pub(crate) const REPLY_TIMEOUT: Duration = Duration::from_secs(60);

/// Parameters of an ordinary test, without an end condition.
pub(crate) const TCP: &str = r#"{"tcp":true,"omit":0,"time":0,"num":0,"blockcount":0,"parallel":1,"len":131072,"pacing_timer":1000,"client_version":"3.21"}"#;

/// Same parameters over UDP.
pub(crate) const UDP: &str = r#"{"udp":true,"omit":0,"time":0,"num":0,"blockcount":0,"parallel":1,"len":1000,"pacing_timer":1000,"client_version":"3.21"}"#;

/// First datagram of a UDP client, and the reply to it.
pub(crate) const UDP_REQUEST: [u8; 4] = *b"9876";
pub(crate) const UDP_REPLY: [u8; 4] = *b"6789";

/// Results of a client with one TCP stream that sent nothing.
pub(crate) const CLIENT_RESULTS: &str = r#"{"cpu_util_total":1,"cpu_util_user":1,"cpu_util_system":0,"sender_has_retransmits":1,"streams":[{"id":1,"bytes":0,"retransmits":0,"jitter":0,"errors":0,"omitted_errors":0,"packets":0,"omitted_packets":0,"start_time":0,"end_time":1}]}"#;

/// Results of a server with one receiving TCP stream.
pub(crate) const SERVER_RESULTS: &str = r#"{"cpu_util_total":1,"cpu_util_user":1,"cpu_util_system":0,"sender_has_retransmits":-1,"streams":[{"id":1,"bytes":0,"retransmits":-1,"jitter":0,"errors":0,"omitted_errors":0,"packets":0,"omitted_packets":0,"start_time":0,"end_time":1}]}"#;

/// Cookie in the format of a stock client, a different one each time.
pub(crate) fn cookie() -> [u8; COOKIE] {
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

/// Cookie that identifies a linerate.
pub(crate) fn linerate_cookie() -> [u8; COOKIE] {
    let mut cookie = cookie();
    cookie.rotate_right(10);
    cookie[..9].copy_from_slice(b"lineratea");
    cookie[9] = b'2';
    cookie[COOKIE - 1] = 0;
    cookie
}

/// Sets or adds `"key":value` in `document`.
pub(crate) fn with(document: &str, key: &str, value: &str) -> String {
    let mut parsed: serde_json::Map<String, serde_json::Value> = serde_json::from_str(document).expect("JSON");
    parsed.remove(key);
    let mut text = serde_json::to_string(&parsed).expect("JSON");
    text.pop();
    let comma = if parsed.is_empty() { "" } else { "," };
    format!("{text}{comma}\"{key}\":{value}}}")
}

/// Document with its length before it.
pub(crate) fn framed(document: impl AsRef<[u8]>) -> Vec<u8> {
    let document = document.as_ref();
    let length = u32::try_from(document.len()).expect("short");
    [&length.to_be_bytes(), document].concat()
}

/// Error message of a server.
pub(crate) fn error(code: i32, errno: i32) -> Vec<u8> {
    [&[state::SERVER_ERROR][..], &code.to_be_bytes(), &errno.to_be_bytes()].concat()
}

/// Next message of the peer on a control connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PeerMessage {
    /// State byte.
    State(u8),
    /// State byte for an error, with iperf3's number; `errno` was 0.
    Error(i32),
    /// Connection closed or reset.
    Closed,
    /// No message within the time.
    Nothing,
}

/// One end of a control connection.
#[derive(Debug)]
pub(crate) struct Control(pub TcpStream);

impl Control {
    /// Sends bytes; a peer that has already gone is no failure of the test.
    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let _ = self.0.write_all(bytes.as_ref());
    }

    /// Sends a JSON document.
    pub(crate) fn send_document(&mut self, document: impl AsRef<[u8]>) {
        self.send(framed(document));
    }

    /// Reads up to a full `buffer` within `limit`; returns the length, and true when the peer has closed.
    pub(crate) fn read(&mut self, buffer: &mut [u8], limit: Duration) -> (usize, bool) {
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

    /// Next message of the peer within `limit`.
    pub(crate) fn next_message_within(&mut self, limit: Duration) -> PeerMessage {
        let mut byte = [0];
        match self.read(&mut byte, limit) {
            (0, true) => return PeerMessage::Closed,
            (0, false) => return PeerMessage::Nothing,
            _ => {}
        }
        if byte[0] != state::SERVER_ERROR {
            return PeerMessage::State(byte[0]);
        }
        let mut details = [0; 8];
        assert_eq!(self.read(&mut details, REPLY_TIMEOUT).0, 8, "an error has its two numbers");
        let [a, b, c, d, errno @ ..] = details;
        assert_eq!(errno, [0; 4], "errno is unset");
        PeerMessage::Error(i32::from_be_bytes([a, b, c, d]))
    }

    /// Next message of the peer.
    pub(crate) fn next_message(&mut self) -> PeerMessage {
        self.next_message_within(REPLY_TIMEOUT)
    }

    /// Reads a document.
    pub(crate) fn document(&mut self) -> String {
        let mut length = [0; 4];
        assert_eq!(self.read(&mut length, REPLY_TIMEOUT), (4, false), "a document");
        let mut document = vec![0; usize::try_from(u32::from_be_bytes(length)).expect("small")];
        assert_eq!(self.read(&mut document, REPLY_TIMEOUT).0, document.len(), "a whole document");
        String::from_utf8(document).expect("UTF-8")
    }

    /// Waits until the peer has closed, and discards its messages before.
    pub(crate) fn closed_within(&mut self, limit: Duration) -> bool {
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

    /// Ends the connection with a reset: closing with unread data does that on Linux.
    ///
    /// # Panics
    ///
    /// Panics when no unread data arrives.
    pub(crate) fn reset(self) {
        self.0.set_read_timeout(Some(REPLY_TIMEOUT)).expect("a time-out");
        assert!(self.0.peek(&mut [0]).is_ok_and(|count| count > 0), "a reset needs something unread");
    }
}

/// Client, driven up to some state.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) control: Control,
    pub(crate) cookie: [u8; COOKIE],
    pub(crate) streams: Vec<TcpStream>,
    pub(crate) port: u16,
}

/// Silent connection to the server on `port`.
pub(crate) fn connection(port: u16) -> TcpStream {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("the server listens");
    stream.set_nodelay(true).expect("an option");
    stream.set_write_timeout(Some(REPLY_TIMEOUT)).expect("a time-out");
    stream
}

impl Client {
    /// Connects and sends a stock client's cookie.
    pub(crate) fn connect(port: u16) -> Self {
        Self::connect_with(port, cookie())
    }

    /// Connects and sends `cookie`.
    pub(crate) fn connect_with(port: u16, cookie: [u8; COOKIE]) -> Self {
        let mut control = Control(connection(port));
        control.send(cookie);
        Self { control, cookie, streams: Vec::new(), port }
    }

    /// Connects and is admitted.
    pub(crate) fn admitted(port: u16) -> Self {
        let mut client = Self::connect(port);
        client.expect(state::PARAM_EXCHANGE);
        client
    }

    /// Is admitted and sends `parameters`.
    pub(crate) fn asking(port: u16, parameters: impl AsRef<[u8]>) -> Self {
        let mut client = Self::admitted(port);
        client.control.send_document(parameters);
        client
    }

    /// Receives the request to open its streams.
    pub(crate) fn accepted(port: u16, parameters: &str) -> Self {
        let mut client = Self::asking(port, parameters);
        client.expect(state::CREATE_STREAMS);
        client
    }

    /// Runs a test with `count` TCP streams, which `parameters` request.
    pub(crate) fn running(port: u16, parameters: &str, count: usize) -> Self {
        let mut client = Self::accepted(port, parameters);
        for _ in 0..count {
            client.open_stream();
        }
        client.expect_start();
        client
    }

    /// Runs a test with one UDP stream.
    pub(crate) fn running_udp(port: u16, parameters: &str) -> (Self, UdpSocket) {
        let mut client = Self::accepted(port, parameters);
        let socket = udp_stream(port, Ipv4Addr::LOCALHOST);
        client.expect_start();
        (client, socket)
    }

    /// Ends its test.
    pub(crate) fn ended(port: u16, parameters: &str) -> Self {
        let mut client = Self::running(port, parameters, 1);
        client.end();
        client
    }

    /// Receives the results.
    pub(crate) fn displaying(port: u16, parameters: &str) -> Self {
        let mut client = Self::ended(port, parameters);
        client.control.send_document(CLIENT_RESULTS);
        client.control.document();
        client.expect(state::DISPLAY_RESULTS);
        client
    }

    /// Opens another TCP stream.
    pub(crate) fn open_stream(&mut self) {
        let mut stream = connection(self.port);
        stream.write_all(&self.cookie).expect("a fresh connection");
        self.streams.push(stream);
    }

    /// # Panics
    ///
    /// Panics when the server sends another message.
    #[track_caller]
    pub(crate) fn expect(&mut self, state: u8) {
        assert_eq!(self.control.next_message(), PeerMessage::State(state));
    }

    #[track_caller]
    pub(crate) fn expect_start(&mut self) {
        self.expect(state::TEST_START);
        self.expect(state::TEST_RUNNING);
    }

    /// Ends the test, up to the exchange of results.
    #[track_caller]
    pub(crate) fn end(&mut self) {
        self.control.send([state::TEST_END]);
        self.expect(state::EXCHANGE_RESULTS);
    }
}

/// UDP stream from `source`, with the server's reply.
pub(crate) fn udp_stream(port: u16, source: Ipv4Addr) -> UdpSocket {
    let socket = udp_socket(port, source);
    socket.send(&UDP_REQUEST).expect("a request");
    let mut answer = [0; 64];
    assert_eq!(socket.recv(&mut answer).expect("an answer"), 4);
    assert_eq!(answer[..4], UDP_REPLY);
    socket
}

/// UDP socket that is connected to the server and has sent nothing.
pub(crate) fn udp_socket(port: u16, source: Ipv4Addr) -> UdpSocket {
    let socket = UdpSocket::bind((source, 0)).expect("a socket");
    socket.connect((Ipv4Addr::LOCALHOST, port)).expect("loopback");
    socket.set_read_timeout(Some(REPLY_TIMEOUT)).expect("a time-out");
    socket
}

/// Datagram of a test: seconds, microseconds and number, then zeros up to `length`.
pub(crate) fn datagram(number: u32, length: usize) -> Vec<u8> {
    let mut datagram = vec![0; length.max(12)];
    datagram[3] = 1;
    datagram[8..12].copy_from_slice(&number.to_be_bytes());
    datagram
}

/// Binds to a port that was free a moment ago. A program that another test starts just then has a copy of the socket
/// that checked the port, until it executes its own code.
fn bound<T>(bind: impl Fn() -> std::io::Result<T>) -> T {
    let mut bound = None;
    eventually(REPLY_TIMEOUT, || {
        let attempt = bind();
        let in_use = attempt.as_ref().is_err_and(|error| error.kind() == ErrorKind::AddrInUse);
        bound = Some(attempt);
        !in_use
    });
    bound.expect("at least one attempt").expect("a free port")
}

/// Hostile server that waits for clients on a separate port.
#[derive(Debug)]
pub(crate) struct Listener {
    tcp: TcpListener,
    udp: UdpSocket,
    pub(crate) port: u16,
}

impl Listener {
    /// Binds a port that is free for TCP and UDP.
    pub(crate) fn new(port: u16) -> Arc<Self> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let tcp = bound(|| TcpListener::bind(address));
        let udp = bound(|| UdpSocket::bind(address));
        udp.set_read_timeout(Some(REPLY_TIMEOUT)).expect("a time-out");
        Arc::new(Self { tcp, udp, port })
    }

    /// Next connection, with its cookie.
    pub(crate) fn accept(&self) -> (Control, [u8; COOKIE]) {
        let (stream, _) = self.tcp.accept().expect("a client");
        stream.set_nodelay(true).expect("an option");
        stream.set_write_timeout(Some(REPLY_TIMEOUT)).expect("a time-out");
        let mut control = Control(stream);
        let mut cookie = [0; COOKIE];
        assert_eq!(control.read(&mut cookie, REPLY_TIMEOUT), (COOKIE, false), "a cookie");
        (control, cookie)
    }

    /// Client that has sent its cookie.
    pub(crate) fn client(self: &Arc<Self>) -> Served {
        let (control, cookie) = self.accept();
        Served { listener: Arc::clone(self), control, cookie, streams: Vec::new(), parameters: String::new() }
    }

    /// Client led to `step`.
    pub(crate) fn client_at(self: &Arc<Self>, step: Step) -> Served {
        let mut client = self.client();
        client.lead_to(step);
        client
    }

    /// UDP socket on the same port.
    pub(crate) fn udp(&self) -> &UdpSocket {
        &self.udp
    }
}

/// Client, driven by a hostile server up to some step.
#[derive(Debug)]
pub(crate) struct Served {
    listener: Arc<Listener>,
    pub(crate) control: Control,
    pub(crate) cookie: [u8; COOKIE],
    pub(crate) streams: Vec<TcpStream>,
    pub(crate) parameters: String,
}

/// Step up to which a server behaves correctly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    /// The server has the cookie and has sent nothing.
    Cookie,
    /// The server has the parameters.
    Parameters,
    /// The server has the streams, TCP.
    Streams,
    /// The test runs.
    Running,
    /// The client has ended the test.
    Ended,
    /// The server has the client's results.
    Results,
    /// The server has sent its own results.
    Display,
}

impl Step {
    pub(crate) const ALL: [Self; 7] =
        [Self::Cookie, Self::Parameters, Self::Streams, Self::Running, Self::Ended, Self::Results, Self::Display];
}

impl Served {
    /// Behaves correctly until `step`.
    pub(crate) fn lead_to(&mut self, step: Step) {
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
                    assert_eq!(self.control.next_message(), PeerMessage::State(state::TEST_END));
                }
                Step::Results => {
                    self.control.send([state::EXCHANGE_RESULTS]);
                    self.control.document();
                }
                Step::Display => self.control.send_document(SERVER_RESULTS),
            }
        }
    }

    /// Behaves correctly from `Step::Running` to the end.
    pub(crate) fn conclude(&mut self, results: &str) {
        assert_eq!(self.control.next_message(), PeerMessage::State(state::TEST_END));
        self.control.send([state::EXCHANGE_RESULTS]);
        self.control.document();
        self.control.send_document(results);
        self.control.send([state::DISPLAY_RESULTS]);
        assert_eq!(self.control.next_message(), PeerMessage::State(state::IPERF_DONE));
    }

    /// Ends the control connection, and no stream: a client that is preempted might see a broken stream first.
    pub(crate) fn close_control(&self) {
        // The client may have closed it.
        let _ = self.control.0.shutdown(std::net::Shutdown::Both);
    }

    /// Waits until the client has read everything from its control connection.
    ///
    /// # Panics
    ///
    /// Panics if it does not.
    #[track_caller]
    pub(crate) fn wait_until_read(&self) {
        let port = self.control.0.peer_addr().expect("connected").port();
        assert!(eventually(REPLY_TIMEOUT, || is_read(port)), "the client does not read");
    }

    /// Accepts the next TCP stream.
    pub(crate) fn accept_stream(&mut self) {
        let (stream, cookie) = self.listener.accept();
        assert_eq!(cookie, self.cookie);
        self.streams.push(stream.0);
    }

    /// Answers the handshake of a UDP stream; returns the address of its datagrams.
    pub(crate) fn accept_udp(&self) -> SocketAddr {
        let mut buffer = [0; 64];
        let (length, source) = self.listener.udp.recv_from(&mut buffer).expect("a request");
        assert_eq!(buffer[..length], UDP_REQUEST);
        self.listener.udp.send_to(&UDP_REPLY, source).expect("an answer");
        source
    }
}

/// Resources of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Holdings {
    pub(crate) threads: usize,
    pub(crate) descriptors: usize,
}

impl Holdings {
    /// Resources of a running process.
    pub(crate) fn of(process: u32) -> Self {
        let count =
            |folder: &str| std::fs::read_dir(format!("/proc/{process}/{folder}")).expect("a running process").count();
        Self { threads: count("task"), descriptors: count("fd") }
    }

    /// Resources of a server that serves no client. One that has just begun to listen still opens descriptors: all are
    /// open once each of its threads waits.
    ///
    /// # Panics
    ///
    /// Panics if it never waits.
    #[track_caller]
    pub(crate) fn when_idle(process: u32) -> Self {
        let waits = || threads(process).iter().all(|(_, state)| *state == 'S');
        assert!(eventually(REPLY_TIMEOUT, waits), "{:?}", threads(process));
        Self::of(process)
    }
}

/// Number of sockets of a process. Unlike all descriptors, it does not count files that the process reads meanwhile.
pub(crate) fn sockets(process: u32) -> usize {
    let descriptors = std::fs::read_dir(format!("/proc/{process}/fd")).expect("a running process").flatten();
    let links = descriptors.filter_map(|descriptor| std::fs::read_link(descriptor.path()).ok());
    links.filter(|link| link.to_string_lossy().starts_with("socket:")).count()
}

/// Number of a process's threads whose name starts with `prefix`: those of the data streams are called `stream-NUMBER`.
pub(crate) fn threads_named(process: u32, prefix: &str) -> usize {
    let has_prefix = |name: &String| name.starts_with(prefix);
    threads(process).into_iter().filter(|(name, _)| has_prefix(name)).count()
}

/// Name and state (`R`, `S`, …) of each thread of a process (`proc_pid_stat(5)`).
fn threads(process: u32) -> Vec<(String, char)> {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().filter_map(Result::ok);
    let stats = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("stat")).ok());
    let named = stats.filter_map(|stat| {
        let (head, rest) = stat.rsplit_once(')')?;
        Some((head.split_once('(')?.1.to_owned(), rest.trim_start().chars().next()?))
    });
    named.collect()
}

/// True when the sockets of this host with local port `port` have no unread data (`/proc/net/tcp`, `/proc/net/udp`).
pub(crate) fn is_read(port: u16) -> bool {
    ["tcp", "tcp6", "udp", "udp6"].iter().all(|table| {
        let table = std::fs::read_to_string(format!("/proc/net/{table}")).unwrap_or_default();
        table.lines().skip(1).all(|line| {
            let fields: Vec<&str> = line.split_whitespace().take(5).collect();
            let local = fields.get(1).and_then(|local| u16::from_str_radix(local.rsplit_once(':')?.1, 16).ok());
            // For a listening socket, the receive queue is its backlog.
            let unread =
                fields.get(4).and_then(|queues| queues.rsplit_once(':')).is_some_and(|(_, rx)| rx != "00000000");
            local != Some(port) || fields.get(3) == Some(&"0A") || !unread
        })
    })
}

/// Waits until a process has read everything that was sent to `port`, and its stream threads wait for more.
///
/// # Panics
///
/// Panics if it does not.
#[track_caller]
pub(crate) fn wait_until_read(process: u32, port: u16) {
    let waits = |(name, state): &(String, char)| !name.starts_with("stream-") || *state == 'S';
    let read = eventually(REPLY_TIMEOUT, || is_read(port) && threads(process).iter().all(waits) && is_read(port));
    assert!(read, "unread data on port {port}: {:?}", threads(process));
}

/// Largest resident memory of a running process in KiB (`VmHWM`, `proc_pid_status(5)`); `None` once it ended.
pub(crate) fn peak_memory(process: u32) -> Option<u64> {
    memory_figure(&std::fs::read_to_string(format!("/proc/{process}/status")).ok()?, "VmHWM:")
}

/// As [`peak_memory`], without the pages of the program, which are many without optimisation for size.
pub(crate) fn own_peak_memory(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    Some(memory_figure(&status, "VmHWM:")?.saturating_sub(memory_figure(&status, "RssFile:")?))
}

fn memory_figure(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().trim_end_matches(" kB").trim().parse().ok()
}

/// Processor time of a process since its start, in ticks of 10 ms.
pub(crate) fn processor_ticks(process: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).expect("a running process");
    // The name in parentheses may contain blanks; utime and stime are fields 14 and 15.
    let rest = stat.rsplit_once(')').expect("a name").1;
    rest.split_whitespace().skip(11).take(2).map(|field| field.parse::<u64>().expect("a number")).sum()
}
