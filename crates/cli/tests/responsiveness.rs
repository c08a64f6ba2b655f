//! Responsiveness over HTTP/2: `linerate serve --responsiveness` and `linerate load https://…`, with each other, with programs that are
//! not linerate's, and with peers that break the protocol.
//!
//! goresponsiveness is in no registry: `LINERATE_NETWORK_QUALITY` names its program (`go build networkQuality.go`).

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::support::document::{array, count, number, text};
use crate::support::process::{eventually, run};
use crate::support::{Process, Server, free_port, linerate};

const LIMIT: Duration = Duration::from_secs(90);

/// Shortest stages.
const SHORT: [&str; 6] = ["--time", "2s", "--idle", "1s", "--ramp", "2s"];

/// A linerate that serves responsiveness tests.
struct ResponsivenessServer {
    server: Server,
    port: u16,
    pin: String,
}

impl ResponsivenessServer {
    fn start(arguments: &[&str]) -> Self {
        let (control, port) = (free_port(), free_port());
        let mut command = linerate();
        command.args(["serve", "--port", &control.to_string(), "--no-stamp"]);
        command.args([format!("--responsiveness={port}").as_str()]).args(arguments);
        let server = Server::listening(command, control);
        assert!(eventually(LIMIT, || server.process.stderr().contains("sha256//")), "{}", server.process.stderr());
        let pin = pin_in(&server.process.stderr());
        Self { server, port, pin }
    }

    fn load(&self, arguments: &[&str]) -> Command {
        load(&format!("https://127.0.0.1:{}/config", self.port), &self.pin, arguments)
    }
}

fn pin_in(output: &str) -> String {
    let pin = output.split_whitespace().find(|word| word.starts_with("sha256//"));
    pin.unwrap_or_else(|| panic!("no pin: {output}")).trim_end_matches(')').to_owned()
}

fn load(url: &str, pin: &str, arguments: &[&str]) -> Command {
    let mut command = linerate();
    command.args(["load", url, "--quiet", "--tls-pin", pin]).args(SHORT).args(arguments);
    command
}

/// Checks the parts that each test has, whatever the server.
fn check(document: &Value, phases: &[&str]) {
    assert_eq!((text(document, "/peer"), text(document, "/http/tls_version")), ("http", "1.3"));
    assert_eq!(text(document, "/responsiveness/method"), "draft-ietf-ippm-responsiveness-09-http2");
    let found = array(document, "/http/phases");
    assert_eq!(found.iter().map(|phase| text(phase, "/kind")).collect::<Vec<_>>(), phases);
    for phase in found {
        let kind = text(phase, "/kind");
        assert!(count(phase, "/foreign_probes") > 5 && count(phase, "/loaded_probes") > 5, "{phase}");
        for time in ["tcp_handshake_ns", "tls_handshake_ns", "foreign_request_ns", "loaded_request_ns"] {
            assert!(number(phase, &format!("/{time}")) > 0.0, "{time}: {phase}");
        }
        let [new, loaded] = ["foreign", "loaded"].map(|part| number(phase, &format!("/{part}_round_trips_per_minute")));
        let rpm = number(document, &format!("/responsiveness/{kind}"));
        assert!((rpm - f64::midpoint(new, loaded)).abs() < 1e-6 * rpm, "{rpm}: {phase}");
        let of_kind = array(document, "/phases").iter().find(|phase| phase["kind"] == kind).expect("the same phases");
        let loads: &[&str] = if kind == "both" { &["up", "down"] } else { &[kind] };
        for direction in loads {
            assert!(number(of_kind, &format!("/goodput_{direction}_bits_per_second")) > 1e6, "{of_kind}");
        }
    }
    let idle = array(document, "/phases").first().expect("the idle phase");
    let classes: Vec<&str> = array(idle, "/classes").iter().map(|class| text(class, "/class")).collect();
    assert_eq!(classes, ["tcp_handshake", "tls_handshake", "http_request", "tcp_application"]);
}

#[test]
fn both_ends_measure_all_parts() {
    let server = ResponsivenessServer::start(&[]);
    let finished = run(server.load(&["--json"]), LIMIT).expect_code(0);
    let document = finished.json();
    check(&document, &["down", "up", "both"]);
    assert_eq!(text(&document, "/congestion_control"), "cubic");
    let whole = finished.document();
    let figures = array(&whole, "/figures");
    for name in ["rpm_down", "rpm_up", "rpm_both", "goodput_down", "goodput_up"] {
        let figure = figures.iter().find(|figure| figure["name"] == name).expect("a figure");
        assert!(figure["value"].as_f64().is_some_and(|value| value > 0.0), "{figure}");
    }
}

