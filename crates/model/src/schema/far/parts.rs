use core::time::Duration;

use linerate_units::{BitRate, ByteCount, Mss, Mtu, PacketCount, Ratio, SegmentCount};
use serde::{Deserialize, Serialize};

use crate::limit;
use crate::sample;
use crate::schema::nanoseconds;
use crate::socket;
use crate::summary;
use crate::tcp_info;

/// A TCP sender in one interval; see [`sample::TcpInterval`].
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TcpInterval {
    /// Segments.
    pub retransmits: Option<u64>,
    /// Bytes.
    pub congestion_window: Option<u64>,
    /// Bytes.
    pub send_window: Option<u64>,
    /// Nanoseconds.
    pub rtt: Option<u64>,
    /// Nanoseconds.
    pub rttvar: Option<u64>,
    /// Bytes.
    pub path_mtu: Option<u32>,
    /// Events.
    pub reordering_seen: Option<u64>,
    /// Round-trip times within the interval.
    pub rtt_samples: Option<Distribution>,
    /// What held the sender back.
    pub limits: Option<LimitShares>,
    /// Bytes.
    pub not_sent: Option<u64>,
}

impl From<&sample::TcpInterval> for TcpInterval {
    fn from(interval: &sample::TcpInterval) -> Self {
        Self {
            retransmits: interval.retransmits.map(SegmentCount::get),
            congestion_window: interval.congestion_window.map(ByteCount::get),
            send_window: interval.send_window.map(ByteCount::get),
            rtt: interval.rtt.map(nanoseconds),
            rttvar: interval.rttvar.map(nanoseconds),
            path_mtu: interval.path_mtu.map(Mtu::get),
            reordering_seen: interval.reordering_seen.map(SegmentCount::get),
            rtt_samples: interval.rtt_samples.as_ref().map(Into::into),
            limits: interval.limits.as_ref().map(Into::into),
            not_sent: interval.not_sent.map(ByteCount::get),
        }
    }
}

impl From<TcpInterval> for sample::TcpInterval {
    fn from(interval: TcpInterval) -> Self {
        Self {
            retransmits: interval.retransmits.map(SegmentCount::new),
            congestion_window: interval.congestion_window.map(ByteCount::new),
            send_window: interval.send_window.map(ByteCount::new),
            rtt: interval.rtt.map(Duration::from_nanos),
            rttvar: interval.rttvar.map(Duration::from_nanos),
            path_mtu: interval.path_mtu.map(Mtu::new),
            reordering_seen: interval.reordering_seen.map(SegmentCount::new),
            rtt_samples: interval.rtt_samples.map(Into::into),
            limits: interval.limits.and_then(LimitShares::shares),
            not_sent: interval.not_sent.map(ByteCount::new),
        }
    }
}

/// A UDP stream in one interval; see [`sample::UdpInterval`].
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct UdpInterval {
    /// Datagrams.
    pub packets: u64,
    /// Datagrams.
    pub lost: Option<u64>,
    /// Nanoseconds.
    pub jitter: Option<u64>,
    /// Datagrams.
    pub out_of_order: Option<u64>,
    /// Datagrams.
    pub duplicates: Option<u64>,
    /// Datagrams.
    pub dropped_in_host: Option<u64>,
}

impl From<&sample::UdpInterval> for UdpInterval {
    fn from(interval: &sample::UdpInterval) -> Self {
        Self {
            packets: interval.packets.get(),
            lost: interval.lost.map(PacketCount::get),
            jitter: interval.jitter.map(nanoseconds),
            out_of_order: interval.out_of_order.map(PacketCount::get),
            duplicates: interval.duplicates.map(PacketCount::get),
            dropped_in_host: interval.dropped_in_host.map(PacketCount::get),
        }
    }
}

impl From<UdpInterval> for sample::UdpInterval {
    fn from(interval: UdpInterval) -> Self {
        Self {
            packets: PacketCount::new(interval.packets),
            lost: interval.lost.map(PacketCount::new),
            jitter: interval.jitter.map(Duration::from_nanos),
            out_of_order: interval.out_of_order.map(PacketCount::new),
            duplicates: interval.duplicates.map(PacketCount::new),
            dropped_in_host: interval.dropped_in_host.map(PacketCount::new),
        }
    }
}

/// Order statistics of times in nanoseconds; see [`summary::Distribution`].
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Distribution {
    /// How many readings.
    pub count: u64,
    /// Smallest.
    pub min: u64,
    /// 50th percentile.
    pub median: u64,
    /// Arithmetic mean.
    pub mean: u64,
    /// 95th percentile.
    pub p95: u64,
    /// 99th percentile.
    pub p99: u64,
    /// Largest.
    pub max: u64,
}

