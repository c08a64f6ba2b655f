//! Tests of options for the output, server limits, payload, and local address.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::document::{array, count, number, text};
use crate::support::pairing::{LIMIT, PAIRINGS, Run, undisturbed};
use crate::support::process::{SignalAtEnd, eventually, run};
use crate::support::{self, FinishedChild, Process, Program, Scratch, Server};

const LINERATE: Program = Program::Linerate;

/// Arguments of a small test: a second at 10 Mbit/s.
const SMALL: [&str; 4] = ["-t", "1", "-b", "10M"];

/// Runs a client and a server of linerate with these options, and returns both results.
fn pair(client: &[&str], server: &[&str]) -> (FinishedChild, FinishedChild) {
    let pair = Run { client: &[&SMALL[..], client].concat(), server, ..Run::default() }.run(PAIRINGS[0]);
    (pair.client, pair.server)
}

#[test]
fn log_file() {
    let scratch = Scratch::new();
    let (client_log, server_log) = (scratch.path("client.log"), scratch.path("server.log"));
    for _ in 0..2 {
        let (client, server) = pair(&["--logfile", &client_log], &["--logfile", &server_log]);
        assert_eq!((client.stdout.as_str(), server.stdout.as_str()), ("", ""));
    }
    let read = |path: &str| std::fs::read_to_string(path).expect("a log file");
    assert_eq!(read(&client_log).matches("iperf Done.").count(), 2, "the second run was appended");
    assert_eq!(read(&server_log).matches("Server listening on").count(), 2);
    // Errors go to the log file, too.
    let port = support::free_port().to_string();
    let refused = run(LINERATE.with(&["-c", "127.0.0.1", "-p", &port, "--logfile", &client_log]), LIMIT).expect_code(1);
    assert_eq!((refused.stdout.as_str(), refused.stderr.as_str()), ("", ""));
    assert!(read(&client_log).contains("iperf3: error - unable to connect to server"));
    let refused = run(LINERATE.with(&["-c", "127.0.0.1", "--logfile", "/nonexistent/log"]), LIMIT).expect_code(1);
    assert!(refused.stderr.starts_with("iperf3: error - unable to open log file"), "{}", refused.stderr);
}

#[test]
fn timestamps() {
    let (client, server) = pair(&["--timestamps=%Y-%m-%dT%H:%M:%S "], &["--timestamps=<%s> "]);
    for line in client.stdout.lines().filter(|line| !line.trim().is_empty()) {
        let (time, rest) = line.split_at(20);
        assert!(time.starts_with("20") && time.as_bytes()[10] == b'T' && time.ends_with(' '), "{line:?}");
        assert!(!rest.starts_with("20"), "{line:?}");
    }
    for line in server.stdout.lines().filter(|line| !line.is_empty()) {
        let (time, _) = line.strip_prefix('<').and_then(|line| line.split_once("> ")).expect("a time");
        assert!(time.parse::<u64>().is_ok_and(|time| time > 1_600_000_000), "{line:?}");
    }
}

#[test]
fn title() {
    let (client, server) = pair(&["-T", "uplink"], &[]);
    for line in client.stdout.lines() {
        assert!(line.starts_with("uplink:  "), "{line:?}");
    }
    assert!(!server.stdout.contains("uplink:"), "{}", server.stdout);
    let (client, _) = pair(&["-T", "red\u{1b}[31m"], &[]);
    assert!(!client.stdout.contains('\u{1b}'), "an escape sequence is not printed: {}", client.stdout);
}

#[test]
fn extra_data_and_title_in_json() {
    let (client, server) = pair(&["-J", "-T", "t", "--extra-data", "line 1\nline \"2\""], &["-J"]);
    assert_eq!(text(&client.json(), "/extra_data"), "line 1\nline \"2\"");
    assert_eq!(text(&server.json(), "/extra_data"), "line 1\nline \"2\"");
    assert_eq!(text(&client.json(), "/title"), "t");
}

