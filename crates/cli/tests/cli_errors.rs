//! Tests of errors as seen by scripts: texts, exit codes, and documents that stay valid.

use std::io::Read;
use std::process::Command;

use crate::support::document::{array, count, text};
use crate::support::pairing::LIMIT;
use crate::support::process::{SignalAtEnd, eventually, run};
use crate::support::server::connections;
use crate::support::{self, FinishedChild, Process, Program, Server};

const LINERATE: Program = Program::Linerate;

/// Arguments of a test without an end, at a rate that leaves the host idle.
const LONG: [&str; 4] = ["-t", "600", "-b", "20M"];

fn linerate(arguments: &[&str]) -> FinishedChild {
    run(LINERATE.with(arguments), LIMIT)
}

#[test]
fn wrong_arguments_are_refused_with_texts_of_iperf3() {
    let cases: &[(&[&str], &str)] = &[
        (&["-s", "-c", "host"], "cannot be both server and client"),
        (&["-t", "5"], "must either be a client (-c) or server (-s)"),
        (&["-s", "-t", "5"], "some option you are trying to set is client only"),
        (&["-c", "host", "-1"], "some option you are trying to set is server only"),
        (&["-c", "host", "-t", "86401"], "test duration valid values are 0 to 86400 seconds"),
        (&["-c", "host", "-P", "129"], "invalid number of parallel streams (min = 1, max = 128)"),
        (&["-c", "host", "-l", "2M"], "block size too large (maximum = 1048576 bytes)"),
        (&["-c", "host", "-w", "513M"], "socket buffer size too large (maximum = 536870912 bytes)"),
        (&["-c", "host", "-i", "61"], "invalid report interval (min = 0.1, max = 60 seconds)"),
        (&["-c", "host", "-M", "32768"], "TCP MSS too large (maximum = 32767 bytes)"),
        (&["-c", "host", "-O", "601"], "bogus value for --omit (maximum = 600 seconds)"),
        (&["-c", "host", "-b", "1M/1001"], "invalid burst count (maximum = 1000)"),
        (&["-c", "host", "-t", "1", "-n", "1"], "only one test end condition (-t, -n, -k) may be specified"),
        (&["-c", "host", "-u", "-l", "65508"], "block size invalid (minimum = 16 bytes, maximum = 65507 bytes)"),
        (&["-c", "host", "-S", "256"], "bad TOS value (must be between 0 and 255 inclusive)"),
        (&["-c", "host", "-f", "x"], "bad format specifier (valid formats are in the set [kmgtKMGT])"),
        (&["-c", "host", "-R", "--bidir"], "cannot be both reverse and bidirectional"),
        (&["-s", "-p", "0"], "port number must be between 1 and 65535 inclusive"),
    ];
    for (arguments, text) in cases {
        let refused = linerate(arguments).expect_code(1);
        assert_eq!(refused.stdout, "", "{arguments:?}");
        let lines: Vec<&str> = refused.stderr.lines().collect();
        let expected = format!("iperf3: parameter error - {text}");
        let usage = "Usage: iperf3 [-s|-c host] [options]";
        assert_eq!(lines, [&expected, "", usage, "Try `iperf3 --help' for more information."], "{arguments:?}");
    }
}

#[test]
fn the_same_arguments_are_refused_by_the_stock_iperf3_with_the_same_text() {
    let cases: &[&[&str]] = &[
        &["-s", "-c", "host"],
        &["-t", "5"],
        &["-s", "-t", "5"],
        &["-c", "host", "-1"],
        &["-c", "host", "-l", "2M"],
        &["-c", "host", "-w", "513M"],
        &["-c", "host", "-i", "61"],
        &["-c", "host", "-b", "1M/1001"],
        &["-c", "host", "-t", "1", "-n", "1"],
        &["-c", "host", "-u", "-l", "65508"],
        &["-c", "host", "-S", "256"],
        &["-c", "host", "-f", "x"],
        &["-c", "host", "-R", "--bidir"],
        &["-s", "-p", "0"],
    ];
    for arguments in cases {
        let (ours, stock) = (linerate(arguments), run(Program::Iperf3.with(arguments), LIMIT));
        assert_eq!(ours.code(), stock.code(), "{arguments:?}");
        assert_eq!(ours.stderr.lines().next(), stock.stderr.lines().next(), "{arguments:?}");
    }
}

