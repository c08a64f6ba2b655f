//! Tests of `linerate audit` on synthetic hosts, on this one, in a bare network namespace, and in guests of the lab.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::support::document::{array, text};
use crate::support::lab::lab_command;
use crate::support::process::run;
use crate::support::{FinishedChild, Scratch, linerate};

const LIMIT: Duration = Duration::from_secs(300);

/// Synthetic host made of files.
struct Host(Scratch);

impl Host {
    /// Kernel 6.12 on 16 GiB, systemd, the initial network namespace, usual settings.
    fn usual() -> Self {
        let host = Self(Scratch::new());
        for (path, content) in [
            ("proc/sys/kernel/osrelease", "6.12.38-amd64\n"),
            ("proc/meminfo", "MemTotal: 16777216 kB\nMemAvailable: 12000000 kB\n"),
            ("proc/cmdline", "quiet\n"),
            ("proc/self/uid_map", "0 0 4294967295\n"),
            ("proc/self/mountinfo", "22 27 0:21 / /proc rw - proc proc rw\n"),
            ("proc/self/status", "Uid:\t1000\t1000\t1000\t1000\nCapEff:\t0000000000000000\n"),
            ("proc/net/sockstat", "TCP: inuse 1 orphan 0 tw 0 alloc 1 mem 35\n"),
            ("proc/sys/net/core/netdev_max_backlog", "1000\n"),
            ("proc/sys/net/core/rmem_max", "212992\n"),
            ("proc/sys/net/core/wmem_max", "212992\n"),
            ("proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t6291456\n"),
            ("proc/sys/net/ipv4/tcp_wmem", "4096\t16384\t4194304\n"),
            ("proc/sys/net/ipv4/tcp_mem", "190000\t255000\t380000\n"),
            ("proc/sys/net/ipv4/tcp_sack", "1\n"),
            ("proc/sys/net/ipv4/tcp_timestamps", "1\n"),
            ("proc/sys/net/ipv4/tcp_window_scaling", "1\n"),
            ("run/systemd/system/x", ""),
        ] {
            host.file(path, content);
        }
        host
    }

    fn file(&self, path: &str, content: &str) -> &Self {
        let place = self.0.path(path);
        fs::create_dir_all(Path::new(&place).parent().expect("a folder")).expect("a scratch folder");
        fs::write(place, content).expect("a scratch file");
        self
    }

    fn link(&self, path: &str, target: &str) -> &Self {
        let place = self.0.path(path);
        fs::create_dir_all(Path::new(&place).parent().expect("a folder")).expect("a scratch folder");
        symlink(target, place).expect("a scratch link");
        self
    }

    fn audit(&self, arguments: &[&str]) -> FinishedChild {
        let mut command = linerate();
        command.args(["audit", "--root", &self.0.path("")]).args(arguments);
        run(command, LIMIT)
    }

    fn findings(&self, code: i32) -> Vec<Value> {
        let document = self.audit(&["--json"]).expect_code(code).json();
        assert_eq!(document["schema"], 1);
        array(&document, "/findings").to_vec()
    }
}

/// Finding of a rule, or the one of another rule on the same setting that has it as a note.
fn of_rule<'a>(findings: &'a [Value], rule: &str) -> &'a Value {
    let is_noted = |finding: &Value| {
        let notes = array(finding, "/notes").iter().filter_map(Value::as_str);
        notes.into_iter().any(|note| note.starts_with(&format!("{rule}: ")))
    };
    let found = findings.iter().find(|finding| finding["rule"] == rule);
    found
        .or_else(|| findings.iter().find(|finding| is_noted(finding)))
        .unwrap_or_else(|| panic!("no {rule} in {findings:#?}"))
}

#[test]
fn a_usual_host_has_no_findings() {
    let host = Host::usual();
    assert_eq!(host.findings(0), Vec::<Value>::new());
    let shown = host.audit(&[]).expect_code(0).stdout;
    assert!(shown.starts_with("Nothing found that slows transfers."), "{shown}");
}

