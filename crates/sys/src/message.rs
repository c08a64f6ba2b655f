//! `recvmsg(2)` and `sendmsg(2)` with control messages (cmsg(3)): the one place for their unsafe code.

use core::ptr;
use core::time::Duration;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::os::fd::{AsFd, AsRawFd};

use linerate_units::{ByteCount, WallTime};
use socket2::SockAddr;

use crate::clock::retry;
use crate::error::check;
use crate::file::PageBuffer;
use crate::net::canonical;
use crate::netlink;
use crate::time_stamp::KernelStamps;

/// Buffer size for all control messages of a datagram: stamps, drop counter, TTL, TOS, addresses, an error.
const CONTROL: usize = 512;
/// Buffer size for an address (`sockaddr_storage`).
const ADDRESS_BYTES: usize = 128;
const ADDRESS_LENGTH: libc::socklen_t = 128;
/// Length of a control message's header as the kernel has it: length (`size_t`), level, kind (`int`).
const HEADER: usize = size_of::<usize>() + 2 * size_of::<libc::c_int>();
const _: () = assert!(HEADER == size_of::<libc::cmsghdr>());

const fn aligned(length: usize) -> usize {
    length.next_multiple_of(align_of::<libc::cmsghdr>())
}

/// A message without name, data and control messages.
// SAFETY: mmsghdr is integers and pointers, for which zero is a value.
pub(crate) const EMPTY_MESSAGE: libc::mmsghdr = unsafe { core::mem::zeroed() };

/// Buffers for a received message's metadata.
#[repr(C, align(8))]
pub(crate) struct ReceiveScratch {
    control: [u8; CONTROL],
    address: [u8; ADDRESS_BYTES],
}

impl ReceiveScratch {
    pub(crate) const fn new() -> Self {
        Self { control: [0; CONTROL], address: [0; ADDRESS_BYTES] }
    }
}

/// Metadata of a received message.
pub(crate) struct IncomingMessage<'a> {
    /// Length of the message, which may exceed the buffer.
    pub(crate) length: usize,
    /// The address that came with it, as the kernel has it (IPv4 possibly mapped).
    pub(crate) address: Option<SocketAddr>,
    control: &'a [u8],
}

impl IncomingMessage<'_> {
    /// The control messages: level, kind, content.
    pub(crate) fn control(&self) -> impl Iterator<Item = (libc::c_int, libc::c_int, &[u8])> {
        control_messages(self.control)
    }
}

/// Receives one message without waiting.
pub(crate) fn receive<'a>(
    socket: &impl AsFd,
    buffer: &mut [u8],
    flags: libc::c_int,
    scratch: &'a mut ReceiveScratch,
) -> io::Result<IncomingMessage<'a>> {
    let mut vector = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let mut message = EMPTY_MESSAGE.msg_hdr;
    message.msg_iov = &raw mut vector;
    message.msg_iovlen = 1;
    message.msg_control = scratch.control.as_mut_ptr().cast();
    message.msg_name = scratch.address.as_mut_ptr().cast();
    let flags = flags | libc::MSG_DONTWAIT | libc::MSG_TRUNC;
    let length = retry(|| {
        message.msg_controllen = CONTROL as _;
        message.msg_namelen = ADDRESS_LENGTH;
        // SAFETY: the message's pointers and lengths describe the buffer and the scratch, which are ours alone.
        match unsafe { libc::recvmsg(socket.as_fd().as_raw_fd(), &raw mut message, flags) } {
            -1 => Err(io::Error::last_os_error()),
            length => Ok(usize::try_from(length).unwrap_or(0)),
        }
    })?;
    let filled = control_length(&message).min(CONTROL);
    let named = (message.msg_namelen as usize).min(ADDRESS_BYTES);
    Ok(IncomingMessage {
        length,
        address: socket_address(&scratch.address[..named]),
        control: &scratch.control[..filled],
    })
}

/// Buffer size for the control messages of one message of a batch: receive-offload size, drop counter, time stamps, hop
/// limit, type of service, and the destination where that is enabled.
const BATCH_CONTROL: usize = 256;

