//! Peers that violate the protocol, on both sides: every byte at every step, every end of the connection at every step,
//! delays at every step, and the documents of the known vulnerabilities.

use std::time::Duration;

use linerate_units::{ByteCount, MonotonicTime};
use linerate_wire::ControlDeadlines;
use linerate_wire::client;
use linerate_wire::cookie::Cookie;
use linerate_wire::error::{self, ErrorCode};
use linerate_wire::extension;
use linerate_wire::failure::{AwaitedMessage, ControlFailure, ProtocolError};
use linerate_wire::frame;
use linerate_wire::parameters::ServerLimits;
use linerate_wire::server;

use crate::common::{
    CLIENT_RESULTS, COOKIE, Client, ClientStep, PARAMETERS, SERVER_RESULTS, Server, ServerStep, at, results,
};

fn client_failure(outputs: &[client::ClientAction]) -> Option<&ControlFailure> {
    match outputs.last() {
        Some(client::ClientAction::Failed(failure)) => Some(failure),
        _ => None,
    }
}

/// A failure of the server, which must have notified the client.
fn server_failure(outputs: &[server::ServerAction]) -> Option<&ControlFailure> {
    match outputs {
        [.., server::ServerAction::Send(bytes), server::ServerAction::Failed(failure)] => {
            assert_eq!(*bytes, error::encode(failure.code()), "{failure}");
            Some(failure)
        }
        [.., server::ServerAction::Failed(failure)] => panic!("the client was not notified: {failure}"),
        _ => None,
    }
}

#[test]
fn every_byte_at_every_step_of_a_client() {
    for step in ClientStep::ALL.into_iter().filter(|step| *step != ClientStep::Over) {
        for byte in 0..=255 {
            let mut client = Client::reach(step);
            let outputs = client.receive(&[byte]);
            let failure = client_failure(&outputs);
            match byte {
                0xFE => {
                    assert_eq!(outputs, [], "{step:?}: the remainder of the error follows");
                    assert_eq!(client.machine.deadline(), Some(at(10)));
                    let outputs = client.receive(&[0, 0, 0, 27, 0, 0, 0, 13]);
                    let expected = ControlFailure::ServerError { code: ErrorCode::TOTAL_RATE, errno: 13 };
                    assert_eq!(client_failure(&outputs), Some(&expected));
                }
                0x0B => assert_eq!(failure, Some(&ControlFailure::ServerTerminated), "{step:?}"),
                _ if step == ClientStep::PeerResults => assert_eq!(outputs, [], "the first byte of a length"),
                0xFF => assert_eq!(failure, Some(&ControlFailure::Busy), "{step:?}"),
                _ if step.expected() == Some(byte) => assert!(failure.is_none() && !outputs.is_empty(), "{step:?}"),
                _ => {
                    let Some(ControlFailure::Protocol(ProtocolError::UnexpectedByte { byte: seen, .. })) = failure
                    else {
                        panic!("{step:?}, {byte:#04x}: {outputs:?}");
                    };
                    assert_eq!(*seen, byte);
                    assert_eq!(failure.map(ControlFailure::code), Some(ErrorCode::UNKNOWN_MESSAGE));
                }
            }
        }
    }
}

#[test]
fn every_byte_at_every_step_of_a_server() {
    for step in ServerStep::ALL.into_iter().filter(|step| *step != ServerStep::Over) {
        for byte in 0..=255 {
            let mut server = Server::reach(step);
            let outputs = server.receive(&[byte]);
            match (step, byte) {
                (ServerStep::Done, 0x10) => assert_eq!(outputs, [server::ServerAction::Finished]),
                (_, 0x0C | 0x10) => assert_eq!(outputs, [server::ServerAction::ClientTerminated], "{step:?}"),
                (ServerStep::Parameters | ServerStep::PeerResults, _) => assert_eq!(outputs, []),
                (_, 0x01) => assert_eq!(outputs, [], "{step:?}: iperf3 ignores it"),
                (ServerStep::TestEnd, 0x04) => assert_eq!(outputs, [server::ServerAction::EndRequested]),
                _ => {
                    let failure = server_failure(&outputs).expect("not a byte to send here");
                    assert_eq!(failure.code(), ErrorCode::UNKNOWN_MESSAGE, "{step:?}, {byte:#04x}: {failure}");
                }
            }
        }
    }
}

#[test]
fn bytes_without_meaning_are_ignored_only_so_often() {
    let mut server = Server::reach(ServerStep::TestEnd);
    assert_eq!(server.receive(&[1; 1024]), [], "iperf3 ignores them");
    let outputs = server.receive(&[1]);
    assert_eq!(server_failure(&outputs).map(ControlFailure::code), Some(ErrorCode::UNKNOWN_MESSAGE));
}

