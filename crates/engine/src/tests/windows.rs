//! Windows (`-w`), which have to hold from the handshake on.

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use linerate_model::parameters::TestParameters;
use linerate_sys::net::{ConnectOptions, connect_tcp};
use linerate_sys::poll::{self, PollInterest, PollItem};
use linerate_sys::tcp_info;
use linerate_units::{ByteCount, Mss, StreamCount};
use linerate_wire::state::ControlState;

use crate::server::ServerOptions;

use super::support::{ClientRun, RawClient, TestServer, client_options, exact};

const LARGE: u64 = 8 << 20;

fn windowed(kibibytes: u64) -> TestParameters {
    TestParameters { window: Some(ByteCount::from_kibibytes(kibibytes)), ..exact(LARGE) }
}

/// Window scale that the server announced, and the segment size that the client uses.
fn announced(stream: &TcpStream) -> (u8, Option<Mss>) {
    let info = tcp_info::read(stream).expect("a connection");
    (info.window_scale.expect("agreed").send, info.send_mss)
}

/// Scale of a connection without a window.
fn usual_scale(address: SocketAddr) -> u8 {
    announced(&TcpStream::connect(address).expect("it listens")).0
}

#[test]
fn a_small_window_is_announced_in_the_handshake() {
    let server = TestServer::start(ServerOptions::default());
    let usual = usual_scale(server.address);
    assert!(usual > 0, "this host has large buffers");
    for kibibytes in [5, 16, 32] {
        let parameters = TestParameters { parallel: StreamCount::new(3), ..windowed(kibibytes) };
        let (_client, streams) = RawClient::running(server.address, &parameters);
        for stream in &streams {
            let (scale, segment) = announced(stream);
            assert_eq!(scale, 0, "{kibibytes} KiB need none");
            // A sender uses half of the largest window as its segment: as large as the buffer, it would wait.
            let window = ByteCount::from_kibibytes(kibibytes);
            assert!(segment.is_some_and(|segment| ByteCount::new(segment.get().into()) * 2 <= window), "{segment:?}");
        }
        assert_eq!(usual_scale(server.address), usual, "later connections have the system's");
    }
}

#[test]
fn a_small_window_does_not_wait_for_timers() {
    let server = TestServer::start(ServerOptions::default());
    let run = ClientRun::with(&client_options(server.address, windowed(5))).successful();
    let time = run.report().streams[0].sent.expect("sent").duration;
    // A timer of 200 ms for each window would make it 160 s.
    assert!(time.as_secs() < 8, "{time:?}");
}

#[test]
fn other_clients_keep_their_windows_while_one_opens_its_streams() {
    let server = TestServer::start_on(Ipv4Addr::UNSPECIFIED.into(), ServerOptions::default());
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, server.address.port()));
    let usual = usual_scale(address);
    let client = RawClient::accepted(address, &windowed(5));
    let mut elsewhere = ConnectOptions::to(address);
    elsewhere.bind = Some(SocketAddr::from(([127, 0, 0, 9], 0)));
    let other = connect_tcp(&elsewhere, None).expect("it listens");
    assert_eq!(announced(&other).0, usual);
    assert_eq!(announced(&client.open_stream()).0, 0);
}

#[test]
fn sessions_of_one_client_with_and_without_a_window_open_their_streams_in_turn() {
    let server = TestServer::start(ServerOptions::default());
    let usual = usual_scale(server.address);
    let mut small = RawClient::accepted(server.address, &windowed(5));
    let mut others = [(exact(LARGE), usual), (windowed(64), 1)].map(|(parameters, scale)| {
        let mut client = RawClient::connect(server.address);
        client.expect_state(ControlState::ParamExchange);
        client.send_parameters(&parameters);
        (client, scale)
    });
    let stream = small.open_stream();
    assert_eq!(announced(&stream).0, 0);
    small.expect_state(ControlState::TestStart);
    // On a busy host the second may have its turn first.
    let first = {
        let mut items = others.each_ref().map(|(client, _)| PollItem::new(&client.stream, PollInterest::READ));
        poll::wait(&mut items, Some(Duration::from_secs(60))).expect("polls");
        items.iter().position(PollItem::is_readable).expect("one has its turn")
    };
    others.rotate_left(first);
    for (client, scale) in &mut others {
        client.expect_state(ControlState::CreateStreams);
        assert_eq!(announced(&client.open_stream()).0, *scale);
        client.expect_state(ControlState::TestStart);
    }
}
