//! Wall time of the lab: for a second of its virtual time, over what a path can have, and for whole commands.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, anyhow};

use super::curve::{Curve, Section};
use super::history::timed;

/// Rates in Mbit/s.
const RATES: [u32; 4] = [10, 100, 1000, 10_000];
const STREAMS: [u32; 3] = [1, 8, 64];
/// Round trips in milliseconds.
const ROUND_TRIPS: [u32; 4] = [1, 10, 100, 1000];
/// Routers between the two hosts.
const ROUTERS: [u32; 5] = [1, 2, 4, 8, 16];
/// Guests at once.
const GUESTS: [u32; 4] = [1, 2, 4, 8];

/// Seconds of a test.
const SECONDS: u32 = 5;

/// Runs a command of linerate's on a path; wall seconds of a virtual second, without the `boot` of the guest.
fn wall(linerate: &Path, path: &[&str], options: &str, boot: f64) -> Result<f64> {
    let command = format!("linerate iperf3 -c far -C cubic -t {SECONDS} {options}");
    let mut arguments = vec!["lab", "run"];
    arguments.extend(path);
    arguments.push("--");
    arguments.extend(command.split_whitespace());
    let run = timed(linerate, &arguments, None).with_context(|| command.clone())?;
    Ok((run.wall - boot).max(0.0) / f64::from(SECONDS))
}

fn boot(linerate: &Path) -> Result<f64> {
    Ok(timed(linerate, &["lab", "run", "--rate", "10M", "--rtt", "20ms", "--", "true"], None)?.wall)
}