#[test]
fn the_end_of_the_connection_at_every_step() {
    for step in ClientStep::ALL.into_iter().filter(|step| *step != ClientStep::Over) {
        let mut client = Client::reach(step);
        let outputs = client.give(client::ClientEvent::Closed);
        let Some(ControlFailure::ClosedUnexpectedly { .. }) = client_failure(&outputs) else {
            panic!("{step:?}: {outputs:?}")
        };
        assert!(client.machine.is_over() && client.machine.deadline().is_none());
        assert_eq!(client.receive(&[9]), []);
    }
    for step in ServerStep::ALL.into_iter().filter(|step| ![ServerStep::Over, ServerStep::Done].contains(step)) {
        let mut server = Server::reach(step);
        let outputs = server.give(server::ServerEvent::Closed);
        let [server::ServerAction::Failed(ControlFailure::ClosedUnexpectedly { .. })] = outputs[..] else {
            panic!("{step:?}: {outputs:?}")
        };
        assert!(server.machine.is_over() && server.machine.deadline().is_none());
        assert_eq!(server.receive(&[4]), []);
    }
}

#[test]
fn the_end_of_the_connection_within_each_document() {
    let results = frame::encode(SERVER_RESULTS);
    let failure = [&[0xFE, 0, 0, 0, 1, 0, 0, 0, 0][..]].concat();
    for (step, message) in [(ClientStep::PeerResults, &results), (ClientStep::TestEnd, &failure)] {
        for length in 1..message.len() {
            let mut client = Client::reach(step);
            assert_eq!(client.receive(&message[..length]), []);
            let outputs = client.give(client::ClientEvent::Closed);
            let failure = client_failure(&outputs).expect("cut short");
            // FE and four bytes name the error, even if what should follow is missing.
            let named = step == ClientStep::TestEnd && length >= 5;
            let expected = if named { ErrorCode(1) } else { ErrorCode::CONTROL_CLOSED };
            assert_eq!(failure.code(), expected, "{step:?}, {length} bytes");
        }
    }
    for (step, document) in [(ServerStep::Parameters, PARAMETERS), (ServerStep::PeerResults, CLIENT_RESULTS)] {
        let message = frame::encode(document);
        for length in 1..message.len() {
            let mut server = Server::reach(step);
            assert_eq!(server.receive(&message[..length]), []);
            let outputs = server.give(server::ServerEvent::Closed);
            assert!(
                matches!(outputs[..], [server::ServerAction::Failed(ControlFailure::ClosedUnexpectedly { .. })]),
                "{outputs:?}"
            );
        }
    }
}

/// CVE-2023-38403, CVE-2026-71218: the peer may announce any length of a document.
#[test]
fn invalid_lengths() {
    for length in [0_u32, 8193, 0x8000_0000, 0xFFFF_FFFF] {
        let mut server = Server::reach(ServerStep::Parameters);
        let outputs = server.receive(&length.to_be_bytes());
        let failure = server_failure(&outputs).expect("not a length");
        assert_eq!(failure.code(), ErrorCode::RECEIVE_PARAMETERS, "{length}: {failure}");
    }
    for length in [0_u32, 256 * 1024 + 1, 0x8000_0000, 0xFFFF_FFFF] {
        let mut server = Server::reach(ServerStep::PeerResults);
        let outputs = server.receive(&length.to_be_bytes());
        let failure = server_failure(&outputs).expect("not a length");
        assert_eq!(failure.code(), ErrorCode::RECEIVE_RESULTS, "{length}: {failure}");
    }
    for length in [0_u32, 16 * 1024 * 1024 + 1, 0x8000_0000, 0xFFFF_FFFF] {
        let mut client = Client::reach(ClientStep::PeerResults);
        let outputs = client.receive(&length.to_be_bytes());
        let failure = client_failure(&outputs).expect("not a length");
        assert_eq!(failure.code(), ErrorCode::RECEIVE_RESULTS, "{length}: {failure}");
        assert!(failure.to_string().contains(&format!("{length} bytes")), "{failure}");
    }
}

#[test]
fn an_announced_length_takes_no_memory() {
    let mut client = Client::reach(ClientStep::PeerResults);
    assert_eq!(client.receive(&0x0100_0000_u32.to_be_bytes()), []);
    assert_eq!(client.machine.buffered(), ByteCount::ZERO);
    assert_eq!(client.receive(&[b' '; 1000]), []);
    assert!(client.machine.buffered() <= ByteCount::new(2000));
    let mut server = Server::reach(ServerStep::Parameters);
    assert_eq!(server.receive(&[0, 0, 0x20, 0, b'{']), []);
    assert!(server.machine.buffered() <= ByteCount::new(16));
}