#[test]
fn pid_file() {
    let scratch = Scratch::new();
    let path = scratch.path("pid");
    let server = Server::start(LINERATE, &["-I", &path]);
    let written = || std::fs::read_to_string(&path).unwrap_or_default();
    let expected = server.process.id().to_string();
    assert!(eventually(LIMIT, || written().trim_matches(['\n', '\0']) == expected), "{:?}", written());
    let client_path = scratch.path("client");
    let client = Process::start(server.client(LINERATE, &[&SMALL[..], &["-I", &client_path]].concat()));
    assert!(eventually(LIMIT, || std::path::Path::new(&client_path).exists()));
    client.finish(LIMIT).expect_code(0);
    assert!(!std::path::Path::new(&client_path).exists(), "removed at the end");
    server.stop().expect_code(0);
    assert!(!std::path::Path::new(&path).exists(), "removed at the end");
}

#[test]
fn daemon() {
    let scratch = Scratch::new();
    let (pid, log) = (scratch.path("pid"), scratch.path("log"));
    let port = support::free_port();
    let line = port.to_string();
    let started = run(LINERATE.with(&["-s", "-p", &line, "-D", "-I", &pid, "--logfile", &log]), LIMIT).expect_code(0);
    assert_eq!((started.stdout.as_str(), started.stderr.as_str()), ("", ""));
    let id = || std::fs::read_to_string(&pid).ok()?.trim_matches(['\n', '\0']).parse::<u32>().ok();
    assert!(eventually(LIMIT, || id().is_some() && support::server::is_listening(port)));
    let id = id().expect("a process number");
    let daemon = SignalAtEnd(id, "TERM");
    run(LINERATE.with(&["-c", "127.0.0.1", "-p", &line, "-n", "1M"]), LIMIT).expect_code(0);
    drop(daemon);
    let gone = || !std::path::Path::new(&format!("/proc/{id}")).exists();
    assert!(eventually(LIMIT, gone), "the daemon ends on a signal");
    assert!(std::fs::read_to_string(&log).expect("a log").contains("Accepted connection from"));
    assert!(!std::path::Path::new(&pid).exists());
}

#[test]
fn a_daemon_reports_that_it_cannot_listen() {
    let server = Server::start(LINERATE, &[]);
    let refused = run(LINERATE.with(&["-s", "-D", "-p", &server.port.to_string()]), LIMIT).expect_code(1);
    assert!(refused.stderr.contains("Address already in use"), "{refused:#?}");
}

#[test]
fn idle_timeout_ends_a_one_off_server() {
    let start = Instant::now();
    let server = Server::start(LINERATE, &["-1", "--idle-timeout", "1"]);
    server.finish(LIMIT).expect_code(0);
    assert!(start.elapsed() >= Duration::from_millis(900), "{:?}", start.elapsed());
    // A client that connects in time is served, and its test is not cut short.
    let server = Server::start(LINERATE, &["-1", "--idle-timeout", "4"]);
    run(server.client(LINERATE, &["-t", "5", "-b", "10M"]), LIMIT).expect_code(0);
    server.finish(LIMIT).expect_code(0);
}

#[test]
fn idle_timeout_does_not_end_a_persistent_server() {
    let mut server = Server::start(LINERATE, &["--idle-timeout", "1"]);
    // Its own timeout is over when that of a later server is.
    Server::start(LINERATE, &["-1", "--idle-timeout", "1"]).finish(LIMIT).expect_code(0);
    assert!(server.process.is_running());
    run(server.client(LINERATE, &["-n", "1M"]), LIMIT).expect_code(0);
}

/// Parses the events of `--json-stream`: names and data, in order.
fn events(output: &str) -> Vec<(String, Value)> {
    let parse = |line: &str| {
        let event: Value = serde_json::from_str(line).unwrap_or_else(|cause| panic!("{cause}: {line}"));
        (text(&event, "/event").to_owned(), event["data"].clone())
    };
    output.lines().map(parse).collect()
}

#[test]
fn json_stream() {
    let server = Server::start(LINERATE, &[]);
    let arguments = ["-t", "2", "-b", "10M", "--json-stream", "--get-server-output"];
    let mut client = Process::start(server.client(LINERATE, &arguments));
    client.wait_for_output("\"interval\"", LIMIT);
    assert!(client.is_running(), "an interval is printed when it is over, not at the end");
    let output = client.finish(LIMIT).expect_code(0).stdout;
    let events = events(&output);
    let names: Vec<&str> = events.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["start", "interval", "interval", "server_output_text", "end"]);
    assert_eq!(count(&events[0].1, "/test_start/duration"), 2);
    assert!(count(&events[1].1, "/sum/bytes") > 0);
    assert!(events[3].1.as_str().is_some_and(|text| text.contains("receiver")));
    assert!(count(&events[4].1, "/sum_sent/bytes") > 0);
    assert_eq!(count(&events[4].1, "/linerate/schema"), 1);
}

