//! Single datagrams with everything that a probe wants to know of them, on their way in and on their way out.

use core::time::Duration;
use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Mutex, PoisonError};

use linerate_units::{ByteCount, MonotonicTime, PacketCount, TypeOfService};

use crate::clock;
use crate::error::Result;
use crate::error_queue::{self, PathError, QueueEntry, is_of_an_earlier_datagram};
use crate::message::{self, ControlBuffer, Incoming, Scratch};
use crate::net::{canonical, for_family};
use crate::options;
use crate::poll::{self, Interest};
use crate::time_stamp::{ClockPair, KernelStamps, TimeStamp};

/// What a probe socket is to tell beyond what arrives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProbeOptions {
    /// When the kernel sent each datagram ([`ProbeSocket::transmissions`]).
    pub transmissions: bool,
    /// What routers and hosts on the way say ([`ProbeSocket::path_errors`]). Without it, only a socket that is connected
    /// to its peer learns that nobody listens there, as an error of a later call.
    pub path_errors: bool,
}

/// How a datagram is to be sent. What is `None` is as the socket has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outgoing {
    /// To where; `None` is the peer that the socket is connected to.
    pub to: Option<SocketAddr>,
    /// From which of this host's addresses; of the family of `to`.
    pub from: Option<IpAddr>,
    /// Its type-of-service octet (IPv6: traffic class).
    pub type_of_service: Option<TypeOfService>,
    /// How many routers it may pass, 1 to 255.
    pub hop_limit: Option<u8>,
}

/// Which of a socket's datagrams it is: they are counted from 0 on, those that the kernel refused left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SendNumber(pub u64);

/// When a datagram was handed to the device: the first one that it passed, as further ones of the same kernel (bridges,
/// tunnels, other namespaces) stamp it again, after whatever kept it before them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmitted {
    /// Which one.
    pub number: SendNumber,
    /// When.
    pub sent: TimeStamp,
}

/// A datagram that has arrived; what it carries is in the caller's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// How much of the buffer it fills.
    pub filled: usize,
    /// How long its payload was; more than `filled` when the buffer was too small.
    pub size: ByteCount,
    /// From where, IPv4 never mapped.
    pub source: SocketAddr,
    /// To which of this host's addresses, IPv4 never mapped.
    pub destination: Option<IpAddr>,
    /// When the kernel received it; when it was read, if the kernel gave no stamp.
    pub arrived: TimeStamp,
    /// The hop limit (time to live) that it had left.
    pub hop_limit: Option<u8>,
    /// Its type-of-service octet (IPv6: traffic class) as it arrived.
    pub type_of_service: Option<TypeOfService>,
    /// How many datagrams this socket has dropped since it was opened because its buffer was full; `None` before the
    /// first.
    pub dropped: Option<PacketCount>,
}

/// What [`ProbeSocket::next_event`] waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProbeEvent {
    /// A datagram has arrived.
    Arrival(Arrival),
    /// A datagram did not get through.
    PathError(PathError),
    /// A datagram was sent.
    Transmitted(Transmitted),
}

/// A UDP socket for probes. One thread may send while another receives.
#[derive(Debug)]
pub struct ProbeSocket {
    socket: UdpSocket,
    ipv6: bool,
    /// Whether the peer that it is connected to is reached over IPv4.
    peer_is_ipv4: bool,
    options: ProbeOptions,
    clocks: ClockPair,
    sending: Mutex<Numbers>,
    told: Mutex<Told>,
}

/// How the kernel's numbers of sent datagrams (32 bits) are related to ours.
#[derive(Clone, Copy, Debug, Default)]
struct Numbers {
    next: u64,
    /// Ours of the one that is the kernel's number 0.
    first: u64,
}

/// What was on the error queue and nobody has asked for yet.
#[derive(Debug, Default)]
struct Told {
    transmissions: VecDeque<Transmitted>,
    errors: VecDeque<PathError>,
    /// The datagrams of which the kernel has told already: the newest of them.
    stamped: BTreeSet<SendNumber>,
}

/// So much of each kind is kept for whoever does not ask; the oldest goes first.
const MOST_KEPT: usize = 1 << 16;

