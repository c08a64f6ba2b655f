//! Every TCP socket of the calling thread's network namespace (`sock_diag(7)`, `NETLINK_SOCK_DIAG`), and whose they are.
//!
//! Reading needs no privilege. The buffers are kept from one reading to the next, and a socket's description has nothing
//! on the heap, so that ten thousand of them can be read each second.

mod filter;
mod owners;
mod parse;

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use linerate_model::socket::SocketReading;

use crate::clock::retry;
use crate::error::{Error, Result, check};
use crate::netlink;

pub use filter::{AddressPrefix, SocketFilter, States};
pub use owners::Owners;
pub use parse::parse;

/// `SOCK_DIAG_BY_FAMILY` of `include/uapi/linux/sock_diag.h`.
const SOCK_DIAG_BY_FAMILY: u16 = 20;
/// More than the kernel ever hands over at once (32 KiB, `netlink_recvmsg`).
const ROOM: usize = 64 << 10;

/// Reads the sockets of one network namespace: the one of the thread that made it.
#[derive(Debug)]
pub struct SocketReader {
    socket: OwnedFd,
    buffer: Vec<u8>,
    sequence: u32,
}

impl SocketReader {
    /// A conversation with the kernel of the calling thread's network namespace.
    pub fn new() -> Result<Self> {
        // SAFETY: takes numbers; the descriptor that comes back is new, so nothing else owns it.
        let socket = unsafe {
            let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
            let descriptor = check(libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_SOCK_DIAG))
                .map_err(|cause| failed("opening a socket to ask the kernel about its sockets", cause))?;
            OwnedFd::from_raw_fd(descriptor)
        };
        Ok(Self { socket, buffer: vec![0; ROOM], sequence: 0 })
    }

    /// Hands every socket that passes `filter` to `each`, IPv4 first. Sockets that come or go meanwhile may be missing.
    pub fn read(&mut self, filter: &SocketFilter, mut each: impl FnMut(SocketReading)) -> Result<()> {
        for family in [libc::AF_INET, libc::AF_INET6] {
            if let Err(cause) = self.read_family(family, filter, &mut each) {
                // A kernel without IPv6 has no such sockets.
                if family == libc::AF_INET || cause.raw_os_error() != Some(libc::ENOENT) {
                    return Err(failed("listing the host's TCP sockets (NETLINK_SOCK_DIAG)", cause));
                }
            }
        }
        Ok(())
    }

    fn read_family(
        &mut self,
        family: libc::c_int,
        filter: &SocketFilter,
        each: &mut impl FnMut(SocketReading),
    ) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        let flags = u16::try_from(libc::NLM_F_REQUEST | libc::NLM_F_DUMP).map_err(io::Error::other)?;
        let request = netlink::message(SOCK_DIAG_BY_FAMILY, flags, self.sequence, &filter.request(family)?)?;
        let descriptor = self.socket.as_raw_fd();
        // SAFETY: the pointer and length describe `request`, which the kernel only reads.
        retry(|| match unsafe { libc::send(descriptor, request.as_ptr().cast(), request.len(), 0) } {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        })?;
        while !self.receive(each)? {}
        Ok(())
    }

    /// One datagram of the answer; whether it was the last.
    fn receive(&mut self, each: &mut impl FnMut(SocketReading)) -> io::Result<bool> {
        let descriptor = self.socket.as_raw_fd();
        let (start, room) = (self.buffer.as_mut_ptr(), self.buffer.len());
        // SAFETY: the pointer and length describe the buffer, which is ours alone.
        let length = retry(|| match unsafe { libc::recv(descriptor, start.cast(), room, 0) } {
            -1 => Err(io::Error::last_os_error()),
            length => Ok(usize::try_from(length).unwrap_or(0)),
        })?;
        for message in netlink::messages(&self.buffer[..length]).filter(|message| message.sequence == self.sequence) {
            match i32::from(message.kind) {
                libc::NLMSG_ERROR => return netlink::error_of(message.body).map(|()| true),
                libc::NLMSG_DONE => return Ok(true),
                _ => parse(message.body).into_iter().for_each(&mut *each),
            }
        }
        Ok(false)
    }
}

fn failed(operation: &str, cause: io::Error) -> Error {
    let hint = "this kernel cannot list sockets: it needs CONFIG_INET_DIAG (modules inet_diag and tcp_diag)";
    Error::system(operation, cause).hint_on(libc::ENOENT, hint).hint_on(libc::EPROTONOSUPPORT, hint)
}

#[cfg(test)]
mod tests;
