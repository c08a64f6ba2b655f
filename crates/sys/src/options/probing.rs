//! Options of connections that load a path while it is probed: little unsent data, and a close without delay.

use core::time::Duration;
use std::os::fd::AsFd;

use linerate_units::ByteCount;
use socket2::SockRef;

use crate::error::{Error, Result};
use crate::sockopt::{SocketOption, set};

const NOT_SENT_LOW_WATER: SocketOption =
    SocketOption::new(libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, "TCP_NOTSENT_LOWAT", "limit of unsent data");
/// Makes a TCP connection writable only while less than `size` in it is unsent (tcp(7), Linux 3.12). Data in flight
/// does not count: the congestion window may be any.
pub fn set_not_sent_low_water(socket: &impl AsFd, size: ByteCount) -> Result<()> {
    set(socket, NOT_SENT_LOW_WATER, libc::c_int::try_from(size.get()).unwrap_or(libc::c_int::MAX))
}

/// Makes the close of a TCP connection discard its unsent data, and reset it (`SO_LINGER` of zero, socket(7)).
pub fn set_close_by_reset(socket: &impl AsFd) -> Result<()> {
    SockRef::from(&socket.as_fd())
        .set_linger(Some(Duration::ZERO))
        .map_err(|cause| Error::system("setting the close by reset (SO_LINGER)", cause))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{self, Read, Write};
    use std::net::{TcpListener, TcpStream};

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
        let client = TcpStream::connect(listener.local_addr().expect("bound")).expect("loopback");
        (client, listener.accept().expect("a client came").0)
    }

    #[test]
    fn little_waits_unsent() {
        let (client, server) = pair();
        set_not_sent_low_water(&client, ByteCount::new(8192)).expect("Linux 3.12");
        client.set_nonblocking(true).expect("a socket");
        let block = [0; 4096];
        let refused = (0..100_000).find_map(|_| (&client).write(&block).err()).expect("the window closes");
        assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
        let not_sent = crate::tcp_info::read(&client).expect("connected").not_sent.expect("Linux 4.6");
        // The kernel lets what is being written fill its buffer: 64 KiB.
        assert!(not_sent < ByteCount::from_kibibytes(80), "{not_sent:?}");
        drop(server);
    }

    #[test]
    fn a_reset_ends_a_connection() {
        let (client, mut server) = pair();
        set_close_by_reset(&client).expect("a socket");
        drop(client);
        let error = server.read(&mut [0]).expect_err("no orderly end");
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    }
}
