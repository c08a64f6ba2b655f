//! Differences from iperf3: those that docs/compatibility.md lists, and those that are gone. The stock iperf3 is the control.

use serde_json::Value;

use crate::support::document::{array, count, text};
use crate::support::pairing::{LIMIT, undisturbed};
use crate::support::process::{eventually, run};
use crate::support::{self, FinishedChild, Process, Program, Server};

const LINERATE: Program = Program::Linerate;
const STOCK: Program = Program::Iperf3;

/// A short test at a rate that leaves the host idle.
const SHORT: [&str; 4] = ["-t", "1", "-b", "5M"];

/// Runs a client with `-J` against a one-off server; returns both documents.
fn documents(client: Program, server: Program, arguments: &[&str]) -> (Value, Value) {
    let server = Server::start(server, &["-1", "-J"]);
    let client = run(server.client(client, &[arguments, &["-J"]].concat()), LIMIT).json();
    (client, server.finish(LIMIT).document())
}

#[test]
fn blocks_of_exact_tests_are_counted_as_by_iperf3() {
    for (arguments, bytes) in [
        (&["-n", "2M", "-b", "50M"][..], 2 << 20),
        (&["-n", "2M", "-b", "50M", "-R"], 2 << 20),
        (&["-n", "100K"], 128 << 10),
        (&["-k", "20", "-b", "50M"], 20 * (128 << 10)),
        (&["-k", "20", "-b", "50M", "-R"], 20 * (128 << 10)),
        (&["-n", "1"], 128 << 10),
    ] {
        for (client, server) in [(LINERATE, STOCK), (STOCK, LINERATE)] {
            undisturbed(|| {
                let (client, server) = documents(client, server, arguments);
                let (sent, received) =
                    (count(&client, "/end/sum_sent/bytes"), count(&client, "/end/sum_received/bytes"));
                // A stock client of a later version sends until the end of its interval: whole blocks, and all counted.
                assert!(sent >= bytes && sent.is_multiple_of(128 << 10), "{arguments:?}: {sent} bytes");
                assert_eq!(received, sent, "{arguments:?}");
                let far_end = if arguments.contains(&"-R") { &client } else { &server };
                assert_eq!(count(far_end, "/end/sum_received/bytes"), sent, "{arguments:?}");
            });
        }
    }
}

#[test]
fn a_test_of_bytes_ends_at_its_last_byte_between_two_linerates() {
    let (client, server) = documents(LINERATE, LINERATE, &["-n", "1"]);
    assert_eq!((count(&client, "/end/sum_sent/bytes"), count(&server, "/end/sum_received/bytes")), (1, 1));
    let time = support::document::number(&client, "/end/sum_sent/seconds");
    assert!(time < 0.5, "{time} s for one byte");
}

#[test]
fn a_flow_label_over_ipv4_is_an_error() {
    for server in [LINERATE, STOCK] {
        let server = Server::start(server, &[]);
        let expected = "iperf3: error - unable to set IPv6 flow label\n";
        for client in [LINERATE, STOCK] {
            let refused = run(server.client(client, &["-L", "7"]), LIMIT).expect_code(1);
            assert_eq!(refused.stderr, expected);
        }
    }
}

#[test]
fn buffers_of_no_stream_are_absent() {
    let server = Server::start(LINERATE, &[]);
    let refused = run(server.client(LINERATE, &["-L", "7", "-J"]), LIMIT).expect_code(1).json();
    assert_eq!(text(&refused, "/error"), "unable to set IPv6 flow label");
    for key in ["sock_bufsize", "sndbuf_actual", "rcvbuf_actual"] {
        assert_eq!(refused["start"].get(key), None, "{key}");
    }
}

#[test]
fn a_stock_client_that_gives_up_early_is_no_error_of_the_protocol() {
    let server = Server::start(LINERATE, &["-1"]);
    run(server.client(STOCK, &["-L", "7"]), LIMIT).expect_code(1);
    let ended = server.finish(LIMIT).expect_code(0);
    assert_eq!(ended.stderr, "iperf3: the client has terminated\n");
}

/// Keys of `start` that each test has, also a refused one.
const START: [&str; 7] =
    ["version", "system_info", "timestamp", "connecting_to", "cookie", "tcp_mss_default", "target_bitrate"];

