//! Tests of `linerate rollback`, and of processes that change a host and are killed, lose their terminal, or hang. Each
//! test has its own network namespace; the one in the lab's guest changes that guest.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::document::{array, text};
use crate::support::lab::lab;
use crate::support::namespace::{Namespace, unshare};
use crate::support::process::{FinishedChild, Process, eventually, run, send_signal};
use crate::support::{Scratch, linerate};

const LIMIT: Duration = Duration::from_secs(300);
const SETTING: &str = "net.ipv4.tcp_rmem";
const WANTED: &str = "4096 131072 67108864";

/// linerate in a namespace.
fn inside(namespace: &Namespace, state: &Scratch, arguments: &[&str]) -> Command {
    let mut command = namespace.command(env!("CARGO_BIN_EXE_linerate"));
    command.args(arguments).env("LINERATE_STATE", state.path("state"));
    command
}

fn change(target: &Value, to: &str) -> Value {
    json!({
        "target": target, "from": null, "to": to, "group": "buffers", "takes_effect": "new_connections",
        "reason": { "text": "requested by a test" },
    })
}

fn setting(key: &str) -> Value {
    json!({ "kind": "setting", "key": key })
}

fn plan(scratch: &Scratch, changes: &[Value]) -> String {
    scratch.file("plan.json", json!({ "schema": 1, "made_at_unix_ns": 0, "changes": changes }).to_string())
}

/// Starts a process that has carried out a plan and waits.
fn trying(namespace: &Namespace, scratch: &Scratch, more: &[&str]) -> Process {
    let plan = plan(scratch, &[change(&setting(SETTING), WANTED)]);
    let arguments = [&["__trial", &plan, "--hold", "600s"], more].concat();
    let process = Process::start(inside(namespace, scratch, &arguments));
    process.wait_for_output("applied 1\n", LIMIT);
    assert_eq!(namespace.read(SETTING), WANTED);
    process
}

fn state_of(namespace: &Namespace, scratch: &Scratch) -> (String, String) {
    let listed = run(inside(namespace, scratch, &["rollback", "--list", "--json"]), LIMIT).expect_code(0).json();
    let set = &array(&listed, "/sets")[0];
    (text(set, "/state").to_owned(), set["closed_because"].as_str().unwrap_or_default().to_owned())
}

fn wait_until_restored(namespace: &Namespace, before: &str, within: Duration) {
    assert!(eventually(within, || namespace.read(SETTING) == before), "{} is {}", SETTING, namespace.read(SETTING));
}

/// Sends a signal to the program itself: `nsenter` becomes it.
fn signal(process: &Process, name: &str) {
    process.signal(name);
}

#[test]
fn a_killed_process_leaves_nothing_behind() {
    let (namespace, scratch) = (Namespace::new(), Scratch::new());
    let before = namespace.read(SETTING);
    let process = trying(&namespace, &scratch, &[]);
    signal(&process, "KILL");
    wait_until_restored(&namespace, &before, LIMIT);
    drop(process);
    let why = || state_of(&namespace, &scratch);
    assert!(eventually(LIMIT, || why().0 == "rolled_back"), "{:?}", why());
    assert!(why().1.contains("process had ended"), "{:?}", why());
}

#[test]
fn a_hanging_process_is_ended_at_its_time_limit() {
    let (namespace, scratch) = (Namespace::new(), Scratch::new());
    let before = namespace.read(SETTING);
    let start = Instant::now();
    let process = trying(&namespace, &scratch, &["--time-limit", "3s"]);
    signal(&process, "STOP");
    wait_until_restored(&namespace, &before, LIMIT);
    assert!(start.elapsed() >= Duration::from_secs(3), "not before its time: after {:?}", start.elapsed());
    let why = || state_of(&namespace, &scratch);
    assert!(eventually(LIMIT, || why().0 == "rolled_back"), "{:?}", why());
    assert!(why().1.contains("time limit expired"), "{:?}", why());
}

/// The record of a trial is removed or damaged while it runs.
#[test]
fn a_killed_process_is_undone_without_its_journal() {
    for is_removed in [true, false] {
        let (namespace, scratch) = (Namespace::new(), Scratch::new());
        let before = namespace.read(SETTING);
        let process = trying(&namespace, &scratch, &[]);
        if is_removed {
            std::fs::remove_dir_all(scratch.path("state")).expect("there");
        } else {
            let journal = scratch.path("state/changes/1/journal");
            let mut bytes = std::fs::read(&journal).expect("there");
            bytes[40] ^= 4;
            std::fs::write(&journal, bytes).expect("writable");
        }
        signal(&process, "KILL");
        wait_until_restored(&namespace, &before, LIMIT);
    }
}