/// Control messages, aligned for their headers.
#[derive(Clone, Copy)]
#[repr(align(8))]
struct BatchControl([u8; BATCH_CONTROL]);

/// Buffers for many messages that one system call receives (`recvmmsg(2)`).
pub(crate) struct ReceiveBatch {
    buffer: PageBuffer,
    /// Space for each message.
    size: usize,
    control: Box<[BatchControl]>,
    messages: Box<[libc::mmsghdr]>,
    /// Number of messages that the last call filled.
    filled: usize,
    /// Pointed to by the messages, as the control buffers and the buffer are.
    _vectors: Box<[libc::iovec]>,
}

// SAFETY: the raw pointers inside point into the boxes and the page buffer that the batch itself owns.
unsafe impl Send for ReceiveBatch {}

impl ReceiveBatch {
    /// Space for `count` messages of `size` bytes.
    pub(crate) fn new(count: usize, size: usize) -> crate::error::Result<Self> {
        let mut buffer = PageBuffer::new(ByteCount::from_usize(count * size))?;
        let mut control = vec![BatchControl([0; BATCH_CONTROL]); count].into_boxed_slice();
        let vector = |bytes: &mut [u8]| libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
        let mut vectors: Box<[libc::iovec]> = buffer.chunks_exact_mut(size).map(vector).collect();
        let message = |(vector, control): (&mut libc::iovec, &mut BatchControl)| {
            let mut message = EMPTY_MESSAGE;
            message.msg_hdr.msg_iov = vector;
            message.msg_hdr.msg_iovlen = 1;
            message.msg_hdr.msg_control = control.0.as_mut_ptr().cast();
            message
        };
        let messages = vectors.iter_mut().zip(&mut control).map(message).collect();
        Ok(Self { buffer, size, control, messages, filled: count, _vectors: vectors })
    }

    /// Receives as many messages as there is space for; returns their number.
    pub(crate) fn receive(&mut self, socket: &impl AsFd, flags: libc::c_int) -> io::Result<usize> {
        for message in self.messages.iter_mut().take(self.filled) {
            message.msg_hdr.msg_controllen = BATCH_CONTROL as _;
        }
        let count = libc::c_uint::try_from(self.messages.len()).unwrap_or(0);
        let (descriptor, messages) = (socket.as_fd().as_raw_fd(), self.messages.as_mut_ptr());
        // SAFETY: every message points to its own vector and control buffer, which this batch owns; a null time limit is
        // none.
        let received =
            retry(|| check(unsafe { libc::recvmmsg(descriptor, messages, count, flags as _, ptr::null_mut()) }))?;
        self.filled = usize::try_from(received).unwrap_or(0);
        Ok(self.filled)
    }

    /// A received message: its length, which may exceed the space, its bytes, its control messages.
    pub(crate) fn message(
        &self,
        index: usize,
    ) -> (usize, &[u8], impl Iterator<Item = (libc::c_int, libc::c_int, &[u8])>) {
        let (message, start) = (&self.messages[index], index * self.size);
        let length = message.msg_len as usize;
        let filled = control_length(&message.msg_hdr).min(BATCH_CONTROL);
        let control = control_messages(&self.control[index].0[..filled]);
        (length, &self.buffer[start..start + length.min(self.size)], control)
    }
}

#[allow(clippy::unnecessary_cast, reason = "the field is narrower with musl")]
fn control_length(message: &libc::msghdr) -> usize {
    message.msg_controllen as usize
}

/// Sends one message without waiting. Without an address it goes to the peer that the socket is connected to.
pub(crate) fn send(
    socket: &impl AsFd,
    bytes: &[u8],
    to: Option<SocketAddr>,
    control: &ControlBuffer,
) -> io::Result<usize> {
    let address = to.map(SockAddr::from);
    let mut vector = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let mut message = EMPTY_MESSAGE.msg_hdr;
    message.msg_iov = &raw mut vector;
    message.msg_iovlen = 1;
    if let Some(address) = &address {
        message.msg_name = address.as_ptr().cast_mut().cast();
        message.msg_namelen = address.len();
    }
    if control.used > 0 {
        message.msg_control = control.bytes.as_ptr().cast_mut().cast();
        message.msg_controllen = control.used as _;
    }
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: the message's pointers and lengths describe `bytes`, `address` and `control`, which live through the call
    // and which the kernel only reads.
    retry(|| match unsafe { libc::sendmsg(socket.as_fd().as_raw_fd(), &raw const message, flags) } {
        -1 => Err(io::Error::last_os_error()),
        length => Ok(usize::try_from(length).unwrap_or(0)),
    })
}

