//! Requests to the kernel over netlink(7): its routing subsystem (rtnetlink(7)), where no program makes them for us, and
//! its sockets (`sock_diag(7)`).

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::retry_on_intr;
use rustix::net::netlink::{SOCK_DIAG, SocketAddrNetlink};
use rustix::net::{AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType};
use rustix::net::{bind, recv, recvfrom, send, socket_with};

use crate::sockopt::{self, SocketOption};

const SHORT_ANSWERS: SocketOption =
    SocketOption::new(libc::SOL_NETLINK, libc::NETLINK_CAP_ACK, "NETLINK_CAP_ACK", "switch of short answers");
const EXTENDED_ANSWERS: SocketOption =
    SocketOption::new(libc::SOL_NETLINK, libc::NETLINK_EXT_ACK, "NETLINK_EXT_ACK", "switch of texts about errors");

/// Length of a message's header: length, kind, flags, sequence number, port.
const HEADER: usize = 16;
/// Length of an attribute's header: length, kind.
const ATTRIBUTE_HEADER_LENGTH: usize = 4;
/// The bits of an attribute's kind that are its number (`NLA_TYPE_MASK`).
pub(crate) const ATTRIBUTE_TYPE_MASK: u16 = 0x3fff;
/// Buffer size above the maximum that the kernel returns at once when it lists objects (32 KiB, `netlink_recvmsg`), and
/// above any announcement.
const MAX_ANSWER_BYTES: usize = 64 << 10;

/// Both messages and attributes begin at multiples of four bytes.
const fn aligned(length: usize) -> usize {
    length.next_multiple_of(4)
}

/// A socket to the kernel in the network namespace of the thread that opened it.
#[derive(Debug)]
pub(crate) struct NetlinkSocket {
    socket: OwnedFd,
    buffer: Vec<u8>,
    sequence: u32,
    /// The kernel's message about the last request; only with extended acknowledgements.
    pub(crate) said: Option<String>,
}

/// A message without its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NetlinkMessage<'a> {
    pub(crate) kind: u16,
    pub(crate) sequence: u32,
    pub(crate) body: &'a [u8],
}

/// Messages that are no answer to a request.
pub(crate) enum KernelNotification<'a> {
    FromKernel(&'a [u8]),
    /// From another process.
    Other,
    TooLong,
}

