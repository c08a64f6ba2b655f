//! Two listeners on one port, and which clients get the second one.
//!
//! What a SYN-ACK announces (window, window scale) follows from the listener's buffers, so a connection that needs its
//! own has to arrive on a listener of its own. Listeners that share a port (`SO_REUSEPORT`) form a group; a classic BPF
//! program of the group (`SO_ATTACH_REUSEPORT_CBPF`, Linux 4.6 for TCP) returns the position of the one that gets a
//! connection.

use std::net::{IpAddr, TcpListener};
use std::os::fd::AsFd;

use crate::error::Result;
use crate::sockopt::{SocketOption, set_pointer};

/// Most clients that [`steer`] takes.
pub const MAX_STEERED_CLIENTS: usize = 64;

const PROGRAM: SocketOption = SocketOption::new(
    libc::SOL_SOCKET,
    libc::SO_ATTACH_REUSEPORT_CBPF,
    "SO_ATTACH_REUSEPORT_CBPF",
    "program that chooses a listener",
);

/// Offset of the network header for loads (linux/filter.h: `SKF_NET_OFF`).
const NETWORK_HEADER: u32 = 0xfff0_0000;
const IPV4_SOURCE: u32 = 12;
const IPV6_SOURCE: u32 = 8;

const LOAD_BYTE: u16 = 0x30;
const LOAD_WORD: u16 = 0x20;
const AND: u16 = 0x54;
const JUMP: u16 = 0x05;
const JUMP_EQUAL: u16 = 0x15;
const RETURN: u16 = 0x06;

/// Leads new connections of `clients` to the second listener on this port, all others to the first, which is
/// `listener`. Addresses beyond [`MAX_STEERED_CLIENTS`] go to the first.
pub fn steer(listener: &TcpListener, clients: &[IpAddr]) -> Result<()> {
    attach(listener, clients)
}

/// Attaches the program to any socket of the group.
pub(super) fn attach(socket: &impl AsFd, clients: &[IpAddr]) -> Result<()> {
    let mut instructions = program(&clients[..clients.len().min(MAX_STEERED_CLIENTS)]);
    let length = u16::try_from(instructions.len()).expect("the number of clients is limited");
    let program = libc::sock_fprog { len: length, filter: instructions.as_mut_ptr() };
    // SAFETY: the structure points to `length` instructions, which live until the call has returned; the kernel copies
    // them.
    unsafe { set_pointer(socket, PROGRAM, &raw const program) }
}

/// Program that returns 1 for packets from these addresses, else 0.
fn program(clients: &[IpAddr]) -> Vec<libc::sock_filter> {
    let (mut ipv4, mut ipv6) = (vec![load(LOAD_WORD, IPV4_SOURCE)], Vec::new());
    for client in clients {
        match client {
            IpAddr::V4(address) => {
                ipv4.extend([instruction(JUMP_EQUAL, 0, 1, address.to_bits()), result(1)]);
            }
            IpAddr::V6(address) => {
                let octets = address.octets();
                let (words, _) = octets.as_chunks::<4>();
                // To the next address: over the words that follow, two instructions each, and the result.
                for ((offset, word), remaining) in (IPV6_SOURCE..).step_by(4).zip(words).zip([7, 5, 3, 1]) {
                    let word = u32::from_be_bytes(*word);
                    ipv6.extend([load(LOAD_WORD, offset), instruction(JUMP_EQUAL, 0, remaining, word)]);
                }
                ipv6.push(result(1));
            }
        }
    }
    ipv4.push(result(0));
    ipv6.push(result(0));
    let to_ipv6 = u32::try_from(ipv4.len()).expect("the number of clients is limited");
    let version = [
        load(LOAD_BYTE, 0),
        instruction(AND, 0, 0, 0xf0),
        instruction(JUMP_EQUAL, 1, 0, 0x40),
        instruction(JUMP, 0, 0, to_ipv6),
    ];
    version.into_iter().chain(ipv4).chain(ipv6).collect()
}

fn load(size: u16, offset: u32) -> libc::sock_filter {
    instruction(size, 0, 0, NETWORK_HEADER + offset)
}

