//! Wall time of the lab for a second of its virtual time.

use std::path::Path;

use anyhow::{Context, Result};

use super::curve::{Curve, Section};
use super::history::timed;

/// Path of the lab by options: rates in Mbit/s.
const RATES: [u32; 4] = [10, 100, 1000, 10_000];
const STREAMS: [u32; 3] = [1, 8, 64];

/// Seconds of a test.
const SECONDS: u32 = 5;

pub(super) fn measure(linerate: &Path, _scratch: &Path) -> Result<Section> {
    let boot = timed(linerate, &["lab", "run", "--rate", "10M", "--rtt", "20ms", "--", "true"], None)?.wall;
    let seconds = |rate: u32, options: &str| -> Result<f64> {
        let rate = format!("{rate}M");
        let command = format!("linerate iperf3 -c far -C cubic -t {SECONDS} {options}");
        let mut arguments = vec!["lab", "run", "--rate", &rate, "--rtt", "20ms", "--buffer", "40ms", "--"];
        arguments.extend(command.split_whitespace());
        let run = timed(linerate, &arguments, None).with_context(|| command.clone())?;
        Ok((run.wall - boot).max(0.0) / f64::from(SECONDS))
    };
    let mut curves = [
        Curve::new("TCP, one stream", "s per s"),
        Curve::new("TCP, 8 streams", "s per s"),
        Curve::new("TCP, 64 streams", "s per s"),
        Curve::new("UDP of 1448 B at half the rate", "s per s"),
    ];
    for rate in RATES {
        println!("  {rate} Mbit/s");
        for (curve, streams) in curves.iter_mut().zip(STREAMS) {
            curve.points.push((f64::from(rate), seconds(rate, &format!("-P {streams}"))?));
        }
        // Each datagram is a packet of its own: more than 1 Gbit/s of them take minutes.
        if rate <= 1000 {
            let value = seconds(rate, &format!("-u -l 1448 -b {}M", rate / 2))?;
            curves[3].points.push((f64::from(rate), value));
        }
    }
    Ok(Section {
        name: "lab",
        title: "Wall time of a second of virtual time",
        method: format!(
            "`linerate lab run --rate R --rtt 20ms --buffer 40ms -- linerate iperf3 -c far -C cubic -t {SECONDS}`, without \
             the boot of the guest, which takes {boot:.2} s."
        ),
        work: "Mbit/s",
        curves: curves.into(),
        findings: Vec::new(),
    })
}
