//! Command line of `linerate tune` and `linerate doctor`, without a path.

use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::support::document::{array, text};
use crate::support::process::{FinishedChild, run};
use crate::support::{Scratch, linerate};

use super::guest::flat;

const LIMIT: Duration = Duration::from_secs(300);

fn tune(arguments: &[&str]) -> FinishedChild {
    let scratch = Scratch::new();
    let mut command = linerate();
    command.arg("tune").args(arguments).env("LINERATE_STATE", scratch.path("state"));
    run(command, LIMIT)
}

/// Runs `linerate tune` in a separate network namespace with default buffers (those of 6.16 and later are larger than
/// before), independent of this host's.
fn tune_with_defaults(arguments: &[&str]) -> FinishedChild {
    let scratch = Scratch::new();
    let allowed =
        |options: &&str| Command::new("unshare").args([options, "true"]).status().is_ok_and(|end| end.success());
    let options = ["-n", "-rn"].into_iter().find(allowed).expect("namespaces: run as root, or allow user namespaces");
    let script =
        "cd /proc/sys/net/ipv4; echo 4096 131072 33554432 > tcp_rmem; echo 4096 16384 4194304 > tcp_wmem; exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args([options, "sh", "-c", script, "sh", env!("CARGO_BIN_EXE_linerate"), "tune"]).args(arguments);
    command.env("LINERATE_HISTORY", "off").env("LINERATE_STATE", scratch.path("state"));
    run(command, LIMIT)
}

#[track_caller]
fn assert_contains(text: &str, words: &[&str]) {
    let flat = flat(text);
    for word in words {
        assert!(flat.contains(word), "{word:?} is not in\n{text}");
    }
}

#[test]
fn without_a_path_it_audits() {
    let done = tune(&["-v"]);
    assert!(matches!(done.code(), Some(0 | 1)), "{done:#?}");
    assert_contains(&done.stdout, &["facts read", "Nothing was changed"]);
    assert_contains(&done.stderr, &["No path was given", "linerate tune HOST", "--rate with --rtt"]);
    let mut audit = linerate();
    audit.args(["audit", "--json"]);
    let (audited, tuned) = (run(audit, LIMIT).json(), tune(&["--json"]).json());
    let keys = |document: &Value| document.as_object().expect("an object").keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&audited), keys(&tuned));
}

/// 1 Gbit/s over 200 ms is 25 MB; a window is 0.62 of the buffer, or slightly more, and a send buffer holds data twice.
/// That is more than the largest default of any kernel.
#[test]
fn a_given_path_is_computed() {
    const PRODUCT: f64 = 25e6;
    let done = tune_with_defaults(&["--rate", "1G", "--rtt", "200ms", "--json"]).expect_code(0);
    let document = done.json();
    assert_eq!((text(&document, "/outcome"), &document["before"]), ("planned", &Value::Null), "{document:#}");
    for (index, (key, least, most)) in
        [("net.ipv4.tcp_rmem", 1.0 / 0.75, 3.0), ("net.ipv4.tcp_wmem", 1.0 / 0.75, 4.0)].into_iter().enumerate()
    {
        let change = &array(&document, "/rounds/0/changes")[index]["change"];
        assert_eq!(text(change, "/target/key"), key, "{document:#}");
        let largest =
            text(change, "/to").split(' ').nth(2).and_then(|word| word.parse::<u32>().ok()).expect("three numbers");
        assert!((least * PRODUCT..=most * PRODUCT).contains(&f64::from(largest)), "{key}: {largest}");
        assert_eq!(largest % 4096, 0, "{key}: {largest} is no whole number of pages");
        assert_contains(text(change, "/reason/arithmetic"), &["1.00 Gbit/s x 200 ms / 8", &format!("{largest} B")]);
    }
    // The kernel's total is not visible from a namespace: the required value is reported instead.
    let refusals: Vec<&str> = array(&document, "/rounds/0/refusals").iter().map(|one| text(one, "/text")).collect();
    assert!(refusals.iter().any(|text| text.contains("net.ipv4.tcp_mem") && text.contains("pages")), "{refusals:?}");
    let shown = tune_with_defaults(&["--rate", "1G", "--rtt", "200ms"]).expect_code(0);
    let values = ["net.ipv4.tcp_rmem = 4096 131072", "(now 4096 131072 33554432)", "net.ipv4.tcp_wmem = 4096 16384"];
    assert_contains(&shown.stdout, &values);
    assert_contains(&shown.stdout, &["Nothing was changed", "--apply", "--export"]);
    let all = tune_with_defaults(&["--rate", "1G", "--rtt", "200ms", "-v"]).expect_code(0);
    assert_contains(&all.stdout, &["Nothing was changed", "The far end needs the same"]);
    assert!(shown.stdout.lines().all(|line| line.chars().count() <= 80), "{}", shown.stdout);
    let small = tune_with_defaults(&["--rate", "10M", "--rtt", "10ms", "--json"]).expect_code(0).json();
    assert_eq!((text(&small, "/outcome"), array(&small, "/rounds/0/changes").len()), ("nothing_to_change", 0));
}

