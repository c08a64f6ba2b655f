//! Server on a separate port.

use std::net::{Ipv6Addr, TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixListener};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::Program;
use super::process::{FinishedChild, Process, eventually};

/// Longest time until a server listens, on a busy host.
const START: Duration = Duration::from_secs(60);

/// Ports below the kernel's range of ephemeral ports.
const PORTS: std::ops::Range<u32> = 10_000..32_000;

/// Returns a free port that no other test gets while this process runs. Other tests of the process may hold all its
/// descriptors for a while.
pub(crate) fn free_port() -> u16 {
    let mut found = None;
    eventually(START, || {
        found = find_port();
        found.is_some()
    });
    found.unwrap_or_else(|| panic!("no free port between {} and {}", PORTS.start, PORTS.end))
}

fn find_port() -> Option<u16> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // Concurrent test binaries start at different ports.
    let base = std::process::id().wrapping_mul(2_654_435_761) >> 8;
    for _ in 0..1000 {
        let number = base.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = u16::try_from(PORTS.start + number % (PORTS.end - PORTS.start)).expect("a port");
        let address = (Ipv6Addr::UNSPECIFIED, port);
        if reserve(port) && TcpListener::bind(address).is_ok() && UdpSocket::bind(address).is_ok() {
            return Some(port);
        }
    }
    None
}

/// Reserves `port` among the tests of this host, while this process runs: between the check that a port is free and the
/// start of the server, no other process may use it.
fn reserve(port: u16) -> bool {
    static RESERVED: Mutex<Vec<UnixListener>> = Mutex::new(Vec::new());
    let name = UnixAddress::from_abstract_name(format!("linerate-test-port-{port}")).expect("a short name");
    let Ok(reserved) = UnixListener::bind_addr(&name) else { return false };
    RESERVED.lock().unwrap_or_else(PoisonError::into_inner).push(reserved);
    true
}

/// True when a socket listens on `port`, checked without connecting: a connection would be a client.
pub(crate) fn is_listening(port: u16) -> bool {
    sockets(port, "0A") > 0
}

/// Number of established TCP connections to `port` of this host.
pub(crate) fn connections(port: u16) -> usize {
    sockets(port, "01")
}

/// Number of TCP sockets with this local port and state (`/proc/net/tcp`).
fn sockets(port: u16, state: &str) -> usize {
    let matches = |line: &&str| {
        let mut fields = line.split_whitespace().skip(1);
        let local = fields.next().and_then(|local| local.rsplit_once(':')).map(|(_, port)| port);
        let matches_state = fields.nth(1) == Some(state);
        matches_state && local.and_then(|local| u16::from_str_radix(local, 16).ok()) == Some(port)
    };
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(|table| std::fs::read_to_string(table).unwrap_or_default());
    tables.iter().flat_map(|table| table.lines().skip(1)).filter(matches).count()
}

/// Running server. Killed when dropped.
#[derive(Debug)]
pub(crate) struct Server {
    /// Process of the server.
    pub(crate) process: Process,
    /// Listening port.
    pub(crate) port: u16,
}

impl Server {
    /// Starts `program -s` with `arguments`, and waits until it listens.
    pub(crate) fn start(program: Program, arguments: &[&str]) -> Self {
        Self::start_with(program.command(), arguments)
    }

    /// Same as `start`, for any program with iperf3's arguments.
    pub(crate) fn start_with(mut command: Command, arguments: &[&str]) -> Self {
        let port = free_port();
        command.args(["-s", "-p", &port.to_string()]).args(arguments);
        Self::listening(command, port)
    }

    /// Starts `command`, which listens on `port`, and waits until it does.
    pub(crate) fn listening(command: Command, port: u16) -> Self {
        let mut process = Process::start(command);
        let listens = eventually(START, || is_listening(port) || !process.is_running());
        assert!(listens && process.is_running(), "no server on port {port}: {}{}", process.stdout(), process.stderr());
        Self { process, port }
    }

    /// Client for this server: `program -c 127.0.0.1 -p PORT` and `arguments`.
    pub(crate) fn client(&self, program: Program, arguments: &[&str]) -> Command {
        self.client_of("127.0.0.1", program, arguments)
    }

    /// Client for another address of this host.
    pub(crate) fn client_of(&self, host: &str, program: Program, arguments: &[&str]) -> Command {
        let mut command = program.command();
        command.args(["-c", host, "-p", &self.port.to_string()]).args(arguments);
        command
    }

    /// Resident memory in KiB (`VmRSS`).
    pub(crate) fn resident_memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).expect("a running server");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("VmRSS");
        line.trim().trim_end_matches(" kB").trim().parse().expect("a number of KiB")
    }

    /// Ends the server with a signal, like Ctrl-C, and returns its result.
    pub(crate) fn stop(self) -> FinishedChild {
        self.process.signal("INT");
        self.process.finish(Duration::from_secs(600))
    }

    /// Waits for the server's own end (`-1`), at most `limit` since its start.
    pub(crate) fn finish(self, limit: Duration) -> FinishedChild {
        self.process.finish(limit)
    }
}
