//! Single run: a server of one program, a client of one program, a fresh port.

use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::cell::BenchCell;
use super::process::RunningChild;
use super::result;
use crate::workspace::output_of;

/// Time limit of a program beyond the time of the test itself.
const FINISH_TIMEOUT: Duration = Duration::from_secs(15);

/// Time limit of a server until it listens.
const LISTEN_TIMEOUT: Duration = Duration::from_secs(5);

/// Program that implements the iperf3 protocol.
#[derive(Debug)]
pub(super) struct BenchProgram {
    /// Name in the tables.
    pub(super) name: &'static str,
    /// First line of its version output.
    pub(super) version: String,
    path: PathBuf,
    leading_arguments: &'static [&'static str],
}

impl BenchProgram {
    /// Returns the iperf3 of this machine, or the one in `IPERF3_BIN`.
    pub(super) fn iperf3() -> Result<Self> {
        let path = std::env::var_os("IPERF3_BIN").map_or_else(|| PathBuf::from("iperf3"), PathBuf::from);
        let version = output_of(Command::new(&path).arg("--version"))
            .context("no iperf3 to compare with: apt-get install iperf3, or name one in IPERF3_BIN")?;
        Ok(Self { name: "iperf3", version: first_line(&version), path, leading_arguments: &[] })
    }

    /// Returns the linerate at `path`.
    pub(super) fn linerate(path: &Path) -> Result<Self> {
        let path = fs::canonicalize(path).with_context(|| format!("no linerate at {}", path.display()))?;
        let version = output_of(Command::new(&path).arg("--version"))?;
        Ok(Self { name: "linerate", version: first_line(&version), path, leading_arguments: &["iperf3"] })
    }

    fn start(&self, arguments: &[String]) -> Result<RunningChild> {
        let all: Vec<String> =
            self.leading_arguments.iter().map(|argument| (*argument).to_owned()).chain(arguments.to_vec()).collect();
        RunningChild::start(&self.path, &all)
    }
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().trim().to_owned()
}

/// Server and client program of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProgramPair<'a> {
    server: &'a BenchProgram,
    client: &'a BenchProgram,
}

/// Figures of one run.
#[derive(Clone, Copy, Debug)]
pub(super) struct BenchRun {
    /// Rate at the receivers, in bit/s.
    pub(super) goodput: f64,
    /// Lost datagrams over sent ones; `None` for TCP.
    pub(super) loss: Option<f64>,
    /// Datagrams that reached the receiver, per second; `None` for TCP.
    pub(super) packet_rate: Option<f64>,
    /// CPU time of both processes, in seconds.
    pub(super) cpu_seconds: f64,
    /// The same per received gigabit.
    pub(super) cpu_seconds_per_gigabit: f64,
}

impl<'a> ProgramPair<'a> {
    /// Returns the baseline with itself first, the candidate with itself second, then the two mixed pairs.
    pub(super) fn all(baseline: &'a BenchProgram, candidate: &'a BenchProgram, mixed: bool) -> Vec<Self> {
        let mut pairs =
            vec![Self { server: baseline, client: baseline }, Self { server: candidate, client: candidate }];
        if mixed {
            pairs.push(Self { server: candidate, client: baseline });
            pairs.push(Self { server: baseline, client: candidate });
        }
        pairs
    }

    /// Returns client and server for the tables.
    pub(super) fn name(&self) -> String {
        format!("{} → {}", self.client.name, self.server.name)
    }

    /// Measures `cell` once for `seconds`.
    pub(super) fn run(&self, cell: &BenchCell, seconds: u64) -> Result<BenchRun> {
        let port = free_port()?;
        let server = self.server.start(&server_arguments(port))?;
        wait_until_listening(&server, port)?;
        let client = self.client.start(&client_arguments(cell, port, seconds))?;
        let client = client.finish(Duration::from_secs(seconds) + FINISH_TIMEOUT)?;
        let figures = result::figures(&client.output).with_context(|| format!("client {}", self.client.name))?;
        ensure!(client.success, "client {} failed", self.client.name);
        let server = server.finish(FINISH_TIMEOUT).with_context(|| format!("server {}", self.server.name))?;
        ensure!(server.success, "server {} failed: {}", self.server.name, server.output.trim());
        let cpu_seconds = client.cpu_seconds + server.cpu_seconds;
        Ok(BenchRun {
            goodput: figures.goodput,
            loss: figures.loss,
            packet_rate: cell.datagram.map(|bytes| figures.goodput / 8.0 / f64::from(bytes)),
            cpu_seconds,
            cpu_seconds_per_gigabit: cpu_seconds / (figures.received_bits / 1e9),
        })
    }
}