#[test]
fn a_plan_for_other_tools() {
    for (format, words) in [
        ("sysctl.d", "net.ipv4.tcp_rmem = 4096 131072 "),
        ("tuned", "[sysctl] net.ipv4.tcp_rmem=4096 131072 "),
        ("ansible", "content: | # "),
        ("nixos", "\"net.ipv4.tcp_rmem\" = \"4096 131072 "),
        ("docker", "--sysctl 'net.ipv4.tcp_rmem=4096 131072 "),
        ("kubernetes", "- name: net.ipv4.tcp_rmem value: \"4096 131072 "),
    ] {
        let done = tune_with_defaults(&["--rate", "1G", "--rtt", "200ms", "--export", format]).expect_code(0);
        assert_contains(&done.stdout, &["# Written by linerate", "computed for 1.00 Gbit/s over 200 ms", words]);
        assert_eq!(done.stderr, "", "{format}");
    }
    // These two concern interfaces: an export without the settings is no success.
    for format in ["systemd-link", "network-manager"] {
        let done = tune_with_defaults(&["--rate", "1G", "--rtt", "200ms", "--export", format]).expect_code(1);
        assert_contains(&done.stdout, &["# Written by linerate", "# Not included:"]);
        let expected = ["cannot express 2 of 2 changes", "net.ipv4.tcp_rmem = 4096 131072 ", "net.ipv4.tcp_wmem = "];
        assert_contains(&done.stderr, &expected);
        assert_contains(&done.stderr, &["all of them fit in: ansible, docker, kubernetes, nixos, sysctl.d, tuned"]);
    }
    let scratch = Scratch::new();
    let directory = scratch.path("files");
    let done = tune_with_defaults(&["--rate", "1G", "--rtt", "200ms", "--export", "sysctl.d", "--out", &directory]);
    let file = done.expect_code(0).stdout.trim().to_owned();
    assert!(file.starts_with(&directory) && file.ends_with("/etc/sysctl.d/90-linerate.conf"), "{file}");
    assert_contains(&std::fs::read_to_string(&file).expect("the file"), &["net.ipv4.tcp_rmem = 4096 131072 "]);
    let file = scratch.file("file", "");
    let refused = tune_with_defaults(&["--rate", "1G", "--rtt", "200ms", "--export", "sysctl.d", "--out", &file]);
    assert_contains(&refused.expect_code(2).stderr, &["writing ", "Not a directory"]);
    let none = tune_with_defaults(&["--rate", "10M", "--rtt", "10ms", "--export", "kubernetes"]).expect_code(0);
    assert_eq!((none.stdout.as_str(), none.stderr.as_str()), ("", "nothing to export: the plan has no changes\n"));
    let unknown = tune(&["--rate", "1G", "--rtt", "200ms", "--export", "toml"]).expect_code(2);
    assert_contains(
        &unknown.stderr,
        &["sysctl.d", "tuned", "ansible", "systemd-link", "network-manager", "docker", "kubernetes", "nixos"],
    );
}

