//! `linerate export --otlp`: every result reaches a receiver that is killed, busy, choosy or behind TLS.

#![cfg(feature = "otlp")]

use std::collections::BTreeSet;
use std::net::TcpStream;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use linerate_history::result_log::ResultLog;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::support::fleet_results::append;
use crate::support::process::{Process, eventually, run};
use crate::support::receiver::{ACCEPTED, ReadWrite, Receiver};
use crate::support::server::connections;
use crate::support::{Scratch, free_port, linerate};

const LIMIT: Duration = Duration::from_secs(60);

fn log(scratch: &Scratch) -> ResultLog {
    ResultLog::open(scratch.path("results").as_ref()).expect("a log")
}

fn export(log: &ResultLog, url: &str, more: &[&str]) -> Command {
    let mut command = linerate();
    command.args(["export", "--otlp", url]).args(more).arg(log.directory()).env("NO_PROXY", "127.0.0.1");
    command
}

fn set(ids: &[String]) -> BTreeSet<&String> {
    ids.iter().collect()
}

#[test]
fn a_receiver_that_is_killed_has_every_result_in_the_end() {
    let scratch = Scratch::new();
    let log = log(&scratch);
    let mut all = append(&log, 1..=20);
    let receiver = Receiver::start(free_port(), |_| ACCEPTED);
    let (port, url) = (receiver.port, receiver.url());
    let mut process = Process::start(export(&log, &url, &["--follow"]));
    assert!(eventually(LIMIT, || receiver.accepted("/v1/metrics").len() == 20), "{}", process.stderr());
    let mut arrived = receiver.accepted("/v1/logs");
    // Killed with a request that it has taken and not answered.
    drop(receiver);
    let hung = Receiver::start(port, |_| None);
    all.extend(append(&log, 21..=40));
    assert!(eventually(LIMIT, || hung.look(|arrivals| !arrivals.is_empty())), "{}", process.stderr());
    drop(hung);
    all.extend(append(&log, 41..=45));
    assert!(eventually(LIMIT, || process.stderr().contains("are sent later")), "{}", process.stderr());
    let receiver = Receiver::start(port, |_| ACCEPTED);
    assert!(eventually(LIMIT, || receiver.accepted("/v1/metrics").len() >= 25), "{}", process.stderr());
    assert!(eventually(LIMIT, || process.stderr().contains("takes results again")), "{}", process.stderr());
    let notes = process.stderr();
    assert_eq!(
        (notes.matches("are sent later").count(), notes.matches("takes results again").count()),
        (1, 1),
        "{notes}"
    );
    // A process that is killed goes on where it was.
    process.signal("KILL");
    assert!(eventually(LIMIT, || !process.is_running()));
    all.extend(append(&log, 46..=50));
    let next = Process::start(export(&log, &url, &["--follow"]));
    assert!(eventually(LIMIT, || receiver.accepted("/v1/metrics").len() >= 30), "{}", next.stderr());
    // What came last is shipped by the end.
    all.extend(append(&log, 51..=52));
    next.signal("TERM");
    next.finish(LIMIT).expect_code(0);
    arrived.extend(receiver.accepted("/v1/logs"));
    assert_eq!(set(&arrived), set(&all), "lost");
    // A process that is killed repeats at most the batch whose answer it did not record.
    assert!(arrived.len() <= all.len() + 16, "{arrived:?}");
    receiver.look(|arrivals| {
        let lines = arrivals.iter().flat_map(|(arrival, _)| &arrival.bodies);
        assert!(lines.into_iter().all(|line| line.contains("\"kind\":\"fleet-result\"")));
    });
}

