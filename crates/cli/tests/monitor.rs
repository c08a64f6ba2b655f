//! `linerate monitor`: tests and probes at their times, what it does not measure and why, and alerts.

use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::support::process::{Process, run};
use crate::support::server::free_port;
use crate::support::{Program, Scratch, Server, linerate};

const LIMIT: Duration = Duration::from_secs(120);

fn monitor(scratch: &Scratch, arguments: &[&str]) -> Command {
    let mut command = linerate();
    command
        .arg("monitor")
        .args(arguments)
        .args(["--json", "-t", "1s"])
        .env("LINERATE_HISTORY", scratch.path("history"));
    command
}

fn results(output: &str) -> Vec<Value> {
    output.lines().map(|line| serde_json::from_str(line).expect("an object")).collect()
}

fn of_task<'a>(results: &'a [Value], task: &str) -> Vec<&'a Value> {
    results.iter().filter(|result| result["task"] == task).collect()
}

#[test]
fn tests_talk_to_servers_in_tls() {
    let scratch = Scratch::new();
    let key = scratch.path("key");
    std::fs::write(&key, "0123456789abcdef0123456789abcdef").expect("a file");
    let number = free_port();
    let port = number.to_string();
    let mut command = linerate();
    command.args(["serve", "--no-stamp", "-B", "127.0.0.1", "-p", &port, "--shared-key-file", &key]);
    let _server = Server::listening(command, number);
    let once = |tls: &[&str]| {
        let arguments = [&["127.0.0.1", "-p", &port, "--once", "--no-probes"][..], tls].concat();
        let done = Process::start(monitor(&scratch, &arguments)).finish(LIMIT);
        of_task(&results(&done.stdout), "test")[0].clone()
    };
    let without = once(&[]);
    assert_eq!(without["outcome"], "failed", "{without:#}");
    assert!(without["reason"].as_str().is_some_and(|reason| reason.contains("TLS")), "{without:#}");
    assert_eq!(once(&["--shared-key-file", &key])["outcome"], "done");
}

#[test]
fn hosts_are_tested_and_probed_at_their_times() {
    let (scratch, server) = (Scratch::new(), Server::start(Program::Linerate, &[]));
    let port = server.port.to_string();
    let arguments = [
        "127.0.0.1",
        "127.0.0.2",
        "-p",
        &port,
        "--every",
        "10s",
        "--probe-every",
        "12s",
        "--for",
        "26s",
        "--daily-data",
        "10TB",
    ];
    let done = Process::start(monitor(&scratch, &arguments)).finish(LIMIT).expect_code(0);
    let all = results(&done.stdout);
    let tests = of_task(&all, "test");
    for host in ["127.0.0.1", "127.0.0.2"] {
        let own: Vec<_> = tests.iter().filter(|result| result["destination"] == host).collect();
        assert!((2..=4).contains(&own.len()), "{host}: {own:#?}");
        for result in own {
            assert_eq!(result["outcome"], "done", "{result:#}");
            assert!(result["run"]["result"]["throughput"].is_object() && result["verdict"] != "", "{result:#}");
            assert_eq!(result["at_unix_ns"].as_u64().expect("a time") % 1_000_000_000, 0);
        }
    }
    let probes = of_task(&all, "probe");
    let whole: Vec<_> = probes.iter().filter(|result| result["outcome"] == "done").collect();
    assert!(!whole.is_empty(), "{all:#?}");
    for result in whole {
        assert!(result["run"].is_null(), "{result:#}");
        let names: Vec<&str> = result["figures"]
            .as_array()
            .expect("figures")
            .iter()
            .filter_map(|figure| figure["name"].as_str())
            .collect();
        assert!(names.contains(&"rtt_idle_median") && names.contains(&"rtt_idle_p95"), "{names:?}");
    }
    // Tests are in the history, too.
    let mut list = linerate();
    list.args(["history", "list", "--json"]).env("LINERATE_HISTORY", scratch.path("history"));
    assert_eq!(run(list, LIMIT).expect_code(0).stdout.matches("\"throughput\"").count(), tests.len());
    results_are_where_users_look(&scratch, (tests.len(), probes.len()));
}

