//! Selection of the sockets that the kernel is to list (`inet_diag_req_v2` and its byte code, `net/ipv4/inet_diag.c`).

use std::io;
use std::net::IpAddr;

use linerate_model::socket::TcpState;
use linerate_units::Port;

use crate::netlink::append_attribute;

// Requested extensions, each a bit at the position of its attribute's number less one.
const EXTENSIONS: u8 = 1 << (2 - 1) // INET_DIAG_INFO
    | 1 << (3 - 1) // INET_DIAG_VEGASINFO: also BBR's and DCTCP's
    | 1 << (4 - 1) // INET_DIAG_CONG
    | 1 << (5 - 1) // INET_DIAG_TOS
    | 1 << (6 - 1) // INET_DIAG_TCLASS
    | 1 << (7 - 1); // INET_DIAG_SKMEMINFO

/// `INET_DIAG_REQ_BYTECODE`.
const BYTE_CODE_ATTRIBUTE: u16 = 1;
/// Length of `struct inet_diag_sockid`, which a list leaves empty.
const SOCKET_IDENTITY_LENGTH: usize = 48;

// Operations of the byte code (`include/uapi/linux/inet_diag.h`).
const JUMP: u8 = 1;
const LOCAL_PORT_AT_LEAST: u8 = 2;
const LOCAL_PORT_AT_MOST: u8 = 3;
const REMOTE_PORT_AT_LEAST: u8 = 4;
const REMOTE_PORT_AT_MOST: u8 = 5;
const REMOTE_ADDRESS: u8 = 8;

/// States of sockets, as a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketStates(u32);

impl SocketStates {
    /// All of them.
    pub const ALL: Self = Self(u32::MAX);

    /// These.
    #[must_use]
    pub fn of(states: &[TcpState]) -> Self {
        let number = |state: &TcpState| TcpState::ALL.iter().position(|other| other == state).unwrap_or(0) + 1;
        Self(states.iter().fold(0, |set, state| set | 1 << number(state)))
    }

    /// States in which data may be in flight.
    #[must_use]
    pub fn flows() -> Self {
        use TcpState::{CloseWait, Closing, Established, FinWait1, LastAck, SynReceived, SynSent};
        Self::of(&[Established, SynSent, SynReceived, FinWait1, CloseWait, LastAck, Closing])
    }
}

/// Addresses with the same prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressPrefix {
    address: IpAddr,
    length: u8,
}

impl AddressPrefix {
    /// The addresses whose first `length` bits are those of `address`; `None` if it has fewer.
    #[must_use]
    pub fn new(address: IpAddr, length: u8) -> Option<Self> {
        (length <= bits(address)).then_some(Self { address, length })
    }

    /// This address alone.
    #[must_use]
    pub fn single(address: IpAddr) -> Self {
        Self { address, length: bits(address) }
    }

    /// True when `address` has the prefix. An IPv4 address in an IPv6 one (mapped) counts as IPv4.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                same_start(own.to_bits().into(), other.to_bits().into(), self.length, 32)
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => same_start(own.to_bits(), other.to_bits(), self.length, 128),
            _ => false,
        }
    }
}

fn same_start(one: u128, other: u128, length: u8, bits: u8) -> bool {
    length == 0 || (one ^ other) >> (bits - length) == 0
}

const fn bits(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

/// Selection of sockets. The kernel applies it, so that others cost next to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketFilter {
    /// States of the sockets.
    pub states: SocketStates,
    /// Port at either end.
    pub port: Option<Port>,
    /// Addresses at the far end.
    pub remote: Option<AddressPrefix>,
}

impl SocketFilter {
    /// All sockets in these states.
    #[must_use]
    pub const fn in_states(states: SocketStates) -> Self {
        Self { states, port: None, remote: None }
    }

    /// The body of the request for one family.
    pub(super) fn request(&self, family: libc::c_int) -> io::Result<Vec<u8>> {
        let octet = |number: libc::c_int| u8::try_from(number).map_err(io::Error::other);
        let mut body = vec![octet(family)?, octet(libc::IPPROTO_TCP)?, EXTENSIONS, 0];
        body.extend(self.states.0.to_ne_bytes());
        body.resize(body.len() + SOCKET_IDENTITY_LENGTH, 0);
        let code = self.byte_code();
        if !code.is_empty() {
            append_attribute(&mut body, BYTE_CODE_ATTRIBUTE, &code)?;
        }
        Ok(body)
    }

