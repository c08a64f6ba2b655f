//! `linerate test --tls-data`: payload in TLS to its end, over loopback.

use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::support::document::{array, count, number, text};
use crate::support::process::run;
use crate::support::{Program, Scratch, Server, free_port, linerate};

const LIMIT: Duration = Duration::from_secs(120);

fn server(options: &[&str]) -> Server {
    let port = free_port();
    let mut command = linerate();
    command.args(["serve", "--no-stamp", "-B", "127.0.0.1", "-p", &port.to_string()]).args(options);
    Server::listening(command, port)
}

fn key(scratch: &Scratch, content: &str) -> String {
    let file = scratch.path(content);
    std::fs::write(&file, format!("{content}0123456789abcdef")).expect("a file");
    file
}

fn test(server: &Server, options: &[&str]) -> Command {
    let mut command = linerate();
    let port = server.port.to_string();
    command.args(["test", "127.0.0.1", "-p", &port, "-t", "1s", "--quiet"]).args(options);
    command
}

#[test]
fn every_run_is_encrypted_and_says_so() {
    let scratch = Scratch::new();
    let key = key(&scratch, "one");
    let server = server(&["--shared-key-file", &key]);
    let encrypted = ["--shared-key-file", &key, "--tls-data", "-P", "2"];
    let document: Value = run(test(&server, &[&encrypted[..], &["--json"]].concat()), LIMIT).expect_code(0).json();
    let runs = array(&document, "/runs");
    assert_eq!(runs.len(), 4);
    for run in runs {
        assert!(text(run, "/tls_data/cipher_suite").starts_with("TLS13_"), "{run:#}");
        assert_eq!(run.pointer("/tls_data/client_authenticated"), Some(&Value::Bool(true)));
        // Encrypted data cannot be discarded in the kernel.
        assert_eq!(text(run, "/receive_method"), "copy");
        assert!(number(run, "/bits_per_second") > 1e7 && count(run, "/received_bytes") > 1_000_000, "{run:#}");
    }
    let clear: Value =
        run(test(&server, &["--shared-key-file", &key, "--json", "-P", "1"]), LIMIT).expect_code(0).json();
    assert!(array(&clear, "/runs").iter().all(|run| run["tls_data"].is_null()), "{clear:#}");
    let text = run(test(&server, &encrypted), LIMIT).expect_code(0).stdout;
    assert!(text.contains("data in TLS 1.3 (TLS13_"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn what_cannot_be_encrypted_is_refused_with_the_reason() {
    let scratch = Scratch::new();
    let [key, other] = ["one", "other"].map(|name| key(&scratch, name));
    let with = server(&["--shared-key-file", &key]);
    let iperf3 = Server::start(Program::Iperf3, &[]);
    for (server, options, expected) in [
        (&with, &["--tls-data"][..], "--tls-data encrypts with the keys of the conversation"),
        (&with, &["--tls-data", "--quic", "--shared-key-file", &key], "--tls-data is for TCP"),
        (&with, &["--tls-data", "--shared-key-file", &other], "another shared key"),
        (&iperf3, &["--tls-data", "--shared-key-file", &key], "TLS"),
    ] {
        let ended = run(test(server, options), LIMIT);
        assert!(ended.stderr.contains(expected) && ended.stdout.is_empty(), "{options:?}: {ended:#?}");
    }
}

#[test]
fn the_command_line_of_iperf3_has_tls_against_a_linerate_only() {
    let scratch = Scratch::new();
    let [key, other] = ["one", "other"].map(|name| key(&scratch, name));
    let (with, without) = (server(&["--shared-key-file", &key]), server(&[]));
    let iperf3 = Server::start(Program::Iperf3, &[]);
    let client = |server: &Server, options: &[&str]| {
        let mut command = linerate();
        command.args(["iperf3", "-c", "127.0.0.1", "-p", &server.port.to_string(), "-t", "1", "-J"]).args(options);
        run(command, LIMIT)
    };
    let encrypted = client(&with, &["--tls-data", "--shared-key-file", &key]).expect_code(0).document();
    assert!(number(&encrypted, "/end/sum_received/bits_per_second") > 1e7, "{encrypted:#}");
    for (server, options, expected) in [
        (&with, &["--tls-data"][..], "test authorization failed"),
        (&with, &["--tls-data", "--shared-key-file", &other], "another shared key"),
        (&without, &["--tls-data"], "--tls-data encrypts with the keys of the conversation"),
        (&iperf3, &["--tls-data", "--shared-key-file", &key], "TLS"),
        (&with, &["--tls-data", "-u", "--shared-key-file", &key], "datagrams have no TLS"),
    ] {
        let ended = client(server, options);
        assert!(ended.code() == Some(1), "{options:?}: {ended:#?}");
        assert!(format!("{}{}", ended.stdout, ended.stderr).contains(expected), "{options:?}: {ended:#?}");
    }
}
