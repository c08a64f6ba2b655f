//! Shell scripts for `linerate tune` in the lab's guest, on a path so slow that a whole run takes seconds.

use crate::support::lab::{OwnPath, lab};
pub(crate) use crate::support::script::ScriptOutput;

/// Largest buffers of the near sender and of the far receiver: the limiting settings.
pub(crate) const NEAR: &str = "net.ipv4.tcp_wmem";
pub(crate) const FAR: &str = "net.ipv4.tcp_rmem";

/// Limiting values of these settings. The bandwidth-delay product of the path is 100 kB.
pub(crate) const NEAR_SMALL: &str = "4096 16384 30000";
pub(crate) const FAR_SMALL: &str = "4096 32768 50000";

/// Sufficient values.
const NEAR_LARGE: &str = "4096 16384 4194304";
const FAR_LARGE: &str = "4096 131072 6291456";

/// Limit of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// Send buffer of the near host.
    Near,
    /// Receive buffer of the far host.
    Far,
    /// Both, nearly as much: a plan against one is a plan against both.
    Both,
    /// No host limit.
    None,
}

/// Path of 20 Mbit/s and 40 ms.
pub(crate) fn path(limit: Limit) -> OwnPath {
    let (near, far) = match limit {
        Limit::Near => (NEAR_SMALL, FAR_LARGE),
        Limit::Far => (NEAR_LARGE, FAR_SMALL),
        Limit::Both => ("4096 16384 60000", "4096 32768 60000"),
        Limit::None => (NEAR_LARGE, FAR_LARGE),
    };
    OwnPath::new(&format!(
        "[host.near]\ncongestion_control = \"cubic\"\n\n[host.near.sysctl]\n\"{NEAR}\" = \"{near}\"\n\n\
         [host.far]\ncongestion_control = \"cubic\"\n\n[host.far.sysctl]\n\"{FAR}\" = \"{far}\"\n\n\
         [[link]]\nbetween = [\"near\", \"far\"]\nmtu = 1500\nrate = \"20 Mbit/s\"\ndelay = \"20 ms\"\nbuffer = \"200 kB\"\n"
    ))
}

/// Shell functions of the scripts: `tune` runs in the directory `$D`, with its output in `$D/out` and `$D/err`.
///
/// A process is found only by its ID in the journal: reading a process's own directory in `/proc` while it is killed
/// with its threads keeps the guest's kernel busy for ever.
const FUNCTIONS: &str = r#"set -u
D=$(mktemp -d); cd "$D"; mkdir state; chmod 755 .; chmod 777 state
export LINERATE_STATE="$D/state" LINERATE_HISTORY=off
far() { nsenter --net=/run/netns/far "$@"; }
tune() { "$L" tune far --far netns:far --yes --verbose -- -t 5 -C cubic > out 2> err; }
both() { cat /proc/sys/net/ipv4/tcp_wmem; far cat /proc/sys/net/ipv4/tcp_rmem; }
one_line() { tr '\t' ' ' < "$1" | paste -s -d ';'; }
is_as_before() { both > now; cmp -s before now; }
both > before
# Starts it, and waits until something is in force.
try() {
  "$L" tune far --far netns:far --yes -- -t 5 -C cubic > out 2> err & process=$!
  for i in $(seq 90); do grep -q ^Trying err && break; sleep 1; done
  for i in $(seq 40); do is_as_before || break; sleep 0.5; done
  is_as_before && { echo 'nothing came into force'; cat err; exit 1; }
  echo "tried: $(one_line now)"
}
# What is left, within half a minute.
left() {
  for i in $(seq 60); do is_as_before && break; sleep 0.5; done
  echo "before: $(one_line before)"; echo "after: $(one_line now)"
  echo '== errors'; cat err; echo '== output'; cat out
  echo '== near'; "$L" rollback --list 2>&1; "$L" rollback --pending 2>&1 || echo "pending: $?"
  echo '== far'; export LINERATE_STATE="$D/state/netns-far"
  far "$L" rollback --list 2>&1; far "$L" rollback --pending 2>&1 || echo "pending: $?"
}
"#;

/// Runs a script on such a path.
pub(crate) fn run(limit: Limit, script: &str) -> ScriptOutput {
    let path = path(limit);
    let script = format!("L={}\n{FUNCTIONS}{script}", env!("CARGO_BIN_EXE_linerate"));
    ScriptOutput(lab(&path.file, &["sh", "-c", &script]))
}

impl ScriptOutput {
    /// Asserts that each text is in the part, regardless of line breaks.
    #[track_caller]
    pub(crate) fn assert_contains(&self, part: &str, words: &[&str]) -> &Self {
        let text = flat(self.part(part));
        for word in words {
            assert!(text.contains(word), "{word:?} is not in {part}:\n{}", self.whole());
        }
        self
    }

    /// Asserts that a change was in effect, and that both hosts are restored.
    #[track_caller]
    pub(crate) fn assert_restored(&self) -> &Self {
        assert_eq!(self.value("after"), self.value("before"), "{}", self.whole());
        self
    }
}

/// Joins text into one line with single spaces.
pub(crate) fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
