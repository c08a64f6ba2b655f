//! Kernel data about one TCP connection (`getsockopt(TCP_INFO)`).

use core::time::Duration;
use linerate_units::serde::OptionalNanoseconds;
use serde::{Deserialize, Serialize};

use linerate_units::{BitRate, ByteCount, Mss, Mtu, PacketCount, SegmentCount};

/// Sample of Linux's `struct tcp_info` (`include/uapi/linux/tcp.h`), with units.
///
/// Fields that the running kernel is too old to return are `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct TcpInfo {
    /// `tcpi_rtt`: smoothed round-trip time; `None` before the first sample.
    #[serde(rename = "rtt_ns", with = "OptionalNanoseconds")]
    pub rtt: Option<Duration>,
    /// `tcpi_rttvar`: mean deviation of the round-trip time.
    #[serde(rename = "rttvar_ns", with = "OptionalNanoseconds")]
    pub rttvar: Option<Duration>,
    /// `tcpi_min_rtt`: smallest round-trip time in the kernel's window (`tcp_min_rtt_wlen`).
    #[serde(rename = "min_rtt_ns", with = "OptionalNanoseconds")]
    pub min_rtt: Option<Duration>,
    /// `tcpi_rto`: retransmission timeout.
    #[serde(rename = "retransmission_timeout_ns", with = "OptionalNanoseconds")]
    pub retransmission_timeout: Option<Duration>,
    /// `tcpi_snd_mss`: segment size for sending.
    #[serde(rename = "send_mss_bytes")]
    pub send_mss: Option<Mss>,
    /// `tcpi_rcv_mss`: estimate of the peer's segment size.
    #[serde(rename = "receive_mss_bytes")]
    pub receive_mss: Option<Mss>,
    /// `tcpi_advmss`: segment size advertised to the peer.
    #[serde(rename = "advertised_mss_bytes")]
    pub advertised_mss: Option<Mss>,
    /// `tcpi_pmtu`: path MTU as the kernel knows it.
    #[serde(rename = "path_mtu_bytes")]
    pub path_mtu: Option<Mtu>,
    /// `tcpi_snd_cwnd` × `tcpi_snd_mss`: congestion window.
    #[serde(rename = "congestion_window_bytes")]
    pub congestion_window: Option<ByteCount>,
    /// `tcpi_snd_ssthresh`; `None` while it is "infinite" (in the first slow start).
    #[serde(rename = "slow_start_threshold_segments")]
    pub slow_start_threshold: Option<SegmentCount>,
    /// `tcpi_snd_wnd`: the peer's advertised window, scaled (Linux 5.4).
    #[serde(rename = "send_window_bytes")]
    pub send_window: Option<ByteCount>,
    /// `tcpi_rcv_wnd`: the window advertised to the peer (Linux 6.2).
    #[serde(rename = "receive_window_bytes")]
    pub receive_window: Option<ByteCount>,
    /// `tcpi_rcv_space`: receive-buffer auto-tuning's estimate.
    #[serde(rename = "receive_space_bytes")]
    pub receive_space: Option<ByteCount>,
    /// `tcpi_rcv_rtt`: receiver-side round-trip estimate.
    #[serde(rename = "receive_rtt_ns", with = "OptionalNanoseconds")]
    pub receive_rtt: Option<Duration>,
    /// `tcpi_total_retrans`: segments retransmitted since the connection began.
    #[serde(rename = "retransmitted_segments")]
    pub retransmits: Option<SegmentCount>,
    /// `tcpi_lost`: segments now assumed lost.
    #[serde(rename = "lost_segments")]
    pub lost: Option<SegmentCount>,
    /// `tcpi_unacked`: segments in flight.
    #[serde(rename = "unacknowledged_segments")]
    pub unacknowledged: Option<SegmentCount>,
    /// `tcpi_reordering`: tolerated reordering distance.
    #[serde(rename = "reordering_segments")]
    pub reordering: Option<SegmentCount>,
    /// `tcpi_reord_seen`: reordering events (Linux 4.19).
    pub reordering_seen: Option<SegmentCount>,
    /// `tcpi_dsack_dups`: duplicates reported by the peer (Linux 4.19).
    pub duplicate_sacks: Option<SegmentCount>,
    /// `tcpi_rcv_ooopack`: segments received out of order (Linux 5.4).
    #[serde(rename = "out_of_order_received_packets")]
    pub out_of_order_received: Option<PacketCount>,
    /// `tcpi_delivered_ce`: segments delivered with congestion marks (Linux 4.18).
    #[serde(rename = "delivered_with_congestion_mark_segments")]
    pub delivered_with_congestion_mark: Option<SegmentCount>,
    /// `tcpi_bytes_acked` (Linux 4.1).
    #[serde(rename = "acknowledged_bytes")]
    pub bytes_acknowledged: Option<ByteCount>,
    /// `tcpi_bytes_received` (Linux 4.1).
    #[serde(rename = "received_bytes")]
    pub bytes_received: Option<ByteCount>,
    /// `tcpi_bytes_sent`, retransmissions included (Linux 4.19).
    #[serde(rename = "sent_bytes")]
    pub bytes_sent: Option<ByteCount>,
    /// `tcpi_bytes_retrans` (Linux 4.19).
    #[serde(rename = "retransmitted_bytes")]
    pub bytes_retransmitted: Option<ByteCount>,
    /// `tcpi_notsent_bytes`: in the send buffer, not sent yet (Linux 4.6).
    #[serde(rename = "not_sent_bytes")]
    pub not_sent: Option<ByteCount>,
    /// `tcpi_pacing_rate`; `None` while unlimited (Linux 3.15).
    #[serde(rename = "pacing_bits_per_second")]
    pub pacing_rate: Option<BitRate>,
    /// `tcpi_max_pacing_rate`: limit set with `SO_MAX_PACING_RATE`; `None` while unlimited (Linux 3.15).
    #[serde(rename = "max_pacing_bits_per_second")]
    pub max_pacing_rate: Option<BitRate>,
    /// `tcpi_delivery_rate` (Linux 4.9).
    #[serde(rename = "delivery_bits_per_second")]
    pub delivery_rate: Option<BitRate>,
    /// `tcpi_delivery_rate_app_limited` (Linux 4.9).
    pub delivery_rate_application_limited: Option<bool>,
    /// `tcpi_busy_time`: time with data outstanding (Linux 4.10).
    #[serde(rename = "busy_time_ns", with = "OptionalNanoseconds")]
    pub busy_time: Option<Duration>,
    /// `tcpi_rwnd_limited`: part of it limited by the peer's window (Linux 4.10).
    #[serde(rename = "receive_window_limited_ns", with = "OptionalNanoseconds")]
    pub receive_window_limited: Option<Duration>,
    /// `tcpi_sndbuf_limited`: part of it limited by the send buffer (Linux 4.10).
    #[serde(rename = "send_buffer_limited_ns", with = "OptionalNanoseconds")]
    pub send_buffer_limited: Option<Duration>,
    /// `TCPI_OPT_TIMESTAMPS`.
    pub timestamps: Option<bool>,
    /// `TCPI_OPT_SACK`.
    pub selective_acknowledgements: Option<bool>,
    /// `tcpi_snd_wscale` and `tcpi_rcv_wscale` when `TCPI_OPT_WSCALE` was agreed.
    pub window_scale: Option<NegotiatedWindowScale>,
    /// `TCPI_OPT_ECN`.
    pub explicit_congestion_notification: Option<bool>,
    /// `tcpi_ecn_mode`: true with Accurate ECN (RFC 9768); `None` where the kernel has it, but does not report it.
    pub accurate_ecn: Option<bool>,
    /// `TCPI_OPT_ECN_SEEN`: at least one packet arrived with an ECN codepoint set (RFC 3168).
    pub congestion_notification_seen: Option<bool>,
    /// `tcpi_backoff`: number of times that the retransmission timeout was doubled since the last acknowledgement.
    pub backoff: Option<u8>,
    /// `tcpi_data_segs_out`: segments with data sent, retransmissions included (Linux 4.6).
    pub data_segments_sent: Option<SegmentCount>,
}

