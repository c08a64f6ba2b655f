//! What was seen of the streams during one interval of a test.

use core::time::Duration;

use linerate_units::{ByteCount, Mtu, PacketCount, SegmentCount};

use crate::limit::LimitShares;
use crate::socket::SocketMemory;
use crate::stream::{Role, StreamId};
use crate::summary::Distribution;
use crate::tcp_info::TcpInfo;

/// One stream during one interval.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamInterval {
    /// Which stream.
    pub stream: StreamId,
    /// What this end does on it.
    pub role: Role,
    /// Payload bytes written or read in the interval.
    pub bytes: ByteCount,
    /// TCP: what the kernel said; only for a stream on which this end sends.
    pub tcp: Option<TcpInterval>,
    /// UDP: what the packet numbers say.
    pub udp: Option<UdpInterval>,
    /// TCP: the socket at the end of the interval, of senders and receivers; `None` where nobody asked for it.
    pub socket: Option<Box<SocketSample>>,
}

/// A TCP socket at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SocketSample {
    /// What the kernel says of the connection.
    pub info: TcpInfo,
    /// What its memory is used for.
    pub memory: Option<SocketMemory>,
}

/// A TCP sender during one interval.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TcpInterval {
    /// Segments retransmitted in the interval.
    pub retransmits: Option<SegmentCount>,
    /// Congestion window at the end of the interval.
    pub congestion_window: Option<ByteCount>,
    /// The peer's window at the end of the interval.
    pub send_window: Option<ByteCount>,
    /// Smoothed round-trip time at the end of the interval.
    pub rtt: Option<Duration>,
    /// Its mean deviation.
    pub rttvar: Option<Duration>,
    /// Path MTU.
    pub path_mtu: Option<Mtu>,
    /// Reordering events seen so far on this connection (`tcpi_reord_seen`), as iperf3's `reorder` counts them.
    pub reordering_seen: Option<SegmentCount>,
    /// Round-trip times sampled within the interval at the sampler's cadence.
    pub rtt_samples: Option<Distribution>,
    /// What held the sender back in the interval. The kernel's stop-watches tick in jiffies (1 to 10 ms), so that the
    /// shares of a very short interval are coarse.
    pub limits: Option<LimitShares>,
    /// Bytes in the send buffer that had not been sent at the end of the interval.
    pub not_sent: Option<ByteCount>,
}

/// A UDP stream during one interval.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UdpInterval {
    /// Sender: datagrams sent. Receiver: datagrams that should have arrived (growth of the highest number).
    pub packets: PacketCount,
    /// Receiver: lost datagrams in the interval, late arrivals taken off again.
    pub lost: Option<PacketCount>,
    /// Receiver: smoothed jitter at the end of the interval (RFC 1889 A.8).
    pub jitter: Option<Duration>,
    /// Receiver: datagrams that arrived after a higher-numbered one.
    pub out_of_order: Option<PacketCount>,
    /// Receiver: datagrams that arrived more than once.
    pub duplicates: Option<PacketCount>,
    /// Receiver: datagrams that reached this host and were dropped at the full socket buffer (`SO_RXQ_OVFL`).
    pub dropped_in_host: Option<PacketCount>,
}

/// All streams during one interval.
#[derive(Clone, Debug, PartialEq)]
pub struct IntervalReport {
    /// Start, since the end of the omitted part (or, for an omitted interval, since the start of the test).
    pub start: Duration,
    /// End, on the same clock.
    pub end: Duration,
    /// Whether it belongs to the omitted part.
    pub omitted: bool,
    /// In order of creation.
    pub streams: Vec<StreamInterval>,
}

impl IntervalReport {
    /// How long it was.
    #[must_use]
    pub fn length(&self) -> Duration {
        self.end.saturating_sub(self.start)
    }
}
