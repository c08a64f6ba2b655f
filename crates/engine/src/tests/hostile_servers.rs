//! A client against servers that refuse, violate the protocol, or vanish.

use core::time::Duration;
use std::io::{Read, Write};
use std::net::TcpListener;

use linerate_model::event::TestEvent;
use linerate_model::parameters::{EndCondition, TestDirection, TestParameters};
use linerate_model::report::{ServerOutput, TestTermination};
use linerate_model::stream::StreamRole;
use linerate_units::{BitRate, ByteCount, StreamCount};
use linerate_wire::cookie::{Cookie, ExtensionVersion};
use linerate_wire::error::ErrorCode;
use linerate_wire::state::ControlState;

use crate::client::ClientOptions;

use super::support::{
    ClientRun, LOOPBACK, RawPeer, RawServer, bytes_of, client_options, exact, framed, read_document, results_of,
};

/// Runs a client against a script; returns its run after both have ended.
fn against(parameters: TestParameters, script: impl FnOnce(RawPeer) + Send + 'static) -> ClientRun {
    let server = RawServer::start(script);
    let run = ClientRun::against(server.address, parameters);
    server.join();
    run
}

/// Completes a test after its end, with these bytes at the server.
fn exchange(peer: &mut RawPeer, bytes: &[u64]) -> String {
    exchange_document(peer, &results_of(bytes))
}

/// Completes a test after its end, with this document of the server.
fn exchange_document(peer: &mut RawPeer, document: &str) -> String {
    peer.expect_state(ControlState::TestEnd);
    peer.send_state(ControlState::ExchangeResults);
    let results = read_document(&mut peer.control);
    peer.send(&framed(document));
    peer.send_state(ControlState::DisplayResults);
    peer.expect_state(ControlState::IperfDone);
    String::from_utf8(results).expect("text")
}

#[test]
fn a_stock_server_is_understood() {
    let run = against(exact(20_000), |mut peer| {
        let cookie = Cookie::from_bytes(peer.cookie);
        assert_eq!(cookie.extension_version(), Some(ExtensionVersion::Tests));
        let mut streams = peer.run(1);
        let mut data = vec![0; 20_000];
        streams[0].read_exact(&mut data).expect("all bytes");
        let results = exchange(&mut peer, &[20_000]);
        assert!(results.contains("\"bytes\":20000"), "{results}");
    });
    let run = run.successful();
    assert_eq!(bytes_of(run.report(), StreamRole::Sender, false), 20_000);
    assert_eq!(bytes_of(run.report(), StreamRole::Sender, true), 20_000);
    assert!(run.report().far.is_none(), "a stock server reports no intervals");
    assert_eq!(run.report().termination, TestTermination::Complete);
}

#[test]
fn the_parameters_are_those_of_the_test() {
    let parameters = TestParameters {
        direction: TestDirection::Reverse,
        parallel: StreamCount::new(2),
        end: EndCondition::Time(Duration::from_secs(1)),
        ..TestParameters::default()
    };
    let run = against(parameters, |mut peer| {
        let document = String::from_utf8(peer.parameters()).expect("text");
        for part in ["\"tcp\":true", "\"reverse\":true", "\"parallel\":2", "\"time\":1", "\"len\":131072"] {
            assert!(document.contains(part), "{part} in {document}");
        }
        assert!(!document.contains("linerate"), "a stock server sees nothing of the extension: {document}");
        peer.error(ErrorCode::STREAM_COUNT);
    });
    assert_eq!(run.code(), Some(ErrorCode::STREAM_COUNT));
}

