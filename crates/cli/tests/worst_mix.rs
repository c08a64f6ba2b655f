//! A server under the worst mix of sessions that its clients may hold: memory, processor time, and other clients meanwhile.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use linerate_sys::net::{self, ConnectOptions};
use linerate_sys::process;
use linerate_units::{ByteCount, TypeOfService};
use linerate_wire::cookie::Cookie;
use linerate_wire::probe::{
    ConnectionNumber, ConnectionRef, EmptyContent, LoadOrder, ProbeMessageDecoder, ProbeResponse, ReceiveOrder,
    RecordDetail, ReflectorOpened, StreamNumber, StreamRequest,
};
use linerate_wire::stamp::{SenderPacket, SessionIdentifier, StampTimestamp, TimestampFormat};

use crate::support::process::eventually;
use crate::support::wire::{self, Control, Holdings, PeerMessage, state};
use crate::support::{self, Server};

/// Memory of the whole server, in KiB.
const MAX_MEMORY: u64 = 256 << 10;

/// Time in which a client of another network is to be served.
const MAX_DELAY: Duration = Duration::from_millis(200);

/// Time over which processor and memory are watched.
const WATCH: Duration = Duration::from_secs(10);

/// Sessions of the default limit.
const SESSIONS: usize = 1000;

/// Time limit of an answer, on a host that is busy with all this.
const PATIENCE: Duration = Duration::from_secs(20);

/// Connects from an address of this host.
fn connect(port: u16, from: Ipv4Addr) -> TcpStream {
    let bind = Some(SocketAddr::new(from.into(), 0));
    let options = ConnectOptions { bind, ..ConnectOptions::to((Ipv4Addr::LOCALHOST, port).into()) };
    let stream = net::connect_tcp(&options, None).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("an option");
    stream
}

/// Test of a client that opens its streams, and sends and reads nothing.
struct IdleTest {
    _control: Control,
    _streams: Vec<TcpStream>,
}

impl IdleTest {
    /// Asks for a test and opens `streams` of its streams; `None` when the server refuses or displaces it.
    fn open(port: u16, from: Ipv4Addr, parameters: &str, streams: usize) -> Option<Self> {
        let mut control = Control(connect(port, from));
        let cookie = wire::cookie();
        control.send(cookie);
        let is_next = |control: &mut Control, expected| match control.next_message_within(PATIENCE) {
            PeerMessage::State(found) if found == expected => true,
            PeerMessage::State(state::ACCESS_DENIED) | PeerMessage::Error(_) | PeerMessage::Closed => false,
            other => panic!("{other:?} instead of {expected}"),
        };
        if !is_next(&mut control, state::PARAM_EXCHANGE) {
            return None;
        }
        control.send_document(parameters);
        if !is_next(&mut control, state::CREATE_STREAMS) {
            return None;
        }
        let open = |_| {
            let mut stream = connect(port, from);
            // A displaced test expects no stream any more.
            let _ = stream.write_all(&cookie);
            stream
        };
        let streams: Vec<TcpStream> = (0..streams).map(open).collect();
        if !streams.is_empty() && !is_next(&mut control, state::TEST_START) {
            return None;
        }
        Some(Self { _control: control, _streams: streams })
    }
}

/// Probe session of a client that reads no more than it has to.
struct GreedySession {
    control: TcpStream,
    decoder: ProbeMessageDecoder,
    port: u16,
    from: Ipv4Addr,
    loads: Vec<TcpStream>,
    datagrams: Option<UdpSocket>,
}

impl GreedySession {
    fn open(port: u16, from: Ipv4Addr) -> Self {
        let mut control = connect(port, from);
        control.write_all(Cookie::probes([7; 36]).as_bytes()).expect("buffer space");
        let decoder = ProbeMessageDecoder::of_answers();
        let mut session = Self { control, decoder, port, from, loads: Vec::new(), datagrams: None };
        if let Some(hello) = session.answer() {
            assert!(matches!(hello, ProbeResponse::Hello(_)), "{hello:?}");
        }
        session.say(&StreamRequest::Alive(EmptyContent {}));
        session
    }

    fn say(&mut self, request: &StreamRequest) {
        // A displaced session reads no more.
        let _ = self.control.write_all(&request.encode());
    }

    /// Next answer that is no report of progress; `None` for a refusal, and when the session is displaced.
    fn answer(&mut self) -> Option<ProbeResponse> {
        loop {
            let mut byte = [0];
            self.control.read_exact(&mut byte).ok()?;
            let Some(document) = self.decoder.feed(&mut &byte[..]).ok()? else { continue };
            match ProbeResponse::decode(&document).expect("readable") {
                Some(ProbeResponse::LoadProgress(_)) | None => {}
                Some(ProbeResponse::Refused(_)) => return None,
                Some(answer) => return Some(answer),
            }
        }
    }

