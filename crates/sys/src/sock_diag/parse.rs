//! Parsing the kernel's description of a socket (`struct inet_diag_msg` and its attributes).

use core::time::Duration;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

use linerate_model::socket::{
    CongestionName, CongestionState, ControlGroup, FirewallMark, FlowKey, SocketCookie, SocketInode, SocketSnapshot,
    SocketTimer, TcpState, TimerKind, UserId,
};
use linerate_units::{ByteCount, Ratio, SegmentCount, TypeOfService};

use crate::netlink::{attributes, number};
use crate::{socket_memory, tcp_info};

/// Length of `struct inet_diag_msg`.
const INET_DIAG_MSG_LENGTH: usize = 72;

// Offsets in it: family, state, timer and repeats are its first four octets, then the socket's identity.
const LOCAL_PORT: usize = 4;
const REMOTE_PORT: usize = 6;
const LOCAL_ADDRESS: usize = 8;
const REMOTE_ADDRESS: usize = 24;
const INTERFACE: usize = 40;
const COOKIE: usize = 44;
const EXPIRES: usize = 52;
const RECEIVE_QUEUE: usize = 56;
const SEND_QUEUE: usize = 60;
const USER: usize = 64;
const INODE: usize = 68;

// Attributes (`include/uapi/linux/inet_diag.h`).
const INFO: u16 = 2;
const VEGAS: u16 = 3;
const CONGESTION: u16 = 4;
const TYPE_OF_SERVICE: u16 = 5;
const TRAFFIC_CLASS: u16 = 6;
const MEMORY: u16 = 7;
const DCTCP: u16 = 9;
const MARK: u16 = 15;
const BBR: u16 = 16;
const CONTROL_GROUP: u16 = 21;

/// Fixed-point one of `bbr_pacing_gain` and `bbr_cwnd_gain` (`BBR_UNIT` in `net/ipv4/tcp_bbr.c`).
const BBR_ONE: f64 = 256.0;
/// Fixed-point one of `dctcp_alpha` (`DCTCP_MAX_ALPHA`).
const DCTCP_ONE: f64 = 1024.0;

/// Parses one message's body; `None` for truncated ones and unknown kinds.
#[must_use]
pub fn parse(body: &[u8]) -> Option<SocketSnapshot> {
    let (fixed, rest) = body.split_at_checked(INET_DIAG_MSG_LENGTH)?;
    let state = TcpState::from_kernel(fixed[1])?;
    let word = |place: usize| number(fixed, place);
    let mut reading = SocketSnapshot {
        key: FlowKey {
            local: address(fixed, LOCAL_ADDRESS, LOCAL_PORT)?,
            remote: address(fixed, REMOTE_ADDRESS, REMOTE_PORT)?,
            cookie: SocketCookie(u64::from(word(COOKIE)?) | u64::from(word(COOKIE + 4)?) << 32),
        },
        state,
        user: UserId(word(USER)?),
        inode: word(INODE).filter(|inode| *inode != 0).map(|inode| SocketInode(inode.into())),
        receive_queue: ByteCount::new(word(RECEIVE_QUEUE)?.into()),
        send_queue: ByteCount::new(word(SEND_QUEUE)?.into()),
        timer: timer(fixed[2], fixed[3], word(EXPIRES)?),
        info: None,
        moment: linerate_model::socket::InstantTcpState::default(),
        memory: None,
        congestion_control: None,
        congestion_state: None,
        type_of_service: None,
        mark: None,
        control_group: None,
    };
    for (kind, content) in attributes(rest) {
        fill(&mut reading, kind, content);
    }
    Some(reading)
}

