//! Options of TCP connections, and those that every socket has.

use core::ffi::c_long;
use core::time::Duration;
use std::io;
use std::os::fd::AsFd;

use linerate_units::{BitRate, Mss};
use socket2::{Domain, Socket, Type};

use crate::error::{Error, Result};
use crate::sockopt::{self, SocketOption, flag, get, set};
use crate::syn::Syn;

const CONGESTION: SocketOption =
    SocketOption::new(libc::IPPROTO_TCP, libc::TCP_CONGESTION, "TCP_CONGESTION", "congestion control algorithm");
const MAXIMUM_SEGMENT: SocketOption =
    SocketOption::new(libc::IPPROTO_TCP, libc::TCP_MAXSEG, "TCP_MAXSEG", "maximum segment size");
const NO_DELAY: SocketOption =
    SocketOption::new(libc::IPPROTO_TCP, libc::TCP_NODELAY, "TCP_NODELAY", "switch that turns Nagle's algorithm off");
const USER_TIMEOUT: SocketOption =
    SocketOption::new(libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT, "TCP_USER_TIMEOUT", "user timeout");
const KEEPALIVE: SocketOption =
    SocketOption::new(libc::SOL_SOCKET, libc::SO_KEEPALIVE, "SO_KEEPALIVE", "keep-alive switch");
const KEEPALIVE_IDLE: SocketOption =
    SocketOption::new(libc::IPPROTO_TCP, libc::TCP_KEEPIDLE, "TCP_KEEPIDLE", "keep-alive idle time");
const KEEPALIVE_INTERVAL: SocketOption =
    SocketOption::new(libc::IPPROTO_TCP, libc::TCP_KEEPINTVL, "TCP_KEEPINTVL", "keep-alive interval");
const KEEPALIVE_COUNT: SocketOption =
    SocketOption::new(libc::IPPROTO_TCP, libc::TCP_KEEPCNT, "TCP_KEEPCNT", "keep-alive probe count");
const MAX_PACING_RATE: SocketOption =
    SocketOption::new(libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, "SO_MAX_PACING_RATE", "maximum pacing rate");
const RECEIVE_TIMEOUT: SocketOption =
    SocketOption::new(libc::SOL_SOCKET, libc::SO_RCVTIMEO, "SO_RCVTIMEO", "receive timeout");
const SEND_TIMEOUT: SocketOption =
    SocketOption::new(libc::SOL_SOCKET, libc::SO_SNDTIMEO, "SO_SNDTIMEO", "send timeout");
const REUSE_ADDRESS: SocketOption =
    SocketOption::new(libc::SOL_SOCKET, libc::SO_REUSEADDR, "SO_REUSEADDR", "address reuse switch");
const REUSE_PORT: SocketOption =
    SocketOption::new(libc::SOL_SOCKET, libc::SO_REUSEPORT, "SO_REUSEPORT", "sharing of the port");
const ZERO_COPY: SocketOption =
    SocketOption::new(libc::SOL_SOCKET, libc::SO_ZEROCOPY, "SO_ZEROCOPY", "zero-copy switch");

const SAVE_SYN: SocketOption = SocketOption::new(libc::IPPROTO_TCP, 27, "TCP_SAVE_SYN", "SYN saving switch");
const SAVED_SYN: SocketOption = SocketOption::new(libc::IPPROTO_TCP, 28, "TCP_SAVED_SYN", "saved SYN");

/// The congestion control algorithm in use, by the kernel's name, for example `cubic`.
pub fn congestion(socket: &impl AsFd) -> Result<String> {
    let mut name = [0_u8; 16]; // TCP_CA_NAME_MAX
    let name = sockopt::get_bytes(socket, CONGESTION, &mut name)?;
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
    Ok(String::from_utf8_lossy(name).into_owned())
}

/// Chooses the congestion control algorithm by the kernel's name.
pub fn set_congestion(socket: &impl AsFd, name: &str) -> Result<()> {
    sockopt::set_bytes(socket, CONGESTION, name.as_bytes()).map_err(|error| {
        error
            .with_value(name)
            .hint_on(
                libc::ENOENT,
                "this host does not have it: `sysctl net.ipv4.tcp_available_congestion_control` lists what it has, \
                 `modprobe tcp_NAME` may add it",
            )
            .hint_on(
                libc::EPERM,
                "only root may use it: `sysctl net.ipv4.tcp_allowed_congestion_control` lists those for all users",
            )
    })
}

/// Checks that [`set_congestion`] takes a name on this host.
pub fn check_congestion(name: &str) -> Result<()> {
    let open = |domain| Socket::new(domain, Type::STREAM, None);
    let socket = open(Domain::IPV4).or_else(|_| open(Domain::IPV6));
    let socket = socket.map_err(|cause| Error::system("opening a TCP socket", cause))?;
    set_congestion(&socket, name)
}

/// The maximum segment size: as set, or on a connection as its path allows.
pub fn mss(socket: &impl AsFd) -> Result<Mss> {
    let size: libc::c_int = get(socket, MAXIMUM_SEGMENT)?;
    Ok(Mss::new(u32::try_from(size).unwrap_or(0)))
}

/// Limits the segment size, 88 to 32767 bytes. Set it before the connection is made, so that it is announced.
pub fn set_mss(socket: &impl AsFd, mss: Mss) -> Result<()> {
    set(socket, MAXIMUM_SEGMENT, mss.get())
        .map_err(|error| error.hint_on(libc::EINVAL, "the kernel takes 88 to 32767 bytes"))
}

