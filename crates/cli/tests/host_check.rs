//! Tests of `linerate doctor --check`, and of changes on hosts that lack something.

use std::fs;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::document::array;
use crate::support::namespace::Namespace;
use crate::support::process::run;
use crate::support::{Scratch, linerate};

const LIMIT: Duration = Duration::from_secs(300);

fn item<'d>(document: &'d Value, name: &str) -> &'d Value {
    let found = array(document, "/items").iter().find(|item| item["name"] == name);
    found.unwrap_or_else(|| panic!("no item {name}: {document:#}"))
}

/// linerate in a namespace, where its shapers and settings are its own.
fn inside(namespace: &Namespace, scratch: &Scratch, arguments: &[&str]) -> Command {
    let mut command = namespace.command(env!("CARGO_BIN_EXE_linerate"));
    command
        .args(arguments)
        .env("LINERATE_STATE", scratch.path("state"))
        .env("LINERATE_HISTORY", scratch.path("history"));
    command
}

/// `$PATH` with programs first that answer as those of `BusyBox` do.
fn busybox(scratch: &Scratch, programs: &[&str]) -> String {
    for program in programs {
        let script = "#!/bin/sh\necho 'BusyBox v1.36.1 (2024-06-10) multi-call binary.' >&2\nexit 1\n";
        scratch.script(program, script);
    }
    format!("{}:{}", scratch.path(""), std::env::var("PATH").unwrap_or_default())
}

#[test]
fn a_complete_host_is_safe_and_stays_as_it_was() {
    let (namespace, scratch) = (Namespace::new(), Scratch::new());
    let mut loopback = namespace.command("ip");
    loopback.args(["link", "set", "lo", "up"]);
    run(loopback, LIMIT).expect_code(0);
    let finished = run(inside(&namespace, &scratch, &["doctor", "--check", "--json"]), LIMIT).expect_code(0);
    let document = finished.document();
    assert_eq!(document["kind"], "host-check");
    assert_eq!(document["can_change_safely"], true);
    for name in
        ["root", "state directory", "watchdog", "network namespaces", "ip", "tc", "shaper", "kernel time stamps"]
    {
        assert_eq!(item(&document, name)["works"], true, "{:#}", item(&document, name));
    }
    // In a namespace the watchdog is a process.
    assert_eq!(item(&document, "watchdog as a service")["works"], false);
    let left: Vec<_> = fs::read_dir(scratch.path("state")).expect("made").collect();
    assert!(left.is_empty(), "{left:?}");
    let text = run(inside(&namespace, &scratch, &["doctor", "--check"]), LIMIT).expect_code(0).stdout;
    assert!(text.contains("everything that safe changes need works"), "{text}");
}

#[test]
fn programs_of_busybox_are_missing_with_the_package() {
    let (namespace, scratch) = (Namespace::new(), Scratch::new());
    let mut command = inside(&namespace, &scratch, &["doctor", "--check", "--json"]);
    command.env("PATH", busybox(&scratch, &["ip", "tc"]));
    let document = run(command, LIMIT).expect_code(1).document();
    assert_eq!(document["can_change_safely"], false);
    for name in ["ip", "tc"] {
        let item = item(&document, name);
        assert!(item["detail"].as_str().is_some_and(|text| text.contains("BusyBox v1.36.1")), "{item:#}");
        assert!(item["remedy"].as_str().is_some_and(|text| text.contains("iproute")), "{item:#}");
    }
}

/// `BusyBox` leaves out attributes that it does not know: what it reads could not be restored.
#[test]
fn nothing_is_changed_with_programs_of_busybox_but_settings_are() {
    let (namespace, scratch) = (Namespace::new(), Scratch::new());
    let path = busybox(&scratch, &["ip", "tc"]);
    let change = |target: Value, to: &str| {
        json!({
            "target": target, "from": null, "to": to, "group": "buffers", "takes_effect": "now",
            "reason": { "text": "requested by a test" },
        })
    };
    let plan = |change: Value| json!({ "schema": 1, "made_at_unix_ns": 0, "changes": [change] }).to_string();
    let trial = |plan: String| {
        let mut command = inside(&namespace, &scratch, &["__trial", &scratch.file("plan.json", plan), "--hold", "1ms"]);
        command.env("PATH", &path);
        run(command, LIMIT)
    };
    for target in
        [json!({ "kind": "route", "destination": "default" }), json!({ "kind": "queueing", "interface": "lo" })]
    {
        let refused = trial(plan(change(target, "qdisc replace dev lo root pfifo limit 33"))).expect_code(2);
        assert!(refused.stderr.contains("BusyBox") && refused.stderr.contains("iproute"), "{refused:#?}");
    }
    let setting = "net.ipv4.tcp_rmem";
    let before = namespace.read(setting);
    let applied = trial(plan(change(json!({ "kind": "setting", "key": setting }), "4096 131072 67108864")));
    assert!(applied.expect_code(0).stdout.contains("applied"), "settings need no program");
    assert_eq!(namespace.read(setting), before, "rolled back");
}

#[test]
fn an_unwritable_state_directory_is_named() {
    let mut command = linerate();
    command.args(["doctor", "--check"]).env("LINERATE_STATE", "/proc/no-such-directory");
    let text = run(command, LIMIT).expect_code(1).stdout;
    assert!(text.contains("NO  state directory") && text.contains("LINERATE_STATE"), "{text}");
}

#[test]
fn the_check_takes_no_host() {
    let mut command = linerate();
    command.args(["doctor", "--check", "far"]);
    run(command, LIMIT).expect_code(2);
    let mut command = linerate();
    command.args(["doctor"]);
    run(command, LIMIT).expect_code(2);
}
