//! `linerate pscheduler`: the methods of both plug-ins as pScheduler calls them, and the command lines of its iperf3 tool.

use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::support::process::{FinishedChild, Process, run};
use crate::support::{self, Program, Scratch, Server, free_port, linerate};

const LIMIT: Duration = Duration::from_secs(120);

const PRIVATE_KEY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/keys/private.pem");
const PUBLIC_KEY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/keys/public.pem");
/// Example of iperf3's manual page: mario, rossi.
const USERS: &str = "mario,bf7a49a846d44b454a5d11e7acfaf13d138bbe0b7483aa3e050879700572709b\n";

/// Command of a method with this input.
fn command(scratch: &Scratch, name: &str, arguments: &[&str], input: &str) -> Command {
    let file = scratch.file(&format!("{name}.json"), input);
    let mut command = Command::new("sh");
    command.args(["-c", "input=$1; program=$2; shift 2; exec \"$program\" pscheduler \"$@\" <\"$input\"", "sh", &file]);
    command.arg(linerate().get_program()).args(arguments).env("LINERATE_HISTORY", "off");
    command
}

fn call(arguments: &[&str], input: &Value) -> FinishedChild {
    let scratch = Scratch::new();
    run(command(&scratch, "input", arguments, &input.to_string()), LIMIT)
}

fn answer(arguments: &[&str], input: &Value) -> Value {
    call(arguments, input).expect_code(0).document()
}

/// Time in a second, as pScheduler writes it.
fn soon() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970") + Duration::from_secs(1);
    let date = Command::new("date").args(["-u", "-d", &format!("@{}", now.as_secs_f64()), "+%FT%T.%3N+00:00"]).output();
    String::from_utf8(date.expect("date runs").stdout).expect("a date").trim().to_owned()
}

/// Runs of all participants, from their data to their outputs.
fn runs(test: &Value, count: usize, port: u16, meanwhile: impl FnOnce()) -> Vec<FinishedChild> {
    runs_with(test, &vec![Vec::new(); count], port, meanwhile)
}

/// Runs of participants with these options of their plug-ins.
fn runs_with(test: &Value, options: &[Vec<&str>], port: u16, meanwhile: impl FnOnce()) -> Vec<FinishedChild> {
    let (scratch, count) = (Scratch::new(), options.len());
    let port = port.to_string();
    let data: Vec<Value> = (0..count)
        .map(|participant| {
            answer(&["participant-data", "--port", &port], &json!({ "test": test, "participant": participant }))
        })
        .collect();
    let schedule = json!({ "start": soon(), "duration": answer(&["duration"], test)["duration"] });
    let started: Vec<Process> = (0..count)
        .map(|participant| {
            let input = json!({
                "schema": 1, "schedule": schedule, "test": test, "participant": participant, "participant-data": data,
                "limits-passed": []
            });
            let method = [&["run"][..], &options[participant]].concat();
            Process::start(command(&scratch, &participant.to_string(), &method, &input.to_string()))
        })
        .collect();
    meanwhile();
    started.into_iter().map(|process| process.finish(LIMIT)).collect()
}

/// Result of a test, from the data of its participants over their runs to the merged result.
#[expect(clippy::needless_pass_by_value, reason = "callers write literals")]
fn result(kind: &str, spec: Value, count: usize) -> Value {
    let test = json!({ "type": kind, "spec": spec });
    assert_eq!(answer(&["can-run"], &test), json!({ "can-run": true }));
    let results: Vec<Value> =
        runs(&test, count, free_port(), || ()).into_iter().map(|done| done.expect_code(0).document()).collect();
    let merged = answer(&["merged-results"], &json!({ "test": test, "results": results }));
    assert_eq!(merged["succeeded"], true, "{merged:#}");
    assert_valid(kind, &merged);
    merged
}

