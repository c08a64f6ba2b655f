//! Addresses and names.

use std::net::{SocketAddr, SocketAddrV6, ToSocketAddrs};
use std::num::NonZeroU32;
use std::os::fd::AsFd;

use linerate_model::address_family::AddressFamily;
use linerate_units::Port;
use socket2::SockRef;

use crate::error::{Error, Result};

/// The addresses of `host` (a name, or an address, an IPv6 one possibly with `%interface` and in brackets as URLs have it)
/// in the order in which they should be tried (`getaddrinfo(3)`); never empty.
pub fn resolve(host: &str, port: Port, family: Option<AddressFamily>) -> Result<Vec<SocketAddr>> {
    let operation = || format!("looking up the host {host:?}");
    let found = (without_brackets(host), port.get()).to_socket_addrs().map_err(|cause| {
        let text = cause.to_string();
        // The standard library adds its own text in front of the resolver's.
        let reason = text.strip_prefix("failed to lookup address information: ").unwrap_or(&text);
        Error::refused(operation(), format!("{reason} (is the name right? `getent ahosts {host}` asks the same)"))
    })?;
    let mut addresses: Vec<SocketAddr> = Vec::new();
    for address in found.filter(|address| family.is_none_or(|family| family == AddressFamily::of(address.ip()))) {
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    if addresses.is_empty() {
        let missing =
            if family == Some(AddressFamily::Ipv6) { "it has no IPv6 address" } else { "it has no IPv4 address" };
        return Err(Error::refused(operation(), missing));
    }
    Ok(addresses)
}

/// An IPv6 address without the brackets around it; every other text as it is.
fn without_brackets(host: &str) -> &str {
    let inner = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    inner.filter(|inner| inner.contains(':')).unwrap_or(host)
}

/// An IPv4 address that came mapped into IPv6 (`::ffff:192.0.2.1`), as IPv4; every other address as it is.
#[must_use]
pub fn canonical(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V6(v6) => match v6.ip().to_ipv4_mapped() {
            Some(v4) => SocketAddr::from((v4, v6.port())),
            None => address,
        },
        SocketAddr::V4(_) => address,
    }
}

/// `address` as a socket of the given family takes it: IPv4 is mapped into IPv6 for an IPv6 socket, and back.
pub(crate) fn for_family(address: SocketAddr, ipv6: bool) -> SocketAddr {
    match canonical(address) {
        SocketAddr::V4(v4) if ipv6 => SocketAddrV6::new(v4.ip().to_ipv6_mapped(), v4.port(), 0, 0).into(),
        address => address,
    }
}

/// Another port of the same host, with the interface of a link-local address.
#[must_use]
pub fn with_port(mut peer: SocketAddr, port: Port) -> SocketAddr {
    peer.set_port(port.get());
    peer
}

/// Number of the interface that a link-local IPv6 address is unique on (RFC 4007); `None` for addresses that need none.
#[must_use]
pub fn scope_of(address: SocketAddr) -> Option<NonZeroU32> {
    match address {
        SocketAddr::V6(v6) if v6.ip().is_unicast_link_local() => NonZeroU32::new(v6.scope_id()),
        _ => None,
    }
}

/// `address` on that interface, where it is a link-local one; others as they are.
pub(super) fn with_scope(mut address: SocketAddr, scope: Option<NonZeroU32>) -> SocketAddr {
    if let (SocketAddr::V6(v6), Some(scope)) = (&mut address, scope)
        && v6.ip().is_unicast_link_local()
    {
        v6.set_scope_id(scope.get());
    }
    address
}

/// Local and remote address of a connected socket, un-mapped ([`canonical`]).
pub fn addresses(socket: &impl AsFd) -> Result<(SocketAddr, SocketAddr)> {
    let fd = socket.as_fd();
    let socket = SockRef::from(&fd);
    let ends = socket.local_addr().and_then(|local| Ok((local, socket.peer_addr()?)));
    let (local, remote) = ends.map_err(|cause| Error::system("asking a socket for its addresses", cause))?;
    let no_address = || Error::refused("reading a socket's addresses", "it is not an IP socket");
    let ip = |address: socket2::SockAddr| address.as_socket().map(canonical).ok_or_else(no_address);
    Ok((ip(local)?, ip(remote)?))
}

/// True when a connected socket's peer is on this host, as far as the addresses show: loopback, or the same on both
/// ends.
#[must_use]
pub fn peer_is_this_host(socket: &impl AsFd) -> bool {
    addresses(socket).is_ok_and(|(local, remote)| remote.ip().is_loopback() || local.ip() == remote.ip())
}
