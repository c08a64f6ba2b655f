//! Every document that `--json` prints is one that `linerate report -` shows, and a run one that `history import` reads.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use linerate_documents::label::{DocumentKind, schema_identifier};
use serde_json::Value;

use crate::support::process::run;
use crate::support::{Scratch, Server, free_port, linerate};

const LIMIT: Duration = Duration::from_secs(300);

fn recorded(scratch: &Scratch) -> Command {
    let mut command = linerate();
    command.env("LINERATE_HISTORY", scratch.path("history.sqlite")).current_dir(scratch.path("."));
    command
}

/// Output of `linerate COMMAND` with `input` on its standard input.
fn fed(scratch: &Scratch, command: &[&str], input: &str) -> String {
    let mut command_line = recorded(scratch);
    let child = command_line.args(command).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.expect("started");
    let mut stdin = child.stdin.take().expect("piped");
    stdin.write_all(input.as_bytes()).expect("it reads everything");
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{command:?}: {stderr}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Runs a command with `--json`, checks its label, and returns it as the report shows it.
fn reported(scratch: &Scratch, command: &[&str], kind: &str) -> String {
    let mut command_line = recorded(scratch);
    command_line.args(command).arg("--json");
    let finished = run(command_line, LIMIT);
    let document: Value =
        serde_json::from_str(&finished.stdout).unwrap_or_else(|cause| panic!("{cause}: {finished:#?}"));
    assert_eq!(document["kind"], kind, "{command:?}");
    assert_eq!(document["schema"], 1, "{command:?}");
    let schema = DocumentKind::from_name(kind).map_or("run", DocumentKind::name);
    assert_eq!(document["$schema"], schema_identifier(schema), "{command:?}");
    let text = fed(scratch, &["report", "-", "--format", "text"], &finished.stdout);
    assert!(text.lines().count() > 3, "{command:?}: {text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{command:?}: {text}");
    let page = fed(scratch, &["report", "-", "--format", "html", "--out", "-"], &finished.stdout);
    assert!(page.contains("</html>"), "{command:?}");
    text
}

#[test]
fn measurements() {
    let scratch = Scratch::new();
    let port = free_port();
    let mut command = linerate();
    command.args(["serve", "--port", &port.to_string()]);
    let _server = Server::listening(command, port);
    let port = port.to_string();
    for (name, kind, more) in [
        ("test", "throughput", &["--time", "1s"][..]),
        ("test", "throughput", &["--time", "1s"]),
        ("path", "path", &["--no-capacity", "-c", "50", "-i", "5ms"]),
        ("diagnose", "diagnose", &["--", "-t", "1"]),
    ] {
        let arguments = match more {
            ["--", transfer @ ..] => [&[name, "127.0.0.1", "--port", &port, "--json", "--"], transfer].concat(),
            _ => [&[name, "127.0.0.1", "--port", &port, "--json"], more].concat(),
        };
        let mut command_line = recorded(&scratch);
        command_line.args(&arguments);
        let finished = run(command_line, LIMIT);
        // A limit in a host, as on loopback, is a result with code 1.
        assert!(matches!(finished.code(), Some(0 | 1)), "{finished:#?}");
        let document = finished.document();
        assert_eq!(document["kind"], kind);
        assert!(document["$schema"].as_str().is_some_and(|schema| schema.ends_with("/run.schema.json")), "{kind}");
        let text = fed(&scratch, &["report", "-", "--format", "text"], &finished.stdout);
        assert!(text.contains("127.0.0.1") && text.lines().all(|line| line.chars().count() <= 80), "{text}");
        let elsewhere = Scratch::new();
        let said = fed(&elsewhere, &["history", "import", "-"], &finished.stdout);
        let list = fed(&elsewhere, &["history", "list", "--json"], "");
        assert!(list.contains(kind), "{said}: {list}");
    }
    reported(&scratch, &["history", "list"], "run-list");
    reported(&scratch, &["history", "compare", "1", "2"], "comparison");
    reported(&scratch, &["history", "trend", "goodput_down"], "trend");
}

#[test]
fn the_host() {
    let scratch = Scratch::new();
    assert!(reported(&scratch, &["audit"], "audit").contains("Findings"));
    assert!(reported(&scratch, &["audit", "--explain", "tcp_sack"], "audit-explanation").contains("net.ipv4.tcp_sack"));
    reported(&scratch, &["watch", "--once"], "watch");
    assert!(reported(&scratch, &["doctor", "--check"], "host-check").contains("watchdog"));
    reported(&scratch, &["rollback", "--list"], "change-sets");
    reported(&scratch, &["baseline", "--time", "100ms"], "baseline");
}

#[test]
fn figures_and_the_lab() {
    let scratch = Scratch::new();
    assert!(reported(&scratch, &["calc", "bdp", "10G", "117ms"], "calculation").contains("146.25 MB"));
    assert!(reported(&scratch, &["calc"], "calculators").contains("mathis"));
    reported(&scratch, &["lab", "list"], "lab-paths");
    reported(&scratch, &["lab", "show", "cable-bloat"], "lab-path");
    reported(&scratch, &["lab", "check"], "lab-check");
    reported(&scratch, &["lab", "kernel", "status"], "lab-kernels");
}

#[test]
fn what_is_no_document_is_refused_with_the_reason() {
    let scratch = Scratch::new();
    for (text, reason) in [("", "it is empty"), ("hello", "expected value"), ("{\"schema\":9}", "schema 9")] {
        let file = scratch.file("input.json", text);
        let mut command = recorded(&scratch);
        command.args(["report", &file, "--format", "text"]);
        let refused = run(command, LIMIT);
        assert!(refused.code() != Some(0) && refused.stderr.contains(reason), "{text:?}: {refused:#?}");
    }
}
