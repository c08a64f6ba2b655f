//! Slides on 10G TCP: 1 Gbit/s over 53 ms with frames of 9000 bytes, clean and with loss.

use std::ops::RangeInclusive;

use crate::measure::{AMPLE, arrived, ceiling, path, transfer};
use crate::table::{Row, Table};

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
    Table {
        title: "1 Gbit/s × 53 ms, frames of 9000 bytes",
        setting: "`lab:cesga-1g-53ms`, `iperf3 -t 20 -O 5 -C cubic`".to_owned(),
        rows: vec![Row {
            case: "without loss".to_owned(),
            seed_report: "780 Mbit/s in the good direction; ideal window “6.75 MB”".to_owned(),
            figure: arrived(&transfer("cesga-1g-53ms", "-t 20 -O 5 -C cubic")),
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
    let own = path(1000.0, 26.5, "mtu = 9000\nloss = \"0.0028 %\"\n", AMPLE);
    // Rates determined by the loss need many losses; those near the link rate do not.
    let seconds = |name: &str| if ["reno", "cubic"].contains(&name) { 400 } else { 120 };
    let row = |name: &str, bounds: RangeInclusive<f64>, because: String, verdict: &str| Row {
        case: name.to_owned(),
        seed_report: if name == "cubic" { "256 Mbit/s in the bad direction" } else { "to be compared" }.to_owned(),
        figure: arrived(&transfer(&own.file, &format!("-t {} -O 20 -i 10 -C {name}", seconds(name)))),
        unit: ("Mbit/s", 0),
        bounds,
        because,
        verdict: verdict.to_owned(),
    };
    let between = format!("between 0.7 × Reno's {reno:.0} Mbit/s and the link");
    Table {
        title: "One packet lost in 36 000: six congestion controls",
        setting: "1 Gbit/s × 53 ms, MTU 9000, loss 0.0028 %, `iperf3 -t 400 -O 20 -C NAME`, 120 s \
                  from the third on"
            .to_owned(),
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
            let own = path(1000.0, 10.0, &format!("loss = \"{percent} %\"\n"), AMPLE);
            let expected = mathis(1.5_f64.sqrt(), 1448.0, 0.02, percent / 100.0);
            // Above half a percent, losses of retransmissions cost timeouts that the formula does not model.
            let low = if *percent > 0.5 { 0.5 } else { 0.75 };
            Row {
                case: format!("loss {percent} %"),
                seed_report: format!("C = 1: {:.1} Mbit/s", mathis(1.0, 1448.0, 0.02, percent / 100.0)),
                figure: arrived(&transfer(&own.file, "-t 60 -O 5 -i 10 -C reno")),
                unit: ("Mbit/s", 1),
                bounds: low * expected..=1.2 * expected,
                because: format!("C = √1.5: {expected:.1} Mbit/s, {low} to 1.2 of it"),
                verdict: "the formula holds".to_owned(),
            }
        })
        .collect();
    Table {
        title: "Mathis's formula against Reno",
        setting: "1 Gbit/s × 20 ms, MTU 1500, random loss, `iperf3 -t 60 -O 5 -C reno`".to_owned(),
        rows,
    }
}

/// Frames of 9000 bytes against 1500.
pub(crate) fn frame_size() -> Table {
    let lossy = |mtu: u32| path(1000.0, 10.0, &format!("mtu = {mtu}\nloss = \"0.05 %\"\n"), AMPLE);
    let clean = |mtu: u32| path(1000.0, 10.0, &format!("mtu = {mtu}\n"), AMPLE);
    let rate = |own: &crate::support::lab::OwnPath, time: &str| arrived(&transfer(&own.file, time));
    let short = "-t 10 -O 3 -C reno";
    let long = "-t 60 -O 5 -i 10 -C reno";
    let row = |mtu: u32| {
        let full = ceiling(1000.0, f64::from(mtu));
        Row {
            case: format!("MTU {mtu}, clean"),
            seed_report: "3.9 Gbit/s became 6.3 with larger frames: the processor was the limit".to_owned(),
            figure: rate(&clean(mtu), short),
            unit: ("Mbit/s", 1),
            bounds: 0.98 * full..=1.002 * full,
            because: format!("headers: {full:.1} Mbit/s"),
            verdict: "on the link itself larger frames bring 4 %".to_owned(),
        }
    };
    let gain = rate(&lossy(9000), long) / rate(&lossy(1500), long);
    Table {
        title: "Frames of 9000 bytes",
        setting: format!("1 Gbit/s × 20 ms, `iperf3 {short}`; with loss `{long}`"),
        rows: vec![
            row(1500),
            row(9000),
            Row {
                case: "with 0.05 % loss: rate at 9000 over rate at 1500".to_owned(),
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
    let on = path(300.0, 10.05, "buffer = \"0.5 BDP\"", AMPLE);
    let off = path(
        300.0,
        10.05,
        "buffer = \"0.5 BDP\"",
        &AMPLE.replace("sysctl = {", "sysctl = { \"net.ipv4.tcp_timestamps\" = \"0\","),
    );
    let rate = |own: &crate::support::lab::OwnPath| arrived(&transfer(&own.file, "-t 20 -O 2 -C cubic"));
    Table {
        title: "Timestamps off",
        setting: "300 Mbit/s × 20.1 ms, drop-tail queue of half a product, `iperf3 -t 20 -O 2 -C cubic`".to_owned(),
        rows: vec![Row {
            case: "rate with timestamps off over rate with them on".to_owned(),
            seed_report: "switch them off".to_owned(),
            figure: rate(&off) / rate(&on),
            unit: ("×", 3),
            bounds: 0.6..=1.25,
            because: "12 of 1448 B are saved: 0.8 %; the remainder is random variation of the losses, 60 to 100 % of the link"
                .to_owned(),
            verdict: "nothing to gain; protection against wrapped sequence numbers is lost".to_owned(),
        }],
    }
}