#[test]
fn changes_come_back_although_the_state_directory_is_read_only() {
    let (namespace, scratch) = (Namespace::new(), Scratch::new());
    let before = namespace.read(SETTING);
    let state = scratch.path("state");
    let mut holder = namespace.command("unshare");
    let mount = format!("mkdir {state} && mount -t tmpfs none {state} && echo ready && exec sleep 600");
    holder.args(["--mount", "sh", "-c", &mount]);
    let holder = Process::start(holder);
    holder.wait_for_output("ready", LIMIT);
    let inside = |program: &str, arguments: &[&str]| {
        let mut command = namespace.command("nsenter");
        command.arg(format!("--target={}", holder.id())).args(["--mount", program]).args(arguments);
        command.env("LINERATE_STATE", &state);
        command
    };
    let linerate = env!("CARGO_BIN_EXE_linerate");
    let plan = plan(&scratch, &[change(&setting(SETTING), WANTED)]);
    let process = Process::start(inside(linerate, &["__trial", &plan, "--hold", "600s"]));
    process.wait_for_output("applied 1\n", LIMIT);
    let watchdog = run(inside("cat", &[&format!("{state}/changes/1/watchdog")]), LIMIT).expect_code(0).stdout;
    for id in [watchdog.trim().parse().expect("a number"), process.id()] {
        send_signal(id, "KILL");
    }
    assert!(eventually(LIMIT, || run(inside("mount", &["-o", "remount,bind,ro", &state]), LIMIT).code() == Some(0)));
    assert_eq!(namespace.read(SETTING), WANTED);
    let rolled_back = run(inside(linerate, &["rollback", "--pending"]), LIMIT).expect_code(0);
    assert_eq!(namespace.read(SETTING), before);
    assert!(format!("{rolled_back:?}").contains("not recorded"), "{rolled_back:#?}");
}

#[test]
fn signals_roll_changes_back() {
    for name in ["HUP", "TERM", "INT"] {
        let (namespace, scratch) = (Namespace::new(), Scratch::new());
        let before = namespace.read(SETTING);
        let process = trying(&namespace, &scratch, &[]);
        signal(&process, name);
        process.finish(LIMIT).expect_code(0);
        assert_eq!(namespace.read(SETTING), before, "after SIG{name}");
        assert_eq!(state_of(&namespace, &scratch).1, "interrupted by a signal");
    }
}

/// Life of one change set: kept, listed, dry run, rolled back, and rolled back again.
#[test]
fn kept_and_rolled_back() {
    let (namespace, scratch) = (Namespace::new(), Scratch::new());
    let before = namespace.read(SETTING);
    let ip = |line: &str| {
        let done = namespace.command(Path::new("ip")).args(line.split(' ')).status().expect("ip runs");
        assert!(done.success(), "ip {line}");
    };
    ip("link add name pair0 type veth peer name pair1");
    ip("link set pair0 up");
    let link = json!({ "kind": "link", "interface": "pair0", "attribute": "mtu" });
    let queueing = json!({ "kind": "queueing", "interface": "pair0" });
    let changes = [
        change(&setting(SETTING), WANTED),
        change(&link, "1400"),
        change(&queueing, "qdisc replace dev pair0 root pfifo limit 33"),
    ];
    let (plan, file) = (plan(&scratch, &changes), scratch.path("90-linerate.conf"));
    let linerate = |arguments: &[&str]| run(inside(&namespace, &scratch, arguments), LIMIT);
    linerate(&["__trial", &plan, "--keep-in", &file]).expect_code(0);
    assert_eq!(namespace.read(SETTING), WANTED);
    let kept = std::fs::read_to_string(&file).expect("written");
    assert!(
        kept.starts_with("# Written by linerate ") && kept.contains(&format!("\n{SETTING} = {WANTED}\n")),
        "{kept}"
    );
    let list = linerate(&["rollback", "--list"]).expect_code(0).stdout;
    for part in ["kept", "pair0 mtu (in effect)", "pfifo limit 33", "90-linerate.conf", WANTED] {
        assert!(list.contains(part), "{part:?} is not in\n{list}");
    }
    let rehearsal = linerate(&["rollback", "--dry-run"]).expect_code(0).stdout;
    assert!(rehearsal.contains(&format!("{SETTING}: would be restored to {before}")), "{rehearsal}");
    assert_eq!(namespace.read(SETTING), WANTED);
    let report = linerate(&["rollback", "1", "--json"]).expect_code(0).json();
    assert_eq!(report["is_clean"], true, "{report}");
    let results: Vec<&str> = array(&report, "/sets/0/targets").iter().map(|target| text(target, "/result")).collect();
    assert_eq!(results, ["restored"; 3]);
    assert_eq!(namespace.read(SETTING), before);
    assert!(!Path::new(&file).exists(), "it had nothing else in it");
    let again = linerate(&["rollback", "1"]).expect_code(0).stdout;
    assert!(again.contains("already restored"), "{again}");
    assert_eq!(linerate(&["rollback"]).expect_code(0).stdout, "");
}

