//! UDP in batches: segmentation offload and `sendmmsg` for sending, receive offload and `recvmmsg` for receiving.
//!
//! Segmentation offload (`UDP_SEGMENT`, Linux 4.18) passes the kernel one large buffer that it cuts into datagrams of
//! equal size, as late as it can; receive offload (`UDP_GRO`, Linux 5.0) passes such trains to the receiver whole. On
//! the wire there are ordinary datagrams, so any peer will do.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::ptr;

use rustix::io::retry_on_intr;
use rustix::net::{self, SendFlags};

use linerate_units::{ByteCount, MonotonicTime, PacketCount, TypeOfService, WallTime};

use super::retry_interrupted;
use crate::file::PageBuffer;
use crate::message::{self, EMPTY_MESSAGE, ReceiveBatch};
use crate::netlink;
use crate::options;
use crate::time_stamp::ClockPair;

/// Largest payload of one UDP datagram over IPv4, and so of one offloaded train.
const MAX_PAYLOAD: usize = 65507;

/// `UDP_MAX_SEGMENTS` of kernels before 6.9; newer ones allow 128.
const MAX_SEGMENTS_OLD_KERNEL: usize = 64;
const MAX_SEGMENTS_NEW_KERNEL: usize = 128;

/// Messages per `sendmmsg`.
const MAX_MESSAGES: usize = 64;

/// Sends datagrams of one size over a connected socket, many per system call.
#[derive(Debug)]
pub struct DatagramSender<'a> {
    socket: BorrowedFd<'a>,
    buffer: PageBuffer,
    datagram: usize,
    capacity: usize,
    /// Datagrams per message; 1 when the kernel or the device cannot segment.
    train: usize,
}

impl<'a> DatagramSender<'a> {
    /// Prepares a connected socket for datagrams of `size`, at most `at_once` per call of [`DatagramSender::send`].
    pub fn new(socket: &'a impl AsFd, size: ByteCount, at_once: PacketCount) -> io::Result<Self> {
        let datagram = size.to_usize().clamp(1, MAX_PAYLOAD);
        let capacity = at_once.to_usize().clamp(1, MAX_MESSAGES * MAX_SEGMENTS_NEW_KERNEL);
        let train = match u16::try_from(datagram) {
            Ok(segment) if capacity > 1 && options::set_udp_segment(socket, segment).is_ok() => {
                (MAX_PAYLOAD / datagram).clamp(1, MAX_SEGMENTS_NEW_KERNEL)
            }
            _ => 1,
        };
        let buffer = PageBuffer::new(ByteCount::from_usize(datagram * capacity))?;
        Ok(Self { socket: socket.as_fd(), buffer, datagram, capacity, train })
    }

    /// Number of datagrams that fit into one call of [`DatagramSender::send`].
    #[must_use]
    pub fn capacity(&self) -> PacketCount {
        PacketCount::new(self.capacity as u64)
    }

    /// True when the kernel segments trains into datagrams.
    #[must_use]
    pub fn offloads(&self) -> bool {
        self.train > 1
    }

    /// Current number of datagrams per train: the minimum sent back to back when sending all at once.
    #[must_use]
    pub fn train(&self) -> PacketCount {
        PacketCount::new(self.train as u64)
    }

    /// The datagrams of the next call, in order, to be filled in.
    pub fn datagrams(&mut self) -> impl Iterator<Item = &mut [u8]> {
        self.buffer.chunks_exact_mut(self.datagram).take(self.capacity)
    }

    /// Sends the first `count` datagrams of the buffer; returns the number that the kernel accepted, possibly fewer.
    ///
    /// A kernel or device that cannot segment is detected here: the sender then continues with smaller trains, in the
    /// end with single datagrams.
    pub fn send(&mut self, count: PacketCount) -> io::Result<PacketCount> {
        let count = count.to_usize().min(self.capacity);
        loop {
            match self.send_trains(count) {
                Err(error) if self.train > 1 && is_offload_refusal(&error) => self.shorten_trains(),
                other => return other,
            }
        }
    }

    fn shorten_trains(&mut self) {
        self.train = if self.train > MAX_SEGMENTS_OLD_KERNEL { MAX_SEGMENTS_OLD_KERNEL } else { 1 };
        if self.train == 1 {
            // A failure changes nothing: messages of one segment are never cut.
            let _ = options::set_udp_segment(&self.socket, 0);
        }
    }

