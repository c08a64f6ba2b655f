//! Outgoing TCP connections.

use core::time::Duration;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};

use socket2::{Protocol, Socket, Type};

use super::rendezvous;
use super::settings::{self, SocketSettings};
use crate::clock;
use crate::error::{Error, Result};
use crate::options;
use crate::poll::{self, PollInterest, PollItem};
use crate::sockopt::{self, SocketOption};

/// A connection to make.
#[derive(Clone, Debug)]
pub struct ConnectOptions {
    /// Remote address.
    pub remote: SocketAddr,
    /// Local address (`-B`, `--cport`); port 0 lets the kernel choose.
    pub bind: Option<SocketAddr>,
    /// The only interface to use (`--bind-dev`).
    pub device: Option<String>,
    /// Time limit (`--connect-timeout`); `None` is the kernel's own, about two minutes.
    pub timeout: Option<Duration>,
    /// Multipath TCP (RFC 8684).
    pub multipath: bool,
    /// True when the address bound to may still have lingering connections.
    pub reuse_address: bool,
    /// Options of the socket.
    pub settings: SocketSettings,
}

impl ConnectOptions {
    /// To `remote`, with everything else as the system has it.
    #[must_use]
    pub fn to(remote: SocketAddr) -> Self {
        Self {
            remote,
            bind: None,
            device: None,
            timeout: None,
            multipath: false,
            reuse_address: false,
            settings: SocketSettings::default(),
        }
    }
}

const NO_PORT_YET: SocketOption = SocketOption::new(
    libc::IPPROTO_IP,
    libc::IP_BIND_ADDRESS_NO_PORT,
    "IP_BIND_ADDRESS_NO_PORT",
    "switch for the late choice of the port",
);

/// Connects; returns the connection in blocking mode. When `cancel` becomes readable (see [`crate::poll::Waker`] and
/// [`crate::signals::InterruptSignals`]) the attempt ends with [`Error::Cancelled`].
pub fn connect_tcp(options: &ConnectOptions, cancel: Option<BorrowedFd<'_>>) -> Result<TcpStream> {
    connect_tcp_timed(options, cancel).map(|(stream, _)| stream)
}

/// As [`connect_tcp`], with the handshake's duration as measured by this program: from the call that sends the SYN
/// until the connection is established. The kernel's own first sample is in `tcp_info` ([`crate::tcp_info`]); it lacks
/// the time until this program is woken, and a handshake whose SYN was lost.
pub fn connect_tcp_timed(options: &ConnectOptions, cancel: Option<BorrowedFd<'_>>) -> Result<(TcpStream, Duration)> {
    if let Some(taken) = rendezvous::take(options, cancel) {
        return taken;
    }
    let ipv6 = options.remote.is_ipv6();
    let protocol = if options.multipath { Protocol::MPTCP } else { Protocol::TCP };
    let socket = settings::open(ipv6, Type::STREAM, Some(protocol))?;
    prepare(&socket, options, ipv6)?;
    let remote = options.settings.labelled(&socket, options.remote)?;
    let failed = |cause| connect_error(options.remote, cause);
    socket.set_nonblocking(true).map_err(failed)?;
    let begun = clock::monotonic_now();
    match socket.connect(&remote.into()) {
        Err(cause) if cause.raw_os_error() == Some(libc::EINPROGRESS) => finish(&socket, options, cancel)?,
        done => done.map_err(failed)?,
    }
    let took = clock::monotonic_now() - begun;
    socket.set_nonblocking(false).map_err(failed)?;
    Ok((socket.into(), took))
}

/// Sends the SYN of a connection, and returns it in nonblocking mode at once: it is established, or failed (`SO_ERROR`), when it is
/// writable. The time limit of the options is the caller's to keep.
pub fn start_tcp(options: &ConnectOptions) -> Result<TcpStream> {
    let ipv6 = options.remote.is_ipv6();
    let socket = settings::open(ipv6, Type::STREAM, Some(Protocol::TCP))?;
    prepare(&socket, options, ipv6)?;
    let remote = options.settings.labelled(&socket, options.remote)?;
    let failed = |cause| connect_error(options.remote, cause);
    socket.set_nonblocking(true).map_err(failed)?;
    match socket.connect(&remote.into()) {
        Err(cause) if cause.raw_os_error() != Some(libc::EINPROGRESS) => Err(failed(cause)),
        _ => Ok(socket.into()),
    }
}

