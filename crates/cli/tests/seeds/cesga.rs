//! Slides on 10G TCP: 1 Gbit/s over 53 ms with frames of 9000 bytes, clean and with loss.

use std::ops::RangeInclusive;

use super::measure::{ceiling, goodput};
use super::table::{Row, Table};

/// Loss of one packet in 36 000, which explains the slides' 256 Mbit/s by Mathis's formula with a constant of 1.
const LOSS: f64 = 2.8e-5;

/// Rate of Reno under random loss in Mbit/s (Mathis et al. 1997): C · MSS / (RTT · √p), C = √1.5 when each segment is
/// acknowledged on its own, smaller with delayed acknowledgements.
fn mathis(constant: f64, segment: f64, round_trip: f64, loss: f64) -> f64 {
    constant * segment * 8.0 / (round_trip * loss.sqrt()) / 1e6
}

/// Rate of CUBIC under random loss in Mbit/s (RFC 9438, section 5.1, β = 0.7, C = 0.4).
fn cubic(segment: f64, round_trip: f64, loss: f64) -> f64 {
    1.054 * round_trip.powf(0.75) / loss.powf(0.75) * segment * 8.0 / round_trip / 1e6
}

/// Path of the slides without loss.
pub(crate) fn clean_path() -> Table {
    let full = ceiling(1000.0, 9000.0);
    let command = "lab run cesga-1g-53ms -- iperf3 -c far -t 20 -O 5 -C cubic";
    Table {
        title: "1 Gbit/s × 53 ms, frames of 9000 bytes",
        setting: String::new(),
        rows: vec![Row {
            case: "without loss".to_owned(),
            command: command.to_owned(),
            seed_report: "780 Mbit/s in the good direction; ideal window “6.75 MB”".to_owned(),
            figure: goodput(command),
            unit: ("Mbit/s", 0),
            bounds: 0.97 * full..=1.002 * full,
            because: format!("8948 of 9014 B per packet: {full:.0} Mbit/s"),
            verdict: "the product is 6 625 000 B; 780 was not the path's limit".to_owned(),
        }],
    }
}

/// Rate of each congestion control under the loss that explains the slides' bad direction.
pub(crate) fn congestion_controls() -> Table {
    let full = ceiling(1000.0, 9000.0);
    let reno = mathis(1.5_f64.sqrt(), 8948.0, 0.053, LOSS);
    let cubic = cubic(8948.0, 0.053, LOSS);
    // Rates determined by the loss need many losses; those near the link rate do not.
    let seconds = |name: &str| if ["reno", "cubic"].contains(&name) { 400 } else { 120 };
    let command =
        |name: &str| format!("lab run cesga-1g-53ms-lossy -- iperf3 -c far -t {} -O 20 -i 10 -C {name}", seconds(name));
    let row = |name: &str, bounds: RangeInclusive<f64>, because: String, verdict: &str| Row {
        case: name.to_owned(),
        command: command(name),
        seed_report: if name == "cubic" { "256 Mbit/s in the bad direction" } else { "to be compared" }.to_owned(),
        figure: goodput(&command(name)),
        unit: ("Mbit/s", 0),
        bounds,
        because,
        verdict: verdict.to_owned(),
    };
    let between = format!("between 0.7 × Reno's {reno:.0} Mbit/s and the link");
    Table {
        title: "One packet lost in 36 000: six congestion controls",
        setting: "1 Gbit/s × 53 ms, MTU 9000, loss 0.0028 %; rates that losses determine need 400 s.".to_owned(),
        rows: vec![
            row(
                "reno",
                0.7 * reno..=1.4 * reno,
                format!("Mathis, C = √1.5: {reno:.0} Mbit/s; some 60 losses: 0.7 to 1.4 of it"),
                "256 Mbit/s is Reno's rate with C = 1: loss explains the slides' figure",
            ),
            row(
                "cubic",
                0.7 * cubic..=1.6 * cubic,
                format!(
                    "RFC 9438 §5.1: {cubic:.0} Mbit/s; some 60 losses, which count to the power of ¾: 0.7 to 1.6 of it"
                ),
                "better than Reno",
            ),
            row("bic", 0.7 * reno..=1.01 * full, between.clone(), "the default of the slides' time"),
            row("htcp", 0.7 * reno..=1.01 * full, between.clone(), "grows with the time since the last loss"),
            row(
                "westwood",
                0.7 * reno..=1.01 * full,
                between,
                "“for networks with losses”: it sets its window by the estimated rate",
            ),
            row(
                "bbr",
                0.9 * full..=1.01 * full,
                format!("90 % of {full:.0} Mbit/s: random loss is no signal to it"),
                "fills the link",
            ),
        ],
    }
}

/// Loss rates of the published table, in percent. The lower the loss, the more data flows.
pub(crate) const LOSS_RATES: [f64; 5] = [0.01, 0.03, 0.1, 0.3, 1.0];

