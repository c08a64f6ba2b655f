//! Requests and responses: `linerate rr` against a bare loop over the same system calls, in the same processes and threads.
//!
//! `bench rr [ROUNDS] [--linerate FILE]` runs both in random order, and compares only the rates of one round. The bare loop is `bench bare
//! rr-serve PORT KIND` and `bench bare rr-send PORT KIND SECONDS`: one blocking thread at either end, with one look at the clock for
//! each transaction and nothing else. netperf takes part where it is in PATH, for information: its server has another layout of
//! processes. Processor time is that of the processes of both ends, their start included.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::process::CpuAccount;
use super::statistics::{XorShift64, bootstrap_median, median, ratios};

/// Kinds of transaction, by the options of `linerate rr`.
const KINDS: [&str; 3] = ["tcp", "connect", "udp"];

/// Bytes that precede a request on a connection of its own: linerate's token.
const TOKEN: usize = 37;

/// Least rate as a multiple of the bare loop's.
const MIN_RATIO: f64 = 0.98;

/// Seconds of a run.
const SECONDS: u64 = 2;

/// Longest time until a server listens.
const START_LIMIT: Duration = Duration::from_secs(10);

/// Runs the comparison and prints a line for each kind; false unless each is shown to be within 2 % of the bare loop.
pub(super) fn run(arguments: &[String]) -> Result<bool> {
    let mut rounds = 15;
    let mut linerate = None;
    let mut remaining = arguments.iter();
    while let Some(argument) = remaining.next() {
        match argument.as_str() {
            "--linerate" => linerate = Some(PathBuf::from(remaining.next().context("--linerate FILE")?)),
            number => rounds = number.parse().context("usage: cargo xtask bench rr [ROUNDS] [--linerate FILE]")?,
        }
    }
    let linerate = linerate.map_or_else(super::build, Ok)?;
    let programs = Programs { linerate, own: std::env::current_exe()?, has_netperf: has_netperf() };
    let mut is_near = true;
    for kind in KINDS {
        let mut runs: [Vec<Option<RunFigures>>; 3] = Default::default();
        for round in 0..rounds {
            let mut order = [Candidate::Linerate, Candidate::Bare, Candidate::Netperf];
            XorShift64::new(round + 1).shuffle(&mut order);
            for candidate in order {
                runs[candidate as usize].push(programs.measure(candidate, kind)?);
            }
        }
        let [ours, bare, netperf] = &runs;
        is_near &= compare(kind, ours, "bare", bare)?;
        if programs.has_netperf {
            compare(kind, ours, "netperf", netperf)?;
        }
    }
    Ok(is_near)
}

/// Prints the ratios of two candidates; false unless the whole interval of that of the rates is above [`MIN_RATIO`].
fn compare(kind: &str, ours: &[Option<RunFigures>], name: &str, other: &[Option<RunFigures>]) -> Result<bool> {
    let of = |runs: &[Option<RunFigures>], figure: fn(&RunFigures) -> f64| -> Vec<Option<f64>> {
        runs.iter().map(|run| run.as_ref().map(figure)).collect()
    };
    let middle = |values: &[Option<f64>]| median(&values.iter().copied().flatten().collect::<Vec<_>>()).unwrap_or(0.0);
    let ratio = |figure| bootstrap_median(&ratios(&of(ours, figure), &of(other, figure))).context("no round");
    let (rate, cpu) = (ratio(RunFigures::rate)?, ratio(RunFigures::cpu)?);
    println!("{kind}, {} rounds", ours.len());
    for (name, runs) in [("linerate", ours), (name, other)] {
        let (rate, cpu) = (middle(&of(runs, RunFigures::rate)), middle(&of(runs, RunFigures::cpu)));
        println!("  {name:8} {rate:8.0}/s  {:6.2} CPU us each", cpu * 1e6);
    }
    for (name, ratio) in [("rate", rate), ("CPU", cpu)] {
        println!("  {name} x {:.3} ({:.3} to {:.3})", ratio.median, ratio.low, ratio.high);
    }
    Ok(rate.low >= MIN_RATIO)
}

