//! The error queue of a socket (`MSG_ERRQUEUE`; ip(7), `IP_RECVERR`): ICMP errors from routers and hosts on the path
//! about packets that this socket sent, and the time stamps of sent packets.
//!
//! Routers answer a packet whose hop limit is used up with ICMP "time exceeded" (RFC 792, RFC 4443 §3.3), one that is
//! too large with "fragmentation needed" and the MTU that would fit (RFC 1191 §4, RFC 4443 §3.2), hosts without a
//! receiver with "port unreachable". Switch it on first: [`crate::options::set_path_errors`].

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;

use linerate_units::Mtu;

use crate::message::{self, ReceiveScratch};
use crate::net::canonical;
use crate::netlink;
use crate::time_stamp::{ClockPair, KernelStamps, TimeStamp};

/// Reason why a packet was not delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PathErrorKind {
    /// A router dropped it, as its hop limit was used up (ICMP 11/0, IPv6: 3/0).
    TimeExceeded,
    /// Not all of its fragments came in time (ICMP 11/1, IPv6: 3/1).
    ReassemblyTimeExceeded,
    /// It is too large for the next link (ICMP 3/4, IPv6: 2/0), or for the path MTU that this host knows.
    TooBig {
        /// The largest packet that fits, headers included; `None` from routers older than RFC 1191, which report 0.
        mtu: Option<Mtu>,
    },
    /// The host has no socket on the port (ICMP 3/3, IPv6: 1/4).
    PortUnreachable,
    /// The host does not know the protocol (ICMP 3/2, IPv6: 4/1).
    ProtocolUnreachable,
    /// The last router cannot reach the host (ICMP 3/1 and 3/7, IPv6: 1/3).
    HostUnreachable,
    /// A router has no route to the network (ICMP 3/0 and 3/6, IPv6: 1/0, 1/2 and 1/6).
    NetworkUnreachable,
    /// A firewall rejects it (ICMP 3/9, 3/10 and 3/13, IPv6: 1/1 and 1/5).
    Prohibited,
    /// Something else.
    Other,
}

/// A report on an undelivered packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathError {
    /// Reason why it was not delivered.
    pub kind: PathErrorKind,
    /// Type and code of the ICMP message (that of IPv6 has numbers of its own); `None` when this host itself refused.
    pub icmp: Option<(u8, u8)>,
    /// The kernel's error number for it.
    pub errno: i32,
    /// Reporter: a router, or the destination host; `None` for this host itself.
    pub reporter: Option<IpAddr>,
    /// Destination of the packet.
    pub sent_to: Option<SocketAddr>,
    /// Part of the packet's payload that the report quotes, without headers; routers may quote none of it.
    pub quoted: Vec<u8>,
    /// ICMP extension structure behind the quote (RFC 4884), for example with MPLS labels; empty where there is none, and
    /// before Linux 5.9.
    pub extensions: Vec<u8>,
    /// Remaining hop limit of the report.
    pub hop_limit: Option<u8>,
    /// Arrival time of the report.
    pub arrived: TimeStamp,
}

/// The kernel's report on a sent packet of this socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransmissionReport {
    /// The packet's number: the kernel counts what a datagram socket sends from 0 on, modulo 2^32; on TCP it is the
    /// number of a byte.
    pub number: u32,
    /// Time at which the kernel handed it to the device, or the device to the wire.
    pub sent: TimeStamp,
}

/// Entry of a socket's error queue.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorQueueEntry {
    /// A packet was not delivered.
    PathError(PathError),
    /// A packet was sent; only for sockets with [`crate::options::set_packet_timestamps`].
    Transmission(TransmissionReport),
    /// Something else, for example the end of a zero-copy send.
    Other,
}

/// Maximum length of a quote: a router's packet without fragmentation (RFC 1812 §4.3.2.3, RFC 4443 §2.4).
const MAX_QUOTED_BYTES: usize = 1280;

/// Removes all entries from a socket's error queue, without waiting. Over UDP and TCP, IPv4 and IPv6.
pub fn read(socket: &impl AsFd, clocks: &ClockPair) -> io::Result<Vec<ErrorQueueEntry>> {
    let mut entries = Vec::new();
    while let Some(entry) = read_one(socket, clocks)? {
        entries.push(entry);
    }
    Ok(entries)
}

/// Removes one entry; `None` when there is none.
pub(crate) fn read_one(socket: &impl AsFd, clocks: &ClockPair) -> io::Result<Option<ErrorQueueEntry>> {
    let (mut scratch, mut quoted) = (ReceiveScratch::new(), [0; MAX_QUOTED_BYTES]);
    match message::receive(socket, &mut quoted, libc::MSG_ERRQUEUE, &mut scratch) {
        Ok(incoming) => Ok(Some(entry(&incoming, &quoted, clocks))),
        Err(cause) if cause.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(cause) => Err(cause),
    }
}