/// Sends small segments at once instead of collecting them (Nagle's algorithm off).
pub fn set_no_delay(socket: &impl AsFd, on: bool) -> Result<()> {
    set(socket, NO_DELAY, flag(on))
}

/// Makes a listener keep the SYN of each connection that it will accept (Linux 4.2), for [`saved_syn`].
pub fn set_save_syn(listener: &impl AsFd, on: bool) -> Result<()> {
    set(listener, SAVE_SYN, flag(on))
}

/// The SYN of an accepted connection as it arrived, with the changes made on the path. It is returned once; `None` when
/// it was not kept ([`set_save_syn`]) or was returned before.
pub fn saved_syn(socket: &impl AsFd) -> Result<Option<Syn>> {
    // Both headers at their longest take 120; for IPv6, more extension headers fit than are in use. A longer one is
    // refused.
    let mut packet = [0; 512];
    Ok(Syn::parse(sockopt::get_bytes(socket, SAVED_SYN, &mut packet)?))
}

/// Ends the connection when sent data stays unacknowledged for `time` (RFC 5482). Zero is the system's default.
pub fn set_user_timeout(socket: &impl AsFd, time: Duration) -> Result<()> {
    set(socket, USER_TIMEOUT, libc::c_int::try_from(time.as_millis()).unwrap_or(libc::c_int::MAX))
}

/// Times of probes to a silent peer. `None` keeps the system's default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeepaliveSettings {
    /// Silence before the first probe, 1 to 32767 s.
    pub idle: Option<Duration>,
    /// Time between probes, 1 to 32767 s.
    pub interval: Option<Duration>,
    /// Probes without an answer that end the connection, 1 to 127.
    pub probes: Option<u32>,
}

/// Probes the peer when the connection is silent (RFC 9293 §3.8.4). Times are rounded up to whole seconds.
pub fn set_keepalive(socket: &impl AsFd, keepalive: KeepaliveSettings) -> Result<()> {
    set(socket, KEEPALIVE, flag(true))?;
    if let Some(idle) = keepalive.idle {
        set(socket, KEEPALIVE_IDLE, whole_seconds(idle))?;
    }
    if let Some(interval) = keepalive.interval {
        set(socket, KEEPALIVE_INTERVAL, whole_seconds(interval))?;
    }
    if let Some(probes) = keepalive.probes {
        set(socket, KEEPALIVE_COUNT, probes)?;
    }
    Ok(())
}

fn whole_seconds(time: Duration) -> libc::c_int {
    libc::c_int::try_from(time.as_millis().div_ceil(1000)).unwrap_or(libc::c_int::MAX)
}

/// Limits the rate at which the kernel paces this socket's packets; a rate of zero removes the limit. TCP paces by
/// itself; UDP needs the `fq` queueing discipline on the interface. Supports rates above 34 Gbit/s since Linux 4.20.
pub fn set_max_pacing_rate(socket: &impl AsFd, rate: BitRate) -> Result<()> {
    let bytes_per_second = if rate.is_zero() { u64::MAX } else { rate.whole_bits_per_second().div_ceil(8) };
    set(socket, MAX_PACING_RATE, bytes_per_second)
}

/// Ends a read that waits longer than this with `WouldBlock`; `None` waits without limit.
pub fn set_receive_timeout(socket: &impl AsFd, time: Option<Duration>) -> Result<()> {
    set_timeout(socket, RECEIVE_TIMEOUT, time)
}

/// Ends a write that waits longer than this with `WouldBlock`; `None` waits without limit.
pub fn set_send_timeout(socket: &impl AsFd, time: Option<Duration>) -> Result<()> {
    set_timeout(socket, SEND_TIMEOUT, time)
}

fn set_timeout(socket: &impl AsFd, option: SocketOption, time: Option<Duration>) -> Result<()> {
    if time.is_some_and(|time| time.is_zero()) {
        let cause = io::Error::from_raw_os_error(libc::EINVAL);
        return Err(Error::system(format!("setting the {} to zero, which would be no limit", option.meaning), cause));
    }
    // The kernel counts microseconds, and takes zero for no limit.
    let time = time.map_or(Duration::ZERO, |time| time.max(Duration::from_micros(1)));
    let seconds: c_long = time.as_secs().try_into().unwrap_or(c_long::MAX);
    let microseconds = c_long::from(time.subsec_micros().cast_signed());
    sockopt::set_bytes(socket, option, &[seconds.to_ne_bytes(), microseconds.to_ne_bytes()].concat())
}

/// Lets an address be bound while old connections of it linger (and for UDP, while another socket with this option
/// has it).
pub fn set_reuse_address(socket: &impl AsFd, on: bool) -> Result<()> {
    set(socket, REUSE_ADDRESS, flag(on))
}

/// Lets sockets of the same user that have this option, too, listen on one address and port.
pub fn set_reuse_port(socket: &impl AsFd, on: bool) -> Result<()> {
    set(socket, REUSE_PORT, flag(on))
}

/// Allows `MSG_ZEROCOPY` (Linux 4.14 for TCP, 5.0 for UDP).
pub fn set_zero_copy(socket: &impl AsFd, on: bool) -> Result<()> {
    set(socket, ZERO_COPY, flag(on))
}
