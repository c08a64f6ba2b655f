//! Tests of `linerate watch` on emulated paths with a known limit.

use std::path::Path;

use serde_json::Value;

use crate::support::lab::lab_command;
use crate::support::linerate;
use crate::support::process::run;

const LIMIT: std::time::Duration = std::time::Duration::from_secs(300);

/// Fastest flow of `watch` while `client` runs on this path, with the iperf3 client's arguments.
fn watched(path: &str, client: &str) -> Value {
    let program = linerate().get_program().to_owned();
    let folder = Path::new(&program).parent().expect("a folder").to_str().expect("UTF-8").to_owned();
    let search = format!("{folder}:{}", std::env::var("PATH").unwrap_or_default());
    let script = format!(
        "linerate iperf3 -c far -t 6 {client} > /dev/null & sleep 3; linerate watch --once --json --port 5201; wait"
    );
    let mut command = lab_command(path, &["sh", "-c", &script]);
    command.env("PATH", search);
    let document = run(command, LIMIT).expect_code(0).json();
    document["flows"][0].clone()
}

#[test]
fn the_receive_window_is_reported_with_its_size() {
    let flow = watched("300m-20ms-receive-buffer-375k", "");
    assert_eq!(flow["limit"]["by"], "receive-window", "{flow:#}");
    let share = flow["limit"]["shares"]["receive_window"].as_f64().expect("a share");
    assert!(share >= 0.2, "{flow:#}");
    // The rate is one window per round trip.
    let number = |key: &str| flow[key].as_f64().expect("a number");
    let bound = number("send_window_bytes") * 8.0 / (number("rtt_ns") / 1e9);
    let rate = number("send_bits_per_second");
    assert!((rate / bound - 1.0).abs() < 0.15, "{rate} of {bound}: {flow:#}");
    assert_eq!(flow["process"]["name"], "linerate");
}

#[test]
fn the_send_buffer_the_path_and_the_application_are_distinguished() {
    for (path, client, expected) in [
        ("300m-20ms-send-buffer-375k", "", "send-buffer"),
        ("300m-20ms", "", "congestion-window"),
        ("300m-20ms", "-b 50M", "application"),
        ("300m-20ms", "-R", "far-end"),
    ] {
        let flow = watched(path, client);
        assert_eq!(flow["limit"]["by"], expected, "{path} {client}: {flow:#}");
    }
}
