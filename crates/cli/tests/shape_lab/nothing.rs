//! A shaper that does nothing is found by its proof, whatever the reason, and what was there before comes back.
//!
//! Somebody disturbs it a second after it was set up and read back, while the path at rest is measured: only what is measured
//! can tell. What the read-back finds is tested with `tc` commands that do not arrive.

use serde_json::Value;

use crate::guest::{findings, run, slow_line};
use crate::support::document::text;

/// A proof of the shaper on `$1`, with these rates, disturbed by `$4…` while it runs.
const PROVE: &str = r#"
MEASURED='--quick --time 2s --idle 2s --json -q'
prove() {
  DEVICE=$1 up=$2 down=$3; shift 3
  tree > before
  (
    for i in $(seq 1000); do ip link show "ifb4$DEVICE" > found 2>&1 && break; sleep 0.1; done
    sleep 1; "$@" > disturbed 2>&1 || cat disturbed >&2
  ) &
  shape "$DEVICE" --up "$up" --down "$down" --back-end cake --verify "${FAR-far}" $MEASURED > out 2> err; code=$?
  wait
  is_as_before && back=same || back=different
  echo "code: $code"; echo "tree: $back"; echo '== document'; cat out; echo '== errors'; cat err
}
"#;

/// Runs a proof, expects that it fails and takes everything back, and returns its document.
#[track_caller]
fn fails(script: &str) -> Value {
    let said = run(&slow_line().file, &format!("{PROVE}{script}"));
    assert_eq!((said.value("code"), said.value("tree")), ("5", "same"), "{}", said.whole());
    let document = said.document("document");
    assert_eq!(text(&document, "/outcome"), "taken_back");
    assert_eq!(text(&document, "/verification/outcome"), "failed");
    document
}

#[track_caller]
fn finds(script: &str, kind: &str) {
    finds_one_of(script, &[kind]);
}

#[track_caller]
fn finds_one_of(script: &str, kinds: &[&str]) {
    let document = fails(script);
    let found = findings(&document);
    assert!(kinds.iter().any(|kind| found.contains(kind)), "{found:?} in {document:#}");
}

/// Somebody else's filter stands before the redirect for so many seconds: as long as it is there, linerate would leave the
/// tree alone. `dual` is a name of the far host with an address of both versions.
#[track_caller]
fn passed_by(filter: &str, far: &str, seconds: u32, kinds: &[&str]) {
    let script = format!(
        r"echo 10.0.0.2 dual >> /etc/hosts; echo fd00::2 dual >> /etc/hosts; FAR={far}
        pass_by() {{
          tc filter add dev eth0 ingress prio 1 {filter} action pass
          sleep {seconds}; tc filter del dev eth0 ingress prio 1
        }}
        prove eth0 1900k 5600k pass_by"
    );
    finds_one_of(&script, kinds);
}

#[test]
fn the_redirect_is_gone() {
    finds("prove eth0 1900k 5600k tc filter del dev eth0 ingress", "no_redirect");
}

/// What the read-back finds: the command that makes the redirect comes to nothing.
#[test]
fn the_redirect_never_came() {
    let script = r#"mkdir bin; real=$(command -v tc)
        printf '#!/bin/sh\nif [ "$1" = -batch ]; then grep -v "filter.*dev eth0.*mirred" | %s -batch -; else exec %s "$@"; fi\n' $real $real > bin/tc
        chmod +x bin/tc; PATH="$D/bin:$PATH"; prove eth0 1900k 5600k true"#;
    let document = fails(script);
    assert!(findings(&document).contains(&"no_redirect"), "{document:#}");
    assert!(!document.pointer("/verification/differences/0").is_none_or(Value::is_null), "{document:#}");
}

/// What the read-back finds: the device of a host that switches new devices off.
#[test]
fn the_intermediate_device_is_down() {
    let script = r#"mkdir bin; real=$(command -v tc)
        printf '#!/bin/sh\n%s "$@" || exit\nif [ "$1" = -batch ]; then ip link set ifb4eth0 down 2> /dev/null; fi; true\n' $real > bin/tc
        chmod +x bin/tc; PATH="$D/bin:$PATH"; prove eth0 1900k 5600k true"#;
    finds(script, "redirect_target_down");
}

/// When the device goes down later, nobody can be asked any more: the watchdog ends it, and what was there before is back.
#[test]
fn the_intermediate_device_goes_down() {
    let script = r#"prove eth0 1900k 5600k ip link set ifb4eth0 down
        for i in $(seq 100); do is_as_before && break; sleep 0.1; done; compare later; ping -q -c 1 far > ping; echo "ping: $?""#;
    let said = run(&slow_line().file, &format!("{PROVE}{script}"));
    assert_ne!(said.value("code"), "0", "{}", said.whole());
    assert_eq!((said.value("later"), said.value("ping")), ("the same", "0"), "{}", said.whole());
}

/// As with flow offloading: half of the packets go around the tree.
#[test]
fn packets_pass_by_it() {
    passed_by("protocol ip u32 match u8 0 1 at 5", "far", 25, &["bypassed"]);
}

#[test]
fn it_stands_on_another_interface() {
    finds(
        "ip link add wrong0 type veth peer name wrong1; ip link set wrong1 up; ip link set wrong0 up\nprove wrong0 1900k 5600k true",
        "wrong_interface",
    );
}

#[test]
fn its_rates_are_above_the_line() {
    finds("prove eth0 4M 12M true", "above_the_line");
}

#[test]
fn its_rates_are_exchanged() {
    let script = "swap() { tc qdisc change dev eth0 root cake bandwidth 5600kbit; tc qdisc change dev ifb4eth0 root cake bandwidth 1900kbit; }
        prove eth0 1900k 5600k swap";
    finds(script, "rates_swapped");
}

/// A filter that matches IPv4 only, as scripts have had for many years.
#[test]
fn it_forgets_ipv6() {
    // Where the resolver gives the far host's IPv6 address first, that is what loads the line, and nothing is shaped at all.
    passed_by("protocol ipv6 u32 match u32 0 0", "dual", 60, &["ipv6_unshaped", "no_redirect"]);
}
