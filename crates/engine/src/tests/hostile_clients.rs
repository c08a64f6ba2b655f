//! A server against clients that violate the protocol, stall, or vanish.

use core::time::Duration;
use std::io::{Read, Write};

use linerate_model::event::TestEvent;
use linerate_model::parameters::{EndCondition, TestDirection, TestParameters, TestProtocol};
use linerate_model::report::TestTermination;
use linerate_model::stream::StreamRole;
use linerate_units::{ByteCount, StreamCount};
use linerate_wire::error::ErrorCode;
use linerate_wire::state::ControlState;
use linerate_wire::udp;

use crate::server::ServerOptions;

use super::support::{
    ClientRun, RawClient, ServerNews, TestServer, bytes_of, connect, exact, results_of, stock_cookie,
};

fn serve() -> TestServer {
    TestServer::start(ServerOptions::default())
}

/// The server must still serve others.
fn assert_serves(server: &TestServer) {
    ClientRun::against(server.address, exact(1000)).successful();
}

/// Ends a running test with these bytes per stream; returns the server's results document.
fn end(client: &mut RawClient, bytes: &[u64]) -> String {
    client.send_state(ControlState::TestEnd);
    client.expect_state(ControlState::ExchangeResults);
    client.send_document(&results_of(bytes));
    let results = client.document();
    client.expect_state(ControlState::DisplayResults);
    client.send_state(ControlState::IperfDone);
    String::from_utf8(results).expect("text")
}

#[test]
fn a_stock_client_completes_a_test() {
    let server = serve();
    let (mut client, mut streams) = RawClient::running(server.address, &exact(5000));
    streams[0].write_all(&[7; 5000]).expect("buffer space");
    let results = end(&mut client, &[5000]);
    assert!(results.contains("\"bytes\":5000"), "{results}");
    assert_eq!(client.remainder(), b"");
    let report = server.report();
    assert_eq!(report.termination, TestTermination::Complete);
    assert_eq!(bytes_of(&report, StreamRole::Receiver, true), 5000);
    assert_eq!(bytes_of(&report, StreamRole::Receiver, false), 5000);
    assert!(report.far.is_none(), "a stock client reports no intervals");
}

#[test]
fn the_cookie_may_arrive_byte_by_byte() {
    let server = serve();
    let cookie = stock_cookie();
    let mut stream = connect(server.address);
    for byte in cookie.as_bytes() {
        stream.write_all(&[*byte]).expect("buffer space");
    }
    let mut answer = [0];
    stream.read_exact(&mut answer).expect("an answer");
    assert_eq!(answer, [ControlState::ParamExchange.byte()]);
}

#[test]
fn a_connection_without_a_whole_cookie_is_no_session() {
    let server = serve();
    assert_eq!(server.idle(), 1);
    for length in [0, 1, 36] {
        let mut stream = connect(server.address);
        stream.write_all(&vec![b'x'; length]).expect("buffer space");
    }
    let _ = RawClient::connect(server.address);
    assert_eq!(server.session(), 1, "only the last connection counts");
}

#[test]
fn parameters_may_arrive_in_pieces() {
    let server = serve();
    let mut client = RawClient::connect(server.address);
    client.expect_state(ControlState::ParamExchange);
    let document = super::support::framed(&linerate_wire::parameters::encode(
        &exact(10),
        &linerate_wire::parameters::ParametersExtra::default(),
    ));
    for piece in document.chunks(3) {
        client.stream.write_all(piece).expect("buffer space");
    }
    client.expect_state(ControlState::CreateStreams);
}

#[test]
fn malformed_parameters_are_answered_with_an_error_number() {
    let server = serve();
    for (document, code) in [
        ("", ErrorCode::RECEIVE_PARAMETERS),
        ("nonsense", ErrorCode::RECEIVE_PARAMETERS),
        ("[]", ErrorCode::RECEIVE_PARAMETERS),
        ("{\"tcp\":\"yes\"}", ErrorCode::RECEIVE_PARAMETERS),
        ("{\"tcp\":true,\"parallel\":1,\"parallel\":2}", ErrorCode::RECEIVE_PARAMETERS),
        ("{\"tcp\":true,\"parallel\":129,\"time\":1}", ErrorCode::STREAM_COUNT),
        ("{\"tcp\":true,\"parallel\":0,\"time\":1}", ErrorCode::STREAM_COUNT),
        ("{\"tcp\":true,\"parallel\":1,\"time\":86401}", ErrorCode::DURATION),
        ("{\"tcp\":true,\"parallel\":1,\"time\":1,\"len\":1048577}", ErrorCode::BLOCK_SIZE),
        ("{\"udp\":true,\"parallel\":1,\"time\":1,\"len\":15}", ErrorCode::UDP_BLOCK_SIZE),
        ("{\"tcp\":true,\"parallel\":1,\"time\":1,\"omit\":601}", ErrorCode::OMIT),
    ] {
        let mut client = RawClient::connect(server.address);
        client.expect_state(ControlState::ParamExchange);
        client.send_document(document);
        assert_eq!(client.expect_error(), code, "{document}");
        assert_eq!(client.remainder(), b"", "{document}");
        assert_eq!(server.failure().code(), code, "{document}");
    }
    assert_serves(&server);
}

