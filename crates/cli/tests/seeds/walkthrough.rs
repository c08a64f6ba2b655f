//! Walkthrough of iperf3: a constant window of 2.48 MB, and `-w`.

use super::measure::{arrived, ceiling, goodput, largest_window, retransmitted, transfer};
use super::table::{Row, Table};

/// Constant window without loss.
pub(crate) fn frozen_window() -> Table {
    let command = "lab run iperf3-walkthrough-139ms -- iperf3 -c far -t 10 -O 3 -N -C cubic";
    let document = transfer(command);
    let bound = 2.48 * 1_048_576.0 * 8.0 / 0.139 / 1e6;
    Table {
        title: "Constant window",
        setting: String::new(),
        rows: vec![
            Row {
                case: "rate".to_owned(),
                command: command.to_owned(),
                seed_report: "17.9 MB/s (150 Mbit/s), 0 retransmissions".to_owned(),
                figure: arrived(&document),
                unit: ("Mbit/s", 0),
                bounds: 0.8 * bound..=1.1 * bound,
                because: format!("8 · 2.48 MiB / 139 ms = {bound:.0} Mbit/s"),
                verdict: "the author looked for the limit in the network; it was the buffer".to_owned(),
            },
            Row {
                case: "retransmissions".to_owned(),
                command: command.to_owned(),
                seed_report: "0".to_owned(),
                figure: retransmitted(&document),
                unit: ("segments", 0),
                bounds: 0.0..=0.0,
                because: "nothing is lost on this path".to_owned(),
                verdict: "a flat rate without loss is a window".to_owned(),
            },
            Row {
                case: "largest congestion window".to_owned(),
                command: command.to_owned(),
                seed_report: "2.48 MB, from the second second on".to_owned(),
                figure: largest_window(&document) / 1_048_576.0,
                unit: ("MiB", 2),
                bounds: 0.8 * 2.48..=2.1 * 2.48,
                because: "it grows only while it is used: to twice the bytes in flight in slow start".to_owned(),
                verdict: "frozen, because the window is never full".to_owned(),
            },
        ],
    }
}

/// Windows of the published table, in KiB.
pub(crate) const WINDOWS: [f64; 5] = [64.0, 96.0, 128.0, 160.0, 192.0];

/// Sweep of `-w` over these windows, in KiB.
pub(crate) fn window_sweep(windows: &[f64]) -> Table {
    let full = ceiling(300.0, 1500.0);
    let rows = windows
        .iter()
        .map(|kibibytes| {
            let bound = kibibytes * 1024.0 * 8.0 / 0.0201 / 1e6;
            let command = format!("lab run 300m-20ms -- iperf3 -c far -t 10 -O 2 -C cubic -w {kibibytes:.0}K");
            Row {
                case: format!("`-w {kibibytes:.0}K`"),
                seed_report: "vary `-w` to find the pressure point".to_owned(),
                figure: goodput(&command),
                command,
                unit: ("Mbit/s", 1),
                bounds: 0.8 * bound..=1.002 * full.min(2.0 * bound),
                because: format!(
                    "8 · W / RTT = {bound:.1} Mbit/s; the kernel doubles W for its overhead, so up to twice that"
                ),
                verdict: "the rate follows the window in proportion".to_owned(),
            }
        })
        .collect();
    Table { title: "`-w` decides", setting: "300 Mbit/s × 20.1 ms".to_owned(), rows }
}
