//! `linerate fleet plan`: the timetable of a description, and its errors.

use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::document::{array, number, text};
use crate::support::process::run;
use crate::support::{self, Scratch, linerate};

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/fleet/mesh.json");
const LIMIT: std::time::Duration = std::time::Duration::from_secs(60);

fn plan(arguments: &[&str]) -> support::process::FinishedChild {
    let mut command = linerate();
    command.args(["fleet", "plan"]).args(arguments).env("COLUMNS", "60").env("LINERATE_HISTORY", "off");
    run(command, LIMIT)
}

#[test]
fn a_plan_says_who_when_and_how_much() {
    let done = plan(&[EXAMPLE, "--from", "2026-11-26"]).expect_code(0);
    let text = &done.stdout;
    assert!(text.starts_with("Four sites: 4 hosts, 6 tests, a host in one at a time, and 6"), "{text}");
    for part in ["begins every 4 h", "Data of a cycle: at most", "From 2026-11-26 00:00:00 UTC on:", "<->"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(text.lines().count() <= 12, "{text}");
    assert_eq!(plan(&[EXAMPLE, "--from", "2026-11-26"]).stdout, *text, "the same each time");
    let all = plan(&[EXAMPLE, "--from", "2026-11-26", "-v"]).expect_code(0).stdout;
    assert_eq!(all.matches("throughput").count(), 6, "{all}");
    let one = plan(&[EXAMPLE, "--from", "2026-11-26", "--address", "lisbon", "-v"]).expect_code(0).stdout;
    assert_eq!((one.matches("throughput").count(), one.matches("lisbon").count()), (3, 3), "{one}");
}

#[test]
fn the_document_has_every_start_of_a_cycle() {
    let document = plan(&[EXAMPLE, "--from", "2026-11-26", "--json"]).expect_code(0).json();
    assert_eq!(text(&document, "/kind"), "fleet-plan");
    assert_eq!(array(&document, "/starts").len(), 6);
    assert!((number(&document, "/timetable/period_ns") - 4.0 * 3600e9).abs() < 1.0);
    assert!((number(&document, "/cost/hosts") - 4.0).abs() < f64::EPSILON);
    assert_eq!(text(&document, "/timetable/sessions/0/session/weight"), "exclusive");
}

#[test]
fn a_description_comes_from_a_pipe() {
    let mut command = linerate();
    command.args(["fleet", "plan", "-", "--from", "2026-11-26"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let description = std::fs::read(EXAMPLE).expect("the example");
    child.stdin.take().expect("a pipe").write_all(&description).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success() && output.stdout.starts_with(b"Four sites"), "{output:?}");
}

#[test]
fn errors_name_the_file_and_the_remedy() {
    let scratch = Scratch::new();
    let example = std::fs::read_to_string(EXAMPLE).expect("the example");
    let broken = scratch.file("broken.json", example.replacen("\"mesh\"", "\"star\"", 1));
    for (arguments, part) in [
        (vec!["/no/such/file"], "reading /no/such/file: No such file"),
        (vec![broken.as_str()], "unknown variant `star`, expected `mesh` or `disjoint`"),
        (vec![EXAMPLE, "--address", "rome"], "no address \"rome\"; it has berlin, campus-a"),
        (vec![EXAMPLE, "--from", "tomorrow"], "expected a time such as 2026-11-26"),
    ] {
        let done = plan(&arguments).expect_code(2);
        assert!(done.stderr.contains(part) && done.stdout.is_empty(), "{part}: {done:#?}");
    }
}

/// Web server that answers one request.
fn answer_once(answer: String) -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        use std::io::{Read as _, Write as _};
        let (mut client, _) = listener.accept().expect("a client");
        let mut request = [0; 4096];
        let _ = client.read(&mut request);
        client.write_all(answer.as_bytes()).expect("written");
    });
    port
}

#[test]
fn a_description_comes_from_a_web_server() {
    let text = std::fs::read_to_string(EXAMPLE).expect("the example");
    let whole = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}", text.len());
    let missing = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_owned();
    let plan = |answer: String| {
        let mut command = linerate();
        command.args(["fleet", "plan", &format!("http://127.0.0.1:{}/mesh.json", answer_once(answer))]);
        run(command, LIMIT)
    };
    assert!(plan(whole).expect_code(0).stdout.starts_with("Four sites: 4 hosts"));
    let refused = plan(missing).expect_code(2).stderr;
    assert!(refused.contains("/mesh.json: it answered 404"), "{refused}");
}