impl NetlinkSocket {
    fn open(protocol: Option<Protocol>, flags: SocketFlags) -> io::Result<Self> {
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags | SocketFlags::CLOEXEC, protocol)?;
        Ok(Self { socket, buffer: vec![0; MAX_ANSWER_BYTES], sequence: 0, said: None })
    }

    /// Opens a socket to the routing subsystem.
    pub(crate) fn route() -> io::Result<Self> {
        Self::open(None, SocketFlags::empty())
    }

    /// The same with extended acknowledgements (`NETLINK_EXT_ACK`): text about errors in a request.
    pub(crate) fn route_with_extack() -> io::Result<Self> {
        let talkative = Self::route()?;
        // Without the request in the answer, the text has a fixed offset.
        for option in [SHORT_ANSWERS, EXTENDED_ANSWERS] {
            sockopt::set(&talkative.socket, option, sockopt::flag(true))?;
        }
        Ok(talkative)
    }

    /// Opens a socket that the routing subsystem announces changes to, in these groups (`RTNLGRP_*`).
    pub(crate) fn route_listener(groups: &[libc::c_uint]) -> io::Result<Self> {
        let listener = Self::open(None, SocketFlags::NONBLOCK)?;
        let groups = groups.iter().fold(0, |groups, group| groups | 1 << (group - 1));
        bind(&listener.socket, &SocketAddrNetlink::new(0, groups))?;
        Ok(listener)
    }

    /// Opens a socket for questions about sockets.
    pub(crate) fn socket_diagnosis() -> io::Result<Self> {
        Self::open(Some(SOCK_DIAG), SocketFlags::empty())
    }

    /// Reads an announcement.
    pub(crate) fn announcement(&mut self) -> io::Result<KernelNotification<'_>> {
        let (_, length, sender) = retry_on_intr(|| recvfrom(&self.socket, &mut *self.buffer, RecvFlags::TRUNC))?;
        let sender = sender.and_then(|sender| SocketAddrNetlink::try_from(sender).ok());
        Ok(match sender.map_or(0, |sender| sender.pid()) {
            0 => self.buffer.get(..length).map_or(KernelNotification::TooLong, KernelNotification::FromKernel),
            _ => KernelNotification::Other,
        })
    }

    /// Lists all objects of a kind, and passes each to `each` as kind and body.
    pub(crate) fn list(&mut self, kind: u16, body: &[u8], mut each: impl FnMut(NetlinkMessage<'_>)) -> io::Result<()> {
        self.send(kind, libc::NLM_F_DUMP, body)?;
        self.receive(&mut each)
    }

    /// Requests one object, which the kernel may describe in one or several messages.
    pub(crate) fn ask(&mut self, kind: u16, body: &[u8], mut each: impl FnMut(NetlinkMessage<'_>)) -> io::Result<()> {
        self.send(kind, libc::NLM_F_ACK, body)?;
        self.receive(&mut each)
    }

    /// Has the kernel make a change, and waits until it is done.
    pub(crate) fn change(&mut self, kind: u16, body: &[u8]) -> io::Result<()> {
        self.send(kind, libc::NLM_F_ACK, body)?;
        self.receive(&mut |_| ())
    }

    /// Has the kernel create an object that must not exist yet.
    pub(crate) fn make(&mut self, kind: u16, body: &[u8]) -> io::Result<()> {
        self.send(kind, libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_EXCL, body)?;
        self.receive(&mut |_| ())
    }

    fn send(&mut self, kind: u16, flags: libc::c_int, body: &[u8]) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        self.said = None;
        let flags = u16::try_from(flags | libc::NLM_F_REQUEST).map_err(io::Error::other)?;
        let message = message(kind, flags, self.sequence, body)?;
        retry_on_intr(|| send(&self.socket, &message, SendFlags::empty()))?;
        Ok(())
    }

    /// Reads answers to the last request until the last of them, or an error.
    fn receive(&mut self, each: &mut impl FnMut(NetlinkMessage<'_>)) -> io::Result<()> {
        loop {
            let (length, _) = retry_on_intr(|| recv(&self.socket, &mut *self.buffer, RecvFlags::empty()))?;
            for message in messages(&self.buffer[..length]).filter(|message| message.sequence == self.sequence) {
                match i32::from(message.kind) {
                    libc::NLMSG_ERROR => {
                        self.said = extack_text(message.body);
                        return error_of(message.body);
                    }
                    libc::NLMSG_DONE => return Ok(()),
                    _ => each(message),
                }
            }
        }
    }
}

impl AsFd for NetlinkSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// A negative error number at the beginning; 0 is success.
fn error_of(body: &[u8]) -> io::Result<()> {
    match body.first_chunk().map(|bytes| i32::from_ne_bytes(*bytes)) {
        Some(0) => Ok(()),
        Some(number) => Err(io::Error::from_raw_os_error(number.saturating_neg())),
        None => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// Text of an answer to a request (`NLMSGERR_ATTR_MSG`), after the number and the request's header.
fn extack_text(body: &[u8]) -> Option<String> {
    const NLMSGERR_ATTR_MSG: u16 = 1;
    let text = attribute(body.get(4 + HEADER..)?, NLMSGERR_ATTR_MSG)?;
    Some(String::from_utf8_lossy(text).trim_end_matches('\0').trim_end_matches('.').to_owned())
}

fn message(kind: u16, flags: u16, sequence: u32, body: &[u8]) -> io::Result<Vec<u8>> {
    let length = u32::try_from(HEADER + body.len()).map_err(io::Error::other)?;
    let mut bytes = Vec::with_capacity(aligned(HEADER + body.len()));
    bytes.extend(length.to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(flags.to_ne_bytes());
    bytes.extend(sequence.to_ne_bytes());
    bytes.extend([0; 4]); // the kernel knows whose socket it is
    bytes.extend(body);
    Ok(bytes)
}

/// The messages of a datagram; a truncated one at its end is skipped.
pub(crate) fn messages(mut bytes: &[u8]) -> impl Iterator<Item = NetlinkMessage<'_>> {
    core::iter::from_fn(move || {
        let length = usize::try_from(number(bytes, 0)?).ok()?;
        let body = bytes.get(HEADER..length)?;
        let (kind, sequence) = (u16::from_ne_bytes(bytes.get(4..6)?.try_into().ok()?), number(bytes, 8)?);
        bytes = bytes.get(aligned(length)..).unwrap_or_default();
        Some(NetlinkMessage { kind, sequence, body })
    })
}

/// The 32-bit number at this offset.
pub(crate) fn number(bytes: &[u8], place: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(place..place.checked_add(4)?)?.try_into().ok()?))
}

/// The attributes in a body, as kind and content; a truncated one at its end is skipped.
pub(crate) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    core::iter::from_fn(move || {
        let header: [u8; ATTRIBUTE_HEADER_LENGTH] = *bytes.first_chunk()?;
        let length = usize::from(u16::from_ne_bytes([header[0], header[1]]));
        let content = bytes.get(ATTRIBUTE_HEADER_LENGTH..length)?;
        bytes = bytes.get(aligned(length)..).unwrap_or_default();
        Some((u16::from_ne_bytes([header[2], header[3]]), content))
    })
}