fn result(position: u32) -> libc::sock_filter {
    instruction(RETURN, 0, 0, position)
}

fn instruction(code: u16, jt: u8, jf: u8, k: u32) -> libc::sock_filter {
    libc::sock_filter { code, jt, jf, k }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};

    use super::*;
    use crate::net::{ConnectOptions, ListenOptions, PortSharing, accept_nonblocking, connect_tcp, listen_tcp};
    use linerate_units::Port;

    fn two_listeners(address: IpAddr) -> (TcpListener, TcpListener, u16) {
        let options =
            |port, sharing| ListenOptions { address: Some(address), port, sharing, ..ListenOptions::default() };
        let listen = |options| {
            let listener = listen_tcp(&options).expect("any port").listener;
            listener.set_nonblocking(true).expect("a socket");
            listener
        };
        let first = listen(options(None, PortSharing::First));
        let port = first.local_addr().expect("bound").port();
        let second = listen(options(Port::new(port), PortSharing::Second));
        (first, second, port)
    }

    /// Number of connections that each listener gets of 20 from `source`.
    fn arrivals(listeners: [&TcpListener; 2], source: IpAddr, port: u16) -> [usize; 2] {
        let mut connections = Vec::new();
        for _ in 0..20 {
            let mut options = ConnectOptions::to(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port));
            if source.is_ipv6() {
                options = ConnectOptions::to(SocketAddr::new(source, port));
            } else {
                options.bind = Some(SocketAddr::new(source, 0));
            }
            connections.push(connect_tcp(&options, None).expect("it listens"));
        }
        listeners.map(|listener| {
            let accept = || accept_nonblocking(listener).expect("no error");
            std::iter::from_fn(accept).inspect(|(stream, _)| drop(stream.set_nonblocking(true))).count()
        })
    }

    #[test]
    fn only_the_clients_named_get_the_second_listener() {
        let (first, second, port) = two_listeners(IpAddr::V6(std::net::Ipv6Addr::UNSPECIFIED));
        let [one, two] = [[127, 0, 0, 1], [127, 0, 0, 2]].map(IpAddr::from);
        let six = IpAddr::V6(std::net::Ipv6Addr::LOCALHOST);
        let both = [&first, &second];
        assert_eq!([one, two, six].map(|source| arrivals(both, source, port)), [[20, 0]; 3]);
        steer(&first, &[two, six]).expect("a group");
        assert_eq!([one, two, six].map(|source| arrivals(both, source, port)), [[20, 0], [0, 20], [0, 20]]);
        steer(&first, &[one]).expect("a group");
        assert_eq!([one, two, six].map(|source| arrivals(both, source, port)), [[0, 20], [20, 0], [20, 0]]);
        steer(&first, &[]).expect("a group");
        assert_eq!([one, two, six].map(|source| arrivals(both, source, port)), [[20, 0]; 3]);
    }

    #[test]
    fn the_longest_program_is_accepted() {
        let (first, second, port) = two_listeners(Ipv4Addr::UNSPECIFIED.into());
        let numbered = |low: u8| IpAddr::from([127, 0, 1, low]);
        let mut clients: Vec<IpAddr> = (0..63).map(numbered).collect();
        clients.insert(0, IpAddr::from([0xfd; 16]));
        clients.push(numbered(64));
        steer(&first, &clients).expect("accepted");
        assert_eq!(arrivals([&first, &second], numbered(62), port), [0, 20]);
        assert_eq!(arrivals([&first, &second], numbered(64), port), [20, 0], "beyond the limit");
    }

    #[test]
    fn the_port_is_in_use_for_all_others() {
        let (_first, second, port) = two_listeners(Ipv4Addr::LOCALHOST.into());
        drop(second);
        for sharing in [PortSharing::None, PortSharing::First] {
            let options = ListenOptions {
                address: Some(Ipv4Addr::LOCALHOST.into()),
                port: Port::new(port),
                sharing,
                ..ListenOptions::default()
            };
            let cause = listen_tcp(&options).expect_err("in use");
            assert_eq!(cause.errno(), Some(libc::EADDRINUSE), "{cause}");
        }
    }
}
