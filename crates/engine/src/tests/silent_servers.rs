//! A client against servers that go silent, or send a byte now and then, in each state.

use core::time::Duration;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Instant;

use linerate_model::event::TestEvent;
use linerate_model::parameters::{EndCondition, TestDirection, TestParameters, TestProtocol};
use linerate_wire::ControlDeadlines;
use linerate_wire::error::ErrorCode;
use linerate_wire::state::ControlState;

use crate::client::ClientOptions;

use super::support::{ClientRun, RawPeer, RawServer, client_options, exact, framed, read_document, results_of};

/// Time between the bytes of a server that trickles; the limits are a few of these.
const PAUSE: Duration = Duration::from_millis(50);

/// Limits of minutes and hours, shortened.
fn impatient(options: ClientOptions) -> ClientOptions {
    ClientOptions {
        deadlines: ControlDeadlines {
            message_idle: Duration::from_millis(200),
            message_total: Duration::from_millis(400),
            reply: Duration::from_millis(300),
            turn: Duration::from_millis(300),
        },
        stall_timeout: Duration::from_millis(300),
        receive_timeout: Some(Duration::from_secs(60)),
        ..options
    }
}

/// Manner of a server that does not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Delay {
    Silence,
    Trickle,
}

/// Sends nothing, or the bytes of `message` one at a time, until the client is gone.
fn delay(control: &mut TcpStream, manner: Delay, message: &[u8]) {
    let bytes = message.iter().filter(|_| manner == Delay::Trickle);
    for byte in bytes {
        if control.write_all(&[*byte]).is_err() {
            return;
        }
        std::thread::sleep(PAUSE);
    }
    let _ = control.read_to_end(&mut Vec::new());
}

/// Message that is acceptable in every state, and too long to arrive in time.
fn long_error() -> Vec<u8> {
    let mut message = vec![ControlState::ServerError.byte()];
    message.extend([0; 7]);
    message
}

fn long_results() -> Vec<u8> {
    framed(&" ".repeat(4000))
}

/// Runs a client against `script`; returns its error.
fn given_up(parameters: TestParameters, script: impl FnOnce(RawPeer) + Send + 'static) -> ErrorCode {
    given_up_within(Duration::from_secs(60), parameters, script).0
}

/// Runs a client that ends an exact test after `most` against `script`; returns its error and the time it took.
fn given_up_within(
    most: Duration,
    parameters: TestParameters,
    script: impl FnOnce(RawPeer) + Send + 'static,
) -> (ErrorCode, Duration) {
    let server = RawServer::start(script);
    let start = Instant::now();
    let options = ClientOptions { max_exact_time: most, ..impatient(client_options(server.address, parameters)) };
    let run = ClientRun::with(&options);
    let elapsed = start.elapsed();
    server.join();
    (run.code().expect("failed"), elapsed)
}

/// State of the conversation that a server reaches before it stalls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Reached {
    Connection,
    Parameters,
    Streams,
    Start,
    End,
    ResultsRequest,
    Results,
}

/// Advances to `reached`, and stalls.
fn stall(mut peer: RawPeer, reached: Reached, manner: Delay) {
    let mut streams = Vec::new();
    if reached >= Reached::Parameters {
        peer.parameters();
    }
    if reached >= Reached::Streams {
        peer.send_state(ControlState::CreateStreams);
        streams.push(peer.accept_stream());
    }
    if reached >= Reached::Start {
        peer.send_state(ControlState::TestStart);
    }
    if reached >= Reached::End {
        peer.send_state(ControlState::TestRunning);
        streams[0].read_exact(&mut [0; 1000]).expect("all bytes");
        peer.expect_state(ControlState::TestEnd);
    }
    if reached >= Reached::ResultsRequest {
        peer.send_state(ControlState::ExchangeResults);
        read_document(&mut peer.control);
    }
    if reached >= Reached::Results {
        peer.send(&framed(&results_of(&[1000])));
    }
    let message = if reached == Reached::ResultsRequest { long_results() } else { long_error() };
    delay(&mut peer.control, manner, &message);
}

