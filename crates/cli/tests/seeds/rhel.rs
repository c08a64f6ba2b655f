//! Guide to tuning TCP for high throughput: 10 Gbit/s over 117 ms, and 1 Gbit/s over 1.5 ms.

use super::measure::{arrived, ceiling, goodput, pings, retransmitted, transfer, typed};
use super::table::{Row, Table};

/// Options of a transfer without slow start.
const STEADY: &str = "-t 10 -O 4 -C cubic -Z -l 1M";

/// Rate in Mbit/s that a window carries over 117 ms.
fn window_bound(buffer: f64) -> f64 {
    buffer * 8.0 / 0.117 / 1e6
}

/// The receive buffer is the limit, and its value in the guide comes from a division instead of a product.
pub(crate) fn windows() -> Table {
    let command = |path: &str| format!("lab run {path} -- iperf3 -c far {STEADY}");
    let full = ceiling(10_000.0, 1500.0);
    let limited = |case: &str, path: &str, buffer: f64, seed_report: &str, verdict: &str| Row {
        case: case.to_owned(),
        command: command(path),
        seed_report: seed_report.to_owned(),
        figure: goodput(&command(path)),
        unit: ("Mbit/s", 0),
        bounds: 0.45 * window_bound(buffer)..=window_bound(buffer),
        because: format!(
            "window ≤ buffer: 8 · {buffer:.0} B / 117 ms = {:.0} Mbit/s; overhead takes up to half",
            window_bound(buffer)
        ),
        verdict: verdict.to_owned(),
    };
    Table {
        title: "10 Gbit/s × 117 ms: which window fills it",
        setting: "Steady state: 4 s of start are omitted.".to_owned(),
        rows: vec![
            limited(
                "`tcp_rmem`/`tcp_wmem` maximum 6 291 456 (the default)",
                "rhel-10g-117ms",
                6_291_456.0,
                "the default must be raised",
                "true: 2 to 4 % of the link",
            ),
            limited(
                "maximum 21 367 520 (the guide's recommendation for this very path)",
                "rhel-10g-117ms-guide-window",
                21_367_520.0,
                "twice the bandwidth-delay product “10 683 760 B”",
                "false: 7 to 14 % of the link. The product is 1.25 GB/s · 0.117 s = 146 250 000 B; the guide's figure is the \
                 rate divided by the time",
            ),
            Row {
                case: "maximum 438 750 000 (three times the true product), `tcp_mem` to match".to_owned(),
                command: command("rhel-10g-117ms-large-window"),
                seed_report: "“double or triple the product is often enough”".to_owned(),
                figure: goodput(&command("rhel-10g-117ms-large-window")),
                unit: ("Mbit/s", 0),
                bounds: 0.97 * full..=1.002 * full,
                because: format!("1448 of 1514 B per packet: {full:.0} Mbit/s"),
                verdict: "true, with the true product".to_owned(),
            },
        ],
    }
}

/// Exact round-trip time of the path.
pub(crate) fn round_trip_time() -> Table {
    let command = "lab run rhel-10g-117ms -- ping -i 1 -c 10 far";
    let times = pings(&typed(command));
    let farthest = times.iter().map(|time| (time - 117.0).abs()).fold(0.0, f64::max);
    Table {
        title: "The round-trip time of that path",
        setting: String::new(),
        rows: vec![Row {
            case: "largest distance of any ping from 117.000 ms".to_owned(),
            command: command.to_owned(),
            seed_report: "min/avg/max 117.208/117.056/119.333 ms (a minimum above the average)".to_owned(),
            figure: farthest,
            unit: ("ms", 4),
            bounds: 0.0..=0.01,
            because: "58.5 ms per direction; 98 B at 10 Gbit/s take 0.08 µs".to_owned(),
            verdict: "exact for every ping, the first included".to_owned(),
        }],
    }
}