fn entry(incoming: &message::IncomingMessage<'_>, quoted: &[u8], clocks: &ClockPair) -> ErrorQueueEntry {
    let (mut error, mut stamps, mut hop_limit) = (None, KernelStamps::default(), None);
    for (level, kind, content) in incoming.control() {
        match (level, kind) {
            (libc::IPPROTO_IP, libc::IP_RECVERR) | (libc::IPPROTO_IPV6, libc::IPV6_RECVERR) => {
                error = ExtendedError::parse(content);
            }
            (libc::SOL_SOCKET, kind) => stamps = message::stamps(kind, content).unwrap_or(stamps),
            (libc::IPPROTO_IP, libc::IP_TTL) | (libc::IPPROTO_IPV6, libc::IPV6_HOPLIMIT) => {
                hop_limit = message::octet(content);
            }
            _ => {}
        }
    }
    let Some(error) = error else { return ErrorQueueEntry::Other };
    let now = clocks.now();
    match error.origin {
        libc::SO_EE_ORIGIN_TIMESTAMPING => {
            ErrorQueueEntry::Transmission(TransmissionReport { number: error.data, sent: clocks.best(stamps, now) })
        }
        libc::SO_EE_ORIGIN_LOCAL | libc::SO_EE_ORIGIN_ICMP | libc::SO_EE_ORIGIN_ICMP6 => {
            let quoted = &quoted[..incoming.length.min(quoted.len())];
            let (quoted, extensions) = quoted.split_at(error.quote_length().unwrap_or(quoted.len()).min(quoted.len()));
            ErrorQueueEntry::PathError(PathError {
                kind: error.kind(),
                icmp: (error.origin != libc::SO_EE_ORIGIN_LOCAL).then_some((error.icmp_type, error.icmp_code)),
                errno: error.errno,
                reporter: error.offender.map(|address| canonical(address).ip()),
                sent_to: incoming.address.map(canonical),
                quoted: quoted.to_vec(),
                extensions: extensions.to_vec(),
                hop_limit,
                arrived: clocks.best(stamps, now),
            })
        }
        _ => ErrorQueueEntry::Other,
    }
}

/// `struct sock_extended_err` (`include/uapi/linux/errqueue.h`) with the address behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ExtendedError {
    errno: i32,
    origin: u8,
    icmp_type: u8,
    icmp_code: u8,
    info: u32,
    data: u32,
    offender: Option<SocketAddr>,
}

impl ExtendedError {
    fn parse(content: &[u8]) -> Option<Self> {
        let [origin, icmp_type, icmp_code] = *content.get(4..)?.first_chunk()?;
        Some(Self {
            errno: message::number(content.get(..4)?)?,
            origin,
            icmp_type,
            icmp_code,
            info: netlink::number(content, 8)?,
            data: netlink::number(content, 12)?,
            offender: content.get(16..).and_then(message::socket_address),
        })
    }

    /// Length of the quote before valid extensions (`struct sock_ee_data_rfc4884`); `None` without them.
    fn quote_length(&self) -> Option<usize> {
        const INVALID: u8 = 1;
        let [first, second, flags, _] = self.data.to_ne_bytes();
        let length = usize::from(u16::from_ne_bytes([first, second]));
        (length > 0 && flags & INVALID == 0 && self.origin != libc::SO_EE_ORIGIN_LOCAL).then_some(length)
    }

    fn kind(&self) -> PathErrorKind {
        let too_big = PathErrorKind::TooBig { mtu: Some(self.info).filter(|mtu| *mtu > 0).map(Mtu::new) };
        match (self.origin, self.icmp_type, self.icmp_code) {
            (libc::SO_EE_ORIGIN_LOCAL, ..) if self.errno == libc::EMSGSIZE => too_big,
            (libc::SO_EE_ORIGIN_ICMP, 11, 0) | (libc::SO_EE_ORIGIN_ICMP6, 3, 0) => PathErrorKind::TimeExceeded,
            (libc::SO_EE_ORIGIN_ICMP, 11, 1) | (libc::SO_EE_ORIGIN_ICMP6, 3, 1) => {
                PathErrorKind::ReassemblyTimeExceeded
            }
            (libc::SO_EE_ORIGIN_ICMP, 3, 4) | (libc::SO_EE_ORIGIN_ICMP6, 2, _) => too_big,
            (libc::SO_EE_ORIGIN_ICMP, 3, 3) | (libc::SO_EE_ORIGIN_ICMP6, 1, 4) => PathErrorKind::PortUnreachable,
            (libc::SO_EE_ORIGIN_ICMP, 3, 2) | (libc::SO_EE_ORIGIN_ICMP6, 4, 1) => PathErrorKind::ProtocolUnreachable,
            (libc::SO_EE_ORIGIN_ICMP, 3, 1 | 7) | (libc::SO_EE_ORIGIN_ICMP6, 1, 3) => PathErrorKind::HostUnreachable,
            (libc::SO_EE_ORIGIN_ICMP, 3, 0 | 6) | (libc::SO_EE_ORIGIN_ICMP6, 1, 0 | 2 | 6) => {
                PathErrorKind::NetworkUnreachable
            }
            (libc::SO_EE_ORIGIN_ICMP, 3, 9 | 10 | 13) | (libc::SO_EE_ORIGIN_ICMP6, 1, 1 | 5) => {
                PathErrorKind::Prohibited
            }
            _ => PathErrorKind::Other,
        }
    }
}

