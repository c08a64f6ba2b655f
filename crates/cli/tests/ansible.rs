//! The Ansible collection of packaging: its linter, and its roles and modules on two hosts over ssh, each an sshd in a network
//! namespace of its own.

use std::process::Command;

use serde_json::{Value, json};

use crate::support::Scratch;
use crate::support::far_host::{FarHost, LIMIT};
use crate::support::process::run;

const COLLECTION: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/ansible");

/// Directory with a copy of the collection, where Ansible looks for it: its programs write next to what they read.
fn collections() -> Scratch {
    let scratch = Scratch::new();
    let parent = scratch.path("ansible_collections/linerate");
    std::fs::create_dir_all(&parent).expect("a directory");
    let copied = Command::new("cp").args(["--recursive", COLLECTION, &format!("{parent}/fleet")]).status();
    assert!(copied.is_ok_and(|status| status.success()), "copying the collection");
    std::fs::create_dir_all(scratch.path("home")).expect("a directory");
    scratch
}

fn ansible(scratch: &Scratch, program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(scratch.path("ansible_collections/linerate/fleet"));
    for (name, value) in [
        ("HOME", scratch.path("home")),
        ("ANSIBLE_COLLECTIONS_PATH", scratch.path("")),
        ("ANSIBLE_NOCOLOR", "1".to_owned()),
        ("ANSIBLE_SSH_TRANSFER_METHOD", "piped".to_owned()),
        ("ANSIBLE_PIPELINING", "1".to_owned()),
        ("ANSIBLE_SSH_ARGS", "-o ControlMaster=auto -o ControlPersist=10s".to_owned()),
        ("ANSIBLE_CALLBACK_PLUGINS", concat!(env!("CARGO_MANIFEST_DIR"), "/tests/deployment").to_owned()),
        ("ANSIBLE_STDOUT_CALLBACK", "report".to_owned()),
        ("PYTHONDONTWRITEBYTECODE", "1".to_owned()),
        ("ANSIBLE_DEVEL_WARNING", "0".to_owned()),
    ] {
        command.env(name, value);
    }
    command
}

#[test]
fn ansible_lint_accepts_the_collection() {
    let scratch = collections();
    std::fs::copy(playbook(), scratch.path("ansible_collections/linerate/fleet/playbook.yml")).expect("a copy");
    run(ansible(&scratch, "ansible-lint", &["--offline", "--strict", "--nocolor"]), LIMIT).expect_code(0);
    for module in ["linerate_audit", "linerate_tune"] {
        let name = format!("linerate.fleet.{module}");
        let shown = run(ansible(&scratch, "ansible-doc", &["--json", &name]), LIMIT).expect_code(0).document();
        assert!(shown[&name]["doc"]["options"]["program"].is_object(), "{shown:#}");
    }
}

fn playbook() -> &'static str {
    concat!(env!("CARGO_MANIFEST_DIR"), "/tests/deployment/playbook.yml")
}

/// Inventory of both hosts, whose units and descriptions are in directories of their own.
fn inventory(hosts: &[FarHost; 2]) -> Value {
    let entry = |(name, host): (&str, &FarHost)| {
        let ssh = format!(
            "#!/bin/sh\nexec nsenter --target={} --net {} \"$@\"\n",
            host.namespace.id(),
            host.scratch.path("near/ssh")
        );
        let directory = host.scratch.path("units");
        std::fs::create_dir_all(&directory).expect("a directory");
        let program = host.scratch.path("bin/linerate");
        let mut variables = json!({
            "ansible_host": "far",
            // Both have the same name to ssh: their connections are apart.
            "ansible_control_path": host.scratch.path("c"),
            "ansible_ssh_executable": host.scratch.script("near/enter", ssh),
            "ansible_python_interpreter": "/usr/bin/python3",
            "ansible_remote_tmp": host.scratch.path("tmp"),
            "program": program,
            "linerate_server_arguments": ["--max-sessions", "8"],
            "linerate_agent_directory": host.scratch.path("etc"),
            "linerate_agent_description": {
                "addresses": { "a": { "address": "192.0.2.1" }, "b": { "address": "192.0.2.2" } },
                "groups": { "both": { "type": "mesh", "addresses": [{ "name": "a" }, { "name": "b" }] } },
                "tests": { "goodput": { "type": "throughput", "spec": { "duration": "PT5S" } } },
                "tasks": { "goodput": { "group": "both", "test": "goodput" } }
            },
            "linerate_monitor_hosts": ["192.0.2.1", "192.0.2.2"],
        });
        for role in ["server", "agent", "monitor"] {
            variables[format!("linerate_{role}_program")] = json!(program);
            variables[format!("linerate_{role}_unit_directory")] = json!(directory);
            // There is no systemd in the namespaces.
            variables[format!("linerate_{role}_start")] = json!(false);
        }
        (name.to_owned(), variables)
    };
    let entries: serde_json::Map<String, Value> = ["a", "b"].into_iter().zip(hosts).map(entry).collect();
    json!({ "all": { "hosts": entries } })
}