/// CVE-2023-7250: a client that stops in the middle, or is just fast enough never to be idle.
#[test]
fn slow_clients_time_out() {
    let message = frame::encode(PARAMETERS);
    for sent in [0, 1, 3, 4, message.len() / 2, message.len() - 1] {
        let mut server = Server::reach(ServerStep::Parameters);
        server.now = at(2);
        assert_eq!(server.receive(&message[..sent]), []);
        let deadline = at(12);
        assert_eq!(server.machine.deadline(), Some(deadline), "{sent} bytes");
        server.now = MonotonicTime::from_nanos(deadline.as_nanos() - 1);
        assert_eq!(server.give(server::ServerEvent::Tick), []);
        server.now = deadline;
        let outputs = server.give(server::ServerEvent::Tick);
        let expected = ControlFailure::Timeout { waiting_for: AwaitedMessage::Parameters };
        assert_eq!(server_failure(&outputs), Some(&expected));
        assert_eq!(expected.code(), ErrorCode::RECEIVE_PARAMETERS);
    }
    let mut server = Server::reach(ServerStep::Parameters);
    for (byte, second) in message.iter().zip((0..).step_by(9)) {
        server.now = at(second);
        let outputs = server.receive(&[*byte]);
        if let Some(failure) = server_failure(&outputs) {
            assert_eq!((failure.code(), second), (ErrorCode::RECEIVE_PARAMETERS, 36), "30 s in all");
            return;
        }
        assert!(second < 30, "a byte each 9 s was never given up");
    }
}

#[test]
fn slow_servers_time_out() {
    for (step, seconds, waiting_for, code) in [
        (ClientStep::Admission, 600, AwaitedMessage::Admission, 112),
        (ClientStep::Acceptance, 600, AwaitedMessage::Acceptance, 112),
        (ClientStep::TestStart, 600, AwaitedMessage::TestStart, 112),
        (ClientStep::TestRunning, 60, AwaitedMessage::TestRunning, 112),
        (ClientStep::ExchangeResults, 60, AwaitedMessage::ExchangeResults, 112),
        (ClientStep::PeerResults, 10, AwaitedMessage::Results, 117),
        (ClientStep::DisplayResults, 60, AwaitedMessage::DisplayResults, 112),
    ] {
        let mut client = Client::reach(step);
        assert_eq!(client.machine.deadline(), Some(at(seconds)), "{step:?}");
        client.now = at(seconds);
        let outputs = client.give(client::ClientEvent::Tick);
        let failure = client_failure(&outputs).expect("too late");
        assert_eq!((failure, failure.code()), (&ControlFailure::Timeout { waiting_for }, ErrorCode(code)));
    }
    let mut client = Client::reach(ClientStep::PeerResults);
    let message = frame::encode(SERVER_RESULTS);
    for (byte, second) in message.iter().zip((0..).step_by(9)) {
        client.now = at(second);
        let outputs = client.receive(&[*byte]);
        if let Some(failure) = client_failure(&outputs) {
            assert_eq!((failure.code(), second), (ErrorCode::RECEIVE_RESULTS, 36));
            return;
        }
        assert!(second < 30, "a byte each 9 s was never given up");
    }
}

/// Bytes that a trickling server sends at a step, one each second, without ever completing what the client waits for.
fn trickled(step: ClientStep, speaks_extension: bool) -> Vec<u8> {
    let slow_document = frame::encode(&" ".repeat(4000));
    match step {
        ClientStep::PeerResults => slow_document,
        // An error message has nine bytes: a message of the extension is the only long one elsewhere.
        _ if speaks_extension => [vec![extension::MARKER], slow_document].concat(),
        _ => vec![0xFE, 0, 0, 0],
    }
}

#[test]
fn a_trickling_server_is_given_up_at_every_step() {
    for step in ClientStep::ALL.into_iter().filter(|step| *step != ClientStep::Over) {
        for speaks_extension in [false, true] {
            let mut client = if speaks_extension { Client::reach_with_extension(step) } else { Client::reach(step) };
            let mut given_up = None;
            let bytes = trickled(step, speaks_extension).into_iter().map(Some).chain(std::iter::repeat(None));
            for (second, byte) in (0..700).zip(bytes) {
                client.now = at(second);
                let outputs = match byte {
                    Some(byte) => client.receive(&[byte]),
                    None => client.give(client::ClientEvent::Tick),
                };
                if client_failure(&outputs).is_some() {
                    given_up = Some(second);
                    break;
                }
            }
            assert!(given_up.is_some_and(|second| second <= 30), "{step:?}: {given_up:?}");
        }
    }
}