/// Settings of the slides, as found on hosts.
#[test]
fn the_slides_on_a_host() {
    let host = Host::usual();
    host.file("proc/sys/net/ipv4/tcp_sack", "0\n").file(
        "etc/sysctl.d/10-10g.conf",
        "# 10G\nnet.ipv4.tcp_timestamps = 0\nnet.ipv4.tcp_sack = 0\nnet.ipv4.tcp.sack = 0\n\
         net.ipv4.tcp_mem = 4096 87380 16777216\nnet.core.rmem_max = 524287\nnet.core.wmem_max = 524287\n\
         net.core.netdev_max_backlog = 300000\nnet.ipv4.tcp_low_latency = 1\nnet.ipv4.tcp_rmem 4096 87380 16777216\n",
    );
    let findings = host.findings(1);
    let sack = of_rule(&findings, "sack-off");
    assert_eq!(text(sack, "/severity"), "critical");
    assert_eq!(findings[0]["rule"], "sack-off", "the gravest comes first");
    let remedy: Vec<&str> = array(sack, "/remedy").iter().filter_map(Value::as_str).collect();
    assert_eq!(remedy, ["sysctl -w net.ipv4.tcp_sack=1", "edit /etc/sysctl.d/10-10g.conf:3: net.ipv4.tcp_sack = 1"]);
    assert_eq!(sack["locations"][0]["line"], 3);
    assert_eq!((&sack["change"]["from"], &sack["change"]["to"]), (&"0".into(), &"1".into()));
    // Off only in the file: effective at the next boot.
    assert!(text(of_rule(&findings, "timestamps-off"), "/text").starts_with("From the next boot on"));
    for rule in [
        "unknown-setting",
        "tcp-memory-in-bytes",
        "copied-recipe",
        "dead-setting",
        "settings-line-ignored",
        "runtime-differs",
    ] {
        of_rule(&findings, rule);
    }
    // Misspelt lines with harmful values are not corrected.
    assert!(
        of_rule(&findings, "unknown-setting")["remedy"][0].as_str().is_some_and(|line| line.starts_with("delete "))
    );
}

#[test]
fn text_fits_into_eighty_columns_and_begins_with_a_summary() {
    let host = Host::usual();
    host.file("proc/sys/net/ipv4/tcp_sack", "0\n").file("proc/sys/net/ipv4/tcp_rmem", "4096 87380 4194304\n");
    let summary = host.audit(&[]).expect_code(1).stdout;
    assert!(summary.starts_with("1 critical finding, 1 warning") && summary.lines().count() <= 12, "{summary}");
    assert!(summary.lines().all(|line| line.chars().count() <= 80), "{summary}");
    assert!(
        summary.contains("  critical sack-off: ") && summary.contains("First: sysctl -w net.ipv4.tcp_sack=1"),
        "{summary}"
    );
    assert_eq!(host.audit(&["--brief"]).expect_code(1).stdout.lines().count(), 1);
    let shown = host.audit(&["-v"]).expect_code(1).stdout;
    assert!(shown.starts_with("1 critical finding, 1 warning"), "{shown}");
    assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
    assert!(shown.contains("sysctl -w net.ipv4.tcp_sack=1") && shown.contains("Nothing was changed."), "{shown}");
    let grave = host.audit(&["--min-severity", "critical"]).expect_code(1).stdout;
    assert!(!grave.contains("below-kernel-default") && grave.contains("below --min-severity left out"), "{grave}");
}

