//! What the kernel says of sockets: their memory, and every TCP socket of a host (`sock_diag(7)`).
//!
//! Plain data without anything on the heap, so that ten thousand sockets can be read again and again in the same memory.

use core::fmt;
use core::time::Duration;
use std::net::SocketAddr;

use linerate_units::{BitRate, ByteCount, Mss, PacketCount, Ratio, SegmentCount, TypeOfService};

use crate::tcp_info::TcpInfo;

/// What a socket's memory is used for (`SO_MEMINFO`, `INET_DIAG_SKMEMINFO`; `sk_get_meminfo` in `net/core/sock.c`).
///
/// All are sizes as the kernel counts them: with its bookkeeping for each packet, not payload alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SocketMemory {
    /// `SK_MEMINFO_RMEM_ALLOC`: packets that have arrived and were not read yet.
    pub receive_allocated: ByteCount,
    /// `SK_MEMINFO_RCVBUF`: how much that may become.
    pub receive_buffer: ByteCount,
    /// `SK_MEMINFO_WMEM_ALLOC`: packets on their way out that the device has not let go of.
    pub send_allocated: ByteCount,
    /// `SK_MEMINFO_SNDBUF`: how much may be queued to be sent.
    pub send_buffer: ByteCount,
    /// `SK_MEMINFO_FWD_ALLOC`: memory that the socket has reserved and does not use.
    pub forward_allocated: ByteCount,
    /// `SK_MEMINFO_WMEM_QUEUED`: what was written and is not acknowledged yet.
    pub send_queued: ByteCount,
    /// `SK_MEMINFO_OPTMEM`: options and control data.
    pub option_memory: ByteCount,
    /// `SK_MEMINFO_BACKLOG`: packets that arrived while a process held the socket (Linux 4.4).
    pub backlog: ByteCount,
    /// `SK_MEMINFO_DROPS`: packets dropped at this socket (Linux 4.9); `None` on older kernels.
    pub drops: Option<PacketCount>,
}

/// A socket's number in the kernel that no other socket has, ever (`SO_COOKIE`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SocketCookie(pub u64);

/// A socket's number in the file system of sockets: the one in `/proc/PID/fd` (`socket:[…]`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Inode(pub u64);

/// The user whom a socket belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UserId(pub u32);

/// A socket's firewall mark (`SO_MARK`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mark(pub u32);

/// The control group in which a socket was made (its inode in the cgroup file system).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ControlGroup(pub u64);

/// Which flow it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowKey {
    /// This end. IPv4 carried by an IPv6 socket is shown as IPv4.
    pub local: SocketAddr,
    /// The far end.
    pub remote: SocketAddr,
    /// Tells a connection from a later one between the same addresses and ports.
    pub cookie: SocketCookie,
}

/// States of a TCP connection (RFC 9293 §3.3.2), with the two that only Linux has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TcpState {
    /// Data may flow.
    Established,
    /// A connection was asked for.
    SynSent,
    /// A connection was asked for by the far end.
    SynReceived,
    /// This end has closed.
    FinWait1,
    /// This end has closed, which the far end has acknowledged.
    FinWait2,
    /// Both have closed; late packets are waited for.
    TimeWait,
    /// Not connected.
    Closed,
    /// The far end has closed.
    CloseWait,
    /// Both have closed, and the far end has yet to acknowledge it.
    LastAck,
    /// Waits for connections.
    Listen,
    /// Both have closed at the same time.
    Closing,
    /// Linux: a connection that is asked for, before it has a socket.
    NewSynReceived,
    /// Linux: bound to a port, neither listening nor connected.
    BoundInactive,
}

impl TcpState {
    /// All, at the place of the kernel's number less one (`include/net/tcp_states.h`).
    pub const ALL: [Self; 13] = [
        Self::Established,
        Self::SynSent,
        Self::SynReceived,
        Self::FinWait1,
        Self::FinWait2,
        Self::TimeWait,
        Self::Closed,
        Self::CloseWait,
        Self::LastAck,
        Self::Listen,
        Self::Closing,
        Self::NewSynReceived,
        Self::BoundInactive,
    ];

    /// The state with this number in the kernel; `None` for numbers that no kernel has yet.
    #[must_use]
    pub fn from_kernel(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number).checked_sub(1)?).copied()
    }

    /// Its name as RFC 9293 writes it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Established => "ESTABLISHED",
            Self::SynSent => "SYN-SENT",
            Self::SynReceived | Self::NewSynReceived => "SYN-RECEIVED",
            Self::FinWait1 => "FIN-WAIT-1",
            Self::FinWait2 => "FIN-WAIT-2",
            Self::TimeWait => "TIME-WAIT",
            Self::Closed => "CLOSED",
            Self::CloseWait => "CLOSE-WAIT",
            Self::LastAck => "LAST-ACK",
            Self::Listen => "LISTEN",
            Self::Closing => "CLOSING",
            Self::BoundInactive => "BOUND",
        }
    }
}

