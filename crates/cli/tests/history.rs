//! Tests of `linerate history`, and of the records of measuring commands.

use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::support::process::{FinishedChild, run};
use crate::support::{Scratch, Server, free_port, linerate};

const LIMIT: Duration = Duration::from_secs(300);

/// linerate with a separate history.
fn with_history(scratch: &Scratch, arguments: &[&str]) -> Command {
    let mut command = linerate();
    command.env("LINERATE_HISTORY", scratch.path("history.sqlite")).args(arguments);
    command
}

fn history(scratch: &Scratch, arguments: &[&str]) -> FinishedChild {
    run(with_history(scratch, &[&["history"], arguments].concat()), LIMIT)
}

fn serve() -> Server {
    let port = free_port();
    let mut command = linerate();
    command.args(["serve", "--port", &port.to_string()]);
    Server::listening(command, port)
}

/// The shortest test of loopback.
fn measure_once(scratch: &Scratch, server: &Server, more: &[&str]) -> FinishedChild {
    measure_with(scratch, server, &[&["--time", "1s", "-P", "1", "--up"], more].concat())
}

/// A short test of loopback.
fn measure(scratch: &Scratch, server: &Server, more: &[&str]) -> FinishedChild {
    measure_with(scratch, server, &[&["--time", "1s", "-P", "2"], more].concat())
}

fn measure_with(scratch: &Scratch, server: &Server, more: &[&str]) -> FinishedChild {
    let port = server.port.to_string();
    let common = ["test", "127.0.0.1", "--port", &port];
    run(with_history(scratch, &[&common[..], more].concat()), LIMIT).expect_code(0)
}

/// Run as a line of JSON: to this host, at this second of 2026, with this goodput and the half width of its interval.
fn line(host: &str, second: u64, goodput: f64, spread: f64) -> String {
    let figure = serde_json::json!({
        "name": "goodput_down", "title": "Goodput down, 1 stream", "unit": "bit/s", "value": goodput,
        "low": goodput - spread, "high": goodput + spread, "count": 10, "better": "higher",
    });
    let termination = serde_json::json!({ "outcome": "complete", "signal": null, "message": null });
    let document = serde_json::json!({
        "schema": 1, "linerate_version": "0.1.0", "kind": "throughput",
        "started_at_unix_ns": (1_795_000_000 + second) * 1_000_000_000, "duration_ns": 5_000_000_000_u64,
        "host": host, "port": 5201, "arguments": ["test", host], "termination": termination,
        "verdict": "Down well over one stream (limit unknown).", "figures": [figure], "series": [],
        "environment": { "near": { "kernel": format!("6.12.{second}") }, "far": null },
        "result": { "throughput": {
            "schema": 1, "linerate_version": "0.1.0", "host": host, "port": 5201, "peer_is_linerate": true,
            "peer_version": null, "idle_rtt": null, "runs": [],
        } },
    });
    format!("{document}\n")
}

/// Three runs to `a`, one of them much slower, and one to `b`.
fn filled() -> Scratch {
    let scratch = Scratch::new();
    let lines = [line("a", 1, 9e8, 1e7), line("a", 2, 9.05e8, 5e6), line("a", 3, 5e8, 1e7), line("b", 4, 1e9, 1e7)];
    let file = scratch.file("runs.jsonl", lines.concat());
    history(&scratch, &["import", &file]).expect_code(0);
    scratch
}

fn figure<'a>(run: &'a Value, name: &str) -> &'a Value {
    let figures = run["figures"].as_array().expect("figures");
    figures.iter().find(|figure| figure["name"] == name).unwrap_or_else(|| panic!("no {name} in {figures:#?}"))
}

