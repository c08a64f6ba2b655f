//! Socket buffers, and the data waiting in them.

use std::os::fd::{AsFd, AsRawFd};

use linerate_units::ByteCount;

use crate::error::{Error, Result, check};
use crate::sockopt::{SocketOption, get, set};

const SEND_BUFFER: SocketOption = SocketOption::new(libc::SOL_SOCKET, libc::SO_SNDBUF, "SO_SNDBUF", "send buffer size");
const RECEIVE_BUFFER: SocketOption =
    SocketOption::new(libc::SOL_SOCKET, libc::SO_RCVBUF, "SO_RCVBUF", "receive buffer size");
const FORCED_SEND_BUFFER: SocketOption =
    SocketOption::new(libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, "SO_SNDBUFFORCE", "send buffer size");
const FORCED_RECEIVE_BUFFER: SocketOption =
    SocketOption::new(libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, "SO_RCVBUFFORCE", "receive buffer size");
const RECEIVE_LOW_WATER: SocketOption =
    SocketOption::new(libc::SOL_SOCKET, libc::SO_RCVLOWAT, "SO_RCVLOWAT", "receive low-water mark");

/// The send buffer's size as the kernel counts it: twice what was set, for its own bookkeeping (socket(7)).
pub fn send_buffer(socket: &impl AsFd) -> Result<ByteCount> {
    get(socket, SEND_BUFFER).map(to_size)
}

/// The receive buffer's size as the kernel counts it: twice what was set, for its own bookkeeping (socket(7)).
pub fn receive_buffer(socket: &impl AsFd) -> Result<ByteCount> {
    get(socket, RECEIVE_BUFFER).map(to_size)
}

/// Fixes the send buffer's size and ends its auto-tuning. The kernel silently caps it at `net.core.wmem_max`: read
/// [`send_buffer`] for the result. For TCP, set it before the connection is made.
pub fn set_send_buffer(socket: &impl AsFd, size: ByteCount) -> Result<()> {
    set(socket, SEND_BUFFER, from_size(size))
}

/// Fixes the receive buffer's size and ends its auto-tuning. The kernel silently caps it at `net.core.rmem_max`: read
/// [`receive_buffer`] for the result. For TCP, set it before the connection is made: the window scale depends on it.
pub fn set_receive_buffer(socket: &impl AsFd, size: ByteCount) -> Result<()> {
    set(socket, RECEIVE_BUFFER, from_size(size))
}

/// As [`set_send_buffer`], but beyond `net.core.wmem_max` where this process has `CAP_NET_ADMIN`.
pub fn force_send_buffer(socket: &impl AsFd, size: ByteCount) -> Result<()> {
    set(socket, FORCED_SEND_BUFFER, from_size(size)).or_else(|_| set_send_buffer(socket, size))
}

/// As [`set_receive_buffer`], but beyond `net.core.rmem_max` where this process has `CAP_NET_ADMIN`.
pub fn force_receive_buffer(socket: &impl AsFd, size: ByteCount) -> Result<()> {
    set(socket, FORCED_RECEIVE_BUFFER, from_size(size)).or_else(|_| set_receive_buffer(socket, size))
}

/// Wakes a reader only when at least `size` bytes are there.
pub fn set_receive_low_water(socket: &impl AsFd, size: ByteCount) -> Result<()> {
    set(socket, RECEIVE_LOW_WATER, from_size(size))
}

/// Bytes written to the socket that are still in its send buffer: for TCP, not acknowledged yet (`SIOCOUTQ`).
pub fn unacknowledged_bytes(socket: &impl AsFd) -> Result<ByteCount> {
    let mut length: libc::c_int = 0;
    // SAFETY: the request writes one int, and `length` is one that is ours alone.
    let answer = unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), libc::TIOCOUTQ, &raw mut length) };
    check(answer).map_err(|cause| Error::system("reading the length of the send queue (SIOCOUTQ)", cause))?;
    Ok(to_size(length))
}

/// Bytes that have arrived and were not read: for TCP all of them, for UDP the next datagram (`SIOCINQ`).
pub fn unread_bytes(socket: &impl AsFd) -> Result<ByteCount> {
    let length = rustix::io::ioctl_fionread(socket.as_fd());
    length
        .map(ByteCount::new)
        .map_err(|cause| Error::system("reading the length of the receive queue (SIOCINQ)", cause))
}

fn to_size(value: libc::c_int) -> ByteCount {
    ByteCount::new(u64::try_from(value).unwrap_or(0))
}

/// The kernel's options are C ints; larger values ask for the maximum.
fn from_size(size: ByteCount) -> libc::c_int {
    libc::c_int::try_from(size.get()).unwrap_or(libc::c_int::MAX)
}