/// Mathis's formula against Reno at these loss rates, in percent.
pub(crate) fn mathis_formula(loss_rates: &[f64]) -> Table {
    let rows = loss_rates
        .iter()
        .map(|percent| {
            let command =
                format!("lab run --rate 1G --rtt 20ms --loss {percent}% -- iperf3 -c far -t 60 -O 5 -i 10 -C reno");
            let expected = mathis(1.5_f64.sqrt(), 1448.0, 0.02, percent / 100.0);
            // Above half a percent, losses of retransmissions cost timeouts that the formula does not model.
            let low = if *percent > 0.5 { 0.5 } else { 0.75 };
            Row {
                case: format!("loss {percent} %"),
                seed_report: format!("C = 1: {:.1} Mbit/s", mathis(1.0, 1448.0, 0.02, percent / 100.0)),
                figure: goodput(&command),
                command,
                unit: ("Mbit/s", 1),
                bounds: low * expected..=1.2 * expected,
                because: format!("C = √1.5: {expected:.1} Mbit/s, {low} to 1.2 of it"),
                verdict: "the formula holds".to_owned(),
            }
        })
        .collect();
    Table {
        title: "Mathis's formula against Reno",
        setting: "1 Gbit/s × 20 ms, MTU 1500, random loss".to_owned(),
        rows,
    }
}

/// Frames of 9000 bytes against 1500.
pub(crate) fn frame_size() -> Table {
    let command = |mtu: u32, loss: &str, options: &str| {
        format!("lab run --rate 1G --rtt 20ms --mtu {mtu}{loss} -- iperf3 -c far {options} -C reno")
    };
    let clean = |mtu: u32| command(mtu, "", "-t 10 -O 3");
    let lossy = |mtu: u32| command(mtu, " --loss 0.05%", "-t 60 -O 5 -i 10");
    let row = |mtu: u32| {
        let full = ceiling(1000.0, f64::from(mtu));
        Row {
            case: format!("MTU {mtu}, clean"),
            command: clean(mtu),
            seed_report: "3.9 Gbit/s became 6.3 with larger frames: the processor was the limit".to_owned(),
            figure: goodput(&clean(mtu)),
            unit: ("Mbit/s", 1),
            bounds: 0.98 * full..=1.002 * full,
            because: format!("headers: {full:.1} Mbit/s"),
            verdict: "on the link itself larger frames bring 4 %".to_owned(),
        }
    };
    let gain = goodput(&lossy(9000)) / goodput(&lossy(1500));
    Table {
        title: "Frames of 9000 bytes",
        setting: "1 Gbit/s × 20 ms".to_owned(),
        rows: vec![
            row(1500),
            row(9000),
            Row {
                case: "with 0.05 % loss: rate at 9000 over rate at 1500 (`--mtu 1500`)".to_owned(),
                command: lossy(9000),
                seed_report: "rate ∝ MSS".to_owned(),
                figure: gain,
                unit: ("×", 2),
                bounds: 0.75 * 8948.0 / 1448.0..=1.3 * 8948.0 / 1448.0,
                because: "Mathis: 8948 / 1448 = 6.18".to_owned(),
                verdict: "where loss is the limit, larger frames bring their whole factor".to_owned(),
            },
        ],
    }
}

/// Benefit of the slides' advice to disable timestamps.
pub(crate) fn timestamps() -> Table {
    let on = "lab run 300m-20ms-half-buffer -- iperf3 -c far -t 20 -O 2 -C cubic";
    let off = "lab run 300m-20ms-half-buffer-no-timestamps -- iperf3 -c far -t 20 -O 2 -C cubic";
    Table {
        title: "Timestamps off",
        setting: format!("300 Mbit/s × 20.1 ms, drop-tail queue of half a product; timestamps on: `{on}`"),
        rows: vec![Row {
            case: "rate with timestamps off over rate with them on".to_owned(),
            command: off.to_owned(),
            seed_report: "switch them off".to_owned(),
            figure: goodput(off) / goodput(on),
            unit: ("×", 3),
            bounds: 0.6..=1.25,
            because: "12 of 1448 B are saved: 0.8 %; the remainder is random variation of the losses, 60 to 100 % of the link"
                .to_owned(),
            verdict: "nothing to gain; protection against wrapped sequence numbers is lost".to_owned(),
        }],
    }
}

/// Memory to memory at 10 Gbit/s, when processors and queues do not limit.
pub(crate) fn ten_gigabits() -> Table {
    let full = ceiling(10_000.0, 9000.0);
    let command = |options: &str| {
        format!("lab run --rate 10G --rtt 200us --mtu 9000 --buffer 2MB -- iperf3 -c far -t 3 -O 1 {options}")
    };
    let row = |case: &str, options: &str, seed_report: &str, least: f64, verdict: &str| Row {
        case: case.to_owned(),
        command: command(options),
        seed_report: seed_report.to_owned(),
        figure: goodput(&command(options)),
        unit: ("Mbit/s", 0),
        bounds: least * full..=1.002 * full,
        because: format!("8948 of 9014 B per packet: {full:.0} Mbit/s"),
        verdict: verdict.to_owned(),
    };
    Table {
        title: "10 Gbit/s, frames of 9000 bytes",
        setting: String::new(),
        rows: vec![
            row("four flows", "-P 4", "9.92 Gbit/s with several flows", 0.99, "exact: the link was full"),
            row(
                "both directions at once, each",
                "--bidir",
                "9.5 Gbit/s in both directions",
                0.85,
                "acknowledgements and their bursts take the remainder",
            ),
        ],
    }
}
