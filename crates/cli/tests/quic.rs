//! `linerate test --quic` against a server on this host.

use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::support::document::{array, count, number, text};
use crate::support::process::run;
use crate::support::{self, Server, linerate};

const LIMIT: Duration = Duration::from_secs(120);

fn server(arguments: &[&str]) -> Server {
    let port = support::free_port();
    let mut command = linerate();
    command.args(["serve", "--port", &port.to_string()]).args(arguments);
    Server::listening(command, port)
}

fn test(server: &Server, arguments: &[&str]) -> Command {
    let mut command = linerate();
    command.args(["test", "127.0.0.1", "--quic", "--time", "1s", "--port", &server.port.to_string()]).args(arguments);
    command
}

#[test]
fn the_document_has_handshakes_transfers_and_a_comparison() {
    let server = server(&[]);
    let document = run(test(&server, &["--json", "-C", "cubic", "-P", "2"]), LIMIT).expect_code(0).json();
    // TCP has one stream, for comparison.
    let tcp: Vec<u64> = array(&document, "/runs").iter().map(|run| count(run, "/streams")).collect();
    assert_eq!(tcp, [1, 1]);
    let kinds: Vec<&str> = array(&document, "/quic/handshakes").iter().map(|shake| text(shake, "/kind")).collect();
    assert_eq!(kinds[..4], ["full"; 4]);
    assert_eq!(kinds[4..7], ["resumed"; 3]);
    assert_eq!(kinds[7..], ["zero_rtt"; 3]);
    let runs = array(&document, "/quic/runs");
    let plan: Vec<(&str, u64)> = runs.iter().map(|run| (text(run, "/direction"), count(run, "/streams"))).collect();
    assert_eq!(plan, [("up", 1), ("down", 1), ("up", 2), ("down", 2)]);
    for run in runs {
        let receiver = if text(run, "/direction") == "up" { "/server" } else { "/client" };
        assert!(number(run, &format!("{receiver}/bytes")) > 1e6, "{run}");
    }
    let verdicts = array(&document, "/quic/verdicts");
    let directions: Vec<&str> = verdicts.iter().map(|verdict| text(verdict, "/direction")).collect();
    assert_eq!(directions, ["up", "down"], "{verdicts:?}");
    // Loopback does not treat UDP in another way than TCP, even where other programs have the processors.
    let is_path = |verdict: &Value| ["udp_blocked", "udp_throttled"].contains(&text(verdict, "/cause"));
    assert!(!verdicts.iter().any(is_path), "{verdicts:?}");
    assert_eq!(document.pointer("/quic/failure"), Some(&Value::Null));
}

/// Over loopback nothing but the processors limits QUIC, which is a program, also where other programs have them. Where these
/// keep both ends from their processors in turn, neither end alone is late enough: a repetition finds another order.
#[test]
fn a_full_processor_is_named_over_loopback() {
    let server = server(&[]);
    let mut found = Vec::new();
    for _ in 0..3 {
        let document = run(test(&server, &["--json", "-C", "cubic", "-P", "1"]), LIMIT).expect_code(0).json();
        let verdicts = array(&document, "/quic/verdicts").iter().map(|verdict| text(verdict, "/cause").to_owned());
        found.push(verdicts.collect::<Vec<_>>());
        if (0..2).all(|direction| found.iter().any(|causes| causes[direction] == "processor_bound")) {
            return;
        }
    }
    panic!("{found:?}");
}

#[test]
fn the_text_names_port_handshakes_and_rates() {
    let port = support::free_port();
    let server = server(&["--quic-port", &port.to_string()]);
    let text = run(test(&server, &["--quiet", "-P", "1"]), LIMIT).expect_code(0).stdout;
    let heading = text.lines().find(|line| line.starts_with("QUIC")).expect("a heading");
    assert!(heading.contains(&format!("UDP port {port}")) && heading.contains("handshake full"), "{text}");
    let rates = text.lines().skip_while(|line| !line.starts_with("QUIC")).filter(|line| line.contains("bit/s   "));
    assert_eq!(rates.count(), 2, "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn a_server_without_quic_is_named_after_the_tcp_part() {
    let server = Server::start(support::Program::Iperf3, &[]);
    let finished = run(test(&server, &["--quiet", "-P", "1"]), LIMIT).expect_code(3);
    assert!(finished.stderr.contains("QUIC: the far end has no probe service"), "{}", finished.stderr);
    assert!(finished.stdout.contains("up"), "{}", finished.stdout);
}

#[test]
fn options_that_do_not_fit_are_refused() {
    for (arguments, expected) in [
        (
            &["127.0.0.1", "-C", "vegas"][..],
            "congestion control 'vegas' is not available for QUIC (expected cubic, bbr or reno)",
        ),
        (&["127.0.0.1", "127.0.0.2"], "--quic compares TCP and QUIC with one host: test each alone"),
    ] {
        let mut command = linerate();
        command.args(["test", "--quic"]).args(arguments);
        let finished = run(command, LIMIT).expect_code(2);
        assert!(finished.stderr.contains(expected), "{}", finished.stderr);
    }
}