#[test]
fn refusals_have_their_numbers() {
    type Script = fn(RawPeer);
    let cases: [(Script, ErrorCode, bool); 6] = [
        (|mut peer| peer.send_state(ControlState::AccessDenied), ErrorCode::ACCESS_DENIED, false),
        (|mut peer| peer.error(ErrorCode::AUTHORIZATION), ErrorCode::AUTHORIZATION, true),
        (|_| {}, ErrorCode::CONTROL_CLOSED, false),
        (|mut peer| peer.send(&[0x42]), ErrorCode::UNKNOWN_MESSAGE, false),
        (|mut peer| peer.send_state(ControlState::ServerTerminate), ErrorCode::SERVER_TERMINATED, false),
        (
            |mut peer| {
                peer.parameters();
                peer.error(ErrorCode::TOTAL_RATE);
            },
            ErrorCode::TOTAL_RATE,
            true,
        ),
    ];
    for (script, code, from_server) in cases {
        let run = against(exact(1000), script);
        assert_eq!(run.code(), Some(code));
        assert_eq!(run.outcome.error.as_ref().map(crate::Error::is_from_server), Some(from_server), "{code:?}");
        // A client that got no connection has no report; any other has exactly one.
        let terminated = code == ErrorCode::SERVER_TERMINATED;
        let expected = match &run.report().termination {
            TestTermination::PeerTerminated => terminated,
            TestTermination::Failed { message } => !terminated && message.starts_with(&*code.text()),
            _ => false,
        };
        assert!(expected, "{code:?}: {:?}", run.report().termination);
        assert!(run.report().streams.is_empty());
    }
}

#[test]
fn the_reason_of_the_servers_system_is_shown() {
    let run = against(exact(1000), |mut peer| {
        peer.parameters();
        let mut message = vec![ControlState::ServerError.byte()];
        message.extend(ErrorCode::CREATE_STREAM.0.to_be_bytes());
        // EMFILE.
        message.extend(24_i32.to_be_bytes());
        peer.send(&message);
    });
    let error = run.outcome.error.expect("failed");
    assert_eq!(error.to_string(), "unable to create a new stream: Too many open files");
}

#[test]
fn a_server_that_terminates_during_the_test_leaves_a_partial_report() {
    let parameters = TestParameters { end: EndCondition::Time(Duration::from_secs(600)), ..TestParameters::default() };
    let run = against(parameters, |mut peer| {
        let mut streams = peer.run(1);
        let mut data = vec![0; 100_000];
        streams[0].read_exact(&mut data).expect("data");
        peer.send_state(ControlState::ServerTerminate);
    });
    assert_eq!(run.code(), Some(ErrorCode::SERVER_TERMINATED));
    let report = run.report();
    assert_eq!(report.termination, TestTermination::PeerTerminated);
    assert!(report.streams[0].sent.expect("counted").bytes.get() >= 100_000);
    assert_eq!(report.streams[0].received, None, "unknown, not zero");
}

#[test]
fn a_server_that_vanishes_during_the_test_leaves_a_partial_report() {
    let parameters = TestParameters { end: EndCondition::Time(Duration::from_secs(600)), ..TestParameters::default() };
    let run = against(parameters, |mut peer| {
        let mut streams = peer.run(1);
        let mut data = vec![0; 100_000];
        streams[0].read_exact(&mut data).expect("data");
    });
    let code = run.code().expect("failed");
    assert!([ErrorCode::CONTROL_CLOSED, ErrorCode::STREAM_WRITE, ErrorCode::CONTROL_READ].contains(&code), "{code:?}");
    assert!(matches!(run.report().termination, TestTermination::Failed { .. }));
    assert!(run.report().streams[0].sent.expect("counted").bytes.get() >= 100_000);
}

#[test]
fn the_servers_reason_explains_more_than_a_broken_stream() {
    let parameters = TestParameters { end: EndCondition::Time(Duration::from_secs(600)), ..TestParameters::default() };
    let run = against(parameters, |mut peer| {
        let streams = peer.run(1);
        // The streams fail before the reason arrives.
        drop(streams);
        peer.error(ErrorCode::TOTAL_RATE);
    });
    assert_eq!(run.code(), Some(ErrorCode::TOTAL_RATE));
}

#[test]
fn a_stream_that_ends_early_without_a_reason_is_an_error() {
    let parameters = TestParameters {
        direction: TestDirection::Reverse,
        end: EndCondition::Time(Duration::from_secs(600)),
        ..TestParameters::default()
    };
    let run = against(parameters, |mut peer| {
        drop(peer.run(1));
        // The client waits for a reason before it reports the stream itself.
        let _ = peer.control.read(&mut [0]);
    });
    assert_eq!(run.code(), Some(ErrorCode::STREAM_CLOSED));
}

