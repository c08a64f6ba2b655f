//! Datagrams with a forged source address: the host whose address it is receives no more than they were.
//!
//! Three hosts, each in a network namespace: the attacker and the victim are behind different interfaces of the server.

use std::time::Duration;

use serde_json::Value;

use crate::support;
use crate::support::namespace::Namespace;
use crate::support::process::{Process, run};

const LIMIT: Duration = Duration::from_secs(300);
const ATTACK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/forged_sources/attack.py");
const SERVER: &str = "10.1.0.2";
const VICTIM: &str = "10.2.0.1";

/// Smallest packet of STAMP on Ethernet, and what answers it (RFC 8762 section 4.6): 44 bytes of payload.
const STAMP_ANSWER: u64 = 14 + 20 + 8 + 44;

struct ThreeHosts {
    attacker: Namespace,
    server: Namespace,
    /// Exists while the test runs: its interface is the victim's.
    victim: Namespace,
}

impl ThreeHosts {
    fn new() -> Self {
        let hosts = Self { attacker: Namespace::new(), server: Namespace::new(), victim: Namespace::new() };
        let (attacker, victim) = (hosts.attacker.id(), hosts.victim.id());
        for (near, far, netns) in [("toattacker", "toserver", attacker), ("tovictim", "toserver", victim)] {
            hosts.server.ip(&format!("link add {near} type veth peer name {far} netns {netns}"));
            hosts.server.ip(&format!("link set {near} up"));
        }
        for (host, command) in [
            (&hosts.attacker, "link set lo up"),
            (&hosts.attacker, "link set toserver up"),
            (&hosts.attacker, "address add 10.1.0.1/24 dev toserver"),
            (&hosts.attacker, "address add 10.2.0.1/32 dev lo"),
            (&hosts.server, "link set lo up"),
            (&hosts.server, "address add 10.1.0.2/24 dev toattacker"),
            (&hosts.server, "address add 10.2.0.2/24 dev tovictim"),
            (&hosts.victim, "link set toserver up"),
            // It has no address and so says nothing: no message of ICMP stops a stream.
            (&hosts.server, "neighbour replace 10.2.0.1 lladdr 02:00:00:00:00:01 dev tovictim"),
        ] {
            host.ip(command);
        }
        let filter = "for file in /proc/sys/net/ipv4/conf/*/rp_filter; do echo 0 > $file; done";
        hosts.server.output("sh", &["-c", filter]);
        hosts
    }

    /// Bytes that the server has sent towards the victim, link-layer headers included.
    fn received(&self) -> u64 {
        let arguments = ["-json", "-statistics", "link", "show", "dev", "tovictim"];
        let listed = self.server.output("ip", &arguments);
        let document: Value = serde_json::from_str(&listed).expect("JSON of iproute2");
        document.pointer("/0/stats64/tx/bytes").and_then(Value::as_u64).expect("a counter")
    }

    /// Attacks a service; returns what was sent with the victim's address, and what the victim received meanwhile.
    fn attack(&self, service: &str) -> (Value, u64) {
        let before = self.received();
        let mut command = self.attacker.command("python3");
        command.args([ATTACK, service, SERVER, VICTIM]);
        let sent = run(command, LIMIT).expect_code(0).json();
        (sent, self.received() - before)
    }
}

fn serve(host: &Namespace, arguments: &[&str]) -> Process {
    let mut command = host.command(env!("CARGO_BIN_EXE_linerate"));
    command.args(arguments);
    let server = Process::start(command);
    let listening = || host.output("ss", &["-Hltn", "sport", "=", ":5201"]);
    assert!(support::process::eventually(LIMIT, || !listening().is_empty()), "{}", server.stderr());
    server
}

#[test]
#[ignore = "needs root, ip, ss and python3: three network namespaces"]
fn a_victim_receives_no_more_than_was_sent_in_its_name() {
    let hosts = ThreeHosts::new();
    for arguments in [&["serve", "--no-stamp"][..], &["serve"], &["iperf3", "-s"]] {
        let _server = serve(&hosts.server, arguments);
        for service in ["probe", "reverse", "forward", "idle"] {
            let (sent, received) = hosts.attack(service);
            let bytes = sent["bytes"].as_u64().expect("counted");
            assert!(received <= bytes, "{arguments:?}, {service}: {received} bytes for {sent}");
        }
    }
}

#[test]
#[ignore = "needs root, ip, ss and python3: three network namespaces"]
fn stamp_answers_what_its_standard_asks_for_at_a_limited_rate() {
    let hosts = ThreeHosts::new();
    let _server = serve(&hosts.server, &["serve"]);
    let (sent, received) = hosts.attack("stamp");
    let packets = sent["packets"].as_u64().expect("counted");
    // 5000 a second of each source for 3 s, the burst of the first second, and ARP.
    let most = packets.min(20_000) * STAMP_ANSWER + 1000;
    assert!(received > 0 && received <= most, "{received} bytes of {most} for {sent}");
}
