//! ICMP echo requests to a host or a router (RFC 792, RFC 4443 §4), over IPv4 and IPv6, and timestamp requests over IPv4.
//!
//! Linux has two kinds of sockets for it. "Ping sockets" are available to the groups in the sysctl
//! `net.ipv4.ping_group_range` (for IPv6, too), and the kernel sorts the answers. Raw sockets need `CAP_NET_RAW`.

use core::time::Duration;
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

use linerate_units::{ByteCount, TypeOfService};
use socket2::{Domain, Protocol, Socket, Type};

use crate::clock;
use crate::data::probe_socket::{DatagramArrival, OutgoingDatagram, ProbeEvent, ProbeOptions, ProbeSocket, SendNumber};
use crate::error::{Error, Result};
use crate::error_queue::PathError;
use crate::host;
use crate::net::canonical;
use crate::options;
use crate::sockopt::{self, SocketOption};
use crate::time_stamp::TimeStamp;

/// Length of an echo message's header: type, code, checksum, identifier, sequence number.
const HEADER: usize = 8;
const ECHO_REQUEST: u8 = 8;
const ECHO_REPLY: u8 = 0;
const TIMESTAMP_REQUEST: u8 = 13;
const TIMESTAMP_REPLY: u8 = 14;
const ECHO_REQUEST_V6: u8 = 128;
const ECHO_REPLY_V6: u8 = 129;
/// Maximum number of remembered requests without an answer: below the number of sequence numbers.
const MAX_OUTSTANDING: usize = 1 << 14;

const FILTER: SocketOption = SocketOption::new(libc::SOL_RAW, 1, "ICMP_FILTER", "choice of ICMP messages");
const FILTER_V6: SocketOption = SocketOption::new(libc::IPPROTO_ICMPV6, 1, "ICMP6_FILTER", "choice of ICMPv6 messages");

/// Parameters of requests. `None` keeps the system's default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EchoOptions {
    /// Source address on this host.
    pub source: Option<IpAddr>,
    /// The only interface to use.
    pub device: Option<String>,
    /// Type-of-service octet (IPv6: traffic class).
    pub type_of_service: Option<TypeOfService>,
    /// Hop limit, 1 to 255.
    pub hop_limit: Option<u8>,
    /// Sends requests larger than a link uncut: IPv4's don't-fragment bit is set, and this host's record of the path's
    /// MTU is ignored.
    pub dont_fragment: bool,
    /// Sends timestamp requests instead of echo requests: over IPv4, with a raw socket.
    pub timestamps: bool,
}

/// Kind of socket for the requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EchoAccess {
    /// A ping socket.
    PingSocket,
    /// A raw socket.
    RawSocket,
}

/// Sends echo requests to one host. Any number of them may be in flight.
#[derive(Debug)]
pub struct EchoSocket {
    socket: ProbeSocket,
    to: SocketAddr,
    access: EchoAccess,
    /// Types of the requests and of the answers.
    types: (u8, u8),
    identifier: u16,
    next: u64,
    outstanding: BTreeMap<u64, TimeStamp>,
}

/// An answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EchoReply {
    /// Number of the request, counted from 0.
    pub number: u64,
    /// Time of the request; `None` for a second answer, or one so late that the request is forgotten.
    pub sent: Option<TimeStamp>,
    /// Answering host: not always the destination.
    pub source: IpAddr,
    /// Arrival time of the answer.
    pub arrived: TimeStamp,
    /// Size of the answer, without headers.
    pub size: ByteCount,
    /// Remaining hop limit of the answer.
    pub hop_limit: Option<u8>,
    /// The answer's type-of-service octet.
    pub type_of_service: Option<TypeOfService>,
    /// Time of the day (UTC, in milliseconds) at which the answering host received a timestamp request; `None` for other
    /// requests, and for hosts whose clock counts otherwise (RFC 792: the highest bit is set).
    pub far_received: Option<Duration>,
}

/// Length of a day, after which timestamps begin again.
const DAY: i128 = 86_400_000_000_000;

impl EchoReply {
    /// Time from the request's departure to its arrival by the far host's clock, in nanoseconds, modulo a day: within half
    /// a day of zero. Includes the difference of the clocks.
    #[must_use]
    pub fn up_ns(&self) -> Option<i64> {
        let sent = self.sent?.wall.since_unix_epoch().as_nanos();
        let far = self.far_received?.as_nanos();
        let difference = i128::try_from(far).ok()? - i128::try_from(sent).ok()?;
        i64::try_from((difference + DAY / 2).rem_euclid(DAY) - DAY / 2).ok()
    }

