//! Limits of a server over all its sessions, whatever their kind.

use core::time::Duration;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use linerate_model::direction::Direction;
use linerate_model::parameters::{EndCondition, TestDirection, TestParameters, TestProtocol};
use linerate_model::stream::StreamRole;
use linerate_sys::clock;
use linerate_units::{BitRate, ByteCount, PacketCount, StreamCount, TypeOfService};
use linerate_wire::cookie::Cookie;
use linerate_wire::error::ErrorCode;
use linerate_wire::parameters::ServerLimits;
use linerate_wire::probe::{
    ConnectionNumber, ConnectionRef, EmptyContent, LoadOrder, PacketSpacing, ProbeMessageDecoder, ProbeResponse,
    RecordDetail, SendLimit, SendOrder, StreamRequest,
};

use crate::client::ClientOptions;
use crate::probe::{LoadOptions, ProbeSession, ProbeTarget};
use crate::server::ServerOptions;

use super::support::{ClientRun, TestServer, bytes_of, client_options, connect, target};

const ONE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const OTHER: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));

fn megabits(rate: f64) -> BitRate {
    BitRate::from_bits_per_second(rate * 1e6)
}

fn server(rate: BitRate) -> TestServer {
    let limits = ServerLimits { max_total_rate: Some(rate), ..ServerLimits::default() };
    let rate_averaging = Duration::from_millis(500);
    TestServer::start(ServerOptions { limits, rate_averaging, ..ServerOptions::default() })
}

fn client(server: SocketAddr, from: IpAddr, parameters: TestParameters) -> ClientRun {
    ClientRun::with(&ClientOptions { bind: Some(from), ..client_options(server, parameters) })
}

fn reverse(protocol: TestProtocol, parallel: u64) -> TestParameters {
    let block_size = if protocol == TestProtocol::Udp { ByteCount::new(1400) } else { ByteCount::from_kibibytes(16) };
    TestParameters {
        protocol,
        block_size,
        parallel: StreamCount::new(parallel),
        direction: TestDirection::Reverse,
        end: EndCondition::Time(Duration::from_secs(2)),
        ..TestParameters::default()
    }
}

/// Bytes that the server sent in a test.
fn sent(run: &ClientRun) -> f64 {
    let bytes = bytes_of(run.report(), StreamRole::Receiver, false);
    ByteCount::new(bytes).as_f64()
}

#[test]
fn tests_of_several_clients_in_which_the_server_sends_share_its_rate() {
    let most = megabits(80.0);
    for protocol in [TestProtocol::Tcp, TestProtocol::Udp] {
        let server = server(most);
        let start = clock::monotonic_now();
        let runs = std::thread::scope(|scope| {
            // One of the clients has eight streams.
            let clients = [(ONE, 1), (OTHER, 8)].map(|(from, parallel)| {
                let address = server.address;
                scope.spawn(move || client(address, from, reverse(protocol, parallel)).successful())
            });
            clients.map(|client| client.join().expect("no panic"))
        });
        let took = clock::monotonic_now().since(start);
        let [one, other] = [sent(&runs[0]), sent(&runs[1])];
        let allowed = (most * (took + Duration::from_millis(200))).as_f64();
        assert!(one + other <= allowed, "{protocol:?}: {one} + {other} of {allowed}");
        // Each has its share whatever its number of streams; a busy machine takes some of both.
        assert!(one >= 0.2 * allowed / 2.0 && other >= 0.2 * allowed / 2.0, "{protocol:?}: {one} and {other}");
        assert!(one.max(other) <= 0.85 * (one + other), "{protocol:?}: {one} and {other}");
    }
}

#[test]
fn clients_that_exceed_the_rate_only_together_are_ended() {
    let server = server(megabits(20.0));
    let server_address = server.address;
    let forward = |seconds| TestParameters {
        rate: Some(megabits(15.0)),
        end: EndCondition::Time(Duration::from_secs(seconds)),
        ..TestParameters::default()
    };
    client(server.address, ONE, forward(1)).successful();
    let codes = std::thread::scope(|scope| {
        let clients = [ONE, OTHER].map(|from| scope.spawn(move || client(server_address, from, forward(4)).code()));
        clients.map(|client| client.join().expect("no panic"))
    });
    assert!(codes.contains(&Some(ErrorCode::TOTAL_RATE)), "{codes:?}");
}

#[test]
fn loads_streams_and_tests_share_the_rate_of_the_server() {
    let most = megabits(60.0);
    let server = server(most);
    let other = ProbeTarget { bind: Some(OTHER), ..target(server.address) };
    let session = ProbeSession::open(&other, None).expect("a probe service");
    session.open_datagrams().expect("nothing is lost on loopback");
    let load = session.open_load(&LoadOptions::new(Direction::Down)).expect("memory");
    let stream = session.new_stream();
    let order = SendOrder {
        stream,
        size: ByteCount::new(1000),
        rate: most,
        spacing: PacketSpacing::Periodic,
        limit: SendLimit { count: None, duration: Some(Duration::from_secs(60)) },
        type_of_service: TypeOfService::default(),
        dont_fragment: false,
    };
    let start = clock::monotonic_now();
    load.start().expect("alive");
    session.far_send(order).expect("a free stream");
    let test = client(server.address, ONE, reverse(TestProtocol::Tcp, 2)).successful();
    let streamed = session.far_stop_sending(stream).expect("alive").bytes;
    let loaded = load.stop().far.expect("alive").bytes;
    let took = clock::monotonic_now().since(start);
    let probes = streamed.as_f64() + loaded.as_f64();
    let allowed = (most * (took + Duration::from_millis(200))).as_f64();
    assert!(probes + sent(&test) <= allowed, "{probes} + {} of {allowed}", sent(&test));
    // A busy machine takes some of both.
    let fair = (most * Duration::from_secs(2)).as_f64() / 2.0;
    assert!(sent(&test) >= 0.1 * fair && probes >= 0.1 * fair, "{} and {probes} of {fair}", sent(&test));
    assert!(sent(&test).max(probes) <= 0.85 * (sent(&test) + probes), "{} and {probes}", sent(&test));
}

