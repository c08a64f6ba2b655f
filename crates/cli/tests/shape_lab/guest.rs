//! Shell scripts for `linerate shape` in the lab's guest.

use serde_json::Value;

pub(crate) use crate::support::script::ScriptOutput;

use crate::support::document::{array, text};
use crate::support::lab::{OwnPath, lab};

/// Link on which load adds 150 ms in each direction.
pub(crate) fn slow_line() -> OwnPath {
    OwnPath::new(
        "[host.near]\ncongestion_control = \"cubic\"\n\n[host.far]\ncongestion_control = \"cubic\"\n\n\
         [[link]]\nbetween = [\"near\", \"far\"]\nmtu = 1500\ndelay = \"10 ms\"\nbuffer = \"150 ms\"\n\n\
         [link.forward]\nrate = \"2 Mbit/s\"\n\n[link.backward]\nrate = \"6 Mbit/s\"\n",
    )
}

/// Shell functions of the scripts, which run in the directory `$D`.
///
/// `tree` prints the queueing of the interface `$DEVICE` (`eth0` unless set before), and all interfaces with their
/// qdiscs, without packet counters and reference counts.
const FUNCTIONS: &str = r#"set -u
D=$(mktemp -d); cd "$D"; export D LINERATE_STATE="$D/state" LINERATE_HISTORY=off DEVICE="${DEVICE-eth0}"
shape() { "$L" shape "$@"; }
tree() { {
  ip -o link; tc qdisc show; tc class show dev $DEVICE; tc filter show dev $DEVICE
  { tc filter show dev $DEVICE ingress; tc filter show dev $DEVICE egress; } 2>&1
} | sed -E 's/ direct_packets_stat [0-9]+//; s/ ref [0-9]+ bind [0-9]+//'; }
is_as_before() { tree > now; cmp -s before now; }
compare() { if is_as_before; then echo "$1: the same"; else echo "$1: different"; diff before now; fi; }
foreign() {
  tc qdisc add dev eth0 root handle 7: fq_codel limit 555 target 7ms interval 77ms noecn
  tc qdisc add dev eth0 clsact
  tc filter add dev eth0 ingress protocol ip prio 5 u32 match ip dport 9999 0xffff action pass
  tc filter add dev eth0 egress protocol ipv6 prio 6 u32 match ip6 dport 9998 0xffff action pass
}
"#;

/// Prepends the shell functions to a script.
pub(crate) fn with_functions(script: &str) -> String {
    format!("L={}\n{FUNCTIONS}{script}", env!("CARGO_BIN_EXE_linerate"))
}

/// Runs a script on a path.
pub(crate) fn run(path: &str, script: &str) -> ScriptOutput {
    ScriptOutput(lab(path, &["sh", "-c", &with_functions(script)]))
}

impl ScriptOutput {
    /// Asserts that the trees were compared this number of times, and were equal each time.
    #[track_caller]
    pub(crate) fn assert_trees_equal(&self, times: usize) {
        let compared = self.whole().lines().filter(|line| line.ends_with(": the same")).count();
        assert!(compared == times && !self.whole().contains(": different"), "{compared} of {times}:\n{}", self.whole());
    }
}

/// Kinds of findings of a verification.
pub(crate) fn findings(document: &Value) -> Vec<&str> {
    array(document, "/verification/findings").iter().map(|finding| text(finding, "/kind")).collect()
}