    /// Time from the request's departure to the answer's arrival; `None` for a second answer.
    #[must_use]
    pub fn round_trip(&self) -> Option<Duration> {
        self.sent.map(|sent| self.arrived.monotonic.since(sent.monotonic))
    }
}

/// Event about a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EchoEvent {
    /// An answer.
    Reply(EchoReply),
    /// A request was not delivered.
    PathError {
        /// Number of the request; `None` when the report does not quote it.
        number: Option<u64>,
        /// Time of the request, if that is still known.
        sent: Option<TimeStamp>,
        /// The report.
        error: PathError,
    },
}

impl EchoSocket {
    /// Prepares requests to `remote`, whose port does not matter.
    pub fn open(remote: SocketAddr, options: &EchoOptions) -> Result<Self> {
        let mut to = canonical(remote);
        to.set_port(0);
        let (socket, access) = open_any(to, options)?;
        apply(&socket, options)?;
        // A raw or ping socket has the same calls as a UDP socket, and the program looks at nothing else.
        let socket = UdpSocket::from(std::os::fd::OwnedFd::from(socket));
        let own_port = socket.local_addr().map_or(0, |address| address.port());
        let probe_options = ProbeOptions { transmissions: true, path_errors: true };
        let socket = ProbeSocket::new(socket, probe_options)?;
        let identifier = match access {
            EchoAccess::PingSocket => own_port,
            EchoAccess::RawSocket => random_identifier()?,
        };
        let types = types(to.is_ipv6(), options.timestamps);
        Ok(Self { socket, to, access, types, identifier, next: 0, outstanding: BTreeMap::new() })
    }

    /// Kind of socket in use.
    #[must_use]
    pub fn access(&self) -> EchoAccess {
        self.access
    }

    /// Sets the hop limit of later requests, 1 to 255.
    pub fn set_hop_limit(&self, hops: u8) -> Result<()> {
        options::set_hop_limit(&self.socket, hops)
    }

    /// Number of requests without an answer. Those that are too old are forgotten.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.outstanding.len()
    }

    /// Sends a request with this payload; returns its number. Does not wait.
    pub fn send(&mut self, payload: &[u8]) -> io::Result<u64> {
        let request = self.request(payload);
        let how = OutgoingDatagram { to: Some(self.to), ..OutgoingDatagram::default() };
        let sent = self.socket.clocks().now();
        let SendNumber(number) = self.socket.send(&request, &how)?;
        self.next = number + 1;
        self.outstanding.insert(number, sent);
        if self.outstanding.len() > MAX_OUTSTANDING {
            self.outstanding.pop_first();
        }
        Ok(number)
    }

    fn request(&self, payload: &[u8]) -> Vec<u8> {
        let mut message = vec![self.types.0, 0, 0, 0];
        message.extend(self.identifier.to_be_bytes());
        message.extend(sequence_of(self.next).to_be_bytes());
        if self.types.0 == TIMESTAMP_REQUEST {
            message.extend(timestamps(self.socket.clocks().now()));
        } else {
            message.extend(payload);
        }
        if !self.to.is_ipv6() {
            // For IPv6 the kernel does it, as its checksum has the addresses in it.
            let checksum = internet_checksum(&message);
            message[2..4].copy_from_slice(&checksum.to_be_bytes());
        }
        message
    }

    /// Waits for an event about the requests, up to `timeout` (without limit if that is `None`).
    pub fn next_event(&mut self, timeout: Option<Duration>) -> io::Result<Option<EchoEvent>> {
        let deadline = timeout.map(|timeout| clock::monotonic_now() + timeout);
        let mut buffer = vec![0; 1 << 16];
        loop {
            let left = deadline.map(|deadline| deadline - clock::monotonic_now());
            let Some(event) = self.socket.next_event(&mut buffer, left)? else { return Ok(None) };
            // The departure of a request is known before its answer comes: the kernel reported it earlier.
            for told in self.socket.transmissions()? {
                self.note_sent(told.number, told.sent);
            }
            match event {
                ProbeEvent::Transmitted(told) => self.note_sent(told.number, told.sent),
                ProbeEvent::Arrival(arrival) => {
                    if let Some(reply) = self.reply(&arrival, &buffer[..arrival.filled]) {
                        return Ok(Some(EchoEvent::Reply(reply)));
                    }
                }
                ProbeEvent::PathError(error) => {
                    if let Some(event) = self.path_error(error) {
                        return Ok(Some(event));
                    }
                }
            }
        }
    }

    fn note_sent(&mut self, SendNumber(number): SendNumber, sent: TimeStamp) {
        if let Some(known) = self.outstanding.get_mut(&number) {
            *known = sent;
        }
    }

    fn reply(&mut self, arrival: &DatagramArrival, bytes: &[u8]) -> Option<EchoReply> {
        let has_header = !self.to.is_ipv6() && self.access == EchoAccess::RawSocket;
        let message = if has_header { without_ipv4_header(bytes)? } else { bytes };
        let (identifier, sequence) = echo_header(message, self.types.1)?;
        let number = number_of(sequence, self.next)?;
        // A ping socket's identifier is set by the kernel in both directions.
        (self.access == EchoAccess::PingSocket || identifier == self.identifier).then_some(())?;
        let headers = bytes.len() - message.len() + HEADER;
        Some(EchoReply {
            number,
            sent: self.outstanding.remove(&number),
            source: arrival.source.ip(),
            arrived: arrival.arrived,
            size: ByteCount::from_usize(arrival.size.to_usize().saturating_sub(headers)),
            hop_limit: arrival.hop_limit,
            type_of_service: arrival.type_of_service,
            far_received: if self.types.1 == TIMESTAMP_REPLY { receive_time(message) } else { None },
        })
    }

    /// `None` when the report is about another program's request.
    fn path_error(&mut self, error: PathError) -> Option<EchoEvent> {
        let quoted = echo_header(&error.quoted, self.types.0);
        let others = quoted.is_some_and(|(identifier, _)| identifier != self.identifier);
        if others && self.access == EchoAccess::RawSocket {
            return None;
        }
        let number = quoted.and_then(|(_, sequence)| number_of(sequence, self.next));
        let sent = number.and_then(|number| self.outstanding.remove(&number));
        Some(EchoEvent::PathError { number, sent, error })
    }
}