/// Answers of a validator of JSON Schema to documents.
fn schema_accepts(documents: &[Value]) -> Vec<bool> {
    let folder = env!("CARGO_MANIFEST_DIR");
    let python = format!("{folder}/../../tests/linters/venv/bin/python");
    let program = "import json, sys, jsonschema\n\
                   schema, documents = [json.load(open(name)) for name in sys.argv[1:]]\n\
                   jsonschema.Draft202012Validator.check_schema(schema)\n\
                   print(json.dumps([jsonschema.Draft202012Validator(schema).is_valid(one) for one in documents]))";
    let scratch = Scratch::new();
    let file = scratch.file("documents.json", Value::from(documents.to_vec()).to_string());
    let mut command = Command::new(python);
    command.args(["-c", program, &format!("{folder}/../../docs/schema/fleet-description.schema.json"), &file]);
    let answers = run(command, LIMIT).expect_code(0).document();
    answers.as_array().expect("a list").iter().map(|answer| answer == true).collect()
}

/// Description within a script, between the lines that begin and end it.
fn within(file: &str, begin: &str, end: &str) -> Value {
    let text = std::fs::read_to_string(format!("{}/../../{file}", env!("CARGO_MANIFEST_DIR"))).expect("the file");
    let (_, rest) = text.split_once(begin).expect(begin);
    let json = rest.split_once(end).map_or(rest, |(json, _)| json);
    serde_json::from_str(json).expect("JSON")
}

/// Programs that write descriptions can check them by the schema: it refuses nothing that is read, and accepts no other form.
#[test]
fn the_schema_of_descriptions_is_what_is_read() {
    let example: Value = serde_json::from_slice(&std::fs::read(EXAMPLE).expect("the example")).expect("JSON");
    let demo = within("packaging/demo-fleet.sh", "fleet.json\" <<'END'\n", "\nEND\n");
    let kubernetes = within("packaging/kubernetes/fleet.yaml", "fleet.json: |\n", "\n---\n");
    let mut documents = vec![example.clone(), demo, kubernetes];
    for (pointer, key, value) in [
        ("", "hosts", json!({ "h": { "no-agent": true, "tags": ["x"] } })),
        ("", "includes", json!(["https://example.org/a.json"])),
        ("", "addresses", Value::Null),
        ("", "address-classes", json!({})),
        ("/addresses/lisbon", "labels", json!({})),
        ("/addresses/lisbon", "tags", json!(["eu"])),
        ("/addresses/lisbon", "tags", json!("eu")),
        ("/addresses/lisbon", "address", json!(7)),
        ("/addresses/lisbon/_meta", "linerate", json!({ "speed": "1G" })),
        ("/addresses/lisbon/_meta", "other", json!(1)),
        ("/_meta/linerate", "clock-guard", json!("PT1.5S")),
        ("/_meta/linerate", "clock-guard", json!("1 s")),
        ("/_meta/linerate", "uplinks", json!({ "campus": { "capacity": "1G", "rate": "2G" } })),
        ("/groups/everywhere", "type", json!("list")),
        ("/groups/everywhere", "excludes-self", json!("host")),
        ("/groups/everywhere", "excludes-self", json!("disabled")),
        ("/groups/everywhere/addresses/0", "label", json!("x")),
        ("/groups/everywhere/addresses/0", "disabled", json!(true)),
        ("/tests/goodput", "type", json!("dns")),
        ("/tests/goodput/spec", "udp", json!(true)),
        ("/tests/goodput/spec", "interval", json!("PT1S")),
        ("/tests/goodput/spec", "duration", json!("ten seconds")),
        ("/schedules/often", "sliprand", json!(true)),
        ("/schedules/often", "until", json!("2030-01-01T00:00:00Z")),
        ("/tasks/goodput", "priority", json!(5)),
        ("/tasks/goodput", "subtasks", json!([])),
        ("/tasks/goodput", "disabled", json!("no")),
    ] {
        let mut document = example.clone();
        let object = document.pointer_mut(pointer).and_then(Value::as_object_mut).expect(pointer);
        object.insert(key.to_owned(), value);
        documents.push(document);
    }
    let read: Vec<bool> = documents
        .iter()
        .map(|document| {
            let scratch = Scratch::new();
            plan(&[&scratch.file("fleet.json", document.to_string())]).status.code() == Some(0)
        })
        .collect();
    assert_eq!(schema_accepts(&documents), read, "of {documents:#?}");
    assert!(read[..3].iter().all(|is_read| *is_read) && read.iter().filter(|is_read| !*is_read).count() > 12);
}