#[test]
fn a_probe_session_that_sends_more_than_the_rate_is_ended() {
    let server = server(megabits(4.0));
    let session = ProbeSession::open(&target(server.address), None).expect("a probe service");
    session.open_datagrams().expect("nothing is lost on loopback");
    let order = SendOrder {
        stream: session.new_stream(),
        size: ByteCount::new(1000),
        rate: megabits(40.0),
        spacing: PacketSpacing::Periodic,
        limit: SendLimit { count: None, duration: Some(Duration::from_secs(60)) },
        type_of_service: TypeOfService::default(),
        dont_fragment: false,
    };
    let _sending = session.send(order).expect("a free stream");
    assert_eq!(server.failure().code(), ErrorCode::TOTAL_RATE);
}

#[test]
fn records_are_sent_no_faster_than_the_rate_of_the_server() {
    let most = megabits(2.0);
    let server = server(most);
    let session = ProbeSession::open(&target(server.address), None).expect("a probe service");
    session.open_datagrams().expect("nothing is lost on loopback");
    let order = SendOrder {
        stream: session.new_stream(),
        size: SendOrder::MIN_PACKET_SIZE,
        // A quarter of the limit: a sender that catches up after a pause of a second stays below it.
        rate: megabits(0.5),
        spacing: PacketSpacing::Periodic,
        limit: SendLimit { count: Some(PacketCount::new(12_000)), duration: None },
        type_of_service: TypeOfService::default(),
        dont_fragment: false,
    };
    session.far_receive(order.stream, RecordDetail::Arrivals).expect("a free stream");
    let _ = session.send(order).expect("an open channel").wait();
    let start = clock::monotonic_now();
    let records = session.far_collect(order.stream).expect("records").packets.len();
    let took = clock::monotonic_now().since(start);
    assert!(records > 10_000, "{records} records");
    // Fourteen bytes each at least; a tenth of a second of the rate may come at once.
    let least = ByteCount::from_usize(records * 14) / most;
    let least = least.expect("a rate").saturating_sub(Duration::from_millis(150));
    assert!(took >= least, "{took:?} for {records} records");
}

#[test]
fn limits_hold_while_a_client_reads_none_of_its_answers() {
    let limits = ServerLimits { max_duration: Some(Duration::from_secs(1)), ..ServerLimits::default() };
    let server = TestServer::start(ServerOptions { limits, ..ServerOptions::default() });
    let mut control = connect(server.address);
    control.write_all(Cookie::probes([9; 36]).as_bytes()).expect("buffer space");
    let mut decoder = ProbeMessageDecoder::of_answers();
    let mut answer = |control: &mut std::net::TcpStream| loop {
        let mut byte = [0];
        control.read_exact(&mut byte).expect("an answer");
        if let Some(document) = decoder.feed(&mut &byte[..]).expect("framed") {
            return ProbeResponse::decode(&document).expect("readable").expect("known");
        }
    };
    assert!(matches!(answer(&mut control), ProbeResponse::Hello(_)));
    control.write_all(&StreamRequest::Open(EmptyContent {}).encode()).expect("buffer space");
    let ProbeResponse::Opened(opened) = answer(&mut control) else { panic!("not opened") };
    let connection = ConnectionNumber(1);
    let order = LoadOrder {
        connection,
        direction: Direction::Down,
        congestion_control: None,
        type_of_service: TypeOfService::default(),
        sampling: Duration::from_millis(10),
    };
    control.write_all(&StreamRequest::Load(order).encode()).expect("buffer space");
    assert!(matches!(answer(&mut control), ProbeResponse::LoadExpected(_)));
    let mut load = connect(server.address);
    load.write_all(Cookie::load(opened.token).as_bytes()).expect("buffer space");
    assert!(matches!(answer(&mut control), ProbeResponse::LoadReady(_)));
    control.write_all(&StreamRequest::LoadStart(ConnectionRef { connection }).encode()).expect("buffer space");
    let start = clock::monotonic_now();
    // Answers are larger than their requests: the server's buffer is full long before the client's.
    let requests = StreamRequest::Facts(EmptyContent {}).encode().repeat(1000);
    control.set_write_timeout(Some(Duration::from_millis(100))).expect("an option");
    let mut flood = 0;
    let blocked = loop {
        match control.write(&requests) {
            Ok(count) => flood += count,
            Err(error) => break error,
        }
        assert!(flood < 1 << 30, "the server reads on");
    };
    assert!(matches!(blocked.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{blocked}");
    let mut sink = vec![0; 256 << 10];
    while load.read(&mut sink).is_ok_and(|count| count > 0) {}
    let took = clock::monotonic_now().since(start);
    // A message would wait for ten seconds at least.
    assert!(took >= Duration::from_millis(900) && took < Duration::from_secs(8), "{took:?}");
}
