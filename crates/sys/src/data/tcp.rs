//! TCP: large writes, `sendfile`, `MSG_ZEROCOPY`, and receiving with or without a copy.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd};
use std::ptr;

use rustix::io::retry_on_intr;
use rustix::net::{self, RecvFlags, SendAncillaryBuffer, SendFlags};

use super::retry_interrupted;
use crate::message::{self, ReceiveScratch};

/// Maximum number of blocks that [`send_repeated`] passes in one call.
pub const MAX_REPEAT: usize = 64;

/// Sends one block with one system call; returns the bytes taken, at most `block.len()`.
pub fn send(socket: &impl AsFd, block: &[u8]) -> io::Result<usize> {
    Ok(retry_on_intr(|| net::send(socket, block, SendFlags::NOSIGNAL))?)
}

/// [`send`], when more will follow at once (`MSG_MORE`): the kernel keeps the end of the block back until a segment is
/// full, or something is sent without this.
pub fn send_more(socket: &impl AsFd, block: &[u8]) -> io::Result<usize> {
    Ok(retry_on_intr(|| net::send(socket, block, SendFlags::NOSIGNAL | SendFlags::MORE))?)
}

/// Sends `block` `times` times over (at most [`MAX_REPEAT`]) with one system call; returns the bytes taken.
///
/// One large call costs a fraction of many small ones: the receiver is woken once, not for each block.
pub fn send_repeated(socket: &impl AsFd, block: &[u8], times: usize) -> io::Result<usize> {
    send_vectors(socket, block, times, SendFlags::NOSIGNAL)
}

/// [`send_repeated`] with `MSG_ZEROCOPY`: the kernel sends from `block`'s pages instead of copying them.
///
/// The caller must not change `block` until the completions are in ([`zero_copy_completions`]), or the receiver may see
/// the change; test payload never changes.
pub fn send_repeated_zero_copy(socket: &impl AsFd, block: &[u8], times: usize) -> io::Result<usize> {
    let zero_copy = SendFlags::from_bits_retain(libc::MSG_ZEROCOPY.cast_unsigned());
    send_vectors(socket, block, times, SendFlags::NOSIGNAL | zero_copy)
}

fn send_vectors(socket: &impl AsFd, block: &[u8], times: usize, flags: SendFlags) -> io::Result<usize> {
    let vectors = [IoSlice::new(block); MAX_REPEAT];
    let vectors = &vectors[..times.clamp(1, MAX_REPEAT)];
    Ok(retry_on_intr(|| net::sendmsg(socket, vectors, &mut SendAncillaryBuffer::default(), flags))?)
}

/// Sends up to `length` bytes of `file` from `offset` without copying them through this process.
pub fn send_file(socket: &impl AsFd, file: &impl AsFd, offset: u64, length: usize) -> io::Result<usize> {
    Ok(retry_on_intr(|| rustix::fs::sendfile(socket, file, Some(&mut { offset }), length))?)
}

/// Receives into `buffer`; 0 is the end of the stream.
pub fn receive(socket: &impl AsFd, buffer: &mut [u8]) -> io::Result<usize> {
    Ok(retry_on_intr(|| net::recv(socket, &mut *buffer, RecvFlags::empty()))?.0)
}

/// Takes up to `length` received bytes off the socket without copying them (`MSG_TRUNC` on TCP, tcp(7)).
pub fn receive_discarding(socket: &impl AsFd, length: usize) -> io::Result<usize> {
    let descriptor = socket.as_fd().as_raw_fd();
    // SAFETY: with MSG_TRUNC, TCP discards the data and never writes to the buffer, so a null pointer is allowed.
    retry_interrupted(|| unsafe { libc::recv(descriptor, ptr::null_mut(), length, libc::MSG_TRUNC) })
}

/// Completions of zero-copy sends reported by the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ZeroCopyCompletions {
    /// Notifications read.
    pub notifications: u32,
    /// True when at least one reports that the kernel copied the data after all (`SO_EE_CODE_ZEROCOPY_COPIED`), as
    /// loopback and devices without scatter-gather do. Then zero copy only costs.
    pub copied: bool,
}

/// Reads all waiting zero-copy notifications off the error queue, without blocking.
pub fn zero_copy_completions(socket: &impl AsFd) -> io::Result<ZeroCopyCompletions> {
    let (mut seen, mut scratch) = (ZeroCopyCompletions::default(), ReceiveScratch::new());
    loop {
        match message::receive(socket, &mut [], libc::MSG_ERRQUEUE, &mut scratch) {
            Ok(notification) => {
                seen.notifications += 1;
                seen.copied |= notification.control().any(|(level, kind, error)| reports_copied(level, kind, error));
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(seen),
            Err(error) => return Err(error),
        }
    }
}

/// True for a `sock_extended_err` (number, origin, type, code, …) with which the kernel reports a copy.
fn reports_copied(level: libc::c_int, kind: libc::c_int, error: &[u8]) -> bool {
    const SO_EE_ORIGIN_ZEROCOPY: u8 = 5;
    const SO_EE_CODE_ZEROCOPY_COPIED: u8 = 1;
    matches!((level, kind), (libc::SOL_IP, libc::IP_RECVERR) | (libc::SOL_IPV6, libc::IPV6_RECVERR))
        && matches!(error.get(4..7), Some([SO_EE_ORIGIN_ZEROCOPY, _, SO_EE_CODE_ZEROCOPY_COPIED]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
        let client = TcpStream::connect(listener.local_addr().expect("address")).expect("connect");
        (client, listener.accept().expect("accept").0)
    }

    #[test]
    fn repeated_blocks_arrive_in_order() {
        let (client, mut server) = pair();
        assert_eq!(send_repeated(&client, b"abc", 3).expect("send"), 9);
        let mut seen = [0; 9];
        server.read_exact(&mut seen).expect("read");
        assert_eq!(&seen, b"abcabcabc");
    }

    #[test]
    fn discarded_bytes_are_counted_and_gone() {
        let (mut client, mut server) = pair();
        client.write_all(b"0123456789").expect("write");
        assert_eq!(receive_discarding(&server, 4).expect("receive"), 4);
        let mut rest = [0; 6];
        server.read_exact(&mut rest).expect("read");
        assert_eq!(&rest, b"456789");
    }

    #[test]
    fn loopback_admits_that_it_copies() {
        let (client, mut server) = pair();
        crate::options::set_zero_copy(&client, true).expect("SO_ZEROCOPY");
        let block = vec![7; 65536];
        let sent = send_repeated_zero_copy(&client, &block, 1).expect("send");
        let mut received = vec![0; sent];
        server.read_exact(&mut received).expect("read");
        drop(server);
        let mut completions = ZeroCopyCompletions::default();
        for _ in 0..1000 {
            completions = zero_copy_completions(&client).expect("error queue");
            if completions.notifications > 0 {
                break;
            }
            std::thread::yield_now();
        }
        assert!(completions.copied, "{completions:?}");
    }
}
