//! Shared parts of the experiments: commands as they are typed, and their figures.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::support::document::number;
use crate::support::linerate;
use crate::support::process::run;

/// Longest wall time of one command on a busy host.
const LIMIT: Duration = Duration::from_secs(3600);

/// Folder of outputs while the page is written: an interrupted run goes on.
pub(crate) fn kept() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("seeds")
}

/// Runs a command of linerate as a reader types it: arguments, of which the last may be in single quotes. Returns its
/// standard output.
///
/// # Panics
///
/// Panics if the exit code is not 0.
pub(crate) fn typed(command: &str) -> String {
    let is_kept = std::env::var_os("LINERATE_SEEDS").is_some();
    let mut name = DefaultHasher::new();
    command.hash(&mut name);
    let file = kept().join(format!("{:016x}", name.finish()));
    if let Some(output) = std::fs::read_to_string(&file).ok().filter(|_| is_kept) {
        return output;
    }
    let (arguments, script) = match command.split_once('\'') {
        Some((arguments, script)) => (arguments, script.strip_suffix('\'')),
        None => (command, None),
    };
    let mut line = linerate();
    line.args(arguments.split_ascii_whitespace()).args(script);
    let output = run(line, LIMIT).expect_code(0).stdout;
    if is_kept {
        std::fs::create_dir_all(kept()).expect("the folder can be made");
        std::fs::write(&file, &output).expect("the output can be kept");
    }
    output
}

/// Document of a command that ends in a transfer of iperf3's.
pub(crate) fn transfer(command: &str) -> Value {
    let output = typed(&format!("{command} -J"));
    serde_json::from_str(&output).unwrap_or_else(|cause| panic!("not JSON ({cause}): {output}"))
}

/// Received rate in Mbit/s, over the measured time.
pub(crate) fn arrived(document: &Value) -> f64 {
    number(document, "/end/sum_received/bits_per_second") / 1e6
}

/// Received rate of a command in Mbit/s.
pub(crate) fn goodput(command: &str) -> f64 {
    arrived(&transfer(command))
}

/// Retransmitted segments.
pub(crate) fn retransmitted(document: &Value) -> f64 {
    number(document, "/end/sum_sent/retransmits")
}

/// Largest observed congestion window in bytes.
pub(crate) fn largest_window(document: &Value) -> f64 {
    number(document, "/end/streams/0/sender/max_snd_cwnd")
}

/// Round-trip times in milliseconds that ping prints in a command's output.
pub(crate) fn pings(output: &str) -> Vec<f64> {
    let time = |line: &str| line.split_once(" time=")?.1.strip_suffix(" ms")?.trim().parse().ok();
    let times: Vec<f64> = output.lines().filter_map(time).collect();
    assert!(times.len() >= 9, "{} pings were answered:\n{output}", times.len());
    times
}

/// Mean.
#[expect(clippy::cast_precision_loss, reason = "a few pings")]
pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Goodput of a link in Mbit/s when TCP with timestamps over IPv4 fills it: the lab's links count Ethernet's header. A
/// bound allows two thousandths more, for the queue at both edges of a measurement.
pub(crate) fn ceiling(rate: f64, mtu: f64) -> f64 {
    rate * (mtu - 52.0) / (mtu + 14.0)
}
