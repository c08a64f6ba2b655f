//! Client and server over loopback: figures, handshakes, and what strangers get.

use core::num::NonZeroUsize;
use core::time::Duration;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex};

use linerate_engine::probe::{ProbeSession, ProbeTarget};
use linerate_engine::rr::{
    self, QuicTransactionFailure, QuicTransactionTarget, QuicTransactions as _, RrOptions, RrOutcome,
};
use linerate_engine::server::{Server, ServerObserver, ServerOptions, SessionObserver};
use linerate_model::direction::Direction;
use linerate_model::event::TestEvent;
use linerate_model::quic::{QuicCongestionControl, QuicHandshakeKind, QuicRun};
use linerate_model::report::ServerOutput;
use linerate_model::rr::RrMode;
use linerate_sys::clock;
use linerate_sys::net::UdpOptions;
use linerate_units::{BitRate, ByteCount, Port};
use linerate_wire::key_pin::KeyPin;
use linerate_wire::parameters::ServerLimits;
use linerate_wire::probe::{MAX_OPEN_REQUESTS, RrOrder};
use linerate_wire::quic::{ConnectionTag, QuicOrder, QuicReady, QuicTransferOrder};

use linerate_quic::{QuicClient, QuicError, QuicExchanges, QuicServer, QuicServerOptions, QuicTarget};

struct Silent;

impl ServerObserver for Silent {
    fn idle(&self, _next_session: u64) {}
    fn session(&self, _number: u64) -> Box<dyn SessionObserver> {
        Box::new(Self)
    }
    fn problem(&self, text: &str) {
        panic!("{text}");
    }
}

impl SessionObserver for Silent {
    fn event(&mut self, _event: &TestEvent) {}
    fn output(&mut self) -> Option<ServerOutput> {
        None
    }
    fn failed(&mut self, _error: &linerate_engine::Error) {}
}

/// Session of a server of this process, on loopback.
struct Loopback {
    session: ProbeSession,
    address: SocketAddr,
}

impl Loopback {
    fn start(limits: ServerLimits) -> Self {
        let address = Some(Ipv4Addr::LOCALHOST.into());
        let udp = UdpOptions { address, ..UdpOptions::default() };
        let quic = QuicServer::new(QuicServerOptions { udp }).expect("a service");
        let server = Server::bind(ServerOptions {
            address,
            port: None,
            max_sessions: NonZeroUsize::new(4).expect("not zero"),
            limits,
            quic: Some(Arc::new(quic)),
            ..ServerOptions::default()
        });
        let server = server.expect("a free port");
        let address = server.address();
        // The server ends with the process of the test.
        std::thread::spawn(move || server.run(None, &Silent));
        let target = ProbeTarget::new("127.0.0.1", Port::new(address.port()).expect("bound"));
        Self { session: ProbeSession::open(&target, None).expect("a session"), address }
    }

    fn ready(&self) -> QuicReady {
        self.session.open_quic(QuicOrder::default()).expect("QUIC")
    }

    fn client(&self, ready: QuicReady) -> QuicClient {
        let target = QuicTarget {
            address: self.address,
            bind: None,
            device: None,
            ready,
            congestion_control: QuicCongestionControl::Cubic,
        };
        QuicClient::new(target, None).expect("a socket")
    }
}

const ORDER: QuicTransferOrder = QuicTransferOrder {
    streams: 2,
    omit: Duration::from_millis(100),
    time: Duration::from_millis(500),
    sample: Duration::from_millis(100),
};

fn check(run: &QuicRun, direction: Direction) {
    let rate = run.rate().expect("a rate");
    assert!(rate > BitRate::from_bits_per_second(20e6), "{rate:?}");
    let (sender, receiver) = (run.sender(), run.receiver());
    assert_eq!((run.direction, run.streams), (direction, 2));
    assert!(receiver.duration >= ORDER.time && receiver.duration < ORDER.time * 4, "{receiver:?}");
    // A busy host ends a sample late.
    assert!((2..=5).contains(&receiver.sample_bytes.len()), "{receiver:?}");
    assert!(receiver.sample_bytes.iter().sum::<u64>() <= receiver.bytes, "{receiver:?}");
    assert_eq!((receiver.rtt, receiver.lost_packets, receiver.congestion_control), (None, None, None));
    assert_eq!(sender.congestion_control, Some(QuicCongestionControl::Cubic));
    assert!(sender.rtt.is_some_and(|rtt| rtt.median > Duration::ZERO), "{sender:?}");
    assert!(sender.congestion_window_bytes > Some(10_000) && sender.sent_packets > 0, "{sender:?}");
    assert!(sender.bytes >= receiver.bytes / 2 && sender.thread_cpu > Duration::ZERO, "{sender:?}");
    // The datagrams of loopback, and not the least of any path.
    assert!(sender.datagram_bytes > 16_384 && receiver.datagram_bytes > 16_384, "{sender:?}");
    // One of them fills a system call.
    assert!(sender.send_calls >= sender.sent_datagrams / 2, "{sender:?}");
    assert!(receiver.ecn.is_some_and(|ecn| ecn.ect0 > 0 && ecn.ce == 0), "{receiver:?}");
    assert!(receiver.receive_buffer_bytes > Some(0) && receiver.buffer_drops.is_some(), "{receiver:?}");
}