/// Result of a task on a host.
fn task<'a>(report: &'a Value, name: &str, host: &str) -> &'a Value {
    let tasks = report["tasks"].as_array().expect("tasks");
    let found = tasks.iter().find(|task| task["name"] == name).unwrap_or_else(|| panic!("{name} in {report:#}"));
    &found["hosts"][host]
}

#[test]
#[ignore = "needs root, sshd, ip and ss: a network namespace"]
fn roles_and_modules_change_two_hosts_once() {
    let hosts = [FarHost::with_linerate(""), FarHost::with_linerate("")];
    let scratch = collections();
    let file = scratch.file("inventory.json", inventory(&hosts).to_string());
    let play = |options: &[&str]| -> Value {
        let arguments = [&["-i", &file, playbook()], options].concat();
        run(ansible(&scratch, "ansible-playbook", &arguments), LIMIT).expect_code(0).document()
    };
    let settings = ["net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"];
    let values = || hosts.each_ref().map(|host| settings.map(|setting| host.namespace.read(setting)));
    let tune = "Set the host up for a path";

    // In check mode the differences are shown, and nothing is changed.
    let before = values();
    let planned = play(&["--check", "--diff", "--start-at-task", "Audit the host"]);
    assert_eq!(values(), before);
    for (host, old) in ["a", "b"].iter().zip(&before) {
        let result = task(&planned, tune, host);
        assert_eq!((&result["changed"], &result["outcome"]), (&json!(true), &json!("planned")), "{result:#}");
        let shown = result["diff"]["before"].as_str().expect("a difference");
        assert!(shown.contains(&format!("net.ipv4.tcp_rmem = {}\n", old[0])), "{shown}");
    }

    // Once: every file is written and the settings are those of the plan.
    let changed = play(&[]);
    for (index, name) in ["a", "b"].into_iter().enumerate() {
        assert_eq!(changed["stats"][name]["failures"], 0, "{changed:#}");
        let result = task(&changed, tune, name);
        assert_eq!(result["outcome"], "kept", "{result:#}");
        let after = format!("net.ipv4.tcp_rmem = {}\n", values()[index][0]);
        assert_eq!(result["diff"]["after"], task(&planned, tune, name)["diff"]["after"]);
        assert!(result["diff"]["after"].as_str().is_some_and(|text| text.contains(&after)), "{result:#}");
        assert!(task(&changed, "Audit the host", name)["counts"]["critical"].is_number());
        let units = ["server", "agent", "monitor"].map(|role| {
            let file = hosts[index].scratch.path(&format!("units/linerate-{role}.service"));
            let text = std::fs::read_to_string(&file).expect("a unit");
            let start = text.lines().find_map(|line| line.strip_prefix("ExecStart=")).expect("it starts something");
            (file.clone(), start.split_once(' ').expect("arguments").1.trim().to_owned())
        });
        assert_eq!(units[0].1, "serve --max-sessions 8");
        assert_eq!(
            units[1].1,
            format!("fleet agent {}/fleet.json --address {name} --json", hosts[index].scratch.path("etc"))
        );
        assert_eq!(units[2].1, "monitor 192.0.2.1 192.0.2.2 --every 15m");
        let mut verify = Command::new("systemd-analyze");
        verify.args(["verify", "--man=no"]).args(units.iter().map(|(file, _)| file));
        run(verify, LIMIT).expect_code(0);
    }

    // Twice: nothing.
    let again = play(&[]);
    for name in ["a", "b"] {
        assert_eq!(
            (&again["stats"][name]["changed"], &again["stats"][name]["failures"]),
            (&json!(0), &json!(0)),
            "{again:#}"
        );
        assert_eq!(task(&again, tune, name)["outcome"], "nothing_to_change");
    }
}
