//! Tests of the far host of `linerate tune`: its linerate, driven over standard input and output, in network namespaces
//! of these tests.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::document::{array, text};
use crate::support::namespace::Namespace;
use crate::support::process::{eventually, run, send_signal};
use crate::support::{Scratch, linerate};

const LIMIT: Duration = Duration::from_secs(300);
const SETTING: &str = "net.ipv4.tcp_rmem";
const WANTED: &str = "4096 131072 67108864";

/// Agent of the far host. `nsenter` becomes it, so that its process ID is the child's.
struct Agent {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Agent {
    fn start(namespace: &Namespace, scratch: &Scratch) -> Self {
        let mut command = namespace.command(env!("CARGO_BIN_EXE_linerate"));
        command.args(["tune", "--agent"]).env("LINERATE_STATE", scratch.path("state"));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let (input, output) = (child.stdin.take(), child.stdout.take().expect("a pipe"));
        let mut agent = Self { child, input, output: BufReader::new(output) };
        let hello = agent.answer();
        assert_eq!((text(&hello, "/hello"), &hello["schema"]), ("linerate tune --agent", &json!(1)));
        agent
    }

    fn answer(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("it answers");
        serde_json::from_str(&line).unwrap_or_else(|cause| panic!("no JSON ({cause}): {line:?}"))
    }

    fn ask(&mut self, mut request: Value) -> Value {
        request["schema"] = json!(1);
        let input = self.input.as_mut().expect("not closed yet");
        input.write_all(format!("{request}\n").as_bytes()).expect("it reads");
        self.answer()
    }

    fn begin(&mut self, target: &Value, to: &str) -> Value {
        self.ask(json!({ "request": "begin", "plan": plan(target, to), "purpose": "a test", "limit_ms": 60_000 }))
    }

    fn group(&mut self, request: &str) -> Value {
        self.ask(json!({ "request": request, "group": "buffers" }))
    }

    /// Trial that has begun and is applied, with the new value.
    fn trying(namespace: &Namespace, scratch: &Scratch) -> Self {
        let mut agent = Self::start(namespace, scratch);
        assert_eq!(text(&agent.begin(&setting(), WANTED), "/answer"), "begun");
        assert_eq!(text(&agent.group("apply"), "/answer"), "applied");
        assert_eq!(namespace.read(SETTING), WANTED);
        agent
    }