#[test]
fn no_server_listens() {
    let port = support::free_port().to_string();
    let expected = "unable to connect to server - server may have stopped running or use a different port, firewall \
                    issue, etc.: Connection refused";
    let refused = linerate(&["-c", "127.0.0.1", "-p", &port]).expect_code(1);
    assert_eq!((refused.stdout.as_str(), refused.stderr), ("", format!("iperf3: error - {expected}\n")));

    let refused = linerate(&["-c", "127.0.0.1", "-p", &port, "-J"]).expect_code(1);
    assert_eq!(refused.stderr, "");
    let document = refused.json();
    assert_eq!(text(&document, "/error"), expected);
    assert!(array(&document, "/intervals").is_empty() && array(&document, "/start/connected").is_empty());
    assert_eq!(document["end"], serde_json::json!({}));

    let refused = linerate(&["-c", "127.0.0.1", "-p", &port, "--json-stream"]).expect_code(1);
    let events: Vec<serde_json::Value> =
        refused.stdout.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect();
    let error = events.iter().find(|event| event["event"] == "error").expect("an error event");
    assert_eq!(error["data"], expected);
}

#[test]
fn a_host_that_does_not_exist() {
    let refused = linerate(&["-c", "no-such-host.invalid"]).expect_code(1);
    assert!(refused.stderr.starts_with("iperf3: error - unable to connect to server"), "{}", refused.stderr);
}

#[test]
fn a_port_in_use() {
    let server = Server::start(LINERATE, &[]);
    let refused = linerate(&["-s", "-p", &server.port.to_string()]).expect_code(1);
    let expected = "iperf3: error - unable to start listener for connections: Address already in use";
    assert!(refused.stderr.starts_with(expected), "{}", refused.stderr);
    assert!(refused.stderr.ends_with("iperf3: exiting\n"), "{}", refused.stderr);
}

#[test]
fn a_port_in_use_is_an_error_in_a_servers_document() {
    let server = Server::start(LINERATE, &[]);
    let arguments = ["-s", "-p", &server.port.to_string(), "-J"];
    let refused = linerate(&arguments).expect_code(1);
    let document = refused.json();
    let expected = "error - unable to start listener for connections: Address already in use";
    assert_eq!(text(&document, "/error"), expected);
    assert!(array(&document, "/intervals").is_empty() && array(&document, "/start/connected").is_empty());
    assert_eq!(document["end"], serde_json::json!({}));
    let stock = run(Program::Iperf3.with(&arguments), LIMIT).expect_code(1);
    assert_eq!(text(&stock.json(), "/error"), expected);
    assert_eq!(refused.stderr, stock.stderr);

    let refused = linerate(&["-s", "-p", &server.port.to_string(), "--json-stream"]).expect_code(1);
    let first: serde_json::Value = serde_json::from_str(refused.stdout.lines().next().expect("a line")).expect("JSON");
    assert_eq!((first["event"].as_str(), first["data"].as_str()), (Some("error"), Some(expected)));
}

/// Server for one session at a time, and a client that occupies it.
fn busy_server() -> (Server, Process) {
    let server = Server::start(LINERATE, &["--max-sessions", "1"]);
    let busy = Process::start(server.client(LINERATE, &LONG));
    busy.wait_for_output("connected to", LIMIT);
    (server, busy)
}

#[test]
fn a_busy_server() {
    let (server, mut busy) = busy_server();
    let expected = "the server is busy running a test. try again later";
    for program in [LINERATE, Program::Iperf3] {
        let refused = run(server.client(program, &[]), LIMIT).expect_code(1);
        assert_eq!(refused.stderr, format!("iperf3: error - {expected}\n"), "{program:?}");
        let refused = run(server.client(program, &["-J"]), LIMIT);
        assert_eq!(text(&refused.json(), "/error"), expected, "{program:?}");
        // Before 3.17, iperf3 with -J always exits with 0.
        assert!(program == Program::Iperf3 || refused.code() == Some(1), "{refused:#?}");
    }
    assert!(busy.is_running(), "the first client was not disturbed");
    busy.signal("INT");
    busy.finish(LIMIT).expect_code(0);
    run(server.client(LINERATE, &["-n", "1M"]), LIMIT).expect_code(0);
}