/// The timer that runs for a connection (`idiag_timer`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketTimer {
    /// What it waits for.
    pub kind: TimerKind,
    /// When it is due.
    pub due_in: Duration,
    /// How often in a row it has gone off without an answer.
    pub repeats: SegmentCount,
}

/// What a timer waits for (`inet_csk_diag_fill` in `net/ipv4/inet_diag.c`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TimerKind {
    /// An acknowledgement: else segments are sent again.
    Retransmission,
    /// Keep-alive.
    KeepAlive,
    /// The end of TIME-WAIT.
    TimeWait,
    /// A window: the far end has closed its own (zero-window probes).
    Probe,
}

/// The name of a congestion control, for example `cubic`. At most 15 characters (`TCP_CA_NAME_MAX`).
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CongestionName {
    bytes: [u8; 16],
    length: u8,
}

impl CongestionName {
    /// The name in these bytes, up to the first that is zero; what is too long is cut off, and what is not printable
    /// becomes a question mark.
    #[must_use]
    pub fn from_bytes(name: &[u8]) -> Self {
        let mut new = Self::default();
        for (place, byte) in new.bytes.iter_mut().zip(name.iter().take_while(|byte| **byte != 0)) {
            *place = if byte.is_ascii_graphic() { *byte } else { b'?' };
            new.length += 1;
        }
        new
    }

    /// As text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        core::str::from_utf8(&self.bytes[..usize::from(self.length)]).unwrap_or_default()
    }
}

impl fmt::Debug for CongestionName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), formatter)
    }
}

impl fmt::Display for CongestionName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

/// What a congestion control says of itself (`TCP_CC_INFO`, `INET_DIAG_VEGASINFO` and its like).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CongestionState {
    /// `struct tcp_bbr_info`.
    Bbr {
        /// `bbr_bw_lo`, `bbr_bw_hi`: the bandwidth that it believes in.
        bandwidth: BitRate,
        /// `bbr_min_rtt`; `None` before the first sample.
        min_rtt: Option<Duration>,
        /// `bbr_pacing_gain`: its pace as a multiple of that bandwidth.
        pacing_gain: f64,
        /// `bbr_cwnd_gain`: its window as a multiple of bandwidth times round trip.
        window_gain: f64,
    },
    /// `struct tcpvegas_info`, also of others that work with delay (Illinois, Westwood, `YeAH`).
    Vegas {
        /// `tcpv_enabled`: whether it works so now.
        enabled: bool,
        /// `tcpv_rtt`; `None` before the first sample.
        rtt: Option<Duration>,
        /// `tcpv_minrtt`; `None` before the first sample.
        min_rtt: Option<Duration>,
    },
    /// `struct tcp_dctcp_info`.
    Dctcp {
        /// `dctcp_enabled`: whether the far end knows marks of congestion, too.
        enabled: bool,
        /// `dctcp_alpha`: which share of the bytes was marked lately.
        marked: Ratio,
    },
}

/// One TCP socket at one moment, as `NETLINK_SOCK_DIAG` describes it. What the kernel leaves out is `None`.
#[derive(Clone, Debug, PartialEq)]
pub struct SocketReading {
    /// Which flow it is.
    pub key: FlowKey,
    /// `idiag_state`.
    pub state: TcpState,
    /// `idiag_uid`.
    pub user: UserId,
    /// `idiag_inode`; `None` when no process has it open any more.
    pub inode: Option<Inode>,
    /// `idiag_rqueue`, Recv-Q: arrived, and not read by the application; for a listener, connections that wait.
    pub receive_queue: ByteCount,
    /// `idiag_wqueue`, Send-Q: written by the application, and not acknowledged; for a listener, how many may wait.
    pub send_queue: ByteCount,
    /// The timer that runs.
    pub timer: Option<SocketTimer>,
    /// `INET_DIAG_INFO`; `None` for sockets that have no connection any more (TIME-WAIT).
    pub info: Option<TcpInfo>,
    /// Figures of `tcp_info` that say what happens right now.
    pub moment: Moment,
    /// `INET_DIAG_SKMEMINFO`.
    pub memory: Option<SocketMemory>,
    /// `INET_DIAG_CONG`.
    pub congestion_control: Option<CongestionName>,
    /// `INET_DIAG_BBRINFO`, `INET_DIAG_VEGASINFO` or `INET_DIAG_DCTCPINFO`.
    pub congestion_state: Option<CongestionState>,
    /// `INET_DIAG_TOS`, or for IPv6 `INET_DIAG_TCLASS`: how its packets are marked.
    pub type_of_service: Option<TypeOfService>,
    /// `INET_DIAG_MARK`; the kernel tells it only those with `CAP_NET_ADMIN`.
    pub mark: Option<Mark>,
    /// `INET_DIAG_CGROUP_ID` (Linux 5.8).
    pub control_group: Option<ControlGroup>,
}