#[test]
fn a_document_that_claims_to_be_huge_is_refused_at_once() {
    let server = serve();
    for length in [u32::MAX, 1 << 30] {
        let mut client = RawClient::connect(server.address);
        client.expect_state(ControlState::ParamExchange);
        client.stream.write_all(&length.to_be_bytes()).expect("buffer space");
        assert_eq!(client.expect_error(), ErrorCode::RECEIVE_PARAMETERS, "{length}");
    }
    assert_serves(&server);
}

#[test]
fn an_unexpected_state_is_answered_with_an_error() {
    let server = serve();
    for state in [ControlState::DisplayResults, ControlState::ExchangeResults, ControlState::AccessDenied] {
        let (mut client, _streams) = RawClient::running(server.address, &exact(1_000_000));
        client.send_state(state);
        assert_eq!(client.expect_error(), ErrorCode::UNKNOWN_MESSAGE, "{state:?}");
    }
    let (mut client, _streams) = RawClient::running(server.address, &exact(1_000_000));
    client.stream.write_all(&[0x42]).expect("buffer space");
    assert_eq!(client.expect_error(), ErrorCode::UNKNOWN_MESSAGE);
    assert_serves(&server);
}

/// Point of the protocol up to which a client goes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Progress {
    Cookie,
    Parameters,
    Running,
    Results,
}

fn client_at(server: &TestServer, progress: Progress) -> (RawClient, Vec<std::net::TcpStream>) {
    let parameters = exact(1_000_000);
    match progress {
        Progress::Cookie => {
            let mut client = RawClient::connect(server.address);
            client.expect_state(ControlState::ParamExchange);
            (client, Vec::new())
        }
        Progress::Parameters => (RawClient::accepted(server.address, &parameters), Vec::new()),
        Progress::Running => RawClient::running(server.address, &parameters),
        Progress::Results => {
            let (mut client, streams) = RawClient::running(server.address, &parameters);
            client.send_state(ControlState::TestEnd);
            client.expect_state(ControlState::ExchangeResults);
            (client, streams)
        }
    }
}

const PROGRESS: [Progress; 4] = [Progress::Cookie, Progress::Parameters, Progress::Running, Progress::Results];

#[test]
fn a_client_may_be_interrupted_at_any_point() {
    let server = serve();
    for progress in PROGRESS {
        let (mut client, _streams) = client_at(&server, progress);
        client.send_state(ControlState::ClientTerminate);
        assert_eq!(server.report().termination, TestTermination::PeerTerminated, "{progress:?}");
        assert_eq!(server.failure().code(), ErrorCode::CLIENT_TERMINATED, "{progress:?}");
        assert_eq!(client.remainder(), b"", "{progress:?}: nothing is answered");
    }
    assert_serves(&server);
}

#[test]
fn a_client_that_vanishes_ends_its_session_at_any_point() {
    let server = serve();
    for progress in PROGRESS {
        drop(client_at(&server, progress));
        let termination = server.report().termination;
        assert!(matches!(&termination, TestTermination::Failed { message } if !message.is_empty()), "{termination:?}");
        let code = server.failure().code();
        let expected = match progress {
            Progress::Cookie => ErrorCode::RECEIVE_PARAMETERS,
            Progress::Parameters | Progress::Running => ErrorCode::CONTROL_CLOSED,
            Progress::Results => ErrorCode::RECEIVE_RESULTS,
        };
        assert!(code == expected || code == ErrorCode::CONTROL_CLOSED, "{progress:?}: {code:?}");
        server.idle();
    }
    assert_serves(&server);
}

#[test]
fn malformed_results_end_the_session_with_their_error() {
    let server = serve();
    for document in ["", "{}", "[1]", "{\"streams\":[]", &results_of(&[1, 2])] {
        let (mut client, _streams) = client_at(&server, Progress::Results);
        client.send_document(document);
        let code = client.expect_error();
        assert!(code == ErrorCode::RECEIVE_RESULTS || code == ErrorCode::STREAM_ID, "{document}: {code:?}");
        assert_eq!(server.failure().code(), code);
    }
}

