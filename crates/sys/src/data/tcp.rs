//! TCP: large writes, `sendfile`, `MSG_ZEROCOPY`, and receiving with or without a copy.

use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd};
use std::ptr;

use super::retry_interrupted;

/// The most blocks that [`send_repeated`] hands over in one call.
pub const MAX_REPEAT: usize = 64;

/// Sends one block with one system call; returns the bytes taken, at most `block.len()`.
pub fn send(socket: &impl AsFd, block: &[u8]) -> io::Result<usize> {
    let descriptor = socket.as_fd().as_raw_fd();
    // SAFETY: pointer and length come from a live slice.
    retry_interrupted(|| unsafe { libc::send(descriptor, block.as_ptr().cast(), block.len(), libc::MSG_NOSIGNAL) })
}

/// [`send`], when more will follow at once (`MSG_MORE`): the kernel keeps the end of the block back until a segment is
/// full, or something is sent without this.
pub fn send_more(socket: &impl AsFd, block: &[u8]) -> io::Result<usize> {
    let descriptor = socket.as_fd().as_raw_fd();
    let flags = libc::MSG_NOSIGNAL | libc::MSG_MORE;
    // SAFETY: pointer and length come from a live slice.
    retry_interrupted(|| unsafe { libc::send(descriptor, block.as_ptr().cast(), block.len(), flags) })
}

/// Sends `block` `times` times over (at most [`MAX_REPEAT`]) with one system call; returns the bytes taken.
///
/// One large call costs a fraction of many small ones: the receiver is woken once, not for each block.
pub fn send_repeated(socket: &impl AsFd, block: &[u8], times: usize) -> io::Result<usize> {
    let mut vectors = [EMPTY_VECTOR; MAX_REPEAT];
    let message = repeated(block, times, &mut vectors);
    send_message(socket, &message, libc::MSG_NOSIGNAL)
}

/// [`send_repeated`] with `MSG_ZEROCOPY`: the kernel sends from `block`'s pages instead of copying them.
///
/// The caller must not change `block` until the completions are in ([`zero_copy_completions`]), or the receiver may see
/// the change; test payload never changes.
pub fn send_repeated_zero_copy(socket: &impl AsFd, block: &[u8], times: usize) -> io::Result<usize> {
    let mut vectors = [EMPTY_VECTOR; MAX_REPEAT];
    let message = repeated(block, times, &mut vectors);
    send_message(socket, &message, libc::MSG_NOSIGNAL | libc::MSG_ZEROCOPY)
}

const EMPTY_VECTOR: libc::iovec = libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 };

fn repeated(block: &[u8], times: usize, vectors: &mut [libc::iovec; MAX_REPEAT]) -> libc::msghdr {
    let times = times.clamp(1, MAX_REPEAT);
    for vector in &mut vectors[..times] {
        *vector = libc::iovec { iov_base: block.as_ptr().cast_mut().cast(), iov_len: block.len() };
    }
    // SAFETY: all-zero is a valid msghdr: no name, no control data.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    message.msg_iov = vectors.as_mut_ptr();
    message.msg_iovlen = times as _;
    message
}

fn send_message(socket: &impl AsFd, message: &libc::msghdr, flags: libc::c_int) -> io::Result<usize> {
    let descriptor = socket.as_fd().as_raw_fd();
    // SAFETY: the message's vectors point into a block that lives through the call; the kernel only reads it.
    retry_interrupted(|| unsafe { libc::sendmsg(descriptor, message, flags) })
}

/// Sends up to `length` bytes of `file` from `offset` without copying them through this process.
pub fn send_file(socket: &impl AsFd, file: &impl AsFd, offset: u64, length: usize) -> io::Result<usize> {
    let (socket, file) = (socket.as_fd().as_raw_fd(), file.as_fd().as_raw_fd());
    let start = libc::off_t::try_from(offset).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    retry_interrupted(|| {
        let mut position = start;
        // SAFETY: `position` outlives the call; both descriptors are open.
        unsafe { libc::sendfile(socket, file, &raw mut position, length) }
    })
}

