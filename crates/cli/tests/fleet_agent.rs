//! `linerate fleet agent`: two agents of a fleet, each with its own tests.

mod support;

use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use support::process::{Process, eventually, run, send_signal};
use support::{Program, Scratch, Server, linerate};

const LIMIT: Duration = Duration::from_secs(120);

/// Fleet of two addresses with one server for both, tests of a second, and clocks that agree.
fn description(scratch: &Scratch, port: u16) -> String {
    let address = |last: u8| json!({ "address": format!("127.0.0.{last}:{port}") });
    let fleet = json!({
        "addresses": { "a": address(1), "b": address(2) },
        "groups": { "both": { "type": "mesh", "addresses": [ { "name": "a" }, { "name": "b" } ] } },
        "tests": { "goodput": { "type": "throughput", "spec": { "duration": "PT1S" } },
                   "delay": { "type": "rtt", "spec": {} } },
        "schedules": { "often": { "repeat": "PT5S" } },
        "tasks": { "goodput": { "group": "both", "test": "goodput" },
                   "delay": { "group": "both", "test": "delay", "schedule": "often" } },
        "_meta": { "linerate": { "clock-guard": "PT0.5S" } }
    });
    scratch.file("fleet.json", fleet.to_string())
}

fn agent(scratch: &Scratch, arguments: &[&str]) -> Command {
    let mut command = linerate();
    command.args(["fleet", "agent"]).args(arguments).env("LINERATE_HISTORY", scratch.path("history"));
    command
}

fn events(output: &str) -> Vec<Value> {
    output.lines().map(|line| serde_json::from_str(line).expect("an object")).collect()
}

#[test]
fn agents_run_each_test_once_at_its_time() {
    let (scratch, server) = (Scratch::new(), Server::start(Program::Linerate, &[]));
    let file = description(&scratch, server.port);
    // A cycle is two slots of 9 s.
    let agents =
        ["a", "b"].map(|name| Process::start(agent(&scratch, &[&file, "--address", name, "--for", "21s", "--json"])));
    let outputs = agents.map(|agent| agent.finish(LIMIT).expect_code(0).stdout);
    let all: Vec<Value> = outputs.iter().flat_map(|output| events(output)).collect();
    for task in ["goodput", "delay"] {
        let of_task: Vec<&Value> = all.iter().filter(|event| event["task"] == task).collect();
        let is_whole = |event: &&Value| {
            event["outcome"] == "done" && event["detail"].as_str().is_some_and(|text| !text.is_empty())
        };
        // Both ends at the very end of the agents may break off a test.
        assert!(of_task.iter().filter(|event| is_whole(event)).count() >= 1, "{task}: {all:#?}");
        let times: Vec<&str> = of_task.iter().filter_map(|event| event["at"].as_str()).collect();
        let distinct: std::collections::BTreeSet<&&str> = times.iter().collect();
        assert_eq!(distinct.len(), times.len(), "{task} was started twice: {all:#?}");
        // One agent starts all sessions of the pair's task.
        let starters = outputs.iter().filter(|output| output.contains(&format!("\"task\":\"{task}\""))).count();
        assert_eq!(starters, 1, "{outputs:?}");
    }
    let mut list = linerate();
    list.args(["history", "list", "--json"]).env("LINERATE_HISTORY", scratch.path("history"));
    let kept = run(list, LIMIT).expect_code(0).stdout;
    assert!(kept.contains("\"throughput\"") && kept.contains("\"path\""), "{kept}");
}

#[test]
fn an_agent_ends_with_a_signal_and_refuses_what_it_cannot_run() {
    let scratch = Scratch::new();
    let file = description(&scratch, 9);
    let waiting = ["a", "b"].map(|name| Process::start(agent(&scratch, &[&file, "--address", name])));
    for process in waiting {
        assert!(eventually(LIMIT, || process.stderr().contains("next: ")), "{}", process.stderr());
        send_signal(process.id(), "TERM");
        process.finish(LIMIT).expect_code(0);
    }
    for (arguments, part) in [
        (vec![file.as_str(), "--address", "c"], "no address \"c\"; it has a, b"),
        (vec!["/no/such/file", "--address", "a"], "reading /no/such/file"),
    ] {
        let done = run(agent(&scratch, &arguments), LIMIT).expect_code(2);
        assert!(done.stderr.contains(part), "{done:#?}");
    }
}

/// The first line that cannot be written ends an agent: its next test would be lost, too.
#[test]
fn an_agent_ends_with_its_output() {
    let (scratch, server) = (Scratch::new(), Server::start(Program::Linerate, &[]));
    let file = description(&scratch, server.port);
    let full = || std::fs::File::options().write(true).open("/dev/full").expect("the device is there");
    let start = |name| {
        let mut command = agent(&scratch, &[&file, "--address", name, "--for", "10m"]);
        command.stdout(full()).stderr(std::process::Stdio::piped()).spawn().expect("it starts")
    };
    let begin = std::time::Instant::now();
    let ended = ["a", "b"].map(start).map(|child| child.wait_with_output().expect("it ends"));
    let reported = ended.iter().filter(|output| output.status.code() == Some(2)).collect::<Vec<_>>();
    assert!(!reported.is_empty(), "{ended:?}");
    for output in reported {
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(text.contains("writing to standard output: No space left on device"), "{text}");
    }
    // Each has a test within half a minute, and ends with its result instead of after ten minutes.
    assert!(begin.elapsed() < LIMIT, "{:?}", begin.elapsed());
}