#[test]
fn refused_tests_have_the_start_of_other_tests() {
    let server = Server::start(LINERATE, &["--server-bitrate-limit", "5M"]);
    let refused = run(server.client(LINERATE, &["-b", "20M", "-J"]), LIMIT).expect_code(1).json();
    for key in START.iter().chain(&["fq_rate"]) {
        assert!(refused["start"].get(key).is_some(), "no {key} in {:#}", refused["start"]);
    }
    assert_eq!(count(&refused, "/start/target_bitrate"), 20_000_000);
    assert!(array(&refused, "/start/connected").is_empty());
    // The stock iperf3 of the same server is the control.
    let control = run(server.client(STOCK, &["-b", "20M", "-J"]), LIMIT).json();
    for key in control["start"].as_object().expect("an object").keys() {
        assert!(refused["start"].get(key).is_some(), "no {key} in {:#}", refused["start"]);
    }
}

#[test]
fn a_servers_document_names_the_client_that_it_refused() {
    let server = Server::start(LINERATE, &["-1", "-J", "--server-bitrate-limit", "5M"]);
    run(server.client(STOCK, &["-b", "20M"]), LIMIT).expect_code(1);
    let document = server.finish(LIMIT).document();
    assert_eq!(text(&document, "/start/accepted_connection/host"), "127.0.0.1");
    assert_eq!(text(&document, "/error"), "error - total required bandwidth is larger than server limit");
}

#[test]
fn the_default_blocks_and_requested_buffers_are_those_of_iperf3() {
    let start = |client, server, arguments: &[&str]| {
        let (client, server) = documents(client, server, &[&SHORT[..], arguments].concat());
        let of = |document: &Value, key: &str| document.pointer(key).cloned();
        ["/start/test_start/blksize", "/start/sock_bufsize", "/start/sndbuf_actual", "/start/rcvbuf_actual"]
            .map(|key| (key, of(&client, key), of(&server, key)))
    };
    for arguments in [&["-u"][..], &["-u", "-R"], &["-w", "64K"], &["-u", "-w", "64K"]] {
        let control = start(STOCK, STOCK, arguments);
        for (client, server) in [(LINERATE, STOCK), (STOCK, LINERATE)] {
            for ((key, client_value, server_value), control) in start(client, server, arguments).iter().zip(&control) {
                // A receiver of datagrams without -w has a larger buffer.
                if !key.ends_with("_actual") || arguments.contains(&"-w") {
                    assert_eq!((client_value, server_value), (&control.1, &control.2), "{arguments:?}: {key}");
                }
            }
        }
    }
}

#[test]
fn the_send_buffer_is_that_of_the_established_connection() {
    let sndbuf = |client, server| count(&documents(client, server, &SHORT).0, "/start/sndbuf_actual");
    let (ours, control) = (sndbuf(LINERATE, STOCK), sndbuf(STOCK, STOCK));
    let default = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_wmem").expect("procfs");
    let default: u64 = default.split_whitespace().nth(1).and_then(|size| size.parse().ok()).expect("three numbers");
    assert_eq!(control, default, "the size before the connection");
    assert!(ours >= default, "{ours}: the kernel has enlarged it since");
}

#[test]
fn linerates_figures_are_the_last_member_and_move_no_event() {
    let server = Server::start(LINERATE, &[]);
    let client =
        |arguments: &[&str]| run(server.client(LINERATE, &[&SHORT[..], arguments].concat()), LIMIT).expect_code(0);
    let document = client(&["-J"]);
    let (_, last) = document.stdout.rsplit_once("\n\t\"").expect("members");
    assert!(last.starts_with("linerate\":"), "{last}");
    let stream = client(&["--json-stream", "-i", "0.5"]);
    let events: Vec<Value> = stream.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let names: Vec<&str> = events.iter().map(|event| text(event, "/event")).collect();
    assert_eq!(names, ["start", "interval", "interval", "end"]);
    let end = stream.stdout.lines().last().expect("an event");
    let (_, after) = end.split_once("\"linerate\":").expect("a member of the data of the end");
    assert!(!after.contains("\"cpu_utilization_percent\""), "it is the last one: {after}");
}

#[test]
fn a_servers_document_has_the_figures_of_the_client() {
    for (arguments, key) in [(&[][..], "/end/sum_sent/bytes"), (&["-R"], "/end/sum_received/bytes")] {
        let arguments = [&SHORT[..], arguments].concat();
        let (client, server) = documents(STOCK, LINERATE, &arguments);
        assert_eq!(count(&server, key), count(&client, key), "{key}");
        let (_, control) = documents(STOCK, STOCK, &arguments);
        assert_eq!(count(&control, key), 0, "{key}");
    }
}