impl ProbeSocket {
    /// Takes over a socket ([`crate::net::bind_udp`], [`crate::net::connect_udp`]), already connected if it is to be.
    /// What this kernel cannot tell is `None` later; that is no error here.
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
    pub fn send(&self, bytes: &[u8], how: &Outgoing) -> io::Result<SendNumber> {
        let to = how.to.map(|to| for_family(to, self.ipv6));
        let control = self.control(how);
        let mut numbers = self.sending.lock().unwrap_or_else(PoisonError::into_inner);
        let mut outcome = message::send(&self.socket, bytes, to, &control);
        if let Err(error) = &outcome {
            let reported = self.after_refusal(&mut numbers)?;
            if self.options.path_errors && (reported || is_of_an_earlier_datagram(error)) {
                // The kernel hands the news on an earlier datagram to whoever calls next; this one was not looked at.
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

    fn control(&self, how: &Outgoing) -> ControlBuffer {
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

    /// Puts aside what the error queue has, and has both sides count from 0 again, as some kernels count datagrams that
    /// they refused and some do not. Whether somebody else reported a datagram.
    fn after_refusal(&self, numbers: &mut Numbers) -> io::Result<bool> {
        let reported = self.options != ProbeOptions::default() && self.read_error_queue(|| *numbers)?;
        if self.options.transmissions {
            let _ = options::set_packet_timestamps(&self.socket, false);
            let _ = options::set_packet_timestamps(&self.socket, true);
            numbers.first = numbers.next;
        }
        Ok(reported)
    }

    /// Waits for a datagram up to `timeout` (without limit if that is `None`), and puts what it carries into `buffer`.
    /// `Ok(None)` when none came. Without [`ProbeOptions::path_errors`], an error such as "connection refused" is about
    /// an earlier datagram, and the socket stays usable.
    pub fn receive(&self, buffer: &mut [u8], timeout: Option<Duration>) -> io::Result<Option<Arrival>> {
        let deadline = timeout.map(|timeout| clock::monotonic_now() + timeout);
        loop {
            let arrival = self.try_receive(buffer)?;
            if arrival.is_some() || !self.wait(deadline)? {
                return Ok(arrival);
            }
        }
    }

    /// Takes a datagram that is there already; does not wait. What the error queue has is put aside meanwhile, so that
    /// after `Ok(None)` nothing is left for which [`poll::wait`] would return at once.
    pub fn try_receive(&self, buffer: &mut [u8]) -> io::Result<Option<Arrival>> {
        loop {
            let mut scratch = Scratch::new();
            match message::receive(&self.socket, buffer, 0, &mut scratch) {
                Ok(incoming) => {
                    if let Some(arrival) = self.arrival(&incoming, buffer.len()) {
                        return Ok(Some(arrival));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.look_at_error_queue()?;
                    return Ok(None);
                }
                Err(error)
                    if self.options.path_errors
                        && (is_of_an_earlier_datagram(&error) || error.raw_os_error() == Some(libc::EMSGSIZE)) =>
                {
                    self.look_at_error_queue()?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Waits for whatever comes first, up to `timeout` (without limit if that is `None`).
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

    /// When the kernel sent the datagrams of which it has said so since the last call; each is told once.
    pub fn transmissions(&self) -> io::Result<Vec<Transmitted>> {
        self.look_at_error_queue()?;
        Ok(self.told().transmissions.drain(..).collect())
    }

    /// Which datagrams are known not to have got through since the last call.
    pub fn path_errors(&self) -> io::Result<Vec<PathError>> {
        self.look_at_error_queue()?;
        Ok(self.told().errors.drain(..).collect())
    }

    fn told(&self) -> std::sync::MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether something came before the deadline.
    fn wait(&self, deadline: Option<MonotonicTime>) -> io::Result<bool> {
        let left = deadline.map(|deadline| deadline - clock::monotonic_now());
        Ok(poll::wait_for(&self.socket, Interest::READ, left)?)
    }

    fn arrival(&self, incoming: &Incoming<'_>, room: usize) -> Option<Arrival> {
        let mut stamps = KernelStamps::default();
        let (mut destination, mut hop_limit, mut type_of_service, mut dropped) = (None, None, None, None);
        for (level, kind, content) in incoming.control() {
            match (level, kind) {
                (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => {
                    dropped = message::word(content, 0).map(|count| PacketCount::new(count.into()));
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
        Some(Arrival {
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

    fn look_at_error_queue(&self) -> io::Result<()> {
        if self.options == ProbeOptions::default() {
            return Ok(());
        }
        self.read_error_queue(|| *self.sending.lock().unwrap_or_else(PoisonError::into_inner)).map(drop)
    }

    /// Puts aside what the error queue has; whether there was a report by somebody else.
    fn read_error_queue(&self, numbers: impl Fn() -> Numbers) -> io::Result<bool> {
        let mut reported = false;
        while let Some(entry) = error_queue::read_one(&self.socket, &self.clocks)? {
            match entry {
                QueueEntry::Transmission(told_of) => {
                    // Read after the entry, so that whatever it tells of has been counted.
                    let number = numbers().of_kernels(told_of.number);
                    if let Some(number) = number {
                        self.told().note(Transmitted { number, sent: told_of.sent });
                    }
                }
                QueueEntry::PathError(error) => {
                    reported |= error.icmp.is_some();
                    push_limited(&mut self.told().errors, error);
                }
                QueueEntry::Other => {}
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

impl Numbers {
    /// The datagram that the kernel counts as `number`: the last one sent that may be it. `None` when there is none, as
    /// for a late stamp from before the kernel began to count anew.
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

impl Told {
    /// A datagram leaves this host once: its first stamp counts.
    fn note(&mut self, told: Transmitted) {
        let mut is_first = self.stamped.insert(told.number);
        if self.stamped.len() > MOST_KEPT {
            // One that is older than all that are known is not known any more.
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
    if queue.len() == MOST_KEPT {
        queue.pop_front();
    }
    queue.push_back(entry);
}

/// The kernel begins to stamp what arrives a moment after the first socket of the host has asked for it
/// (`net_enable_timestamp`): the first probe must not be the one that comes too early. Where nothing can be sent over
/// loopback, it may be.
fn wait_for_kernel_stamps() {
    const TRIES: u32 = 20;
    const PAUSE: Duration = Duration::from_micros(500);
    let Ok(socket) = UdpSocket::bind((std::net::Ipv4Addr::LOCALHOST, 0)) else { return };
    let Ok(own) = socket.local_addr() else { return };
    if options::set_packet_timestamps(&socket, false).is_err() {
        return;
    }
    for _ in 0..TRIES {
        let (mut buffer, mut scratch) = ([0; 1], Scratch::new());
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
    poll::wait_for(socket, Interest::READ, Some(Duration::from_millis(20))).unwrap_or(false)
}

#[cfg(test)]
mod tests;