#[test]
fn surplus_streams_are_no_part_of_the_test() {
    let server = serve();
    let mut client = RawClient::accepted(server.address, &exact(1000));
    let mut stream = client.open_stream();
    client.expect_state(ControlState::TestStart);
    client.expect_state(ControlState::TestRunning);
    // The cookie is no longer expected, so this connection begins a session of its own.
    let mut surplus = client.open_stream();
    let mut answer = [0];
    surplus.read_exact(&mut answer).expect("an answer");
    assert_eq!(answer, [ControlState::ParamExchange.byte()]);
    stream.write_all(&[1; 1000]).expect("buffer space");
    end(&mut client, &[1000]);
    let report = server.find(|news| match news {
        ServerNews::Event(1, TestEvent::Finished(report)) => Some(report),
        _ => None,
    });
    assert_eq!((report.streams.len(), bytes_of(&report, StreamRole::Receiver, true)), (1, 1000));
}

#[test]
fn a_late_cookie_leaves_the_streams_their_order() {
    let server = serve();
    let parameters = TestParameters { direction: TestDirection::Bidirectional, ..TestParameters::default() };
    let mut client = RawClient::accepted(server.address, &parameters);
    let mut first = connect(server.address);
    let mut second = client.open_stream();
    // Connections are accepted in their order: once another client is answered, the second stream's cookie has been read.
    RawClient::connect(server.address).expect_state(ControlState::ParamExchange);
    first.write_all(client.cookie.as_bytes()).expect("buffer space");
    client.expect_state(ControlState::TestStart);
    client.expect_state(ControlState::TestRunning);
    second.read_exact(&mut [0]).expect("the server sends on the second connection");
    first.set_nonblocking(true).expect("an option");
    let unread = first.read(&mut [0]).expect_err("and not on the first");
    assert_eq!(unread.kind(), std::io::ErrorKind::WouldBlock);
}

#[test]
fn two_sessions_cannot_expect_streams_with_one_cookie() {
    let server = serve();
    let cookie = stock_cookie();
    let mut first = RawClient::connect_as(server.address, cookie);
    first.expect_state(ControlState::ParamExchange);
    let mut second = RawClient::connect_as(server.address, cookie);
    second.expect_state(ControlState::ParamExchange);
    first.send_parameters(&exact(1000));
    first.expect_state(ControlState::CreateStreams);
    second.send_parameters(&exact(1000));
    assert_eq!(second.expect_error(), ErrorCode::RECEIVE_COOKIE);
    // The first one is not affected.
    let mut stream = first.open_stream();
    first.expect_state(ControlState::TestStart);
    first.expect_state(ControlState::TestRunning);
    stream.write_all(&[1; 1000]).expect("buffer space");
    end(&mut first, &[1000]);
}

#[test]
fn a_receiving_client_gets_whole_blocks_of_the_pattern() {
    let server = serve();
    let parameters = TestParameters {
        direction: TestDirection::Reverse,
        repeating_payload: true,
        block_size: ByteCount::new(1000),
        ..exact(12_345)
    };
    let (mut client, mut streams) = RawClient::running(server.address, &parameters);
    let mut data = vec![0; 13_000];
    streams[0].read_exact(&mut data).expect("all bytes");
    // Each block of the pattern begins anew (iperf3 `fill_with_repeating_pattern`).
    let expected: Vec<u8> = (0..13_000).map(|index| b"0123456789"[index % 1000 % 10]).collect();
    assert_eq!(data, expected);
    streams[0].set_read_timeout(Some(Duration::from_millis(100))).expect("an option");
    assert!(!matches!(streams[0].read(&mut [0]), Ok(1..)), "no byte more");
    let results = end(&mut client, &[13_000]);
    assert!(results.contains("\"bytes\":13000"), "{results}");
}

#[test]
fn a_sender_without_a_pattern_sends_random_bytes() {
    let server = serve();
    let parameters = TestParameters { direction: TestDirection::Reverse, ..exact(65_536) };
    let (_client, mut streams) = RawClient::running(server.address, &parameters);
    let mut data = vec![0; 65_536];
    streams[0].read_exact(&mut data).expect("all bytes");
    let mut counts = [0_u32; 256];
    for byte in &data {
        counts[usize::from(*byte)] += 1;
    }
    // 256 of each are expected, with a standard deviation of 16: beyond ten of those, the bytes are not random.
    assert!(counts.iter().all(|count| (96..=416).contains(count)), "{counts:?}");
}