#[test]
fn a_refused_result_holds_up_no_other() {
    let scratch = Scratch::new();
    let log = log(&scratch);
    let all = append(&log, 1..=9);
    let bad = "goodput/a/b/5000000000";
    let receiver = Receiver::start(
        0,
        move |arrival| {
            if arrival.ids.iter().any(|id| id == bad) { Some((400, "")) } else { ACCEPTED }
        },
    );
    let sent = run(export(&log, &receiver.url(), &[]), LIMIT).expect_code(0);
    assert!(sent.stderr.contains("sent: 8 results, 1 refused"), "{}", sent.stderr);
    assert!(
        sent.stderr.contains("it answered 400 Bad Request for the result goodput/a/b/5000000000"),
        "{}",
        sent.stderr
    );
    let expected: Vec<String> = all.into_iter().filter(|id| id != bad).collect();
    for endpoint in ["/v1/logs", "/v1/metrics"] {
        assert_eq!(receiver.accepted(endpoint), expected, "{endpoint}");
    }
    // Shipped once: the position is behind all of them.
    let again = run(export(&log, &receiver.url(), &[]), LIMIT).expect_code(0);
    assert!(again.stderr.contains("sent: 0 results"), "{}", again.stderr);
}

/// More of them than a batch, as after a long outage.
#[test]
fn results_that_are_too_old_for_a_receiver_hold_up_no_other() {
    let scratch = Scratch::new();
    let log = log(&scratch);
    let all = append(&log, 101..=140);
    let old: Vec<String> = all[..36].to_vec();
    let receiver =
        Receiver::start(
            0,
            move |arrival| {
                if arrival.ids.iter().any(|id| old.contains(id)) { Some((400, "")) } else { ACCEPTED }
            },
        );
    let sent = run(export(&log, &receiver.url(), &[]), LIMIT).expect_code(0);
    assert!(sent.stderr.contains("sent: 4 results, 36 refused"), "{}", sent.stderr);
    assert_eq!(receiver.accepted("/v1/logs"), all[36..]);
}

#[test]
fn a_receiver_that_refuses_everything_loses_nothing() {
    let scratch = Scratch::new();
    let log = log(&scratch);
    let all = append(&log, 1..=3);
    for status in [400, 401, 404, 500, 503] {
        let receiver = Receiver::start(free_port(), move |_| Some((status, "")));
        let (port, url) = (receiver.port, receiver.url());
        let refused = run(export(&log, &url, &[]), LIMIT).expect_code(2);
        let note = format!("it answered {status}");
        assert!(refused.stderr.contains(&note) && refused.stderr.contains("sent: 0 results"), "{}", refused.stderr);
        drop(receiver);
        let receiver = Receiver::start(port, |_| ACCEPTED);
        run(export(&log, &url, &[]), LIMIT).expect_code(0);
        assert_eq!(receiver.accepted("/v1/logs"), all, "{status}");
    }
}

#[test]
fn a_receiver_of_one_kind_gets_that_kind() {
    let scratch = Scratch::new();
    let log = log(&scratch);
    let all = append(&log, 1..=3);
    for absent in ["/v1/logs", "/v1/metrics"] {
        let receiver =
            Receiver::start(0, move |arrival| if arrival.endpoint == absent { Some((404, "")) } else { ACCEPTED });
        let sent = run(export(&log, &receiver.url(), &[]), LIMIT).expect_code(0);
        assert!(
            sent.stderr.contains(&format!("{absent}: it answered 404 Not Found; results are sent without it")),
            "{}",
            sent.stderr
        );
        let other = if absent == "/v1/logs" { "/v1/metrics" } else { "/v1/logs" };
        assert_eq!((receiver.accepted(other), receiver.accepted(absent)), (all.clone(), Vec::new()));
    }
}