/// Checks a result against the schema of its test.
fn assert_valid(kind: &str, result: &Value) {
    let folder = env!("CARGO_MANIFEST_DIR");
    let python = format!("{folder}/../../tests/linters/venv/bin/python");
    let program = "import json, sys, jsonschema\n\
                   schema = json.load(open(sys.argv[1])); schema['$ref'] = '#/definitions/' + sys.argv[2]\n\
                   jsonschema.Draft7Validator(schema, format_checker=jsonschema.FormatChecker()).validate(json.load(open(sys.argv[3])))";
    let scratch = Scratch::new();
    let file = scratch.file("result.json", result.to_string());
    let mut command = Command::new(&python);
    command.args(["-c", program, &format!("{folder}/tests/pscheduler/results.schema.json"), kind, &file]);
    assert!(
        std::fs::exists(&python).unwrap_or(false),
        "{python} is missing: `packaging/prerequisites.sh test` installs it"
    );
    run(command, LIMIT).expect_code(0);
}

fn number(of: &Value, pointer: &str) -> f64 {
    of.pointer(pointer).and_then(Value::as_f64).unwrap_or_else(|| panic!("{pointer} of {of:#}"))
}

#[test]
fn a_transfer_between_two_participants_has_a_result_with_its_verdict() {
    for (reverse, has_windows) in [(false, true), (true, true)] {
        let spec = json!({
            "schema": 1, "source": "127.0.0.1", "dest": "127.0.0.1", "duration": "PT2S", "parallel": 2, "congestion": "cubic",
            "bandwidth": 200_000_000, "reverse": reverse
        });
        let merged = result("throughput", spec, 2);
        let rate = number(&merged, "/summary/summary/throughput-bits");
        // A busy host carries less than is asked for, and its receiver's time ends later.
        assert!((2e8..4.4e8).contains(&rate), "{rate}");
        let received = number(&merged, "/summary/summary/receiver-throughput-bits");
        assert!((0.5..1.1).contains(&(received / rate)), "{rate} sent, {received} received");
        let intervals = merged["intervals"].as_array().expect("intervals");
        let lengths: Vec<f64> = intervals
            .iter()
            .map(|interval| number(interval, "/summary/end") - number(interval, "/summary/start"))
            .collect();
        assert!((2..=3).contains(&lengths.len()) && (0.7..1.3).contains(&lengths[0]), "{lengths:?}");
        assert_eq!(intervals[0]["streams"].as_array().map(Vec::len), Some(2));
        assert_eq!(intervals[0]["streams"][0].get("tcp-window-size").is_some(), has_windows, "{merged:#}");
        // The verdict as text, and as the document.
        let diagnostics = merged["diags"].as_str().expect("text");
        assert!(diagnostics.contains("Participant 1:\nlinerate ") && diagnostics.contains("\n1. "), "{diagnostics}");
        let line = diagnostics.lines().find(|line| line.starts_with('{')).expect("a document");
        let document: Value = serde_json::from_str(line).expect("JSON");
        assert_eq!(document["kind"], "diagnose");
        let verdict = document.pointer("/result/diagnose/verdicts/0/text").and_then(Value::as_str).expect("a verdict");
        assert!(diagnostics.contains(&format!("1. {verdict}")), "{diagnostics}");
    }
}

#[test]
fn participants_with_the_same_key_talk_in_tls_and_refuse_others() {
    let spec =
        json!({ "schema": 1, "source": "127.0.0.1", "dest": "127.0.0.1", "duration": "PT1S", "bandwidth": 50_000_000 });
    let test = json!({ "type": "throughput", "spec": spec });
    let scratch = Scratch::new();
    let [key, other] = ["one", "two"].map(|name| scratch.file(name, format!("{name}0123456789abcdef")));
    let options = |key| vec!["--shared-key-file", key];
    for done in runs_with(&test, &[options(&key), options(&key)], free_port(), || ()) {
        assert_eq!(done.expect_code(0).document()["succeeded"], true);
    }
    for (client, server, expected) in [
        (options(&key), options(&other), "another shared key"),
        (Vec::new(), options(&key), "--shared-key-file"),
        (vec!["--tls"], vec!["--tls"], "--tls-cert with --tls-key"),
    ] {
        let done = runs_with(&test, &[client, server], free_port(), || ());
        let outputs: Vec<Value> = done.iter().map(FinishedChild::document).collect();
        assert!(outputs.iter().all(|output| output["succeeded"] == false), "{outputs:#?}");
        assert!(outputs.iter().any(|output| output.to_string().contains(expected)), "{expected}: {outputs:#?}");
    }
}

