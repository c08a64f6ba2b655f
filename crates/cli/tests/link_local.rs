//! Measurements between link-local IPv6 addresses, each of which is unique on its interface only.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::support::document::{array, count, text};
use crate::support::iperf3;
use crate::support::namespace::Namespace;
use crate::support::process::{FinishedChild, Process, eventually, run};

const LIMIT: Duration = Duration::from_secs(120);
const LINERATE: &str = env!("CARGO_BIN_EXE_linerate");

/// Address of the far host on the near host's interface.
const FAR: &str = "fe80::2%va";

/// Two hosts with a link, and another interface each, whose number is lower.
struct TwoHosts {
    near: Namespace,
    far: Namespace,
}

impl TwoHosts {
    fn new() -> Self {
        let hosts = Self { near: Namespace::new(), far: Namespace::new() };
        for host in [&hosts.near, &hosts.far] {
            host.ip("link set lo up");
            host.ip("link add other type veth peer name another");
            host.ip("link set other up");
            host.ip("link set another up");
        }
        hosts.near.ip(&format!("link add va type veth peer name vb netns {}", hosts.far.id()));
        for (host, device, address) in [(&hosts.near, "va", "fe80::1"), (&hosts.far, "vb", "fe80::2")] {
            host.ip(&format!("address add {address}/64 dev {device} nodad"));
            host.ip(&format!("link set {device} up"));
        }
        hosts
    }

    fn serve(&self, program: impl AsRef<Path>, arguments: &[&str]) -> Process {
        let mut command = self.far.command(program);
        command.env("LINERATE_HISTORY", "off").args(arguments);
        let server = Process::start(command);
        let listening = || self.far.output("ss", &["-Hltn", "sport", "=", ":5201"]);
        assert!(eventually(LIMIT, || !listening().is_empty()), "{}", server.stderr());
        server
    }

    fn measure(&self, program: impl AsRef<Path>, arguments: &[&str]) -> FinishedChild {
        let mut command = self.near.command(program);
        command.env("LINERATE_HISTORY", "off").args(arguments);
        run(command, LIMIT)
    }

    fn document(&self, arguments: &[&str]) -> Value {
        self.measure(LINERATE, &[arguments, &["--json", "--quiet"]].concat()).expect_code(0).json()
    }
}

#[test]
#[ignore = "needs root, ip and ss: two network namespaces"]
fn the_server_opens_ports_of_its_own() {
    let hosts = TwoHosts::new();
    // With a port that the reflector shares, and with one of the session's own.
    for serve in [&["serve"][..], &["serve", "--no-stamp"], &["serve", "-B", "fe80::2%vb"]] {
        let _server = hosts.serve(LINERATE, serve);
        let modes = [(&["--udp"][..], "udp"), (&["--connect"], "connect"), (&["--handshake", "tls"], "tls")];
        for (options, mode) in modes {
            let document = hosts.document(&[&["rr", FAR, "-t", "1s"], options].concat());
            assert_eq!(text(&document, "/mode"), mode, "{serve:?}");
        }
        let document = hosts.document(&["path", FAR, "-c", "100", "--no-capacity"]);
        assert_eq!(text(&document, "/rtt/method"), "udp", "{serve:?}");
        assert!(count(&document, "/up/packets/received") > 0, "{serve:?}: {}", document["up"]);
    }
}

#[test]
#[ignore = "needs root, ip and ss: two network namespaces"]
fn a_route_to_the_neighbour_has_one_hop() {
    let hosts = TwoHosts::new();
    let document = hosts.document(&["path", FAR, "--hops", "-c", "3"]);
    assert_eq!(array(&document, "/hops").len(), 1, "{document:#}");
}

#[test]
#[ignore = "needs root, ip and ss: two network namespaces"]
fn an_address_to_bind_to_has_its_interface() {
    let hosts = TwoHosts::new();
    let _server = hosts.serve(LINERATE, &["serve"]);
    let short = ["test", FAR, "--time", "1s", "--up", "-P", "1"];
    for options in [&["-B", "fe80::1%va"][..], &["-B", "fe80::1%va", "--bind-dev", "va"]] {
        hosts.document(&[&short[..], options].concat());
        hosts.document(&[&["rr", FAR, "-t", "1s", "--udp"], options].concat());
        hosts.document(&[&["path", FAR, "-c", "100", "--no-capacity"], options].concat());
    }
    for (options, reason) in [
        (&["-B", "fe80::1"][..], "needs its interface: address%interface"),
        (&["-B", "fe80::1%va", "--bind-dev", "other"], "-B names the interface va, and --bind-dev the interface other"),
        (&["-B", "fe80::1%nosuch"], "setting the interface to \"nosuch\" (SO_BINDTODEVICE): No such device"),
    ] {
        let refused = hosts.measure(LINERATE, &[&short[..], options].concat()).expect_code(2);
        assert!(refused.stderr.contains(reason), "{options:?}: {}", refused.stderr);
    }
}

#[test]
#[ignore = "needs root, ip, ss and iperf3: two network namespaces"]
fn iperf3s_bind_option_has_its_interface() {
    let hosts = TwoHosts::new();
    let shown = hosts.near.ip("-oneline link show dev va");
    let numbered = format!("fe80::1%{}", shown.split(':').next().expect("the interface's number"));
    let programs = [(Path::new(LINERATE), &["iperf3"][..]), (iperf3(), &[])];
    let options: [(&str, &[&str]); 4] =
        [("fe80::1%va", &[]), ("fe80::1%va", &["-R"]), ("fe80::1%va", &["-u", "-b", "1M"]), (&numbered, &[])];
    for (server, prefix) in programs {
        for (client, client_prefix) in programs {
            for (bound, more) in options {
                let _server = hosts.serve(server, &[prefix, &["-s", "-1", "-B", "fe80::2%vb"]].concat());
                let arguments = [client_prefix, &["-c", FAR, "-B", bound, "-t", "1", "-J"], more].concat();
                let document = hosts.measure(client, &arguments).expect_code(0).json();
                assert_eq!(text(&document, "/start/connected/0/local_host"), "fe80::1");
            }
        }
    }
}