    /// Port and token for datagrams; `None` when the server has no memory for them.
    fn opened(&mut self) -> Option<ReflectorOpened> {
        self.say(&StreamRequest::Open(EmptyContent {}));
        match self.answer()? {
            ProbeResponse::Opened(opened) => Some(opened),
            other => panic!("{other:?}"),
        }
    }

    /// Starts load connections, up to 64, until the server refuses one; none is ever read.
    fn add_loads(&mut self) {
        let Some(opened) = self.opened() else { return };
        for number in 0..64 {
            let connection = ConnectionNumber(number);
            self.say(&StreamRequest::Load(LoadOrder {
                connection,
                direction: linerate_model::direction::Direction::Down,
                congestion_control: None,
                type_of_service: TypeOfService::default(),
                sampling: Duration::from_millis(1),
            }));
            let Some(ProbeResponse::LoadExpected(_)) = self.answer() else { return };
            let mut load = connect(self.port, self.from);
            let _ = load.write_all(Cookie::load(opened.token).as_bytes());
            self.loads.push(load);
            let Some(ProbeResponse::LoadReady(_)) = self.answer() else { return };
            self.say(&StreamRequest::LoadStart(ConnectionRef { connection }));
        }
    }

    /// Has packets recorded, and collects none of them.
    fn add_records(&mut self, packets: u32) {
        let Some(opened) = self.opened() else { return };
        let socket = UdpSocket::bind((self.from, 0)).expect("an address of this host");
        socket.connect((Ipv4Addr::LOCALHOST, opened.port.get())).expect("loopback");
        socket.set_read_timeout(Some(PATIENCE)).expect("an option");
        let token = opened.token.as_bytes();
        let mut packet = SenderPacket::default().encode(ByteCount::new(44));
        packet.extend([0, 1, 0, u8::try_from(token.len()).expect("short")]);
        packet.extend(token);
        socket.send(&packet).expect("loopback");
        let mut challenge = [0; 2048];
        let Ok(length) = socket.recv(&mut challenge) else { return };
        socket.send(&challenge[..length]).expect("loopback");
        let Some(ProbeResponse::Ready(_)) = self.answer() else { return };
        let stream = StreamNumber::FIRST_RECORDED;
        self.say(&StreamRequest::Receive(ReceiveOrder { stream, detail: RecordDetail::Arrivals }));
        let Some(ProbeResponse::Receiving(_)) = self.answer() else { return };
        let timestamp = StampTimestamp::from_wall(linerate_sys::clock::realtime_now(), TimestampFormat::Ntp);
        for sequence in 0..packets {
            let session = SessionIdentifier::new(stream.get());
            let packet = SenderPacket { sequence, timestamp, session, ..SenderPacket::default() };
            // A full buffer loses some.
            let _ = socket.send(&packet.encode(ByteCount::new(44)));
        }
        self.datagrams = Some(socket);
    }
}

/// Address of an attacker: `kind` names its attack, and a network has twenty sessions.
fn address(kind: u8, number: usize) -> Ipv4Addr {
    Ipv4Addr::new(127, kind, 1, u8::try_from(number / 20 + 1).expect("few networks"))
}

/// Calls `open` for each number, several at a time.
fn several<T: Send>(numbers: std::ops::Range<usize>, open: impl Fn(usize) -> T + Sync) -> Vec<T> {
    const THREADS: usize = 8;
    let (open, numbers) = (&open, &numbers);
    std::thread::scope(|scope| {
        let of_thread =
            |first: usize| scope.spawn(move || numbers.clone().skip(first).step_by(THREADS).map(open).collect());
        let threads: Vec<std::thread::ScopedJoinHandle<'_, Vec<T>>> = (0..THREADS).map(of_thread).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
    })
}

/// Stops a thread at the end of a test, however it ends.
struct StopAtEnd<'a>(&'a AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Sends STAMP packets from fifty addresses, in all about ten thousand a second.
fn send_stamp(port: u16, stop: &AtomicBool) {
    let bind = |number: u8| UdpSocket::bind((Ipv4Addr::new(127, 7, 1, number), 0)).expect("an address of this host");
    let senders: Vec<UdpSocket> = (1..=50).map(bind).collect();
    let packet = SenderPacket::default().encode(ByteCount::new(44));
    let start = Instant::now();
    let mut sent: u128 = 0;
    while !stop.load(Ordering::Relaxed) {
        while sent < start.elapsed().as_micros() / 100 {
            let sender = &senders[usize::try_from(sent % 50).expect("small")];
            let _ = sender.send_to(&packet, (Ipv4Addr::LOCALHOST, port));
            sent += 1;
        }
        std::thread::park_timeout(Duration::from_millis(2));
    }
}

