//! Paths with a link layer: rates by the size of packets, and shapers that count the link's bytes or not.

use super::guest::run;
use crate::support::document::number;

/// Payloads of UDP, and the cells that a packet of each takes with its headers (28 bytes) and those of the link (40).
const PAYLOADS: [(u32, f64); 4] = [(20, 2.0), (172, 5.0), (173, 6.0), (1464, 32.0)];

/// A payload's share of the cells is the goodput's share of the link's 8128 kbit/s.
#[test]
fn goodput_follows_from_the_cells_of_a_packet() {
    let script = PAYLOADS.map(|(payload, cells)| {
        let offered = 1.2 * 8128e3 * f64::from(payload) / (cells * 53.0);
        format!("echo '== {payload}'; \"$L\" iperf3 -c far -u -R -l {payload} -b {offered:.0} -O 1 -t 1 -J; sleep 1\n")
    });
    let said = run("adsl-atm-pppoe", &script.concat());
    for (payload, cells) in PAYLOADS {
        let document = said.document(&payload.to_string());
        let intervals = document["intervals"].as_array().expect("intervals");
        let last = intervals.last().expect("one");
        let measured = number(last, "/sum/bits_per_second");
        let expected = 8128e3 * f64::from(payload) / (cells * 53.0);
        assert!((measured / expected - 1.0).abs() < 0.01, "{payload} B: {measured} of {expected} bit/s");
    }
}

/// Mean of the pings under a full uplink in ms, and the goodput in bit/s, with these options of the shaper.
fn shaped(path: &str, rates: &str, options: &str) -> (f64, f64) {
    let script = format!(
        "shape eth0 {rates} {options} -q > /dev/null; \"$L\" iperf3 -c far -C cubic -O 6 -t 10 -J > up &\n\
         sleep 6; ping -n -i 0.21 -w 9 far | sed -n 's|.* = [0-9.]*/\\([0-9.]*\\)/.*|ping: \\1|p'; wait\n\
         shape eth0 off -q > /dev/null; echo '== up'; cat up"
    );
    let said = run(path, &script);
    let goodput = number(&said.document("up"), "/end/sum_received/bits_per_second");
    (said.value("ping").parse().expect("a time"), goodput)
}

/// 950 of 1024 kbit/s: without the cells, the shaper lets 1.13 times as much through, which fills the modem's 500 ms.
#[test]
fn a_shaper_that_counts_cells_keeps_the_queue() {
    let rates = "--up 950k --down 7500k";
    let (delay, goodput) = shaped("adsl-atm-pppoe", rates, "--link-layer pppoe-llcsnap");
    assert!(delay < 60.0, "{delay} ms");
    // 1440 bytes of payload in 1696.
    assert!((0.97..=1.0).contains(&(goodput / (950e3 * 1440.0 / 1696.0))), "{goodput} bit/s");
    let (delay, _) = shaped("adsl-atm-pppoe", rates, "");
    assert!(delay > 200.0, "{delay} ms");
}

/// 9.7 of 10 Mbit/s: PTM and 30 bytes make 1.024 of it where the shaper counts 14.
#[test]
fn a_shaper_that_counts_ptm_keeps_the_queue() {
    let rates = "--up 9700k --down 48M";
    let (delay, goodput) = shaped("vdsl2-ptm-pppoe", rates, "--link-layer pppoe-ptm");
    assert!(delay < 25.0, "{delay} ms");
    assert!((0.97..=1.0).contains(&(goodput / (9.7e6 * 1440.0 / 1545.8))), "{goodput} bit/s");
    let (delay, _) = shaped("vdsl2-ptm-pppoe", "--up 9900k --down 48M", "");
    assert!(delay > 100.0, "{delay} ms");
}