impl AsFd for EchoSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Types of the requests and of the answers.
const fn types(ipv6: bool, timestamps: bool) -> (u8, u8) {
    match (ipv6, timestamps) {
        (true, _) => (ECHO_REQUEST_V6, ECHO_REPLY_V6),
        (false, true) => (TIMESTAMP_REQUEST, TIMESTAMP_REPLY),
        (false, false) => (ECHO_REQUEST, ECHO_REPLY),
    }
}

/// Originate, receive and transmit timestamp of a request: the last two are the far host's.
fn timestamps(now: TimeStamp) -> [u8; 12] {
    let milliseconds = now.wall.since_unix_epoch().as_millis() % 86_400_000;
    let mut fields = [0; 12];
    fields[..4].copy_from_slice(&u32::try_from(milliseconds).unwrap_or(0).to_be_bytes());
    fields
}

/// Receive timestamp of an answer.
fn receive_time(message: &[u8]) -> Option<Duration> {
    let milliseconds = u32::from_be_bytes(message.get(HEADER + 4..HEADER + 8)?.try_into().ok()?);
    (milliseconds < 86_400_000).then(|| Duration::from_millis(milliseconds.into()))
}

/// A ping socket, else a raw one.
fn open_any(to: SocketAddr, options: &EchoOptions) -> Result<(Socket, EchoAccess)> {
    let ipv6 = to.is_ipv6();
    if options.timestamps {
        if ipv6 {
            return Err(Error::refused(format!("asking {} for its time", to.ip()), "ICMPv6 has no timestamp requests"));
        }
        // Ping sockets take echo requests only.
        let socket = bind_to_source(open(false, Type::RAW)?, to, options, false)?;
        sockopt::set(&socket, FILTER, !(1_u32 << TIMESTAMP_REPLY))?;
        return Ok((socket, EchoAccess::RawSocket));
    }
    match open(ipv6, Type::DGRAM).and_then(|socket| bind_to_source(socket, to, options, true)) {
        Ok(socket) => Ok((socket, EchoAccess::PingSocket)),
        Err(error) if !is_refusal(&error) => Err(error),
        Err(_) => {
            let socket = bind_to_source(open(ipv6, Type::RAW)?, to, options, false)?;
            keep_replies_only(&socket, ipv6)?;
            Ok((socket, EchoAccess::RawSocket))
        }
    }
}

