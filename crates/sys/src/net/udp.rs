//! UDP sockets.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::num::NonZeroU32;

use linerate_units::Port;
use socket2::{Protocol, Socket, Type};

use super::address::{for_family, with_scope};
use super::listen::{bind_listener, is_without_ipv6};
use super::settings::{self, SocketSettings};
use crate::error::{Error, Result};
use crate::options;
use linerate_model::address_family::AddressFamily;

/// A UDP socket to make.
#[derive(Clone, Debug, Default)]
pub struct UdpOptions {
    /// Local address (`-B`); `None` is all of them.
    pub address: Option<IpAddr>,
    /// Number of the interface of a link-local address ([`scope_of`](super::scope_of)); `None` where `device` names it.
    pub scope: Option<NonZeroU32>,
    /// Local port (`--cport`); `None` lets the kernel choose.
    pub port: Option<Port>,
    /// Address families. Without an address, `None` receives both at once.
    pub family: Option<AddressFamily>,
    /// The only interface to use (`--bind-dev`).
    pub device: Option<String>,
    /// True when other sockets that allow it, too, may have the same address and port.
    pub reuse_address: bool,
    /// Options of the socket.
    pub settings: SocketSettings,
}

impl UdpOptions {
    fn local(&self, address: IpAddr) -> SocketAddr {
        with_scope(SocketAddr::new(address, self.port.map_or(0, Port::get)), self.scope)
    }
}

/// A socket on which datagrams from anyone are received. Falls back to IPv4 where there is no IPv6, as
/// [`super::listen_tcp`] does.
pub fn bind_udp(options: &UdpOptions) -> Result<UdpSocket> {
    let address = options.address.unwrap_or(match options.family {
        Some(AddressFamily::Ipv4) => Ipv4Addr::UNSPECIFIED.into(),
        None | Some(AddressFamily::Ipv6) => Ipv6Addr::UNSPECIFIED.into(),
    });
    if options.family.is_some_and(|family| family != AddressFamily::of(address)) {
        return Err(Error::refused(format!("binding to {address}"), "the address is not of the family asked for"));
    }
    let fall_back = options.address.is_none() && options.family.is_none();
    match bind_to(address, options) {
        Err(error) if fall_back && is_without_ipv6(&error) => bind_to(Ipv4Addr::UNSPECIFIED.into(), options),
        socket => socket,
    }
}

fn bind_to(address: IpAddr, options: &UdpOptions) -> Result<UdpSocket> {
    let socket = prepare(address.is_ipv6(), options)?;
    bind_listener(&socket, options.local(address), options.family, options.device.as_deref())?;
    Ok(socket.into())
}

/// A socket that sends to `remote` and receives from it alone.
pub fn connect_udp(options: &UdpOptions, remote: SocketAddr) -> Result<UdpSocket> {
    let ipv6 = remote.is_ipv6();
    let socket = prepare(ipv6, options)?;
    if let Some(device) = &options.device {
        options::bind_to_device(&socket, device)?;
    }
    if options.address.is_some() || options.port.is_some() {
        let any = if ipv6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
        settings::bind(&socket, options.local(options.address.unwrap_or(any)), ipv6)?;
    }
    let labelled = options.settings.labelled(&socket, remote)?;
    socket.connect(&labelled.into()).map_err(|cause| connect_error(remote, cause))?;
    Ok(socket.into())
}

/// Connects a bound socket to one peer: from now on it sends to `remote` and receives from it alone. An IPv4 peer of an
/// IPv6 socket may be given mapped or not.
pub fn connect_bound_udp(socket: &UdpSocket, remote: SocketAddr) -> Result<()> {
    let remote = for_family(remote, options::is_ipv6(socket)?);
    socket.connect(remote).map_err(|cause| connect_error(remote, cause))
}

fn prepare(ipv6: bool, options: &UdpOptions) -> Result<Socket> {
    let socket = settings::open(ipv6, Type::DGRAM, Some(Protocol::UDP))?;
    if options.reuse_address {
        options::set_reuse_address(&socket, true)?;
    }
    options.settings.apply_udp(&socket)?;
    Ok(socket)
}

fn connect_error(remote: SocketAddr, cause: std::io::Error) -> Error {
    Error::system(format!("connecting a UDP socket to {remote}"), cause)
        .hint_on(libc::ENETUNREACH, "this host has no route to that network: `ip route` and `ip -6 route` list them")
        .hint_on(libc::EINVAL, "a link-local address needs its interface: address%interface")
}
