//! Document of `linerate path --json`: the path itself.
//!
//! Directions are relative to the measuring host: `up` is from it to the remote host, `down` the reverse. Values that
//! the peer cannot report are `null`, with the reason in `unknown`.

use core::fmt;
use serde::{Deserialize, Serialize};

use super::header_mark::HeaderMark;
use super::report::TestTermination;
pub use super::route::PathHop;
use super::route::RouteReport;
use super::summary::DurationDistribution;

/// Version of this document's schema.
pub const SCHEMA: u32 = 1;

/// Measured path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PathDocument {
    /// Schema version ([`SCHEMA`]).
    pub schema: u32,
    /// Version of linerate that measured.
    pub linerate_version: String,
    /// The host as the user wrote it.
    pub host: String,
    /// Address to which the host name resolved.
    pub address: Option<String>,
    /// Port of the host.
    pub port: u16,
    /// Kind of server that answers.
    pub peer: PeerKind,
    /// Version of the peer, where it runs linerate.
    pub peer_version: Option<String>,
    /// Start time in nanoseconds since 1970-01-01 00:00 UTC.
    pub started_at_unix_ns: u64,
    /// Duration in nanoseconds.
    pub duration_ns: u64,
    /// Outcome of the run.
    pub termination: TestTermination,
    /// Bytes sent on the path by the measurement itself, both directions together.
    pub traffic_bytes: Option<u64>,
    /// Round-trip times without load.
    pub rtt: IdleRtt,
    /// From the local to the remote host.
    pub up: PathDirection,
    /// From the remote to the local host.
    pub down: PathDirection,
    /// Clocks of both hosts.
    pub clock: Option<PathClock>,
    /// Bandwidth-delay product of the uplink capacity and the smallest round trip.
    pub bdp_up_bytes: Option<u64>,
    /// Bandwidth-delay product of the downlink capacity and the smallest round trip.
    pub bdp_down_bytes: Option<u64>,
    /// Options negotiated in TCP's handshake.
    pub tcp: Option<TcpFeatures>,
    /// Hops that answered, nearest first.
    #[serde(default)]
    pub hops: Vec<PathHop>,
    /// Route as a whole; `None` where its hops were not measured.
    #[serde(default)]
    pub route: Option<RouteReport>,
    /// Values that could not be measured: key → reason.
    #[serde(default)]
    pub unknown: Vec<UnknownValue>,
    /// Notes shown below the table: surprises, black holes, contamination.
    #[serde(default)]
    pub notes: Vec<String>,
}

impl PathDocument {
    /// True when only the hops were measured (`linerate path --hops`).
    #[must_use]
    pub fn is_route_only(&self) -> bool {
        let nothing = PathDirection::default();
        self.route.is_some() && self.up == nothing && self.down == nothing
    }

    /// True when only a stream of a given rate was sent (`linerate path --bitrate`) or received (`--receive`).
    #[must_use]
    pub fn is_stream_only(&self) -> bool {
        let packets = [&self.up, &self.down].into_iter().filter_map(|end| end.packets.as_ref());
        packets.into_iter().any(|one| one.sent_bits_per_second.or(one.received_bits_per_second).is_some())
    }
}

/// Kind of server on the remote host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PeerKind {
    /// `linerate serve`.
    Linerate,
    /// iperf3 server.
    Iperf3,
    /// STAMP reflector.
    Stamp,
    /// Sender of STAMP packets, to which nothing was sent.
    StampSender,
    /// Host without any of them.
    Bare,
    /// HTTP server of responsiveness tests.
    Http,
}

/// Reason why a value is `null`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UnknownValue {
    /// Key with its parents, for example `down.capacity`.
    pub key: String,
    /// Reason in one sentence.
    pub reason: String,
}

/// Round-trip times without load, by method.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct IdleRtt {
    /// Best estimate: the smallest class that was measured in-band.
    pub best: Option<DurationDistribution>,
    /// Method of that estimate.
    pub method: Option<RttMethod>,
    /// UDP probes (STAMP), without the reflector's processing time.
    pub udp: Option<DurationDistribution>,
    /// Small messages over an open TCP connection.
    pub tcp: Option<DurationDistribution>,
    /// ICMP echoes.
    pub icmp: Option<DurationDistribution>,
    /// TCP handshakes.
    pub handshake: Option<DurationDistribution>,
}

/// Methods of measuring the round-trip time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RttMethod {
    /// UDP probes (STAMP).
    Udp,
    /// Small messages over an open TCP connection.
    Tcp,
    /// ICMP echoes.
    Icmp,
    /// TCP handshakes.
    Handshake,
}

/// Methods of measuring the capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CapacityMethod {
    /// Search with UDP (RFC 9097).
    UdpSearch,
    /// TCP transfer, against servers of iperf3.
    Tcp,
}

impl fmt::Display for RttMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Udp => "UDP probes",
            Self::Tcp => "small messages over TCP",
            Self::Icmp => "ICMP echoes",
            Self::Handshake => "TCP handshakes",
        })
    }
}