/// Control messages to send.
#[repr(C, align(8))]
pub(crate) struct ControlBuffer {
    bytes: [u8; 128],
    used: usize,
}

impl ControlBuffer {
    pub(crate) const fn new() -> Self {
        Self { bytes: [0; 128], used: 0 }
    }

    /// Appends a control message. There is space for one of each that a datagram can have.
    pub(crate) fn push(&mut self, level: libc::c_int, kind: libc::c_int, content: &[u8]) {
        let length = HEADER + content.len();
        let (length_bytes, level, kind) = (length.to_ne_bytes(), level.to_ne_bytes(), kind.to_ne_bytes());
        let header = length_bytes.iter().chain(&level).chain(&kind);
        self.bytes[self.used..].iter_mut().zip(header.chain(content)).for_each(|(place, byte)| *place = *byte);
        self.used += aligned(length);
    }

    pub(crate) fn push_number(&mut self, level: libc::c_int, kind: libc::c_int, number: libc::c_int) {
        self.push(level, kind, &number.to_ne_bytes());
    }

    /// Sends the message from this address (`in_pktinfo`, `in6_pktinfo`; ip(7), ipv6(7)).
    pub(crate) fn push_source(&mut self, source: IpAddr) {
        match source {
            IpAddr::V4(address) => {
                let mut content = [0; 12]; // interface, source, destination
                content[4..8].copy_from_slice(&address.octets());
                self.push(libc::IPPROTO_IP, libc::IP_PKTINFO, &content);
            }
            IpAddr::V6(address) => {
                let mut content = [0; 20]; // source, interface
                content[..16].copy_from_slice(&address.octets());
                self.push(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, &content);
            }
        }
    }
}

pub(crate) fn control_messages(mut bytes: &[u8]) -> impl Iterator<Item = (libc::c_int, libc::c_int, &[u8])> {
    core::iter::from_fn(move || {
        let (length, fields) = bytes.split_first_chunk()?;
        let (level, fields) = fields.split_first_chunk()?;
        let length = usize::from_ne_bytes(*length);
        let content = bytes.get(HEADER..length)?;
        let kind = libc::c_int::from_ne_bytes(*fields.first_chunk()?);
        bytes = bytes.get(aligned(length)..).unwrap_or_default();
        Some((libc::c_int::from_ne_bytes(*level), kind, content))
    })
}

/// The C int at the beginning; also of a content that is one octet only, as the kernel gives the IPv4 TOS.
pub(crate) fn number(content: &[u8]) -> Option<libc::c_int> {
    match content {
        [octet] => Some(libc::c_int::from(*octet)),
        _ => content.first_chunk().map(|bytes| libc::c_int::from_ne_bytes(*bytes)),
    }
}

/// An octet that the kernel passes as a number.
pub(crate) fn octet(content: &[u8]) -> Option<u8> {
    number(content).and_then(|number| u8::try_from(number).ok())
}

/// The times in a control message of `SO_TIMESTAMPNS` (one) or `SO_TIMESTAMPING` (three).
pub(crate) fn stamps(kind: libc::c_int, content: &[u8]) -> Option<KernelStamps> {
    match kind {
        libc::SCM_TIMESTAMPNS => Some(KernelStamps { kernel: time(content, 0), hardware: None }),
        libc::SCM_TIMESTAMPING => Some(KernelStamps { kernel: time(content, 0), hardware: time(content, 2) }),
        _ => None,
    }
}

