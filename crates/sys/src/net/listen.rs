//! Listening for TCP connections.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::num::NonZeroU32;

use linerate_units::Port;
use socket2::{Protocol, Socket, Type};

use super::address::{canonical, with_scope};
use super::settings::{self, SocketSettings};
use super::steering;
use crate::error::{Error, Result};
use crate::options;
use linerate_model::address_family::AddressFamily;

/// Parameters of a listening socket.
#[derive(Clone, Debug, Default)]
pub struct ListenOptions {
    /// Local address (`-B`); `None` is all of them.
    pub address: Option<IpAddr>,
    /// Number of the interface of a link-local address ([`scope_of`](super::scope_of)); `None` where `device` names it.
    pub scope: Option<NonZeroU32>,
    /// The port; `None` lets the kernel choose a free one.
    pub port: Option<Port>,
    /// Address families. Without an address, `None` listens for both at once.
    pub family: Option<AddressFamily>,
    /// The only interface to use (`--bind-dev`).
    pub device: Option<String>,
    /// Multipath TCP (RFC 8684); plain TCP clients are served too.
    pub multipath: bool,
    /// Options that accepted connections inherit.
    pub settings: SocketSettings,
    /// Other listeners of this process on the same address and port.
    pub sharing: PortSharing,
}

/// Listeners on one address and port, for [`steer`](super::steer).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PortSharing {
    /// Only this one.
    #[default]
    None,
    /// A second one may follow, where the kernel can tell their clients apart. The port must be free.
    First,
    /// Second listener of a port. It gets no connections until [`steer`](super::steer) names their clients.
    Second,
}

/// A listening socket.
#[derive(Debug)]
pub struct TcpListening {
    /// The socket, in blocking mode.
    pub listener: TcpListener,
    /// True when it listens for IPv4 alone only because this system has no IPv6: worth a warning.
    pub without_ipv6: bool,
}

/// Listens, with the longest queue that the system allows (`net.core.somaxconn`).
pub fn listen_tcp(options: &ListenOptions) -> Result<TcpListening> {
    let address = options.address.unwrap_or(match options.family {
        Some(AddressFamily::Ipv4) => Ipv4Addr::UNSPECIFIED.into(),
        None | Some(AddressFamily::Ipv6) => Ipv6Addr::UNSPECIFIED.into(),
    });
    if options.family.is_some_and(|family| family != AddressFamily::of(address)) {
        return Err(Error::refused(format!("listening on {address}"), "the address is not of the family asked for"));
    }
    let fall_back = options.address.is_none() && options.family.is_none();
    match listen_on(address, options) {
        Err(error) if fall_back && is_without_ipv6(&error) => {
            Ok(TcpListening { listener: listen_on(Ipv4Addr::UNSPECIFIED.into(), options)?, without_ipv6: true })
        }
        listener => Ok(TcpListening { listener: listener?, without_ipv6: false }),
    }
}

/// IPv6 is not built in (no such family), or switched off (no such address).
pub(super) fn is_without_ipv6(error: &Error) -> bool {
    matches!(error.errno(), Some(libc::EAFNOSUPPORT | libc::EADDRNOTAVAIL))
}

fn listen_on(address: IpAddr, options: &ListenOptions) -> Result<TcpListener> {
    let ipv6 = address.is_ipv6();
    let protocol = if options.multipath { Protocol::MPTCP } else { Protocol::TCP };
    let socket = settings::open(ipv6, Type::STREAM, Some(protocol))?;
    options::set_reuse_address(&socket, true)?;
    options::set_reuse_port(&socket, options.sharing == PortSharing::Second)?;
    let local = with_scope(SocketAddr::new(address, options.port.map_or(0, Port::get)), options.scope);
    bind_listener(&socket, local, options.family, options.device.as_deref())?;
    if options.sharing == PortSharing::First {
        // Not before binding: otherwise another server of the same user could have the port already.
        options::set_reuse_port(&socket, true)?;
        if steering::attach(&socket, &[]).is_err() {
            // Without the program, each listener would get connections meant for the other.
            options::set_reuse_port(&socket, false)?;
        }
    }
    options.settings.apply_tcp(&socket)?;
    socket.listen(libc::c_int::MAX).map_err(|cause| {
        Error::system(format!("listening on {address} port {}", options.port.map_or(0, Port::get)), cause)
    })?;
    Ok(socket.into())
}

/// Binds a socket for incoming connections or datagrams.
pub(super) fn bind_listener(
    socket: &Socket,
    address: SocketAddr,
    family: Option<AddressFamily>,
    device: Option<&str>,
) -> Result<()> {
    if let Some(device) = device {
        options::bind_to_device(socket, device)?;
    }
    if address.is_ipv6() {
        options::set_ipv6_only(socket, family == Some(AddressFamily::Ipv6))?;
    }
    settings::bind(socket, address, address.is_ipv6())
}

/// Accepts the next waiting connection, in non-blocking mode, with its address (IPv4 never mapped); `None` when there
/// is none. The listener must be in non-blocking mode. A connection that died in the queue is skipped. When this
/// process has no descriptor left, that is an error and the connection stays in the queue: pause before the next
/// attempt.
pub fn accept_nonblocking(listener: &TcpListener) -> Result<Option<(TcpStream, SocketAddr)>> {
    loop {
        match listener.accept() {
            Ok((stream, address)) => {
                let failed = |cause| Error::system(format!("accepting a connection from {address}"), cause);
                stream.set_nonblocking(true).map_err(failed)?;
                return Ok(Some((stream, canonical(address))));
            }
            Err(cause) if cause.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(cause) if is_connection_error(&cause) => {}
            Err(cause) => return Err(Error::system("accepting a connection", cause)),
        }
    }
}

/// Errors of `accept(2)` that belong to the connection taken off the queue, not to the listener.
fn is_connection_error(cause: &io::Error) -> bool {
    matches!(
        cause.raw_os_error(),
        Some(
            libc::EINTR
                | libc::ECONNABORTED
                | libc::EPROTO
                | libc::ENETDOWN
                | libc::ENOPROTOOPT
                | libc::EHOSTDOWN
                | libc::ENONET
                | libc::EHOSTUNREACH
                | libc::EOPNOTSUPP
                | libc::ENETUNREACH
                | libc::EPERM
        )
    )
}
