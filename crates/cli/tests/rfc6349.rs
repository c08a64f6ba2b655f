//! Tests of `linerate rfc6349` on an emulated path, against a stock iperf3, and without a server.

use std::time::Duration;

use serde_json::Value;

use crate::support::document::{array, number, text};
use crate::support::lab::lab_command;
use crate::support::process::run;
use crate::support::{Program, Server, linerate};

const LIMIT: Duration = Duration::from_secs(300);

/// Rates of 24 Mbit/s down and 4.35 Mbit/s up over 65 ms, with a queue of more than a second up.
#[test]
fn a_cable_link_has_its_three_metrics() {
    let arguments = ["linerate", "rfc6349", "far", "--time", "5s", "--congestion", "cubic", "--json", "--quiet"];
    let document: Value = run(lab_command("cable-bloat", &arguments), LIMIT).expect_code(0).json();
    let baseline = |key: &str| number(&document, &format!("/baseline/{key}"));
    // Bandwidth-delay product: rate × round trip / 8.
    let product = baseline("bandwidth_up_bits_per_second") * baseline("rtt_ns") / 1e9 / 8.0;
    assert!((baseline("bdp_up_bytes") / product - 1.0).abs() < 0.001, "{:#}", document["baseline"]);
    // 1448 of 1500 bytes of each IP packet are payload.
    let achievable = baseline("bandwidth_up_bits_per_second") * 1448.0 / 1500.0;
    assert!((baseline("achievable_up_bits_per_second") / achievable - 1.0).abs() < 0.001);
    let tests = array(&document, "/tests");
    assert_eq!(tests.len(), 6, "single and several connections per direction, and both directions at once");
    for test in tests.iter().filter(|test| test["flows"] != "both") {
        let (goodput, ratio) = (number(test, "/goodput_bits_per_second"), number(test, "/transfer_time_ratio"));
        let share = number(test, "/share_of_achievable");
        assert!(goodput > 0.0 && (ratio * share - 1.0).abs() < 0.01, "one is the other's inverse: {test:#}");
        assert!((0.9..=1.1).contains(&ratio), "it fills the path: {test:#}");
        assert!((0.9..=1.0).contains(&number(test, "/efficiency")), "{test:#}");
    }
    let up = tests.iter().find(|test| test["direction"] == "up").expect("a transfer up");
    assert!(number(up, "/buffer_delay") > 2.0, "the queue is many times the round trip: {up:#}");
    let windows = array(&document, "/windows");
    assert_eq!(windows.len(), 8, "four parts of the product per direction: {windows:#?}");
    for window in windows {
        let share = number(window, "/share_of_bdp");
        let ratio = window.pointer("/ratio").and_then(Value::as_f64).unwrap_or_else(|| panic!("{window:#}"));
        assert!((0.7..=1.1).contains(&ratio), "a window of {share} of the product: {window:#}");
    }
    let managed: Vec<&str> = array(&document, "/traffic_management").iter().map(|one| text(one, "/verdict")).collect();
    assert_eq!(managed, ["shaped", "shaped"]);
}

#[test]
fn a_stock_iperf3_provides_the_rates() {
    let server = Server::start(Program::Iperf3, &[]);
    let mut command = linerate();
    let port = server.port.to_string();
    command.args(["rfc6349", "127.0.0.1", "--port", &port, "--time", "1s", "-P", "2"]);
    command.args(["--no-windows", "--json", "--quiet"]);
    let document: Value = run(command, LIMIT).expect_code(0).json();
    assert_eq!(text(&document, "/path/peer"), "iperf3");
    let down = array(&document, "/tests").iter().find(|test| test["direction"] == "down").expect("a transfer down");
    assert!(down["problem"].is_null(), "{down:#}");
    assert!(number(down, "/goodput_bits_per_second") > 1e6);
    assert!(down["efficiency"].is_null(), "only the far sender's kernel knows: {down:#}");
    assert!(array(&document, "/windows").is_empty());
}

#[test]
fn a_missing_server_is_reported() {
    let mut command = linerate();
    command.args(["rfc6349", "name.invalid", "--json", "--quiet"]);
    let ended = run(command, LIMIT).expect_code(2);
    assert!(ended.stderr.contains("name.invalid"), "{}", ended.stderr);
    assert_eq!(ended.stdout, "");
}
