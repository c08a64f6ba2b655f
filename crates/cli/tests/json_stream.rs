//! `--json-stream`: events of every measuring command while it measures, each on a line, and the document at the end.

use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::support::lab::measure_in_guest;
use crate::support::process::{Process, run};
use crate::support::{Scratch, Server, free_port, linerate};

const LIMIT: Duration = Duration::from_secs(300);

fn server() -> Server {
    let port = free_port();
    let mut command = linerate();
    command.args(["serve", "--port", &port.to_string()]);
    Server::listening(command, port)
}

fn streamed(line: &str) -> Command {
    let mut command = linerate();
    let (own, transfer) = line.split_once(" -- ").map_or((line, None), |(own, transfer)| (own, Some(transfer)));
    command.arg("--no-history").args(own.split_whitespace()).args(["--json-stream", "-q"]);
    command.args(transfer.into_iter().flat_map(|text| std::iter::once("--").chain(text.split_whitespace())));
    command
}

fn events(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|cause| panic!("{cause}: {line}"))).collect()
}

/// Checks the form of a stream and returns the kinds of its events.
#[track_caller]
fn kinds(events: &[Value]) -> Vec<String> {
    let keys = |event: &Value| event.as_object().expect("an object").keys().cloned().collect::<Vec<_>>();
    let first = keys(&events[0]);
    let mut before = 0;
    for event in events {
        assert_eq!(keys(event), first, "all events have the same keys");
        assert_eq!(event["schema"], 1);
        let at = event["at_ns"].as_u64().expect("a time");
        assert!(at >= before, "{event}");
        before = at;
    }
    events.iter().map(|event| event["event"].as_str().expect("a kind").to_owned()).collect()
}

#[test]
fn every_measuring_command_reports_while_it_measures() {
    let cases = [
        ("test far -t 1s -P 1", "throughput", &["up, 1 stream", "down, 1 stream"][..]),
        ("load far --phases down -t 1s --idle 1s", "load", &["idle", "down"]),
        ("path far --no-capacity -c 50", "path", &["path MTU", "idle"]),
        ("rfc6349 far -t 1s -P 1 --no-windows --no-traffic-management", "rfc6349", &["idle"]),
        ("rr far -t 1s", "rr", &["transactions"]),
        ("diagnose far --no-path -- -t 1", "diagnose", &["transfer"]),
        ("tune far --dry-run -- -t 1", "tune", &["idle", "transfer"]),
    ];
    let with_stream = |line: &str| {
        let (own, transfer) = line.split_at(line.find(" -- ").unwrap_or(line.len()));
        format!("{own} --no-history --json-stream -q{transfer}")
    };
    let lines = cases.map(|(line, ..)| with_stream(line));
    let output = measure_in_guest("", &lines.each_ref().map(String::as_str));
    for ((_, document, phases), line) in cases.into_iter().zip(&lines) {
        let end = output.part(&format!("end of {line}"));
        assert!(matches!(end.lines().next(), Some("0" | "1")), "{line}: {end}");
        let events = events(output.part(line));
        let kinds = kinds(&events);
        assert_eq!((kinds[0].as_str(), kinds[kinds.len() - 1].as_str()), ("start", "result"), "{line}: {kinds:?}");
        assert_eq!(kinds.iter().filter(|kind| *kind == "result").count(), 1);
        let result = &events[events.len() - 1]["document"];
        assert_eq!((&result["kind"], &result["schema"]), (&document.into(), &1.into()), "{line}");
        let samples: Vec<&Value> = events.iter().filter(|event| event["event"] == "sample").collect();
        assert!(samples.len() >= 2, "{line}: {kinds:?}");
        let is_known = |event: &&&Value| {
            ["up_bits_per_second", "down_bits_per_second", "rtt_ns", "transactions_per_second"]
                .iter()
                .any(|key| event[*key].as_f64() > Some(0.0))
        };
        assert!(samples.iter().filter(is_known).count() >= 2, "{line}: {samples:#?}");
        // They come while it measures, not at its end.
        let end = events[events.len() - 1]["at_ns"].as_u64();
        assert!(samples[0]["at_ns"].as_u64().map(|at| at + 300_000_000) < end, "{line}");
        for phase in phases {
            assert!(events.iter().any(|event| event["phase"] == *phase), "{line}: {phase}");
        }
    }
}