/// The time at this index of a list; the kernel writes zero for one that it does not have.
fn time(content: &[u8], index: usize) -> Option<WallTime> {
    const SIZE: usize = size_of::<libc::c_long>();
    let (seconds, rest) = content.get(index * 2 * SIZE..)?.split_first_chunk()?;
    let (seconds, nanos) = (libc::c_long::from_ne_bytes(*seconds), libc::c_long::from_ne_bytes(*rest.first_chunk()?));
    let time = Duration::new(u64::try_from(seconds).ok()?, u32::try_from(nanos).ok()?);
    (!time.is_zero()).then(|| WallTime::from_unix(time))
}

/// A `sockaddr_in` or `sockaddr_in6`.
pub(crate) fn socket_address(bytes: &[u8]) -> Option<SocketAddr> {
    let family = libc::c_int::from(u16::from_ne_bytes(*bytes.first_chunk()?));
    let port = u16::from_be_bytes(bytes.get(2..4)?.try_into().ok()?);
    match family {
        libc::AF_INET => Some(SocketAddr::from((ipv4(bytes, 4)?, port))),
        libc::AF_INET6 => Some(
            SocketAddrV6::new(ipv6(bytes, 8)?, port, netlink::number(bytes, 4)?, netlink::number(bytes, 24)?).into(),
        ),
        _ => None,
    }
}

/// The local address in an `in_pktinfo` or `in6_pktinfo`, un-mapped.
pub(crate) fn packet_destination(level: libc::c_int, content: &[u8]) -> Option<IpAddr> {
    let address: IpAddr = match level {
        libc::IPPROTO_IP => ipv4(content, 8)?.into(),
        _ => ipv6(content, 0)?.into(),
    };
    Some(canonical(SocketAddr::new(address, 0)).ip())
}

fn ipv4(bytes: &[u8], place: usize) -> Option<Ipv4Addr> {
    let octets: [u8; 4] = bytes.get(place..place + 4)?.try_into().ok()?;
    Some(octets.into())
}

fn ipv6(bytes: &[u8], place: usize) -> Option<Ipv6Addr> {
    let octets: [u8; 16] = bytes.get(place..place + 16)?.try_into().ok()?;
    Some(octets.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_messages_round_trip() {
        let mut control = ControlBuffer::new();
        control.push_number(libc::IPPROTO_IP, libc::IP_TTL, 7);
        control.push_number(libc::IPPROTO_IPV6, libc::IPV6_TCLASS, 184);
        control.push_source(Ipv6Addr::LOCALHOST.into());
        let read: Vec<_> = control_messages(&control.bytes[..control.used]).collect();
        assert_eq!(read.len(), 3);
        assert_eq!((read[0].0, read[0].1, number(read[0].2)), (libc::IPPROTO_IP, libc::IP_TTL, Some(7)));
        assert_eq!((read[1].0, read[1].1, octet(read[1].2)), (libc::IPPROTO_IPV6, libc::IPV6_TCLASS, Some(184)));
        assert_eq!(packet_destination(libc::IPPROTO_IPV6, read[2].2), Some(Ipv6Addr::LOCALHOST.into()));
        for length in 0..control.used {
            assert!(control_messages(&control.bytes[..length]).count() <= read.len());
        }
    }

    #[test]
    fn addresses_are_the_standard_librarys() {
        for text in ["192.0.2.1:5201", "[2001:db8::1%3]:443", "[::ffff:192.0.2.1]:7"] {
            let address: SocketAddr = text.parse().expect("valid");
            let kernels = SockAddr::from(address);
            // SAFETY: a SockAddr points to as many bytes as it reports.
            let bytes = unsafe { core::slice::from_raw_parts(kernels.as_ptr().cast::<u8>(), kernels.len() as usize) };
            assert_eq!(socket_address(bytes), Some(address));
            assert_eq!(socket_address(&bytes[..7]), None);
        }
        assert_eq!(socket_address(&[0; 28]), None);
        assert_eq!(socket_address(&[]), None);
    }

    #[test]
    fn a_time_of_zero_is_none() {
        assert_eq!(time(&[0; 16], 0), None);
        assert_eq!(stamps(libc::SCM_TIMESTAMPING, &[0; 48]), Some(KernelStamps::default()));
        assert_eq!(number(&[5]), Some(5));
        assert_eq!(number(&[]), None);
        assert_eq!(octet(&(-1_i32).to_ne_bytes()), None);
    }
}
