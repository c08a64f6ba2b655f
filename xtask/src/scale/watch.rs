//! Flows of a host: a sample of `linerate watch`.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use linerate_sys::process;

use super::curve::{Curve, Section};
use super::history::timed;

const FLOWS: [usize; 4] = [10, 100, 1000, 9000];

/// Samples of one run.
const SAMPLES: u32 = 5;

pub(super) fn measure(linerate: &Path, _scratch: &Path) -> Result<Section> {
    process::raise_open_file_limit()?;
    let mut json = Curve::new("processor time of a sample", "ms");
    let mut once = Curve::new("processor time of --once", "ms");
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    let mut open: Vec<(TcpStream, TcpStream)> = Vec::new();
    for count in FLOWS {
        println!("  {count} connections");
        while open.len() < count {
            let near = TcpStream::connect_timeout(&address, Duration::from_secs(10)).context("one more connection")?;
            open.push((near, listener.accept()?.0));
        }
        // Both ends of a connection are sockets of this host.
        let work = f64::from(u32::try_from(2 * count)?);
        let table = timed(linerate, &["watch", "--once", "-i", "100ms"], None)?;
        once.points.push((work, table.processor * 1e3));
        let count = SAMPLES.to_string();
        let lines = timed(linerate, &["watch", "--json", "-c", &count, "-i", "1s"], None)?;
        ensure!(lines.output.lines().count() >= 1, "watch printed nothing");
        json.points.push((work, lines.processor * 1e3 / f64::from(SAMPLES)));
    }
    Ok(Section {
        name: "watch",
        title: "Flows that `linerate watch` reads",
        method:
            "Idle TCP connections over loopback, of which both ends are sockets of this host; `linerate watch --json` \
                 with five samples a second apart, and `linerate watch --once`."
                .to_owned(),
        work: "sockets",
        curves: vec![json, once],
        findings: Vec::new(),
    })
}