/// True when it was the kind of socket that was refused.
fn is_refusal(error: &Error) -> bool {
    matches!(error.errno(), Some(libc::EACCES | libc::EPERM | libc::EPROTONOSUPPORT | libc::ESOCKTNOSUPPORT))
}

const PERMISSION_HINT: &str = "either let this user's groups use ping sockets: `sysctl -w net.ipv4.ping_group_range='0 \
                        2147483647'`, or run it as root (CAP_NET_RAW)";

fn open(ipv6: bool, kind: Type) -> Result<Socket> {
    let (domain, protocol, name) =
        if ipv6 { (Domain::IPV6, Protocol::ICMPV6, "ICMPv6") } else { (Domain::IPV4, Protocol::ICMPV4, "ICMP") };
    Socket::new(domain, kind, Some(protocol)).map_err(|cause| {
        Error::system(format!("opening a socket for {name} echo"), cause)
            .hint_on(libc::EPERM, PERMISSION_HINT)
            .hint_on(libc::EACCES, PERMISSION_HINT)
    })
}

/// A ping socket gets its identifier, which is its port, by being bound.
fn bind_to_source(socket: Socket, to: SocketAddr, options: &EchoOptions, always: bool) -> Result<Socket> {
    if let Some(device) = &options.device {
        options::bind_to_device(&socket, device)?;
    }
    let any = if to.is_ipv6() { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
    if options.source.is_none() && !always {
        return Ok(socket);
    }
    let address = SocketAddr::new(options.source.unwrap_or(any), 0);
    socket.bind(&address.into()).map_err(|cause| {
        Error::system(format!("binding to {}", address.ip()), cause)
            .hint_on(libc::EAFNOSUPPORT, "the addresses of both ends must be of one family")
            .hint_on(libc::EINVAL, "the addresses of both ends must be of one family")
    })?;
    Ok(socket)
}

fn apply(socket: &Socket, echo: &EchoOptions) -> Result<()> {
    if let Some(value) = echo.type_of_service {
        options::set_type_of_service(socket, value)?;
    }
    if let Some(hops) = echo.hop_limit {
        options::set_hop_limit(socket, hops)?;
    }
    if echo.dont_fragment {
        options::set_path_mtu_probing(socket)?;
    }
    Ok(())
}

/// Without this filter, a raw socket gets everything that this host receives.
fn keep_replies_only(socket: &Socket, ipv6: bool) -> Result<()> {
    if ipv6 {
        let mut blocked = [0xff_u8; 32];
        let word = usize::from(ECHO_REPLY_V6) / 32;
        let passing = !(1_u32 << (ECHO_REPLY_V6 % 32));
        blocked[4 * word..4 * word + 4].copy_from_slice(&passing.to_ne_bytes());
        return sockopt::set_bytes(socket, FILTER_V6, &blocked);
    }
    sockopt::set(socket, FILTER, !(1_u32 << ECHO_REPLY))
}

fn random_identifier() -> Result<u16> {
    let mut bytes = [0; 2];
    host::random_bytes(&mut bytes)?;
    Ok(u16::from_ne_bytes(bytes))
}

/// Identifier and sequence number of an echo message of this type.
fn echo_header(message: &[u8], kind: u8) -> Option<(u16, u16)> {
    let [first, code, _, _, identifier_high, identifier_low, high, low] = *message.first_chunk::<HEADER>()?;
    let identifier = u16::from_be_bytes([identifier_high, identifier_low]);
    (first == kind && code == 0).then(|| (identifier, u16::from_be_bytes([high, low])))
}

fn without_ipv4_header(packet: &[u8]) -> Option<&[u8]> {
    packet.get(usize::from(*packet.first()? & 0xf) * 4..)
}

#[expect(clippy::cast_possible_truncation, reason = "sequence numbers are counted modulo 2^16")]
const fn sequence_of(number: u64) -> u16 {
    number as u16
}

/// The last of the requests before `next` that has this sequence number; `None` when there is none.
fn number_of(sequence: u16, next: u64) -> Option<u64> {
    let back = sequence_of(next).wrapping_sub(sequence);
    next.checked_sub(if back == 0 { 1 << 16 } else { u64::from(back) })
}

/// RFC 1071: the complement of the one's complement sum of all 16-bit words.
fn internet_checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word.get(1).copied().unwrap_or(0)])));
    let mut sum: u32 = words.fold(0, |sum, word| {
        let sum = sum + word;
        (sum & 0xffff) + (sum >> 16)
    });
    sum = (sum & 0xffff) + (sum >> 16);
    !u16::try_from(sum).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests;