#[test]
fn a_receiver_gives_up_on_a_silent_server() {
    let parameters = TestParameters {
        direction: TestDirection::Reverse,
        end: EndCondition::Time(Duration::from_secs(600)),
        ..TestParameters::default()
    };
    let server = RawServer::start(|mut peer| {
        let _streams = peer.run(1);
        let _ = peer.control.read(&mut [0]);
    });
    let options = ClientOptions {
        receive_timeout: Some(Duration::from_millis(200)),
        ..client_options(server.address, parameters)
    };
    let run = ClientRun::with(&options);
    server.join();
    assert_eq!(run.code(), Some(ErrorCode::IDLE_RECEIVER));
    assert_eq!(run.outcome.error.map(|error| error.to_string()).as_deref(), Some("idle timeout for receiving data"));
}

#[test]
fn a_receiver_ends_the_test_at_its_last_byte_and_counts_all_that_has_arrived() {
    let parameters = TestParameters { direction: TestDirection::Reverse, ..exact(30_000) };
    let run = against(parameters, |mut peer| {
        let mut streams = peer.run(1);
        // More than requested, as a server may have in flight.
        streams[0].write_all(&vec![3; 30_500]).expect("buffer space");
        exchange(&mut peer, &[30_500]);
    });
    let run = run.successful();
    let received = bytes_of(run.report(), StreamRole::Receiver, true);
    assert!((30_000..=30_500).contains(&received), "{received}");
    assert_eq!(bytes_of(run.report(), StreamRole::Receiver, false), 30_500);
}

#[test]
fn the_last_block_for_a_server_that_is_not_a_linerate_is_complete() {
    for (bytes, block, expected) in [(1, 4000, 4000), (4000, 4000, 4000), (4001, 4000, 8000)] {
        let run = against(TestParameters { block_size: ByteCount::new(block), ..exact(bytes) }, move |mut peer| {
            let mut streams = peer.run(1);
            streams[0].read_exact(&mut vec![0; expected]).expect("all bytes");
            exchange(&mut peer, &[expected as u64]);
        });
        assert_eq!(bytes_of_sender(&run.successful()), expected as u64, "{bytes} bytes in blocks of {block}");
    }
}

#[test]
fn a_paced_block_for_a_server_that_is_not_a_linerate_leaves_whole() {
    let parameters = TestParameters {
        rate: Some(BitRate::from_bits_per_second(1000.0)),
        end: EndCondition::Time(Duration::from_secs(600)),
        ..TestParameters::default()
    };
    let block = parameters.block_size.to_usize();
    let run = against(parameters, move |mut peer| {
        let mut streams = peer.run(1);
        // In parts it would take a quarter of an hour.
        streams[0].read_exact(&mut vec![0; block]).expect("a block");
        peer.send_state(ControlState::ServerTerminate);
    });
    assert_eq!(run.code(), Some(ErrorCode::SERVER_TERMINATED));
}

#[test]
fn malformed_results_are_an_error_with_a_report() {
    for document in ["", "[]", "{\"streams\":", &results_of(&[1, 1])] {
        let document = document.to_owned();
        let run = against(exact(1000), move |mut peer| {
            let mut streams = peer.run(1);
            streams[0].read_exact(&mut [0; 1000]).expect("all bytes");
            peer.expect_state(ControlState::TestEnd);
            peer.send_state(ControlState::ExchangeResults);
            read_document(&mut peer.control);
            peer.send(&framed(&document));
            let _ = peer.control.read(&mut [0]);
        });
        let code = run.code().expect("failed");
        assert!(code == ErrorCode::RECEIVE_RESULTS || code == ErrorCode::STREAM_ID, "{code:?}");
        assert_eq!(bytes_of_sender(&run), 1000, "this end's figures are known");
    }
}

fn bytes_of_sender(run: &ClientRun) -> u64 {
    bytes_of(run.report(), StreamRole::Sender, false)
}