#[test]
fn a_busy_receiver_is_asked_when_it_wants_and_secrets_come_from_files() {
    let scratch = Scratch::new();
    let log = log(&scratch);
    append(&log, 1..=2);
    let token = scratch.file("token", "Bearer one\n");
    let asked = AtomicU32::new(0);
    let receiver = Receiver::start(0, move |_| {
        if asked.fetch_add(1, Ordering::SeqCst) == 0 { Some((429, "Retry-After: 3\r\n")) } else { ACCEPTED }
    });
    let header = format!("Authorization={token}");
    let process = Process::start(export(&log, &receiver.url(), &["--follow", "--otlp-header", &header]));
    assert!(eventually(LIMIT, || receiver.look(|arrivals| !arrivals.is_empty())), "{}", process.stderr());
    // A token that is replaced is read again.
    scratch.file("token", "Bearer two\n");
    assert!(eventually(LIMIT, || receiver.accepted("/v1/metrics").len() == 2), "{}", process.stderr());
    receiver.look(|arrivals| {
        let pause = arrivals[1].0.at - arrivals[0].0.at;
        assert!(pause >= Duration::from_secs(3), "{pause:?}");
        let tokens: Vec<&str> = arrivals.iter().map(|(arrival, _)| arrival.headers["authorization"].as_str()).collect();
        assert_eq!(tokens, ["Bearer one", "Bearer two", "Bearer two"]);
    });
    assert!(!process.stderr().contains("Bearer"), "{}", process.stderr());
    let missing = run(export(&log, &receiver.url(), &["--otlp-header", "X-Key=/nonexistent"]), LIMIT).expect_code(2);
    assert!(missing.stderr.contains("header x-key of --otlp-header: /nonexistent: No such file"), "{}", missing.stderr);
}

#[test]
fn the_end_waits_only_seconds_for_a_receiver_that_hangs() {
    let scratch = Scratch::new();
    let log = log(&scratch);
    let all = append(&log, 1..=2);
    let (release, held) = mpsc::channel::<()>();
    let held = Mutex::new(held);
    let receiver = Receiver::start(free_port(), move |_| {
        // Until the test drops the sender.
        let _ = held.lock().expect("no panic").recv();
        None
    });
    let (port, url) = (receiver.port, receiver.url());
    let process = Process::start(export(&log, &url, &["--follow"]));
    assert!(eventually(LIMIT, || process.stderr().is_empty() && connections(port) > 0), "{}", process.stderr());
    let asked = Instant::now();
    process.signal("TERM");
    process.finish(LIMIT).expect_code(0);
    assert!(asked.elapsed() < Duration::from_secs(9), "{:?}", asked.elapsed());
    drop(release);
    drop(receiver);
    let receiver = Receiver::start(port, |_| ACCEPTED);
    run(export(&log, &url, &[]), LIMIT).expect_code(0);
    assert_eq!(receiver.accepted("/v1/logs"), all);
}

/// Without an HTTP server, too, an alert sees the outage and its end.
#[test]
fn text_files_show_an_outage() {
    let scratch = Scratch::new();
    let log = log(&scratch);
    append(&log, 7..=8);
    let receiver = Receiver::start(free_port(), |_| ACCEPTED);
    let (port, url) = (receiver.port, receiver.url());
    drop(receiver);
    let file = scratch.path("linerate.prom");
    let process = Process::start(export(&log, &url, &["--follow", "--textfile", &file]));
    let has = |part: &str| {
        let line = format!("{part}{{receiver=\"{url}\"}}");
        std::fs::read_to_string(&file)
            .ok()?
            .lines()
            .find_map(|found| Some(found.strip_prefix(&line)?.trim().to_owned()))
    };
    let oldest = "linerate_export_oldest_pending_timestamp_seconds";
    assert!(eventually(LIMIT, || has("linerate_export_up").as_deref() == Some("0")), "{}", process.stderr());
    assert_eq!(has(oldest).as_deref(), Some("7"));
    let _receiver = Receiver::start(port, |_| ACCEPTED);
    assert!(eventually(LIMIT, || has("linerate_export_up").as_deref() == Some("1")), "{}", process.stderr());
    assert!(eventually(LIMIT, || has(oldest).is_none()), "{}", process.stderr());
    assert_eq!(has("linerate_export_sent_results_total").as_deref(), Some("2"));
}

