//! Tests of `linerate diagnose`: refusals, and a running transfer of another program.

mod support;

use std::time::Duration;

use support::document::{array, number, text};
use support::lab::lab_command;
use support::process::run;
use support::{Program, Server, linerate};

const LIMIT: Duration = Duration::from_secs(300);

#[test]
fn invalid_transfers_are_refused_with_a_remedy() {
    for (arguments, said) in [
        (&["diagnose"][..], "<HOST>"),
        (&["diagnose", "localhost", "--pid", "1"], "cannot be used with"),
        (&["diagnose", "--pid", "one"], "the process ID is not a number"),
        (&["diagnose", "--dst", "somewhere"], "an address"),
        (&["diagnose", "localhost", "--", "-u"], "UDP has no window"),
        (&["diagnose", "localhost", "--", "--bidir"], "one direction"),
        (&["diagnose", "localhost", "--", "--no-such-option"], "no-such-option"),
    ] {
        let mut command = linerate();
        command.args(arguments);
        let ended = run(command, LIMIT).expect_code(2);
        assert!(ended.stderr.contains(said), "{arguments:?}: {}", ended.stderr);
    }
}

#[test]
fn a_selection_without_traffic_is_an_error() {
    let mut command = linerate();
    command.args(["diagnose", "--dst", "192.0.2.1", "--time", "1s", "--quiet"]);
    let ended = run(command, LIMIT).expect_code(2);
    assert!(
        ended.stderr.contains("no matching connection moved data") && ended.stderr.contains("linerate watch"),
        "{}",
        ended.stderr
    );
}

#[test]
fn the_path_is_reported_without_its_transfer() {
    let server = Server::start(Program::Linerate, &["--server-max-duration", "30"]);
    let mut command = linerate();
    command.args([
        "diagnose",
        "127.0.0.1",
        "-p",
        &server.port.to_string(),
        "--no-capacity",
        "--json",
        "--",
        "-t",
        "60",
    ]);
    let ended = run(command, LIMIT).expect_code(3);
    assert!(ended.stderr.contains("maximum permitted limit"), "{}", ended.stderr);
    let document = ended.json();
    assert!(number(&document, "/rtt/best/min_ns") > 0.0);
}

#[test]
fn a_running_transfer_is_diagnosed_at_its_sender() {
    let script = "linerate iperf3 -c far -t 12 -C cubic > /dev/null & transfer=$!; sleep 3; \
                  linerate diagnose --pid $transfer --time 5s --json --quiet; code=$?; wait; exit $code";
    let ended = run(lab_command("300m-20ms-receive-buffer-375k", &["sh", "-c", script]), LIMIT).expect_code(1);
    let document = ended.json();
    let causes: Vec<&str> = array(&document, "/verdicts").iter().map(|verdict| text(verdict, "/cause")).collect();
    assert_eq!(causes.first(), Some(&"receive-window"), "{causes:?}");
    // 0.62 of 375 kB per 20.1 ms.
    let rate = document["goodput_bits_per_second"].as_f64().expect("a rate");
    assert!((0.85..1.05).contains(&(rate / (0.62 * 375e3 * 8.0 / 20.1e-3))), "{rate}");
    let unknown: Vec<&str> = array(&document, "/unknown").iter().map(|one| text(one, "/key")).collect();
    assert_eq!(unknown, ["far", "path"], "facts of the other host are reported as unknown");
}
