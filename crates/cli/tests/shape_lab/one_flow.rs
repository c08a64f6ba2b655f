//! One flow through the queues of kernels that have HTB alone, at round-trip times that need a longer queue.

use super::guest::run;
use crate::support::document::number;
use crate::support::lab::OwnPath;

/// Rates in kbit/s with round-trip times in ms. docs/shaping.md has the whole table.
const CASES: [(u32, u32); 4] = [(200, 5), (1000, 50), (2000, 50), (20_000, 5)];

/// Share of the given rate by which packets that are received slowly are shaped lower, at most.
const MAX_MARGIN: f64 = 0.05;

#[test]
fn one_flow_fills_the_rate_over_a_distance() {
    for (kilobits, milliseconds) in CASES {
        let path = OwnPath::new(&format!(
            "[host.near]\n[host.far]\n[[link]]\nbetween = [\"near\", \"far\"]\nrate = \"100 Mbit/s\"\n\
             delay = \"{} us\"\nbuffer = \"1 MB\"\n",
            milliseconds * 500
        ));
        let script = format!(
            "shape eth0 --up {kilobits}k --down {kilobits}k --back-end htb+bfifo -q > /dev/null
             \"$L\" iperf3 -c far -C cubic -O 8 -t 12 -J > up; \"$L\" iperf3 -c far -R -C cubic -O 8 -t 12 -J > down
             echo '== up'; cat up; echo '== down'; cat down"
        );
        let said = run(&path.file, &script);
        for (direction, least) in [("up", 0.95), ("down", 0.95 * (1.0 - MAX_MARGIN))] {
            let received = number(&said.document(direction), "/end/sum_received/bits_per_second");
            // 1448 of 1514 bytes are payload.
            let share = received * 1514.0 / 1448.0 / (f64::from(kilobits) * 1e3);
            assert!((least..=1.01).contains(&share), "{kilobits} kbit/s, {milliseconds} ms, {direction}: {share:.3}");
        }
    }
}
