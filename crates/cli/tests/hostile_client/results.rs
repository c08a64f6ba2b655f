//! Invalid results, and results that are unsafe for a terminal.

use std::sync::Arc;

use super::extension::linerate_running;
use super::wire::{Listener, REPLY_TIMEOUT, SERVER_RESULTS, Served, Step, framed, state, with};
use super::{Attack, NO_RESULTS, drain};

#[test]
fn invalid_results() {
    let stream = r#"{"id":1,"bytes":0,"retransmits":-1,"jitter":0,"errors":0,"packets":0}"#;
    let document = |streams: &str| {
        format!(
            r#"{{"cpu_util_total":1,"cpu_util_user":1,"cpu_util_system":0,"sender_has_retransmits":-1,"streams":{streams}}}"#
        )
    };
    let invalid_id = "stream has an invalid id";
    let mut cases: Vec<(Vec<u8>, &str)> = vec![
        (framed(document(&format!("[{stream},{stream}]"))), invalid_id),
        (framed(document(&format!("[{}]", with(stream, "id", "2")))), invalid_id),
        (framed(document(&format!("[{}]", with(stream, "id", "-1")))), invalid_id),
        (framed(document(&format!("[{}]", vec![stream; 100_000].join(",")))), NO_RESULTS),
        (framed(document("{}")), NO_RESULTS),
        (framed("[".repeat(1_000_000)), NO_RESULTS),
        (framed("{}"), NO_RESULTS),
        (framed(b"\xff\xff"), NO_RESULTS),
        (0_u32.to_be_bytes().into(), NO_RESULTS),
        (((16 << 20) + 1_u32).to_be_bytes().into(), NO_RESULTS),
        (0x8000_0000_u32.to_be_bytes().into(), NO_RESULTS),
        (0xFFFF_FFFF_u32.to_be_bytes().into(), NO_RESULTS),
    ];
    for key in ["cpu_util_total", "sender_has_retransmits", "streams", "bytes", "jitter", "errors", "packets", "id"] {
        cases.push((framed(document(&format!("[{stream}]")).replace(key, "other")), NO_RESULTS));
    }
    for (key, value) in [
        ("bytes", "-1"),
        ("bytes", "1e999"),
        ("jitter", "NaN"),
        ("jitter", "-0.5"),
        ("jitter", "1e300"),
        ("errors", "\"1\""),
        ("packets", "null"),
        ("end_time", "1e999"),
        ("omitted_errors", "1"),
    ] {
        cases.push((framed(document(&format!("[{}]", with(stream, key, value)))), NO_RESULTS));
    }
    for (bytes, text) in cases {
        Attack::on(&["-n1K", "-l1K"]).with(&bytes).fails(text, |listener| {
            let mut client = listener.client_at(Step::Results);
            client.control.send(&bytes);
            client
        });
    }
}

#[test]
fn impossible_figures() {
    let mut results = SERVER_RESULTS.replace("\"bytes\":0", "\"bytes\":9223372036854775807");
    results = with(&results, "cpu_util_total", "1e300").replace("\"end_time\":1", "\"end_time\":1e-9");
    let udp =
        results.replace("\"errors\":0", "\"errors\":9223372036854775807").replace("\"jitter\":0", "\"jitter\":1e9");
    for arguments in [&["-t", "1"][..], &["-t", "1", "-J"], &["-t", "1", "-V", "-f", "k"]] {
        Attack::on(arguments).by(|listener| {
            let mut client = listener.client_at(Step::Running);
            drain(&client);
            client.conclude(&results);
        });
        Attack::on(&[arguments, &["-u"]].concat()).by(|listener| {
            let mut client = udp_client(listener);
            client.conclude(&udp);
        });
    }
}

/// Client with a running UDP test.
fn udp_client(listener: &Arc<Listener>) -> Served {
    let mut client = listener.client_at(Step::Parameters);
    client.control.send([state::CREATE_STREAMS]);
    client.accept_udp();
    client.control.send([state::TEST_START, state::TEST_RUNNING]);
    client
}

#[test]
fn the_largest_results_fit_and_do_no_harm() {
    // 15 MiB that expand to 2.6 million escape characters.
    let output = "\\u001b".repeat((15 << 20) / 6);
    let results = with(SERVER_RESULTS, "server_output_text", &format!("\"{output}\""));
    let attack = Attack::on(&["-n1K", "-l1K", "--get-server-output"]).within(REPLY_TIMEOUT);
    let end = Attack { memory_limit: 160 << 10, ..attack }
        .by(|listener| listener.client_at(Step::Running).conclude(&results))
        .expect_code(0);
    assert!(end.stdout.contains(r"\x1b\x1b"));
}

#[test]
fn texts_of_the_server_are_escaped() {
    // Some of them are unescaped, where JSON does not require it.
    let evil = "\"\\u001b]0;x\\u0007\\u009b31m\\u202e\\r \u{7f}\u{9b}31m\u{202e}\"";
    let mut results = with(SERVER_RESULTS, "congestion_used", evil);
    results = with(&results, "server_output_text", evil);
    let nested = with(SERVER_RESULTS, "server_output_json", &format!("{{\"a\":{evil},{evil}:[{evil}]}}"));
    for results in [&results, &nested] {
        for form in [&["-V"][..], &["-J"], &["--json-stream"], &["--json-stream-full-output"], &["-d"]] {
            let end = Attack::on(&[form, &["-n1K", "-l1K", "--get-server-output"]].concat())
                .by(|listener| {
                    let mut client = linerate_running(listener);
                    client.conclude(results);
                })
                .expect_code(0);
            if form == ["-J"] {
                end.json();
            } else if form == ["-V"] {
                assert!(!end.stdout.contains('\u{202e}'), "{end:#?}");
            }
        }
    }
}