/// Runs a client until the server has shown an interval, and ends the one or the other by a signal.
fn broken(client: Program, server: Program, signal: &str, of_server: bool) -> (FinishedChild, FinishedChild) {
    let server = Server::start(server, &["-1"]);
    let client = Process::start(server.client(client, &["-t", "30", "-b", "10M"]));
    client.wait_for_interval(1.0, LIMIT);
    if of_server {
        server.process.signal(signal);
    } else {
        client.signal(signal);
    }
    (client.finish(LIMIT), server.finish(LIMIT))
}

#[test]
fn ends_of_the_other_side_have_the_texts_of_iperf3() {
    for (signal, expected) in [
        ("INT", "iperf3: the client has terminated\n"),
        ("KILL", "iperf3: the client has unexpectedly closed the connection\n"),
    ] {
        for server in [LINERATE, STOCK] {
            let (_, ended) = broken(LINERATE, server, signal, false);
            assert_eq!(ended.stderr, expected, "{server:?}, {signal}");
        }
    }
}

#[test]
fn figures_that_never_arrived_are_not_zero() {
    let (ended, _) = broken(LINERATE, LINERATE, "KILL", true);
    assert!(ended.stdout.contains("(receiver statistics not available)"), "{}", ended.stdout);
    assert!(!ended.stdout.contains("0.00 Bytes"), "{}", ended.stdout);
}

#[test]
fn an_interrupted_server_without_a_client_prints_a_document() {
    for program in [LINERATE, STOCK] {
        let ended = Server::start(program, &["-J"]).stop();
        let document = ended.document();
        let error = text(&document, "/error");
        assert!(error.starts_with("interrupt - the server has terminated"), "{program:?}: {error}");
        assert_eq!((ended.stderr.as_str(), array(&document, "/intervals").len()), ("", 0), "{program:?}");
    }
}

#[test]
fn unknown_options_have_the_texts_of_iperf3() {
    for arguments in
        [&["-c", "host", "--nope"][..], &["-c", "host", "-y"], &["-c", "host", "-t"], &["-c", "host", "--bitrat"]]
    {
        let (ours, stock) = (run(LINERATE.with(arguments), LIMIT), run(STOCK.with(arguments), LIMIT));
        assert_eq!((ours.code(), stock.code()), (Some(1), Some(1)), "{arguments:?}");
        let first = |ended: &FinishedChild| ended.stderr.lines().next().map(|line| line.replace("/usr/bin/", ""));
        assert_eq!(first(&ours), first(&stock), "{arguments:?}");
    }
    // 3.12 calls it a TOS value.
    let expected = "iperf3: parameter error - bad DSCP value (numeric: 0-63 inclusive, symbolic: one of [af11-13, \
                    af21-23, af31-33, af41-43, cs1-7, ef, va, lowdelay, throughput, reliability])\n";
    for value in ["zz", "64"] {
        let refused = run(LINERATE.with(&["-c", "host", "--dscp", value]), LIMIT).expect_code(1);
        assert!(refused.stderr.starts_with(expected), "{}", refused.stderr);
    }
}

#[test]
fn a_surplus_argument_is_a_warning() {
    let server = Server::start(LINERATE, &[]);
    let ended = run(server.client(LINERATE, &["-n", "1K", "surplus"]), LIMIT).expect_code(0);
    assert!(ended.stderr.contains("ignored 'surplus'"), "{}", ended.stderr);
    run(server.client(STOCK, &["-n", "1K", "surplus"]), LIMIT).expect_code(0);
}

#[test]
fn states_and_documents_are_the_debugging_output() {
    let server = Server::start(LINERATE, &["-d"]);
    let ended = run(server.client(LINERATE, &[&SHORT[..], &["-d"]].concat()), LIMIT).expect_code(0);
    assert!(ended.stdout.contains("send_parameters:\n{"), "{}", ended.stdout);
    let shown = || server.process.stdout().contains("get_parameters:\n{");
    assert!(eventually(LIMIT, shown), "{}", server.process.stdout());
    assert!(ended.stdout.lines().count() < 60, "no line for each write: {}", ended.stdout);
}