#[test]
fn both_directions_are_measured_with_the_figures_of_both_ends() {
    let loopback = Loopback::start(ServerLimits::default());
    let client = loopback.client(loopback.ready());
    for direction in Direction::BOTH {
        let mut samples = 0;
        let run = client.transfer(direction, ORDER, &mut |_| samples += 1).expect("a transfer");
        check(&run, direction);
        // A busy host ends a sample late, as above.
        assert!(samples >= 2, "{samples}");
    }
}

#[test]
fn handshakes_are_full_resumed_and_early() {
    let loopback = Loopback::start(ServerLimits::default());
    let client = loopback.client(loopback.ready());
    let kinds =
        [QuicHandshakeKind::Full, QuicHandshakeKind::Resumed, QuicHandshakeKind::Resumed, QuicHandshakeKind::ZeroRtt];
    let found = kinds.map(|kind| client.handshake(kind).expect("a handshake"));
    // The first one of its kind has no ticket yet.
    let expected =
        [QuicHandshakeKind::Full, QuicHandshakeKind::Full, QuicHandshakeKind::Resumed, QuicHandshakeKind::ZeroRtt];
    assert_eq!(found.map(|handshake| handshake.kind), expected);
    assert!(found.iter().all(|handshake| handshake.answer > Duration::ZERO));
}

fn transactions(address: SocketAddr, flows: u32, sizes: [u64; 2]) -> RrOutcome {
    let target = ProbeTarget::new("127.0.0.1", Port::new(address.port()).expect("bound"));
    let [request, response] = sizes.map(ByteCount::new);
    let options = RrOptions {
        request,
        response,
        flows,
        time: Duration::from_millis(500),
        quic: Some(Arc::new(QuicExchanges)),
        ..RrOptions::new(target, RrMode::Quic)
    };
    let outcome = rr::run(&options, None, &mut |_| {});
    assert_eq!(outcome.error, None);
    outcome
}

#[test]
fn transactions_have_a_full_handshake_each() {
    let loopback = Loopback::start(ServerLimits::default());
    for (flows, sizes) in [(1, [1, 1]), (3, [100_000, 300_000]), (80, [1, 1])] {
        let document = transactions(loopback.address, flows, sizes).document;
        // On a busy host, one takes more than a hundred milliseconds.
        assert!(document.transactions > 2 && document.lost == Some(0), "{document:#?}");
        let handshake = document.handshake.expect("a handshake");
        assert_eq!(handshake.text(), "TLS 1.3, raw public key (Ed25519)");
        for processor in [document.near_processor_ns, document.far_processor_ns] {
            // A signature and its verification alone take more than 20 µs at both ends together.
            assert!(processor.is_some_and(|time| time > 1e4), "{processor:?}");
        }
        assert!(document.unknown.iter().any(|unknown| unknown.key == "handshake.cipher_suite"));
    }
}

/// A flow whose packets get lost counts the transaction, and goes on.
#[test]
fn a_transaction_without_an_answer_is_counted() {
    let silent = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let loopback = Loopback::start(ServerLimits::default());
    let port = Port::new(silent.local_addr().expect("bound").port()).expect("bound");
    let ready = QuicReady { port, ..loopback.ready() };
    let one = ByteCount::new(1);
    let target = QuicTransactionTarget {
        address: loopback.address,
        bind: None,
        device: None,
        ready,
        numbers: Arc::default(),
        request: one,
        response: one,
    };
    let mut flow = QuicExchanges.open(target).expect("a socket");
    for _ in 0..2 {
        let failed = flow.transact(Duration::from_millis(100), &|| false).expect_err("no answer");
        assert!(matches!(failed, QuicTransactionFailure::Failed(reason) if reason.contains("--timeout")));
        assert_eq!(flow.transact(Duration::from_secs(9), &|| true), Err(QuicTransactionFailure::Stopped));
    }
}