impl From<&summary::Distribution> for Distribution {
    fn from(summary: &summary::Distribution) -> Self {
        Self {
            count: summary.count,
            min: nanoseconds(summary.min),
            median: nanoseconds(summary.median),
            mean: nanoseconds(summary.mean),
            p95: nanoseconds(summary.p95),
            p99: nanoseconds(summary.p99),
            max: nanoseconds(summary.max),
        }
    }
}

impl From<Distribution> for summary::Distribution {
    fn from(distribution: Distribution) -> Self {
        Self {
            count: distribution.count,
            min: Duration::from_nanos(distribution.min),
            median: Duration::from_nanos(distribution.median),
            mean: Duration::from_nanos(distribution.mean),
            p95: Duration::from_nanos(distribution.p95),
            p99: Duration::from_nanos(distribution.p99),
            max: Duration::from_nanos(distribution.max),
        }
    }
}

/// Fractions of the test's time; see [`limit::LimitShares`].
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct LimitShares {
    /// Nothing outstanding.
    pub application: f64,
    /// Waiting for room in the send buffer.
    pub send_buffer: f64,
    /// Waiting for the receiver's window.
    pub receive_window: f64,
    /// The rest of the busy time.
    pub network: f64,
    /// Processor of the sending thread.
    #[serde(default)]
    pub sender_cpu: Option<f64>,
    /// Processor of the receiving thread.
    #[serde(default)]
    pub receiver_cpu: Option<f64>,
}

impl From<&limit::LimitShares> for LimitShares {
    fn from(shares: &limit::LimitShares) -> Self {
        Self {
            application: shares.application.get(),
            send_buffer: shares.send_buffer.get(),
            receive_window: shares.receive_window.get(),
            network: shares.network.get(),
            sender_cpu: shares.sender_cpu.map(Ratio::get),
            receiver_cpu: shares.receiver_cpu.map(Ratio::get),
        }
    }
}

impl LimitShares {
    /// The shares; `None` when one of them is no share.
    #[must_use]
    pub fn shares(self) -> Option<limit::LimitShares> {
        Some(limit::LimitShares {
            application: Ratio::new(self.application)?,
            send_buffer: Ratio::new(self.send_buffer)?,
            receive_window: Ratio::new(self.receive_window)?,
            network: Ratio::new(self.network)?,
            sender_cpu: self.sender_cpu.and_then(Ratio::new),
            receiver_cpu: self.receiver_cpu.and_then(Ratio::new),
        })
    }
}

/// One reading of a socket; see [`tcp_info::TcpInfo`].
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TcpInfo {
    /// Nanoseconds.
    pub rtt: Option<u64>,
    /// Nanoseconds.
    pub rttvar: Option<u64>,
    /// Nanoseconds.
    pub min_rtt: Option<u64>,
    /// Nanoseconds.
    pub retransmission_timeout: Option<u64>,
    /// Bytes.
    pub send_mss: Option<u32>,
    /// Bytes.
    pub receive_mss: Option<u32>,
    /// Bytes.
    pub advertised_mss: Option<u32>,
    /// Bytes.
    pub path_mtu: Option<u32>,
    /// Bytes.
    pub congestion_window: Option<u64>,
    /// Segments.
    pub slow_start_threshold: Option<u64>,
    /// Bytes.
    pub send_window: Option<u64>,
    /// Bytes.
    pub receive_window: Option<u64>,
    /// Bytes.
    pub receive_space: Option<u64>,
    /// Nanoseconds.
    pub receive_rtt: Option<u64>,
    /// Segments.
    pub retransmits: Option<u64>,
    /// Segments.
    pub lost: Option<u64>,
    /// Segments.
    pub unacknowledged: Option<u64>,
    /// Segments.
    pub reordering: Option<u64>,
    /// Segments.
    pub reordering_seen: Option<u64>,
    /// Segments.
    pub duplicate_sacks: Option<u64>,
    /// Packets.
    pub out_of_order_received: Option<u64>,
    /// Segments.
    pub delivered_with_congestion_mark: Option<u64>,
    /// Bytes.
    pub bytes_acknowledged: Option<u64>,
    /// Bytes.
    pub bytes_received: Option<u64>,
    /// Bytes.
    pub bytes_sent: Option<u64>,
    /// Bytes.
    pub bytes_retransmitted: Option<u64>,
    /// Bytes.
    pub not_sent: Option<u64>,
    /// bit/s.
    pub pacing_rate: Option<u64>,
    /// bit/s.
    pub max_pacing_rate: Option<u64>,
    /// bit/s.
    pub delivery_rate: Option<u64>,
    /// Whether.
    pub delivery_rate_application_limited: Option<bool>,
    /// Nanoseconds.
    pub busy_time: Option<u64>,
    /// Nanoseconds.
    pub receive_window_limited: Option<u64>,
    /// Nanoseconds.
    pub send_buffer_limited: Option<u64>,
    /// Whether.
    pub timestamps: Option<bool>,
    /// Whether.
    pub selective_acknowledgements: Option<bool>,
    /// Shift counts: for the peer's windows, for this end's.
    pub window_scale: Option<(u8, u8)>,
    /// Whether.
    pub explicit_congestion_notification: Option<bool>,
    /// Whether.
    pub congestion_notification_seen: Option<bool>,
    /// Doublings.
    pub backoff: Option<u8>,
    /// Segments.
    pub data_segments_sent: Option<u64>,
}

