//! Samples of the streams during one interval of a test.

use core::time::Duration;
use linerate_units::serde::{Nanoseconds, OptionalNanoseconds};
use serde::{Deserialize, Serialize};

use linerate_units::{ByteCount, Mtu, PacketCount, SegmentCount};

use crate::limit::LimitShares;
use crate::socket::SocketMemory;
use crate::stream::{StreamId, StreamRole};
use crate::summary::DurationDistribution;
use crate::tcp_info::TcpInfo;

/// One stream during one interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StreamInterval {
    /// Stream number.
    #[serde(rename = "id")]
    pub stream: StreamId,
    /// Role of the local end.
    pub role: StreamRole,
    /// Payload bytes written or read in the interval.
    pub bytes: ByteCount,
    /// TCP: values of the kernel; only for a stream on which the local end sends.
    pub tcp: Option<TcpInterval>,
    /// UDP: values derived from the packet numbers.
    pub udp: Option<UdpInterval>,
    /// TCP: socket sample at the end of the interval, of senders and receivers; `None` unless requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket: Option<Box<SocketSample>>,
}

/// Sample of a TCP socket.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct SocketSample {
    /// `tcp_info` of the connection.
    pub info: TcpInfo,
    /// Memory of the socket.
    pub memory: Option<SocketMemory>,
}

/// A TCP sender during one interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct TcpInterval {
    /// Segments retransmitted in the interval.
    #[serde(rename = "retransmitted_segments")]
    pub retransmits: Option<SegmentCount>,
    /// Congestion window at the end of the interval.
    #[serde(rename = "congestion_window_bytes")]
    pub congestion_window: Option<ByteCount>,
    /// The peer's window at the end of the interval.
    #[serde(rename = "send_window_bytes")]
    pub send_window: Option<ByteCount>,
    /// Smoothed round-trip time at the end of the interval.
    #[serde(rename = "smoothed_rtt_ns", with = "OptionalNanoseconds")]
    pub rtt: Option<Duration>,
    /// Mean deviation of the round-trip time.
    #[serde(rename = "rttvar_ns", with = "OptionalNanoseconds")]
    pub rttvar: Option<Duration>,
    /// Path MTU.
    #[serde(rename = "path_mtu_bytes")]
    pub path_mtu: Option<Mtu>,
    /// Reordering events since the start of this connection (`tcpi_reord_seen`), as iperf3's `reorder` counts them.
    pub reordering_seen: Option<SegmentCount>,
    /// Distribution of the round-trip times sampled within the interval.
    #[serde(rename = "rtt")]
    pub rtt_samples: Option<DurationDistribution>,
    /// Limits of the sender in the interval. The kernel's chronograph counters tick in jiffies (1 to 10 ms), so the
    /// shares of a very short interval are coarse.
    pub limits: Option<LimitShares>,
    /// Bytes in the send buffer that were not yet sent at the end of the interval.
    #[serde(rename = "not_sent_bytes")]
    pub not_sent: Option<ByteCount>,
}

/// A UDP stream during one interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct UdpInterval {
    /// Sender: datagrams sent. Receiver: datagrams that should have arrived (growth of the highest number).
    pub packets: PacketCount,
    /// Receiver: lost datagrams in the interval, less late arrivals.
    #[serde(rename = "lost_packets")]
    pub lost: Option<PacketCount>,
    /// Receiver: smoothed jitter at the end of the interval (RFC 1889 A.8).
    #[serde(rename = "jitter_ns", with = "OptionalNanoseconds")]
    pub jitter: Option<Duration>,
    /// Receiver: datagrams that arrived after a higher-numbered one.
    #[serde(rename = "out_of_order_packets")]
    pub out_of_order: Option<PacketCount>,
    /// Receiver: datagrams that arrived more than once.
    #[serde(rename = "duplicate_packets")]
    pub duplicates: Option<PacketCount>,
    /// Receiver: datagrams that reached this host and were dropped at the full socket buffer (`SO_RXQ_OVFL`).
    #[serde(rename = "dropped_in_host_packets")]
    pub dropped_in_host: Option<PacketCount>,
}

/// All streams during one interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IntervalReport {
    /// Start, since the end of the omitted part (or, for an omitted interval, since the start of the test).
    #[serde(rename = "start_ns", with = "Nanoseconds")]
    pub start: Duration,
    /// End, on the same clock.
    #[serde(rename = "end_ns", with = "Nanoseconds")]
    pub end: Duration,
    /// True for an interval of the omitted part.
    #[serde(default)]
    pub omitted: bool,
    /// Streams in order of creation.
    pub streams: Vec<StreamInterval>,
}

impl IntervalReport {
    /// Duration of the interval.
    #[must_use]
    pub fn length(&self) -> Duration {
        self.end.saturating_sub(self.start)
    }
}