/// Figures of a run.
#[derive(Clone, Copy, Debug)]
struct RunFigures {
    /// Transactions per second.
    rate: f64,
    /// Processor seconds of both ends per transaction.
    cpu: f64,
}

impl RunFigures {
    const fn rate(&self) -> f64 {
        self.rate
    }

    const fn cpu(&self) -> f64 {
        self.cpu
    }
}

/// Program that is measured.
#[derive(Clone, Copy)]
enum Candidate {
    Linerate,
    Bare,
    Netperf,
}

/// Programs of the comparison.
struct Programs {
    linerate: PathBuf,
    own: PathBuf,
    has_netperf: bool,
}

impl Programs {
    /// Runs a candidate, and counts the processor time of its processes, which have ended then.
    fn measure(&self, candidate: Candidate, kind: &str) -> Result<Option<RunFigures>> {
        let before = CpuAccount::read()?;
        let Some(rate) = self.rate(candidate, kind)? else { return Ok(None) };
        let transactions = rate * Duration::from_secs(SECONDS).as_secs_f64();
        Ok(Some(RunFigures { rate, cpu: before.since_then()?.children / transactions }))
    }

    fn rate(&self, candidate: Candidate, kind: &str) -> Result<Option<f64>> {
        Ok(match candidate {
            Candidate::Linerate => Some(linerate_rate(&self.linerate, kind)?),
            Candidate::Bare => Some(bare_rate(&self.own, kind)?),
            Candidate::Netperf if self.has_netperf => Some(netperf_rate(kind)?),
            Candidate::Netperf => None,
        })
    }
}

fn has_netperf() -> bool {
    let runs = |program: &str| Command::new(program).arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status();
    runs("netperf").is_ok() && runs("netserver").is_ok()
}

fn netperf_rate(kind: &str) -> Result<f64> {
    let port = free_port()?;
    let text = port.to_string();
    let server = std::path::Path::new("netserver");
    let _server = start(server, &["-D", "-4", "-L", "127.0.0.1", "-p", &text], port)?;
    let transaction = match kind {
        "tcp" => "TCP_RR",
        "connect" => "TCP_CRR",
        _ => "UDP_RR",
    };
    let seconds = SECONDS.to_string();
    let line = [
        "-4",
        "-H",
        "127.0.0.1",
        "-p",
        &text,
        "-t",
        transaction,
        "-l",
        &seconds,
        "-P",
        "0",
        "-v",
        "0",
        "--",
        "-r",
        "1,1",
    ];
    output(std::path::Path::new("netperf"), &line)?.trim().parse().context("a rate of netperf")
}

/// A process that is ended with this.
struct RunningServer(Child);

impl Drop for RunningServer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

