//! Single datagrams with all their metadata, sent and received.

use core::time::Duration;
use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Mutex, PoisonError};

use linerate_units::{ByteCount, MonotonicTime, PacketCount, TypeOfService};

use crate::clock;
use crate::error::Result;
use crate::error_queue::{self, ErrorQueueEntry, PathError, is_from_earlier_datagram};
use crate::message::{self, ControlBuffer, IncomingMessage, ReceiveScratch};
use crate::net::{canonical, for_family};
use crate::netlink;
use crate::options;
use crate::poll::{self, PollInterest};
use crate::time_stamp::{ClockPair, KernelStamps, TimeStamp};

/// Reports of a probe socket in addition to received datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProbeOptions {
    /// Time stamp of each sent datagram ([`ProbeSocket::transmissions`]).
    pub transmissions: bool,
    /// ICMP errors from routers and hosts on the path ([`ProbeSocket::path_errors`]). Without it, only a connected
    /// socket learns of a closed port, as an error of a later call.
    pub path_errors: bool,
}

/// Parameters of a datagram to send. `None` keeps the socket's setting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutgoingDatagram {
    /// Destination; `None` for the connected peer.
    pub to: Option<SocketAddr>,
    /// Source address on this host, of the family of `to`.
    pub from: Option<IpAddr>,
    /// Type-of-service octet (IPv6: traffic class).
    pub type_of_service: Option<TypeOfService>,
    /// Hop limit, 1 to 255.
    pub hop_limit: Option<u8>,
}

/// Number of a sent datagram, counted from 0 without those that the kernel refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SendNumber(pub u64);

/// Time at which a datagram was handed to the first device that it passed: further ones of the same kernel (bridges,
/// tunnels, other namespaces) stamp it again, after any delay before them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransmitTimestamp {
    /// Number of the datagram.
    pub number: SendNumber,
    /// Time of transmission.
    pub sent: TimeStamp,
}

/// A received datagram; its payload is in the caller's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatagramArrival {
    /// Number of bytes stored in the buffer.
    pub filled: usize,
    /// Length of its payload; more than `filled` when the buffer was too small.
    pub size: ByteCount,
    /// Source, IPv4 never mapped.
    pub source: SocketAddr,
    /// Destination address on this host, IPv4 never mapped.
    pub destination: Option<IpAddr>,
    /// Time of reception by the kernel; time of reading, if the kernel gave no stamp.
    pub arrived: TimeStamp,
    /// Remaining hop limit (time to live).
    pub hop_limit: Option<u8>,
    /// Type-of-service octet (IPv6: traffic class) as received.
    pub type_of_service: Option<TypeOfService>,
    /// Number of datagrams dropped at this socket's full buffer since it was opened; `None` before the first.
    pub dropped: Option<PacketCount>,
}

/// Event reported by [`ProbeSocket::next_event`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProbeEvent {
    /// A datagram has arrived.
    Arrival(DatagramArrival),
    /// A datagram was not delivered.
    PathError(PathError),
    /// A datagram was sent.
    Transmitted(TransmitTimestamp),
}

/// A UDP socket for probes. One thread may send while another receives.
#[derive(Debug)]
pub struct ProbeSocket {
    socket: UdpSocket,
    ipv6: bool,
    /// True when the connected peer is reached over IPv4.
    peer_is_ipv4: bool,
    options: ProbeOptions,
    clocks: ClockPair,
    sending: Mutex<SendNumbering>,
    told: Mutex<ErrorQueueBacklog>,
}

/// Relation between the kernel's numbers of sent datagrams (32 bits) and ours.
#[derive(Clone, Copy, Debug, Default)]
struct SendNumbering {
    next: u64,
    /// Our number of the datagram that has the kernel's number 0.
    first: u64,
}

/// Entries of the error queue that the caller has not fetched yet.
#[derive(Debug, Default)]
struct ErrorQueueBacklog {
    transmissions: VecDeque<TransmitTimestamp>,
    errors: VecDeque<PathError>,
    /// Latest datagrams whose transmission stamp was already reported.
    stamped: BTreeSet<SendNumber>,
}

/// Maximum entries kept of each kind until the caller fetches them; the oldest is dropped first.
const MAX_KEPT_ENTRIES: usize = 1 << 16;