pub(super) fn rates(linerate: &Path, _scratch: &Path) -> Result<Section> {
    let boot = boot(linerate)?;
    let mut curves = [
        Curve::new("TCP, one stream", "s per s"),
        Curve::new("TCP, 8 streams", "s per s"),
        Curve::new("TCP, 64 streams", "s per s"),
        Curve::new("UDP of 1448 B at half the rate", "s per s"),
    ];
    for rate in RATES {
        println!("  {rate} Mbit/s");
        let text = format!("{rate}M");
        let path = ["--rate", &text, "--rtt", "20ms", "--buffer", "40ms"];
        for (curve, streams) in curves.iter_mut().zip(STREAMS) {
            curve.points.push((f64::from(rate), wall(linerate, &path, &format!("-P {streams}"), boot)?));
        }
        // Each datagram is a packet of its own: more than 1 Gbit/s of them take minutes.
        if rate <= 1000 {
            let value = wall(linerate, &path, &format!("-u -l 1448 -b {}M", rate / 2), boot)?;
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

pub(super) fn round_trips(linerate: &Path, _scratch: &Path) -> Result<Section> {
    let boot = boot(linerate)?;
    let mut curves = [Curve::new("TCP, one stream", "s per s"), Curve::new("TCP, 8 streams", "s per s")];
    for milliseconds in ROUND_TRIPS {
        println!("  {milliseconds} ms");
        let text = format!("{milliseconds}ms");
        for (curve, streams) in curves.iter_mut().zip(STREAMS) {
            let value = wall(linerate, &["--rate", "100M", "--rtt", &text], &format!("-P {streams}"), boot)?;
            curve.points.push((f64::from(milliseconds), value));
        }
    }
    Ok(Section {
        name: "lab-round-trip",
        title: "Wall time of the lab over the round trip",
        method: "The same over 100 Mbit/s with a buffer of one bandwidth-delay product.".to_owned(),
        work: "ms of round trip",
        curves: curves.into(),
        findings: Vec::new(),
    })
}

/// Description of a path over a chain of routers.
fn chain(routers: u32) -> String {
    let mut text = "[host.near]\n[host.far]\n".to_owned();
    let mut last = "near".to_owned();
    for router in 0..=routers {
        // A letter: a name that ends with 6 is a host's IPv6 address.
        let letter = ('a'..='z').nth(router as usize).unwrap_or('z');
        let next = if router == routers { "far".to_owned() } else { format!("r{letter}") };
        if router < routers {
            let _ = writeln!(text, "[host.{next}]");
        }
        let _ = writeln!(
            text,
            "[[link]]\nbetween = [\"{last}\", \"{next}\"]\nrate = \"100 Mbit/s\"\ndelay = \"1 ms\"\nbuffer = \"20 ms\""
        );
        last = next;
    }
    text
}

pub(super) fn hosts(linerate: &Path, scratch: &Path) -> Result<Section> {
    let file = scratch.join("chain.toml");
    let path = file.to_str().context("a path in UTF-8")?;
    let mut curves = [Curve::new("TCP, one stream", "s per s"), Curve::new("boot and set-up", "s")];
    for routers in ROUTERS {
        println!("  {routers} routers");
        fs::write(&file, chain(routers)).with_context(|| format!("cannot write {path}"))?;
        let boot = timed(linerate, &["lab", "run", path, "--", "true"], None)?.wall;
        curves[0].points.push((f64::from(routers), wall(linerate, &[path], "", boot)?));
        curves[1].points.push((f64::from(routers), boot));
    }
    Ok(Section {
        name: "lab-hosts",
        title: "Wall time of the lab over its hosts",
        method: "A chain of routers with links of 100 Mbit/s, 1 ms and a buffer of 20 ms each.".to_owned(),
        work: "routers",
        curves: curves.into(),
        findings: Vec::new(),
    })
}

pub(super) fn guests(linerate: &Path, _scratch: &Path) -> Result<Section> {
    let mut curve = Curve::new("one test in each guest", "s");
    for guests in GUESTS {
        println!("  {guests} guests");
        let begun = Instant::now();
        thread::scope(|scope| {
            let run = || wall(linerate, &["--rate", "100M", "--rtt", "20ms"], "", 0.0);
            let all: Vec<_> = (0..guests).map(|_| scope.spawn(run)).collect();
            all.into_iter().try_for_each(|one| one.join().map_err(|_| anyhow!("a guest's thread ended"))?.map(drop))
        })?;
        curve.points.push((f64::from(guests), begun.elapsed().as_secs_f64()));
    }
    let processors = thread::available_parallelism().map_or(1, usize::from);
    Ok(Section {
        name: "lab-guests",
        title: "Wall time of several labs at once",
        method: format!(
            "`linerate lab run --rate 100M --rtt 20ms -- linerate iperf3 -c far -t {SECONDS}` in so many guests at once, on \
             {processors} processors; the time until all have ended, boot included."
        ),
        work: "guests",
        curves: vec![curve],
        findings: Vec::new(),
    })
}

pub(super) fn commands(linerate: &Path, _scratch: &Path) -> Result<Section> {
    let mut curves = [
        Curve::new("test", "s"),
        Curve::new("diagnose", "s"),
        Curve::new("tune", "s"),
        Curve::new("diagnose, virtual", "s"),
        Curve::new("tune, virtual", "s"),
    ];
    for rate in RATES {
        println!("  {rate} Mbit/s");
        let target = format!("lab:rate={rate}M,rtt=50ms,buffer=50ms");
        for (curve, command) in [(0, "test"), (1, "diagnose"), (2, "tune")] {
            let run = timed(linerate, &[command, &target, "--json"], None)?;
            curves[curve].points.push((f64::from(rate), run.wall));
            if curve > 0 {
                let document: serde_json::Value = serde_json::from_str(&run.output)?;
                let seconds = document["duration_ns"]
                    .as_f64()
                    .map(|nanoseconds| nanoseconds / 1e9)
                    .context("a document has its duration")?;
                curves[curve + 2].points.push((f64::from(rate), seconds));
            }
        }
    }
    Ok(Section {
        name: "commands",
        title: "Commands from end to end",
        method: "`linerate COMMAND lab:rate=R,rtt=50ms,buffer=50ms`: wall time on this machine, boot included, and the time that \
                 the command takes on such a path (virtual)."
            .to_owned(),
        work: "Mbit/s",
        curves: curves.into(),
        findings: Vec::new(),
    })
}