impl From<&tcp_info::TcpInfo> for TcpInfo {
    fn from(info: &tcp_info::TcpInfo) -> Self {
        Self {
            rtt: info.rtt.map(nanoseconds),
            rttvar: info.rttvar.map(nanoseconds),
            min_rtt: info.min_rtt.map(nanoseconds),
            retransmission_timeout: info.retransmission_timeout.map(nanoseconds),
            send_mss: info.send_mss.map(Mss::get),
            receive_mss: info.receive_mss.map(Mss::get),
            advertised_mss: info.advertised_mss.map(Mss::get),
            path_mtu: info.path_mtu.map(Mtu::get),
            congestion_window: info.congestion_window.map(ByteCount::get),
            slow_start_threshold: info.slow_start_threshold.map(SegmentCount::get),
            send_window: info.send_window.map(ByteCount::get),
            receive_window: info.receive_window.map(ByteCount::get),
            receive_space: info.receive_space.map(ByteCount::get),
            receive_rtt: info.receive_rtt.map(nanoseconds),
            retransmits: info.retransmits.map(SegmentCount::get),
            lost: info.lost.map(SegmentCount::get),
            unacknowledged: info.unacknowledged.map(SegmentCount::get),
            reordering: info.reordering.map(SegmentCount::get),
            reordering_seen: info.reordering_seen.map(SegmentCount::get),
            duplicate_sacks: info.duplicate_sacks.map(SegmentCount::get),
            out_of_order_received: info.out_of_order_received.map(PacketCount::get),
            delivered_with_congestion_mark: info.delivered_with_congestion_mark.map(SegmentCount::get),
            bytes_acknowledged: info.bytes_acknowledged.map(ByteCount::get),
            bytes_received: info.bytes_received.map(ByteCount::get),
            bytes_sent: info.bytes_sent.map(ByteCount::get),
            bytes_retransmitted: info.bytes_retransmitted.map(ByteCount::get),
            not_sent: info.not_sent.map(ByteCount::get),
            pacing_rate: info.pacing_rate.map(BitRate::whole_bits_per_second),
            max_pacing_rate: info.max_pacing_rate.map(BitRate::whole_bits_per_second),
            delivery_rate: info.delivery_rate.map(BitRate::whole_bits_per_second),
            delivery_rate_application_limited: info.delivery_rate_application_limited,
            busy_time: info.busy_time.map(nanoseconds),
            receive_window_limited: info.receive_window_limited.map(nanoseconds),
            send_buffer_limited: info.send_buffer_limited.map(nanoseconds),
            timestamps: info.timestamps,
            selective_acknowledgements: info.selective_acknowledgements,
            window_scale: info.window_scale.map(|scale| (scale.send, scale.receive)),
            explicit_congestion_notification: info.explicit_congestion_notification,
            congestion_notification_seen: info.congestion_notification_seen,
            backoff: info.backoff,
            data_segments_sent: info.data_segments_sent.map(SegmentCount::get),
        }
    }
}

