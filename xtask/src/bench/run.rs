//! Single run: servers and clients of one program, on fresh ports.

use std::net::{TcpListener, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::cell::{BenchCell, BenchLink, CellKind};
use super::figures::{BenchRun, Figure};
use super::network::{self, VethPair};
use super::process::{CpuAccount, CpuUse, RunningChild, network_table};
use super::program::{Contender, Dialect};
use super::relay::FirstByteRelay;
use super::result::{self, ClientFigures};

/// Time limit of a program beyond the time of the test itself.
const FINISH_TIMEOUT: Duration = Duration::from_secs(15);

/// Time limit of a server until it listens.
const LISTEN_TIMEOUT: Duration = Duration::from_secs(5);

/// Measures `contender` once in `cell` for `seconds`.
pub(super) fn run(contender: &Contender<'_>, cell: &BenchCell, seconds: u64) -> Result<BenchRun> {
    match cell.kind {
        CellKind::Unlimited | CellKind::Paced => transfer(contender, cell, seconds),
        CellKind::StartUp => start_up(contender),
        CellKind::FirstByte => first_byte(contender, cell),
        CellKind::Overhead => overhead(contender, cell),
    }
}

fn transfer(contender: &Contender<'_>, cell: &BenchCell, seconds: u64) -> Result<BenchRun> {
    let place = Place::of(cell.link)?;
    let before = CpuAccount::read()?;
    let started = Instant::now();
    let mut servers = Vec::new();
    for _ in 0..cell.clients {
        servers.push(place.serve(contender)?);
    }
    let clients: Vec<RunningChild> = servers
        .iter()
        .map(|(_, port)| {
            RunningChild::start(&place.client_line(contender.client_line(cell, place.host(), *port, seconds)))
        })
        .collect::<Result<_>>()?;
    let mut sum = ClientFigures::default();
    for client in clients {
        let client = client.finish(Duration::from_secs(seconds) + FINISH_TIMEOUT)?;
        let figures = result::figures(contender.program.dialect, &client.output).context("client")?;
        ensure!(client.success, "the client failed");
        sum.goodput += figures.goodput;
        sum.received_bits += figures.received_bits;
        (sum.loss, sum.jitter) = (figures.loss, figures.jitter);
    }
    for (server, _) in servers {
        if contender.program.dialect == Dialect::Http {
            // It serves until it is stopped, which dropping does.
            continue;
        }
        let server = server.finish(FINISH_TIMEOUT).context("server")?;
        ensure!(server.success, "the server failed: {}", server.output.trim());
    }
    Ok(figures_of(cell, &sum, before.since_then()?, started.elapsed()))
}

fn figures_of(cell: &BenchCell, sum: &ClientFigures, used: CpuUse, elapsed: Duration) -> BenchRun {
    let gigabits = sum.received_bits / 1e9;
    BenchRun::default()
        .with(Figure::Goodput, Some(sum.goodput))
        .with(Figure::PacketRate, cell.datagram.map(|bytes| sum.goodput / 8.0 / f64::from(bytes)))
        .with(Figure::Loss, sum.loss)
        .with(Figure::Jitter, sum.jitter)
        .with(Figure::Cpu, Some(used.children / gigabits))
        .with(Figure::MachineCpu, Some(used.machine / gigabits))
        .with(Figure::Waits, Some(used.waits / elapsed.as_secs_f64()))
}

fn start_up(contender: &Contender<'_>) -> Result<BenchRun> {
    let started = Instant::now();
    let child = RunningChild::start(&contender.program.version_line())?.finish(FINISH_TIMEOUT)?;
    ensure!(child.success, "`--version` failed");
    Ok(BenchRun::default().with(Figure::Wait, Some(milliseconds(started.elapsed()))))
}

fn overhead(contender: &Contender<'_>, cell: &BenchCell) -> Result<BenchRun> {
    let place = Place::of(cell.link)?;
    let (server, port) = place.serve(contender)?;
    let started = Instant::now();
    let client = RunningChild::start(&contender.client_line(cell, place.host(), port, 1))?.finish(FINISH_TIMEOUT)?;
    let elapsed = started.elapsed();
    ensure!(client.success, "the client failed");
    server.finish(FINISH_TIMEOUT).context("server")?;
    Ok(BenchRun::default().with(Figure::Wait, Some(milliseconds(elapsed) - 1000.0)))
}

fn first_byte(contender: &Contender<'_>, cell: &BenchCell) -> Result<BenchRun> {
    let place = Place::of(cell.link)?;
    let (server, port) = place.serve(contender)?;
    let relay = FirstByteRelay::start(port)?;
    let client = RunningChild::start(&contender.client_line(cell, place.host(), relay.port(), 1))?;
    ensure!(client.finish(FINISH_TIMEOUT)?.success, "the client failed");
    server.finish(FINISH_TIMEOUT).context("server")?;
    let waited = relay.finish().context("no data arrived")?;
    Ok(BenchRun::default().with(Figure::Wait, Some(milliseconds(waited))))
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Network in which a run takes place.
enum Place {
    Here(&'static str),
    Veth(VethPair),
}

impl Place {
    fn of(link: BenchLink) -> Result<Self> {
        Ok(match link {
            BenchLink::Loopback => Self::Here("127.0.0.1"),
            BenchLink::LoopbackV6 => Self::Here("::1"),
            BenchLink::Veth(mtu) => Self::Veth(VethPair::new(mtu)?),
        })
    }

    fn host(&self) -> &'static str {
        match self {
            Self::Here(host) => host,
            Self::Veth(_) => network::SERVER_ADDRESS,
        }
    }

    fn client_line(&self, line: Vec<String>) -> Vec<String> {
        match self {
            Self::Here(_) => line,
            Self::Veth(pair) => pair.in_client(line),
        }
    }

    /// Starts a server for one test, and waits until it listens.
    fn serve(&self, contender: &Contender<'_>) -> Result<(RunningChild, u16)> {
        let port = free_port()?;
        let line = contender.program.server_line(port);
        let mut server = RunningChild::start(&match self {
            Self::Here(_) => line,
            Self::Veth(pair) => pair.in_server(line),
        })?;
        wait_until_listening(&mut server, port)?;
        Ok((server, port))
    }
}

/// Returns a port that is free for TCP and UDP at this moment.
pub(crate) fn free_port() -> Result<u16> {
    for _ in 0..100 {
        let port = TcpListener::bind("[::]:0").or_else(|_| TcpListener::bind("0.0.0.0:0"))?.local_addr()?.port();
        if UdpSocket::bind(("0.0.0.0", port)).is_ok() {
            return Ok(port);
        }
    }
    bail!("no port free for both TCP and UDP in 100 attempts")
}

/// Waits until a server listens on `port`.
pub(crate) fn wait_until_listening(server: &mut RunningChild, port: u16) -> Result<()> {
    wait_for_socket(server, port, ["tcp", "tcp6"], LISTEN)
}

/// Waits until a server has bound the UDP port `port`.
pub(super) fn wait_until_bound(server: &mut RunningChild, port: u16) -> Result<()> {
    wait_for_socket(server, port, ["udp", "udp6"], UNCONNECTED)
}

/// States of /proc/net/tcp and /proc/net/udp: those of TCP, whose `CLOSE` is a UDP socket without a peer.
const LISTEN: &str = "0A";
const UNCONNECTED: &str = "07";

/// Waits for a socket of a server. It reads /proc, because a connection would count as a client.
fn wait_for_socket(server: &mut RunningChild, port: u16, tables: [&str; 2], state: &str) -> Result<()> {
    let deadline = Instant::now() + LISTEN_TIMEOUT;
    while Instant::now() < deadline {
        let tables = tables.map(|table| network_table(server.id(), table));
        if tables.iter().any(|table| has_socket(table, port, state)) {
            return Ok(());
        }
        ensure!(server.is_running(), "the server ended before it listened on port {port}");
        thread::sleep(Duration::from_millis(2));
    }
    bail!("the server did not listen on port {port} within {} s", LISTEN_TIMEOUT.as_secs())
}

/// True when a table in the form of /proc/net/tcp has a socket in that state on `port`.
fn has_socket(table: &str, port: u16, state: &str) -> bool {
    let port = format!(":{port:04X}");
    table.lines().any(|line| {
        let mut fields = line.split_whitespace().skip(1);
        fields.next().is_some_and(|local| local.ends_with(&port)) && fields.nth(1) == Some(state)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::cell::cells;

    const TABLE: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when\n\
                         0: 0100007F:1451 00000000:0000 0A 00000000:00000000 00:00000000\n\
                         1: 0100007F:1452 0100007F:1451 01 00000000:00000000 00:00000000\n";

    #[test]
    fn only_a_listening_socket_counts() {
        assert!(has_socket(TABLE, 0x1451, LISTEN));
        assert!(!has_socket(TABLE, 0x1452, LISTEN));
        assert!(!has_socket(TABLE, 0x0000, LISTEN));
    }

    #[test]
    fn a_listener_is_seen_in_the_kernel_s_table() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        let port = listener.local_addr().expect("it is bound").port();
        assert!(has_socket(&network_table(std::process::id(), "tcp"), port, LISTEN));
    }

    #[test]
    fn processor_time_is_per_received_gigabit() {
        let cell = cells().into_iter().find(|cell| cell.name == "udp-1448").expect("a cell");
        let sum = ClientFigures { goodput: 2e9, received_bits: 4e9, loss: Some(0.0), jitter: None };
        let run = figures_of(&cell, &sum, CpuUse { children: 2.0, machine: 3.0, waits: 100.0 }, Duration::from_secs(2));
        assert_eq!((run.get(Figure::Cpu), run.get(Figure::MachineCpu)), (Some(0.5), Some(0.75)));
        assert_eq!(run.get(Figure::Waits), Some(50.0));
        assert_eq!(run.get(Figure::PacketRate).map(f64::round), Some(172_652.0));
    }
}
