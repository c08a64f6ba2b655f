//! Rules for Prometheus and the dashboard for Grafana, with Prometheus itself.

#[path = "../../export/tests/support/diagnosis.rs"]
mod diagnosis;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use linerate_documents::fleet_result::{FleetResult, SessionOutcome};
use linerate_history::result_log::ResultLog;
use linerate_model::diagnosis::Cause;
use linerate_sys::clock::realtime_now;
use serde_json::Value;

use crate::support::fleet_results::result;
use crate::support::process::{Process, eventually, run};
use crate::support::{Scratch, free_port, linerate};

const LIMIT: Duration = Duration::from_secs(120);

fn packaging(file: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging")).join(file)
}

fn promtool(arguments: &[&str]) -> String {
    let mut command = Command::new("promtool");
    command.args(arguments).current_dir(packaging("prometheus"));
    let finished = run(command, LIMIT).expect_code(0);
    finished.stdout + &finished.stderr
}

fn dashboard() -> Value {
    let text = std::fs::read(packaging("grafana/linerate-fleet.json")).expect("the dashboard");
    serde_json::from_slice(&text).expect("JSON")
}

/// Titles and expressions of all panels, with all values for the variables.
fn expressions(dashboard: &Value) -> Vec<(String, String)> {
    let panels = dashboard["panels"].as_array().expect("panels");
    let of = |panel: &Value| {
        let title = panel["title"].as_str().expect("a title").to_owned();
        let targets = panel["targets"].as_array().expect("targets").clone();
        targets
            .into_iter()
            .map(move |target| (title.clone(), target["expr"].as_str().expect("an expression").to_owned()))
    };
    let all = panels.iter().flat_map(of);
    let plain = |text: String| {
        let text = ["source", "destination"].iter().fold(text, |text, name| text.replace(&format!("${name}"), ".*"));
        text.replace("$direction", "up")
    };
    all.map(|(title, text)| (title, plain(text))).collect()
}

#[test]
fn rules_fire_when_they_should() {
    assert!(promtool(&["check", "rules", "linerate.rules.yml"]).contains("SUCCESS"));
    assert!(promtool(&["test", "rules", "linerate.test.yml"]).contains("SUCCESS"));
}

#[test]
fn the_dashboard_is_whole() {
    let dashboard = dashboard();
    let panels = dashboard["panels"].as_array().expect("panels");
    let mut ids: Vec<u64> = panels.iter().filter_map(|panel| panel["id"].as_u64()).collect();
    ids.dedup();
    assert_eq!(ids.len(), panels.len(), "each panel has its own number");
    for panel in panels {
        assert_eq!(panel["datasource"]["uid"], "${datasource}", "{panel}");
        let grid = &panel["gridPos"];
        assert!(grid["x"].as_u64().zip(grid["w"].as_u64()).is_some_and(|(x, width)| x + width <= 24), "{panel}");
    }
    let variables = dashboard["templating"]["list"].as_array().expect("variables");
    let names: Vec<&str> = variables.iter().filter_map(|variable| variable["name"].as_str()).collect();
    assert_eq!(names, ["datasource", "source", "destination", "direction"]);
    // Each cause has its colour, and no other is there.
    let colours = dashboard["panels"][0]["fieldConfig"]["defaults"]["mappings"][0]["options"].as_object();
    let coloured: Vec<&str> = colours.expect("a mapping").keys().map(String::as_str).collect();
    let causes: Vec<&str> = Cause::ALL.iter().map(|cause| cause.name()).collect();
    assert_eq!(coloured, causes);
    let links = panels[0]["fieldConfig"]["defaults"]["links"][0]["url"].as_str().expect("a link");
    assert!(links.starts_with(&format!("/d/{}?", dashboard["uid"].as_str().expect("a name"))), "{links}");
}

/// Answer of Prometheus to a query: the number of its series.
fn query(port: u16, expression: &str) -> Option<usize> {
    let encoded = expression.bytes().fold(String::new(), |text, byte| text + &format!("%{byte:02X}"));
    let mut client = TcpStream::connect(("127.0.0.1", port)).ok()?;
    write!(client, "GET /api/v1/query?query={encoded} HTTP/1.0\r\nHost: x\r\n\r\n").ok()?;
    let mut answer = String::new();
    client.read_to_string(&mut answer).ok()?;
    let document: Value = serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()?;
    assert_eq!(document["status"], "success", "{expression}: {document}");
    Some(document["data"]["result"].as_array()?.len())
}

/// A log as that of an agent.
fn log(scratch: &Scratch) -> ResultLog {
    let log = ResultLog::open(scratch.path("results").as_ref()).expect("a log");
    let now = realtime_now().since_unix_epoch().as_secs();
    let measured = FleetResult { run: Some(diagnosis::diagnosis("up", "receive-window")), ..result(now - 600) };
    let skipped = FleetResult {
        outcome: SessionOutcome::Skipped,
        destination: "c".to_owned(),
        id: "skipped".to_owned(),
        ..result(now - 300)
    };
    for result in [&measured, &skipped] {
        log.append(result).expect("written");
    }
    log
}

#[test]
fn prometheus_answers_each_panel_with_data() {
    let scratch = Scratch::new();
    let mut export = linerate();
    let metrics = free_port();
    export.args(["export", "--follow", "--metrics", &format!("127.0.0.1:{metrics}")]).arg(log(&scratch).directory());
    let export = Process::start(export);
    let rules = std::fs::read_to_string(packaging("prometheus/linerate.rules.yml")).expect("the rules");
    // The first evaluation comes within an interval.
    let rules = scratch.file("rules.yml", rules.replace("interval: 1m", "interval: 1s"));
    let configuration = format!(
        "global: {{ scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s }}\nrule_files: ['{rules}']\n\
         scrape_configs:\n  - job_name: linerate\n    static_configs: [{{ targets: ['127.0.0.1:{metrics}'] }}]\n"
    );
    let port = free_port();
    let mut prometheus = Command::new("prometheus");
    prometheus.arg(format!("--config.file={}", scratch.file("prometheus.yml", configuration)));
    prometheus.arg(format!("--storage.tsdb.path={}", scratch.path("tsdb")));
    prometheus.args([&format!("--web.listen-address=127.0.0.1:{port}"), "--log.level=error"]);
    let prometheus = Process::start(prometheus);
    let has_data = |expression: &str| eventually(LIMIT, || query(port, expression).is_some_and(|count| count > 0));
    assert!(has_data("linerate_verdict"), "{}{}", export.stderr(), prometheus.stderr());
    let dashboard = dashboard();
    let all = expressions(&dashboard);
    assert_eq!(all.len(), 10);
    for (title, expression) in all {
        assert!(has_data(&expression), "{title}: {expression}\n{}", prometheus.stderr());
    }
    // The recorded series, from the rules that the server has loaded.
    assert!(has_data("linerate:goodput_bytes_per_second"), "{}", prometheus.stderr());
    assert_eq!(query(port, "count(linerate_verdict{verdict=\"receive-window\"}) == 1"), Some(1));
    // No host is unseen, and no other alert is there.
    assert_eq!(query(port, "ALERTS"), Some(0));
    prometheus.signal("TERM");
    prometheus.finish(LIMIT).expect_code(0);
}