impl From<TcpInfo> for tcp_info::TcpInfo {
    fn from(info: TcpInfo) -> Self {
        Self {
            rtt: info.rtt.map(Duration::from_nanos),
            rttvar: info.rttvar.map(Duration::from_nanos),
            min_rtt: info.min_rtt.map(Duration::from_nanos),
            retransmission_timeout: info.retransmission_timeout.map(Duration::from_nanos),
            send_mss: info.send_mss.map(Mss::new),
            receive_mss: info.receive_mss.map(Mss::new),
            advertised_mss: info.advertised_mss.map(Mss::new),
            path_mtu: info.path_mtu.map(Mtu::new),
            congestion_window: info.congestion_window.map(ByteCount::new),
            slow_start_threshold: info.slow_start_threshold.map(SegmentCount::new),
            send_window: info.send_window.map(ByteCount::new),
            receive_window: info.receive_window.map(ByteCount::new),
            receive_space: info.receive_space.map(ByteCount::new),
            receive_rtt: info.receive_rtt.map(Duration::from_nanos),
            retransmits: info.retransmits.map(SegmentCount::new),
            lost: info.lost.map(SegmentCount::new),
            unacknowledged: info.unacknowledged.map(SegmentCount::new),
            reordering: info.reordering.map(SegmentCount::new),
            reordering_seen: info.reordering_seen.map(SegmentCount::new),
            duplicate_sacks: info.duplicate_sacks.map(SegmentCount::new),
            out_of_order_received: info.out_of_order_received.map(PacketCount::new),
            delivered_with_congestion_mark: info.delivered_with_congestion_mark.map(SegmentCount::new),
            bytes_acknowledged: info.bytes_acknowledged.map(ByteCount::new),
            bytes_received: info.bytes_received.map(ByteCount::new),
            bytes_sent: info.bytes_sent.map(ByteCount::new),
            bytes_retransmitted: info.bytes_retransmitted.map(ByteCount::new),
            not_sent: info.not_sent.map(ByteCount::new),
            pacing_rate: info.pacing_rate.map(rate),
            max_pacing_rate: info.max_pacing_rate.map(rate),
            delivery_rate: info.delivery_rate.map(rate),
            delivery_rate_application_limited: info.delivery_rate_application_limited,
            busy_time: info.busy_time.map(Duration::from_nanos),
            receive_window_limited: info.receive_window_limited.map(Duration::from_nanos),
            send_buffer_limited: info.send_buffer_limited.map(Duration::from_nanos),
            timestamps: info.timestamps,
            selective_acknowledgements: info.selective_acknowledgements,
            window_scale: info.window_scale.map(|(send, receive)| tcp_info::WindowScale { send, receive }),
            explicit_congestion_notification: info.explicit_congestion_notification,
            congestion_notification_seen: info.congestion_notification_seen,
            backoff: info.backoff,
            data_segments_sent: info.data_segments_sent.map(SegmentCount::new),
        }
    }
}

fn rate(bits_per_second: u64) -> BitRate {
    // Exact up to 2^53 bit/s.
    BitRate::from_bits_per_second(ByteCount::new(bits_per_second).as_f64())
}

/// A socket at the end of an interval; see [`sample::SocketSample`].
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SocketSample {
    /// What the kernel says of the connection.
    pub info: TcpInfo,
    /// What its memory is used for.
    pub memory: Option<SocketMemory>,
}

/// A socket's memory in bytes; see [`socket::SocketMemory`].
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SocketMemory {
    /// Arrived and not read.
    pub receive_allocated: u64,
    /// How much that may be.
    pub receive_buffer: u64,
    /// On the way out.
    pub send_allocated: u64,
    /// How much may be queued.
    pub send_buffer: u64,
    /// Reserved, not used.
    pub forward_allocated: u64,
    /// Written, not acknowledged.
    pub send_queued: u64,
    /// Options.
    pub option_memory: u64,
    /// Arrived while the socket was held.
    pub backlog: u64,
    /// Packets.
    pub drops: Option<u64>,
}

impl From<&sample::SocketSample> for SocketSample {
    fn from(sample: &sample::SocketSample) -> Self {
        Self { info: (&sample.info).into(), memory: sample.memory.as_ref().map(Into::into) }
    }
}

impl From<SocketSample> for sample::SocketSample {
    fn from(sample: SocketSample) -> Self {
        Self { info: sample.info.into(), memory: sample.memory.map(Into::into) }
    }
}

impl From<&socket::SocketMemory> for SocketMemory {
    fn from(memory: &socket::SocketMemory) -> Self {
        Self {
            receive_allocated: memory.receive_allocated.get(),
            receive_buffer: memory.receive_buffer.get(),
            send_allocated: memory.send_allocated.get(),
            send_buffer: memory.send_buffer.get(),
            forward_allocated: memory.forward_allocated.get(),
            send_queued: memory.send_queued.get(),
            option_memory: memory.option_memory.get(),
            backlog: memory.backlog.get(),
            drops: memory.drops.map(PacketCount::get),
        }
    }
}

impl From<SocketMemory> for socket::SocketMemory {
    fn from(memory: SocketMemory) -> Self {
        Self {
            receive_allocated: ByteCount::new(memory.receive_allocated),
            receive_buffer: ByteCount::new(memory.receive_buffer),
            send_allocated: ByteCount::new(memory.send_allocated),
            send_buffer: ByteCount::new(memory.send_buffer),
            forward_allocated: ByteCount::new(memory.forward_allocated),
            send_queued: ByteCount::new(memory.send_queued),
            option_memory: ByteCount::new(memory.option_memory),
            backlog: ByteCount::new(memory.backlog),
            drops: memory.drops.map(PacketCount::new),
        }
    }
}