/// Time until the data of a client from `from` may flow.
fn time_to_serve(port: u16, from: Ipv4Addr) -> Duration {
    let start = Instant::now();
    assert!(IdleTest::open(port, from, wire::TCP, 1).is_some(), "refused after {:?}", start.elapsed());
    start.elapsed()
}

#[test]
fn the_worst_mix_of_a_thousand_sessions_stays_within_its_memory_and_one_processor() {
    process::raise_open_file_limit().expect("a higher limit");
    let (port, stamp) = (support::server::free_port(), support::server::free_port());
    let mut command = Command::new(env!("CARGO_BIN_EXE_linerate"));
    command.args(["serve", "-p", &port.to_string(), "--stamp-port", &stamp.to_string()]);
    let server = Server::listening(command, port);
    let process = server.process.id();
    let (idle, idle_memory) = (Holdings::when_idle(process), server.resident_memory());

    let many = wire::with(&wire::with(wire::TCP, "parallel", "128"), "bidirectional", "true");
    let reverse = wire::with(&wire::with(wire::TCP, "parallel", "8"), "reverse", "true");
    let two = wire::with(wire::TCP, "parallel", "2");
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| send_stamp(stamp, &stop));
        let _stop = StopAtEnd(&stop);
        let mut tests: Vec<IdleTest> = Vec::new();
        // Those with the most threads and memory first, then those that take less.
        let idle_tests = |kind: u8, networks: usize, count: usize, parameters: &str, streams: usize| {
            let open = |number: usize| IdleTest::open(port, address(kind, number * networks), parameters, streams);
            several(0..count, open).into_iter().flatten()
        };
        tests.extend(idle_tests(1, 20, 20, &many, 256));
        tests.extend(idle_tests(2, 1, 20, &reverse, 8));
        let with_loads = |number| {
            let mut session = GreedySession::open(port, address(3, number));
            session.add_loads();
            session
        };
        let mut loaded = several(0..200, with_loads);
        let recorded = several(0..200, |number| {
            let mut session = GreedySession::open(port, address(4, number));
            session.add_records(2000);
            session
        });
        tests.extend(idle_tests(5, 1, 200, wire::TCP, 0));
        tests.extend(idle_tests(6, 1, 200, &two, 2));
        let held = tests.len() + loaded.len() + recorded.len();
        let alive = several(held..SESSIONS, |number| GreedySession::open(port, address(8, number)));
        let cookies: Vec<TcpStream> = (0..1024)
            .map(|number| {
                let mut connection = connect(port, address(9, number));
                connection.write_all(&wire::cookie()[..18]).expect("buffer space");
                connection
            })
            .collect();
        // Those that have not been displaced meanwhile; on a busy host, opening the others takes longer than an idle
        // session is kept.
        let are_few = |_: &usize| wire::threads_named(process, "load") < 64;
        loaded.extend((200..220).take_while(are_few).map(with_loads));
        let loads = wire::threads_named(process, "load");
        let recording = recorded.iter().filter(|session| session.datagrams.is_some()).count();
        let kinds = format!("{} tests, {loads} load connections, {recording} sessions with records", tests.len());
        assert!(loads >= 64 && recording >= 1 && tests.len() >= 200, "{kinds}");

        let (start, ticks) = (Instant::now(), wire::processor_ticks(process));
        let mut delays = Vec::new();
        while start.elapsed() < WATCH {
            delays.push(time_to_serve(port, Ipv4Addr::new(127, 200, 0, 1)));
            std::thread::park_timeout(WATCH / 20);
        }
        let used = f64::from(u32::try_from(wire::processor_ticks(process) - ticks).expect("few")) / 100.0;
        let processors = used / start.elapsed().as_secs_f64();
        delays.sort_unstable();
        let (median, longest) = (delays[delays.len() / 2], delays[delays.len() - 1]);
        let memory = wire::peak_memory(process).expect("it runs");
        let figures =
            format!("{kinds}: {memory} KiB, {processors:.2} processors, {median:?} and at most {longest:?} to serve");
        assert!(memory <= MAX_MEMORY && processors <= 1.0 && median < MAX_DELAY, "{figures}");
        drop((tests, loaded, recorded, alive, cookies));
    });
    assert!(eventually(PATIENCE, || Holdings::of(process) == idle), "{:?}, idle {idle:?}", Holdings::of(process));
    let after = || server.resident_memory();
    assert!(eventually(PATIENCE, || after() <= idle_memory + (16 << 10)), "{} KiB, idle {idle_memory} KiB", after());
}