#[test]
fn json_stream_with_full_output() {
    let (client, _) = pair(&["--json-stream", "--json-stream-full-output"], &[]);
    let (stream, document) = client.stdout.split_once("\n{\n").expect("events, then a document");
    assert_eq!(events(stream).last().expect("events").0, "end");
    let document: Value = serde_json::from_str(&format!("{{\n{document}")).expect("a document");
    assert_eq!(array(&document, "/intervals").len(), 1);
}

#[test]
fn json_stream_of_a_server() {
    let (_, server) = pair(&[], &["--json-stream"]);
    let names: Vec<String> = events(&server.stdout).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["start", "interval", "end"]);
}

#[test]
fn a_server_refuses_more_than_its_rate() {
    let server = Server::start(LINERATE, &["--server-bitrate-limit", "50M"]);
    let expected = "total required bandwidth is larger than server limit";
    for arguments in [&["-b", "51M"][..], &["-b", "20M", "-P", "3"], &["-b", "30M", "--bidir"], &["-u", "-b", "60M"]] {
        for program in [LINERATE, Program::Iperf3] {
            let refused = run(server.client(program, arguments), LIMIT).expect_code(1);
            assert!(refused.stderr.contains(expected), "{refused:#?}");
            assert!(!refused.stdout.contains("connected to"), "refused before its streams: {refused:#?}");
        }
    }
    run(server.client(LINERATE, &["-t", "1", "-b", "20M"]), LIMIT).expect_code(0);
    let ended = server.stop().expect_code(0);
    assert!(ended.stderr.contains(&format!("iperf3: error - {expected}")), "{ended:#?}");
}

#[test]
fn a_burst_of_many_blocks_leaves_whole() {
    let server = Server::start(LINERATE, &[]);
    for arguments in [&["-b", "200M/100"][..], &["-b", "200M/100", "-Z"]] {
        let arguments = [arguments, &["-t", "2", "-J"]].concat();
        undisturbed(|| {
            let document = run(server.client(LINERATE, &arguments), LIMIT).expect_code(0).json();
            // A burst lasts half a second: three to five of them begin in two seconds.
            let megabits = number(&document, "/end/sum_sent/bits_per_second") / 1e6;
            assert!((150.0..=270.0).contains(&megabits), "{arguments:?}: {megabits} Mbit/s");
        });
    }
}

#[test]
fn a_server_ends_a_test_that_is_faster_than_it_allows() {
    let server = Server::start(LINERATE, &["--server-bitrate-limit", "50M/0.5"]);
    let expected = "total required bandwidth is larger than server limit";
    for program in [LINERATE, Program::Iperf3] {
        let ended = run(server.client(program, &["-t", "600"]), LIMIT).expect_code(1);
        assert!(ended.stderr.contains(expected), "{ended:#?}");
    }
    let ended = run(server.client(LINERATE, &["-t", "10", "-J"]), LIMIT).expect_code(1);
    let document = ended.json();
    assert_eq!(text(&document, "/error"), expected);
    assert_eq!(ended.stdout.matches("\"error\"").count(), 1);
    assert!(count(&document, "/end/sum_sent/bytes") > 0, "what was measured is kept");
    run(server.client(LINERATE, &["-t", "1", "-b", "20M"]), LIMIT).expect_code(0);
}

/// Paced sending of the server: nothing has to end.
#[test]
fn a_server_sends_no_faster_than_it_allows() {
    let server = Server::start(LINERATE, &["--server-bitrate-limit", "50M/0.5"]);
    let ended = run(server.client(LINERATE, &["-t", "2", "-R", "-J"]), LIMIT).expect_code(0);
    // The first burst fills the sockets' buffers.
    let rate = number(&ended.json(), "/end/sum_received/bits_per_second");
    assert!((20e6..=55e6).contains(&rate), "{rate} bit/s");
}