fn start(program: &std::path::Path, arguments: &[&str], port: u16) -> Result<RunningServer> {
    let child = Command::new(program).args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let server = RunningServer(child);
    let end = Instant::now() + START_LIMIT;
    while Instant::now() < end {
        if is_listening(port) {
            return Ok(server);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    bail!("{} does not listen on port {port}", program.display())
}

/// Looks for a listener without connecting: the bare server takes each connection for a client's.
fn is_listening(port: u16) -> bool {
    let wanted = format!(":{port:04X}");
    let is_it = |line: &str| {
        let mut fields = line.split_whitespace().skip(1);
        fields.next().is_some_and(|local| local.ends_with(&wanted)) && fields.nth(1) == Some("0A")
    };
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(std::fs::read_to_string);
    tables.into_iter().flatten().any(|table| table.lines().any(is_it))
}

fn output(program: &std::path::Path, arguments: &[&str]) -> Result<String> {
    let done = Command::new(program).args(arguments).stderr(Stdio::inherit()).output()?;
    ensure!(done.status.success(), "{} {arguments:?} ended with {}", program.display(), done.status);
    Ok(String::from_utf8(done.stdout)?)
}

fn linerate_rate(program: &std::path::Path, kind: &str) -> Result<f64> {
    let port = free_port()?;
    let text = port.to_string();
    let _server = start(program, &["serve", "-B", "127.0.0.1", "-p", &text], port)?;
    let (kind, seconds) = (format!("--{kind}"), format!("{SECONDS}s"));
    let line = ["--no-history", "rr", "127.0.0.1", "-p", &text, &kind, "-t", &seconds, "--json", "--quiet"];
    let document: Value = serde_json::from_str(&output(program, &line)?)?;
    document["result"]["rr"]["transactions_per_second"].as_f64().context("no rate in the document")
}

fn bare_rate(own: &std::path::Path, kind: &str) -> Result<f64> {
    let port = free_port()?;
    let text = port.to_string();
    let _server = start(own, &["bench", "bare", "rr-serve", &text, kind], port)?;
    let rate = output(own, &["bench", "bare", "rr-send", &text, kind, &SECONDS.to_string()])?;
    rate.trim().parse().context("a rate")
}

/// Server of the bare loop, which is ended by its signal.
pub(super) fn serve(port: &str, kind: &str) -> Result<bool> {
    let address = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port.parse().context("a port")?);
    let datagrams = UdpSocket::bind(address)?;
    let listener = TcpListener::bind(address)?;
    if kind == "udp" {
        let mut byte = [0; 1];
        loop {
            let (_, from) = datagrams.recv_from(&mut byte)?;
            datagrams.send_to(&byte, from)?;
        }
    }
    if kind == "connect" {
        loop {
            let mut stream = listener.accept()?.0;
            let mut request = [0; TOKEN + 1];
            stream.read_exact(&mut request)?;
            stream.write_all(&request[TOKEN..])?;
        }
    }
    loop {
        let mut stream = listener.accept()?.0;
        stream.set_nodelay(true)?;
        let mut byte = [0; 1];
        while stream.read_exact(&mut byte).is_ok() {
            stream.write_all(&byte)?;
        }
    }
}

/// Client of the bare loop; prints transactions per second.
pub(super) fn send(port: &str, kind: &str, seconds: &str) -> Result<bool> {
    let address = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port.parse().context("a port")?);
    let time = Duration::from_secs(seconds.parse().context("seconds")?);
    let mut transact: Box<dyn FnMut() -> std::io::Result<()>> = match kind {
        "tcp" => {
            let mut stream = TcpStream::connect(address)?;
            stream.set_nodelay(true)?;
            Box::new(move || {
                stream.write_all(&[7])?;
                stream.read_exact(&mut [0])
            })
        }
        "connect" => Box::new(move || {
            let mut stream = TcpStream::connect(address)?;
            stream.set_nodelay(true)?;
            stream.write_all(&[7; TOKEN + 1])?;
            stream.read_exact(&mut [0])?;
            stream.read(&mut [0]).map(drop)
        }),
        "udp" => {
            let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
            socket.connect(address)?;
            Box::new(move || {
                socket.send(&[7])?;
                socket.recv(&mut [0]).map(drop)
            })
        }
        other => bail!("unknown kind '{other}' (expected one of: {})", KINDS.join(", ")),
    };
    let start = Instant::now();
    let (mut now, mut count) = (start, 0_u32);
    while now < start + time {
        transact()?;
        now = Instant::now();
        count += 1;
    }
    println!("{}", f64::from(count) / (now - start).as_secs_f64());
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_near_only_when_the_whole_interval_of_its_rates_is() {
        let runs = |rate: f64| vec![Some(RunFigures { rate, cpu: 1.0 }); 5];
        assert!(compare("tcp", &runs(99.0), "bare", &runs(100.0)).expect("five rounds"));
        assert!(!compare("tcp", &runs(97.0), "bare", &runs(100.0)).expect("five rounds"));
        assert!(compare("tcp", &runs(97.0), "bare", &[None, None]).is_err(), "no round has both");
    }
}
