//! Tests of `linerate diagnose`: refusals, and a running transfer of another program.

use std::time::Duration;

use crate::support::document::{array, number, text};
use crate::support::lab::lab_command;
use crate::support::process::{Process, eventually, run};
use crate::support::{Program, Server, linerate};

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
        (
            &["diagnose", "localhost", "--", "-t", "0.1"],
            "-t 0.1: the time of the transfer is a whole number of seconds from 1",
        ),
        (&["tune", "localhost", "--", "-t", "abc"], "-t abc: the time of the transfer"),
        (&["doctor", "localhost", "--", "-t", "0"], "-t 0: the time of the transfer"),
        (&["diagnose", "localhost", "--", "-c", "other"], "-c has no effect after `--`: the host comes before"),
        (&["diagnose", "localhost", "-R"], "`linerate diagnose HOST -- -R`"),
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
fn a_process_without_connections_is_named() {
    // Above the kernel's limit of process IDs.
    let mut command = linerate();
    command.args(["diagnose", "--pid", "4194305"]);
    let start = std::time::Instant::now();
    let ended = run(command, LIMIT).expect_code(2);
    assert!(ended.stderr.contains("--pid 4194305: no process of this host has that ID"), "{}", ended.stderr);
    assert!(start.elapsed() < Duration::from_secs(9), "it does not watch");
    let own = std::process::id();
    let mut command = linerate();
    command.args(["diagnose", "--pid", &own.to_string(), "--time", "1s", "--quiet", "--port", "9"]);
    let ended = run(command, LIMIT).expect_code(2);
    let expected = format!("no matching connection of process {own} (cli");
    assert!(ended.stderr.contains(&expected), "{}", ended.stderr);
}

/// Before the first trial, too: the path is shown as far as it was measured.
#[test]
fn an_interrupted_tuning_has_an_exit_status_of_its_own() {
    let server = Server::start(Program::Linerate, &[]);
    for (waited, is_path_shown) in [("idle", false), ("capacity up", true)] {
        let mut command = linerate();
        command.args(["tune", "127.0.0.1", "-p", &server.port.to_string(), "--dry-run"]);
        let tuning = Process::start(command);
        assert!(eventually(LIMIT, || tuning.stderr().lines().any(|line| line == waited)), "{}", tuning.stderr());
        tuning.signal("INT");
        let ended = tuning.finish(LIMIT).expect_code(3);
        assert!(ended.stderr.contains("interrupted: Ctrl-C (SIGINT)"), "{}", ended.stderr);
        if is_path_shown {
            assert!(ended.stdout.starts_with("Path: 127.0.0.1"), "{}", ended.stdout);
            assert!(ended.stdout.contains("cut short: interrupted (SIGINT)"), "{}", ended.stdout);
        }
    }
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