#[test]
fn a_server_refuses_tests_that_are_too_long() {
    let server = Server::start(LINERATE, &["--server-max-duration", "3"]);
    let expected = "client's requested duration exceeds the server's maximum permitted limit";
    for arguments in [&["-t", "4"][..], &["-t", "3", "-O", "1"], &["-n", "1M"], &["-t", "0"]] {
        let refused = run(server.client(LINERATE, arguments), LIMIT).expect_code(1);
        let lines: Vec<&str> = refused.stderr.lines().collect();
        let expected = [format!("iperf3: SERVER ERROR - {expected}"), format!("iperf3: error - {expected}")];
        assert_eq!(lines, expected, "{arguments:?}");
        // Stock clients before 3.20 report an unknown code.
        run(server.client(Program::Iperf3, arguments), LIMIT).expect_code(1);
    }
    run(server.client(LINERATE, &SMALL), LIMIT).expect_code(0);
    run(server.client(Program::Iperf3, &SMALL), LIMIT).expect_code(0);
}

/// Bytes that differ from their neighbours, so that shifts and gaps are detected.
fn content(length: usize) -> Vec<u8> {
    (0..length as u64)
        .flat_map(|index| (index.wrapping_mul(0x9e37_79b9_7f4a_7c15)).to_le_bytes())
        .take(length)
        .collect()
}

#[test]
fn a_file_arrives_as_it_was_sent() {
    let scratch = Scratch::new();
    for (number, length) in [3_000_000, 131_072, 1].into_iter().enumerate() {
        for zero_copy in [&[][..], &["-Z"]] {
            let source = scratch.file("source", content(length));
            let sink = scratch.path(&format!("sink{number}{}", zero_copy.len()));
            let client = [&["-F", &source, "-J"][..], zero_copy].concat();
            let server = ["-F", &sink, "-J"];
            let pair = Run { client: &client, server: &server, ..Run::default() }.run(PAIRINGS[0]);
            let received = std::fs::read(&sink).expect("a received file");
            assert!(received == content(length), "{length} bytes, {zero_copy:?}: {} arrived", received.len());
            let document = pair.client.json();
            assert_eq!(count(&document, "/end/sum_sent/bytes"), length as u64);
            let disk = "/end/streams/0/diskfile";
            assert_eq!(count(&document, &format!("{disk}/size")), length as u64);
            assert_eq!(count(&document, &format!("{disk}/sent")), length as u64);
            assert_eq!(text(&document, &format!("{disk}/filename")), source);
        }
    }
}

#[test]
fn a_file_arrives_in_reverse() {
    let scratch = Scratch::new();
    let (source, sink) = (scratch.file("source", content(3_000_000)), scratch.path("sink"));
    let server = Server::start(LINERATE, &["-F", &source]);
    let client = ["-F", &sink, "-R", "-n", "3000000"];
    run(server.client(LINERATE, &client), LIMIT).expect_code(0);
    assert!(std::fs::read(&sink).expect("a received file") == content(3_000_000));
}

#[test]
fn a_file_arrives_between_linerate_and_iperf3() {
    let scratch = Scratch::new();
    let source = scratch.file("source", content(3_000_000));
    for pairing in [PAIRINGS[1], PAIRINGS[2]] {
        let sink = scratch.path(&format!("{:?}", pairing.server));
        let run = Run { client: &["-F", &source, "-n", "3000000"], server: &["-F", &sink], ..Run::default() };
        // On a busy host, the stock server stops reading before its first read, and the stock client reads the file over what
        // the socket did not take (diskfile_send()).
        let whole = pairing.server == LINERATE;
        let is_right = |received: &Vec<u8>| {
            !received.is_empty() && content(3_000_000).starts_with(received) && (!whole || received.len() == 3_000_000)
        };
        let mut received = (0..10).map(|_| {
            run.run(pairing);
            std::fs::read(&sink).expect("a received file")
        });
        assert!(received.any(|received| is_right(&received)), "{pairing}: the file arrived in none of ten runs");
    }
}

