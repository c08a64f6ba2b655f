//! `linerate shape` on a host: what it sets up, what it leaves alone, and that all of it comes back.

mod support;

use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use support::Scratch;
use support::document::{array, text};
use support::namespace::Namespace;
use support::process::{Finished, Process, eventually, run};

const LIMIT: Duration = Duration::from_secs(60);

/// A host in a namespace, with an interface `line0` and a state directory.
struct Host {
    namespace: Namespace,
    state: Scratch,
}

impl Host {
    fn new() -> Self {
        let host = Self { namespace: Namespace::new(), state: Scratch::new() };
        host.program("ip", "link add line0 type veth peer name line1");
        host.program("ip", "link set line0 up");
        host.program("ip", "link set line1 up");
        host
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.namespace.command(env!("CARGO_BIN_EXE_linerate"));
        command.arg("shape").args(arguments).env("LINERATE_STATE", self.state.path("state"));
        command
    }

    fn shape(&self, arguments: &[&str]) -> Finished {
        run(self.command(arguments), LIMIT)
    }

    fn program(&self, program: &str, line: &str) -> String {
        let output = self.namespace.command(program).args(line.split(' ')).output().expect("it runs");
        assert!(output.status.success(), "{program} {line}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Everything about the interface, as `tc`, `ip` and the kernel's features tell it.
    fn tree(&self) -> String {
        let links = self.program("ip", "-o link show");
        // The addresses of flags and numbers of interfaces stay; a new device would be a line more.
        let mut tree: Vec<String> = links.lines().map(str::to_owned).collect();
        for line in ["qdisc show", "class show dev line0", "filter show dev line0", "filter show dev line0 ingress"] {
            tree.push(self.program("tc", line));
        }
        tree.join("\n")
    }
}

/// Back ends that every kernel of the last years has.
const BACK_ENDS: [&str; 2] = ["htb+bfifo", "tbf"];

#[test]
fn off_brings_back_what_was_there() {
    let host = Host::new();
    let before = host.tree();
    for back_end in BACK_ENDS {
        let set_up = ["line0", "--up", "20M", "--down", "80M", "--back-end", back_end];
        let shown = host.shape(&set_up).expect_code(0).stdout;
        assert!(shown.contains(back_end) && shown.contains("Up, on line0"), "{shown}");
        let tree = host.tree();
        assert!(tree.contains("ifb4line0") && tree.contains("ingress"), "{tree}");
        host.shape(&["line0", "off"]).expect_code(0);
        assert_eq!(host.tree(), before, "{back_end}");
        // Again, and nothing to do.
        host.shape(&set_up).expect_code(0);
        host.shape(&["line0", "off"]).expect_code(0);
        host.shape(&["line0", "off"]).expect_code(0);
        assert_eq!(host.tree(), before, "{back_end}, the second time");
    }
}

#[test]
fn the_same_again_changes_nothing_and_other_rates_keep_the_queues() {
    let host = Host::new();
    host.shape(&["line0", "--up", "20M", "--down", "80M"]).expect_code(0);
    let first = host.tree();
    let again = host.shape(&["line0", "--up", "20M", "--down", "80M", "--json"]).expect_code(0).json();
    assert_eq!((text(&again, "/outcome"), host.tree()), ("unchanged", first.clone()));
    let other = host.shape(&["line0", "--up", "10M", "--down", "80M", "--json"]).expect_code(0).json();
    assert_eq!(text(&other, "/outcome"), "changed");
    let changed = host.tree();
    assert!(changed.contains("10Mbit") && !changed.contains("20Mbit"), "{changed}");
    let status = host.shape(&["line0", "status", "--json"]).json();
    assert_eq!(status["shapers"][0]["directions"][0]["set_bits_per_second"], 10e6);
    assert!(array(&status, "/shapers/0/differences").is_empty(), "{status}");
    host.shape(&["line0", "off"]).expect_code(0);
}

#[test]
fn what_others_have_set_is_asked_about_and_comes_back() {
    let host = Host::new();
    host.program("tc", "qdisc add dev line0 root handle 5: htb default 1");
    host.program("tc", "class add dev line0 parent 5: classid 5:1 htb rate 5mbit burst 1999");
    host.program("tc", "filter add dev line0 parent 5: protocol ip prio 3 u32 match ip dport 22 0xffff flowid 5:1");
    let before = host.tree();
    let refused = host.shape(&["line0", "--up", "20M"]).expect_code(2);
    assert!(refused.stderr.contains("--replace") && refused.stderr.contains("htb with 1 class"), "{}", refused.stderr);
    assert_eq!(host.tree(), before);
    host.shape(&["line0", "--up", "20M", "--replace"]).expect_code(0);
    assert_ne!(host.tree(), before);
    host.shape(&["line0", "off"]).expect_code(0);
    assert_eq!(host.tree(), before);
}

#[test]
fn a_dry_run_and_a_script_touch_nothing() {
    let host = Host::new();
    let before = host.tree();
    let shown = host.shape(&["line0", "--up", "220k", "--down", "850k", "--dry-run"]).expect_code(0).stdout;
    assert!(shown.contains("tc qdisc add dev line0 root") && shown.contains("Offered: smaller packets"), "{shown}");
    let plan = host.shape(&["line0", "--up", "220k", "--dry-run", "--json"]).expect_code(0).json();
    let taken = text(&plan, "/back_end");
    assert_eq!(text(&plan, "/outcome"), "planned");
    assert!(["htb+fq_codel", "htb+fq_pie", "htb+sfq", "htb+bfifo"].contains(&taken), "{taken} on so slow a line");
    assert!(plan["changes"].is_null() && !array(&plan, "/steps").is_empty());
    let script =
        host.shape(&["line0", "--up", "20M", "--down", "80M", "--back-end", "htb+bfifo", "--script"]).expect_code(0);
    assert!(script.stdout.starts_with("#!/bin/sh\n"), "{}", script.stdout);
    assert_eq!(host.tree(), before);
    let file = host.state.file("shaper.sh", &script.stdout);
    host.program("sh", &format!("{file} start"));
    assert!(host.tree().contains("ifb4line0"));
    host.program("sh", &format!("{file} stop"));
    // The script knows no more than to delete; what the kernel makes by itself is the same here.
    assert_eq!(host.tree(), before);
    let old = ["line0", "--up", "20M", "--back-end", "lartc-cbq"];
    let refused = host.shape(&old).expect_code(2);
    assert!(refused.stderr.contains("lartc-htb") || refused.stderr.contains("6.3"), "{}", refused.stderr);
    assert!(host.shape(&[&old[..], &["--script"]].concat()).expect_code(0).stdout.contains("cbq"));
}

/// Whoever cannot reach the host any more cannot confirm.
#[test]
fn what_nobody_confirms_is_taken_back() {
    let host = Host::new();
    let before = host.tree();
    let back = host.shape(&["line0", "--up", "20M", "--confirm-within", "1s"]).expect_code(5);
    assert!(back.stderr.contains("not confirmed"), "{}", back.stderr);
    assert_eq!(host.tree(), before);
    let waiting = Process::start(host.command(&["line0", "--up", "20M", "--confirm-within", "50s"]));
    assert!(eventually(LIMIT, || host.tree().contains("htb") || host.tree().contains("cake")));
    assert!(eventually(LIMIT, || host.shape(&["line0", "confirm"]).code() == Some(0)));
    waiting.finish(LIMIT).expect_code(0);
    assert_ne!(host.tree(), before);
    host.shape(&["line0", "off"]).expect_code(0);
    assert_eq!(host.tree(), before);
}

/// Ctrl-C in the middle takes everything back.
#[test]
fn an_interrupted_process_takes_everything_back() {
    let host = Host::new();
    let before = host.tree();
    let waiting = Process::start(host.command(&["line0", "--up", "20M", "--down", "80M", "--confirm-within", "50s"]));
    assert!(eventually(LIMIT, || waiting.stderr().contains("confirm")));
    assert_ne!(host.tree(), before);
    waiting.signal("INT");
    waiting.finish(LIMIT).expect_code(5);
    assert_eq!(host.tree(), before);
}

#[test]
fn smaller_packets_are_a_change_of_the_route_that_comes_back() {
    let host = Host::new();
    host.program("ip", "address add 192.0.2.1/24 dev line0");
    host.program("ip", "route add default via 192.0.2.2 dev line0");
    let route = || host.program("ip", "route show default");
    let before = (host.tree(), route());
    let small = ["line0", "--up", "220k", "--route-mtu", "576"];
    host.shape(&small).expect_code(0);
    assert!(route().contains("mtu 576 advmss 536"), "{}", route());
    let again = host.shape(&[&small[..], &["--json"]].concat()).expect_code(0).json();
    assert_eq!(text(&again, "/outcome"), "unchanged");
    // Without it, the route is as it was, and the shaper stands.
    let other = host.shape(&["line0", "--up", "220k", "--json"]).expect_code(0).json();
    assert_eq!((text(&other, "/outcome"), route()), ("set_up", before.1.clone()));
    host.shape(&["line0", "off"]).expect_code(0);
    assert_eq!((host.tree(), route()), before);
}

/// At whatever moment the process is killed, its watchdog or `linerate rollback` brings back what was there.
#[test]
fn a_killed_process_leaves_nothing() {
    let host = Host::new();
    host.program("tc", "qdisc add dev line0 root handle 7: tbf rate 9mbit burst 3000 limit 30000");
    let before = host.tree();
    let state = host.state.path("state");
    for round in 0..8_u64 {
        let process = Process::start(host.command(&["line0", "--up", "20M", "--down", "80M", "--replace", "-q"]));
        // In steps through its time, the larger part of which are programs that are being run.
        std::thread::sleep(Duration::from_millis(60 * round));
        process.signal("KILL");
        drop(process);
        let back = || {
            let mut command = host.namespace.command(env!("CARGO_BIN_EXE_linerate"));
            command.args(["rollback", "--pending"]).env("LINERATE_STATE", &state);
            run(command, LIMIT).code() == Some(0) && host.tree() == before
        };
        if !eventually(Duration::from_secs(15), back) {
            // It had come to its end before it was killed.
            host.shape(&["line0", "off"]).expect_code(0);
        }
        assert_eq!(host.tree(), before, "round {round}");
    }
}

#[test]
fn errors_name_the_way_out() {
    let host = Host::new();
    let said = |arguments: &[&str], words: &[&str]| {
        let finished = host.shape(arguments).expect_code(2);
        for word in words {
            assert!(finished.stderr.contains(word), "{arguments:?}: {}", finished.stderr);
        }
    };
    said(&["line0"], &["--up", "--find-rate", "--autorate"]);
    said(&["nowhere0", "--up", "1M"], &["nowhere0", "ip link"]);
    said(&["off", "line0"], &["linerate shape line0 off"]);
    said(&["line0", "stop"], &["off", "status", "persist"]);
    said(&["line0", "--up", "1M", "--back-end", "wred"], &["htb+fq_codel"]);
    said(&["line0", "--up", "1M", "--verify", "127.0.0.1", "--port", "1"], &["127.0.0.1"]);
    let nothing: Value = host.shape(&["status", "--json"]).expect_code(0).json();
    assert!(array(&nothing, "/shapers").is_empty());
}