#[test]
fn results_of_a_server_without_retransmission_counts_stay_unknown() {
    let parameters = TestParameters { direction: TestDirection::Reverse, ..exact(1000) };
    let run = against(parameters, |mut peer| {
        let mut streams = peer.run(1);
        streams[0].write_all(&[3; 1000]).expect("buffer space");
        exchange(&mut peer, &[1000]);
    });
    let run = run.successful();
    let tcp = run.report().streams[0].tcp.as_ref().expect("a TCP stream");
    assert_eq!(tcp.retransmits, None, "unknown, not zero");
    assert_eq!((tcp.far_info.as_ref(), tcp.limits), (None, None));
}

#[test]
fn output_of_the_server_that_was_not_requested_is_left_out() {
    for wanted in [true, false] {
        let parameters = TestParameters { get_server_output: wanted, ..exact(1000) };
        let run = against(parameters, |mut peer| {
            let mut streams = peer.run(1);
            streams[0].read_exact(&mut [0; 1000]).expect("all bytes");
            exchange_document(&mut peer, &with_output(&results_of(&[1000]), "its lines"));
        });
        let output = wanted.then(|| ServerOutput::Text("its lines".to_owned()));
        assert_eq!(run.successful().report().server_output, output);
    }
}

/// Adds the text of a server's output to its results.
fn with_output(results: &str, output: &str) -> String {
    let members = results.strip_prefix('{').expect("an object");
    format!("{{\"server_output_text\":\"{output}\",{members}")
}

#[test]
fn more_intervals_than_the_test_can_have_are_dropped() {
    use linerate_model::sample::IntervalReport;
    use linerate_wire::extension::{ExtensionMessage, ServerHello};
    let run = against(exact(1000), |mut peer| {
        peer.send(&ExtensionMessage::Hello(ServerHello::new(&["intervals"])).encode());
        let document = String::from_utf8(read_document(&mut peer.control)).expect("text");
        assert!(document.contains("\"linerate\""), "{document}");
        peer.send_state(ControlState::CreateStreams);
        let mut stream = peer.accept_stream();
        peer.send(&[ControlState::TestStart.byte(), ControlState::TestRunning.byte()]);
        stream.read_exact(&mut [0; 1000]).expect("all bytes");
        peer.expect_state(ControlState::TestEnd);
        let interval = IntervalReport {
            start: Duration::ZERO,
            end: Duration::from_millis(1),
            omitted: false,
            streams: Vec::new(),
        };
        for _ in 0..20_000 {
            peer.send(&ExtensionMessage::Interval(interval.clone()).encode());
        }
        peer.send_state(ControlState::ExchangeResults);
        read_document(&mut peer.control);
        peer.send(&framed(&results_of(&[1000])));
        peer.send_state(ControlState::DisplayResults);
        peer.expect_state(ControlState::IperfDone);
    });
    let run = run.successful();
    // One per tenth of a second, and ten in advance.
    let seen = run.far_intervals().len();
    assert!((1..20_000).contains(&seen), "{seen}");
    assert_eq!(run.report().far.as_ref().map(|far| far.intervals.len()), Some(seen));
}

#[test]
fn an_unused_port_and_an_unknown_name_are_errors_of_the_connection() {
    let address = TcpListener::bind((LOOPBACK, 0)).expect("loopback").local_addr().expect("bound");
    let run = ClientRun::against(address, exact(1));
    assert_eq!(run.code(), Some(ErrorCode::CONNECT));
    let error = run.outcome.error.as_ref().expect("failed");
    assert!(error.to_string().ends_with(": Connection refused"), "{error}");
    assert!(error.advice().is_some_and(|advice| advice.contains(&address.to_string())), "{error:?}");
    assert!(!run.events.iter().any(|event| matches!(event, TestEvent::Connected(_))));
    let options = ClientOptions { host: "name.invalid".to_owned(), ..client_options(address, exact(1)) };
    assert_eq!(ClientRun::with(&options).code(), Some(ErrorCode::CONNECT));
}