impl fmt::Display for CapacityMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UdpSearch => "search with UDP (RFC 9097)",
            Self::Tcp => "TCP",
        })
    }
}

/// One direction of the path.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct PathDirection {
    /// Path MTU.
    pub mtu: Option<PathMtu>,
    /// Capacity of the IP layer.
    pub capacity: Option<CapacityMeasurement>,
    /// Delay, loss, duplication and reordering.
    pub packets: Option<PacketMetrics>,
    /// Treatment of the two ECN bits and of DSCPs.
    pub marks: Option<PathMarks>,
    /// Result of the policer test; `present` is false where it found none.
    pub policer: Option<PolicerDetection>,
}

/// Path MTU determined by probing (RFC 4821, RFC 8899).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PathMtu {
    /// Largest IP packet that arrived, in bytes.
    pub bytes: u64,
    /// Smallest size lost without an ICMP message, when there is a black hole.
    pub black_hole_bytes: Option<u64>,
    /// MTU reported by ICMP or the kernel's route, for comparison.
    pub icmp_bytes: Option<u64>,
    /// MTU of the sending interface.
    pub interface_bytes: Option<u64>,
    /// True when larger packets could not be tried because of the sender's interface.
    pub limited_by_interface: bool,
}

/// Capacity measured by a search (RFC 9097).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CapacityMeasurement {
    /// IP-layer bits that arrive per second.
    pub bits_per_second: f64,
    /// Lower bound of the 95 % confidence interval, where there is more than one sample.
    pub low_bits_per_second: Option<f64>,
    /// Upper bound; `None` where the search met traffic that does not yield, since the path may carry more.
    pub high_bits_per_second: Option<f64>,
    /// True for a lower bound: something other than the path (the sender, the chosen limits) ended the search.
    pub at_least: bool,
    /// True when the search met cross traffic that yielded in part only.
    #[serde(default)]
    pub shared: Option<bool>,
    /// Limit other than the path; `None` where the path was the limit.
    pub limited_by: Option<CapacityLimiter>,
    /// IP bytes of the packets of the search.
    pub packet_bytes: u64,
    /// Loss ratio of the search's packets.
    pub loss: Option<f64>,
    /// Loss ratio of an evenly paced stream well below the capacity: the path's own, not that of a full queue.
    #[serde(default)]
    pub loss_below: Option<f64>,
    /// Packets of that stream.
    #[serde(default)]
    pub packets_below: Option<u64>,
    /// Maximum delay added by the search's own queue.
    pub queueing_ns: Option<u64>,
    /// Bytes sent by the search.
    pub sent_bytes: u64,
    /// Duration in nanoseconds.
    pub duration_ns: u64,
    /// Method.
    pub method: CapacityMethod,
}

/// Limits of a capacity search other than the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CapacityLimiter {
    /// Sending host.
    Sender,
    /// Receiving host.
    Receiver,
    /// Highest allowed rate.
    MaximumRate,
    /// Allowed time.
    Duration,
    /// Allowed bytes.
    Bytes,
    /// Congestion control of TCP.
    CongestionControl,
    /// Undetermined.
    Unknown,
}

impl CapacityLimiter {
    /// Display text.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Sender => "the sending host",
            Self::Receiver => "the receiving host",
            Self::MaximumRate => "the rate limit (--max-rate)",
            Self::Duration => "the time for the search",
            Self::Bytes => "the traffic limit (--max-traffic)",
            Self::CongestionControl => "TCP, whose senders back off",
            Self::Unknown => "an unknown factor",
        }
    }
}

/// Metrics of the probe packets in one direction (RFC 7679, 7680, 5560, 4737, 3393, 5481).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct PacketMetrics {
    /// Packets sent.
    pub sent: u64,
    /// Packets that arrived at least once.
    pub received: Option<u64>,
    /// Share of packets that did not arrive in time.
    pub loss: Option<f64>,
    /// Lower bound of its 95 % confidence interval (exact binomial).
    pub loss_low: Option<f64>,
    /// Upper bound.
    pub loss_high: Option<f64>,
    /// Number of runs of consecutive losses.
    pub loss_episodes: Option<u64>,
    /// Longest of these runs in packets.
    pub longest_loss_packets: Option<u64>,
    /// Packets that arrived more than once.
    pub duplicates: Option<u64>,
    /// Share of these among the arrived packets (RFC 5560).
    pub duplication: Option<f64>,
    /// Packets that arrived after a later one (RFC 4737 §3).
    pub reordered: Option<u64>,
    /// Share of these among the arrived packets.
    pub reordering: Option<f64>,
    /// Maximum reordering extent in packets (RFC 4737 §4.2).
    pub reordering_extent_packets: Option<u64>,
    /// Share of 3-reordered packets: late enough to look lost to TCP (RFC 4737 §5).
    pub three_reordering: Option<f64>,
    /// One-way delay; only with a known error of the clocks.
    pub one_way_delay: Option<DurationDistribution>,
    /// Maximum error of the one-way delay.
    pub one_way_delay_error_ns: Option<u64>,
    /// Packet delay variation against the smallest delay (RFC 5481).
    pub delay_variation: Option<DurationDistribution>,
    /// Mean of the absolute differences of consecutive delays (RFC 3393).
    pub ipdv_mean_ns: Option<u64>,
    /// Third minus first quartile of the delays ("spread").
    pub spread_ns: Option<u64>,
    /// Smoothed jitter of RFC 3550, as iperf3 prints it.
    pub rfc3550_jitter_ns: Option<u64>,
    /// Bytes of the probes' IP packets.
    pub packet_bytes: u64,
    /// Mean time between probes.
    pub interval_ns: u64,
    /// IP-layer rate at which they were sent; only where a rate was asked for (`--bitrate`).
    pub sent_bits_per_second: Option<f64>,
    /// IP-layer rate at which they arrived; only for streams of a given rate.
    pub received_bits_per_second: Option<f64>,
}