/// `/etc/sysctl.d/90-linerate.conf` may lead into a repository of the host's configuration.
#[test]
fn a_linked_file_stays_a_link() {
    let (namespace, scratch) = (Namespace::new(), Scratch::new());
    let plan = plan(&scratch, &[change(&setting(SETTING), WANTED)]);
    let linerate = |arguments: &[&str]| run(inside(&namespace, &scratch, arguments), LIMIT);
    let link = scratch.path("90-linerate.conf");
    for before in [Some("# mine\nvm.swappiness = 10\n"), None] {
        let file = scratch.path("dotfiles.conf");
        if let Some(text) = before {
            scratch.file("dotfiles.conf", text);
        }
        std::os::unix::fs::symlink("dotfiles.conf", &link).expect("room");
        linerate(&["__trial", &plan, "--keep-in", &link]).expect_code(0);
        let kept = std::fs::read_to_string(&file).expect("written");
        assert!(kept.contains(&format!("\n{SETTING} = {WANTED}\n")) && kept.contains(before.unwrap_or("")), "{kept}");
        linerate(&["rollback"]).expect_code(0);
        assert_eq!(std::fs::read_to_string(&file).ok().as_deref(), before);
        assert_eq!(std::fs::read_link(&link).expect("a link").to_str(), Some("dotfiles.conf"));
        std::fs::remove_file(&link).expect("there");
        let _ = std::fs::remove_file(&file);
    }
}

#[test]
fn foreign_changes_are_reported_and_left_alone() {
    let (namespace, scratch) = (Namespace::new(), Scratch::new());
    let plan = plan(&scratch, &[change(&setting(SETTING), WANTED)]);
    let linerate = |arguments: &[&str]| run(inside(&namespace, &scratch, arguments), LIMIT);
    linerate(&["__trial", &plan, "--keep-in", &scratch.path("file")]).expect_code(0);
    let script = "echo 4096 131072 5000000 > /proc/sys/net/ipv4/tcp_rmem";
    let set = namespace.command(Path::new("sh")).args(["-c", script]).status().expect("sh runs");
    assert!(set.success());
    let report = linerate(&["rollback"]).expect_code(1).stdout;
    assert!(report.contains("another program has changed it since, to \"4096 131072 5000000\""), "{report}");
    assert_eq!(namespace.read(SETTING), "4096 131072 5000000");
}

/// Script that runs its arguments where settings cannot be written.
const READ_ONLY_SETTINGS: &str =
    "mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys && exec \"$@\"";

/// A host that refuses a rollback is named at each start, until it allows it.
#[test]
fn a_failed_rollback_is_reported_until_it_succeeds() {
    let (namespace, scratch) = (Namespace::new(), Scratch::new());
    let before = namespace.read(SETTING);
    let plan = plan(&scratch, &[change(&setting(SETTING), WANTED)]);
    let linerate = |arguments: &[&str]| run(inside(&namespace, &scratch, arguments), LIMIT);
    let refused = |arguments: &[&str]| {
        let mut command = namespace.command("unshare");
        command.args(["--mount", "sh", "-c", READ_ONLY_SETTINGS, "sh", env!("CARGO_BIN_EXE_linerate")]);
        command.args(arguments).env("LINERATE_STATE", scratch.path("state"));
        run(command, LIMIT)
    };
    linerate(&["__trial", &plan, "--keep-in", &scratch.path("file")]).expect_code(0);
    for arguments in [&["rollback", "1"][..], &["rollback", "--pending"], &["rollback"]] {
        let done = refused(arguments).expect_code(1);
        for part in [SETTING, "not restored", "Read-only file system"] {
            assert!(done.stdout.contains(part), "{part:?} is not in\n{done:#?}");
        }
        assert_eq!(namespace.read(SETTING), WANTED);
    }
    assert_eq!(state_of(&namespace, &scratch).0, "partly_rolled_back");
    let rehearsal = linerate(&["rollback", "--pending", "--dry-run"]).expect_code(0).stdout;
    assert!(rehearsal.contains(&format!("{SETTING}: would be restored to {before}")), "{rehearsal}");
    linerate(&["rollback", "--pending"]).expect_code(0);
    assert_eq!((namespace.read(SETTING), state_of(&namespace, &scratch).0), (before, "rolled_back".to_owned()));
}