#[test]
fn the_explanation_lists_all_lines_and_the_effective_one() {
    let host = Host::usual();
    host.file("usr/lib/sysctl.d/50-vendor.conf", "net.ipv4.tcp_rmem = 4096 131072 8388608\n")
        .file("usr/lib/sysctl.d/60-hidden.conf", "net.ipv4.tcp_rmem = 1 2 3\n")
        .link("etc/sysctl.d/60-hidden.conf", "/dev/null")
        .file("etc/sysctl.d/zz-late.conf", "net/ipv4/tcp_rmem = 4096 131072 16777216\n")
        .file("etc/sysctl.conf", "net.ipv4.tcp_rmem = 4096 131072 12582912\n")
        .link("etc/sysctl.d/99-sysctl.conf", "../sysctl.conf");
    let document = host.audit(&["--explain", "net/ipv4/tcp_rmem", "--json"]).expect_code(0).json();
    assert_eq!((&document["schema"], &document["key"]), (&1.into(), &"net.ipv4.tcp_rmem".into()));
    let lines = |key: &str| {
        array(&document, &format!("/{key}")).iter().map(|place| text(place, "/file").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(
        lines("lines_at_boot"),
        ["/usr/lib/sysctl.d/50-vendor.conf", "/etc/sysctl.conf", "/etc/sysctl.d/zz-late.conf"]
    );
    assert_eq!(lines("lines_by_sysctl_system").last().map(String::as_str), Some("/etc/sysctl.conf"));
    assert_eq!(document["at_boot"]["value"], "4096 131072 16777216");
    assert_eq!(document["by_sysctl_system"]["value"], "4096 131072 12582912");
    assert_eq!(document["kernel_default"]["value"], "4096 131072 6291456");
    let shown = host.audit(&["--explain", "tcp_rmem"]).expect_code(0).stdout;
    for part in ["zz-late.conf:1", "<- decides", "/etc/sysctl.d/60-hidden.conf replaces its file", "until 6.15"] {
        let plain = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(plain.contains(part), "{part}: {shown}");
    }
    assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
    let findings = host.findings(1);
    of_rule(&findings, "orders-disagree");
    of_rule(&findings, "setting-overridden");
    assert!(text(of_rule(&findings, "runtime-differs"), "/text").contains("16777216"));
}

#[test]
fn a_name_that_does_not_exist_is_an_error_with_the_nearest() {
    let finished = Host::usual().audit(&["--explain", "net.ipv4.tcp.sack"]).expect_code(2);
    assert!(finished.stderr.contains("did you mean net.ipv4.tcp_sack?"), "{}", finished.stderr);
    let nowhere = run(
        {
            let mut command = linerate();
            command.args(["audit", "--root", "/proc/self/no-such-directory"]);
            command
        },
        LIMIT,
    );
    nowhere.expect_code(2);
}

#[test]
fn sarif_names_rules_levels_and_lines() {
    let host = Host::usual();
    host.file("proc/sys/net/ipv4/tcp_sack", "0\n").file("etc/sysctl.d/99 old.conf", "\nnet.ipv4.tcp_sack = 0\n");
    let log = host.audit(&["--sarif"]).expect_code(1).json();
    assert_eq!(log["version"], "2.1.0");
    let run = &log["runs"][0];
    let rules = array(&run["tool"]["driver"], "/rules");
    let mut identifiers: Vec<&str> = rules.iter().map(|rule| text(rule, "/id")).collect();
    assert!(identifiers.len() > 30 && rules.iter().all(|rule| rule["shortDescription"]["text"].is_string()));
    identifiers.dedup();
    assert_eq!(identifiers.len(), rules.len(), "identifiers are unique");
    let results = array(run, "/results");
    assert!(!results.is_empty());
    for result in results {
        let index = usize::try_from(result["ruleIndex"].as_u64().expect("an index")).expect("small");
        assert_eq!(rules[index]["id"], result["ruleId"]);
        assert!(["error", "warning", "note"].contains(&text(result, "/level")));
        assert!(result["message"]["text"].as_str().is_some_and(|message| !message.is_empty()));
        for location in array(result, "/locations") {
            let line = &location["physicalLocation"]["region"]["startLine"];
            assert!(
                line.as_u64().is_some_and(|line| line > 0) || location["logicalLocations"].is_array(),
                "{location}"
            );
        }
    }
    let sack = results.iter().find(|result| result["ruleId"] == "sack-off").expect("found");
    let place = &sack["locations"][0]["physicalLocation"];
    assert_eq!(sack["level"], "error");
    assert_eq!(place["artifactLocation"]["uri"], "file:///etc/sysctl.d/99%20old.conf");
    assert_eq!(place["region"]["startLine"], 2);
}

/// Files do not apply in a container, and settings that cannot be changed there are reported.
#[test]
fn a_container_has_its_own_remedies() {
    let host = Host::usual();
    host.file(".dockerenv", "")
        .file(
            "proc/self/mountinfo",
            "22 27 0:21 / /proc rw - proc proc rw\n23 22 0:21 /sys /proc/sys ro - proc proc rw\n",
        )
        .file("etc/sysctl.d/a.conf", "net.ipv4.tcp_rmem = 4096 131072 33554432\n");
    fs::remove_file(host.0.path("proc/sys/net/core/netdev_max_backlog")).expect("a scratch file");
    let findings = host.findings(0);
    let limits = of_rule(&findings, "namespace-limits");
    assert!(
        limits["remedy"][0].as_str().is_some_and(|line| line.starts_with("docker run --sysctl net.ipv4.tcp_rmem="))
    );
    assert!(findings.iter().all(|finding| finding["rule"] != "runtime-differs"), "{findings:#?}");
    let document = host.audit(&["--explain", "tcp_rmem", "--json"]).expect_code(0).json();
    assert_eq!(document["writable"], "no");
}

#[test]
fn unread_facts_have_a_reason() {
    let host = Host::usual();
    let document = host.audit(&["--json"]).expect_code(0).json();
    let facts = document["facts"].as_object().expect("facts");
    assert!(facts.len() > 60);
    for (name, fact) in facts {
        let known = fact["value"].is_string();
        assert!(known || fact["reason"].as_str().is_some_and(|reason| !reason.is_empty()), "{name}: {fact}");
        assert_eq!(fact["obstacle"].is_null(), known, "{name}: {fact}");
    }
    assert_eq!(facts["net.ipv4.tcp_sack"]["value"], "1");
    assert_eq!(facts["net.ipv4.tcp_ecn"]["obstacle"], "absent");
}

/// This host gives a valid document with the facts of /proc.
#[test]
fn this_machine() {
    let mut command = linerate();
    command.args(["audit", "--json"]);
    let finished = run(command, LIMIT);
    let document = finished.json();
    let now = fs::read_to_string("/proc/sys/net/ipv4/tcp_rmem").expect("Linux");
    let now = now.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(document["facts"]["net.ipv4.tcp_rmem"]["value"], now.as_str());
    let grave =
        array(&document, "/findings").iter().any(|found| ["warning", "critical"].contains(&text(found, "/severity")));
    finished.expect_code(i32::from(grave));
}

/// A user namespace provides a bare network namespace without privilege; the host's settings are absent there, and
/// reported so.
#[test]
fn a_bare_namespace_without_privilege() {
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--net", env!("CARGO_BIN_EXE_linerate"), "audit", "--json"]);
    let finished = run(command, LIMIT);
    if finished.stderr.contains("unshare failed") {
        // Some hosts forbid user namespaces, which makes this test impossible.
        return;
    }
    let document = finished.json();
    let findings = array(&document, "/findings");
    assert!(text(of_rule(findings, "namespace-limits"), "/text").contains("with a network of its own"));
    assert_eq!(document["facts"]["net.ipv4.tcp_mem"]["obstacle"], "absent");
    assert_eq!(document["facts"]["privileges.initial_user_namespace"]["value"], "false");
    assert!(document["facts"]["net.ipv4.tcp_sack"]["value"].is_string());
}

/// In the lab the cause is in the host, and the audit finds it without a peer.
#[test]
fn guests_of_the_lab() {
    for (path, rule) in [
        ("300m-20ms-half-buffer-no-sack", "sack-off"),
        ("300m-20ms-half-buffer-no-timestamps", "timestamps-off"),
        ("rhel-1g-1500us-no-window-scaling", "window-scaling-off"),
    ] {
        let document = run(lab_command(path, &["linerate", "audit", "--json"]), LIMIT).expect_code(1).json();
        of_rule(array(&document, "/findings"), rule);
    }
}