/// True for errors that ICMP messages become (`icmp_err_convert`, `icmpv6_err_convert` of the kernel). One that is
/// about the current datagram recurs with the next try. `EMSGSIZE` is not among them: it may be this host's own.
pub(crate) fn is_from_earlier_datagram(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(
            libc::ECONNREFUSED
                | libc::EHOSTUNREACH
                | libc::ENETUNREACH
                | libc::ENOPROTOOPT
                | libc::EHOSTDOWN
                | libc::ENONET
                | libc::EACCES
                | libc::EPROTO
                | libc::EOPNOTSUPP
        )
    )
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::time::Duration;

    use super::*;
    use crate::options;
    use crate::poll::{self, PollInterest};

    #[test]
    fn kinds_of_errors() {
        let kind = |origin, icmp_type, icmp_code, info| {
            let mut content = libc::EHOSTUNREACH.to_ne_bytes().to_vec();
            content.extend([origin, icmp_type, icmp_code, 0]);
            content.extend(u32::to_ne_bytes(info));
            content.extend([0; 4]);
            ExtendedError::parse(&content).expect("whole").kind()
        };
        let fits = |mtu| PathErrorKind::TooBig { mtu };
        assert_eq!(kind(2, 11, 0, 0), PathErrorKind::TimeExceeded);
        assert_eq!(kind(3, 3, 0, 0), PathErrorKind::TimeExceeded);
        assert_eq!(kind(2, 3, 4, 1400), fits(Some(Mtu::new(1400))));
        assert_eq!(kind(2, 3, 4, 0), fits(None));
        assert_eq!(kind(3, 2, 0, 1280), fits(Some(Mtu::new(1280))));
        assert_eq!(kind(2, 3, 3, 0), PathErrorKind::PortUnreachable);
        assert_eq!(kind(3, 1, 4, 0), PathErrorKind::PortUnreachable);
        assert_eq!(kind(2, 3, 13, 0), PathErrorKind::Prohibited);
        assert_eq!(kind(3, 1, 0, 0), PathErrorKind::NetworkUnreachable);
        assert_eq!(kind(2, 4, 0, 0), PathErrorKind::Other);
        assert_eq!(kind(1, 0, 0, 1500), PathErrorKind::Other, "no EMSGSIZE");
        for length in 0..16 {
            assert_eq!(ExtendedError::parse(&vec![0; length]), None, "{length}");
        }
    }

    #[test]
    fn extensions_begin_behind_the_quote() {
        let length = |data: [u8; 4]| {
            let mut content = libc::EHOSTUNREACH.to_ne_bytes().to_vec();
            content.extend([libc::SO_EE_ORIGIN_ICMP, 11, 0, 0]);
            content.extend([0; 4]);
            content.extend(data);
            ExtendedError::parse(&content).expect("whole").quote_length()
        };
        let [first, second] = 100_u16.to_ne_bytes();
        assert_eq!(length([first, second, 0, 0]), Some(100));
        assert_eq!(length([first, second, 1, 0]), None, "the kernel found them invalid");
        assert_eq!(length([0; 4]), None);
    }

    #[test]
    fn a_closed_port_is_reported_with_the_payload() {
        for (local, any) in [("127.0.0.1:0", "127.0.0.1:0"), ("[::1]:0", "[::1]:0")] {
            let closed = UdpSocket::bind(local).expect("bind").local_addr().expect("address");
            let socket = UdpSocket::bind(any).expect("bind");
            options::set_path_errors(&socket, true).expect("IP_RECVERR");
            options::set_packet_timestamps(&socket, false).expect("SO_TIMESTAMPING");
            socket.send_to(b"is anybody there", closed).expect("sent");
            assert!(poll::wait_for(&socket, PollInterest::NONE, Some(Duration::from_secs(5))).expect("poll"));
            let clocks = ClockPair::new();
            let entries = read(&socket, &clocks).expect("read");
            let [ErrorQueueEntry::PathError(error)] = &entries[..] else { panic!("{entries:?}") };
            assert_eq!(error.kind, PathErrorKind::PortUnreachable);
            assert_eq!(error.errno, libc::ECONNREFUSED);
            assert_eq!((error.reporter, error.sent_to), (Some(closed.ip()), Some(closed)));
            assert_eq!(error.quoted, b"is anybody there");
            assert!(clocks.now().monotonic.since(error.arrived.monotonic) < Duration::from_secs(5));
            assert_eq!(read(&socket, &clocks).expect("read"), []);
        }
    }
}