#[test]
fn udp_and_tests_of_one_participant_have_results() {
    let udp = json!({ "schema": 1, "dest": "127.0.0.1", "duration": "PT1S", "udp": true, "bandwidth": 8_000_000 });
    let merged = result("throughput", udp, 2);
    assert!(number(&merged, "/summary/summary/sent") > 10.0, "{merged:#}");
    // A busy host sends less than it was asked to, never more.
    let is_measured = |merged: &Value| (2e6..9e6).contains(&number(merged, "/summary/summary/throughput-bits"));
    assert!(is_measured(&merged), "{merged:#}");
    let alone =
        json!({ "schema": 5, "dest": "127.0.0.1", "duration": "PT1S", "bandwidth": 8_000_000, "loopback": true });
    let merged = result("throughput", alone, 1);
    assert!(is_measured(&merged), "{merged:#}");
    let server = Server::start(Program::Linerate, &[]);
    let single = json!({
        "schema": 2, "dest": "127.0.0.1", "duration": "PT1S", "bandwidth": 8_000_000, "single-ended": true,
        "single-ended-port": server.port
    });
    let merged = result("throughput", single, 1);
    assert!(is_measured(&merged), "{merged:#}");
}

#[test]
fn a_diagnosis_names_the_cause() {
    let spec =
        json!({ "schema": 1, "dest": "127.0.0.1", "duration": "PT2S", "window-size": 16384, "no-capacity": true });
    let merged = result("diagnose", spec.clone(), 2);
    let text = call(&["result-format", "text/plain"], &json!({ "spec": spec, "result": merged })).expect_code(0).stdout;
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.starts_with("Goodput ") && words.contains(merged["verdict"].as_str().expect("text")), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
#[ignore = "needs root: ICMP sockets"]
fn probes_have_results() {
    let rtt = result("rtt", json!({ "dest": "127.0.0.1", "count": 3, "interval": "PT0.1S", "hostnames": false }), 1);
    assert_eq!((&rtt["received"], &rtt["loss"]), (&json!(3), &json!(0.0)));
    assert_eq!((&rtt["roundtrips"][2]["ip"], &rtt["roundtrips"][2]["length"]), (&json!("127.0.0.1"), &json!(64)));
    let trace = result("trace", json!({ "dest": "127.0.0.1", "hostnames": false, "as": false }), 1);
    assert_eq!(trace["paths"][0].as_array().map(Vec::len), Some(1), "{trace:#}");
    assert_eq!(trace["paths"][0][0]["ip"], "127.0.0.1");
    assert_eq!(result("mtu", json!({ "dest": "127.0.0.1" }), 1)["mtu"], 65_535);
}

#[test]
fn one_way_delays_come_from_a_stamp_reflector() {
    let (port, stamp) = (free_port().to_string(), free_port());
    let mut serve = linerate();
    serve.args(["serve", "--port", &port, "--stamp-port", &stamp.to_string()]);
    let server = Process::start(serve);
    assert!(support::process::eventually(LIMIT, || server.stderr().contains("STAMP")), "{}", server.stderr());
    for reverse in [false, true] {
        let spec = json!({
            "schema": 1, "dest": "127.0.0.1", "protocol": "stamp", "ctrl-port": stamp, "packet-count": 20,
            "packet-interval": 0.01, "bucket-width": 0.0001, "reverse": reverse
        });
        let latency = result("latency", spec, 1);
        assert_eq!((&latency["packets-sent"], &latency["packets-received"]), (&json!(20), &json!(20)), "{latency:#}");
        let counted: u64 =
            latency["histogram-latency"].as_object().expect("counts").values().filter_map(Value::as_u64).sum();
        assert_eq!(counted, 20);
    }
}

/// A stranger cannot take the place of the other participant.
#[test]
fn the_server_is_only_for_the_other_participant() {
    let port = free_port();
    let test =
        json!({ "type": "throughput", "spec": { "dest": "127.0.0.1", "duration": "PT1S", "bandwidth": 8_000_000 } });
    let done = runs(&test, 2, port, || {
        let refused = support::process::eventually(Duration::from_secs(20), || {
            let stranger = run(Program::Linerate.with(&["-c", "127.0.0.1", "-p", &port.to_string(), "-t", "1"]), LIMIT);
            assert_ne!(stranger.code(), Some(0), "{stranger:#?}");
            stranger.stderr.contains("the server") || stranger.stdout.contains("the server")
        });
        assert!(refused);
    });
    for run in done {
        assert_eq!(run.expect_code(0).document()["succeeded"], true);
    }
}

#[test]
fn runs_without_their_peer_fail_within_their_slot() {
    let spec = json!({ "dest": "127.0.0.1", "duration": "PT1S", "link-rtt": "PT0.001S" });
    let test = json!({ "type": "throughput", "spec": spec });
    let port = free_port().to_string();
    let data: Vec<Value> = (0..2)
        .map(|participant| {
            answer(&["participant-data", "--port", &port], &json!({ "test": test, "participant": participant }))
        })
        .collect();
    for (participant, part) in [(0, "connect"), (1, "the run did not end within its slot of 5")] {
        let input = json!({
            "schedule": { "start": soon(), "duration": "PT5S" }, "test": test, "participant": participant, "participant-data": data
        });
        let begin = std::time::Instant::now();
        let done = call(&["run"], &input).expect_code(1);
        let output = done.document();
        assert!(output["error"].as_str().is_some_and(|error| error.to_lowercase().contains(part)), "{output:#}");
        assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
        let merged = answer(&["merged-results"], &json!({ "test": test, "results": [output, null] }));
        assert_eq!(merged["succeeded"], false);
        assert_valid("throughput", &merged);
    }
}

#[test]
fn unusable_input_has_its_exit_code_and_reason() {
    let scratch = Scratch::new();
    for (method, code) in [
        ("can-run", 1),
        ("duration", 2),
        ("participant-data", 2),
        ("run", 2),
        ("merged-results", 1),
        ("participants", 1),
        ("spec-is-valid", 1),
        ("cli-to-spec", 1),
        ("spec-to-cli", 1),
        ("spec-format", 1),
        ("result-format", 1),
    ] {
        let done = run(command(&scratch, method, &[method], "{ x"), LIMIT).expect_code(code);
        assert!(
            done.stderr.starts_with("the standard input is not JSON: ") && done.stdout.is_empty(),
            "{method}: {done:#?}"
        );
    }
    for (method, input, code, part) in [
        ("duration", json!({ "type": "dns", "spec": {} }), 2, "no test \"dns\""),
        (
            "participant-data",
            json!({ "test": { "type": "mtu", "spec": { "dest": "a" } }, "participant": 1 }),
            2,
            "no participant 1",
        ),
        (
            "run",
            json!({ "test": { "type": "mtu", "spec": { "dest": "a" } }, "participant": 0 }),
            2,
            "\"participant-data\"",
        ),
        ("merged-results", json!({ "test": { "type": "mtu", "spec": { "dest": "a" } } }), 1, "\"results\""),
        ("participants", json!({}), 1, "no \"dest\""),
        ("spec-format", json!({ "dest": "a", "x": 1 }), 1, "\"x\" in a test diagnose"),
    ] {
        let done = call(&[method], &input).expect_code(code);
        assert!(done.stderr.contains(part) && done.stdout.is_empty(), "{method}: {done:#?}");
    }
    let refused =
        answer(&["can-run"], &json!({ "type": "throughput", "spec": { "dest": "a", "reverse-connections": true } }));
    assert_eq!(refused["can-run"], false);
    assert_eq!(refused["reasons"].as_array().map(Vec::len), Some(1));
}

#[test]
fn plug_ins_describe_themselves_and_their_test() {
    assert_eq!(answer(&["enumerate"], &json!({}))["name"], "linerate");
    assert_eq!(answer(&["enumerate-test"], &json!({}))["scheduling-class"], "exclusive");
    let spec = answer(&["cli-to-spec", "--source", "a", "--dest", "b", "--reverse"], &json!(null));
    assert_eq!(answer(&["cli-to-spec"], &json!(["--source", "a", "--dest", "b", "--reverse"])), spec);
    assert_eq!(answer(&["spec-is-valid"], &spec), json!({ "valid": true }));
    assert_eq!(answer(&["spec-to-cli"], &spec), json!(["--source", "a", "--dest", "b", "--reverse"]));
    assert_eq!(answer(&["participants"], &spec), json!({ "participants": ["a", "b"] }));
    assert_eq!(answer(&["limit-is-valid"], &json!({ "dest": { "cidr": ["10.0.0.0/8"] } })), json!({ "valid": true }));
    let html = call(&["spec-format", "text/html"], &spec).expect_code(0).stdout;
    assert!(html.starts_with("<table>") && html.contains("<td>Destination</td><td>b</td>"), "{html}");
    call(&["spec-format", "text/csv"], &spec).expect_code(1);
}

/// Keys that the stock tool's parser reads, per entry; a receiver has no windows, as iperf3's.
fn assert_parsed_keys(document: &Value, is_udp: bool, is_receiver: bool) {
    let has = |of: &Value, keys: &[&str]| {
        for key in keys {
            assert!(of.get(key).is_some_and(|value| value.is_number() || value.is_boolean()), "{key} of {of:#}");
        }
    };
    let common = ["start", "end", "bytes", "bits_per_second"];
    let interval = &document["intervals"][0];
    has(&interval["sum"], &common);
    has(&interval["sum"], &["omitted"]);
    has(&interval["streams"][0], &common);
    has(&interval["streams"][0], &["socket", "omitted"]);
    if is_udp {
        has(&interval["streams"][0], &["packets"]);
        has(&document["end"]["sum"], &["packets", "lost_packets", "jitter_ms"]);
        has(&document["end"]["streams"][0]["udp"], &["socket", "packets", "lost_packets", "jitter_ms"]);
    } else {
        if !is_receiver {
            has(&interval["streams"][0], &["retransmits", "snd_cwnd", "rtt"]);
        }
        has(&document["end"]["sum_sent"], &common);
        has(&document["end"]["sum_sent"], &["retransmits"]);
        has(&document["end"]["sum_received"], &["bits_per_second"]);
        has(&document["end"]["streams"][0]["sender"], &["socket", "retransmits", "mean_rtt"]);
    }
}

/// The stock tool takes linerate for an iperf3: its argument lists, and what it reads.
#[test]
fn the_stock_tool_for_iperf3_can_use_linerate() {
    let version = run(Program::Linerate.with(&["--version"]), LIMIT).expect_code(0).stdout;
    assert_eq!(version.split_whitespace().nth(1), Some("3.21"), "{version}");
    let scratch = Scratch::new();
    let users = scratch.file("users.csv", USERS);
    for (is_udp, has_access, options) in [
        (false, true, "-i 1 -P 2 -w 65536 -M 1400 -b 20000000 -l 65536 -S 32 -C cubic -Z"),
        (false, false, "-i 1 -P 1 --fq-rate 20000000 -R"),
        (true, false, "-i 1 -b 8000000 -u -l 1400"),
    ] {
        let port = free_port().to_string();
        let mut server = vec!["-s", "-1", "--idle-timeout", "10", "--json", "-p", &port, "-B", "127.0.0.1", "-4"];
        let mut client = vec!["-p", &port, "-4", "-B", "127.0.0.1", "-c", "127.0.0.1", "-t", "1", "--json"];
        client.extend(options.split_whitespace());
        if has_access {
            server.extend(["--authorized-users-path", &users, "--rsa-private-key-path", PRIVATE_KEY]);
            client.extend(["--rsa-public-key-path", PUBLIC_KEY, "--username", "mario"]);
        }
        let serving = Server::listening(Program::Linerate.with(&server), port.parse().expect("a port"));
        let mut command = Program::Linerate.with(&client);
        command.env("IPERF3_PASSWORD", "rossi");
        let document = run(command, LIMIT).expect_code(0).document();
        assert_parsed_keys(&document, is_udp, options.ends_with("-R"));
        let report = serving.finish(LIMIT).expect_code(0).document();
        assert!(report["intervals"].is_array() && report["end"]["sum_received"].is_object(), "{report:#}");
    }
}