#[test]
fn the_text_has_the_responsiveness_and_its_parts() {
    let server = ResponsivenessServer::start(&[]);
    let output = run(server.load(&["--verbose", "--phases", "down"]), LIMIT).expect_code(0).stdout;
    assert!(output.contains("loaded down round trips per minute, confidence"), "{output}");
    assert!(output.contains("Parts of the responsiveness") && output.contains("TLS 1.3"), "{output}");
    assert!(output.lines().all(|line| line.chars().count() <= 80), "{output}");
    let brief = run(server.load(&["--brief", "--phases", "up"]), LIMIT).expect_code(0).stdout;
    assert!(brief.lines().count() == 1 && brief.contains("round trips per minute"), "{brief}");
}

#[test]
fn a_signal_ends_a_test_with_what_was_measured() {
    let server = ResponsivenessServer::start(&[]);
    let mut command = linerate();
    let url = format!("https://127.0.0.1:{}/", server.port);
    command.args(["load", &url, "--json", "--tls-pin", &server.pin, "--idle", "1s", "--json-stream"]);
    command.args(["--time", "60s"]);
    // The two forms of output exclude each other.
    run(command, LIMIT).expect_code(2);
    let mut command = linerate();
    command.args(["load", &url, "--json-stream", "--tls-pin", &server.pin, "--idle", "1s", "--time", "60s"]);
    let process = Process::start(command);
    process.wait_for_output("\"phase\":\"down\"", LIMIT);
    std::thread::sleep(Duration::from_secs(2));
    process.signal("INT");
    let finished = process.finish(LIMIT).expect_code(3);
    assert!(finished.stdout.contains("\"interrupted\""), "{}", finished.stdout);
}

#[test]
fn failures_name_what_was_tried_and_the_remedy() {
    let server = ResponsivenessServer::start(&[]);
    let other = "sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    let url = format!("https://127.0.0.1:{}/config", server.port);
    let closed = format!("https://127.0.0.1:{}/", free_port());
    let plain = format!("https://127.0.0.1:{}/", server.server.port);
    let (silent, garbage) = (silent_server(), garbage_server());
    let system = run(
        {
            let mut command = linerate();
            command.args(["load", &url, "--quiet"]);
            command
        },
        LIMIT,
    );
    let system = system.expect_code(2);
    assert!(system.stderr.contains("certificate"), "{}", system.stderr);
    for (url, pin, reason) in [
        (url.as_str(), other, "the server has another key than --tls-pin names"),
        (&format!("https://127.0.0.1:{}/nothing", server.port), &server.pin, "answered 404"),
        (&format!("https://127.0.0.1:{}/small", server.port), &server.pin, "the configuration is no JSON"),
        (&closed, &server.pin, "Connection refused"),
        (&plain, &server.pin, "TLS with 127.0.0.1"),
        (&silent, &server.pin, "did not complete the handshakes within 10 s"),
        (&garbage, &server.pin, "TLS with 127.0.0.1"),
        ("http://127.0.0.1/", &server.pin, "only https:// is measured"),
        ("https://user@127.0.0.1/", &server.pin, "has a user name"),
    ] {
        let finished = run(load(url, pin, &[]), LIMIT).expect_code(2);
        assert!(finished.stderr.contains(reason), "{url}: {}", finished.stderr);
    }
    for option in [&["-P", "2"][..], &["--l4s"], &["--profile", "voice"], &["--port", "1"], &["--min-grade", "A"]] {
        let finished = run(server.load(option), LIMIT).expect_code(2);
        assert!(finished.stderr.contains("does not apply to a URL"), "{}", finished.stderr);
    }
}

/// A server that accepts, and sends nothing.
fn silent_server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("https://{}/", listener.local_addr().expect("bound"));
    std::thread::spawn(move || listener.incoming().collect::<Vec<_>>());
    url
}

/// A server that answers everything with the same bytes.
fn garbage_server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("https://{}/", listener.local_addr().expect("bound"));
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.write_all(&[0x16, 3, 3, 0xff, 0xff, 7].repeat(100));
        }
    });
    url
}