impl ProbeSocket {
    /// Takes over a socket ([`crate::net::bind_udp`], [`crate::net::connect_udp`]), already connected if needed.
    /// Metadata that this kernel lacks is `None` later, not an error here.
    pub fn new(socket: UdpSocket, options: ProbeOptions) -> Result<Self> {
        let ipv6 = options::is_ipv6(&socket)?;
        if options::set_packet_timestamps(&socket, options.transmissions).is_err() {
            let _ = options::set_receive_timestamps(&socket, true);
        }
        let _ = options::set_receive_hop_limit(&socket, true);
        let _ = options::set_receive_type_of_service(&socket, true);
        let _ = options::set_receive_destination(&socket, true);
        let _ = options::set_receive_queue_overflow_counter(&socket, true);
        if options.path_errors {
            options::set_path_errors(&socket, true)?;
            let _ = options::set_error_extensions(&socket, true);
        }
        wait_for_kernel_stamps();
        let peer_is_ipv4 = socket.peer_addr().is_ok_and(|peer| canonical(peer).is_ipv4());
        let (clocks, sending, told) = (ClockPair::new(), Mutex::default(), Mutex::default());
        Ok(Self { socket, ipv6, peer_is_ipv4, options, clocks, sending, told })
    }

    /// The socket itself, for its options and addresses.
    #[must_use]
    pub fn socket(&self) -> &UdpSocket {
        &self.socket
    }

    /// The clocks that this socket's stamps come from.
    #[must_use]
    pub fn clocks(&self) -> &ClockPair {
        &self.clocks
    }

    /// Sends a datagram. Does not wait: a full send buffer is [`io::ErrorKind::WouldBlock`].
    pub fn send(&self, bytes: &[u8], how: &OutgoingDatagram) -> io::Result<SendNumber> {
        let to = how.to.map(|to| for_family(to, self.ipv6));
        let control = self.control(how);
        let mut numbers = self.sending.lock().unwrap_or_else(PoisonError::into_inner);
        let mut outcome = message::send(&self.socket, bytes, to, &control);
        if let Err(error) = &outcome {
            let reported = self.after_refusal(&mut numbers)?;
            if self.options.path_errors && (reported || is_from_earlier_datagram(error)) {
                // The kernel reports the error of an earlier datagram to the next call; this datagram was not
                // processed.
                outcome = message::send(&self.socket, bytes, to, &control);
            }
        }
        if let Err(error) = outcome {
            self.after_refusal(&mut numbers)?;
            return Err(error);
        }
        numbers.next += 1;
        Ok(SendNumber(numbers.next - 1))
    }

    fn control(&self, how: &OutgoingDatagram) -> ControlBuffer {
        let over_ipv4 = how.to.map_or(self.peer_is_ipv4, |to| canonical(to).is_ipv4());
        let (level, class, hops) = if over_ipv4 {
            (libc::IPPROTO_IP, libc::IP_TOS, libc::IP_TTL)
        } else {
            (libc::IPPROTO_IPV6, libc::IPV6_TCLASS, libc::IPV6_HOPLIMIT)
        };
        let mut control = ControlBuffer::new();
        if let Some(value) = how.type_of_service {
            control.push_number(level, class, value.get().into());
        }
        if let Some(limit) = how.hop_limit {
            control.push_number(level, hops, limit.into());
        }
        if let Some(source) = how.from {
            control.push_source(canonical(SocketAddr::new(source, 0)).ip());
        }
        control
    }

    /// Stores the error queue's entries, and restarts both counts from 0, as kernels differ on counting datagrams that
    /// they refused. Returns true if there was an ICMP report.
    fn after_refusal(&self, numbers: &mut SendNumbering) -> io::Result<bool> {
        let reported = self.options != ProbeOptions::default() && self.read_error_queue(|| *numbers)?;
        if self.options.transmissions {
            let _ = options::set_packet_timestamps(&self.socket, false);
            let _ = options::set_packet_timestamps(&self.socket, true);
            numbers.first = numbers.next;
        }
        Ok(reported)
    }