#[test]
fn requests_on_a_connection_that_stays_open_have_streams_of_their_own() {
    let loopback = Loopback::start(ServerLimits::default());
    let size = ByteCount::new(64);
    let order = RrOrder { mode: RrMode::Quic, request: size, response: size, flows: 1, keeps_open: true };
    let ready = loopback.session.far_rr(order).expect("QUIC").quic.expect("a port");
    let target = QuicTransactionTarget {
        address: loopback.address,
        bind: None,
        device: None,
        ready,
        numbers: Arc::new(AtomicU32::new(1)),
        request: size,
        response: size,
    };
    let limit = Duration::from_secs(10);
    let opened = QuicExchanges.open_connection(target, limit, &|| false);
    let mut connection = opened.unwrap_or_else(|failure| panic!("{failure:?}"));
    // More than a server has streams for at once: the others wait for their stream.
    let all = u64::from(MAX_OPEN_REQUESTS) + 100;
    (0..all).for_each(|number| connection.send(number).expect("it is open"));
    let (mut numbers, end) = (Vec::new(), clock::monotonic_now() + limit);
    while (numbers.len() as u64) < all && clock::monotonic_now() < end {
        let soon = clock::monotonic_now() + Duration::from_millis(10);
        connection.wait_until(soon, &mut |number, _| numbers.push(number)).expect("it is open");
    }
    numbers.sort_unstable();
    assert!(numbers.iter().copied().eq(0..all), "{numbers:?}");
    // The first request opened the connection.
    assert_eq!(loopback.session.far_rr_stop().expect("a report").transactions, all + 1);
    connection.send(all).expect("its failure is a result");
    assert!(connection.wait_until(clock::monotonic_now() + limit, &mut |_, _| {}).is_err());
}

#[test]
fn a_server_with_another_key_is_refused() {
    let loopback = Loopback::start(ServerLimits::default());
    let ready = loopback.ready();
    let client = loopback.client(QuicReady { key: KeyPin([1; 32]), ..ready });
    assert_eq!(client.handshake(QuicHandshakeKind::Full), Err(QuicError::WrongKey(ready.port)));
}

#[test]
fn another_token_is_refused() {
    let loopback = Loopback::start(ServerLimits::default());
    let other = loopback.ready();
    let ready = loopback.ready();
    let client = loopback.client(QuicReady { token: other.token, ..ready });
    let error = client.handshake(QuicHandshakeKind::Full).expect_err("refused");
    assert_eq!(error, QuicError::Refused("the token is not this session's".to_owned()));
}

/// First packets of a client, as a path between would record them.
fn recorded(ready: QuicReady) -> Vec<Vec<u8>> {
    let listener = UdpSocket::bind("127.0.0.1:0").expect("loopback");
    listener.set_read_timeout(Some(Duration::from_secs(5))).expect("a socket");
    let address = listener.local_addr().expect("bound");
    let port = Port::new(address.port()).expect("bound");
    let target = QuicTarget {
        address,
        bind: None,
        device: None,
        ready: QuicReady { port, ..ready },
        congestion_control: QuicCongestionControl::Cubic,
    };
    let client =
        std::thread::spawn(move || QuicClient::new(target, None).expect("a socket").handshake(QuicHandshakeKind::Full));
    let mut buffer = [0; 2048];
    let mut packets = Vec::new();
    for _ in 0..2 {
        let length = listener.recv(&mut buffer).expect("a packet");
        packets.push(buffer[..length].to_vec());
    }
    drop(client);
    packets
}

/// Bytes that a server sends back to the address of `socket` within the time.
fn answered(socket: &UdpSocket, time: Duration) -> usize {
    let mut buffer = [0; 2048];
    let mut sum = 0;
    socket.set_read_timeout(Some(time)).expect("a socket");
    while let Ok(length) = socket.recv(&mut buffer) {
        sum += length;
    }
    sum
}

#[test]
fn strangers_and_repetitions_are_not_answered_and_no_answer_is_amplified() {
    let loopback = Loopback::start(ServerLimits::default());
    let ready = loopback.ready();
    let server = SocketAddr::from((Ipv4Addr::LOCALHOST, ready.port.get()));
    let first = recorded(ready).swap_remove(0);
    let other = recorded(QuicReady { tag: ConnectionTag::random([9; 16]), ..ready }).swap_remove(0);
    let (strange, socket) = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").expect("loopback")).into();
    let wait = Duration::from_millis(300);
    let send = |bytes: &[u8]| strange.send_to(bytes, server).expect("loopback");
    // Packets with a tag that the server did not give out, cut, and changed.
    send(&other);
    send(&first[..first.len() / 2]);
    let mut changed = first.clone();
    changed[700] ^= 1;
    send(&changed);
    assert_eq!(answered(&strange, wait), 0);
    // The recorded packet is valid once, and its answers have three times its size at most (RFC 9000 section 8.1).
    socket.send_to(&first, server).expect("loopback");
    let sum = answered(&socket, wait * 10);
    assert!(sum > 0 && sum <= 3 * first.len(), "{sum} for {}", first.len());
    let another = UdpSocket::bind("127.0.0.1:0").expect("loopback");
    another.send_to(&first, server).expect("loopback");
    assert_eq!(answered(&another, wait), 0);
    // The server goes on.
    let client = loopback.client(loopback.ready());
    assert!(client.handshake(QuicHandshakeKind::Full).is_ok());
}