#[test]
fn a_server_killed_in_the_middle() {
    for (arguments, json) in [(&LONG[..], false), (&[&LONG[..], &["-R"]].concat()[..], false), (&LONG[..], true)] {
        let server = Server::start(LINERATE, &[]);
        let json_option: &[&str] = if json { &["-J"] } else { &[] };
        let client = Process::start(server.client(LINERATE, &[arguments, json_option].concat()));
        if json {
            // It prints nothing before its end; the server's second interval ends after the client's first one.
            server.process.wait_for_interval(2.0, LIMIT);
        } else {
            client.wait_for_interval(1.0, LIMIT);
        }
        server.process.signal("KILL");
        let failed = client.finish(LIMIT).expect_code(1);
        if json {
            let document = failed.json();
            assert!(!text(&document, "/error").is_empty());
            assert!(!array(&document, "/intervals").is_empty(), "what was measured is kept");
            assert!(count(&document, "/end/sum_sent/bytes") > 0);
            assert_eq!(failed.stdout.matches("\"error\"").count(), 1);
        } else {
            assert!(failed.stderr.starts_with("iperf3: error - "), "{failed:#?}");
            assert!(failed.stdout.contains(" 0.00-1."), "the interval that was over is shown: {failed:#?}");
        }
    }
}

#[test]
fn an_interrupted_document_has_the_intervals_of_the_server() {
    let server = Server::start(LINERATE, &[]);
    let client = Process::start(server.client(LINERATE, &[&LONG[..], &["-J"]].concat()));
    server.process.wait_for_interval(2.0, LIMIT);
    client.signal("INT");
    let document = client.finish(LIMIT).json();
    assert!(!array(&document, "/linerate/far_intervals").is_empty());
}

#[test]
fn an_interrupted_client_prints_a_summary() {
    for (server_program, signal, name) in
        [(LINERATE, "INT", "Interrupt(2)"), (Program::Iperf3, "TERM", "Terminated(15)"), (LINERATE, "HUP", "Hangup(1)")]
    {
        let server = Server::start(server_program, &[]);
        let client = Process::start(server.client(LINERATE, &LONG));
        client.wait_for_interval(1.0, LIMIT);
        client.signal(signal);
        let ended = client.finish(LIMIT).expect_code(0);
        let expected = format!("iperf3: interrupt - the client has terminated by signal {name}\n");
        assert_eq!(ended.stderr, expected);
        let (_, summary) = ended.stdout.split_once("- - - -").expect("a summary");
        assert!(summary.contains("sender"), "{}", ended.stdout);
        assert!(!ended.stdout.contains("iperf Done."), "{}", ended.stdout);
        let words = "the client has terminated";
        let told = || server.process.stdout().contains(words) || server.process.stderr().contains(words);
        assert!(eventually(LIMIT, told), "{:?}", server.process);
        run(server.client(LINERATE, &["-n", "1M"]), LIMIT).expect_code(0);
    }
}

#[test]
fn an_interrupted_client_leaves_a_valid_document() {
    let server = Server::start(LINERATE, &["-J"]);
    let client = Process::start(server.client(LINERATE, &[&LONG[..], &["-J", "-i", "0.1"]].concat()));
    assert!(eventually(LIMIT, || connections(server.port) == 2), "a control connection and a stream");
    // Neither prints anything before its end; another test is the clock.
    let clock = Server::start(LINERATE, &[]);
    run(clock.client(LINERATE, &["-t", "1", "-b", "1M"]), LIMIT).expect_code(0);
    client.signal("INT");
    let ended = client.finish(LIMIT).expect_code(0);
    let document = ended.json();
    assert_eq!(text(&document, "/error"), "interrupt - the client has terminated by signal Interrupt(2)");
    assert!(count(&document, "/end/sum_sent/bytes") > 0);
    assert!(!array(&document, "/intervals").is_empty());
    // The end of the server has a document of its own, as in iperf3.
    let theirs = server.stop().documents();
    assert_eq!(theirs.len(), 2);
    assert_eq!(text(&theirs[0], "/error"), "the client has terminated");
    assert!(count(&theirs[0], "/end/sum_received/bytes") > 0);
}

#[test]
fn an_interrupted_stock_client_is_distinguished_from_a_broken_one() {
    let server = Server::start(LINERATE, &[]);
    let client = Process::start(server.client(Program::Iperf3, &LONG));
    server.process.wait_for_interval(1.0, LIMIT);
    client.signal("INT");
    client.finish(LIMIT);
    let theirs = server.stop();
    assert!(theirs.stderr.contains("iperf3: the client has terminated\n"), "{theirs:#?}");
    assert!(theirs.stdout.contains("receiver"), "the statistics so far are shown: {theirs:#?}");
}

