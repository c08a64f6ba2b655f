//! Tests of `linerate rr`: all kinds over loopback, an emulated path, and servers that cannot answer.

use std::time::Duration;

use serde_json::Value;

use crate::support::document::{array, number, text};
use crate::support::lab::lab_command;
use crate::support::process::run;
use crate::support::{Program, Scratch, Server, free_port, linerate};

const LIMIT: Duration = Duration::from_secs(120);

fn measured(server: &Server, options: &[&str]) -> Value {
    let mut command = linerate();
    command.args(["rr", "127.0.0.1", "-p", &server.port.to_string(), "-t", "1s", "--json", "--quiet"]).args(options);
    run(command, LIMIT).expect_code(0).json()
}

fn serving(options: &[&str]) -> Server {
    let port = free_port();
    let mut command = linerate();
    command.args(["serve", "--no-stamp", "-B", "127.0.0.1", "-p", &port.to_string()]).args(options);
    Server::listening(command, port)
}

#[test]
fn every_kind_reports_rate_and_percentiles() {
    let server = serving(&[]);
    for (options, mode) in [
        (&["-P", "2"][..], "tcp"),
        (&["--connect"], "connect"),
        (&["--udp"], "udp"),
        (&["--handshake", "tls", "-P", "2"], "tls"),
        (&["--handshake", "quic", "-P", "2"], "quic"),
    ] {
        let document = measured(&server, &[options, &["--request", "64", "--response", "1k"]].concat());
        assert_eq!((text(&document, "/mode"), text(&document, "/schedule")), (mode, "closed"));
        assert_eq!((number(&document, "/request_bytes"), number(&document, "/response_bytes")), (64.0, 1000.0));
        let (rate, count) = (number(&document, "/transactions_per_second"), number(&document, "/transactions"));
        let measured = number(&document, "/measured_ns") / 1e9;
        assert!((rate * measured / count - 1.0).abs() < 1e-6 && count > 10.0, "{document:#}");
        let percentiles =
            ["min", "p50", "p90", "p99", "p99_9", "max"].map(|name| number(&document, &format!("/latency/{name}_ns")));
        assert!(percentiles.is_sorted() && percentiles[0] > 1000.0, "{percentiles:?}");
        let in_histogram: f64 = array(&document, "/histogram").iter().map(|bucket| number(bucket, "/count")).sum();
        assert!((in_histogram - count).abs() < 0.5);
        assert!(document["service_time"].is_null());
        assert_eq!(document["lost"].is_null(), ["tcp", "connect"].contains(&mode));
        assert_eq!(document["handshake"].is_null(), !["tls", "quic"].contains(&mode));
    }
}

