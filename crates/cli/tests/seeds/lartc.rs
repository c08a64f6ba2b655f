//! Traffic conditioner: an ADSL link of the year 2002, unshaped and shaped.

use std::ops::RangeInclusive;

use super::measure::{mean, pings, typed};
use super::table::{Row, Table};

/// Time in milliseconds to drain this number of packets at this rate in kbit/s.
fn drain(packets: f64, kilobits: f64) -> f64 {
    packets * 1514.0 * 8.0 / kilobits
}

const IDLE: f64 = 18.5;

const DOWN: &str = "linerate iperf3 -c far -R -t 90 -C cubic >/dev/null & sleep 30; ";
const UP: &str = "linerate iperf3 -c far -t 90 -C cubic >/dev/null & sleep 30; ";
const BOTH: &str = "linerate iperf3 -c far -t 90 -C cubic >/tmp/up & \
    linerate iperf3 -c far -R -t 90 -C cubic >/tmp/down & sleep 30; ";
const RATES: &str = "; wait; grep -h receiver /tmp/up /tmp/down";

/// The published script, and linerate's own choice, at 220 of 240 kbit/s up and 800 of 900 down.
const SCRIPT: &str = "linerate shape eth0 --up 220k --down 800k --back-end lartc-htb >/dev/null; ";
const CAKE: &str = "linerate shape eth0 --up 220k --down 800k --back-end cake >/dev/null; ";

/// Command that shapes, loads and then sends 20 pings.
fn pinging(shaper: &str, load: &str) -> String {
    if shaper.is_empty() && load.is_empty() {
        return "lab run xs4all-adsl -- ping -c 20 far".to_owned();
    }
    format!("lab run xs4all-adsl -- sh -c '{shaper}{load}ping -c 20 far'")
}

fn row(
    case: &str,
    command: String,
    seed_report: &str,
    bounds: RangeInclusive<f64>,
    because: String,
    verdict: &str,
) -> Row {
    let times = pings(&typed(&command));
    let (least, most) =
        times.iter().fold((f64::MAX, 0.0_f64), |(least, most), time| (least.min(*time), most.max(*time)));
    Row {
        case: case.to_owned(),
        command,
        seed_report: seed_report.to_owned(),
        figure: mean(&times),
        unit: ("ms", 1),
        bounds,
        because,
        verdict: format!("{verdict}; {least:.1}/{:.1}/{most:.1} ms", mean(&times)),
    }
}

/// Unshaped link behind the modem's queue.
pub(crate) fn unshaped() -> Table {
    let (down, up) = (drain(45.0, 900.0), drain(45.0, 240.0));
    Table {
        title: "The ADSL line, unshaped",
        setting: "Mean of 20 pings; the verdict has smallest/mean/largest, as ping prints them.".to_owned(),
        rows: vec![
            row(
                "idle",
                pinging("", ""),
                "14.4/17.1/21.7 ms",
                18.0..=24.0,
                "18 ms and the time of 98 B at 240 and 900 kbit/s".to_owned(),
                "the same line",
            ),
            row(
                "full download",
                pinging("", DOWN),
                "560.9/573.6/586.4 ms",
                0.5 * down..=1.05 * (down + IDLE),
                format!("a queue of 45 packets at 900 kbit/s is {down:.0} ms long"),
                "reproduced, twenty years later",
            ),
            row(
                "full upload",
                pinging("", UP),
                "2041.4/2332.1/2427.6 ms",
                0.5 * up..=1.05 * (up + IDLE),
                format!("a queue of 45 packets at 240 kbit/s is {up:.0} ms long"),
                "reproduced",
            ),
        ],
    }
}

/// Link with the conditioner, and with CAKE.
pub(crate) fn shaped() -> Table {
    let one_packet = drain(1.0, 220.0);
    let bounds = || IDLE..=IDLE + 2.0 * one_packet;
    let because = || format!("idle, and at most two packets of {one_packet:.0} ms each before the ping");
    Table {
        title: "The ADSL line, shaped",
        setting: "The same line; the shaper is on the near host.".to_owned(),
        rows: vec![
            row(
                "the script (HTB, SFQ, policer), full upload",
                pinging(SCRIPT, UP),
                "15.7/51.8/79.9 ms",
                bounds(),
                because(),
                "the promise holds",
            ),
            row(
                "the script, full download",
                pinging(SCRIPT, DOWN),
                "20.4/46.9/74.0 ms",
                IDLE..=IDLE + 0.25 * drain(45.0, 900.0),
                "the policer keeps the queue mostly empty: at most a quarter of it".to_owned(),
                "holds, at the price of drops",
            ),
            row(
                "CAKE, full upload",
                pinging(CAKE, UP),
                "not yet written",
                bounds(),
                because(),
                "as good, without a classifier",
            ),
            row(
                "CAKE, full download",
                pinging(CAKE, DOWN),
                "not yet written",
                IDLE..=IDLE + 0.25 * drain(45.0, 900.0),
                "a shaper behind the bottleneck keeps its queue mostly empty".to_owned(),
                "holds, without a policer's drops",
            ),
        ],
    }
}

/// Received rates in kbit/s that iperf3 prints for the upload and the download.
fn received(output: &str) -> Vec<f64> {
    let rate = |line: &str| line.split_once(" Kbits/sec")?.0.rsplit(' ').next()?.parse().ok();
    output.lines().filter(|line| line.contains("receiver")).filter_map(rate).collect()
}

/// Both directions full.
pub(crate) fn both() -> Table {
    let (up_queue, down_queue) = (drain(45.0, 240.0), drain(45.0, 900.0));
    let mut rows = Vec::new();
    for (shaper, name, most) in [
        ("", "without the script", 1.05 * (up_queue + down_queue + IDLE)),
        (SCRIPT, "the script", IDLE + 4.0 * drain(1.0, 220.0)),
        (CAKE, "CAKE", IDLE + 4.0 * drain(1.0, 220.0)),
    ] {
        let command = format!("lab run xs4all-adsl -- sh -c '{shaper}{BOTH}ping -c 20 far{RATES}'");
        let output = typed(&command);
        let (times, rates) = (pings(&output), received(&output));
        let [up, down] = rates[..] else { panic!("two rates expected:\n{output}") };
        rows.push(Row {
            case: format!("{name}, mean round trip"),
            command,
            seed_report: "80 % down, 90 % up, 850 ms “for an unknown reason”".to_owned(),
            figure: mean(&times),
            unit: ("ms", 0),
            bounds: IDLE..=most,
            because: "at most both queues; shaped, four packets at 220 kbit/s".to_owned(),
            verdict: format!("{:.0} % of the line down, {:.0} % up", down / 900.0 * 100.0, up / 240.0 * 100.0),
        });
    }
    Table {
        title: "The ADSL line, both directions full",
        setting: "Acknowledgements of each transfer wait in the queue of the other one.".to_owned(),
        rows,
    }
}
