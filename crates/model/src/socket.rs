//! Kernel data about sockets: their memory, and every TCP socket of a host (`sock_diag(7)`).
//!
//! Plain data without heap allocations, so that ten thousand sockets can be sampled repeatedly in the same memory.

use core::fmt;
use core::time::Duration;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

use linerate_units::{BitRate, ByteCount, Mss, PacketCount, Ratio, SegmentCount, TypeOfService};

use crate::tcp_info::TcpInfo;

/// Memory of a socket by use (`SO_MEMINFO`, `INET_DIAG_SKMEMINFO`; `sk_get_meminfo` in `net/core/sock.c`).
///
/// All sizes are as the kernel counts them: including its overhead for each packet, not payload alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct SocketMemory {
    /// `SK_MEMINFO_RMEM_ALLOC`: packets that have arrived and were not read yet.
    #[serde(rename = "receive_allocated_bytes")]
    pub receive_allocated: ByteCount,
    /// `SK_MEMINFO_RCVBUF`: limit of the receive buffer.
    #[serde(rename = "receive_buffer_bytes")]
    pub receive_buffer: ByteCount,
    /// `SK_MEMINFO_WMEM_ALLOC`: sent packets that the device has not released.
    #[serde(rename = "send_allocated_bytes")]
    pub send_allocated: ByteCount,
    /// `SK_MEMINFO_SNDBUF`: limit of the send buffer.
    #[serde(rename = "send_buffer_bytes")]
    pub send_buffer: ByteCount,
    /// `SK_MEMINFO_FWD_ALLOC`: memory reserved by the socket and not used.
    #[serde(rename = "forward_allocated_bytes")]
    pub forward_allocated: ByteCount,
    /// `SK_MEMINFO_WMEM_QUEUED`: written data that is not acknowledged yet.
    #[serde(rename = "send_queued_bytes")]
    pub send_queued: ByteCount,
    /// `SK_MEMINFO_OPTMEM`: options and control data.
    #[serde(rename = "option_memory_bytes")]
    pub option_memory: ByteCount,
    /// `SK_MEMINFO_BACKLOG`: packets that arrived while a process held the socket lock (Linux 4.4).
    #[serde(rename = "backlog_bytes")]
    pub backlog: ByteCount,
    /// `SK_MEMINFO_DROPS`: packets dropped at this socket (Linux 4.9); `None` on older kernels.
    pub drops: Option<PacketCount>,
    /// Buffers that a program set, which the kernel no longer sizes (`SO_BUF_LOCK`, Linux 5.14); `None` where unknown, as
    /// for sockets of other programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub locked: Option<LockedBuffers>,
}

/// Socket buffers whose size a program set (`SOCK_SNDBUF_LOCK`, `SOCK_RCVBUF_LOCK`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct LockedBuffers {
    /// `SO_SNDBUF` was set.
    pub send: bool,
    /// `SO_RCVBUF` was set.
    pub receive: bool,
}

/// Unique number of a socket in the kernel, never reused (`SO_COOKIE`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SocketCookie(pub u64);

/// Inode number of a socket: the one in `/proc/PID/fd` (`socket:[…]`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SocketInode(pub u64);

/// User that owns a socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UserId(pub u32);

/// Firewall mark of a packet (`meta mark` of nftables) or a socket (`SO_MARK`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FirewallMark(pub u32);

impl FirewallMark {
    /// Parses a mark to look for: 1 to 4294967295, decimal or with `0x`. Packets without a mark have the mark 0.
    ///
    /// # Errors
    ///
    /// Other text, with the expected range.
    pub fn parse(text: &str) -> Result<Self, String> {
        let parsed = match text.strip_prefix("0x") {
            Some(digits) => u32::from_str_radix(digits, 16).ok(),
            None => text.parse().ok(),
        };
        let mark = parsed.filter(|mark| *mark != 0).map(Self);
        mark.ok_or_else(|| format!("invalid mark '{text}' (expected 1 to 4294967295, or 0x1 to 0xffffffff)"))
    }
}

impl fmt::Display for FirewallMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// Control group in which a socket was created (its inode in the cgroup file system).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ControlGroup(pub u64);

/// Identity of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowKey {
    /// Local endpoint. IPv4 carried by an IPv6 socket is shown as IPv4.
    pub local: SocketAddr,
    /// Remote endpoint.
    pub remote: SocketAddr,
    /// Cookie that distinguishes a connection from a later one between the same addresses and ports.
    pub cookie: SocketCookie,
}