    /// Operations that continue while they are true; a jump past the end refuses the socket.
    fn byte_code(&self) -> Vec<u8> {
        let host = self.remote.map(remote_address).unwrap_or_default();
        let port = self.port.map(|port| either_port(port, host.len())).unwrap_or_default();
        [port, host].concat()
    }
}

/// One operation: the relative jumps when it is true and when not.
fn operation(code: u8, yes: usize, no: usize) -> [u8; 4] {
    let no = u16::try_from(no).unwrap_or(u16::MAX).to_ne_bytes();
    [code, u8::try_from(yes).unwrap_or(u8::MAX), no[0], no[1]]
}

/// The local or the remote port is this one; `behind` bytes of further operations follow.
fn either_port(port: Port, behind: usize) -> Vec<u8> {
    // The port is in the place of `no` of a second operation.
    let compare = |code: u8, no: usize| [operation(code, 8, no), operation(0, 0, usize::from(port.get()))].concat();
    let refuse = |left: usize| left + behind + 4;
    [
        compare(LOCAL_PORT_AT_LEAST, 20),
        compare(LOCAL_PORT_AT_MOST, 12),
        operation(JUMP, 4, 20).to_vec(),
        compare(REMOTE_PORT_AT_LEAST, refuse(16)),
        compare(REMOTE_PORT_AT_MOST, refuse(8)),
    ]
    .concat()
}

/// The remote address is one of these: `struct inet_diag_hostcond` behind the operation.
fn remote_address(prefix: AddressPrefix) -> Vec<u8> {
    let (family, address) = match prefix.address {
        IpAddr::V4(address) => (libc::AF_INET, address.octets().to_vec()),
        IpAddr::V6(address) => (libc::AF_INET6, address.octets().to_vec()),
    };
    let length = 4 + 8 + address.len();
    let any_port = (-1_i32).to_ne_bytes();
    let mut code = operation(REMOTE_ADDRESS, length, length + 4).to_vec();
    code.extend([u8::try_from(family).unwrap_or(0), prefix.length, 0, 0]);
    code.extend(any_port);
    code.extend(address);
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_contain_what_begins_alike() {
        let address = |text: &str| text.parse::<IpAddr>().expect("an address");
        let prefix = AddressPrefix::new(address("10.99.128.0"), 17).expect("32 bits");
        for (other, expected) in [
            ("10.99.128.1", true),
            ("10.99.255.255", true),
            ("10.99.127.255", false),
            ("::ffff:10.99.200.1", true),
            ("fd99::1", false),
        ] {
            assert_eq!(prefix.contains(address(other)), expected, "{other}");
        }
        assert!(AddressPrefix::new(address("::"), 0).expect("128 bits").contains(address("fd99::1")));
        assert!(!AddressPrefix::single(address("fd99::1")).contains(address("fd99::2")));
        assert_eq!(AddressPrefix::new(address("10.0.0.0"), 33), None);
    }

    #[test]
    fn every_way_through_the_byte_code_ends_at_its_end_or_past_it() {
        let remote = AddressPrefix::new(IpAddr::from([10, 99, 0, 0]), 16);
        let filter = SocketFilter { states: SocketStates::ALL, port: Port::new(5201), remote };
        let code = filter.byte_code();
        assert_eq!(code.len() % 4, 0);
        let refused = code.len() + 4;
        let mut open = vec![0];
        while let Some(place) = open.pop() {
            if place == code.len() || place == refused {
                continue;
            }
            let (yes, no) = (code[place + 1], u16::from_ne_bytes([code[place + 2], code[place + 3]]));
            assert!(yes >= 4 && no >= 4 && place < code.len(), "{place}");
            open.push(place + usize::from(yes));
            open.push(place + usize::from(no));
        }
    }

    #[test]
    fn states_are_the_kernels_bits() {
        assert_eq!(SocketStates::of(&[TcpState::Established, TcpState::Listen]).0, 1 << 1 | 1 << 10);
    }
}