#[test]
fn an_error_message_that_does_not_end() {
    let mut client = Client::reach(ClientStep::TestEnd);
    assert_eq!(client.receive(&[0xFE, 0, 0]), []);
    client.now = at(10);
    let outputs = client.give(client::ClientEvent::Tick);
    assert_eq!(client_failure(&outputs), Some(&ControlFailure::Timeout { waiting_for: AwaitedMessage::ErrorDetails }));
}

#[test]
fn bytes_delayed_by_this_process_are_not_late() {
    let mut server = Server::reach(ServerStep::Parameters);
    server.now = at(100);
    let outputs = server.receive(&frame::encode(PARAMETERS));
    assert!(matches!(outputs[..], [server::ServerAction::Parameters(_)]), "{outputs:?}");
}

#[test]
fn deadlines_are_configurable() {
    let deadlines = ControlDeadlines {
        message_idle: Duration::from_secs(2),
        message_total: Duration::from_secs(3),
        reply: Duration::from_secs(4),
        turn: Duration::from_secs(5),
    };
    let cookie = Cookie::from_bytes(*COOKIE);
    let mut machine = server::ServerMachine::new(&cookie, ServerLimits::default(), deadlines);
    machine.handle(at(5), server::ServerEvent::Admit { hello: None });
    assert_eq!(machine.deadline(), Some(at(7)));
    machine.handle(at(6), server::ServerEvent::Bytes(&[0]));
    assert_eq!(machine.deadline(), Some(at(8)));
}

/// Accepted by iperf3's server: the end of a test that has not begun.
#[test]
fn a_test_that_ends_before_it_begins() {
    for step in [ServerStep::Admission, ServerStep::Decision, ServerStep::Streams] {
        let outputs = Server::reach(step).receive(&[4]);
        assert_eq!(server_failure(&outputs).map(ControlFailure::code), Some(ErrorCode::UNKNOWN_MESSAGE), "{step:?}");
    }
}

#[test]
fn servers_that_run_ahead() {
    for (step, bytes) in [
        (ClientStep::Admission, &[9, 10, 1, 2, 13][..]),
        (ClientStep::Acceptance, &[10, 1, 2, 13]),
        (ClientStep::TestRunning, &[2, 13]),
        (ClientStep::ExchangeResults, &[13, 0, 0, 1, 0x35]),
        (ClientStep::Admission, &[10]),
        (ClientStep::Admission, &[14]),
    ] {
        let outputs = Client::reach(step).receive(bytes);
        let failure = client_failure(&outputs).expect("ahead of the client");
        assert_eq!(failure.code(), ErrorCode::UNKNOWN_MESSAGE, "{step:?}");
    }
    let ahead = [frame::encode(SERVER_RESULTS), vec![14, 14, 9]].concat();
    let outputs = Client::reach(ClientStep::PeerResults).receive(&ahead);
    assert_eq!(outputs.last(), Some(&client::ClientAction::Finished), "bytes after the end are ignored");
}

#[test]
fn invalid_results() {
    let good = SERVER_RESULTS;
    let twice = good.replace(
        "\"streams\":[",
        "\"streams\":[{\"id\":1,\"bytes\":0,\"retransmits\":0,\"jitter\":0,\"errors\":0,\"packets\":0},",
    );
    for (document, code) in [
        ("{}".to_owned(), 117),
        ("[]".to_owned(), 117),
        (good.replace("\"jitter\"", "\"j\""), 117),
        (good.replace("1.041819", "1e999"), 117),
        (good.replace("\"id\":1", "\"id\":2"), 208),
        (twice, 208),
        (good[..good.len() - 1].to_owned(), 117),
    ] {
        let outputs = Client::reach(ClientStep::PeerResults).receive(&frame::encode(&document));
        let failure = client_failure(&outputs).expect("not results");
        assert_eq!(failure.code(), ErrorCode(code), "{document}: {failure}");
        let outputs = Server::reach(ServerStep::PeerResults).receive(&frame::encode(&document));
        let failure = server_failure(&outputs).expect("not results");
        assert_eq!(failure.code(), ErrorCode(code), "{document}: {failure}");
    }
}

#[test]
fn failures_are_readable() {
    let outputs = Client::reach(ClientStep::Admission).receive(b"HTTP/1.1 400 Bad Request");
    let failure = client_failure(&outputs).expect("a web server");
    assert_eq!(
        failure.to_string(),
        "received an unknown control message (ensure other side is iperf3 and not iperf): byte 0x48, while waiting for \
         the server to admit this client"
    );
    let outputs = Client::reach(ClientStep::Acceptance).give(client::ClientEvent::Closed);
    let failure = client_failure(&outputs).expect("closed");
    assert!(failure.to_string().starts_with("control socket has closed unexpectedly while"), "{failure}");
    let _ = results(CLIENT_RESULTS);
}
