//! Verification rejects a shaper without effect, for any cause, and restores the previous configuration.
//!
//! The shaper is disturbed a second after it was installed and read back, during the measurement of the idle path, so
//! that only the measurement can detect it. Detection by the read-back is tested with `tc` commands that are
//! suppressed.

use serde_json::Value;

use crate::support::document::text;

use super::guest::{findings, run, slow_line};

/// Script that verifies the shaper on `$1` with these rates, disturbed by `$4…` meanwhile.
const VERIFY_FUNCTIONS: &str = r#"
MEASURED='--quick --time 2s --idle 2s --json -q'
verify() {
  DEVICE=$1 up=$2 down=$3; shift 3
  tree > before
  (
    i=0; until [ -e "/sys/class/net/ifb4$DEVICE" ] || [ $((i += 1)) -gt 200 ]; do sleep 0.5; done
    sleep 1; "$@" > disturbed 2>&1 || cat disturbed >&2
  ) &
  shape "$DEVICE" --up "$up" --down "$down" --back-end cake --verify "${FAR-far}" $MEASURED > out 2> err; code=$?
  wait
  is_as_before && back=same || back=different
  echo "code: $code"; echo "tree: $back"; echo '== document'; cat out; echo '== errors'; cat err
}
"#;

/// Runs a verification that must fail and roll everything back, and returns its document.
#[track_caller]
fn fails(script: &str) -> Value {
    let said = run(&slow_line().file, &format!("{VERIFY_FUNCTIONS}{script}"));
    assert_eq!((said.value("code"), said.value("tree")), ("5", "same"), "{}", said.whole());
    let document = said.document("document");
    assert_eq!(text(&document, "/outcome"), "rolled_back");
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

/// Installs a foreign filter before the redirect for this number of seconds: while it exists, linerate would leave the
/// tree alone. `dual` is a name of the far host with an address of both versions.
#[track_caller]
fn passed_by(filter: &str, far: &str, seconds: u32, kinds: &[&str]) {
    let script = format!(
        r"echo 10.0.0.2 dual >> /etc/hosts; echo fd00::2 dual >> /etc/hosts; FAR={far}
        pass_by() {{
          tc filter add dev eth0 ingress prio 1 {filter} action pass
          sleep {seconds}; tc filter del dev eth0 ingress prio 1
        }}
        verify eth0 1900k 5600k pass_by"
    );
    finds_one_of(&script, kinds);
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn the_redirect_is_gone() {
    finds("verify eth0 1900k 5600k tc filter del dev eth0 ingress", "no_redirect");
}

/// Detected by the read-back: the command for the redirect has no effect.
#[test]
fn the_redirect_never_came() {
    let script = r#"mkdir bin; real=$(command -v tc)
        printf '#!/bin/sh\nif [ "$1" = -batch ]; then grep -v "filter.*dev eth0.*mirred" | %s -batch -; else exec %s "$@"; fi\n' $real $real > bin/tc
        chmod +x bin/tc; PATH="$D/bin:$PATH"; verify eth0 1900k 5600k true"#;
    let document = fails(script);
    assert!(findings(&document).contains(&"no_redirect"), "{document:#}");
    assert!(!document.pointer("/verification/differences/0").is_none_or(Value::is_null), "{document:#}");
}

/// Detected by the read-back: the device of a host that disables new devices.
#[test]
#[ignore = "long: cargo xtask test --long"]
fn the_intermediate_device_is_down() {
    let script = r#"mkdir bin; real=$(command -v tc)
        printf '#!/bin/sh\n%s "$@" || exit\nif [ "$1" = -batch ]; then ip link set ifb4eth0 down 2> /dev/null; fi; true\n' $real > bin/tc
        chmod +x bin/tc; PATH="$D/bin:$PATH"; verify eth0 1900k 5600k true"#;
    finds(script, "redirect_target_down");
}

/// A device that goes down later leaves no user to ask: the watchdog ends the trial and restores the previous
/// configuration.
#[test]
fn the_intermediate_device_goes_down() {
    let script = r#"verify eth0 1900k 5600k ip link set ifb4eth0 down
        for i in $(seq 100); do is_as_before && break; sleep 0.1; done; compare later; ping -q -c 1 far > ping; echo "ping: $?""#;
    let said = run(&slow_line().file, &format!("{VERIFY_FUNCTIONS}{script}"));
    assert_ne!(said.value("code"), "0", "{}", said.whole());
    assert_eq!((said.value("later"), said.value("ping")), ("the same", "0"), "{}", said.whole());
}

/// As with flow offloading: half of the packets bypass the tree.
#[test]
fn packets_bypass_the_tree() {
    passed_by("protocol ip u32 match u8 0 1 at 5", "far", 25, &["bypassed"]);
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn the_shaper_is_on_another_interface() {
    finds(
        "ip link add wrong0 type veth peer name wrong1; ip link set wrong1 up; ip link set wrong0 up\nverify wrong0 1900k 5600k true",
        "wrong_interface",
    );
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn the_rates_are_above_the_link() {
    finds("verify eth0 4M 12M true", "rate_above_capacity");
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn the_rates_are_swapped() {
    let script = "swap() { tc qdisc change dev eth0 root cake bandwidth 5600kbit; tc qdisc change dev ifb4eth0 root cake bandwidth 1900kbit; }
        verify eth0 1900k 5600k swap";
    finds(script, "rates_swapped");
}

/// Filter for IPv4 only, as in scripts for many years.
#[test]
#[ignore = "long: cargo xtask test --long"]
fn ipv6_is_not_shaped() {
    // If the resolver returns the far host's IPv6 address first, the load uses it and is not shaped at all.
    passed_by("protocol ipv6 u32 match u32 0 0", "dual", 60, &["ipv6_unshaped", "no_redirect"]);
}
