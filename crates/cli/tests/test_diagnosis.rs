//! Tests of the diagnosis of each run of `linerate test`, which has no path measurement.

use serde_json::Value;
use std::time::Duration;

use crate::support::document::{array, text};
use crate::support::lab::lab;
use crate::support::process::run;
use crate::support::{self, Program, Server, linerate};

const LIMIT: Duration = Duration::from_secs(300);

/// Command `linerate test` against a server on this host.
fn against(server: &Server, arguments: &[&str]) -> std::process::Command {
    let mut command = linerate();
    command.args(["test", "127.0.0.1", "--port", &server.port.to_string(), "-P", "1"]).args(arguments);
    if !arguments.contains(&"--time") {
        command.args(["--time", "1s"]);
    }
    command
}

fn first_cause(run: &Value) -> &str {
    text(run, "/diagnosis/verdicts/0/cause")
}

/// Asserts that the shares add up to one, except for those too small to be listed.
fn assert_shares(run: &Value) {
    let states = array(run, "/diagnosis/states");
    let sum: f64 = states.iter().map(|state| state["share"].as_f64().expect("a share")).sum();
    assert!((0.99..1.001).contains(&sum), "{states:?}");
}

#[test]
fn the_document_has_a_diagnosis_of_both_directions() {
    let mut command = linerate();
    let port = support::free_port();
    command.args(["serve", "--port", &port.to_string()]);
    let server = Server::listening(command, port);
    let document = run(against(&server, &["--json", "--time", "3s"]), LIMIT).expect_code(0).json();
    for one in array(&document, "/runs") {
        assert_shares(one);
        // From both hosts: one direction needs the receiver's settings, the other one the sender's.
        let bounds: Vec<&str> = array(one, "/diagnosis/bounds").iter().map(|bound| text(bound, "/kind")).collect();
        assert!(bounds.contains(&"receive_window") && bounds.contains(&"send_buffer"), "{bounds:?}");
    }
    let often = run(against(&server, &["--json", "--interval", "50ms"]), LIMIT).expect_code(0).json();
    assert!(array(&often, "/runs").iter().all(|one| one["diagnosis"].is_null()), "sample intervals below that");
}

#[test]
fn a_stock_server_leaves_the_statistics_of_this_host() {
    let server = Server::start(Program::Iperf3, &[]);
    let document = run(against(&server, &["--json"]), LIMIT).expect_code(0).json();
    let [up, down] = array(&document, "/runs") else { panic!("two runs: {document}") };
    assert_shares(up);
    assert!(down["diagnosis"].is_null() && down.as_object().is_some_and(|run| run.contains_key("diagnosis")), "{down}");
    let shown = run(against(&server, &["--quiet"]), LIMIT).expect_code(0).stdout;
    // The host's load decides on the limit.
    assert!(shown.contains("limited") && shown.contains("Next: linerate diagnose 127.0.0.1"), "{shown}");
    assert!(shown.contains("limit unknown"), "{shown}");
    assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
}

#[test]
fn a_small_window_is_reported_with_its_rate() {
    for direction in ["--up", "--down"] {
        let arguments = ["linerate", "test", "far", "-P", "1", direction, "--json"];
        let document = lab("300m-20ms-receive-buffer-375k", &arguments).json();
        let run = &document["runs"][0];
        assert_eq!(first_cause(run), "receive-window", "{direction}: {run}");
        let closed = array(run, "/diagnosis/states").iter().find(|state| state["state"] == "receive_window");
        let share = closed.and_then(|state| state["share"].as_f64()).expect("a share");
        assert!(share > 0.9, "{direction}: {share}");
        // 0.62 of 375 kB per 20.1 ms.
        let rate = run["bits_per_second"].as_f64().expect("a rate");
        assert!((0.85..1.05).contains(&(rate / (0.62 * 375e3 * 8.0 / 20.1e-3))), "{direction}: {rate}");
    }
}

#[test]
fn loss_is_not_mistaken_for_a_host_limit() {
    let document = lab("300m-20ms-loss-cubic", &["linerate", "test", "far", "-P", "1", "--up", "--json"]).json();
    let run = &document["runs"][0];
    assert_eq!(first_cause(run), "loss", "{run}");
    assert_eq!(text(run, "/diagnosis/verdicts/0/location"), "network");
}

#[test]
fn a_slow_start_overshoot_is_distinguished_from_loss() {
    let document = lab("300m-20ms-tiny-buffer", &["linerate", "test", "far", "-P", "1", "--up", "--json"]).json();
    assert_eq!(first_cause(&document["runs"][0]), "buffer-too-small", "{document}");
}

#[test]
fn a_path_that_is_full_blames_no_host() {
    let document = lab("300m-20ms", &["linerate", "test", "far", "--json"]).json();
    for run in array(&document, "/runs") {
        let places: Vec<&str> =
            array(run, "/diagnosis/verdicts").iter().map(|verdict| text(verdict, "/location")).collect();
        assert!(places.iter().all(|place| ["network", "nowhere", "unknown"].contains(place)), "{run}");
        assert!(text(run, "/diagnosis/verdicts/0/text").contains("queue"), "{run}");
        // Loss in a full queue is no limit.
        let rate = run["bits_per_second"].as_f64().expect("a rate");
        for bound in array(run, "/diagnosis/bounds") {
            assert!(bound["bits_per_second"].as_f64() > Some(rate), "{bound}");
        }
    }
}

#[test]
fn a_second_is_enough_to_see_that_the_path_is_full() {
    let document = lab("300m-20ms", &["linerate", "test", "far", "--time", "1s", "--json"]).json();
    for run in array(&document, "/runs") {
        assert_eq!(first_cause(run), "link-rate", "{run}");
        assert!(array(run, "/server_intervals").len() >= 5, "{run}");
    }
}

#[test]
fn a_reader_that_bbr_takes_for_a_slow_path_is_found() {
    let arguments = ["linerate", "test", "far", "-P", "1", "--up", "--time", "3s", "--json"];
    let document = lab("300m-20ms-slow-reader-bbr", &arguments).json();
    assert_eq!(first_cause(&document["runs"][0]), "slow-reader", "{document}");
}
