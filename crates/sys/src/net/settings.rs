//! Options set on a socket before its first packet.

use core::time::Duration;
use std::net::SocketAddr;

use linerate_units::{BitRate, ByteCount, FlowLabel, Mss, TypeOfService};
use socket2::{Domain, Protocol, Socket, Type};

use super::address::for_family;
use crate::error::{Error, Result};
use crate::options::{self, KeepaliveSettings};

/// Options of a data or control socket. `None` (or false) keeps the system's default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SocketSettings {
    /// Size of both buffers (`-w`).
    pub window: Option<ByteCount>,
    /// Maximum segment size (`-M`); TCP only.
    pub mss: Option<Mss>,
    /// Nagle's algorithm off (`-N`); TCP only.
    pub no_delay: bool,
    /// Type-of-service octet (`-S`).
    pub type_of_service: Option<TypeOfService>,
    /// IPv6 flow label (`-L`); for sockets that connect to an IPv6 address.
    pub flow_label: Option<FlowLabel>,
    /// Congestion control algorithm (`-C`); TCP only.
    pub congestion: Option<String>,
    /// Time after which unacknowledged data ends the connection (`--snd-timeout`); TCP only.
    pub user_timeout: Option<Duration>,
    /// Probes of a silent peer (`--cntl-ka`); TCP only.
    pub keepalive: Option<KeepaliveSettings>,
    /// Kernel pacing (`--fq-rate`).
    pub max_pacing_rate: Option<BitRate>,
    /// Datagrams are not to be fragmented (`--dont-fragment`); UDP only.
    pub dont_fragment: bool,
}

impl SocketSettings {
    /// Sets what every kind of socket has.
    pub(super) fn apply_common(&self, socket: &Socket) -> Result<()> {
        if let Some(window) = self.window {
            options::set_send_buffer(socket, window)?;
            options::set_receive_buffer(socket, window)?;
        }
        if let Some(value) = self.type_of_service {
            options::set_type_of_service(socket, value)?;
        }
        if let Some(rate) = self.max_pacing_rate {
            options::set_max_pacing_rate(socket, rate)?;
        }
        Ok(())
    }

    /// Sets what a TCP socket has.
    pub(super) fn apply_tcp(&self, socket: &Socket) -> Result<()> {
        self.apply_common(socket)?;
        if let Some(mss) = self.mss {
            options::set_mss(socket, mss)?;
        }
        if self.no_delay {
            options::set_no_delay(socket, true)?;
        }
        if let Some(name) = &self.congestion {
            options::set_congestion(socket, name)?;
        }
        if let Some(time) = self.user_timeout {
            options::set_user_timeout(socket, time)?;
        }
        if let Some(keepalive) = self.keepalive {
            options::set_keepalive(socket, keepalive)?;
        }
        Ok(())
    }

    /// Sets what a UDP socket has.
    pub(super) fn apply_udp(&self, socket: &Socket) -> Result<()> {
        self.apply_common(socket)?;
        if self.dont_fragment {
            options::set_dont_fragment(socket)?;
        }
        Ok(())
    }

    /// The address to connect to: `remote`, with the flow label in it if there is one and it is an IPv6 address.
    pub(super) fn labelled(&self, socket: &Socket, remote: SocketAddr) -> Result<SocketAddr> {
        match (self.flow_label, remote) {
            (Some(label), SocketAddr::V6(v6)) if v6.ip().to_ipv4_mapped().is_none() => {
                options::set_flow_label(socket, v6, label).map(SocketAddr::from)
            }
            _ => Ok(remote),
        }
    }
}

/// A new socket that no program we start inherits.
pub(super) fn open(ipv6: bool, kind: Type, protocol: Option<Protocol>) -> Result<Socket> {
    let domain = if ipv6 { Domain::IPV6 } else { Domain::IPV4 };
    let multipath = protocol == Some(Protocol::MPTCP);
    Socket::new(domain, kind, protocol).map_err(|cause| {
        let family = if ipv6 { "IPv6" } else { "IPv4" };
        let transport = if multipath {
            "Multipath TCP"
        } else if kind == Type::DGRAM {
            "UDP"
        } else {
            "TCP"
        };
        let no_multipath = "this kernel has no Multipath TCP, or it is off: `sysctl net.mptcp.enabled`";
        Error::system(format!("opening a socket for {transport} over {family}"), cause)
            .hint_on(libc::EPROTONOSUPPORT, no_multipath)
            .hint_on(libc::ENOPROTOOPT, no_multipath)
    })
}

/// Binds `socket`, where an IPv4 address may be given to an IPv6 socket.
pub(super) fn bind(socket: &Socket, address: SocketAddr, ipv6: bool) -> Result<()> {
    socket.bind(&for_family(address, ipv6).into()).map_err(|cause| {
        Error::system(format!("binding to {address}"), cause)
            .hint_on(libc::EACCES, "ports below the sysctl net.ipv4.ip_unprivileged_port_start need root")
            .hint_on(libc::EINVAL, "a link-local address needs its interface: address%interface")
    })
}
