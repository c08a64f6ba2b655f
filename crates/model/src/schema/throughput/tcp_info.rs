use core::time::Duration;

use linerate_units::{BitRate, ByteCount, Mss, Mtu, PacketCount, SegmentCount};
use serde::{Deserialize, Serialize};

use crate::schema::nanoseconds;
use crate::tcp_info;

/// One reading of the kernel's `struct tcp_info` ([`crate::tcp_info::TcpInfo`] says what each field is).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[expect(missing_docs, reason = "documented at the domain type")]
pub struct TcpInfo {
    pub rtt_ns: Option<u64>,
    pub rttvar_ns: Option<u64>,
    pub min_rtt_ns: Option<u64>,
    pub retransmission_timeout_ns: Option<u64>,
    pub send_mss_bytes: Option<u32>,
    pub receive_mss_bytes: Option<u32>,
    pub advertised_mss_bytes: Option<u32>,
    pub path_mtu_bytes: Option<u32>,
    pub congestion_window_bytes: Option<u64>,
    pub slow_start_threshold_segments: Option<u64>,
    pub send_window_bytes: Option<u64>,
    pub receive_window_bytes: Option<u64>,
    pub receive_space_bytes: Option<u64>,
    pub receive_rtt_ns: Option<u64>,
    pub retransmitted_segments: Option<u64>,
    pub lost_segments: Option<u64>,
    pub unacknowledged_segments: Option<u64>,
    pub reordering_segments: Option<u64>,
    pub reordering_seen: Option<u64>,
    pub duplicate_sacks: Option<u64>,
    pub out_of_order_received_packets: Option<u64>,
    pub delivered_with_congestion_mark_segments: Option<u64>,
    pub acknowledged_bytes: Option<u64>,
    pub received_bytes: Option<u64>,
    pub sent_bytes: Option<u64>,
    pub retransmitted_bytes: Option<u64>,
    pub not_sent_bytes: Option<u64>,
    pub pacing_bits_per_second: Option<f64>,
    pub delivery_bits_per_second: Option<f64>,
    pub delivery_rate_application_limited: Option<bool>,
    pub busy_time_ns: Option<u64>,
    pub receive_window_limited_ns: Option<u64>,
    pub send_buffer_limited_ns: Option<u64>,
    pub timestamps: Option<bool>,
    pub selective_acknowledgements: Option<bool>,
    pub send_window_scale: Option<u8>,
    pub receive_window_scale: Option<u8>,
    pub explicit_congestion_notification: Option<bool>,
}

impl From<&tcp_info::TcpInfo> for TcpInfo {
    fn from(info: &tcp_info::TcpInfo) -> Self {
        let time = |time: Option<Duration>| time.map(nanoseconds);
        let bytes = |size: Option<ByteCount>| size.map(ByteCount::get);
        let rate = |rate: Option<BitRate>| rate.map(BitRate::bits_per_second);
        Self {
            rtt_ns: time(info.rtt),
            rttvar_ns: time(info.rttvar),
            min_rtt_ns: time(info.min_rtt),
            retransmission_timeout_ns: time(info.retransmission_timeout),
            send_mss_bytes: info.send_mss.map(Mss::get),
            receive_mss_bytes: info.receive_mss.map(Mss::get),
            advertised_mss_bytes: info.advertised_mss.map(Mss::get),
            path_mtu_bytes: info.path_mtu.map(Mtu::get),
            congestion_window_bytes: bytes(info.congestion_window),
            slow_start_threshold_segments: info.slow_start_threshold.map(SegmentCount::get),
            send_window_bytes: bytes(info.send_window),
            receive_window_bytes: bytes(info.receive_window),
            receive_space_bytes: bytes(info.receive_space),
            receive_rtt_ns: time(info.receive_rtt),
            retransmitted_segments: info.retransmits.map(SegmentCount::get),
            lost_segments: info.lost.map(SegmentCount::get),
            unacknowledged_segments: info.unacknowledged.map(SegmentCount::get),
            reordering_segments: info.reordering.map(SegmentCount::get),
            reordering_seen: info.reordering_seen.map(SegmentCount::get),
            duplicate_sacks: info.duplicate_sacks.map(SegmentCount::get),
            out_of_order_received_packets: info.out_of_order_received.map(PacketCount::get),
            delivered_with_congestion_mark_segments: info.delivered_with_congestion_mark.map(SegmentCount::get),
            acknowledged_bytes: bytes(info.bytes_acknowledged),
            received_bytes: bytes(info.bytes_received),
            sent_bytes: bytes(info.bytes_sent),
            retransmitted_bytes: bytes(info.bytes_retransmitted),
            not_sent_bytes: bytes(info.not_sent),
            pacing_bits_per_second: rate(info.pacing_rate),
            delivery_bits_per_second: rate(info.delivery_rate),
            delivery_rate_application_limited: info.delivery_rate_application_limited,
            busy_time_ns: time(info.busy_time),
            receive_window_limited_ns: time(info.receive_window_limited),
            send_buffer_limited_ns: time(info.send_buffer_limited),
            timestamps: info.timestamps,
            selective_acknowledgements: info.selective_acknowledgements,
            send_window_scale: info.window_scale.map(|scale| scale.send),
            receive_window_scale: info.window_scale.map(|scale| scale.receive),
            explicit_congestion_notification: info.explicit_congestion_notification,
        }
    }
}
