//! The route of this host's packets to an address (rtnetlink(7), `RTM_GETROUTE`).

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;

use linerate_units::Mtu;

use crate::error::{Error, Result};
use crate::interface::NetworkInterface;
use crate::net::{canonical, scope_of};
use crate::netlink::{NetlinkSocket, append_attribute, attribute, attributes, number};

/// A route from this host to an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteToAddress {
    /// The interface.
    pub interface: String,
    /// The number of the interface.
    pub index: u32,
    /// The first router; `None` for addresses on a link of this host, or of this host.
    pub gateway: Option<IpAddr>,
    /// The address that this host sends from.
    pub source: Option<IpAddr>,
    /// True when the address is one of this host's own.
    pub is_local: bool,
    /// The MTU of the interface.
    pub interface_mtu: Option<Mtu>,
    /// The MTU that the route itself has, set by hand or learnt from a router; `None` when it is the interface's.
    pub route_mtu: Option<Mtu>,
}

impl RouteToAddress {
    /// The MTU in effect: the route's own, else the interface's.
    #[must_use]
    pub fn mtu(&self) -> Option<Mtu> {
        self.route_mtu.or(self.interface_mtu)
    }
}

// From the kernel's linux/rtnetlink.h.
const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;
const RTA_PREFSRC: u16 = 7;
const RTA_METRICS: u16 = 8;
const RTAX_MTU: u16 = 2;
const RTN_LOCAL: u8 = 2;
/// Length of `rtmsg`: family, lengths of prefixes, type of service, table, protocol, scope, type, flags.
const RTMSG_LENGTH: usize = 12;

/// The route to the address of a peer, in the calling thread's network namespace; to a link-local one, which each interface
/// may lead to, on the interface that its scope names, and on any without one.
pub fn route_to(peer: SocketAddr) -> Result<RouteToAddress> {
    let scope = scope_of(peer);
    let address = canonical(peer).ip();
    let failed = |cause| {
        let no_way = "this host has no route to it: `ip route` and `ip -6 route` list its routes";
        Error::system(format!("looking up the route to {address}"), cause)
            .hint_on(libc::ENETUNREACH, no_way)
            .hint_on(libc::EHOSTUNREACH, no_way)
    };
    let mut socket = NetlinkSocket::route().map_err(failed)?;
    let mut found = None;
    let question = question(address, scope).map_err(failed)?;
    let keep = |message: crate::netlink::NetlinkMessage<'_>| found = found.take().or_else(|| parse(message.body));
    socket.ask(libc::RTM_GETROUTE, &question, keep).map_err(failed)?;
    let mut route = found.ok_or_else(|| failed(io::ErrorKind::InvalidData.into()))?;
    let interface = NetworkInterface::by_index(route.index)?;
    route.interface = interface.name;
    route.interface_mtu = interface.mtu;
    Ok(route)
}

fn question(address: IpAddr, interface: Option<NonZeroU32>) -> io::Result<Vec<u8>> {
    let (family, octets) = match address {
        IpAddr::V4(address) => (libc::AF_INET, address.octets().to_vec()),
        IpAddr::V6(address) => (libc::AF_INET6, address.octets().to_vec()),
    };
    let mut body = vec![0; RTMSG_LENGTH];
    body[0] = u8::try_from(family).unwrap_or_default();
    body[1] = u8::try_from(octets.len() * 8).unwrap_or_default();
    append_attribute(&mut body, RTA_DST, &octets)?;
    if let Some(interface) = interface {
        append_attribute(&mut body, RTA_OIF, &interface.get().to_ne_bytes())?;
    }
    Ok(body)
}

