//! Addresses, names and devices. All of them follow from a link's number.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::description::{PARALLEL, PathDescription};
use crate::plan::DevicePairEnd;

/// An end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkEnd {
    /// Towards near.
    Near,
    /// Towards far.
    Far,
}

impl LinkEnd {
    const fn number(self) -> u8 {
        match self {
            Self::Near => 1,
            Self::Far => 2,
        }
    }

    pub(crate) const fn other(self) -> Self {
        match self {
            Self::Near => Self::Far,
            Self::Far => Self::Near,
        }
    }

    /// The letter of this end in the names of the wire's devices.
    pub(crate) const fn letter(self) -> char {
        match self {
            Self::Near => 'a',
            Self::Far => 'b',
        }
    }
}

/// A link's number as a byte: a description has at most 64, and as many second parallel ones.
fn octet(link: usize) -> u8 {
    u8::try_from(link).unwrap_or(u8::MAX)
}

/// 10.0.LINK.1 and 10.0.LINK.2, of a network with four addresses.
pub(crate) fn ipv4(link: usize, end: LinkEnd) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, octet(link), end.number())
}

/// The network of a link, for routes.
pub(crate) fn ipv4_network(link: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, octet(link), 0)
}

/// `fd00:0:0:LINK::1` and `::2`.
pub(crate) fn ipv6(link: usize, end: LinkEnd) -> Ipv6Addr {
    Ipv6Addr::new(0xfd00, 0, 0, u16::from(octet(link)), 0, 0, 0, u16::from(end.number()))
}

/// The network of a link, for routes.
pub(crate) fn ipv6_network(link: usize) -> Ipv6Addr {
    Ipv6Addr::new(0xfd00, 0, 0, u16::from(octet(link)), 0, 0, 0, 0)
}

/// The hardware address of device `number` of a link; 1 and 2 are the hosts'.
pub(crate) fn mac(link: usize, number: u8) -> String {
    format!("02:00:00:00:{:02x}:{number:02x}", octet(link))
}

/// The hardware address of the host at this end.
pub(crate) fn host_mac(link: usize, end: LinkEnd) -> String {
    mac(link, end.number())
}

/// The host's device at this end: `eth0`, and `eth1` for a router's second link; `eth2` and `eth3` at a second parallel one.
pub(crate) const fn host_device(link: usize, end: LinkEnd) -> &'static str {
    // Every host but near has its first device towards near.
    match end {
        LinkEnd::Near if link >= PARALLEL => "eth2",
        LinkEnd::Far if link >= PARALLEL => "eth3",
        LinkEnd::Near if link > 0 => "eth1",
        LinkEnd::Near | LinkEnd::Far => "eth0",
    }
}

/// Index of the host at this end of a link.
pub(crate) const fn host_index(link: usize, end: LinkEnd) -> usize {
    match end {
        LinkEnd::Near => link % PARALLEL,
        LinkEnd::Far => link % PARALLEL + 1,
    }
}

/// The host's end of the pair that joins it to the wire.
pub(crate) fn host_end(path: &PathDescription, link: usize, end: LinkEnd) -> DevicePairEnd {
    DevicePairEnd {
        namespace: path.hosts[host_index(link, end)].name.clone(),
        device: host_device(link, end).to_owned(),
        mac: host_mac(link, end),
    }
}

/// A host's main addresses: near's are on its first link, all others' towards near.
pub(crate) fn main_address(host: usize) -> (Ipv4Addr, Ipv6Addr) {
    match host.checked_sub(1) {
        None => (ipv4(0, LinkEnd::Near), ipv6(0, LinkEnd::Near)),
        Some(link) => (ipv4(link, LinkEnd::Far), ipv6(link, LinkEnd::Far)),
    }
}

/// Lines of `/etc/hosts`: each host by its name, and by NAME6 where the path has IPv6.
pub(crate) fn names(path: &PathDescription) -> Vec<String> {
    let mut lines = vec!["127.0.0.1 localhost".to_owned(), "::1 localhost".to_owned()];
    for (index, host) in path.hosts.iter().enumerate() {
        let (ipv4, ipv6) = main_address(index);
        lines.push(format!("{ipv4} {}", host.name));
        if path.has_ipv6() {
            lines.push(format!("{ipv6} {}6", host.name));
        }
    }
    lines
}
