//! Memory and descriptors that the tests of all clients share, and the slots of a queue.

use core::num::NonZeroUsize;
use core::time::Duration;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use linerate_model::parameters::{EndCondition, TestDirection, TestParameters, TestProtocol};
use linerate_sys::clock;
use linerate_units::{ByteCount, StreamCount};
use linerate_wire::error::ErrorCode;
use linerate_wire::parameters::ServerLimits;
use linerate_wire::state::ControlState;

use crate::client::ClientOptions;
use crate::server::ServerOptions;

use super::support::{ClientRun, PATIENCE, RawClient, ServerNews, TestServer, client_options, exact};

const OTHER: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));

fn from_other(server: SocketAddr, parameters: TestParameters) -> ClientRun {
    ClientRun::with(&ClientOptions { bind: Some(OTHER), ..client_options(server, parameters) })
}

fn wide(direction: TestDirection) -> TestParameters {
    TestParameters { parallel: StreamCount::new(128), direction, ..exact(1_000_000) }
}

#[test]
fn tests_of_one_address_take_no_more_than_half_of_the_memory() {
    let memory = ByteCount::from_mebibytes(64);
    let server = TestServer::start_within(memory, ServerOptions::default());
    let mut accepted = Vec::new();
    let refused = loop {
        let mut client = RawClient::connect(server.address);
        client.expect_state(ControlState::ParamExchange);
        client.send_parameters(&wide(TestDirection::Bidirectional));
        if client.byte() == ControlState::AccessDenied.byte() {
            break client;
        }
        accepted.push(client);
        assert!(accepted.len() < 20, "nothing is refused");
    };
    assert!(!accepted.is_empty() && server.resources.held() * 2 <= memory, "{}", server.resources.held());
    assert_eq!(server.failure().code(), ErrorCode::ACCESS_DENIED);
    from_other(server.address, exact(100_000)).successful();
    let refused_run = ClientRun::against(server.address, wide(TestDirection::Bidirectional));
    assert_eq!(refused_run.code(), Some(ErrorCode::ACCESS_DENIED), "the client may try again");
    drop((accepted, refused));
    server.find(|news| matches!(news, ServerNews::Idle(next) if next > 2).then_some(()));
    assert_eq!(server.resources.held(), ByteCount::ZERO);
}

#[test]
fn streams_without_memory_for_large_buffers_move_their_data_in_small_ones() {
    for protocol in [TestProtocol::Tcp, TestProtocol::Udp] {
        for direction in [TestDirection::Forward, TestDirection::Reverse] {
            // Just enough for the first buffers of one test: a server returns those of the last one after its client has ended.
            let server = TestServer::start_within(ByteCount::from_kibibytes(200), ServerOptions::default());
            let block_size = ByteCount::new(1000);
            let parameters = TestParameters { protocol, direction, block_size, ..exact(2_000_000) };
            let rate = Some(linerate_units::BitRate::from_bits_per_second(200e6));
            let run = ClientRun::against(server.address, TestParameters { rate, ..parameters }).successful();
            let received: u64 =
                run.report().streams.iter().filter_map(|one| one.received).map(|side| side.bytes.get()).sum();
            assert!(received >= 1_500_000, "{protocol:?}, {direction:?}: {received} bytes");
        }
    }
}

#[test]
fn no_data_moves_long_after_the_longest_duration() {
    let limits = ServerLimits { max_duration: Some(Duration::from_secs(1)), ..ServerLimits::default() };
    let server = TestServer::start(ServerOptions { limits, ..ServerOptions::default() });
    for direction in [TestDirection::Reverse, TestDirection::Forward] {
        let end = EndCondition::Time(Duration::from_secs(1));
        let rate = Some(linerate_units::BitRate::from_bits_per_second(1e6));
        let block_size = ByteCount::new(1000);
        let parameters = TestParameters { end, direction, rate, block_size, ..TestParameters::default() };
        // A client that never ends its test.
        let (_client, mut streams) = RawClient::running(server.address, &parameters);
        let start = clock::monotonic_now();
        let mut last = start;
        streams[0].set_read_timeout(Some(Duration::from_millis(500))).expect("an option");
        streams[0].set_write_timeout(Some(Duration::from_millis(500))).expect("an option");
        let mut buffer = vec![0; 16 << 10];
        loop {
            let moved = if direction == TestDirection::Reverse {
                streams[0].read(&mut buffer)
            } else {
                streams[0].write(&buffer)
            };
            match moved {
                Ok(count) if count > 0 => last = clock::monotonic_now(),
                _ => break,
            }
            assert!(last.since(start) < PATIENCE, "{direction:?}: it goes on");
        }
        let moved_for = last.since(start);
        assert!(moved_for < Duration::from_secs(8), "{direction:?}: {moved_for:?}");
    }
}

#[test]
fn a_waiting_client_of_a_network_without_sessions_goes_first() {
    let two = NonZeroUsize::new(2).expect("not zero");
    let server = TestServer::start(ServerOptions { max_sessions: two, queue: true, ..ServerOptions::default() });
    let (first, _streams) = RawClient::running(server.address, &exact(1_000_000));
    let (mut second, _more) = RawClient::running(server.address, &exact(1_000_000));
    // The acceptor reads the cookies of connections in the order of their arrival, and before it notices a free slot.
    let mut waiting: Vec<RawClient> = (0..3).map(|_| RawClient::connect(server.address)).collect();
    let mut other = RawClient::connect_from(server.address, OTHER);
    second.send_state(ControlState::ClientTerminate);
    other.expect_state(ControlState::ParamExchange);
    drop(first);
    waiting[0].expect_state(ControlState::ParamExchange);
}