#[test]
fn clients_that_send_garbage_or_nothing_are_closed_and_others_served() {
    let server = ResponsivenessServer::start(&[]);
    let idle: Vec<TcpStream> = (0..20)
        .map(|number| {
            let mut stream = TcpStream::connect(("127.0.0.1", server.port)).expect("a connection");
            if number % 2 == 1 {
                stream.write_all(&[number; 300]).expect("buffer space");
            }
            stream
        })
        .collect();
    run(server.load(&["--phases", "down"]), LIMIT).expect_code(0);
    for mut stream in idle {
        stream.set_read_timeout(Some(LIMIT)).expect("an option");
        // An alert, the end or a reset: within the time limit of a connection without a request.
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        assert!(bytes.len() < 100, "{bytes:?}");
    }
}

#[test]
fn a_limited_rate_holds_for_these_tests() {
    let server = ResponsivenessServer::start(&["--server-bitrate-limit", "40M"]);
    let mut command = linerate();
    let url = format!("https://127.0.0.1:{}/config", server.port);
    command.args(["load", &url, "--quiet", "--json", "--tls-pin", &server.pin, "--phases", "down,up"]);
    command.args(["--idle", "1s", "--ramp", "5s", "--time", "5s"]);
    let document = run(command, LIMIT).expect_code(0).json();
    for (index, direction) in [(1, "down"), (2, "up")] {
        let rate = number(&document, &format!("/phases/{index}/goodput_{direction}_bits_per_second"));
        assert!((10e6..60e6).contains(&rate), "{direction}: {rate}");
    }
}

/// Server of the Go standard library.
struct GoServer {
    _process: Process,
    url: String,
    pin: String,
}

impl GoServer {
    fn start(arguments: &[&str]) -> Self {
        let mut command = Command::new("go");
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/responsiveness/server.go");
        command.args(["run", source, "127.0.0.1:0"]).args(arguments);
        let process = Process::start(command);
        process.wait_for_output("sha256//", LIMIT);
        let output = process.stdout();
        let address = output.split_whitespace().next().expect("an address").to_owned();
        Self { _process: process, url: format!("https://{address}"), pin: pin_in(&output) }
    }
}

#[test]
#[ignore = "long: needs go; cargo test -p linerate-cli --test cli responsiveness:: -- --ignored"]
fn a_server_of_the_go_standard_library_is_measured() {
    let server = GoServer::start(&[]);
    let document = run(load(&format!("{}/config", server.url), &server.pin, &["--json"]), LIMIT).expect_code(0).json();
    check(&document, &["down", "up", "both"]);
    for (path, reason) in [
        ("moved", "redirected to \"https://192.0.2.1/config\", which is not followed"),
        ("elsewhere", "another host, 192.0.2.1: --also-host 192.0.2.1 allows it"),
        ("huge", "has more than 65536 bytes"),
        ("silent", "was not answered within 10 s"),
        ("reset", "/reset:"),
        ("text", "the configuration is no JSON"),
    ] {
        let finished = run(load(&format!("{}/{path}", server.url), &server.pin, &[]), LIMIT).expect_code(2);
        assert!(finished.stderr.contains(reason), "{path}: {}", finished.stderr);
    }
    let old = GoServer::start(&["http1"]);
    let finished = run(load(&format!("{}/config", old.url), &old.pin, &[]), LIMIT).expect_code(2);
    assert!(finished.stderr.contains("does not offer HTTP/2"), "{}", finished.stderr);
}

/// Not in a registry: the factor between the programs is in docs/responsiveness.md, over a shaped link.
#[test]
#[ignore = "long: needs goresponsiveness in LINERATE_NETWORK_QUALITY; cargo test -p linerate-cli --test cli responsiveness:: -- --ignored"]
fn goresponsiveness_measures_both_directions_of_a_linerate() {
    let program = std::env::var("LINERATE_NETWORK_QUALITY").expect("LINERATE_NETWORK_QUALITY names the program");
    let server = ResponsivenessServer::start(&[]);
    let mut command = Command::new(program);
    command.args(["-config", "127.0.0.1", "-port", &server.port.to_string(), "-path", "config", "-rpm.timeout", "5"]);
    let output = run(command, LIMIT).expect_code(0).stdout;
    let figures = |label: &str| -> Vec<f64> {
        let after = output.split(label).skip(1).filter_map(|rest| rest.split_whitespace().next());
        after.map(|figure| figure.parse().expect("a number")).collect()
    };
    for label in ["Throughput: ", "RPM: "] {
        let found = figures(label);
        assert!(found.len() >= 2 && found.iter().all(|figure| figure.is_finite() && *figure > 0.0), "{output}");
    }
}