/// The kernel's description of a route; the interface's name and MTU are not in it.
fn parse(body: &[u8]) -> Option<RouteToAddress> {
    let (description, rest) = body.split_at_checked(RTMSG_LENGTH)?;
    let mut route = RouteToAddress {
        interface: String::new(),
        index: 0,
        gateway: None,
        source: None,
        is_local: description[7] == RTN_LOCAL,
        interface_mtu: None,
        route_mtu: None,
    };
    for (kind, content) in attributes(rest) {
        match kind {
            RTA_OIF => route.index = number(content, 0)?,
            RTA_GATEWAY => route.gateway = address(content),
            RTA_PREFSRC => route.source = address(content),
            RTA_METRICS => {
                let mtu = attribute(content, RTAX_MTU).and_then(|content| number(content, 0));
                route.route_mtu = mtu.filter(|mtu| *mtu > 0).map(Mtu::new);
            }
            _ => {}
        }
    }
    (route.index != 0).then_some(route)
}

fn address(content: &[u8]) -> Option<IpAddr> {
    match content.len() {
        4 => <[u8; 4]>::try_from(content).ok().map(IpAddr::from),
        _ => <[u8; 16]>::try_from(content).ok().map(IpAddr::from),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_route_to_this_host() {
        for text in ["127.0.0.1:0", "[::1]:0", "[::ffff:127.0.0.1]:0"] {
            let route = route_to(text.parse().expect("valid")).expect("every host has it");
            assert_eq!((route.interface.as_str(), route.index, route.is_local), ("lo", 1, true), "{text}");
            assert_eq!((route.gateway, route.mtu()), (None, route.interface_mtu));
            assert!(route.interface_mtu.is_some_and(|mtu| mtu.get() >= 1280), "{route:?}");
        }
    }

    #[test]
    #[ignore = "needs root and ip: three network namespaces with a router between them"]
    fn routes_over_a_router_and_with_an_mtu_of_their_own() {
        let chain = crate::test_network::NamespaceChain::new(1400);
        let within = || {
            for (far, router, near, length) in
                [("10.99.2.2", "10.99.1.2", "10.99.1.1", 32), ("fd99:2::2", "fd99:1::2", "fd99:1::1", 128)]
            {
                let to = SocketAddr::new(far.parse().expect("valid"), 0);
                let route = route_to(to).expect("there is one");
                assert_eq!((route.interface.as_str(), route.is_local), ("near0", false));
                assert_eq!((route.gateway, route.source), (router.parse().ok(), near.parse().ok()));
                assert_eq!((route.interface_mtu, route.route_mtu), (Some(Mtu::new(1500)), None));
                let own = format!("{far}/{length}");
                let make = ["route", "add", own.as_str(), "via", router, "mtu", "1300"];
                crate::command::run_checked("ip", &make, None, core::time::Duration::from_secs(10)).expect("ip");
                let route = route_to(to).expect("there is one");
                assert_eq!((route.route_mtu, route.mtu()), (Some(Mtu::new(1300)), Some(Mtu::new(1300))));
            }
        };
        chain.near.within(within).expect("entered");
        let alone = || route_to("192.0.2.1:0".parse().expect("valid")).expect_err("not even loopback is up");
        let error = crate::namespace::NetworkNamespace::create().expect("root").within(alone).expect("entered");
        assert!(error.to_string().contains("ip route"), "{error}");
    }

    #[test]
    #[ignore = "needs root and ip: three network namespaces with a router between them"]
    fn routes_to_link_local_peers_are_on_their_interface() {
        let chain = crate::test_network::NamespaceChain::new(1400);
        let within = || {
            for device in ["r1", "r2"] {
                let scope = crate::namespace::device_index(device).expect("there");
                let peer = std::net::SocketAddrV6::new("fe80::99".parse().expect("valid"), 7, 0, scope);
                let route = route_to(peer.into()).expect("there is one");
                assert_eq!((route.interface.as_str(), route.index, route.gateway), (device, scope, None));
            }
        };
        chain.router.within(within).expect("entered");
    }

    #[test]
    fn a_truncated_answer_is_none() {
        let mut body = vec![0; RTMSG_LENGTH];
        append_attribute(&mut body, RTA_OIF, &3_u32.to_ne_bytes()).expect("short");
        assert_eq!(parse(&body).map(|route| route.index), Some(3));
        for length in 0..body.len() {
            assert_eq!(parse(&body[..length]), None, "{length}");
        }
    }
}
