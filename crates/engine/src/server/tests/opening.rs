//! A session that waits for its streams.

use std::net::{TcpListener, TcpStream, UdpSocket};

use linerate_model::parameters::{TestDirection, TestParameters};
use linerate_model::stream::StreamRole::{self, Receiver, Sender};
use linerate_sys::options;
use linerate_units::{BitRate, ByteCount, StreamCount, TypeOfService};
use linerate_wire::error::ErrorCode;

use crate::control::ControlConnection;
use crate::server::inbox::{AcceptedStream, ConnectionNumber};
use crate::server::opening::AcceptedStreams;

fn tcp_pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
    let client = TcpStream::connect(listener.local_addr().expect("bound")).expect("it listens");
    (listener.accept().expect("a client").0, client)
}

/// A stream as the acceptor hands it over.
fn accepted(number: u64, stream: TcpStream) -> AcceptedStream {
    AcceptedStream { number: ConnectionNumber(number), stream, cipher: None }
}

fn udp_pair() -> (UdpSocket, UdpSocket) {
    let [one, other] = [0, 0].map(|_| UdpSocket::bind("127.0.0.1:0").expect("loopback"));
    one.connect(other.local_addr().expect("bound")).expect("loopback");
    other.connect(one.local_addr().expect("bound")).expect("loopback");
    (one, other)
}

fn parallel(direction: TestDirection, count: u64) -> TestParameters {
    TestParameters { direction, parallel: StreamCount::new(count), ..TestParameters::default() }
}

#[test]
fn segments_wait_to_be_full_unless_the_client_asks_otherwise() {
    for no_delay in [false, true] {
        let parameters = TestParameters { no_delay, ..TestParameters::default() };
        let (server, _client) = tcp_pair();
        let same = server.try_clone().expect("a descriptor");
        // As it arrives: accepted as a control connection.
        let control = ControlConnection::new(server).expect("a good socket");
        assert!(same.nodelay().expect("an option"));
        AcceptedStreams::default().add_tcp(&parameters, accepted(0, control.into_stream())).expect("a good socket");
        assert_eq!(same.nodelay().expect("an option"), no_delay);
    }
}

#[test]
fn roles_and_numbers_follow_the_order_of_acceptance() {
    let cases: [(TestDirection, u64, &[StreamRole]); 5] = [
        (TestDirection::Forward, 1, &[Receiver]),
        (TestDirection::Reverse, 2, &[Sender, Sender]),
        (TestDirection::Bidirectional, 1, &[Receiver, Sender]),
        (TestDirection::Bidirectional, 2, &[Receiver, Receiver, Sender, Sender]),
        (TestDirection::Forward, 3, &[Receiver, Receiver, Receiver]),
    ];
    for (direction, count, roles) in cases {
        let parameters = parallel(direction, count);
        let (servers, clients): (Vec<_>, Vec<_>) = roles.iter().map(|_| tcp_pair()).unzip();
        let in_order: Vec<AcceptedStream> =
            servers.into_iter().enumerate().map(|(number, server)| accepted(number as u64, server)).collect();
        // Cookies arrive in another order, as after a lost packet.
        for turned in 0..roles.len() {
            let copies =
                in_order.iter().map(|one| accepted(one.number.0, one.stream.try_clone().expect("a descriptor")));
            let mut arriving: Vec<AcceptedStream> = copies.collect();
            arriving.rotate_left(turned);
            let mut opening = AcceptedStreams::default();
            for stream in arriving {
                assert!(!opening.is_complete(&parameters), "{direction:?}");
                opening.add_tcp(&parameters, stream).expect("a good socket");
            }
            assert!(opening.is_complete(&parameters), "{direction:?}");
            opening.assign_roles(&parameters).expect("good sockets");
            let streams = opening.into_streams();
            let found: Vec<StreamRole> = streams.iter().map(|stream| stream.description.role).collect();
            assert_eq!(found, roles, "{direction:?}, turned by {turned}");
            // iperf3 numbers its streams 1, 3, 4, …
            let numbers: Vec<u32> = streams.iter().map(|stream| stream.description.id.0).collect();
            assert_eq!(numbers, [1, 3, 4, 5][..roles.len()]);
            for (stream, client) in streams.iter().zip(&clients) {
                assert_eq!(stream.description.remote, client.local_addr().expect("bound"));
                assert_eq!(stream.description.local, client.peer_addr().expect("connected"));
            }
        }
    }
}

#[test]
fn the_requested_options_are_set_on_the_sockets() {
    let parameters = TestParameters {
        no_delay: true,
        type_of_service: TypeOfService::new(0x28),
        window: Some(ByteCount::from_kibibytes(32)),
        ..parallel(TestDirection::Reverse, 2)
    };
    let mut opening = AcceptedStreams::default();
    let (server, _client) = tcp_pair();
    opening.add_tcp(&parameters, accepted(0, server)).expect("a good socket");
    let (server, _other) = udp_pair();
    opening.add_udp(&parameters, server).expect("a good socket");
    for stream in opening.into_streams() {
        assert_eq!(options::type_of_service(&stream).ok(), Some(parameters.type_of_service));
        for size in [options::send_buffer(&stream), options::receive_buffer(&stream)] {
            assert!(size.is_ok_and(|size| size >= ByteCount::from_kibibytes(32)));
        }
    }
}

#[test]
fn a_window_beyond_the_limit_of_the_host_is_refused() {
    let parameters =
        TestParameters { window: Some(ByteCount::from_mebibytes(512)), ..parallel(TestDirection::Forward, 1) };
    let (server, _client) = tcp_pair();
    let error = AcceptedStreams::default().add_tcp(&parameters, accepted(0, server)).expect_err("too large");
    assert_eq!(error.code(), ErrorCode::SOCKET_BUFFER_TOO_SMALL);
    let (server, _other) = udp_pair();
    let error = AcceptedStreams::default().add_udp(&parameters, server).expect_err("too large");
    assert_eq!(error.code(), ErrorCode::SOCKET_BUFFER_TOO_SMALL);
}

#[test]
fn an_unknown_congestion_control_is_no_reason_to_refuse() {
    let parameters = TestParameters {
        congestion: Some("none-such".to_owned()),
        fq_rate: Some(BitRate::from_bits_per_second(1e6)),
        ..parallel(TestDirection::Reverse, 1)
    };
    let (server, _client) = tcp_pair();
    let before = options::congestion(&server).ok();
    let mut opening = AcceptedStreams::default();
    opening.add_tcp(&parameters, accepted(0, server)).expect("as iperf3");
    opening.assign_roles(&parameters).expect("a pacing rate");
    let streams = opening.into_streams();
    assert_eq!(options::congestion(&streams[0]).ok(), before, "the host's own is used");
}

#[test]
fn a_socket_without_a_peer_is_no_stream() {
    let unconnected = UdpSocket::bind("127.0.0.1:0").expect("loopback");
    let parameters = parallel(TestDirection::Forward, 1);
    let mut opening = AcceptedStreams::default();
    let error = opening.add_udp(&parameters, unconnected).expect_err("no peer");
    assert_eq!(error.code(), ErrorCode::INIT_STREAM);
    assert!(!opening.is_complete(&parameters) && opening.into_streams().is_empty());
}