#[test]
fn a_test_is_recorded_with_its_figures_samples_and_environment() {
    let (scratch, server) = (Scratch::new(), serve());
    let first = measure_once(&scratch, &server, &[]);
    assert!(first.stderr.contains("kept as run 1"), "{first:#?}");
    let shown = measure(&scratch, &server, &["--json"]);
    assert!(!shown.stderr.contains("kept as"), "no note with --json: {shown:#?}");
    let run = history(&scratch, &["show", "last", "--json"]).expect_code(0).document();
    assert_eq!((&run["schema"], &run["kind"], &run["host"]), (&1.into(), &"throughput".into(), &"127.0.0.1".into()));
    assert_eq!(run["result"]["throughput"], shown.json(), "the document is what --json printed");
    for name in ["goodput_up", "goodput_down", "goodput_up_parallel", "goodput_down_parallel"] {
        assert!(figure(&run, name)["value"].as_f64().expect("a rate") > 1e6, "{name}");
    }
    assert!(figure(&run, "rtt_loaded_up")["value"].as_f64().expect("a time") > 0.0);
    let panels: Vec<&str> =
        run["series"].as_array().expect("series").iter().filter_map(|series| series["panel"].as_str()).collect();
    for panel in ["throughput", "rtt", "congestion_window", "retransmissions", "limits", "queue"] {
        assert!(panels.contains(&panel), "{panel} in {panels:?}");
    }
    assert_eq!(run["phases"].as_array().map(Vec::len), Some(4));
    let near = &run["environment"]["near"];
    assert!(near["kernel"].is_string() && near["congestion_control"].is_string(), "{near:#}");
    assert!(near["sysctls"]["net.ipv4.tcp_rmem"].is_string(), "{near:#}");
    let text = history(&scratch, &["show", "1"]).expect_code(0).stdout;
    assert!(text.contains("Goodput"), "{text}");
}

#[test]
fn no_history_records_nothing() {
    let (scratch, server) = (Scratch::new(), serve());
    let finished = measure_once(&scratch, &server, &["--no-history"]);
    assert!(!finished.stderr.contains("kept"), "{finished:#?}");
    let mut off = with_history(&scratch, &["test", "127.0.0.1", "--port", &server.port.to_string(), "--time", "1s"]);
    off.env("LINERATE_HISTORY", "off").args(["--up", "-P", "1"]);
    run(off, LIMIT).expect_code(0);
    let list = history(&scratch, &[]);
    assert_eq!(list.code(), Some(2), "{list:#?}");
    assert!(list.stderr.contains("there is no history yet"), "{list:#?}");
}

#[test]
fn a_history_that_cannot_be_written_is_a_warning() {
    let (scratch, server) = (Scratch::new(), serve());
    scratch.file("history.sqlite", "this is no database".repeat(100));
    let finished = measure_once(&scratch, &server, &[]);
    assert!(finished.stderr.contains("warning: this run is not in the history"), "{finished:#?}");
    assert!(finished.stderr.contains("the file is damaged") && finished.stderr.contains("mv "), "{finished:#?}");
    assert!(finished.stdout.contains("bit/s"), "the measurement is shown: {finished:#?}");
}

#[test]
fn ten_milliseconds_and_eight_streams() {
    let (scratch, server) = (Scratch::new(), serve());
    let finished = measure_with(&scratch, &server, &["-P", "8", "--interval", "10ms", "--time", "2s"]);
    assert!(finished.stderr.contains("kept as run 1"), "{finished:#?}");
    let run = history(&scratch, &["show", "1", "--json"]).expect_code(0).document();
    let readings = |panel: &str, direction: &str| {
        let all = run["series"].as_array().expect("series").iter();
        let of_panel = all.filter(|series| series["panel"] == panel && series["direction"] == direction);
        of_panel.filter_map(|series| series["times_ns"].as_array().map(Vec::len)).max().unwrap_or(0)
    };
    // Two runs of 2 s per direction have 20 samples at the default of 200 ms, and 400 here; a busy host skips some.
    for direction in ["up", "down"] {
        for panel in ["throughput", "rtt", "congestion_window"] {
            assert!(readings(panel, direction) >= 80, "{panel} {direction}: {}", readings(panel, direction));
        }
    }
    let streams = run["series"].as_array().expect("series").iter().filter_map(|series| series["stream"].as_u64()).max();
    assert_eq!(streams, Some(8));
}