#[test]
fn every_state_has_a_limit() {
    use Reached::{Connection, End, Parameters, Results, ResultsRequest, Start, Streams};
    for reached in [Connection, Parameters, Streams, Start, End, ResultsRequest, Results] {
        for manner in [Delay::Silence, Delay::Trickle] {
            let code = given_up(exact(1000), move |peer| stall(peer, reached, manner));
            let expected =
                if reached == ResultsRequest { ErrorCode::RECEIVE_RESULTS } else { ErrorCode::RECEIVE_MESSAGE };
            assert_eq!(code, expected, "{reached:?}, {manner:?}");
        }
    }
}

#[test]
fn every_wait_for_udp_streams_has_a_limit() {
    let parameters = TestParameters { protocol: TestProtocol::Udp, ..exact(1000) };
    for (reached, manner) in [
        (Reached::Streams, Delay::Silence),
        (Reached::Streams, Delay::Trickle),
        (Reached::Start, Delay::Silence),
        (Reached::Start, Delay::Trickle),
    ] {
        let code = given_up(parameters.clone(), move |mut peer| {
            peer.parameters();
            peer.send_state(ControlState::CreateStreams);
            if reached == Reached::Start {
                peer.send_state(ControlState::TestStart);
            }
            // No request for a stream is ever answered.
            delay(&mut peer.control, manner, &long_error());
        });
        assert_eq!(code, ErrorCode::RECEIVE_MESSAGE, "{reached:?}, {manner:?}");
    }
}

#[test]
fn a_server_that_reads_nothing_ends_an_exact_test_and_one_without_end() {
    for end in [exact(1_000_000_000).end, EndCondition::Time(Duration::ZERO)] {
        let parameters = TestParameters { end, ..TestParameters::default() };
        let code = given_up(parameters, |mut peer| {
            let _streams = peer.run(1);
            delay(&mut peer.control, Delay::Silence, &[]);
        });
        assert_eq!(code, ErrorCode::STREAM_WRITE, "{end:?}");
    }
}

#[test]
fn a_server_that_moves_a_byte_now_and_then_ends_an_exact_test() {
    for direction in [TestDirection::Forward, TestDirection::Reverse] {
        let most = Duration::from_millis(600);
        let parameters = TestParameters { direction, ..exact(1_000_000_000) };
        let (code, elapsed) = given_up_within(most, parameters, move |mut peer| {
            let mut streams = peer.run(1);
            let step = |stream: &mut TcpStream| match direction {
                // A small receive buffer would need small reads only; the default one needs larger ones.
                TestDirection::Forward => stream.read_exact(&mut vec![0; 1 << 20]),
                _ => stream.write_all(&[0]),
            };
            while step(&mut streams[0]).is_ok() {
                std::thread::sleep(PAUSE);
            }
        });
        assert_eq!(code, ErrorCode::TEST_DURATION_EXPIRED, "{direction:?}");
        assert!(elapsed >= most, "{elapsed:?}");
    }
}

#[test]
fn a_server_that_goes_silent_learns_that_the_client_has_given_up() {
    let parameters = TestParameters {
        direction: TestDirection::Reverse,
        end: EndCondition::Time(Duration::from_secs(60)),
        ..TestParameters::default()
    };
    let server = RawServer::start(|mut peer| {
        let mut streams = peer.run(1);
        streams[0].write_all(&[7; 1000]).expect("buffer space");
        peer.expect_state(ControlState::IperfDone);
    });
    let options = client_options(server.address, parameters);
    let run = ClientRun::with(&ClientOptions { receive_timeout: Some(Duration::from_millis(300)), ..options });
    assert_eq!(run.code(), Some(ErrorCode::IDLE_RECEIVER));
    server.join();
}

#[test]
fn a_server_that_does_not_answer_is_reported_once_while_the_client_waits() {
    let server = RawServer::start(|mut peer| {
        let _ = peer.control.read_to_end(&mut Vec::new());
    });
    let options = client_options(server.address, exact(1));
    let turn = Duration::from_millis(5500);
    let deadlines = ControlDeadlines { turn, ..options.deadlines };
    let run = ClientRun::with(&ClientOptions { deadlines, ..options });
    server.join();
    let is_warning = |event: &&TestEvent| matches!(event, TestEvent::Warning(_));
    assert_eq!(run.events.iter().filter(is_warning).count(), 1, "{:?}", run.events);
}