    fn send_trains(&mut self, count: usize) -> io::Result<PacketCount> {
        if count <= self.train {
            let train = &self.buffer[..count * self.datagram];
            let sent = retry_on_intr(|| net::send(self.socket, train, SendFlags::NOSIGNAL))?;
            return Ok(PacketCount::new((sent / self.datagram) as u64));
        }
        let mut messages = [EMPTY_MESSAGE; MAX_MESSAGES];
        let mut vectors = [libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 }; MAX_MESSAGES];
        let mut used = 0;
        for (train, (message, vector)) in self.buffer[..count * self.datagram]
            .chunks(self.train * self.datagram)
            .zip(messages.iter_mut().zip(&mut vectors))
        {
            vector.iov_base = train.as_ptr().cast_mut().cast();
            vector.iov_len = train.len();
            message.msg_hdr.msg_iov = vector;
            message.msg_hdr.msg_iovlen = 1;
            used += 1;
        }
        let sent = retry_interrupted(|| {
            // musl's type of the flags is unsigned.
            // SAFETY: `used` messages are filled in; each points to one vector into the live buffer, which is only
            // read.
            unsafe {
                libc::sendmmsg(self.socket.as_raw_fd(), messages.as_mut_ptr(), used, libc::MSG_NOSIGNAL as _) as isize
            }
        })?;
        let datagrams = messages[..sent].iter().map(|message| message.msg_len as usize / self.datagram).sum::<usize>();
        Ok(PacketCount::new(datagrams as u64))
    }
}

/// True for errors with which kernels and devices refuse to segment this train (udp(7), `udp_send_skb`).
fn is_offload_refusal(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EIO | libc::EMSGSIZE | libc::EOPNOTSUPP))
}

/// Messages per `recvmmsg`.
const RECEIVE_MESSAGES: usize = 32;
/// Maximum length of a received train.
const RECEIVE_BYTES: usize = 65536;

/// Receives datagrams, many per system call, with the kernel's time stamps and its count of drops.
pub struct DatagramReceiver<'a> {
    socket: BorrowedFd<'a>,
    batch: ReceiveBatch,
    /// The kernel stamps in civil time.
    clocks: ClockPair,
    received_at: MonotonicTime,
}

impl std::fmt::Debug for DatagramReceiver<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DatagramReceiver").field("socket", &self.socket).finish_non_exhaustive()
    }
}

/// One received message: a datagram, or a train of datagrams of one size (the last may be shorter).
#[derive(Clone, Copy, Debug)]
pub struct ReceivedDatagrams<'a> {
    /// The payload.
    pub bytes: &'a [u8],
    /// Size of each datagram in it.
    pub datagram: ByteCount,
    /// Time of reception by the kernel, one for a whole train; time of reading, if the kernel gave no stamp.
    pub arrived: MonotonicTime,
    /// The kernel's stamp in civil time; `None` if it gave none.
    pub stamp: Option<WallTime>,
    /// Remaining hop limit (time to live), where [`crate::options::set_receive_hop_limit`] is on.
    pub hop_limit: Option<u8>,
    /// Type-of-service octet (traffic class), where [`crate::options::set_receive_type_of_service`] is on.
    pub type_of_service: Option<TypeOfService>,
    /// Number of datagrams dropped at this socket's full buffer since it was opened; `None` before the first.
    pub dropped: Option<PacketCount>,
}

impl<'a> DatagramReceiver<'a> {
    /// Prepares a socket: receive offload, time stamps and the drop counter are switched on where the kernel has them.
    pub fn new(socket: &'a impl AsFd) -> io::Result<Self> {
        Self::with_messages(socket, RECEIVE_MESSAGES)
    }

    /// Prepares a socket likewise, with memory for `messages` messages of 64 KiB.
    pub fn with_messages(socket: &'a impl AsFd, messages: usize) -> io::Result<Self> {
        // Each is an improvement that an old kernel may lack; without it the figure it serves is unknown, not wrong.
        let _ = options::set_udp_gro(socket, true);
        let _ = options::set_receive_queue_overflow_counter(socket, true);
        let _ = options::set_receive_timestamps(socket, true);
        let batch = ReceiveBatch::new(messages, RECEIVE_BYTES)?;
        Ok(Self { socket: socket.as_fd(), batch, clocks: ClockPair::new(), received_at: MonotonicTime::default() })
    }

    /// Waits for at least one message (up to the socket's `SO_RCVTIMEO`) and returns all that have arrived, up to 32 by default.
    pub fn receive(&mut self) -> io::Result<impl Iterator<Item = ReceivedDatagrams<'_>>> {
        let count = self.batch.receive(&self.socket, libc::MSG_WAITFORONE)?;
        self.received_at = self.clocks.now().monotonic;
        Ok((0..count).map(|index| self.message(index)))
    }

    fn message(&self, index: usize) -> ReceivedDatagrams<'_> {
        let (_, bytes, control) = self.batch.message(index);
        let control = parse_control(control);
        let arrived = control.stamp.map_or(self.received_at, |stamp| self.clocks.monotonic(stamp));
        let datagram = control.train_segment.unwrap_or(bytes.len());
        ReceivedDatagrams {
            bytes,
            datagram: ByteCount::from_usize(datagram),
            arrived,
            stamp: control.stamp,
            hop_limit: control.hop_limit,
            type_of_service: control.type_of_service,
            dropped: control.dropped,
        }
    }
}