/// States of a TCP connection (RFC 9293 §3.3.2), with the two that only Linux has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "SCREAMING-KEBAB-CASE")]
pub enum TcpState {
    /// Data may flow.
    Established,
    /// A connection was requested.
    SynSent,
    /// A connection was requested by the remote host.
    SynReceived,
    /// The local host has closed.
    #[serde(rename = "FIN-WAIT-1")]
    FinWait1,
    /// The local host has closed, which the remote host has acknowledged.
    #[serde(rename = "FIN-WAIT-2")]
    FinWait2,
    /// Both have closed; late packets are awaited.
    TimeWait,
    /// Not connected.
    Closed,
    /// The remote host has closed.
    CloseWait,
    /// Both have closed, and the remote host has yet to acknowledge it.
    LastAck,
    /// Listening for connections.
    Listen,
    /// Both have closed at the same time.
    Closing,
    /// Linux: a requested connection, before it has a socket.
    NewSynReceived,
    /// Linux: bound to a port, neither listening nor connected.
    #[serde(rename = "BOUND")]
    BoundInactive,
}

impl TcpState {
    /// All states, at the index of the kernel's number minus one (`include/net/tcp_states.h`).
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

    /// State with this number in the kernel; `None` for unassigned numbers.
    #[must_use]
    pub fn from_kernel(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number).checked_sub(1)?).copied()
    }

    /// Name as in RFC 9293.
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

/// Running timer of a connection (`idiag_timer`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketTimer {
    /// Kind of timer.
    pub kind: TimerKind,
    /// Time until it expires.
    pub due_in: Duration,
    /// Number of consecutive expiries without an answer.
    pub repeats: SegmentCount,
}

/// Kind of timer (`inet_csk_diag_fill` in `net/ipv4/inet_diag.c`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TimerKind {
    /// Retransmission timer: waits for an acknowledgement.
    Retransmission,
    /// Keep-alive timer.
    KeepAlive,
    /// End of TIME-WAIT.
    TimeWait,
    /// Persist timer: the remote host has closed its window (zero-window probes).
    Probe,
}

/// Name of a congestion control, for example `cubic`. At most 15 characters (`TCP_CA_NAME_MAX`).
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CongestionName {
    bytes: [u8; 16],
    length: u8,
}

impl CongestionName {
    /// Converts these bytes, up to the first that is zero; longer names are cut off, and unprintable characters become
    /// question marks.
    #[must_use]
    pub fn from_bytes(name: &[u8]) -> Self {
        let mut new = Self::default();
        for (place, byte) in new.bytes.iter_mut().zip(name.iter().take_while(|byte| **byte != 0)) {
            *place = if byte.is_ascii_graphic() { *byte } else { b'?' };
            new.length += 1;
        }
        new
    }

    /// Name as text.
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

/// State reported by a congestion control (`TCP_CC_INFO`, `INET_DIAG_VEGASINFO` and the like).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CongestionState {
    /// `struct tcp_bbr_info`.
    Bbr {
        /// `bbr_bw_lo`, `bbr_bw_hi`: estimated bandwidth.
        bandwidth: BitRate,
        /// `bbr_min_rtt`; `None` before the first sample.
        min_rtt: Option<Duration>,
        /// `bbr_pacing_gain`: pacing rate as a multiple of that bandwidth.
        pacing_gain: f64,
        /// `bbr_cwnd_gain`: window as a multiple of the bandwidth-delay product.
        window_gain: f64,
    },
    /// `struct tcpvegas_info`, also of other delay-based ones (Illinois, Westwood, `YeAH`).
    Vegas {
        /// `tcpv_enabled`: true when the delay-based algorithm is active.
        enabled: bool,
        /// `tcpv_rtt`; `None` before the first sample.
        rtt: Option<Duration>,
        /// `tcpv_minrtt`; `None` before the first sample.
        min_rtt: Option<Duration>,
    },
    /// `struct tcp_dctcp_info`.
    Dctcp {
        /// `dctcp_enabled`: true when the remote host supports ECN marks, too.
        enabled: bool,
        /// `dctcp_alpha`: estimated share of marked bytes.
        marked: Ratio,
    },
}