#[test]
fn an_interrupted_server_notifies_its_clients() {
    let server = Server::start(LINERATE, &[]);
    let text_client = Process::start(server.client(LINERATE, &LONG));
    let json_client = Process::start(server.client(LINERATE, &[&LONG[..], &["-J"]].concat()));
    let stock_client = Process::start(server.client(Program::Iperf3, &LONG));
    let first_intervals = || server.process.intervals().iter().filter(|(from, _)| *from == 0.0).count();
    assert!(eventually(LIMIT, || first_intervals() == 3), "{:?}", server.process);
    let ended = server.stop().expect_code(0);
    assert_eq!(ended.stderr, "iperf3: interrupt - the server has terminated by signal Interrupt(2)\n");
    assert_eq!(ended.stdout.matches("receiver").count(), 3, "statistics of all three tests: {}", ended.stdout);

    let client = text_client.finish(LIMIT).expect_code(1);
    assert_eq!(client.stderr, "iperf3: error - the server has terminated\n");
    assert!(client.stdout.contains("sender"), "its statistics: {}", client.stdout);
    let client = json_client.finish(LIMIT).expect_code(1);
    assert_eq!(text(&client.json(), "/error"), "the server has terminated");
    let client = stock_client.finish(LIMIT).expect_code(1);
    assert!(client.stderr.contains("the server has terminated"), "{client:#?}");
}

#[test]
fn a_server_that_is_interrupted_while_idle() {
    let ended = Server::start(LINERATE, &[]).stop().expect_code(0);
    assert_eq!(ended.stderr, "iperf3: interrupt - the server has terminated by signal Interrupt(2)\n");
}

#[test]
fn an_interrupted_stock_server_ends_our_client() {
    let server = Server::start(Program::Iperf3, &[]);
    let client = Process::start(server.client(LINERATE, &LONG));
    client.wait_for_interval(1.0, LIMIT);
    server.stop();
    let client = client.finish(LIMIT).expect_code(1);
    assert_eq!(client.stderr, "iperf3: error - the server has terminated\n");
    assert!(client.stdout.contains("sender"), "{}", client.stdout);
}

/// Runs a shell line, in which `$LINERATE` is the program.
fn shell(line: &str) -> FinishedChild {
    let mut command = Command::new("bash");
    command.args(["-c", line]).env("LINERATE", env!("CARGO_BIN_EXE_linerate"));
    run(command, LIMIT)
}

#[test]
fn a_closed_pipe_is_no_error() {
    let server = Server::start(LINERATE, &[]);
    for options in ["", "-J", "--json-stream", "-V"] {
        let port = server.port;
        let line = format!(
            "set -o pipefail; \"$LINERATE\" iperf3 -c 127.0.0.1 -p {port} -t 1 -i 0.1 -b 10M {options} | head -1"
        );
        let ended = shell(&line);
        assert_eq!(ended.stdout.lines().count(), 1, "{ended:#?}");
        assert!(!ended.stderr.contains("panic"), "{ended:#?}");
        assert!(matches!(ended.code(), Some(0 | 141)), "{ended:#?}");
    }
    shell("\"$LINERATE\" iperf3 --help | head -1").expect_code(0);
    // The server has seen whole tests.
    let ended = server.stop().expect_code(0);
    assert!(!ended.stderr.contains("error"), "{ended:#?}");
}

#[test]
fn a_server_with_a_closed_pipe_continues_to_serve() {
    let port = support::free_port();
    let mut command = Command::new("bash");
    let line = format!("exec 3>&1; \"$LINERATE\" iperf3 -s -p {port} > >(head -1 >/dev/null) & echo $! >&3; wait");
    command.args(["-c", &line]).env("LINERATE", env!("CARGO_BIN_EXE_linerate"));
    let shell = Server::listening(command, port);
    let id: u32 = shell.process.stdout().trim().parse().expect("the server's process number");
    let _server = SignalAtEnd(id, "TERM");
    for _ in 0..2 {
        run(shell.client(LINERATE, &["-n", "1M"]), LIMIT).expect_code(0);
    }
}

#[test]
fn a_client_reports_a_connection_timeout() {
    // A listener that never answers.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a listener");
    let port = listener.local_addr().expect("its address").port().to_string();
    let client = Process::start(LINERATE.with(&["-c", "127.0.0.1", "-p", &port]));
    let (mut silent, _) = listener.accept().expect("the client connects");
    silent.read_exact(&mut [0; 37]).expect("its cookie");
    client.signal("INT");
    let ended = client.finish(LIMIT).expect_code(0);
    assert_eq!(ended.stderr, "iperf3: interrupt - the client has terminated by signal Interrupt(2)\n");
}
