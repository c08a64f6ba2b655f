//! Server behind NAT that dials out to a waiting client.

use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::support::Scratch;
use crate::support::document::{array, number, text};
use crate::support::namespace::Namespace;
use crate::support::process::{FinishedChild, Process, eventually, run};

const LIMIT: Duration = Duration::from_secs(120);

fn program(namespace: &Namespace, program: &str, line: &str) -> bool {
    namespace.command(program).args(line.split(' ')).output().is_ok_and(|output| output.status.success())
}

#[track_caller]
fn set_up(namespace: &Namespace, line: &str) {
    assert!(program(namespace, "ip", line), "ip {line}");
}

/// A client, and a server behind a router that translates addresses and lets nothing in by itself.
struct NatPath {
    client: Namespace,
    _router: Namespace,
    server: Namespace,
    scratch: Scratch,
}

impl NatPath {
    fn new() -> Self {
        let router = Namespace::new();
        let (client, server) = (router.beside(), router.beside());
        set_up(&router, &format!("link add outside type veth peer name wire netns {}", client.id()));
        set_up(&router, &format!("link add inside type veth peer name wire netns {}", server.id()));
        for (namespace, device, address) in [
            (&router, "outside", "10.20.0.1/24"),
            (&router, "inside", "10.30.0.1/24"),
            (&client, "wire", "10.20.0.2/24"),
            (&server, "wire", "10.30.0.2/24"),
        ] {
            set_up(namespace, &format!("address add {address} dev {device}"));
            set_up(namespace, &format!("link set dev {device} up"));
        }
        set_up(&server, "route add default via 10.30.0.1");
        assert!(program(&router, "sysctl", "-qw net.ipv4.ip_forward=1"));
        let scratch = Scratch::new();
        let rules = scratch.file(
            "nat.nft",
            "table ip nat {\n chain out { type nat hook postrouting priority 100; oifname outside masquerade; }\n\
             chain pass { type filter hook forward priority 0; iifname outside ct state new drop; }\n}\n",
        );
        assert!(program(&router, "nft", &format!("-f {rules}")), "this kernel translates addresses by nftables");
        Self { client, _router: router, server, scratch }
    }

    fn linerate(&self, namespace: &Namespace, line: &str) -> Command {
        let mut command = namespace.command(env!("CARGO_BIN_EXE_linerate"));
        command.args(line.split(' ')).env("LINERATE_HISTORY", "off").env("LINERATE_STATE", self.scratch.path("state"));
        command
    }

    fn test(&self, options: &str) -> FinishedChild {
        run(self.linerate(&self.client, &format!("test --listen=5301 --time 1s --json {options}")), LIMIT)
    }
}

#[test]
fn a_server_behind_nat_serves_a_client_that_waits() {
    let path = NatPath::new();
    let server = Process::start(path.linerate(&path.server, "serve --dial 10.20.0.2:5301"));
    // No client waits yet: the server notes it once, and goes on.
    assert!(eventually(LIMIT, || server.stderr().contains("the next attempts follow every 2 s")), "{server:?}");
    // The second test shows that the server dials again after the first.
    for streams in [3, 2] {
        let document = path.test(&format!("--parallel {streams}")).expect_code(0).json();
        let runs = array(&document, "/runs");
        assert_eq!(runs.len(), 4, "up and down, with one stream and several");
        for one in runs {
            assert!(number(one, "/bits_per_second") > 1e6, "{one}");
        }
        assert_eq!(text(&document, "/host"), "10.20.0.1", "the router's address");
    }
    assert_eq!(
        server.stderr().matches("the next attempts follow").count(),
        server.stderr().matches("connected to").count(),
        "{server:?}"
    );
}

/// Every command that waits for a server measures it over TCP, and proposes a command that waits, too: nothing else reaches it.
#[test]
fn commands_that_wait_for_a_server_propose_commands_that_do() {
    let path = NatPath::new();
    let _server = Process::start(path.linerate(&path.server, "serve --dial 10.20.0.2:5301"));
    let measure = |command: &str| run(path.linerate(&path.client, command), LIMIT);
    let shown = measure("test --listen=5301 --time 1s").expect_code(0).stdout;
    assert!(shown.contains("port 5301") && shown.contains("Next: linerate diagnose --listen=5301\n"), "{shown}");
    let diagnosed = measure("diagnose --listen=5301 --json -- -t 2");
    assert!([Some(0), Some(1)].contains(&diagnosed.code()), "{diagnosed:?}");
    let document = diagnosed.json();
    assert!(number(&document, "/goodput_bits_per_second") > 1e6, "{document}");
    assert!(document.pointer("/path/rtt/icmp").is_some_and(Value::is_null), "the router would answer: {document}");
    let shown = measure("path --listen=5301").expect_code(0).stdout;
    assert!(shown.contains("over TCP") && shown.contains("Next: linerate diagnose --listen=5301\n"), "{shown}");
    let document = measure("load --listen=5301 --json --phases up --time 2s --idle 1s --ramp 2s").expect_code(0).json();
    assert!(number(&document, "/phases/1/goodput_up_bits_per_second") > 1e6, "{document}");
    let document = measure("rr --listen=5301 --json --time 1s").expect_code(0).json();
    assert!(number(&document, "/transactions") > 10.0, "{document}");
}

#[test]
fn the_server_cannot_be_reached_from_outside() {
    let path = NatPath::new();
    let server = Process::start(path.linerate(&path.server, "serve"));
    assert!(eventually(LIMIT, || server.stderr().contains("port 5201")), "{server:?}");
    let command = path.linerate(&path.client, "test 10.20.0.1 --time 1s");
    let error = run(command, LIMIT).expect_code(2).stderr;
    assert!(error.contains("10.20.0.1"), "{error}");
}
