//! Options of UDP sockets.

use core::time::Duration;
use std::os::fd::AsFd;

use crate::error::Result;
use crate::sockopt::{SocketOption, flag, set};

/// `SOL_UDP`'s options of `include/uapi/linux/udp.h`.
const UDP_SEGMENT: libc::c_int = 103;
const UDP_GRO: libc::c_int = 104;

const SEGMENT: SocketOption =
    SocketOption::new(libc::IPPROTO_UDP, UDP_SEGMENT, "UDP_SEGMENT", "UDP segmentation offload size");
const RECEIVE_OFFLOAD: SocketOption =
    SocketOption::new(libc::IPPROTO_UDP, UDP_GRO, "UDP_GRO", "UDP receive offload switch");
const OVERFLOW_COUNTER: SocketOption =
    SocketOption::new(libc::SOL_SOCKET, libc::SO_RXQ_OVFL, "SO_RXQ_OVFL", "receive queue overflow counter switch");
const RECEIVE_TIMESTAMPS: SocketOption =
    SocketOption::new(libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, "SO_TIMESTAMPNS", "receive timestamp switch");
const BUSY_POLL: SocketOption =
    SocketOption::new(libc::SOL_SOCKET, libc::SO_BUSY_POLL, "SO_BUSY_POLL", "busy-polling time");

/// Cuts each write into datagrams of `size` bytes, the last one with the remainder (generic segmentation offload, Linux
/// 4.18). At most 64 datagrams (128 in newer kernels) and 65507 bytes per write; 0 turns it off.
pub fn set_udp_segment(socket: &impl AsFd, size: u16) -> Result<()> {
    set(socket, SEGMENT, libc::c_int::from(size))
}

/// Delivers datagrams of one size together (generic receive offload, Linux 5.0); the size comes as a control message.
pub fn set_udp_gro(socket: &impl AsFd, on: bool) -> Result<()> {
    set(socket, RECEIVE_OFFLOAD, flag(on))
}

/// Adds to each datagram the number dropped so far because the socket's buffer was full.
pub fn set_receive_queue_overflow_counter(socket: &impl AsFd, on: bool) -> Result<()> {
    set(socket, OVERFLOW_COUNTER, flag(on))
}

/// Adds to each datagram its time of arrival, in nanoseconds of `CLOCK_REALTIME`.
pub fn set_receive_timestamps(socket: &impl AsFd, on: bool) -> Result<()> {
    set(socket, RECEIVE_TIMESTAMPS, flag(on))
}

/// Polls the network device for up to `time` before sleeping in a read. More than the sysctl `net.core.busy_read`
/// needs `CAP_NET_ADMIN`.
pub fn set_busy_poll(socket: &impl AsFd, time: Duration) -> Result<()> {
    set(socket, BUSY_POLL, libc::c_int::try_from(time.as_micros()).unwrap_or(libc::c_int::MAX))
        .map_err(|error| error.hint_on(libc::EPERM, "this needs CAP_NET_ADMIN, or a larger sysctl net.core.busy_read"))
}