/// The results of a log in the history, and as a report.
fn results_are_where_users_look(scratch: &Scratch, (tests, probes): (usize, usize)) {
    let shown = |arguments: &[&str], code| {
        let mut command = linerate();
        command.args(arguments).env("LINERATE_HISTORY", scratch.path("history"));
        run(command, LIMIT).expect_code(code)
    };
    let directory = scratch.path("results");
    let text = shown(&["fleet", "report", "--format", "text"], 0).stdout;
    assert!(text.contains("results between 3 hosts: 4 of 6 directions measured"), "{text}");
    assert_eq!(shown(&["report", &directory, "--format", "text"], 0).stdout, text);
    let mixed = shown(&["report", &directory, "last"], 2).stderr;
    assert!(mixed.contains("has results of a fleet and \"last\" has none: make a report of each"), "{mixed}");
    assert!(shown(&["history"], 0).stderr.contains("linerate history list --results"));
    let rows = shown(&["history", "list", "--results", "--json", "-n", "1000"], 0).json();
    let rows = rows["results"].as_array().expect("rows");
    assert_eq!(rows.iter().filter(|row| row["task"] == "test").count(), tests, "{rows:#?}");
    let summed: u64 = rows.iter().filter(|row| row["task"] == "probe").filter_map(|row| row["count"].as_u64()).sum();
    assert_eq!(summed, probes as u64, "{rows:#?}");
    let one = shown(&["history", "list", "--results", &directory, "--host", "127.0.0.2", "-n", "500"], 0).stdout;
    assert!(one.contains("-> 127.0.0.2") && !one.contains("-> 127.0.0.1"), "{one}");
    let trend = shown(&["history", "trend", "goodput_up", "--results"], 0).stdout;
    assert!(trend.contains(&format!("over {tests} results")), "{trend}");
    let unknown = shown(&["history", "trend", "speed", "--results"], 2).stderr;
    assert!(unknown.contains("no result has the figure \"speed\"\nthe figures are goodput_down, "), "{unknown}");
}

#[test]
fn what_is_not_measured_is_recorded_with_its_reason() {
    let (scratch, server) = (Scratch::new(), Server::start(Program::Linerate, &[]));
    let port = server.port.to_string();
    let host = ["127.0.0.1", "-p", &port];
    for (options, reason) in [
        (&["--once", "--quiet-hours", "00:00-12:00", "--quiet-hours", "12:00-00:00"][..], "quiet hours"),
        (&["--once", "--daily-data", "0B"][..], "the data of the day: 0 B of 0 B are used"),
    ] {
        let done = run(monitor(&scratch, &[&host, options].concat()), LIMIT).expect_code(0);
        let found = results(&done.stdout);
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!(found[0]["outcome"], "skipped");
        assert!(found[0]["reason"].as_str().is_some_and(|text| text.starts_with(reason)), "{found:#?}");
    }
}

#[test]
fn a_host_that_does_not_answer_twice_is_an_alert() {
    let scratch = Scratch::new();
    let file = scratch.path("alerts");
    let command = format!("echo \"$LINERATE_ALERT_KIND $LINERATE_ALERT_HOST $LINERATE_ALERT_TEXT\" >> {file}");
    // No one listens on port 9.
    let arguments = ["127.0.0.1", "-p", "9", "--once", "--on-alert", &command];
    for code in [0, 1, 0] {
        let done = run(monitor(&scratch, &arguments), LIMIT).expect_code(code);
        assert_eq!(results(&done.stdout)[0]["outcome"], "failed");
        assert_eq!(done.stderr.contains("alert: 127.0.0.1: no result twice in a row: "), code == 1, "{}", done.stderr);
    }
    let alerts = std::fs::read_to_string(file).expect("an alert");
    assert_eq!(alerts.lines().count(), 1, "{alerts}");
    assert!(alerts.starts_with("unreachable 127.0.0.1 no result twice in a row: "), "{alerts}");
}

#[test]
fn schedules_that_never_come_are_refused() {
    let scratch = Scratch::new();
    for (arguments, part) in [
        (&["a", "--at", "0 0 30 2 *"][..], "no day is ever"),
        (&["a", "--at", "hourly"][..], "five fields"),
        (&["a", "--quiet-hours", "22-6"][..], "hours such as 22:00-06:00"),
        (&["a", "--results", "/proc/none"][..], "making the directory /proc/none"),
    ] {
        let done = run(monitor(&scratch, arguments), LIMIT).expect_code(2);
        assert!(done.stderr.contains(part), "{done:#?}");
    }
}