/// Changes that are kept; `alter` makes their journal unusable. No command that reads the changes of this host says that all
/// is well, each names the way out, and none changes anything.
fn with_an_unusable_journal(way_out: &str, alter: impl FnOnce(&str)) {
    let (namespace, scratch) = (Namespace::new(), Scratch::new());
    let before = namespace.read(SETTING);
    let plan = plan(&scratch, &[change(&setting(SETTING), WANTED)]);
    let linerate = |arguments: &[&str]| run(inside(&namespace, &scratch, arguments), LIMIT);
    linerate(&["__trial", &plan, "--keep-in", &scratch.path("file")]).expect_code(0);
    let journal = scratch.path("state/changes/1/journal");
    let whole = std::fs::read(&journal).expect("there");
    // The watchdog rolls back what it does not know to be kept.
    let watchdog = std::fs::read_to_string(scratch.path("state/changes/1/watchdog")).expect("its number");
    let process = format!("/proc/{}", watchdog.trim());
    assert!(eventually(LIMIT, || !Path::new(&process).exists()), "{process}");
    alter(&journal);
    for arguments in [
        &["rollback"][..],
        &["rollback", "1"],
        &["rollback", "--pending"],
        &["rollback", "--pending", "--json"],
        &["__trial", &plan],
        &["shape", "lo", "off"],
        &["shape", "lo", "confirm"],
        &["shape", "status"],
        &["shape", "lo", "--up", "10M"],
        &["tune", "undo"],
        &["tune", "export", "--format", "sysctl.d"],
    ] {
        let done = linerate(arguments).expect_code(2);
        assert!(done.stderr.contains(way_out), "{arguments:?}: {done:#?}");
        assert!(!done.stderr.contains("no changes of linerate"), "{arguments:?}: {done:#?}");
    }
    let listed = linerate(&["rollback", "--list", "--json"]).expect_code(0).json();
    assert!(text(&listed, "/unreadable/0/reason").contains(way_out), "{listed}");
    assert_eq!(namespace.read(SETTING), WANTED);
    std::fs::remove_file(&journal).expect("there");
    std::fs::write(&journal, whole).expect("writable");
    linerate(&["rollback"]).expect_code(0);
    assert_eq!(namespace.read(SETTING), before);
}

#[test]
fn a_damaged_journal_is_an_error_of_each_command() {
    with_an_unusable_journal("by hand", |journal| {
        let mut bytes = std::fs::read(journal).expect("there");
        bytes[40] ^= 4;
        std::fs::write(journal, bytes).expect("writable");
    });
}

#[test]
#[ignore = "needs root: a journal that belongs to another user"]
fn a_journal_of_another_user_is_an_error_of_each_command() {
    with_an_unusable_journal("change its owner", |journal| {
        std::os::unix::fs::chown(journal, Some(4242), None).expect("root may");
    });
}

#[test]
fn settings_on_a_read_only_mount_are_explained() {
    let scratch = Scratch::new();
    let plan = plan(&scratch, &[change(&setting("net.ipv4.tcp_sack"), "0")]);
    let mut command = Command::new("unshare");
    command.args([
        &unshare("nm"),
        "sh",
        "-c",
        READ_ONLY_SETTINGS,
        "sh",
        env!("CARGO_BIN_EXE_linerate"),
        "__trial",
        &plan,
    ]);
    command.env("LINERATE_STATE", scratch.path("state"));
    let refused: FinishedChild = run(command, LIMIT).expect_code(2);
    for part in ["net.ipv4.tcp_sack", "Read-only file system", "docker run --sysctl"] {
        assert!(refused.stderr.contains(part), "{part:?} is not in\n{}", refused.stderr);
    }
}