fn server_arguments(port: u16) -> Vec<String> {
    ["-s", "-p", &port.to_string(), "-1", "-J"].map(str::to_owned).to_vec()
}

fn client_arguments(cell: &BenchCell, port: u16, seconds: u64) -> Vec<String> {
    let (port, seconds) = (port.to_string(), seconds.to_string());
    let common = ["-c", "127.0.0.1", "-p", &port, "-t", &seconds, "-J"];
    common.iter().chain(cell.options).map(|option| (*option).to_owned()).collect()
}

/// Returns a port that is free for TCP and UDP at this moment.
fn free_port() -> Result<u16> {
    for _ in 0..100 {
        let port = TcpListener::bind("[::]:0").or_else(|_| TcpListener::bind("0.0.0.0:0"))?.local_addr()?.port();
        if UdpSocket::bind(("0.0.0.0", port)).is_ok() {
            return Ok(port);
        }
    }
    bail!("no port free for both TCP and UDP in 100 attempts")
}

/// Waits until a server listens on `port`. It reads /proc, because a connection would count as a client.
fn wait_until_listening(server: &RunningChild, port: u16) -> Result<()> {
    let deadline = Instant::now() + LISTEN_TIMEOUT;
    while Instant::now() < deadline {
        let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(|path| fs::read_to_string(path).unwrap_or_default());
        if tables.iter().any(|table| has_listener(table, port)) {
            return Ok(());
        }
        ensure!(server.is_running(), "the server ended before it listened on port {port}");
        thread::sleep(Duration::from_millis(2));
    }
    bail!("the server did not listen on port {port} within {} s", LISTEN_TIMEOUT.as_secs())
}

/// True when a table in the form of /proc/net/tcp has a socket in state LISTEN (0A) on `port`.
fn has_listener(table: &str, port: u16) -> bool {
    let port = format!(":{port:04X}");
    table.lines().any(|line| {
        let mut fields = line.split_whitespace().skip(1);
        fields.next().is_some_and(|local| local.ends_with(&port)) && fields.nth(1) == Some("0A")
    })
}

#[cfg(test)]
impl BenchProgram {
    /// Returns a program for tests that start none.
    pub(super) fn named(name: &'static str) -> Self {
        Self { name, version: name.to_owned(), path: PathBuf::from(name), leading_arguments: &[] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::cell::CELLS;

    const TABLE: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when\n\
                         0: 0100007F:1451 00000000:0000 0A 00000000:00000000 00:00000000\n\
                         1: 0100007F:1452 0100007F:1451 01 00000000:00000000 00:00000000\n";

    #[test]
    fn only_a_listening_socket_counts() {
        assert!(has_listener(TABLE, 0x1451));
        assert!(!has_listener(TABLE, 0x1452));
        assert!(!has_listener(TABLE, 0x0000));
    }

    #[test]
    fn a_listener_is_seen_in_the_kernel_s_table() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let table = fs::read_to_string("/proc/net/tcp").expect("this is Linux");
        assert!(has_listener(&table, port));
    }

    #[test]
    fn the_client_gets_the_options_of_its_cell() {
        let cell = CELLS.iter().find(|cell| cell.name == "tcp-p4").expect("it is in the list");
        assert_eq!(client_arguments(cell, 5201, 2).join(" "), "-c 127.0.0.1 -p 5201 -t 2 -J -P 4");
        assert_eq!(server_arguments(5201).join(" "), "-s -p 5201 -1 -J");
    }
}
