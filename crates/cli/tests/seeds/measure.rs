//! Shared parts of the experiments.

use serde_json::Value;

use crate::support::document::number;
use crate::support::lab::{OwnPath, lab, lab_iperf3};

/// Received rate in Mbit/s, over the measured time.
pub(crate) fn arrived(document: &Value) -> f64 {
    number(document, "/end/sum_received/bits_per_second") / 1e6
}

/// Retransmitted segments.
pub(crate) fn retransmitted(document: &Value) -> f64 {
    number(document, "/end/sum_sent/retransmits")
}

/// Largest observed congestion window in bytes.
pub(crate) fn largest_window(document: &Value) -> f64 {
    number(document, "/end/streams/0/sender/max_snd_cwnd")
}

/// Runs linerate's iperf3 over a path of the library, and returns the received rate.
pub(crate) fn goodput(path: &str, arguments: &str) -> f64 {
    arrived(&transfer(path, arguments))
}

/// Runs linerate's iperf3 over a path of the library or of a file.
pub(crate) fn transfer(path: &str, arguments: &str) -> Value {
    lab_iperf3(path, &arguments.split(' ').collect::<Vec<_>>())
}

/// Symmetric path: rate in Mbit/s, one-way delay in ms, additional keys of the link, and of both hosts.
pub(crate) fn path(rate: f64, delay: f64, link: &str, hosts: &str) -> OwnPath {
    OwnPath::new(&format!(
        "[host.near]\n{hosts}\n[host.far]\n{hosts}\n\n[[link]]\nbetween = [\"near\", \"far\"]\n\
         rate = \"{rate} Mbit/s\"\ndelay = \"{delay} ms\"\n{link}\n"
    ))
}

/// Buffers of both hosts beyond any window.
pub(crate) const AMPLE: &str =
    "sysctl = { \"net.ipv4.tcp_rmem\" = \"4096 131072 268435456\", \"net.ipv4.tcp_wmem\" = \"4096 131072 268435456\" }";

/// Round-trip times of ping in milliseconds, while `load` (a shell command, or empty) runs.
pub(crate) fn pings(path: &str, count: u32, load: &str) -> Vec<f64> {
    let script = format!("{load} ping -i 1 -c {count} far");
    let output = lab(path, &["sh", "-c", &script]).stdout;
    let times: Vec<f64> = output
        .lines()
        .filter_map(|line| line.split_once(" time=")?.1.strip_suffix(" ms")?.trim().parse().ok())
        .collect();
    assert!(times.len() * 10 >= count as usize * 9, "{} of {count} pings were answered:\n{output}", times.len());
    times
}

/// Median.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

/// Goodput of a link in Mbit/s when TCP with timestamps over IPv4 fills it: the lab's links count Ethernet's header. A
/// bound allows two thousandths more, for the queue at both edges of a measurement.
pub(crate) fn ceiling(rate: f64, mtu: f64) -> f64 {
    rate * (mtu - 52.0) / (mtu + 14.0)
}