fn fill(reading: &mut SocketSnapshot, kind: u16, content: &[u8]) {
    let octet = || content.first().copied();
    match kind {
        // A listener's has the number of waiting connections, in fields with another meaning.
        INFO if reading.state != TcpState::Listen => {
            reading.info = Some(tcp_info::parse(content));
            reading.moment = tcp_info::parse_moment(content);
        }
        CONGESTION => reading.congestion_control = Some(CongestionName::from_bytes(content)),
        MEMORY => reading.memory = socket_memory::parse(content),
        TYPE_OF_SERVICE if reading.key.remote.is_ipv4() => reading.type_of_service = octet().map(TypeOfService::new),
        TRAFFIC_CLASS if reading.key.remote.is_ipv6() => reading.type_of_service = octet().map(TypeOfService::new),
        MARK => reading.mark = number(content, 0).map(FirewallMark),
        CONTROL_GROUP => reading.control_group = long(content, 0).map(ControlGroup),
        BBR => reading.congestion_state = bbr(content),
        VEGAS => reading.congestion_state = vegas(content),
        DCTCP => reading.congestion_state = dctcp(content),
        _ => {}
    }
}

fn address(fixed: &[u8], address: usize, port: usize) -> Option<SocketAddr> {
    let octets: [u8; 16] = fixed.get(address..address + 16)?.try_into().ok()?;
    let port = u16::from_be_bytes(fixed.get(port..port + 2)?.try_into().ok()?);
    match i32::from(fixed[0]) {
        libc::AF_INET => {
            let octets: [u8; 4] = octets[..4].try_into().ok()?;
            Some(SocketAddr::new(IpAddr::V4(Ipv4Addr::from(octets)), port))
        }
        libc::AF_INET6 => Some(match Ipv6Addr::from(octets).to_canonical() {
            IpAddr::V4(mapped) => SocketAddr::new(IpAddr::V4(mapped), port),
            IpAddr::V6(address) => {
                let scope = if address.is_unicast_link_local() { number(fixed, INTERFACE)? } else { 0 };
                SocketAddrV6::new(address, port, 0, scope).into()
            }
        }),
        _ => None,
    }
}

/// `idiag_timer`: 0 none, 1 retransmission, 2 keep-alive, 3 TIME-WAIT, 4 probe; `idiag_expires` in milliseconds.
fn timer(kind: u8, repeats: u8, expires: u32) -> Option<SocketTimer> {
    let kind = match kind {
        1 => TimerKind::Retransmission,
        2 => TimerKind::KeepAlive,
        3 => TimerKind::TimeWait,
        4 => TimerKind::Probe,
        _ => return None,
    };
    let due_in = Duration::from_millis(expires.into());
    Some(SocketTimer { kind, due_in, repeats: SegmentCount::new(repeats.into()) })
}

/// `struct tcp_bbr_info`: bandwidth in byte/s in two halves, µs, two gains.
fn bbr(content: &[u8]) -> Option<CongestionState> {
    let bytes_per_second = ByteCount::new(long_in_halves(content)?);
    Some(CongestionState::Bbr {
        bandwidth: bytes_per_second.rate_over(Duration::from_secs(1)),
        min_rtt: number(content, 8).and_then(microseconds),
        pacing_gain: f64::from(number(content, 12)?) / BBR_ONE,
        window_gain: f64::from(number(content, 16)?) / BBR_ONE,
    })
}

/// `struct tcpvegas_info`: enabled, count of round trips, µs, µs.
fn vegas(content: &[u8]) -> Option<CongestionState> {
    Some(CongestionState::Vegas {
        enabled: number(content, 0)? != 0,
        rtt: number(content, 8).and_then(microseconds),
        min_rtt: number(content, 12).and_then(microseconds),
    })
}

/// `struct tcp_dctcp_info`: enabled, state (16 bits each), alpha, marked and all bytes of this window.
fn dctcp(content: &[u8]) -> Option<CongestionState> {
    let enabled = u16::from_ne_bytes(*content.first_chunk()?) != 0;
    let marked = Ratio::new(f64::from(number(content, 4)?) / DCTCP_ONE)?;
    Some(CongestionState::Dctcp { enabled, marked })
}

/// Neither 0 nor the largest number: both mean that the kernel has no sample yet.
fn microseconds(time: u32) -> Option<Duration> {
    (time != 0 && time != u32::MAX && time != 0x7fff_ffff).then(|| Duration::from_micros(time.into()))
}

fn long(bytes: &[u8], place: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(place..place + 8)?.try_into().ok()?))
}

fn long_in_halves(bytes: &[u8]) -> Option<u64> {
    Some(u64::from(number(bytes, 0)?) | u64::from(number(bytes, 4)?) << 32)
}