/// Treatment of IP header marks on the path.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct PathMarks {
    /// ECN codepoints: sent → arrived.
    pub ecn: Vec<MarkFate>,
    /// DSCPs: sent → arrived.
    pub dscp: Vec<MarkFate>,
}

/// Treatment of one codepoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MarkFate {
    /// Mark.
    pub name: HeaderMark,
    /// Bits sent.
    pub sent: u8,
    /// Bits that arrived; `None` when no such packet arrived.
    pub arrived: Option<u8>,
}

/// Result of the search for a policer (Flach et al. 2016).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PolicerDetection {
    /// True when one was found.
    pub present: bool,
    /// Token rate in IP-layer bits per second.
    pub bits_per_second: Option<f64>,
    /// Bucket size.
    pub burst_bytes: Option<u64>,
    /// Evidence for the decision.
    pub evidence: String,
}

/// Relation of the clocks of both hosts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PathClock {
    /// Remote clock minus local clock.
    pub offset_ns: i64,
    /// Maximum error of the offset.
    pub error_ns: u64,
    /// Drift of the remote clock, parts per million.
    pub drift_ppm: Option<f64>,
    /// Source of the receive time stamps: `hardware`, `kernel`, `program`.
    pub time_stamps: TimeStampSource,
}

/// Source of a time stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TimeStampSource {
    /// Network card.
    Hardware,
    /// Kernel.
    Kernel,
    /// Program.
    Program,
}

/// TCP options negotiated over this path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct TcpFeatures {
    /// Largest segment that the local host may send.
    pub send_mss_bytes: Option<u64>,
    /// Timestamps (RFC 7323).
    pub timestamps: Option<bool>,
    /// Selective acknowledgements (RFC 2018).
    pub selective_acknowledgements: Option<bool>,
    /// Window scale of the peer's windows; `None` when scaling was not agreed.
    pub window_scale_peer: Option<u8>,
    /// Window scale of the local host's windows.
    pub window_scale_own: Option<u8>,
    /// ECN (RFC 3168).
    pub explicit_congestion_notification: Option<bool>,
    /// Accurate ECN (RFC 9768); `None` where the local kernel does not report it.
    pub accurate_ecn: Option<bool>,
    /// Options of the SYN as they arrived at the remote host; `None` where it does not report them.
    pub syn_options_arrived: Option<Vec<TcpFeature>>,
    /// Window scale of the SYN as it arrived at the remote host; `None` where it had none or is not reported.
    pub syn_window_scale: Option<u8>,
    /// Features that the local host requested and did not get.
    pub missing: Vec<TcpFeature>,
}

/// Features that the handshake of TCP negotiates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TcpFeature {
    /// Window scale (RFC 7323).
    WindowScale,
    /// Selective acknowledgements (RFC 2018).
    SelectiveAcknowledgements,
    /// Timestamps (RFC 7323).
    Timestamps,
    /// ECN (RFC 3168).
    ExplicitCongestionNotification,
    /// Accurate ECN (RFC 9768).
    AccurateEcn,
}

impl TcpFeature {
    /// Display text.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::WindowScale => "window scale",
            Self::SelectiveAcknowledgements => "selective acknowledgements",
            Self::Timestamps => "timestamps",
            Self::ExplicitCongestionNotification => "explicit congestion notification",
            Self::AccurateEcn => "Accurate ECN",
        }
    }

    /// sysctl that has the kernel request it.
    #[must_use]
    pub const fn setting(self) -> &'static str {
        match self {
            Self::WindowScale => "net.ipv4.tcp_window_scaling",
            Self::SelectiveAcknowledgements => "net.ipv4.tcp_sack",
            Self::Timestamps => "net.ipv4.tcp_timestamps",
            Self::ExplicitCongestionNotification | Self::AccurateEcn => "net.ipv4.tcp_ecn",
        }
    }
}