/// Relay that exchanges neighbouring datagrams of both directions, and sends each twice.
fn reordering_relay(server: SocketAddr) -> SocketAddr {
    let (inner, outer) = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").expect("loopback")).into();
    let address = inner.local_addr().expect("bound");
    let client = Arc::new(Mutex::new(None));
    let known = Arc::clone(&client);
    let (from_server, to_client) = (outer.try_clone().expect("a socket"), inner.try_clone().expect("a socket"));
    std::thread::spawn(move || {
        exchange(&inner, |bytes, sender| {
            *known.lock().expect("the lock") = Some(sender);
            outer.send_to(bytes, server).is_ok()
        });
    });
    std::thread::spawn(move || {
        exchange(&from_server, |bytes, _| {
            let receiver = client.lock().expect("the lock").expect("a client");
            to_client.send_to(bytes, receiver).is_ok()
        });
    });
    address
}

/// Forwards pairs of datagrams in the other order, each datagram twice; one alone goes on after 20 ms. Ends after a minute.
fn exchange(socket: &UdpSocket, mut forward: impl FnMut(&[u8], SocketAddr) -> bool) {
    socket.set_read_timeout(Some(Duration::from_millis(20))).expect("a socket");
    let mut held: Option<(Vec<u8>, SocketAddr)> = None;
    let mut buffer = vec![0; 1 << 16];
    for _ in 0..3000 {
        let arrived = socket.recv_from(&mut buffer).ok().map(|(length, sender)| (buffer[..length].to_vec(), sender));
        let next = match (arrived, held.take()) {
            (Some(new), None) => {
                held = Some(new);
                continue;
            }
            (new, old) => new.into_iter().chain(old),
        };
        for (bytes, sender) in next {
            let _ = forward(&bytes, sender) && forward(&bytes, sender);
        }
    }
}

#[test]
fn reordered_and_repeated_packets_of_a_handshake_are_accepted_once() {
    let loopback = Loopback::start(ServerLimits::default());
    let ready = loopback.ready();
    let relay = reordering_relay(SocketAddr::from((Ipv4Addr::LOCALHOST, ready.port.get())));
    let port = Port::new(relay.port()).expect("bound");
    let client = loopback.client(QuicReady { port, ..ready });
    for kind in [QuicHandshakeKind::Full, QuicHandshakeKind::Resumed, QuicHandshakeKind::Resumed] {
        let handshake = client.handshake(kind).expect("a handshake");
        assert!(handshake.answer > Duration::ZERO);
    }
}

#[test]
fn a_handshake_that_migrates_is_answered_at_its_first_address_alone() {
    let loopback = Loopback::start(ServerLimits::default());
    let ready = loopback.ready();
    let server = SocketAddr::from((Ipv4Addr::LOCALHOST, ready.port.get()));
    let packets = recorded(ready);
    let (first, second) = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").expect("loopback")).into();
    first.send_to(&packets[0], server).expect("loopback");
    assert!(answered(&first, Duration::from_millis(300)) > 0);
    second.send_to(&packets[1], server).expect("loopback");
    assert_eq!(answered(&second, Duration::from_millis(300)), 0);
}

#[test]
fn the_rate_of_the_server_limits_both_directions() {
    let limit = BitRate::from_bits_per_second(20e6);
    let loopback = Loopback::start(ServerLimits { max_total_rate: Some(limit), ..ServerLimits::default() });
    let client = loopback.client(loopback.ready());
    for direction in Direction::BOTH {
        let order = QuicTransferOrder { omit: Duration::from_millis(700), ..ORDER };
        let run = client.transfer(direction, order, &mut |_| {}).expect("a transfer");
        let rate = run.rate().expect("a rate");
        assert!(rate < limit * 1.5 && rate > limit * 0.3, "{direction:?}: {rate:?}");
    }
}

#[test]
fn a_port_that_does_not_answer_is_named() {
    let silent = UdpSocket::bind("127.0.0.1:0").expect("loopback");
    let port = Port::new(silent.local_addr().expect("bound").port()).expect("bound");
    let loopback = Loopback::start(ServerLimits::default());
    let client = loopback.client(QuicReady { port, ..loopback.ready() });
    let error = client.handshake(QuicHandshakeKind::Full).expect_err("no answer");
    assert!(error.is_unanswered() && error.to_string().contains(&format!("UDP port {port}")), "{error}");
}