#[test]
fn lists_fit_and_filters_select() {
    let scratch = filled();
    let text = history(&scratch, &[]).expect_code(0).stdout;
    assert_eq!(text.lines().count(), 5, "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(text.lines().nth(1).expect("the latest").contains(" b "), "the latest first: {text}");
    let ids = |arguments: &[&str]| -> Vec<u64> {
        let document = history(&scratch, &[&["list", "--json"], arguments].concat()).expect_code(0).json();
        document["runs"].as_array().expect("runs").iter().filter_map(|run| run["id"].as_u64()).collect()
    };
    assert_eq!(ids(&[]), [4, 3, 2, 1]);
    assert_eq!(ids(&["--host", "a", "--limit", "2"]), [3, 2]);
    assert_eq!(ids(&["--kind", "load"]), Vec::<u64>::new());
    assert_eq!(ids(&["--failed"]), Vec::<u64>::new());
    // 1 795 000 000 is 2026-11-18 11:06:40 UTC.
    assert_eq!(ids(&["--since", "2026-11-18T11:06:43"]), [4, 3]);
    assert_eq!(ids(&["--until", "2026-11-18T11:06:43"]), [2, 1]);
    assert_eq!(ids(&["--until", "2026-11-18"]), Vec::<u64>::new());
    history(&scratch, &["tag", "2", "with fq"]).expect_code(0);
    assert_eq!(ids(&["--tag", "with fq"]), [2]);
    history(&scratch, &["tag", "2", "with fq", "--remove"]).expect_code(0);
    history(&scratch, &["tag", "2", "with fq", "--remove"]).expect_code(2);
    let wrong = history(&scratch, &["--since", "yesterday"]);
    assert!(wrong.stderr.contains("expected a date"), "{wrong:#?}");
}

#[test]
fn a_report_of_a_range_contains_its_runs() {
    let scratch = filled();
    let reported = |runs: &str| run(with_history(&scratch, &["report", runs, "--format", "json"]), LIMIT);
    let seconds = |document: &Value| {
        let runs = document.as_array().expect("several runs").iter();
        let started = runs.map(|run| run["started_at_unix_ns"].as_u64().expect("a time") / 1_000_000_000);
        started.map(|second| second - 1_795_000_000).collect::<Vec<_>>()
    };
    assert_eq!(seconds(&reported("2..4").expect_code(0).json()), [2, 3, 4]);
    assert_eq!(seconds(&reported("1,last").expect_code(0).json()), [1, 4]);
    let missing = reported("3..5").expect_code(2);
    assert!(missing.stderr.contains("the history has no run 5"), "{missing:#?}");
}

#[test]
fn comparisons_report_significant_differences() {
    let scratch = filled();
    let judged = |before: &str, after: &str| {
        let document = history(&scratch, &["compare", before, after, "--json"]).expect_code(0).json();
        document["comparison"]["figures"][0]["judgement"].as_str().expect("a word").to_owned()
    };
    assert_eq!(judged("1", "2"), "equal");
    assert_eq!(judged("1", "3"), "worse");
    assert_eq!(judged("3", "1"), "better");
    assert_eq!(judged("1,2", "3"), "worse");
    let refused = history(&scratch, &["compare", "1", "4", "--fail-on-worse"]).expect_code(2);
    assert!(refused.stderr.contains("different targets (a, b)") && refused.stdout.is_empty(), "{refused:#?}");
    let text = history(&scratch, &["compare", "1", "last-1"]).expect_code(0).stdout;
    assert!(text.contains("Goodput down, 1 stream: worse") && text.contains("900 Mbit/s"), "{text}");
    assert!(text.contains("-400 Mbit/s"), "{text}");
    assert!(text.contains("near.kernel: 6.12.1 → 6.12.3"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    history(&scratch, &["compare", "1", "3", "--fail-on-worse"]).expect_code(1);
    history(&scratch, &["compare", "3", "1", "--fail-on-worse"]).expect_code(0);
    let missing = history(&scratch, &["compare", "1", "99"]).expect_code(2);
    assert!(missing.stderr.contains("the history has no run 99"), "{missing:#?}");
    let wrong = history(&scratch, &["compare", "1", "lately"]).expect_code(2);
    assert!(wrong.stderr.contains("last-1"), "{wrong:#?}");
}

#[test]
fn trends_show_how_a_figure_developed() {
    let scratch = filled();
    let text = history(&scratch, &["trend", "goodput_down", "--host", "a"]).expect_code(0).stdout;
    assert!(text.contains("██▁"), "{text}");
    assert!(text.contains("from 500 Mbit/s to 905 Mbit/s over 3 runs"), "{text}");
    let unknown = history(&scratch, &["trend", "goodput_sideways"]).expect_code(2);
    assert!(unknown.stderr.contains("the figures are goodput_down"), "{unknown:#?}");
    let document = history(&scratch, &["trend", "goodput_down", "--json"]).expect_code(0).json();
    assert_eq!(document["samples"].as_array().map(Vec::len), Some(4));
}

#[test]
fn exports_can_be_imported() {
    let scratch = filled();
    history(&scratch, &["tag", "1", "before"]).expect_code(0);
    let file = scratch.path("export.jsonl");
    history(&scratch, &["export", "--out", &file]).expect_code(0);
    let again = history(&scratch, &["import", &file]).expect_code(0);
    assert!(again.stderr.contains("0 runs added, 4 known already"), "{again:#?}");
    let other = Scratch::new();
    let moved = history(&other, &["import", &file]).expect_code(0);
    assert!(moved.stderr.contains("4 runs added"), "{moved:#?}");
    let exported = |scratch: &Scratch| history(scratch, &["export"]).expect_code(0).stdout;
    assert_eq!(exported(&scratch), exported(&other));
    let csv = history(&scratch, &["export", "--format", "csv", "--host", "a"]).expect_code(0).stdout;
    assert_eq!(csv.lines().count(), 4, "{csv}");
    assert!(csv.contains("1,2026-11-18T11:06:41Z,5,throughput,a,5201,complete,,before,goodput_down,bit/s,900000000"));
    let full = history(&scratch, &["export", "--out", "/dev/full"]).expect_code(2);
    assert_eq!(full.stderr, "linerate: writing /dev/full: No space left on device\n");
    let bad = other.file("bad.jsonl", "{}\n");
    let refused = history(&other, &["import", &bad]).expect_code(2);
    assert!(refused.stderr.contains("line 1 is not a run"), "{refused:#?}");
}

#[test]
fn deleting_asks_first() {
    let scratch = filled();
    let refused = history(&scratch, &["delete", "1", "last"]).expect_code(2);
    assert!(refused.stderr.contains("--yes"), "{refused:#?}");
    history(&scratch, &["delete", "1", "last", "--yes"]).expect_code(0);
    let left = history(&scratch, &["--json"]).expect_code(0).json();
    assert_eq!(left["runs"].as_array().map(Vec::len), Some(2));
    history(&scratch, &["delete", "1", "--yes"]).expect_code(2);
}

/// The oldest runs without a tag go, and the file becomes smaller; nothing is deleted without asking.
#[test]
fn a_size_limit_deletes_the_oldest_runs() {
    let scratch = filled();
    assert!(history(&scratch, &["limit"]).expect_code(0).stdout.ends_with(", no limit\n"));
    let refused = history(&scratch, &["limit", "1kB"]).expect_code(2);
    assert!(refused.stderr.contains("--yes"), "{refused:#?}");
    history(&scratch, &["tag", "1", "keep"]).expect_code(0);
    let done = history(&scratch, &["limit", "1kB", "--yes"]).expect_code(0);
    assert!(done.stderr.contains("the 2 oldest runs without a tag"), "{done:#?}");
    let left = history(&scratch, &["--json"]).expect_code(0).json();
    let ids: Vec<_> = left["runs"].as_array().expect("runs").iter().map(|run| run["id"].as_u64()).collect();
    assert_eq!(ids, [Some(4), Some(1)], "the latest, and the one with a tag");
    assert!(history(&scratch, &["limit"]).expect_code(0).stdout.ends_with("of at most 1.00 kB\n"));
    history(&scratch, &["limit", "none"]).expect_code(0);
    assert!(history(&scratch, &["limit", "500"]).expect_code(2).stderr.contains("with its unit"));
}

#[test]
fn the_location_is_printed() {
    let scratch = Scratch::new();
    let told = history(&scratch, &["path"]).expect_code(0).stdout;
    assert_eq!(told.trim_end(), scratch.path("history.sqlite"));
    let mut command = linerate();
    command.args(["history", "path"]).env_remove("LINERATE_HISTORY").env("XDG_DATA_HOME", scratch.path("data"));
    let told = run(command, LIMIT).expect_code(0).stdout;
    assert_eq!(told.trim_end(), format!("{}/linerate/history.sqlite", scratch.path("data")));
    let mut off = linerate();
    off.args(["history", "list"]);
    let told = run(off, LIMIT).expect_code(2);
    assert!(told.stderr.contains("switched off"), "{told:#?}");
}

/// On an emulated path, the guest measures and the host records.
#[test]
fn runs_in_the_lab_are_recorded_by_the_host() {
    let scratch = Scratch::new();
    let lab = |arguments: &[&str]| run(with_history(&scratch, arguments), Duration::from_secs(300)).expect_code(0);
    let one = lab(&["test", "lab:300m-20ms-ecn", "--time", "1s", "-P", "1", "--down"]);
    assert!(one.stderr.contains("kept as run 1"), "{one:#?}");
    let other =
        lab(&["lab", "run", "300m-20ms-ecn", "--seed", "7", "--", "test", "far", "--time", "1s", "-P", "1", "-q"]);
    assert!(!other.stderr.contains("kept as"), "quietly: {other:#?}");
    let list = history(&scratch, &["--json"]).expect_code(0).json();
    let hosts: Vec<_> = list["runs"].as_array().expect("runs").iter().map(|run| run["host"].clone()).collect();
    assert_eq!(hosts, ["lab:300m-20ms-ecn", "lab:300m-20ms-ecn"]);
    let run = history(&scratch, &["show", "last", "--json"]).expect_code(0).document();
    let path = &run["environment"]["lab"];
    assert_eq!((&path["name"], &path["seed"]), (&"300m-20ms-ecn".into(), &7.into()));
    assert!(path["description"].as_str().is_some_and(|text| text.contains("story")), "{path}");
    // The guest's clock begins in 2023; runs are recorded at the host's time.
    let started = run["started_at_unix_ns"].as_u64().expect("a time");
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970").as_nanos();
    assert!(now.saturating_sub(u128::from(started)) < Duration::from_secs(600).as_nanos(), "{started}");
}

/// Two runs over one emulated path, with different random numbers, do not differ; another path is not compared.
#[test]
fn runs_over_one_path_are_alike_and_another_path_is_refused() {
    let scratch = Scratch::new();
    for (seed, path) in [("1", "cable-bloat"), ("2", "cable-bloat"), ("1", "lte")] {
        let arguments = ["lab", "run", "--seed", seed, path, "--", "linerate", "path", "far", "--quiet"];
        run(with_history(&scratch, &arguments), LIMIT).expect_code(0);
    }
    let compared = |before: &str, after: &str| -> Vec<(String, String)> {
        let document: Value = history(&scratch, &["compare", before, after, "--json"]).expect_code(0).json();
        let figures = document["comparison"]["figures"].as_array().expect("figures").clone();
        let text = |figure: &Value, key: &str| figure[key].as_str().expect("a text").to_owned();
        figures.iter().map(|figure| (text(figure, "name"), text(figure, "judgement"))).collect()
    };
    let alike = compared("last-2", "last-1");
    let is = |all: &[(String, String)], name: &str, judgement: &str| {
        all.iter().any(|(other, judged)| other == name && judged == judgement)
    };
    for figure in ["rtt_idle_median", "capacity_up", "capacity_down", "mtu_up", "mtu_down"] {
        assert!(is(&alike, figure, "equal"), "{figure}: {alike:?}");
    }
    assert!(alike.iter().all(|(_, judged)| judged != "better" && judged != "worse"), "{alike:?}");
    let refused = history(&scratch, &["compare", "last-1", "last"]).expect_code(2);
    assert!(refused.stderr.contains("different") && refused.stderr.contains("lte"), "{refused:#?}");
    assert!(refused.stdout.is_empty(), "no figure before the reason: {refused:#?}");
}
