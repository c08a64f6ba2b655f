//! Every TCP socket of the calling thread's network namespace (`sock_diag(7)`, `NETLINK_SOCK_DIAG`), and its owner.
//!
//! Reading needs no privilege. The buffers are reused, and a socket's description has nothing on the heap, so that ten
//! thousand of them can be read each second.

mod filter;
mod owners;
mod parse;

use std::io;

use linerate_model::socket::SocketSnapshot;

use crate::error::{Error, Result};
use crate::netlink::NetlinkSocket;

pub use filter::{AddressPrefix, SocketFilter, SocketStates};
pub use owners::SocketOwners;
pub use parse::parse;

/// `SOCK_DIAG_BY_FAMILY` of `include/uapi/linux/sock_diag.h`.
const SOCK_DIAG_BY_FAMILY: u16 = 20;
/// Reads the sockets of one network namespace: the one of the thread that made it.
#[derive(Debug)]
pub struct SocketReader {
    socket: NetlinkSocket,
}

impl SocketReader {
    /// Opens a socket to the kernel in the calling thread's network namespace.
    pub fn new() -> Result<Self> {
        NetlinkSocket::socket_diagnosis()
            .map(|socket| Self { socket })
            .map_err(|cause| failed("opening a socket to ask the kernel about its sockets", cause))
    }

    /// Passes every socket that matches `filter` to `each`, IPv4 first. Sockets that come or go may be missed.
    pub fn read(&mut self, filter: &SocketFilter, mut each: impl FnMut(SocketSnapshot)) -> Result<()> {
        for family in [libc::AF_INET, libc::AF_INET6] {
            let request = filter.request(family).and_then(|request| {
                self.socket.list(SOCK_DIAG_BY_FAMILY, &request, |message| {
                    parse(message.body).into_iter().for_each(&mut each);
                })
            });
            if let Err(cause) = request {
                // A kernel without IPv6 has no such sockets.
                if family == libc::AF_INET || cause.raw_os_error() != Some(libc::ENOENT) {
                    return Err(failed("listing the host's TCP sockets (NETLINK_SOCK_DIAG)", cause));
                }
            }
        }
        Ok(())
    }
}

fn failed(operation: &str, cause: io::Error) -> Error {
    let hint = "this kernel cannot list sockets: it needs CONFIG_INET_DIAG (modules inet_diag and tcp_diag)";
    Error::system(operation, cause).hint_on(libc::ENOENT, hint).hint_on(libc::EPROTONOSUPPORT, hint)
}

#[cfg(test)]
mod tests;
