//! A server on a port of its own.

use std::net::{Ipv6Addr, TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixListener};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::Program;
use super::process::{Finished, Process, eventually};

/// How long a server may take until it listens, on a busy machine.
const START: Duration = Duration::from_secs(10);

/// Ports below the range that the kernel takes the source ports of connections from.
const PORTS: std::ops::Range<u32> = 10_000..32_000;

/// A port that nobody uses, and that no other test gets as long as this process lives.
pub fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // Test binaries that run at the same time start at different places.
    let base = std::process::id().wrapping_mul(2_654_435_761) >> 8;
    for _ in 0..1000 {
        let number = base.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = u16::try_from(PORTS.start + number % (PORTS.end - PORTS.start)).expect("a port");
        let address = (Ipv6Addr::UNSPECIFIED, port);
        if reserve(port) && TcpListener::bind(address).is_ok() && UdpSocket::bind(address).is_ok() {
            return port;
        }
    }
    panic!("no free port between {} and {}", PORTS.start, PORTS.end);
}

/// Reserves `port` among the tests of this machine, for as long as this process lives: between the moment that a port is
/// found free and the moment that a server listens on it, another process must not find it free, too.
fn reserve(port: u16) -> bool {
    static RESERVED: Mutex<Vec<UnixListener>> = Mutex::new(Vec::new());
    let name = UnixAddress::from_abstract_name(format!("linerate-test-port-{port}")).expect("a short name");
    let Ok(reserved) = UnixListener::bind_addr(&name) else { return false };
    RESERVED.lock().unwrap_or_else(PoisonError::into_inner).push(reserved);
    true
}

/// Whether a socket listens on `port`, asked without connecting: a connection would be a client.
pub fn is_listening(port: u16) -> bool {
    ["/proc/net/tcp", "/proc/net/tcp6"].iter().any(|table| {
        let table = std::fs::read_to_string(table).unwrap_or_default();
        table.lines().skip(1).any(|line| {
            let mut fields = line.split_whitespace().skip(1);
            let local = fields.next().and_then(|local| local.rsplit_once(':')).map(|(_, port)| port);
            let state = fields.nth(1);
            state == Some("0A") && local.and_then(|local| u16::from_str_radix(local, 16).ok()) == Some(port)
        })
    })
}

/// A running server. Killed when dropped.
#[derive(Debug)]
pub struct Server {
    /// Its process.
    pub process: Process,
    /// The port it listens on.
    pub port: u16,
}

impl Server {
    /// Starts `program -s` with `arguments`, and waits until it listens.
    pub fn start(program: Program, arguments: &[&str]) -> Self {
        Self::start_with(program.command(), arguments)
    }

    /// The same with any program that takes iperf3's arguments.
    pub fn start_with(mut command: Command, arguments: &[&str]) -> Self {
        let port = free_port();
        command.args(["-s", "-p", &port.to_string()]).args(arguments);
        Self::listening(command, port)
    }

    /// Starts `command`, which listens on `port`, and waits until it does.
    pub fn listening(command: Command, port: u16) -> Self {
        let mut process = Process::start(command);
        let listens = eventually(START, || is_listening(port) || !process.is_running());
        assert!(listens && process.is_running(), "no server on port {port}: {}{}", process.stdout(), process.stderr());
        Self { process, port }
    }

    /// A client for this server: `program -c 127.0.0.1 -p PORT` and `arguments`.
    pub fn client(&self, program: Program, arguments: &[&str]) -> Command {
        self.client_of("127.0.0.1", program, arguments)
    }

    /// The same for another address of this machine.
    pub fn client_of(&self, host: &str, program: Program, arguments: &[&str]) -> Command {
        let mut command = program.command();
        command.args(["-c", host, "-p", &self.port.to_string()]).args(arguments);
        command
    }

    /// Resident memory in KiB (`VmRSS`).
    pub fn resident_memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).expect("a running server");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("VmRSS");
        line.trim().trim_end_matches(" kB").trim().parse().expect("a number of KiB")
    }

    /// Ends it with a signal, as Ctrl-C does, and returns what it left.
    pub fn stop(self) -> Finished {
        self.process.signal("INT");
        self.process.finish(Duration::from_secs(600))
    }

    /// Waits for its own end (`-1`), at most `limit` since its start.
    pub fn finish(self, limit: Duration) -> Finished {
        self.process.finish(limit)
    }
}