/// Figures of `tcp_info` that only mean something at the moment of reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// `tcpi_ca_state`: what the sender thinks of losses.
    pub recovery: Option<RecoveryState>,
    /// `tcpi_probes`: zero-window and keep-alive probes without an answer.
    pub probes: Option<u8>,
    /// `tcpi_sacked`: segments that arrived beyond a gap.
    pub selectively_acknowledged: Option<SegmentCount>,
    /// `tcpi_retrans`: segments that are on their way again.
    pub retransmitted: Option<SegmentCount>,
    /// `tcpi_snd_cwnd`, in segments.
    pub congestion_window: Option<SegmentCount>,
    /// `tcpi_last_data_sent`: since the last segment with data was sent.
    pub since_data_sent: Option<Duration>,
    /// `tcpi_last_data_recv`: since the last segment with data came.
    pub since_data_received: Option<Duration>,
    /// `tcpi_segs_out`, acknowledgements included.
    pub segments_sent: Option<SegmentCount>,
    /// `tcpi_segs_in`, acknowledgements included.
    pub segments_received: Option<SegmentCount>,
}

/// `tcpi_ca_state` (`enum tcp_ca_state` in `include/uapi/linux/tcp.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RecoveryState {
    /// Nothing is amiss.
    Open,
    /// Something came out of order or twice.
    Disorder,
    /// The window is being reduced: a mark of congestion, or a full queue of this host.
    Reducing,
    /// Lost segments are sent again.
    Recovery,
    /// The retransmission timeout went off.
    Loss,
}

impl RecoveryState {
    /// The state with this number in the kernel.
    #[must_use]
    pub fn from_kernel(number: u8) -> Option<Self> {
        [Self::Open, Self::Disorder, Self::Reducing, Self::Recovery, Self::Loss].get(usize::from(number)).copied()
    }
}

impl SocketReading {
    /// What is on its way and not acknowledged: `unacked − sacked − lost + retrans` segments
    /// (`tcp_packets_in_flight` in `include/net/tcp.h`). `None` when the kernel does not say.
    #[must_use]
    pub fn in_flight(&self) -> Option<ByteCount> {
        let info = self.info.as_ref()?;
        let count = |segments: Option<SegmentCount>| segments.map(SegmentCount::get);
        let gone = count(self.moment.selectively_acknowledged)? + count(info.lost)?;
        let segments = (count(info.unacknowledged)? + count(self.moment.retransmitted)?).saturating_sub(gone);
        Some(info.send_mss.map(Mss::byte_count)? * segments)
    }

    /// Whether it is a connection in which data may be on its way, not one that waits for its beginning or its end.
    #[must_use]
    pub const fn is_flow(&self) -> bool {
        matches!(
            self.state,
            TcpState::Established
                | TcpState::SynSent
                | TcpState::SynReceived
                | TcpState::FinWait1
                | TcpState::CloseWait
                | TcpState::LastAck
                | TcpState::Closing
        )
    }
}

/// The process that has a socket open.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner {
    /// Its number, as the reader's process namespace has it.
    pub process: ProcessId,
    /// Its name (`/proc/PID/comm`): at most 15 characters, and not always the program's.
    pub name: String,
}

/// A process's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessId(pub u32);

impl fmt::Display for ProcessId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_have_the_kernels_numbers() {
        assert_eq!(TcpState::from_kernel(1), Some(TcpState::Established));
        assert_eq!(TcpState::from_kernel(10), Some(TcpState::Listen));
        assert_eq!(TcpState::from_kernel(13), Some(TcpState::BoundInactive));
        assert_eq!((TcpState::from_kernel(0), TcpState::from_kernel(14)), (None, None));
        assert_eq!(RecoveryState::from_kernel(4), Some(RecoveryState::Loss));
        assert_eq!(RecoveryState::from_kernel(5), None);
    }

    #[test]
    fn names_of_congestion_controls_are_always_text() {
        assert_eq!(CongestionName::from_bytes(b"cubic\0junk").as_str(), "cubic");
        assert_eq!(CongestionName::from_bytes(&[0xff; 40]).as_str(), "????????????????");
        assert_eq!(CongestionName::from_bytes(&[]).as_str(), "");
    }

    #[test]
    fn what_has_arrived_or_is_lost_is_not_in_flight() {
        let count = |number| Some(SegmentCount::new(number));
        let info =
            TcpInfo { send_mss: Some(Mss::new(1000)), unacknowledged: count(10), lost: count(2), ..TcpInfo::default() };
        let any: SocketAddr = ([127, 0, 0, 1], 1).into();
        let mut reading = SocketReading {
            key: FlowKey { local: any, remote: any, cookie: SocketCookie(1) },
            state: TcpState::Established,
            user: UserId(0),
            inode: None,
            receive_queue: ByteCount::ZERO,
            send_queue: ByteCount::ZERO,
            timer: None,
            info: Some(info),
            moment: Moment { selectively_acknowledged: count(3), retransmitted: count(1), ..Moment::default() },
            memory: None,
            congestion_control: None,
            congestion_state: None,
            type_of_service: None,
            mark: None,
            control_group: None,
        };
        assert_eq!(reading.in_flight(), Some(ByteCount::new(6000)));
        reading.moment.retransmitted = None;
        assert_eq!(reading.in_flight(), None, "unknown is not zero");
    }
}