/// The limit of one connection is useless without the total limit.
pub(crate) fn total_memory() -> Table {
    let command = |path: &str| format!("lab run {path} -- iperf3 -c far {STEADY}");
    let without = command("rhel-10g-117ms-default-memory");
    let share = goodput(&without) / goodput(&command("rhel-10g-117ms-large-window"));
    Table {
        title: "`tcp_mem`: the limit that the guide does not mention",
        setting: "The window is as large as the path wants, `tcp_mem` as a machine with 6 GiB has it.".to_owned(),
        rows: vec![Row {
            case: "`tcp_mem` at the default of 6 GiB, as a share of what the same window carries with enough (above)".to_owned(),
            command: without,
            seed_report: "nothing: only `tcp_rmem` and `tcp_wmem` are to be set".to_owned(),
            figure: share,
            unit: ("", 2),
            bounds: 0.0..=0.75,
            because: "9.37 % of the memory is about 0.6 GB; sender's and receiver's copies of 2 × 146 MB with their overhead \
                      exceed it"
                .to_owned(),
            verdict: "incomplete: a buffer without the total to match stalls".to_owned(),
        }],
    }
}

/// Rate of 1 Gbit/s over 1.5 ms with and without window scaling.
pub(crate) fn window_scaling() -> Table {
    let full = ceiling(1000.0, 1500.0);
    let bound = 65_535.0 * 8.0 / 1.5e-3 / 1e6;
    let on = "lab run rhel-1g-1500us -- iperf3 -c far -t 10 -O 2 -C cubic";
    let off = "lab run rhel-1g-1500us-no-window-scaling -- iperf3 -c far -t 10 -O 2 -C cubic";
    Table {
        title: "Window scaling on 1 Gbit/s × 1.5 ms",
        setting: String::new(),
        rows: vec![
            Row {
                case: "on".to_owned(),
                command: on.to_owned(),
                seed_report: "630 Mbit/s".to_owned(),
                figure: goodput(on),
                unit: ("Mbit/s", 0),
                bounds: 0.97 * full..=1.002 * full,
                because: format!("the product is 187 500 B: the link is the limit, {full:.0} Mbit/s"),
                verdict: "the link can be filled; 630 was the host".to_owned(),
            },
            Row {
                case: "off".to_owned(),
                command: off.to_owned(),
                seed_report: "380 Mbit/s".to_owned(),
                figure: goodput(off),
                unit: ("Mbit/s", 0),
                bounds: 0.6 * bound..=bound,
                because: format!("window ≤ 65 535 B: {bound:.1} Mbit/s"),
                verdict: "right in kind; 380 is above what 16 bits of window allow at 1.5 ms".to_owned(),
            },
        ],
    }
}

/// Benefit of selective acknowledgements when a queue overflows.
pub(crate) fn selective_acknowledgement() -> Table {
    let full = ceiling(300.0, 1500.0);
    let on = "lab run 300m-20ms-half-buffer -- iperf3 -c far -t 15 -O 2 -C cubic";
    let off = "lab run 300m-20ms-half-buffer-no-sack -- iperf3 -c far -t 15 -O 2 -C cubic";
    let (with, without) = (transfer(on), transfer(off));
    let share = arrived(&without) / arrived(&with);
    Table {
        title: "Selective acknowledgements at a drop-tail queue of half a bandwidth-delay product",
        setting: "300 Mbit/s × 20.1 ms".to_owned(),
        rows: vec![
            Row {
                case: "on".to_owned(),
                command: on.to_owned(),
                seed_report: "“disabling SACK lowers performance”".to_owned(),
                figure: arrived(&with),
                unit: ("Mbit/s", 0),
                bounds: 0.6 * full..=1.002 * full,
                because: format!(
                    "CUBIC falls to 0.7 of its window, the queue holds half of one: 60 to 100 % of {full:.0} Mbit/s"
                ),
                verdict: format!("{:.0} retransmissions", retransmitted(&with)),
            },
            Row {
                case: "off, as a share of that".to_owned(),
                command: off.to_owned(),
                seed_report: "the slides switch it off as a “big gainer”".to_owned(),
                figure: share,
                unit: ("", 2),
                bounds: 0.0..=0.8,
                because: "without it one hole is repaired per round trip".to_owned(),
                verdict: "never switch it off".to_owned(),
            },
        ],
    }
}