/// Snapshot of one TCP socket from `NETLINK_SOCK_DIAG`. Values that the kernel omits are `None`.
#[derive(Clone, Debug, PartialEq)]
pub struct SocketSnapshot {
    /// Identity of the flow.
    pub key: FlowKey,
    /// `idiag_state`.
    pub state: TcpState,
    /// `idiag_uid`.
    pub user: UserId,
    /// `idiag_inode`; `None` when no process has it open any more.
    pub inode: Option<SocketInode>,
    /// `idiag_rqueue`, Recv-Q: arrived, and not read by the application; for a listener, connections in the accept
    /// queue.
    pub receive_queue: ByteCount,
    /// `idiag_wqueue`, Send-Q: written by the application, and not acknowledged; for a listener, the accept queue's
    /// length.
    pub send_queue: ByteCount,
    /// Running timer.
    pub timer: Option<SocketTimer>,
    /// `INET_DIAG_INFO`; `None` for sockets without a connection (TIME-WAIT).
    pub info: Option<TcpInfo>,
    /// Instantaneous figures of `tcp_info`.
    pub moment: InstantTcpState,
    /// `INET_DIAG_SKMEMINFO`.
    pub memory: Option<SocketMemory>,
    /// `INET_DIAG_CONG`.
    pub congestion_control: Option<CongestionName>,
    /// `INET_DIAG_BBRINFO`, `INET_DIAG_VEGASINFO` or `INET_DIAG_DCTCPINFO`.
    pub congestion_state: Option<CongestionState>,
    /// `INET_DIAG_TOS`, or for IPv6 `INET_DIAG_TCLASS`: marking of its packets.
    pub type_of_service: Option<TypeOfService>,
    /// `INET_DIAG_MARK`; the kernel reports it only with `CAP_NET_ADMIN`.
    pub mark: Option<FirewallMark>,
    /// `INET_DIAG_CGROUP_ID` (Linux 5.8).
    pub control_group: Option<ControlGroup>,
}

/// Figures of `tcp_info` that are only meaningful at the moment of the snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InstantTcpState {
    /// `tcpi_ca_state`: loss recovery state of the sender.
    pub recovery: Option<RecoveryState>,
    /// `tcpi_probes`: zero-window and keep-alive probes without an answer.
    pub probes: Option<u8>,
    /// `tcpi_sacked`: segments that arrived beyond a gap.
    pub selectively_acknowledged: Option<SegmentCount>,
    /// `tcpi_retrans`: retransmitted segments in flight.
    pub retransmitted: Option<SegmentCount>,
    /// `tcpi_snd_cwnd`, in segments.
    pub congestion_window: Option<SegmentCount>,
    /// `tcpi_last_data_sent`: time since the last segment with data was sent.
    pub since_data_sent: Option<Duration>,
    /// `tcpi_last_data_recv`: time since the last segment with data arrived.
    pub since_data_received: Option<Duration>,
    /// `tcpi_segs_out`, acknowledgements included.
    pub segments_sent: Option<SegmentCount>,
    /// `tcpi_segs_in`, acknowledgements included.
    pub segments_received: Option<SegmentCount>,
}

/// `tcpi_ca_state` (`enum tcp_ca_state` in `include/uapi/linux/tcp.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RecoveryState {
    /// No loss suspected.
    Open,
    /// Duplicate or selective acknowledgements arrived.
    Disorder,
    /// The window is being reduced: an ECN mark, or a full queue of this host.
    Reducing,
    /// Lost segments are being retransmitted.
    Recovery,
    /// The retransmission timer expired.
    Loss,
}

impl RecoveryState {
    /// State with this number in the kernel.
    #[must_use]
    pub fn from_kernel(number: u8) -> Option<Self> {
        [Self::Open, Self::Disorder, Self::Reducing, Self::Recovery, Self::Loss].get(usize::from(number)).copied()
    }
}

impl SocketSnapshot {
    /// Bytes in flight: `unacked − sacked − lost + retrans` segments (`tcp_packets_in_flight` in `include/net/tcp.h`).
    /// `None` when the kernel does not report them.
    #[must_use]
    pub fn in_flight(&self) -> Option<ByteCount> {
        let info = self.info.as_ref()?;
        let count = |segments: Option<SegmentCount>| segments.map(SegmentCount::get);
        let gone = count(self.moment.selectively_acknowledged)? + count(info.lost)?;
        let segments = (count(info.unacknowledged)? + count(self.moment.retransmitted)?).saturating_sub(gone);
        Some(info.send_mss.map(Mss::byte_count)? * segments)
    }
}

/// Process that has a socket open.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SocketOwner {
    /// Process id in the reader's process namespace.
    pub process: ProcessId,
    /// Name (`/proc/PID/comm`): at most 15 characters, and not always the program's.
    pub name: String,
}

/// Process id.
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
    fn sacked_and_lost_segments_are_not_in_flight() {
        let count = |number| Some(SegmentCount::new(number));
        let info =
            TcpInfo { send_mss: Some(Mss::new(1000)), unacknowledged: count(10), lost: count(2), ..TcpInfo::default() };
        let any: SocketAddr = ([127, 0, 0, 1], 1).into();
        let mut reading = SocketSnapshot {
            key: FlowKey { local: any, remote: any, cookie: SocketCookie(1) },
            state: TcpState::Established,
            user: UserId(0),
            inode: None,
            receive_queue: ByteCount::ZERO,
            send_queue: ByteCount::ZERO,
            timer: None,
            info: Some(info),
            moment: InstantTcpState {
                selectively_acknowledged: count(3),
                retransmitted: count(1),
                ..InstantTcpState::default()
            },
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
