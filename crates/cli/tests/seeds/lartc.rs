//! Traffic conditioner: an ADSL link of the year 2002, unshaped and shaped.

use std::ops::RangeInclusive;

use crate::measure::{median, pings};
use crate::table::{Row, Table};

/// Time in milliseconds to drain this number of packets at this rate in kbit/s.
fn drain(packets: f64, kilobits: f64) -> f64 {
    packets * 1514.0 * 8.0 / kilobits
}

const IDLE: f64 = 18.5;
const DOWN: &str = "linerate iperf3 -c far -R -t 90 -C cubic >/dev/null & sleep 30;";
const UP: &str = "linerate iperf3 -c far -t 90 -C cubic >/dev/null & sleep 30;";

fn row(case: &str, seed_report: &str, figure: f64, bounds: RangeInclusive<f64>, because: String, verdict: &str) -> Row {
    Row {
        case: case.to_owned(),
        seed_report: seed_report.to_owned(),
        figure,
        unit: ("ms", 1),
        bounds,
        because,
        verdict: verdict.to_owned(),
    }
}

/// Unshaped link behind the modem's queue.
pub(crate) fn unshaped() -> Table {
    let (down, up) = (drain(45.0, 900.0), drain(45.0, 240.0));
    Table {
        title: "The ADSL line, unshaped",
        setting: "`lab:xs4all-adsl`, 20 pings, median; load by one `iperf3 -C cubic` for 30 s before".to_owned(),
        rows: vec![
            row(
                "idle",
                "14.4/17.1/21.7 ms",
                median(&pings("xs4all-adsl", 20, "")),
                18.0..=24.0,
                "18 ms and the time of 98 B at 240 and 900 kbit/s".to_owned(),
                "the same line",
            ),
            row(
                "full download",
                "560.9/573.6/586.4 ms",
                median(&pings("xs4all-adsl", 20, DOWN)),
                0.5 * down..=1.05 * (down + IDLE),
                format!("a queue of 45 packets at 900 kbit/s is {down:.0} ms long"),
                "reproduced, twenty years later",
            ),
            row(
                "full upload",
                "2041.4/2332.1/2427.6 ms",
                median(&pings("xs4all-adsl", 20, UP)),
                0.5 * up..=1.05 * (up + IDLE),
                format!("a queue of 45 packets at 240 kbit/s is {up:.0} ms long"),
                "reproduced",
            ),
        ],
    }
}

/// HTB variant of the conditioner: 220 of 240 kbit/s up, 800 of 900 down.
const CONDITIONER: &str = "tc qdisc add dev eth0 root handle 1: htb default 20; \
    tc class add dev eth0 parent 1: classid 1:1 htb rate 220kbit burst 6k; \
    tc class add dev eth0 parent 1:1 classid 1:10 htb rate 220kbit burst 6k prio 1; \
    tc class add dev eth0 parent 1:1 classid 1:20 htb rate 198kbit burst 6k prio 2; \
    tc qdisc add dev eth0 parent 1:10 handle 10: sfq perturb 10; \
    tc qdisc add dev eth0 parent 1:20 handle 20: sfq perturb 10; \
    tc filter add dev eth0 parent 1:0 protocol ip prio 10 u32 match ip tos 0x10 0xff flowid 1:10; \
    tc filter add dev eth0 parent 1:0 protocol ip prio 10 u32 match ip protocol 1 0xff flowid 1:10; \
    tc filter add dev eth0 parent 1: protocol ip prio 10 u32 match ip protocol 6 0xff match u8 0x05 0x0f at 0 \
    match u16 0x0000 0xffc0 at 2 match u8 0x10 0xff at 33 flowid 1:10; \
    tc qdisc add dev eth0 handle ffff: ingress; \
    tc filter add dev eth0 parent ffff: protocol ip prio 50 u32 match ip src 0.0.0.0/0 police rate 800kbit burst 10k \
    drop flowid :1; ";

/// CAKE in both directions, for received traffic through an intermediate device.
const CAKE: &str = "tc qdisc add dev eth0 root cake bandwidth 220kbit; \
    ip link add ifb4eth0 type ifb; ip link set ifb4eth0 up; tc qdisc add dev ifb4eth0 root cake bandwidth 800kbit; \
    tc qdisc add dev eth0 handle ffff: ingress; \
    tc filter add dev eth0 parent ffff: matchall action mirred egress redirect dev ifb4eth0; ";

/// Link with the conditioner, and with CAKE.
pub(crate) fn shaped() -> Table {
    let one_packet = drain(1.0, 220.0);
    let bounds = || IDLE..=IDLE + 2.0 * one_packet;
    let measured = |shaper: &str, load: &str| median(&pings("xs4all-adsl", 20, &format!("{shaper}{load}")));
    let because = || format!("idle, and at most two packets of {one_packet:.0} ms each before the ping");
    Table {
        title: "The ADSL line, shaped",
        setting: "the same line; the shaper on the near host, at 220 kbit/s up and 800 kbit/s down".to_owned(),
        rows: vec![
            row(
                "the script (HTB, SFQ, policer), full upload",
                "15.7/51.8/79.9 ms",
                measured(CONDITIONER, UP),
                bounds(),
                because(),
                "the promise holds",
            ),
            row(
                "the script, full download",
                "20.4/46.9/74.0 ms",
                measured(CONDITIONER, DOWN),
                IDLE..=IDLE + 0.25 * drain(45.0, 900.0),
                "the policer keeps the queue mostly empty: at most a quarter of it".to_owned(),
                "holds, at the price of drops",
            ),
            row(
                "CAKE, full upload",
                "not yet written",
                measured(CAKE, UP),
                bounds(),
                because(),
                "as good, without a classifier",
            ),
            row(
                "CAKE, full download",
                "not yet written",
                measured(CAKE, DOWN),
                IDLE..=IDLE + 0.25 * drain(45.0, 900.0),
                "a shaper behind the bottleneck keeps its queue mostly empty".to_owned(),
                "holds, without a policer's drops",
            ),
        ],
    }
}