#[test]
fn a_redirect_takes_no_secret_elsewhere() {
    let scratch = Scratch::new();
    let log = log(&scratch);
    let all = append(&log, 1..=2);
    let elsewhere = Receiver::start(0, |_| ACCEPTED);
    let location: &'static str = format!("Location: {}/v1/logs\r\n", elsewhere.url()).leak();
    for status in [301, 307, 308] {
        let receiver = Receiver::start(0, move |_| Some((status, location)));
        let header = format!("Authorization={}", scratch.file("token", "Bearer one"));
        let refused = run(export(&log, &receiver.url(), &["--otlp-header", &header]), LIMIT).expect_code(2);
        assert!(refused.stderr.contains(&format!("it answered {status}")), "{}", refused.stderr);
        assert!(receiver.look(|arrivals| arrivals.iter().all(|(arrival, _)| arrival.ids == all)));
    }
    assert_eq!(elsewhere.look(<[_]>::len), 0);
}

/// Certificate for 127.0.0.1 that signs itself, and its key, as files.
fn certificate(scratch: &Scratch) -> [String; 2] {
    let [certificate, key] = ["certificate.pem", "key.pem"].map(|name| scratch.path(name));
    let mut openssl = Command::new("openssl");
    openssl.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]);
    let extensions =
        "[req]\ndistinguished_name = name\nx509_extensions = host\n[name]\n[host]\nsubjectAltName = IP:127.0.0.1\n";
    openssl.args(["-subj", "/CN=127.0.0.1", "-config", &scratch.file("openssl.cnf", extensions)]);
    openssl.args(["-out", &certificate, "-keyout", &key]);
    run(openssl, LIMIT).expect_code(0);
    [certificate, key]
}

#[test]
fn a_receiver_behind_tls_needs_a_certificate_that_the_host_trusts() {
    let scratch = Scratch::new();
    let log = log(&scratch);
    let all = append(&log, 1..=2);
    let [certificate, key] = certificate(&scratch);
    let chain = vec![CertificateDer::from_pem_file(&certificate).expect("a certificate")];
    let key = PrivateKeyDer::from_pem_file(key).expect("a key");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().expect("TLS");
    let config = Arc::new(config.with_no_client_auth().with_single_cert(chain, key).expect("a key pair"));
    let receiver = Receiver::start_with(
        0,
        |_| ACCEPTED,
        move |client: TcpStream| {
            let session = ServerConnection::new(Arc::clone(&config)).ok()?;
            Some(Box::new(StreamOwned::new(session, client)) as Box<dyn ReadWrite>)
        },
    );
    let url = format!("https://127.0.0.1:{}", receiver.port);
    let refused = run(export(&log, &url, &[]), LIMIT).expect_code(2);
    assert!(refused.stderr.contains("invalid peer certificate"), "{}", refused.stderr);
    assert_eq!(receiver.accepted("/v1/logs"), Vec::<String>::new());
    let mut trusting = export(&log, &url, &[]);
    trusting.env("SSL_CERT_FILE", &certificate);
    run(trusting, LIMIT).expect_code(0);
    assert_eq!(receiver.accepted("/v1/logs"), all);
}

#[test]
fn one_process_at_a_time_sends_a_log() {
    let scratch = Scratch::new();
    let log = log(&scratch);
    append(&log, 1..=1);
    let receiver = Receiver::start(0, |_| ACCEPTED);
    let first = Process::start(export(&log, &receiver.url(), &["--follow"]));
    assert!(eventually(LIMIT, || receiver.accepted("/v1/metrics").len() == 1), "{}", first.stderr());
    let second = run(export(&log, &receiver.url(), &[]), LIMIT).expect_code(2);
    assert!(second.stderr.contains("another linerate sends "), "{}", second.stderr);
    // The next one takes over.
    let third = Process::start(export(&log, &receiver.url(), &["--follow"]));
    first.signal("TERM");
    first.finish(LIMIT).expect_code(0);
    append(&log, 2..=2);
    assert!(eventually(LIMIT, || receiver.accepted("/v1/metrics").len() == 2), "{}", third.stderr());
}