/// Receives into `buffer`; 0 is the end of the stream.
pub fn receive(socket: &impl AsFd, buffer: &mut [u8]) -> io::Result<usize> {
    let descriptor = socket.as_fd().as_raw_fd();
    // SAFETY: pointer and length come from a live, exclusively borrowed slice.
    retry_interrupted(|| unsafe { libc::recv(descriptor, buffer.as_mut_ptr().cast(), buffer.len(), 0) })
}

/// Takes up to `length` received bytes off the socket without copying them (`MSG_TRUNC` on TCP, tcp(7)).
pub fn receive_discarding(socket: &impl AsFd, length: usize) -> io::Result<usize> {
    let descriptor = socket.as_fd().as_raw_fd();
    // SAFETY: with MSG_TRUNC, TCP discards the data and never writes to the buffer, so a null pointer is allowed.
    retry_interrupted(|| unsafe { libc::recv(descriptor, ptr::null_mut(), length, libc::MSG_TRUNC) })
}

/// What the kernel has said of finished zero-copy sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ZeroCopyCompletions {
    /// Notifications read.
    pub notifications: u32,
    /// At least one said that the kernel copied the data after all (`SO_EE_CODE_ZEROCOPY_COPIED`): loopback and
    /// devices without scatter-gather do. Then zero copy only costs.
    pub copied: bool,
}

/// Reads all waiting zero-copy notifications off the error queue, without blocking.
pub fn zero_copy_completions(socket: &impl AsFd) -> io::Result<ZeroCopyCompletions> {
    let descriptor = socket.as_fd().as_raw_fd();
    let mut seen = ZeroCopyCompletions::default();
    loop {
        let mut control = ErrorQueueControl([0; 128]);
        // SAFETY: all-zero is a valid msghdr.
        let mut message: libc::msghdr = unsafe { mem::zeroed() };
        message.msg_control = control.0.as_mut_ptr().cast();
        message.msg_controllen = control.0.len() as _;
        // SAFETY: the control buffer lives through the call and its length is right.
        let result = unsafe { libc::recvmsg(descriptor, &raw mut message, libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT) };
        if result < 0 {
            let error = io::Error::last_os_error();
            return match error.kind() {
                io::ErrorKind::WouldBlock => Ok(seen),
                io::ErrorKind::Interrupted => continue,
                _ => Err(error),
            };
        }
        seen.notifications += 1;
        // SAFETY: recvmsg has filled the control buffer that `message` points to.
        seen.copied |= unsafe { says_copied(&message) };
    }
}

/// Room for the control messages of one error-queue entry, aligned as `cmsghdr` wants it.
#[repr(align(8))]
struct ErrorQueueControl([u8; 128]);

/// # Safety
///
/// `message` must have been filled by a successful `recvmsg`, its control buffer still alive.
unsafe fn says_copied(message: &libc::msghdr) -> bool {
    const SO_EE_ORIGIN_ZEROCOPY: u8 = 5;
    const SO_EE_CODE_ZEROCOPY_COPIED: u8 = 1;
    // SAFETY: the caller's promise.
    let mut header = unsafe { libc::CMSG_FIRSTHDR(message) };
    while !header.is_null() {
        // SAFETY: CMSG_FIRSTHDR and CMSG_NXTHDR return null or a header inside the buffer.
        let (level, kind) = unsafe { ((*header).cmsg_level, (*header).cmsg_type) };
        if matches!((level, kind), (libc::SOL_IP, libc::IP_RECVERR) | (libc::SOL_IPV6, libc::IPV6_RECVERR)) {
            // SAFETY: such a message carries a sock_extended_err; it may be unaligned.
            let error: libc::sock_extended_err = unsafe { ptr::read_unaligned(libc::CMSG_DATA(header).cast()) };
            if error.ee_origin == SO_EE_ORIGIN_ZEROCOPY && error.ee_code == SO_EE_CODE_ZEROCOPY_COPIED {
                return true;
            }
        }
        // SAFETY: as above.
        header = unsafe { libc::CMSG_NXTHDR(message, header) };
    }
    false
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
