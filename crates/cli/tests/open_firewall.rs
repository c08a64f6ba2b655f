//! `serve --open-firewall` in a network namespace with a strict rule set: the port is closed however the server ends.

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use crate::support::process::eventually;
use crate::support::{self, Process};

const LIMIT: Duration = Duration::from_secs(300);
/// Rule set of a host that accepts nothing else.
const RULES: &str =
    "table inet filter {\n chain input {\n  type filter hook input priority 0; policy drop;\n  iif lo accept\n }\n}\n";

/// Network namespace with [`RULES`], removed at the end.
struct StrictNamespace(String);

impl StrictNamespace {
    fn new(name: &str) -> Self {
        let name = format!("linerate-{name}-{}", std::process::id());
        run(Command::new("ip").args(["netns", "add", &name]));
        let namespace = Self(name);
        run(Command::new("ip").args(["-n", &namespace.0, "link", "set", "lo", "up"]));
        let rules = support::Scratch::new();
        let file = rules.file("rules.nft", RULES);
        run(Command::new("ip").args(["netns", "exec", &namespace.0, "nft", "-f", &file]));
        namespace
    }

    fn rules(&self) -> String {
        let listing = Command::new("ip").args(["netns", "exec", &self.0, "nft", "list", "ruleset"]).output();
        String::from_utf8(listing.expect("nft runs").stdout).expect("text")
    }

    /// Starts a server in a process group of its own; returns when its port is open.
    fn serve(&self) -> Process {
        let linerate = support::linerate();
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.0]).arg(linerate.get_program());
        command.args(["serve", "--port", "5201", "--no-stamp", "--open-firewall"]).process_group(0);
        let server = Process::start(command);
        assert!(eventually(LIMIT, || server.stderr().contains("serves iperf3")), "not run: {}", server.stderr());
        assert!(self.rules().contains("5201"), "not opened: {}", self.rules());
        server
    }
}

impl Drop for StrictNamespace {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "delete", &self.0]).status();
    }
}

fn run(command: &mut Command) {
    let status = command.status().expect("not run: ip of iproute2 is missing");
    assert!(status.success(), "not run: {command:?} failed (root and nft are needed)");
}

fn kill(signal: &str, target: &str) {
    // The server may have ended by an earlier signal.
    let _ = Command::new("kill").args(["-s", signal, "--", target]).status();
}

#[test]
#[ignore = "needs root and nft: rules in a network namespace"]
fn the_port_is_closed_however_the_server_ends() {
    let namespace = StrictNamespace::new("firewall");
    let before = namespace.rules();
    let own = |server: &Process| server.id().to_string();
    let group = |server: &Process| format!("-{}", server.id());
    let cases: &[(&str, &[&str], bool)] = &[
        ("Ctrl-C", &["INT"], false),
        ("Ctrl-C twice", &["INT", "INT"], false),
        ("timeout -s INT, child and group", &["INT", "INT"], true),
        ("SIGTERM to the group, three times", &["TERM", "TERM", "TERM"], true),
        ("hang-up", &["HUP", "HUP"], true),
        ("SIGQUIT", &["QUIT"], true),
        ("kill -9", &["KILL"], false),
    ];
    for (name, signals, whole_group) in cases {
        let server = namespace.serve();
        for signal in *signals {
            kill(signal, &if *whole_group { group(&server) } else { own(&server) });
        }
        let closed = eventually(LIMIT, || namespace.rules() == before);
        assert!(closed, "{name}: {}", namespace.rules());
        drop(server.finish(LIMIT));
    }
}