/// Runs in the lab's guest, whose kernel has features that this host may lack.
#[test]
fn queueing_disciplines_are_restored_in_a_guest() {
    let scratch = Scratch::new();
    let queueing = json!({ "kind": "queueing", "interface": "eth0" });
    let plan = plan(
        &scratch,
        &[
            change(&setting("net.core.default_qdisc"), "fq"),
            change(&setting(SETTING), WANTED),
            change(&queueing, "qdisc replace dev eth0 root fq maxrate 50mbit"),
        ],
    );
    // A fair queue for each hardware queue, as `tune` proposes it: `mq` stays.
    let leaf = |queue| format!("qdisc replace dev multi0 parent 1:{queue} fq maxrate 40mbit");
    let tree = ["qdisc replace dev multi0 root handle 1: mq".to_owned()].into_iter().chain((1..=4).map(leaf));
    let tree = tree.collect::<Vec<_>>().join("\n");
    let many_queues = change(&json!({ "kind": "queueing", "interface": "multi0" }), &tree);
    let document = json!({ "schema": 1, "made_at_unix_ns": 0, "changes": [many_queues] });
    let many_queues = scratch.file("queues.json", document.to_string());
    let script = format!(
        "set -e; export LINERATE_STATE=/tmp/state; L={linerate}
         state() {{ tc qdisc show dev eth0 | sed 's/qdisc \\([a-z_]*\\) 8[0-9a-f]*:/qdisc \\1/'; cat /proc/sys/net/ipv4/tcp_rmem \
         /proc/sys/net/core/default_qdisc; }}
         for tree in '' 'fq limit 5000 maxrate 300mbit' 'fq_codel limit 100 target 9ms' 'cake bandwidth 90mbit rtt 30ms' \
         'netem delay 3ms limit 77' 'tbf rate 50mbit burst 20k latency 40ms'; do
           tc qdisc del dev eth0 root 2>/dev/null || true
           test -z \"$tree\" || tc qdisc replace dev eth0 root $tree
           state > /tmp/before
           $L __trial {plan} --keep-in /tmp/file > /tmp/said
           tc qdisc show dev eth0 | grep -q 'maxrate 50Mbit'
           $L rollback > /tmp/report || {{ cat /tmp/report; exit 1; }}
           state > /tmp/after; diff /tmp/before /tmp/after
         done
         ip link add multi0 numtxqueues 4 type ifb; ip link set multi0 up
         leaves() {{ tc qdisc show dev multi0 | sed 's/ [0-9a-f]*:/ /g' | sort; }}
         for root in '' mq; do
           test -z \"$root\" || tc qdisc replace dev multi0 root handle 9: $root
           leaves > /tmp/queues-before
           $L __trial {many_queues} --keep-in /tmp/file > /tmp/said
           test $(tc qdisc show dev multi0 | grep -c '^qdisc fq ') = 4
           tc qdisc show dev multi0 | grep -q '^qdisc mq 1: root'
           $L rollback > /tmp/report || {{ cat /tmp/report; exit 1; }}
           leaves > /tmp/queues-after; diff /tmp/queues-before /tmp/queues-after
         done
         $L __trial {plan} --hold 100s > /tmp/trying & process=$!
         until grep -q applied /tmp/trying; do sleep 0.1; done
         kill -9 $process
         for i in $(seq 100); do state > /tmp/after; cmp -s /tmp/before /tmp/after && break; sleep 0.1; done
         diff /tmp/before /tmp/after; echo as before",
        linerate = env!("CARGO_BIN_EXE_linerate"),
    );
    let said = lab("300m-20ms", &["sh", "-c", &script]);
    assert!(said.stdout.ends_with("as before\n"), "{}{}", said.stdout, said.stderr);
}

#[test]
fn nothing_to_roll_back() {
    let scratch = Scratch::new();
    let command = |arguments: &[&str]| {
        let mut command = linerate();
        command.arg("rollback").args(arguments).env("LINERATE_STATE", scratch.path("state"));
        run(command, LIMIT)
    };
    let empty = command(&["--list"]).expect_code(0);
    assert_eq!((empty.stdout.as_str(), empty.stderr.as_str()), ("", "linerate has made no changes on this host\n"));
    let document = command(&["--list", "--json"]).expect_code(0).json();
    let schema = "https://linerate.invalid/schema/1/change-sets.schema.json";
    let expected = json!({ "$schema": schema, "kind": "change-sets", "schema": 1, "sets": [], "unreadable": [] });
    assert_eq!(document, expected);
    assert!(command(&["7"]).expect_code(2).stderr.contains("no record of changes 7"));
    assert!(command(&["x"]).expect_code(2).stderr.contains("expected its number"));
    command(&[]).expect_code(0);
    command(&["--pending"]).expect_code(0);
}