#[test]
fn the_text_names_the_handshake() {
    let server = Server::start(Program::Linerate, &[]);
    let port = server.port.to_string();
    let mut command = linerate();
    let options = ["-t", "1s", "--quiet", "--verbose", "--handshake", "tls"];
    command.args(["rr", "127.0.0.1", "-p", &port]).args(options);
    let text = run(command, LIMIT).expect_code(0).stdout;
    assert!(text.contains("TLS handshake transactions") && text.contains("raw public key (Ed25519)"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

/// A port given for QUIC serves all clients: the processor time of one is unknown, and its reason named.
#[test]
fn a_given_quic_port_serves_handshakes() {
    let (port, quic) = (free_port(), free_port());
    let mut command = linerate();
    let ports = ["-p", &port.to_string(), "--quic-port", &quic.to_string()];
    command.args(["serve", "--no-stamp", "-B", "127.0.0.1"]).args(ports);
    let server = Server::listening(command, port);
    let document = measured(&server, &["--handshake", "quic"]);
    assert!(number(&document, "/transactions") > 5.0 && document["far_processor_ns"].is_null(), "{document:#}");
    let reasons = array(&document, "/unknown").iter().filter(|unknown| text(unknown, "/key") == "far_processor_ns");
    assert_eq!(reasons.count(), 1, "{document:#}");
}

/// Requests on open connections begin with a handshake; a connection per transaction is measured without one.
#[test]
fn a_server_with_tls_answers_every_kind() {
    let scratch = Scratch::new();
    let key = scratch.path("key");
    std::fs::write(&key, "0123456789abcdef0123456789abcdef").expect("a file");
    let server = serving(&["--shared-key-file", &key]);
    for options in
        [&["--tcp", "-P", "2"][..], &["--connect"], &["--udp"], &["--handshake", "tls"], &["--handshake", "quic"]]
    {
        let document = measured(&server, &[options, &["--shared-key-file", &key]].concat());
        // In TLS both ends have the keys of the conversation; QUIC has a key of the server's.
        let is_mutual = document.pointer("/handshake/client_authenticated") == Some(&Value::Bool(true));
        assert_eq!(is_mutual, options.contains(&"tls"), "{options:?}: {document:#}");
        assert_eq!(document["termination"]["outcome"], "complete", "{options:?}: {document:#}");
        assert!(number(&document, "/transactions") > 10.0, "{options:?}: {document:#}");
    }
}

/// A round trip of 20.1 ms: the exact one round trip in virtual time, with and without a handshake.
#[test]
fn an_emulated_path_has_its_round_trip() {
    for (options, round_trips) in [
        (&["--tcp"][..], 1.0),
        (&["--connect"], 2.0),
        (&["--udp"], 1.0),
        // TCP's, TLS's and the request's; QUIC has one less.
        (&["--handshake", "tls"], 3.0),
        (&["--handshake", "quic"], 2.0),
    ] {
        let arguments = [&["linerate", "rr", "far", "-t", "3s", "--json", "--quiet"][..], options].concat();
        let document: Value = run(lab_command("300m-20ms", &arguments), LIMIT).expect_code(0).json();
        let expected = 20.1e6 * round_trips;
        let median = number(&document, "/latency/p50_ns");
        assert!((median / expected - 1.0).abs() < 0.02, "{options:?}: {median} ns instead of {expected}");
    }
}

/// A firewall that permits the server's port alone: connections go there, and not to the port of the test.
#[test]
fn connections_use_the_port_that_a_firewall_permits() {
    let script = "set -e; tc qdisc add dev eth0 clsact
        tcp='u32 match ip protocol 6 0xff'
        tc filter add dev eth0 egress prio 1 protocol ip $tcp match ip dport 5201 0xffff action ok
        tc filter add dev eth0 egress prio 2 protocol ip $tcp action drop
        exec linerate --no-history rr far --connect -t 2s --json --quiet";
    let document: Value = run(lab_command("300m-20ms", &["sh", "-c", script]), LIMIT).expect_code(0).json();
    assert!((45.0..55.0).contains(&number(&document, "/transactions")), "one in two round trips: {document}");
}

#[test]
fn other_servers_are_named_with_the_remedy() {
    let server = Server::start(Program::Iperf3, &[]);
    let mut command = linerate();
    command.args(["rr", "127.0.0.1", "-p", &server.port.to_string(), "-t", "1s"]);
    let ended = run(command, LIMIT).expect_code(2);
    assert!(
        ended.stderr.contains("the server is iperf3") && ended.stderr.contains("linerate serve"),
        "{}",
        ended.stderr
    );
    assert_eq!(ended.stdout, "");
}

#[test]
fn sizes_that_do_not_fit_are_refused() {
    let mut command = linerate();
    command.args(["rr", "127.0.0.1", "--udp", "--response", "70000"]);
    let ended = run(command, LIMIT).expect_code(2);
    assert!(ended.stderr.contains("65507 bytes at most"), "{}", ended.stderr);
    for wrong in [["--request", "0"], ["--rate", "0"], ["-P", "257"]] {
        let mut command = linerate();
        command.args(["rr", "127.0.0.1"]).args(wrong);
        run(command, LIMIT).expect_code(2);
    }
}