#[test]
fn unequal_streams_end_at_the_common_budget() {
    let server = serve();
    let parameters = TestParameters { parallel: StreamCount::new(2), ..exact(10_000) };
    let (mut client, mut streams) = RawClient::running(server.address, &parameters);
    streams[0].write_all(&[1; 9000]).expect("buffer space");
    streams[1].write_all(&[2; 1000]).expect("buffer space");
    end(&mut client, &[9000, 1000]);
    let report = server.report();
    let bytes: Vec<u64> = report.streams.iter().filter_map(|stream| Some(stream.received?.bytes.get())).collect();
    assert_eq!(bytes, [9000, 1000]);
}

#[test]
fn udp_requests_of_all_forms_open_a_stream() {
    let server = serve();
    for (request, reply) in [(udp::REQUEST, udp::REPLY), (udp::LEGACY_REQUEST, udp::LEGACY_REPLY)] {
        let parameters = TestParameters { protocol: TestProtocol::Udp, block_size: ByteCount::new(100), ..exact(1000) };
        let mut client = RawClient::accepted(server.address, &parameters);
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("loopback");
        socket.set_read_timeout(Some(super::support::PATIENCE)).expect("an option");
        socket.connect(server.address).expect("loopback");
        // No request: it is dropped.
        socket.send(b"1234567").expect("loopback");
        socket.send(&request).expect("loopback");
        let mut answer = [0; 16];
        let length = socket.recv(&mut answer).expect("an answer");
        assert_eq!(answer[..length], reply);
        client.expect_state(ControlState::TestStart);
        client.expect_state(ControlState::TestRunning);
        client.send_state(ControlState::ClientTerminate);
        assert_eq!(server.failure().code(), ErrorCode::CLIENT_TERMINATED);
    }
}

#[test]
fn datagrams_with_gaps_and_repetitions_are_counted() {
    let server = serve();
    let parameters = TestParameters { protocol: TestProtocol::Udp, block_size: ByteCount::new(100), ..exact(10_000) };
    let mut client = RawClient::accepted(server.address, &parameters);
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("loopback");
    socket.set_read_timeout(Some(super::support::PATIENCE)).expect("an option");
    socket.connect(server.address).expect("loopback");
    socket.send(&udp::REQUEST).expect("loopback");
    socket.recv(&mut [0; 16]).expect("an answer");
    client.expect_state(ControlState::TestStart);
    client.expect_state(ControlState::TestRunning);
    // 4 is late, 6 and 7 are lost, 8 comes twice; the datagram without a header does not count.
    for number in [1, 2, 3, 5, 4, 8, 8, 9] {
        let mut datagram = [0; 100];
        let header = udp::DatagramHeader { sent_at: linerate_sys::clock::monotonic_now(), number };
        header.encode(udp::CounterWidth::Bits32, &mut datagram).expect("it fits");
        socket.send(&datagram).expect("loopback");
    }
    socket.send(&[0; 3]).expect("loopback");
    client.send_state(ControlState::TestEnd);
    client.expect_state(ControlState::ExchangeResults);
    client.send_document(&results_of(&[800]));
    let results = String::from_utf8(client.document()).expect("text");
    assert!(results.contains("\"packets\":9"), "{results}");
    assert!(results.contains("\"errors\":2"), "{results}");
    let report = server.report();
    let received = report.streams[0].udp.as_ref().and_then(|udp| udp.received).expect("figures");
    assert_eq!(received.expected.get(), 9);
    assert_eq!(received.lost.map(linerate_units::PacketCount::get), Some(2));
    assert_eq!(report.streams[0].received.map(|side| side.bytes.get()), Some(800));
}

#[test]
fn silent_clients_make_way_for_others() {
    let one = core::num::NonZeroUsize::new(1).expect("not zero");
    let server = TestServer::start(ServerOptions { max_sessions: one, ..ServerOptions::default() });
    let mut silent = RawClient::connect(server.address);
    silent.expect_state(ControlState::ParamExchange);
    // After a second of silence its slot may be taken.
    let mut refused = 0;
    loop {
        let run = ClientRun::against(server.address, exact(1000));
        match run.code() {
            None => break,
            Some(code) => assert_eq!(code, ErrorCode::ACCESS_DENIED),
        }
        refused += 1;
        assert!(refused < 1_000_000, "the silent client keeps its slot");
    }
    assert_eq!(silent.expect_error(), ErrorCode::ACCESS_DENIED);
}

#[test]
fn the_last_planned_interval_ends_without_a_client_that_is_late() {
    let server = serve();
    let parameters = TestParameters { end: EndCondition::Time(Duration::from_secs(1)), ..TestParameters::default() };
    let (mut client, _streams) = RawClient::running(server.address, &parameters);
    // The client has not ended the test.
    let interval = server.find(|news| match news {
        ServerNews::Event(_, TestEvent::Interval(interval)) => Some(interval),
        _ => None,
    });
    assert!(interval.end < Duration::from_secs(2), "{interval:?}");
    end(&mut client, &[0]);
}
