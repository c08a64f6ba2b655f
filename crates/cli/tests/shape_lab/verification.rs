//! Verification accepts a working shaper; rates are found on a link of unknown capacity; verification completes in real
//! time, too.

use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::support::Scratch;
use crate::support::document::{array, number, text};
use crate::support::namespace::Namespace;
use crate::support::process::run as run_program;

use super::guest::{ScriptOutput, findings, run, slow_line, with_functions};

/// The 95th percentile of the delay that load adds to best effort, in the worst phase, in milliseconds.
fn added(document: &Value, which: &str) -> f64 {
    let rows = array(document, "/verification/delays").iter();
    let counted = rows.filter(|row| ["udp_best_effort", "tcp_info"].contains(&text(row, "/class")));
    let added = counted.filter_map(|row| row.pointer(&format!("/{which}/p95_ns")).and_then(Value::as_f64));
    added.fold(f64::NEG_INFINITY, f64::max) / 1e6
}

/// Cable link with 1.2 s of buffer up.
#[test]
fn a_good_shaper_passes_and_stays() {
    let script = r#"tree > before
        shape eth0 --up 4M --down 22M --verify far --quick --time 5s --idle 2s --json -q > out; echo "code: $?"
        shape eth0 status --json > status; echo "status: $?"
        shape eth0 off -q > gone; compare off; echo '== document'; cat out; echo '== status'; cat status"#;
    let said = run("cable-bloat", script);
    assert_eq!(
        (said.value("code"), said.value("status"), said.value("off")),
        ("0", "0", "the same"),
        "{}",
        said.whole()
    );
    let document = said.document("document");
    assert_eq!((text(&document, "/outcome"), text(&document, "/verification/outcome")), ("set_up", "passed"));
    assert_eq!(document["verification"]["is_active"], true);
    let grades = (text(&document, "/verification/grade_without"), text(&document, "/verification/grade_with"));
    assert_eq!(grades.0, "F", "{document:#}");
    assert!(["A+", "A", "B"].contains(&grades.1), "{grades:?}");
    // Buffers: 1.2 s up, 65 ms down.
    assert!(added(&document, "without") > 1000.0 && added(&document, "with") <= 60.0, "{document:#}");
    let status = said.document("status");
    assert!((number(&status, "/shapers/0/directions/0/set_bits_per_second") - 4e6).abs() < 1.0, "{status:#}");
}

/// A limit that was asked for decides the exit status; the working shaper stays.
#[test]
fn a_missed_limit_is_an_exit_status() {
    let script = r#"tree > before
        shape eth0 --up 1900k --down 5600k --verify far --quick --time 2s --idle 2s --max-added 1ms --json -q > out
        echo "code: $?"
        shape eth0 off -q > gone; compare off; echo '== document'; cat out"#;
    let said = run(&slow_line().file, script);
    assert_eq!((said.value("code"), said.value("off")), ("1", "the same"), "{}", said.whole());
    let document = said.document("document");
    assert_eq!(
        (text(&document, "/outcome"), text(&document, "/verification/outcome")),
        ("set_up", "delay_above_limit")
    );
    assert!(findings(&document).contains(&"delay_above_limit"), "{document:#}");
}

/// The search itself is tested with made-up links in `operate`.
#[test]
#[ignore = "long: cargo xtask test --long"]
fn rates_are_found() {
    let script = r#"tree > before
        shape eth0 --verify far --find-rate --quick --time 6s --idle 4s --json -q > out; echo "code: $?"
        shape eth0 off -q > gone; compare off; echo '== document'; cat out"#;
    let said = run(&slow_line().file, script);
    assert_eq!((said.value("code"), said.value("off")), ("0", "the same"), "{}", said.whole());
    let document = said.document("document");
    assert_eq!(text(&document, "/verification/outcome"), "passed");
    for (direction, line) in [("up", 2e6), ("down", 6e6)] {
        let found = number(&document, &format!("/link/{direction}_bits_per_second"));
        assert!((0.85 * line..=line).contains(&found), "{direction}: {found} in {document:#}");
    }
    // A full packet takes 6 ms on this link: the connections that fill it wait for several of their own.
    assert!(added(&document, "with") <= added(&document, "without") / 4.0, "{document:#}");
}

/// Two hosts and a modem between them, each in a network namespace; this one is the modem's.
const THREE_HOSTS: &str = r#"
unshare -n sleep 100 & near=$!
unshare -n sleep 100 & far=$!
trap 'kill $near $far $server' EXIT
here=$(readlink /proc/self/ns/net)
for host in $near $far; do until [ "$(readlink /proc/$host/ns/net)" != "$here" ]; do sleep 0.05; done; done
on() { host=$1; shift; nsenter --net=/proc/$host/ns/net "$@"; }
set -e
ip link add m0 type veth peer name line0; ip link add m1 type veth peer name line1
ip link set line0 netns $near; ip link set line1 netns $far
ip address add 10.77.1.2/24 dev m0; ip address add 10.77.2.2/24 dev m1; ip link set m0 up; ip link set m1 up
on $near ip address add 10.77.1.1/24 dev line0; on $near ip link set line0 up; on $near ip route add default via 10.77.1.2
on $far ip address add 10.77.2.1/24 dev line1; on $far ip link set line1 up; on $far ip route add default via 10.77.2.2
echo 1 > /proc/sys/net/ipv4/ip_forward
tc qdisc add dev m1 root tbf rate 4mbit burst 4000 limit 150000
tc qdisc add dev m0 root tbf rate 12mbit burst 12000 limit 450000
set +e
on $far "$L" serve > served 2>&1 & server=$!
until grep -q 5201 served; do sleep 0.05; done
near_tree() { on $near ip -o link; on $near tc qdisc show dev line0; on $near tc filter show dev line0 ingress; }
near_tree > before
on $near "$L" shape line0 --up 3600k --down 11M --back-end htb+bfifo --verify 10.77.2.1 --quick --time 2s --idle 2s --json -q > out 2> err
echo "code: $?"
near_tree > now; cmp -s before now && echo 'tree: same' || echo 'tree: different'
on $near "$L" shape line0 off -q > gone 2>&1
near_tree > now; cmp -s before now && echo 'off: same' || echo 'off: different'
echo '== document'; cat out; echo '== errors'; cat err
"#;

/// Uses the qdiscs of this host's kernel. The measurement depends on the load of the host: the test only requires a
/// verdict, and restoration of the previous configuration unless the verification passed.
#[test]
#[ignore = "long: cargo xtask verification, in real time for more than a minute"]
fn it_comes_to_a_verdict_on_this_host() {
    let (namespace, folder) = (Namespace::new(), Scratch::new());
    let mut command: Command = namespace.command("sh");
    command.env("TMPDIR", folder.path(""));
    command.args(["-c", &with_functions(THREE_HOSTS)]);
    let said = ScriptOutput(run_program(command, Duration::from_secs(600)).expect_code(0));
    let document = said.document("document");
    let stands = match said.value("code") {
        "0" => "different",
        "5" => "same",
        other => panic!("ended with {other}:\n{}", said.whole()),
    };
    assert_eq!((said.value("tree"), said.value("off")), (stands, "same"), "{}", said.whole());
    assert!(added(&document, "without") > 100.0, "{document:#}");
    assert!(["passed", "failed"].contains(&text(&document, "/verification/outcome")), "{document:#}");
}