    /// Waits for a datagram up to `timeout` (without limit if that is `None`), and stores its payload in `buffer`.
    /// `Ok(None)` when none came. Without [`ProbeOptions::path_errors`], an error such as "connection refused" is about
    /// an earlier datagram, and the socket stays usable.
    pub fn receive(&self, buffer: &mut [u8], timeout: Option<Duration>) -> io::Result<Option<DatagramArrival>> {
        let deadline = timeout.map(|timeout| clock::monotonic_now() + timeout);
        loop {
            let arrival = self.try_receive(buffer)?;
            if arrival.is_some() || !self.wait(deadline)? {
                return Ok(arrival);
            }
        }
    }

    /// Receives an available datagram; does not wait. The error queue's entries are stored meanwhile, so that after
    /// `Ok(None)` nothing is left for which [`poll::wait`] would return at once.
    pub fn try_receive(&self, buffer: &mut [u8]) -> io::Result<Option<DatagramArrival>> {
        loop {
            let mut scratch = ReceiveScratch::new();
            match message::receive(&self.socket, buffer, 0, &mut scratch) {
                Ok(incoming) => {
                    if let Some(arrival) = self.arrival(&incoming, buffer.len()) {
                        return Ok(Some(arrival));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.store_error_queue()?;
                    return Ok(None);
                }
                Err(error)
                    if self.options.path_errors
                        && (is_from_earlier_datagram(&error) || error.raw_os_error() == Some(libc::EMSGSIZE)) =>
                {
                    self.store_error_queue()?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Waits for the next event, up to `timeout` (without limit if that is `None`).
    pub fn next_event(&self, buffer: &mut [u8], timeout: Option<Duration>) -> io::Result<Option<ProbeEvent>> {
        let deadline = timeout.map(|timeout| clock::monotonic_now() + timeout);
        loop {
            if let Some(arrival) = self.try_receive(buffer)? {
                return Ok(Some(ProbeEvent::Arrival(arrival)));
            }
            if let Some(event) = self.told().pop() {
                return Ok(Some(event));
            }
            if !self.wait(deadline)? {
                return Ok(None);
            }
        }
    }

    /// Transmission times that the kernel has reported since the last call; each is returned once.
    pub fn transmissions(&self) -> io::Result<Vec<TransmitTimestamp>> {
        self.store_error_queue()?;
        Ok(self.told().transmissions.drain(..).collect())
    }

    /// Undelivered datagrams reported since the last call.
    pub fn path_errors(&self) -> io::Result<Vec<PathError>> {
        self.store_error_queue()?;
        Ok(self.told().errors.drain(..).collect())
    }

    fn told(&self) -> std::sync::MutexGuard<'_, ErrorQueueBacklog> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the deadline; returns true if something came before it.
    fn wait(&self, deadline: Option<MonotonicTime>) -> io::Result<bool> {
        let left = deadline.map(|deadline| deadline - clock::monotonic_now());
        Ok(poll::wait_for(&self.socket, PollInterest::READ, left)?)
    }

    fn arrival(&self, incoming: &IncomingMessage<'_>, room: usize) -> Option<DatagramArrival> {
        let mut stamps = KernelStamps::default();
        let (mut destination, mut hop_limit, mut type_of_service, mut dropped) = (None, None, None, None);
        for (level, kind, content) in incoming.control() {
            match (level, kind) {
                (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => {
                    dropped = netlink::number(content, 0).map(|count| PacketCount::new(count.into()));
                }
                (libc::SOL_SOCKET, kind) => stamps = message::stamps(kind, content).unwrap_or(stamps),
                (libc::IPPROTO_IP, libc::IP_TTL) | (libc::IPPROTO_IPV6, libc::IPV6_HOPLIMIT) => {
                    hop_limit = message::octet(content);
                }
                (libc::IPPROTO_IP, libc::IP_TOS) | (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                    type_of_service = message::octet(content).map(TypeOfService::new);
                }
                (libc::IPPROTO_IP, libc::IP_PKTINFO) | (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                    destination = message::packet_destination(level, content);
                }
                _ => {}
            }
        }
        Some(DatagramArrival {
            filled: incoming.length.min(room),
            size: ByteCount::from_usize(incoming.length),
            source: canonical(incoming.address?),
            destination,
            arrived: self.clocks.best(stamps, self.clocks.now()),
            hop_limit,
            type_of_service,
            dropped,
        })
    }

    fn store_error_queue(&self) -> io::Result<()> {
        if self.options == ProbeOptions::default() {
            return Ok(());
        }
        self.read_error_queue(|| *self.sending.lock().unwrap_or_else(PoisonError::into_inner)).map(drop)
    }

    /// Stores the error queue's entries; returns true if there was an ICMP report.
    fn read_error_queue(&self, numbers: impl Fn() -> SendNumbering) -> io::Result<bool> {
        let mut reported = false;
        while let Some(entry) = error_queue::read_one(&self.socket, &self.clocks)? {
            match entry {
                ErrorQueueEntry::Transmission(told_of) => {
                    // Read after the entry, so that the datagram that it is about has been counted.
                    let number = numbers().of_kernels(told_of.number);
                    if let Some(number) = number {
                        self.told().note(TransmitTimestamp { number, sent: told_of.sent });
                    }
                }
                ErrorQueueEntry::PathError(error) => {
                    reported |= error.icmp.is_some();
                    push_limited(&mut self.told().errors, error);
                }
                ErrorQueueEntry::Other => {}
            }
        }
        Ok(reported)
    }
}

impl AsFd for ProbeSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl SendNumbering {
    /// The datagram with the kernel's `number`: the last one sent that it may mean. `None` when there is none, as for a
    /// late stamp from before the kernel restarted its count.
    fn of_kernels(self, number: u32) -> Option<SendNumber> {
        let sent = self.next - self.first;
        let back = u64::from(low_half(sent).wrapping_sub(number).wrapping_sub(1)) + 1;
        Some(SendNumber(self.first + sent.checked_sub(back)?))
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the kernel counts modulo 2^32")]
const fn low_half(number: u64) -> u32 {
    number as u32
}

impl ErrorQueueBacklog {
    /// A datagram leaves this host once: its first stamp counts.
    fn note(&mut self, told: TransmitTimestamp) {
        let mut is_first = self.stamped.insert(told.number);
        if self.stamped.len() > MAX_KEPT_ENTRIES {
            // A datagram older than all known ones has been forgotten.
            is_first &= self.stamped.pop_first() != Some(told.number);
        }
        if is_first {
            push_limited(&mut self.transmissions, told);
        }
    }

    fn pop(&mut self) -> Option<ProbeEvent> {
        let error = self.errors.pop_front().map(ProbeEvent::PathError);
        error.or_else(|| self.transmissions.pop_front().map(ProbeEvent::Transmitted))
    }
}

fn push_limited<T>(queue: &mut VecDeque<T>, entry: T) {
    if queue.len() == MAX_KEPT_ENTRIES {
        queue.pop_front();
    }
    queue.push_back(entry);
}

/// Waits until the kernel stamps received packets. It starts a moment after the first socket of the host has asked for
/// it (`net_enable_timestamp`): the first probe must not arrive before that. Where nothing can be sent over loopback,
/// it may.
fn wait_for_kernel_stamps() {
    const TRIES: u32 = 20;
    const PAUSE: Duration = Duration::from_micros(500);
    let Ok(socket) = UdpSocket::bind((std::net::Ipv4Addr::LOCALHOST, 0)) else { return };
    let Ok(own) = socket.local_addr() else { return };
    if options::set_packet_timestamps(&socket, false).is_err() {
        return;
    }
    for _ in 0..TRIES {
        let (mut buffer, mut scratch) = ([0; 1], ReceiveScratch::new());
        if !socket.send_to(&buffer, own).is_ok_and(|_| arrives_soon(&socket)) {
            return;
        }
        let Ok(incoming) = message::receive(&socket, &mut buffer, 0, &mut scratch) else { return };
        let mut stamps = incoming.control().filter_map(|(_, kind, content)| message::stamps(kind, content));
        if stamps.any(|stamps| stamps.kernel.is_some()) {
            return;
        }
        clock::sleep_until(clock::monotonic_now() + PAUSE);
    }
}

fn arrives_soon(socket: &UdpSocket) -> bool {
    poll::wait_for(socket, PollInterest::READ, Some(Duration::from_millis(20))).unwrap_or(false)
}

#[cfg(test)]
mod tests;