    /// Closes the connection, and waits for its end.
    fn close(mut self) -> Option<i32> {
        self.input = None;
        self.child.wait().expect("our child").code()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.child.wait();
    }
}

fn setting() -> Value {
    json!({ "kind": "setting", "key": SETTING })
}

fn plan(target: &Value, to: &str) -> Value {
    json!({ "schema": 1, "made_at_unix_ns": 0, "changes": [{
        "target": target, "from": null, "to": to, "group": "buffers", "takes_effect": "new_connections",
        "reason": { "text": "requested by a test" },
    }]})
}

#[test]
fn tried_rolled_back_and_kept() {
    let (namespace, scratch) = (Namespace::new(), Scratch::new());
    let before = namespace.read(SETTING);
    let mut agent = Agent::trying(&namespace, &scratch);
    assert_eq!(agent.group("take_back")["left"], json!([]));
    assert_eq!(namespace.read(SETTING), before);
    let other = "4096 131072 50331648";
    assert_eq!(agent.ask(json!({ "request": "extend", "plan": plan(&setting(), other) }))["answer"], "done");
    assert_eq!(agent.ask(json!({ "request": "renew", "limit_ms": 60_000 }))["answer"], "done");
    let applied = agent.group("apply");
    assert_eq!((array(&applied, "/outcomes").len(), text(&applied, "/outcomes/0/now")), (1, other));
    // A file would be for the host's own settings, not for this namespace's.
    let kept = agent.ask(json!({ "request": "keep", "in_file": true, "evidence": "a test", "warnings": [] }));
    assert_eq!((&kept["kept"]["file"], text(&kept, "/kept/until_reboot/0/key")), (&json!(null), SETTING), "{kept}");
    // Process 1 may belong to another user, in a container for example: then its namespace is unknown.
    let is_known = std::fs::read_link("/proc/1/ns/net").is_ok();
    let reason = if is_known { "settings of a network namespace" } else { "/proc/1/ns/net is not readable" };
    assert!(text(&kept, "/kept/warnings/0").contains(reason), "{kept}");
    assert_eq!((agent.close(), namespace.read(SETTING).as_str()), (Some(0), other));
    let mut agent = Agent::start(&namespace, &scratch);
    assert_eq!(agent.begin(&setting(), WANTED)["answer"], "begun");
    assert_eq!(agent.group("apply")["answer"], "applied");
    assert_eq!(agent.ask(json!({ "request": "roll_back", "reason": "a test" }))["left"], json!([]));
    assert_eq!((namespace.read(SETTING).as_str(), agent.close()), (other, Some(0)));
}

#[test]
fn the_end_of_the_connection_or_a_signal_rolls_everything_back() {
    for end in ["", "TERM", "HUP"] {
        let (namespace, scratch) = (Namespace::new(), Scratch::new());
        let before = namespace.read(SETTING);
        let mut agent = Agent::trying(&namespace, &scratch);
        if end.is_empty() {
            assert_eq!(agent.close(), Some(0));
        } else {
            send_signal(agent.child.id(), end);
            assert_eq!(agent.child.wait().expect("our child").code(), Some(0));
        }
        assert_eq!(namespace.read(SETTING), before, "after {end:?}");
    }
}

#[test]
fn a_killed_agent_leaves_nothing_behind() {
    let (namespace, scratch) = (Namespace::new(), Scratch::new());
    let before = namespace.read(SETTING);
    let mut agent = Agent::trying(&namespace, &scratch);
    agent.child.kill().expect("it runs");
    let is_back = || namespace.read(SETTING) == before;
    assert!(eventually(LIMIT, is_back), "{SETTING} is {}", namespace.read(SETTING));
}

/// Reported settings of the interface and the route can be used in a plan.
#[test]
#[ignore = "needs root: forgets the metrics of a peer"]
fn reported_settings_make_a_valid_plan() {
    let (namespace, scratch) = (Namespace::new(), Scratch::new());
    for line in [
        "link add name pair0 type veth peer name pair1",
        "addr add 10.77.0.1/24 dev pair0",
        "link set pair0 up",
        "link set pair1 up",
        "route add default via 10.77.0.2 initcwnd 20",
    ] {
        namespace.ip(line);
    }
    let mut agent = Agent::start(&namespace, &scratch);
    let told = agent.ask(json!({ "request": "host", "connection": { "own": "10.77.0.1", "peer": "192.0.2.7" } }));
    let host = &told["host"];
    assert_eq!(text(host, &format!("/settings/{SETTING}")), namespace.read(SETTING), "{told}");
    assert_eq!((text(host, "/interface/name"), text(host, "/route/destination")), ("pair0", "default"));
    let attributes = text(host, "/route/attributes");
    let mut plan = plan(&json!({ "kind": "route", "destination": "default" }), &format!("{attributes} initrwnd 20"));
    plan["changes"][0]["from"] = json!(attributes);
    let queueing = json!({ "kind": "queueing", "interface": "pair0" });
    let mut other = self::plan(&queueing, "qdisc replace dev pair0 root pfifo limit 33")["changes"][0].clone();
    other["from"] = host["interface"]["queueing"].clone();
    assert!(other["from"].is_string(), "{told}");
    plan["changes"].as_array_mut().expect("a list").push(other);
    let request = json!({ "request": "begin", "plan": plan, "purpose": "a test", "limit_ms": 60_000 });
    let begun = agent.ask(request);
    assert_eq!(begun["answer"], "begun", "{begun}");
    let applied = agent.group("apply");
    assert_eq!(array(&applied, "/outcomes").len(), 2, "{applied}");
    assert!(text(&applied, "/outcomes/0/now").contains("initrwnd 20"), "{applied}");
    // No metric is cached, which is no error.
    let forgotten = agent.ask(json!({ "request": "forget_metrics", "peer": "192.0.2.7" }));
    assert_eq!(forgotten["answer"], "done", "{forgotten}");
    drop(agent);
    let routes = namespace.command("ip").args(["route", "show", "default"]).output().expect("ip runs");
    let routes = String::from_utf8_lossy(&routes.stdout).into_owned();
    assert!(routes.contains("initcwnd 20") && !routes.contains("initrwnd"), "{routes}");
}

/// Each interface has a route to every link-local address.
#[test]
fn the_interface_to_a_link_local_peer_has_the_own_address() {
    let (namespace, scratch) = (Namespace::new(), Scratch::new());
    for (one, other, address) in [("pair0", "pair1", "fe80::a"), ("pair2", "pair3", "fe80::b")] {
        namespace.ip(&format!("link add name {one} type veth peer name {other}"));
        namespace.ip(&format!("addr add {address}/64 dev {one} nodad"));
        for name in [one, other] {
            namespace.ip(&format!("link set {name} up"));
        }
    }
    let mut agent = Agent::start(&namespace, &scratch);
    let mut interface = |own: &str| {
        let told = agent.ask(json!({ "request": "host", "connection": { "own": own, "peer": "fe80::1" } }));
        told["host"]["interface"]["name"].as_str().map(str::to_owned)
    };
    assert_eq!(interface("fe80::a").as_deref(), Some("pair0"));
    assert_eq!(interface("fe80::b").as_deref(), Some("pair2"));
    assert_eq!(interface("fe80::c"), None, "no interface has this address");
}

#[test]
fn non_network_settings_are_refused() {
    let (namespace, scratch) = (Namespace::new(), Scratch::new());
    let mut agent = Agent::start(&namespace, &scratch);
    let refused = agent.begin(&json!({ "kind": "setting", "key": "kernel.core_pattern" }), "|/bin/sh");
    assert_eq!(text(&refused, "/answer"), "failed");
    assert!(text(&refused, "/reason").contains("not changed remotely"), "{refused}");
    let unknown = agent.ask(json!({ "request": "reboot" }));
    assert!(text(&unknown, "/reason").contains("reboot"), "{unknown}");
}

/// Directory with a program named `ssh`.
fn fake_ssh(scratch: &Scratch, script: &str) -> String {
    let directory = scratch.path("bin");
    std::fs::create_dir_all(&directory).expect("room");
    let path = Path::new(&directory).join("ssh");
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("room");
    let made = Command::new("chmod").arg("755").arg(&path).status().expect("chmod runs");
    assert!(made.success());
    format!("{directory}:{}", std::env::var("PATH").expect("there is one"))
}

/// The operator's own ssh gets these arguments, and the program that it starts is driven until the command ends.
#[test]
fn over_ssh() {
    let scratch = Scratch::new();
    let script = format!(
        "echo \"$*\" > {asked}; while test \"$1\" != --; do shift; done; shift\n\
         echo 'Welcome to this machine'; \"$@\"; echo $? > {ended}",
        asked = scratch.path("asked"),
        ended = scratch.path("ended")
    );
    let path = fake_ssh(&scratch, &script);
    let mut command = linerate();
    let program = format!("env {}", env!("CARGO_BIN_EXE_linerate"));
    // No server runs there, so nothing is measured or changed.
    command.args([
        "tune",
        "127.0.0.1",
        "-p",
        "9",
        "--dry-run",
        "--far",
        "ssh:me@far.example:2222",
        "--far-program",
        &program,
    ]);
    command.env("PATH", path).env("LINERATE_STATE", scratch.path("state"));
    let done = run(command, LIMIT).expect_code(2);
    assert!(done.stderr.contains("Connection refused") && !done.stderr.contains("ssh:me@"), "{}", done.stderr);
    let asked = std::fs::read_to_string(scratch.path("asked")).expect("ssh was started");
    assert_eq!(
        asked.trim(),
        format!(
            "-T -o BatchMode=yes -o ServerAliveInterval=5 -o ServerAliveCountMax=4 -o ClearAllForwardings=yes -p 2222 me@far.example -- {program} tune --agent"
        )
    );
    let ended = || std::fs::read_to_string(scratch.path("ended")).unwrap_or_default();
    assert!(eventually(LIMIT, || ended().trim() == "0"), "{:?}", ended());
}

#[test]
fn an_ssh_that_fails_is_quoted() {
    let scratch = Scratch::new();
    for (script, parts) in [
        (
            "echo 'me@far: Permission denied (publickey,password).' >&2; exit 255",
            &[
                "ssh:me@far: the connection is closed",
                "Permission denied",
                "exit status: 255",
                "use a key or an ssh agent",
            ][..],
        ),
        ("echo 'sh: 1: linerate: not found' >&2; exit 127", &["exit status: 127", "--far-program"]),
        ("echo '{\"schema\":7,\"hello\":\"linerate tune --agent\"}'", &["schema 7", "same version at both ends"]),
    ] {
        let path = fake_ssh(&scratch, script);
        let mut command = linerate();
        command.args(["tune", "127.0.0.1", "-p", "9", "--dry-run", "--far", "ssh:me@far"]);
        command.env("PATH", path).env("LINERATE_STATE", scratch.path("state"));
        let done = run(command, LIMIT).expect_code(2);
        for part in parts {
            assert!(done.stderr.contains(part), "{part:?} is not in\n{}", done.stderr);
        }
    }
}