#[derive(Default)]
struct ParsedControl {
    train_segment: Option<usize>,
    dropped: Option<PacketCount>,
    stamp: Option<WallTime>,
    hop_limit: Option<u8>,
    type_of_service: Option<TypeOfService>,
}

fn parse_control<'a>(messages: impl Iterator<Item = (libc::c_int, libc::c_int, &'a [u8])>) -> ParsedControl {
    let mut parsed = ParsedControl::default();
    for (level, kind, content) in messages {
        match (level, kind) {
            (libc::SOL_UDP, libc::UDP_GRO) => {
                let segment = message::number(content).and_then(|segment| usize::try_from(segment).ok());
                parsed.train_segment = segment.filter(|segment| *segment > 0);
            }
            (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => {
                parsed.dropped = netlink::number(content, 0).map(|dropped| PacketCount::new(dropped.into()));
            }
            (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                parsed.stamp = message::stamps(kind, content).and_then(|stamps| stamps.kernel);
            }
            (libc::SOL_IP, libc::IP_TTL) | (libc::SOL_IPV6, libc::IPV6_HOPLIMIT) => {
                parsed.hop_limit = message::octet(content);
            }
            (libc::SOL_IP, libc::IP_TOS) | (libc::SOL_IPV6, libc::IPV6_TCLASS) => {
                parsed.type_of_service = message::octet(content).map(TypeOfService::new);
            }
            _ => {}
        }
    }
    parsed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;
    use std::net::UdpSocket;
    use std::time::Duration;

    fn pair() -> (UdpSocket, UdpSocket) {
        let receiver = UdpSocket::bind("127.0.0.1:0").expect("bind");
        receiver.set_read_timeout(Some(Duration::from_secs(5))).expect("timeout");
        let sender = UdpSocket::bind("127.0.0.1:0").expect("bind");
        sender.connect(receiver.local_addr().expect("address")).expect("connect");
        (sender, receiver)
    }

    #[test]
    fn every_datagram_of_a_batch_arrives_whole_and_in_order() {
        let (sending, receiving) = pair();
        let mut receiver = DatagramReceiver::new(&receiving).expect("receiver");
        let mut sender = DatagramSender::new(&sending, ByteCount::new(100), PacketCount::new(300)).expect("sender");
        for (number, datagram) in sender.datagrams().enumerate() {
            datagram[0] = u8::try_from(number % 251).expect("small");
        }
        assert_eq!(sender.send(PacketCount::new(300)).expect("send"), PacketCount::new(300));
        let before = clock::monotonic_now();
        let mut numbers = Vec::new();
        while numbers.len() < 300 {
            for message in receiver.receive().expect("receive") {
                assert!(before.since(message.arrived) < Duration::from_secs(5), "a stamp from another clock");
                for datagram in message.bytes.chunks(message.datagram.to_usize()) {
                    assert_eq!(datagram.len(), 100);
                    numbers.push(datagram[0]);
                }
            }
        }
        assert!(numbers.iter().enumerate().all(|(index, number)| usize::from(*number) == index % 251));
    }

    #[test]
    fn datagrams_too_large_for_the_device_are_sent_without_offload() {
        let (sending, receiving) = pair();
        let mut receiver = DatagramReceiver::new(&receiving).expect("receiver");
        // Two of these do not fit one train, so there is nothing to cut.
        let mut sender = DatagramSender::new(&sending, ByteCount::new(40_000), PacketCount::new(2)).expect("sender");
        assert!(!sender.offloads());
        assert_eq!(sender.send(PacketCount::new(2)).expect("send"), PacketCount::new(2));
        let mut lengths = Vec::new();
        while lengths.len() < 2 {
            lengths.extend(receiver.receive().expect("receive").map(|message| message.bytes.len()));
        }
        assert_eq!(lengths, [40_000, 40_000]);
    }

    #[test]
    fn drops_at_a_full_socket_are_counted() {
        let (sending, receiving) = pair();
        let mut receiver = DatagramReceiver::new(&receiving).expect("receiver");
        options::set_receive_buffer(&receiving, ByteCount::new(4096)).expect("SO_RCVBUF");
        let mut sender = DatagramSender::new(&sending, ByteCount::new(1000), PacketCount::new(1)).expect("sender");
        for _ in 0..100 {
            sender.send(PacketCount::new(1)).expect("send");
        }
        let mut arrived = receiver.receive().expect("receive").count();
        // The counter travels with the next datagram that is queued.
        sender.send(PacketCount::new(1)).expect("send");
        let mut dropped = None;
        for message in receiver.receive().expect("receive") {
            arrived += 1;
            dropped = message.dropped.or(dropped);
        }
        let dropped = dropped.expect("the kernel counts drops");
        assert_eq!(arrived as u64 + dropped.get(), 101);
    }
}