/// Shift counts of the window scale option (RFC 7323 §2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NegotiatedWindowScale {
    /// Applied to windows that the peer advertises.
    pub send: u8,
    /// Applied to windows that this end advertises.
    pub receive: u8,
}

impl TcpInfo {
    /// Sample with its totals counted since an `earlier` one of the same connection; all else unchanged.
    #[must_use]
    pub fn totals_since(&self, earlier: &Self) -> Self {
        macro_rules! grown {
            ($($field:ident),*) => {
                Self { $($field: self.$field.map(|now| now - earlier.$field.unwrap_or_default()),)* ..self.clone() }
            };
        }
        grown!(
            retransmits,
            bytes_sent,
            bytes_retransmitted,
            bytes_acknowledged,
            bytes_received,
            data_segments_sent,
            reordering_seen,
            duplicate_sacks,
            delivered_with_congestion_mark
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_begin_with_the_earlier_sample() {
        let reading = |bytes: u64, retransmitted: u64| TcpInfo {
            bytes_sent: Some(ByteCount::new(bytes)),
            retransmits: Some(SegmentCount::new(retransmitted)),
            rtt: Some(Duration::from_millis(20)),
            ..TcpInfo::default()
        };
        let grown = reading(5000, 7).totals_since(&reading(2000, 3));
        assert_eq!((grown.bytes_sent, grown.retransmits), (Some(ByteCount::new(3000)), Some(SegmentCount::new(4))));
        assert_eq!((grown.rtt, grown.bytes_acknowledged), (Some(Duration::from_millis(20)), None));
        // A value that an old kernel does not report is unknown, not zero.
        assert_eq!(TcpInfo::default().totals_since(&reading(1, 1)).bytes_sent, None);
    }
}