#[test]
fn a_test_reports_each_run_with_its_result() {
    let server = server();
    let finished = run(streamed(&format!("test 127.0.0.1 -p {} -t 1s -P 1", server.port)), LIMIT).expect_code(0);
    let events = events(&finished.stdout);
    let runs: Vec<&Value> = events.iter().filter(|event| event["event"] == "run").collect();
    assert_eq!(runs.len(), 2);
    assert_eq!(runs[0]["phase"], "up, 1 stream");
    assert!(runs[0]["up_bits_per_second"].as_f64() > Some(1e6) && runs[0]["down_bits_per_second"].is_null());
    assert!(runs[1]["down_bits_per_second"].as_f64() > Some(1e6));
    assert!(runs[0]["text"].as_str().is_some_and(|text| text.contains("bit/s, ")), "{}", runs[0]);
    let downloads = events.iter().filter(|event| event["down_bits_per_second"].as_f64() > Some(1e6));
    assert!(downloads.filter(|event| event["limits"].is_object()).count() >= 1, "the far end's sender is known");
}

/// A reader sees the events at once, and the one that ends it is the result.
#[test]
fn events_come_one_by_one_and_an_interrupted_run_has_its_result() {
    let server = server();
    let client = Process::start(streamed(&format!("test 127.0.0.1 -p {} -t 60s -P 1", server.port)));
    client.wait_for_output("\"event\":\"sample\"", LIMIT);
    client.signal("INT");
    let finished = client.finish(LIMIT).expect_code(3);
    let events = events(&finished.stdout);
    assert_eq!(kinds(&events).last().map(String::as_str), Some("result"));
    assert_eq!(events[events.len() - 1]["document"]["termination"]["outcome"], "interrupted");
}

#[test]
fn an_error_is_an_event_too() {
    let finished = run(streamed(&format!("load 127.0.0.1 -p {}", free_port())), LIMIT).expect_code(2);
    let events = events(&finished.stdout);
    assert_eq!(kinds(&events), ["start", "error"]);
    assert!(events[1]["text"].as_str().is_some_and(|text| text.contains("Connection refused")), "{}", events[1]);
}

#[test]
fn commands_without_a_far_end_have_the_same_events() {
    let scratch = Scratch::new();
    let mut baseline = streamed("baseline --time 100ms");
    baseline.current_dir(scratch.path("."));
    let events_of_baseline = events(&run(baseline, LIMIT).expect_code(0).stdout);
    let kinds_of_baseline = kinds(&events_of_baseline);
    assert_eq!(kinds_of_baseline.first().map(String::as_str), Some("start"));
    assert!(events_of_baseline.iter().any(|event| event["phase"] == "TCP over loopback"));
    assert_eq!(events_of_baseline[events_of_baseline.len() - 1]["document"]["kind"], "baseline");
    let mut watch = linerate();
    watch.args(["watch", "--json-stream", "--count", "2", "--interval", "100ms"]);
    let events_of_watch = events(&run(watch, LIMIT).expect_code(0).stdout);
    assert_eq!(kinds(&events_of_watch), ["start", "interval", "interval"]);
    assert_eq!(events_of_watch[1]["document"]["kind"], "watch");
    for refused in ["test far --json --json-stream", "load far --json-stream --brief", "path far --live --json-stream"]
    {
        let mut command = linerate();
        command.args(refused.split(' '));
        run(command, LIMIT).expect_code(2);
    }
}

#[test]
fn each_of_several_hosts_ends_with_its_document() {
    let server = server();
    let hosts = [format!("127.0.0.1:{}", server.port), format!("localhost:{}", server.port)];
    let line = format!("test {} {} -t 1s -P 1 --up", hosts[0], hosts[1]);
    let events = events(&run(streamed(&line), LIMIT).expect_code(0).stdout);
    assert_eq!(kinds(&events).iter().filter(|kind| *kind == "result").count(), 2, "{events:?}");
    assert_eq!(events.last().expect("events")["document"]["result"]["throughput"]["host"], "localhost");
}