/// As [`connect_tcp`], with the kernel's time limit (`SO_SNDTIMEO`) instead of a poll: half the system calls, for connections that
/// are made one after another. The time limit stays on the socket, for sending.
pub fn connect_tcp_blocking(options: &ConnectOptions) -> Result<TcpStream> {
    if let Some(taken) = rendezvous::take(options, None) {
        return taken.map(|(stream, _)| stream);
    }
    let ipv6 = options.remote.is_ipv6();
    let socket = settings::open(ipv6, Type::STREAM, Some(Protocol::TCP))?;
    prepare(&socket, options, ipv6)?;
    options::set_send_timeout(&socket, options.timeout)?;
    match socket.connect(&options.settings.labelled(&socket, options.remote)?.into()) {
        Ok(()) => Ok(socket.into()),
        // What connect(2) returns after that time.
        Err(cause) if cause.raw_os_error() == Some(libc::EINPROGRESS) => Err(Error::TimedOut {
            operation: format!("connecting to {}", options.remote),
            after: options.timeout.unwrap_or_default(),
        }),
        Err(cause) => Err(connect_error(options.remote, cause)),
    }
}

fn prepare(socket: &Socket, options: &ConnectOptions, ipv6: bool) -> Result<()> {
    if let Some(device) = &options.device {
        options::bind_to_device(socket, device)?;
    }
    if options.reuse_address {
        options::set_reuse_address(socket, true)?;
    }
    options.settings.apply_tcp(socket)?;
    let Some(address) = options.bind else { return Ok(()) };
    if address.is_ipv6() && !ipv6 {
        return Err(Error::refused(
            format!("connecting from {address} to {}", options.remote),
            "these addresses are of different families: bind to an IPv4 address, or connect to an IPv6 one",
        ));
    }
    if address.port() == 0 {
        // The port is then chosen for this destination, and not reserved for all. Older kernels lack it.
        let _ = sockopt::set(socket, NO_PORT_YET, sockopt::flag(true));
    }
    settings::bind(socket, address, ipv6)
}

/// Waits for the outcome of a connection attempt that is in progress.
fn finish(socket: &Socket, options: &ConnectOptions, cancel: Option<BorrowedFd<'_>>) -> Result<()> {
    let fd = socket.as_fd();
    let mut items = vec![PollItem::new(&fd, PollInterest::WRITE)];
    items.extend(cancel.as_ref().map(|cancel| PollItem::new(cancel, PollInterest::READ)));
    let ready = poll::wait(&mut items, options.timeout)?;
    let operation = || format!("connecting to {}", options.remote);
    if items.get(1).is_some_and(PollItem::is_ready) {
        return Err(Error::Cancelled { operation: operation() });
    }
    if ready == 0 {
        return Err(Error::TimedOut { operation: operation(), after: options.timeout.unwrap_or_default() });
    }
    match socket.take_error() {
        Ok(None) => Ok(()),
        Ok(Some(cause)) | Err(cause) => Err(connect_error(options.remote, cause)),
    }
}

fn connect_error(remote: SocketAddr, cause: io::Error) -> Error {
    Error::system(format!("connecting to {remote}"), cause)
        .hint_on(
            libc::ECONNREFUSED,
            "nothing listens there: run `linerate serve` or an iperf3 server on that host, or correct the port",
        )
        .hint_on(libc::ETIMEDOUT, "no answer: is the host up, and does a firewall drop the port?")
        .hint_on(libc::EHOSTUNREACH, "no route to that host, or a firewall rejects the port")
        .hint_on(libc::ENETUNREACH, "this host has no route to that network: `ip route` and `ip -6 route` list them")
        .hint_on(libc::EADDRNOTAVAIL, "this host does not have the address to connect from, or no free port is left")
        .hint_on(libc::EINVAL, "a link-local address needs its interface: address%interface")
}
