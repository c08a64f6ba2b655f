//! Messages of linerate's extension: garbage, floods, and impossible figures.

use std::io::Write;
use std::sync::Arc;

use crate::support::process::eventually;
use crate::support::{self, Process, free_port};

use super::wire::{Listener, PeerMessage, REPLY_TIMEOUT, SERVER_RESULTS, Served, Step, framed, state};
use super::{Attack, UNKNOWN, arguments_for, check_output, drain};

/// Introduction of a linerate server, with a version text that is unsafe for terminals.
const HELLO: &str = r#"{"hello":{"linerate":1,"version":"9\u001b[2J","features":["intervals"]}}"#;

#[test]
fn invalid_messages_of_the_extension() {
    let message = |document: &str| [b"L".as_slice(), &framed(document)].concat();
    let hello = message(r#"{"hello":{"linerate":1,"version":"9","features":[]}}"#);
    let mut cases = vec![
        b"L\0\0\0\0".to_vec(),
        b"L\xff\xff\xff\xff".to_vec(),
        b"L\x80\0\0\0".to_vec(),
        [&b"L"[..], &((1_u32 << 20) + 1).to_be_bytes()].concat(),
        message("garbage"),
        message("[]"),
        message("\u{0}"),
        message(&"[".repeat(1 << 20)),
        message(&format!("{{\"hello\":{}", "{\"a\":".repeat(100_000))),
        message(r#"{"hello":5}"#),
        message(r#"{"hello":{"linerate":-1,"version":"x"}}"#),
        message(r#"{"interval":{"schema":1,"start":0,"end":1,"streams":[]}}"#),
        message("{}"),
        [hello.clone(), hello.clone()].concat(),
        [hello.clone(), b"L\0\0\0\0".to_vec()].concat(),
    ];
    cases.push(hello.repeat(10_000));
    for bytes in &cases {
        Attack::on(&["-t", "1"]).with(bytes).fails(UNKNOWN, |listener| {
            let mut client = listener.client();
            client.control.send(bytes);
            client
        });
    }
    // From a server without an introduction, this is an unknown state byte.
    for step in [Step::Parameters, Step::Streams, Step::Running, Step::Ended, Step::Display] {
        Attack::on(&arguments_for(step)).fails(UNKNOWN, |listener| {
            let mut client = listener.client_at(step);
            client.control.send(&hello);
            client
        });
    }
}

/// A linerate server, up to the start of the test.
pub(super) fn linerate_running(listener: &Arc<Listener>) -> Served {
    let mut client = listener.client();
    client.control.send([b"L".as_slice(), &framed(HELLO)].concat());
    client.parameters = client.control.document();
    client.control.send([state::CREATE_STREAMS]);
    client.accept_stream();
    client.control.send([state::TEST_START, state::TEST_RUNNING]);
    client
}

/// Serves one run of `linerate test`, with impossible figures.
fn serve_nonsense(listener: &Arc<Listener>) {
    let most = u64::MAX;
    let mut client = listener.client();
    client.control.send([b"L".as_slice(), &framed(HELLO)].concat());
    let parameters: serde_json::Value = serde_json::from_str(&client.control.document()).expect("JSON");
    let count = parameters["parallel"].as_u64().expect("a number");
    let reverse = parameters["reverse"] == true;
    client.control.send([state::CREATE_STREAMS]);
    (0..count).for_each(|_| client.accept_stream());
    client.control.send([state::TEST_START, state::TEST_RUNNING]);
    // The first stream has ID 1, the next ones 3, 4, ….
    let ids: Vec<u64> = (0..count).map(|index| if index == 0 { 1 } else { index + 2 }).collect();
    let list = |each: &dyn Fn(u64) -> String| ids.iter().map(|id| each(*id)).collect::<Vec<_>>().join(",");
    let samples = format!(r#"{{"count":{most},"min":{most},"median":0,"mean":{most},"p95":0,"p99":{most},"max":0}}"#);
    let tcp = format!(
        r#"{{"retransmits":{most},"congestion_window":{most},"send_window":{most},"rtt":{most},"rttvar":{most},"path_mtu":4294967295,"reordering_seen":{most},"rtt_samples":{samples}}}"#
    );
    let streams = list(&|id| format!(r#"{{"stream":{id},"sender":{reverse},"bytes":{most},"tcp":{tcp}}}"#));
    for (start, end) in [(most, 0), (0, most), (0, 0), (5, 5)] {
        let interval = format!(r#"{{"interval":{{"schema":1,"start":{start},"end":{end},"streams":[{streams}]}}}}"#);
        client.control.send([b"L".as_slice(), &framed(interval)].concat());
    }
    assert_eq!(client.control.next_message(), PeerMessage::State(state::TEST_END));
    let limits = r#"{"application":1e308,"send_buffer":-1e308,"receive_window":1e308,"network":-5,"sender_cpu":1e308,"receiver_cpu":-1}"#;
    let info = format!(
        r#"{{"rtt":{most},"rttvar":{most},"min_rtt":{most},"congestion_window":{most},"pacing_rate":{most},"sent":{most}}}"#
    );
    let ends = list(&|id| {
        format!(r#"{{"stream":{id},"tcp_info":{info},"limits":{limits},"thread_cpu":{most},"duplicates":{most}}}"#)
    });
    let end = format!(r#"{{"end":{{"schema":1,"streams":[{ends}],"overlapping_tests":{most}}}}}"#);
    client.control.send([state::EXCHANGE_RESULTS]);
    client.control.document();
    client.control.send([b"L".as_slice(), &framed(end)].concat());
    let results = list(&|id| {
        format!(
            r#"{{"id":{id},"bytes":9223372036854775807,"retransmits":9223372036854775807,"jitter":1e9,"errors":0,"packets":0,"start_time":0,"end_time":1e-9}}"#
        )
    });
    client.control.send_document(format!(
        r#"{{"cpu_util_total":1e300,"cpu_util_user":1e300,"cpu_util_system":0,"sender_has_retransmits":1,"congestion_used":"\u001b[2J","streams":[{results}]}}"#
    ));
    client.control.send([state::DISPLAY_RESULTS]);
    assert_eq!(client.control.next_message(), PeerMessage::State(state::IPERF_DONE));
}

#[test]
fn a_linerate_with_impossible_figures() {
    for form in [&[][..], &["--json"]] {
        let listener = Listener::new(free_port());
        let mut command = support::linerate();
        command.args(["test", "127.0.0.1", "-t", "1s", "-P", "2", "-p", &listener.port.to_string()]).args(form);
        let client = Process::start(command);
        (0..4).for_each(|_| serve_nonsense(&listener));
        let end = client.finish(REPLY_TIMEOUT).expect_code(0);
        check_output(&end);
    }
}

/// Sends `message` repeatedly until the client replies.
fn flood(client: &mut Served, message: &[u8]) -> usize {
    let mut stream = client.control.0.try_clone().expect("a descriptor");
    client.control.0.set_nonblocking(true).expect("an option");
    let block = message.repeat((64 << 10) / message.len() + 1);
    let mut sent = 0;
    let mut rest = &block[..];
    eventually(REPLY_TIMEOUT, || {
        while client.control.0.peek(&mut [0]).is_err() {
            match stream.write(rest) {
                Ok(count) => (sent, rest) = (sent + count, &rest[count..]),
                Err(error) => return error.kind() != std::io::ErrorKind::WouldBlock,
            }
            if rest.is_empty() {
                rest = &block;
            }
        }
        true
    });
    client.control.0.set_nonblocking(false).expect("an option");
    let _ = stream.write_all(rest);
    sent
}

#[test]
fn messages_without_end_cost_bounded_memory() {
    let message = |document: &str| [b"L".as_slice(), &framed(document)].concat();
    let stream = r#"{"stream":1,"sender":false,"bytes":18446744073709551615}"#;
    let interval = |streams: &str| {
        let times = r#""start":18446744073709551615,"end":0"#;
        message(&format!(r#"{{"interval":{{"schema":1,{times},"omitted":false,"streams":[{streams}]}}}}"#))
    };
    for (what, bytes) in [
        ("intervals", interval(stream)),
        ("intervals of 15 000 streams", interval(&vec![stream; 15_000].join(","))),
        ("unknown messages", message(r#"{"new":[1,2,3]}"#)),
        ("ends", message(r#"{"end":{"schema":1,"streams":[{"stream":1}]}}"#)),
    ] {
        for arguments in [&["-t", "2"][..], &["-t", "2", "-J"]] {
            let attack = Attack { memory_limit: 48 << 10, ..Attack::on(arguments).within(REPLY_TIMEOUT) };
            let end = attack.by(|listener| {
                let mut client = linerate_running(listener);
                drain(&client);
                let sent = flood(&mut client, &bytes);
                assert!(sent > 1 << 20, "{what}: {sent} bytes are no flood");
                client.conclude(SERVER_RESULTS);
            });
            assert_eq!(end.code(), Some(0), "{what}: {end:#?}");
        }
    }
}