#[test]
fn a_file_in_text() {
    let scratch = Scratch::new();
    let source = scratch.file("source", content(2 << 20));
    let server = Server::start(LINERATE, &[]);
    for program in [LINERATE, Program::Iperf3] {
        let ended = run(server.client(program, &["-F", &source]), LIMIT).expect_code(0);
        let expected = format!("        Sent 2.00 MByte / 2.00 MByte (100%) of {source}");
        assert!(ended.stdout.contains(&expected), "{program:?}: {}", ended.stdout);
    }
    let refused = run(server.client(LINERATE, &["-F", "/nonexistent/file"]), LIMIT).expect_code(1);
    assert!(refused.stderr.contains("No such file or directory"), "{}", refused.stderr);
    let refused = run(LINERATE.with(&["-c", "127.0.0.1", "-u", "-F", &source]), LIMIT).expect_code(1);
    assert!(refused.stderr.starts_with("iperf3: parameter error - "), "{}", refused.stderr);
}

#[test]
fn the_client_ports_can_be_chosen() {
    for protocol in [&[][..], &["-u"]] {
        // Two consecutive ports; the server uses a later one.
        let port = support::free_port();
        support::free_port();
        let first = port.to_string();
        let (client, server) = pair(&[&["--cport", &first, "-P", "2", "-J"][..], protocol].concat(), &["-J"]);
        let document = client.json();
        let ports: Vec<u64> =
            array(&document, "/start/connected").iter().map(|stream| count(stream, "/local_port")).collect();
        assert_eq!(ports, [u64::from(port), u64::from(port) + 1]);
        let server = server.json();
        let seen: Vec<u64> =
            array(&server, "/start/connected").iter().map(|stream| count(stream, "/remote_port")).collect();
        assert_eq!(seen, ports);
    }
}

#[test]
fn addresses_can_be_bound() {
    let server = Server::start(LINERATE, &["-B", "127.0.0.2"]);
    let small = [&SMALL[..], &["-J"]].concat();
    run(server.client(LINERATE, &SMALL), LIMIT).expect_code(1);
    for program in [LINERATE, Program::Iperf3] {
        let client = server.client_of("127.0.0.2", program, &[&small[..], &["-B", "127.0.0.3"]].concat());
        let document = run(client, LIMIT).expect_code(0).json();
        assert_eq!(text(&document, "/start/connected/0/local_host"), "127.0.0.3");
        assert_eq!(text(&document, "/start/connected/0/remote_host"), "127.0.0.2");
    }
    let refused = run(server.client_of("127.0.0.2", LINERATE, &["-B", "192.0.2.1"]), LIMIT).expect_code(1);
    assert!(refused.stderr.contains("Cannot assign requested address"), "{}", refused.stderr);
}

#[test]
fn a_device_can_be_bound() {
    let server = Server::start(LINERATE, &["--bind-dev", "lo"]);
    for arguments in [&["--bind-dev", "lo"][..], &["--bind-dev", "lo", "-u"], &["-B", "127.0.0.1%lo"]] {
        run(server.client(LINERATE, &[&SMALL[..], arguments].concat()), LIMIT).expect_code(0);
    }
    run(server.client_of("127.0.0.1%lo", LINERATE, &SMALL), LIMIT).expect_code(0);
    let refused = run(server.client(LINERATE, &["--bind-dev", "no-such-device"]), LIMIT).expect_code(1);
    assert!(refused.stderr.starts_with("iperf3: error - "), "{}", refused.stderr);
}

#[test]
fn the_program_name_iperf3_selects_its_command_line() {
    let scratch = Scratch::new();
    let link = scratch.path("iperf3");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_linerate"), &link).expect("a link");
    let program = || std::process::Command::new(&link);
    let server = Server::start_with(program(), &["-1"]);
    let mut client = program();
    client.args(["-c", "127.0.0.1", "-p", &server.port.to_string(), "-t", "1", "-b", "10M", "-J"]);
    let document = run(client, LIMIT).expect_code(0).json();
    assert!(count(&document, "/end/sum_received/bytes") > 0);
    server.finish(LIMIT).expect_code(0);
    let mut version = program();
    version.arg("-v");
    let version = run(version, LIMIT).expect_code(0);
    assert!(version.stdout.starts_with("iperf 3."), "{}", version.stdout);
    assert!(version.stdout.contains("Optional features available: "), "{}", version.stdout);
    let mut wrong = program();
    wrong.arg("--no-such-option");
    run(wrong, LIMIT).expect_code(1);
}