/// The first attribute of this kind, whether or not its kind says that it holds others.
pub(crate) fn attribute(bytes: &[u8], wanted: u16) -> Option<&[u8]> {
    attributes(bytes).find(|(kind, _)| kind & ATTRIBUTE_TYPE_MASK == wanted).map(|(_, content)| content)
}

/// Appends an attribute. Fails when it is longer than 65 531 bytes.
pub(crate) fn append_attribute(bytes: &mut Vec<u8>, kind: u16, content: &[u8]) -> io::Result<()> {
    let length = u16::try_from(ATTRIBUTE_HEADER_LENGTH + content.len()).map_err(io::Error::other)?;
    bytes.extend(length.to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(content);
    bytes.resize(aligned(bytes.len()), 0);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_go_and_come_back() {
        let mut bytes = Vec::new();
        for (kind, content) in [(1, b"netem\0".as_slice()), (2, &[]), (0x8003, &[1, 2, 3, 4])] {
            append_attribute(&mut bytes, kind, content).expect("short");
        }
        assert_eq!(bytes.len(), 12 + 4 + 8);
        let found: Vec<_> = attributes(&bytes).collect();
        assert_eq!(found, [(1, b"netem\0".as_slice()), (2, &[]), (0x8003, &[1, 2, 3, 4])]);
        assert!(append_attribute(&mut bytes, 1, &vec![0; 65_532]).is_err());
    }

    #[test]
    fn truncated_bytes_end_the_list() {
        let mut bytes = Vec::new();
        append_attribute(&mut bytes, 1, &[7; 8]).expect("short");
        append_attribute(&mut bytes, 2, &[8; 8]).expect("short");
        for length in 0..bytes.len() {
            assert_eq!(attributes(&bytes[..length]).count(), usize::from(length >= 12), "{length}");
        }
        assert_eq!(attributes(&[0, 0, 1, 0]).count(), 0, "a length below its own header's");
        let sent = message(20, 1, 7, &[9; 5]).expect("short");
        for length in 0..sent.len() {
            assert_eq!(messages(&sent[..length]).count(), 0, "{length}");
        }
        assert_eq!(messages(&sent).collect::<Vec<_>>(), [NetlinkMessage { kind: 20, sequence: 7, body: &[9; 5] }]);
    }

    #[test]
    fn the_kernel_lists_the_loopback_device_and_refuses_nonsense() {
        let mut socket = NetlinkSocket::route().expect("every Linux has it");
        let mut devices = Vec::new();
        // ifinfomsg: 16 bytes, of which the device's number is the second word.
        let list = |message: NetlinkMessage<'_>| devices.extend(number(message.body, 4));
        socket.list(libc::RTM_GETLINK, &[0; 16], list).expect("listed");
        assert!(devices.contains(&1), "{devices:?}");
        let error = socket.change(libc::RTM_NEWQDISC, &[0; 20]).expect_err("no such device");
        assert!(error.raw_os_error().is_some(), "{error}");
    }
}
