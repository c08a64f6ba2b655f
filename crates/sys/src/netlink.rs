//! Talking to the kernel's routing subsystem (rtnetlink(7)), as far as no program does it for us.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::clock::retry;
use crate::error::check;

/// Length of a message's header: length, kind, flags, sequence number, port.
const HEADER: usize = 16;
/// Length of an attribute's header: length, kind.
const ATTRIBUTE_HEADER: usize = 4;
/// The kernel fills at most this much at once when it lists things (`NLMSG_GOODSIZE` and more).
const LARGEST_ANSWER: usize = 64 << 10;

/// Both messages and attributes begin at multiples of four bytes.
const fn aligned(length: usize) -> usize {
    length.next_multiple_of(4)
}

/// A conversation with the routing subsystem of the calling thread's network namespace.
#[derive(Debug)]
pub(crate) struct RouteSocket {
    socket: OwnedFd,
    sequence: u32,
    /// What the kernel said in words about the last request; only from a talkative socket.
    pub(crate) said: Option<String>,
}

/// A message without its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Message<'a> {
    pub(crate) kind: u16,
    pub(crate) sequence: u32,
    pub(crate) body: &'a [u8],
}

impl RouteSocket {
    pub(crate) fn open() -> io::Result<Self> {
        // SAFETY: takes numbers; the descriptor that comes back is new, so nothing else owns it.
        let socket = unsafe {
            let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
            OwnedFd::from_raw_fd(check(libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE))?)
        };
        Ok(Self { socket, sequence: 0, said: None })
    }

    /// One that is told in words what is wrong with a request.
    pub(crate) fn open_talkative() -> io::Result<Self> {
        let talkative = Self::open()?;
        let on: libc::c_int = 1;
        let length = libc::socklen_t::try_from(size_of_val(&on)).map_err(io::Error::other)?;
        // Without the request in the answer, words have a fixed place.
        for option in [libc::NETLINK_CAP_ACK, libc::NETLINK_EXT_ACK] {
            let descriptor = talkative.socket.as_raw_fd();
            // SAFETY: the pointer and length describe `on`, which the kernel only reads.
            check(unsafe { libc::setsockopt(descriptor, libc::SOL_NETLINK, option, (&raw const on).cast(), length) })?;
        }
        Ok(talkative)
    }

    /// Has the kernel list everything of a kind, and hands each thing to `each` as kind and body.
    pub(crate) fn list(&mut self, kind: u16, body: &[u8], mut each: impl FnMut(Message<'_>)) -> io::Result<()> {
        self.send(kind, libc::NLM_F_DUMP, body)?;
        self.receive(&mut each)
    }

    /// Asks the kernel about one thing, which it may describe in one or several messages.
    pub(crate) fn ask(&mut self, kind: u16, body: &[u8], mut each: impl FnMut(Message<'_>)) -> io::Result<()> {
        self.send(kind, libc::NLM_F_ACK, body)?;
        self.receive(&mut each)
    }

    /// Has the kernel do something, and waits until it is done.
    pub(crate) fn change(&mut self, kind: u16, body: &[u8]) -> io::Result<()> {
        self.send(kind, libc::NLM_F_ACK, body)?;
        self.receive(&mut |_| ())
    }

    /// Has the kernel make something that must not be there yet.
    pub(crate) fn make(&mut self, kind: u16, body: &[u8]) -> io::Result<()> {
        self.send(kind, libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_EXCL, body)?;
        self.receive(&mut |_| ())
    }

    fn send(&mut self, kind: u16, flags: libc::c_int, body: &[u8]) -> io::Result<()> {
        self.sequence += 1;
        self.said = None;
        let flags = u16::try_from(flags | libc::NLM_F_REQUEST).map_err(io::Error::other)?;
        let message = message(kind, flags, self.sequence, body)?;
        let descriptor = self.socket.as_raw_fd();
        // SAFETY: the pointer and length describe `message`, which the kernel only reads.
        retry(|| match unsafe { libc::send(descriptor, message.as_ptr().cast(), message.len(), 0) } {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        })
    }

    /// Reads answers to the last request until the kernel says that it was the last, or what is wrong.
    fn receive(&mut self, each: &mut impl FnMut(Message<'_>)) -> io::Result<()> {
        let mut buffer = vec![0_u8; LARGEST_ANSWER];
        let descriptor = self.socket.as_raw_fd();
        loop {
            // SAFETY: the pointer and length describe `buffer`, which is ours alone.
            let length =
                retry(|| match unsafe { libc::recv(descriptor, buffer.as_mut_ptr().cast(), buffer.len(), 0) } {
                    -1 => Err(io::Error::last_os_error()),
                    length => Ok(usize::try_from(length).unwrap_or(0)),
                })?;
            for message in messages(&buffer[..length]).filter(|message| message.sequence == self.sequence) {
                match i32::from(message.kind) {
                    libc::NLMSG_ERROR => {
                        self.said = words_of(message.body);
                        return error_of(message.body);
                    }
                    libc::NLMSG_DONE => return Ok(()),
                    _ => each(message),
                }
            }
        }
    }
}

/// A negative error number at the beginning; 0 means that all is well.
pub(crate) fn error_of(body: &[u8]) -> io::Result<()> {
    match body.first_chunk().map(|bytes| i32::from_ne_bytes(*bytes)) {
        Some(0) => Ok(()),
        Some(number) => Err(io::Error::from_raw_os_error(number.saturating_neg())),
        None => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// What an answer to a request says in words (`NLMSGERR_ATTR_MSG`), behind the number and the request's header.
fn words_of(body: &[u8]) -> Option<String> {
    const NLMSGERR_ATTR_MSG: u16 = 1;
    let (_, text) = attributes(body.get(4 + HEADER..)?).find(|(kind, _)| *kind == NLMSGERR_ATTR_MSG)?;
    Some(String::from_utf8_lossy(text).trim_end_matches('\0').trim_end_matches('.').to_owned())
}

pub(crate) fn message(kind: u16, flags: u16, sequence: u32, body: &[u8]) -> io::Result<Vec<u8>> {
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

/// The messages of a datagram; what is cut off at its end is left out.
pub(crate) fn messages(mut bytes: &[u8]) -> impl Iterator<Item = Message<'_>> {
    core::iter::from_fn(move || {
        let length = usize::try_from(number(bytes, 0)?).ok()?;
        let body = bytes.get(HEADER..length)?;
        let (kind, sequence) = (u16::from_ne_bytes(bytes.get(4..6)?.try_into().ok()?), number(bytes, 8)?);
        bytes = bytes.get(aligned(length)..).unwrap_or_default();
        Some(Message { kind, sequence, body })
    })
}

/// The 32-bit number at this place.
pub(crate) fn number(bytes: &[u8], place: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(place..place.checked_add(4)?)?.try_into().ok()?))
}

/// The attributes in a body, as kind and content; what is cut off at its end is left out.
pub(crate) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    core::iter::from_fn(move || {
        let header: [u8; ATTRIBUTE_HEADER] = *bytes.first_chunk()?;
        let length = usize::from(u16::from_ne_bytes([header[0], header[1]]));
        let content = bytes.get(ATTRIBUTE_HEADER..length)?;
        bytes = bytes.get(aligned(length)..).unwrap_or_default();
        Some((u16::from_ne_bytes([header[2], header[3]]), content))
    })
}

/// Appends an attribute. Fails when it is longer than 65 531 bytes.
pub(crate) fn append_attribute(bytes: &mut Vec<u8>, kind: u16, content: &[u8]) -> io::Result<()> {
    let length = u16::try_from(ATTRIBUTE_HEADER + content.len()).map_err(io::Error::other)?;
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
    fn cut_off_bytes_end_the_list() {
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
        assert_eq!(messages(&sent).collect::<Vec<_>>(), [Message { kind: 20, sequence: 7, body: &[9; 5] }]);
    }

    #[test]
    fn the_kernel_lists_the_loopback_device_and_refuses_nonsense() {
        let mut socket = RouteSocket::open().expect("every Linux has it");
        let mut devices = Vec::new();
        // ifinfomsg: 16 bytes, of which the device's number is the second word.
        let list = |message: Message<'_>| devices.extend(number(message.body, 4));
        socket.list(libc::RTM_GETLINK, &[0; 16], list).expect("listed");
        assert!(devices.contains(&1), "{devices:?}");
        let error = socket.change(libc::RTM_NEWQDISC, &[0; 20]).expect_err("no such device");
        assert!(error.raw_os_error().is_some(), "{error}");
    }
}