#[test]
fn help_and_version() {
    for option in ["-h", "--help", "-v", "--version"] {
        let told = run(LINERATE.with(&[option]), LIMIT).expect_code(0);
        assert!(!told.stdout.is_empty() && told.stderr.is_empty(), "{told:#?}");
    }
    let help = run(LINERATE.with(&["--help"]), LIMIT).stdout;
    for option in
        ["--port", "--bidir", "--get-server-output", "--json-stream", "--server-max-duration", "--max-sessions"]
    {
        assert!(help.contains(option), "{option} is not in the help");
    }
}

#[test]
fn long_options_may_be_abbreviated() {
    let server = Server::start(LINERATE, &["--one-o"]);
    let ambiguous = run(server.client(LINERATE, &["--tim", "1"]), LIMIT).expect_code(1);
    assert!(ambiguous.stderr.starts_with("iperf3: option '--tim' is ambiguous"), "{ambiguous:#?}");
    run(server.client(LINERATE, &["--bytes", "1M", "--bitr", "10M", "--paral", "2"]), LIMIT).expect_code(0);
    server.finish(LIMIT).expect_code(0);
}

#[test]
fn intervals_can_be_short() {
    let (client, server) = pair(&["-i", "0.1", "-J"], &["-i", "0.25", "-J"]);
    let intervals = |document: &Value| {
        array(document, "/intervals").iter().map(|interval| number(interval, "/sum/seconds")).collect::<Vec<_>>()
    };
    // On a busy machine one that is late by more than its length takes the next one's place, and the end comes late.
    for (document, most, end) in [(client.json(), 10, "sum_sent"), (server.json(), 4, "sum_received")] {
        let (lengths, whole) = (intervals(&document), number(&document, &format!("/end/{end}/seconds")));
        assert!((2..=most).contains(&lengths.len()), "{lengths:?}");
        assert!(whole > 0.9 && (lengths.iter().sum::<f64>() - whole).abs() < 0.01, "{lengths:?} of {whole} s");
    }
}

#[test]
fn a_server_with_tls_prints_its_pin_and_serves_only_clients_with_it() {
    let port = support::free_port().to_string();
    let mut serve = support::linerate();
    serve.args(["serve", "--tls", "--no-stamp", "-B", "127.0.0.1", "-p", &port]);
    let server = Process::start(serve);
    assert!(eventually(LIMIT, || server.stderr().contains("--tls-pin sha256//")), "{}", server.stderr());
    let printed = server.stderr();
    assert!(printed.contains(&format!("serves linerate clients with TLS on port {port}")), "{printed}");
    let pin = printed.split("--tls-pin ").nth(1).and_then(|text| text.split_whitespace().next()).expect("a pin");
    let measure = |arguments: &[&str]| {
        let mut client = support::linerate();
        client.args(["test", "127.0.0.1", "-p", &port, "-t", "1s", "--quiet", "--brief"]).args(arguments);
        run(client, LIMIT)
    };
    let measured = measure(&["--tls-pin", pin]).expect_code(0);
    assert!(measured.stdout.contains("bit/s"), "{measured:#?}");
    let other = format!("sha256//{}=", "A".repeat(43));
    for (arguments, remedy) in [
        (&[][..], "--shared-key-file"),
        (&["--tls-pin", &other], "keep one by --tls-key FILE there"),
        (&["--tls-ca", "/nonexistent/ca.pem"], "reading /nonexistent/ca.pem: No such file"),
    ] {
        let refused = measure(arguments);
        assert_ne!(refused.code(), Some(0), "{arguments:?}");
        assert!(refused.stderr.contains(remedy), "{arguments:?}: {refused:#?}");
    }
    let refused = run(LINERATE.with(&["-c", "127.0.0.1", "-p", &port]), LIMIT).expect_code(1);
    assert!(refused.stderr.contains("test authorization failed"), "{refused:#?}");
    server.signal("INT");
    let end = server.finish(LIMIT).expect_code(0);
    assert!(end.stderr.contains("refused 127.0.0.1: a client without TLS"), "{end:#?}");
}

#[test]
fn a_short_shared_key_is_refused() {
    let scratch = Scratch::new();
    let key = scratch.file("key", "fifteen bytes..\n");
    let mut serve = support::linerate();
    serve.args(["serve", "-p", "0", "--shared-key-file", &key]);
    let refused = run(serve, LIMIT);
    assert_ne!(refused.code(), Some(0));
    assert!(refused.stderr.contains("the shared key has 15 bytes, which can be guessed, and needs 16"), "{refused:#?}");
}
