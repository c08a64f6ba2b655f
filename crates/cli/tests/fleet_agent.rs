//! `linerate fleet agent`: two agents of a fleet, each with its own tests.

use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::process::{Process, eventually, run, send_signal};
use crate::support::{Program, Scratch, Server, linerate};

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
            event["outcome"] == "done" && event["verdict"].as_str().is_some_and(|text| !text.is_empty())
        };
        // Both ends at the very end of the agents may break off a test.
        assert!(of_task.iter().filter(|event| is_whole(event)).count() >= 1, "{task}: {all:#?}");
        let times: Vec<u64> = of_task.iter().filter_map(|event| event["at_unix_ns"].as_u64()).collect();
        let distinct: std::collections::BTreeSet<&u64> = times.iter().collect();
        assert_eq!(distinct.len(), times.len(), "{task} was started twice: {all:#?}");
        // One agent starts all sessions of the pair's task.
        let starters = outputs.iter().filter(|output| output.contains(&format!("\"task\":\"{task}\""))).count();
        assert_eq!(starters, 1, "{outputs:?}");
    }
    // The log has what was printed, in one file.
    let logged: Vec<Value> = std::fs::read_dir(scratch.path("results"))
        .expect("a log")
        .flat_map(|file| events(&std::fs::read_to_string(file.expect("a file").path()).expect("text")))
        .collect();
    assert_eq!(logged.len(), all.len(), "{logged:#?}");
    assert!(logged.iter().all(|result| all.contains(result)), "{logged:#?}");
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

/// The page of the results, one of its runs for `linerate report`, and places without results.
#[test]
fn the_report_has_the_results_of_several_directories() {
    let (scratch, server) = (Scratch::new(), Server::start(Program::Linerate, &[]));
    let file = description(&scratch, server.port);
    let directories = ["a", "b"].map(|name| scratch.path(name));
    let start = |(name, directory): (&str, &String)| {
        Process::start(agent(&scratch, &[&file, "--address", name, "--for", "19s", "--results", directory]))
    };
    let agents = ["a", "b"].into_iter().zip(&directories).map(start).collect::<Vec<_>>();
    for agent in agents {
        agent.finish(LIMIT).expect_code(0);
    }
    let report = |arguments: &[&str]| {
        let mut command = linerate();
        command.args(["fleet", "report"]).args(arguments).env("LINERATE_HISTORY", scratch.path("history"));
        command
    };
    let [a, b] = directories.each_ref().map(String::as_str);
    let text = run(report(&[a, b, "--format", "text"]), LIMIT).expect_code(0).stdout;
    assert!(text.contains("between 2 hosts: 2 of 2 directions measured"), "{text}");
    let page = scratch.path("page.html");
    run(report(&[a, b, "--out", &page]), LIMIT).expect_code(0);
    let html = std::fs::read_to_string(&page).expect("the page");
    assert!(html.contains("id=\"direction-0-1\"") && html.contains("<article "), "{} bytes", html.len());
    let again = run(report(&[a, b, "--out", &page]), LIMIT).expect_code(2);
    assert!(again.stderr.contains("--force overwrites it"), "{}", again.stderr);
    let missing = run(report(&[]), LIMIT).expect_code(2);
    assert!(missing.stderr.contains("results"), "{}", missing.stderr);
    let id = html
        .split("goodput/")
        .nth(1)
        .map(|rest| format!("goodput/{}", rest.split(['<', '"', ' ']).next().unwrap_or("")));
    if let Some(id) = id {
        let json = run(report(&[a, b, "--run", &id]), LIMIT).expect_code(0).stdout;
        assert!(json.contains("\"throughput\""), "{json}");
    }
}