#[test]
fn a_confirmation_is_not_replaced_by_a_yes() {
    for more in [&[][..], &["--confirm-within", "4s"], &["--yes", "--confirm-within", "4s"]] {
        let arguments = [&["--rate", "1G", "--rtt", "200ms", "--apply"], more].concat();
        let refused = tune_with_defaults(&arguments).expect_code(2);
        assert_contains(&refused.stderr, &["no terminal to confirm it at", "--confirm-within"]);
    }
    // Before anything is measured: there is no such host.
    for command in ["tune", "doctor"] {
        let mut refused = linerate();
        refused.args([command, "192.0.2.1", "--yes", "--confirm-within", "4s"]);
        let refused = run(refused, LIMIT).expect_code(2);
        assert_contains(&refused.stderr, &["no terminal to confirm them at", "--confirm-within"]);
    }
}

#[test]
fn conflicting_options_are_refused() {
    assert_contains(&tune(&["--rate", "1G"]).expect_code(2).stderr, &["--rtt"]);
    assert_contains(&tune(&["--rtt", "200ms"]).expect_code(2).stderr, &["--rate"]);
    assert_contains(&tune(&["host", "--rate", "1G", "--rtt", "200ms"]).expect_code(2).stderr, &["cannot be used with"]);
    assert_contains(&tune(&["--apply"]).expect_code(2).stderr, &["--rate"]);
    let role = tune(&["--role", "gaming", "host"]).expect_code(2);
    assert_contains(&role.stderr, &["wan-bulk, lan, low-latency, web, router"]);
    assert_contains(&tune(&["host", "--far", "far"]).expect_code(2).stderr, &["ssh:[USER@]HOST[:PORT]", "netns:NAME"]);
    assert_contains(&tune(&["host", "--max-pairs", "4"]).expect_code(2).stderr, &["--max-pairs", "5"]);
    assert_contains(&tune(&["host", "--flows", "0"]).expect_code(2).stderr, &["1 to 10000"]);
}

#[test]
fn without_changes_there_is_nothing_to_undo_or_export() {
    let undone = tune(&["undo"]).expect_code(0);
    assert_eq!((undone.stdout.as_str(), undone.stderr.contains("no changes of linerate are in effect")), ("", true));
    let exported = tune(&["export", "--format", "tuned"]).expect_code(0);
    assert_eq!(
        (exported.stdout.as_str(), exported.stderr.contains("no changes of linerate are in effect")),
        ("", true)
    );
    assert_contains(&tune(&["undo", "7"]).expect_code(2).stderr, &["no record of changes 7", "rollback --list"]);
    assert_contains(&tune(&["export", "7"]).expect_code(2).stderr, &["no record of changes 7"]);
}

#[test]
fn without_a_server_nothing_is_measured() {
    for arguments in [&["127.0.0.1", "-p", "9"][..], &["127.0.0.1", "-p", "9", "--dry-run", "--json"]] {
        let done = tune(arguments).expect_code(2);
        assert_eq!(done.stdout, "");
        assert_contains(&done.stderr, &["`linerate serve`", "Connection refused"]);
    }
}

#[test]
fn help_has_examples_and_exit_codes() {
    let mut command = linerate();
    command.args(["doctor", "--help"]);
    let help = run(command, LIMIT).expect_code(0).stdout;
    assert_contains(
        &help,
        &["Examples:", "linerate doctor lab:", "Exit codes:", "--html", "--fresh", "--yes", "--dry-run"],
    );
    let help = tune(&["--help"]).expect_code(0).stdout;
    assert_contains(
        &help,
        &["Examples:", "--far ssh:me@host", "Exit codes:", "--confirm-within", "--export", "undo", "export"],
    );
}
