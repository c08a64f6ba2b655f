//! The document of `linerate path --json`: the path itself.
//!
//! Directions are seen from the host that measures: `up` is from it to the far end, `down` is back. What the peer cannot
//! tell is `null`, and `unknown` says why.

use serde::{Deserialize, Serialize};

use super::throughput::{Termination, TimeDistribution};

/// Version of the shape.
pub const SCHEMA: u32 = 1;

/// A measured path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PathDocument {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The linerate that measured.
    pub linerate_version: String,
    /// The host as the user wrote it.
    pub host: String,
    /// The address that it came to.
    pub address: Option<String>,
    /// Its port.
    pub port: u16,
    /// What answers there.
    pub peer: Peer,
    /// Its version, where it is a linerate.
    pub peer_version: Option<String>,
    /// When it began: nanoseconds since 1970-01-01 00:00 UTC.
    pub started_at_unix_ns: u64,
    /// How long it took.
    pub duration_ns: u64,
    /// How it ended.
    pub termination: Termination,
    /// Bytes that the measurement itself put on the path, both ways.
    pub traffic_bytes: Option<u64>,
    /// Round-trip times without load.
    pub rtt: IdleRtt,
    /// From here to the far end.
    pub up: PathDirection,
    /// From the far end to here.
    pub down: PathDirection,
    /// The clocks of both ends.
    pub clock: Option<Clock>,
    /// Bandwidth-delay product of the capacity up and the smallest round trip.
    pub bdp_up_bytes: Option<u64>,
    /// The same, down.
    pub bdp_down_bytes: Option<u64>,
    /// What TCP's handshake agreed on.
    pub tcp: Option<TcpFeatures>,
    /// The hops that answered, nearest first.
    #[serde(default)]
    pub hops: Vec<Hop>,
    /// What could not be measured: name of the key → why.
    #[serde(default)]
    pub unknown: Vec<Unknown>,
    /// What a reader should know: surprises, black holes, contamination.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// What answers at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Peer {
    /// `linerate serve`.
    Linerate,
    /// An iperf3 server.
    Iperf3,
    /// A STAMP reflector.
    Stamp,
    /// A host without any of them.
    Bare,
}

/// Why a value is `null`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Unknown {
    /// Path of the key, for example `down.capacity`.
    pub key: String,
    /// The reason.
    pub reason: String,
}

/// Round-trip times without load, by how they were measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct IdleRtt {
    /// The one to use: the smallest class that was measured in-band.
    pub best: Option<TimeDistribution>,
    /// Which it is: `udp`, `tcp`, `icmp` or `handshake`.
    pub method: Option<String>,
    /// UDP probes (STAMP), the reflector's own time taken off.
    pub udp: Option<TimeDistribution>,
    /// Small messages over an open TCP connection.
    pub tcp: Option<TimeDistribution>,
    /// ICMP echoes.
    pub icmp: Option<TimeDistribution>,
    /// TCP handshakes.
    pub handshake: Option<TimeDistribution>,
}

/// One direction of the path.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct PathDirection {
    /// Path MTU.
    pub mtu: Option<PathMtu>,
    /// Capacity of the IP layer.
    pub capacity: Option<Capacity>,
    /// Delays, losses, duplicates, order.
    pub packets: Option<PacketMetrics>,
    /// What happens to the two ECN bits and to DSCPs.
    pub marks: Option<Marks>,
    /// The policer, where the test found one; `present` is false where it found none.
    pub policer: Option<Policer>,
}

/// A path MTU found by probing (RFC 4821, RFC 8899).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PathMtu {
    /// Largest IP packet that arrived, in bytes.
    pub bytes: u64,
    /// Smallest size that vanished without a word, when there is a black hole.
    pub black_hole_bytes: Option<u64>,
    /// MTU that ICMP or the kernel's route named, for comparison.
    pub icmp_bytes: Option<u64>,
    /// MTU of the sending interface.
    pub interface_bytes: Option<u64>,
    /// Whether larger packets could not be tried, as the sender's interface takes none.
    pub limited_by_interface: bool,
}

/// Capacity found by a search (RFC 9097).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Capacity {
    /// IP-layer bits that arrive per second.
    pub bits_per_second: f64,
    /// Lower and upper end of its 95 % confidence interval, where there is more than one reading.
    pub low_bits_per_second: Option<f64>,
    /// Upper end.
    pub high_bits_per_second: Option<f64>,
    /// Whether the path carries at least this, and something else (the sender, the chosen limits) set the end.
    pub at_least: bool,
    /// Whether the search met traffic of others that gave way in part only.
    #[serde(default)]
    pub shared: Option<bool>,
    /// What limited when `at_least` holds.
    pub limited_by: Option<String>,
    /// IP bytes of the packets of the search.
    pub packet_bytes: u64,
    /// Share of the search's packets that was lost.
    pub loss: Option<f64>,
    /// The delay that the search's own queue added at most.
    pub queueing_ns: Option<u64>,
    /// Bytes that the search sent.
    pub sent_bytes: u64,
    /// How long it took.
    pub duration_ns: u64,
    /// How it was measured: `udp_search`, `tcp` (against iperf3), …
    pub method: String,
}

/// What became of the probe packets in one direction (RFC 7679, 7680, 5560, 4737, 3393, 5481).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct PacketMetrics {
    /// Sent.
    pub sent: u64,
    /// Arrived at least once.
    pub received: Option<u64>,
    /// Share that did not arrive in time.
    pub loss: Option<f64>,
    /// Its 95 % confidence interval (exact binomial).
    pub loss_low: Option<f64>,
    /// Upper end.
    pub loss_high: Option<f64>,
    /// Runs of consecutive losses.
    pub loss_episodes: Option<u64>,
    /// Longest of them in packets.
    pub longest_loss_packets: Option<u64>,
    /// Arrived more than once.
    pub duplicates: Option<u64>,
    /// Share of the arrived (RFC 5560).
    pub duplication: Option<f64>,
    /// Arrived after a later one (RFC 4737 §3).
    pub reordered: Option<u64>,
    /// Share of the arrived.
    pub reordering: Option<f64>,
    /// Largest extent in packets (RFC 4737 §4.2).
    pub reordering_extent_packets: Option<u64>,
    /// Share that is 3-reordered: as late as to look lost to TCP (RFC 4737 §5).
    pub three_reordering: Option<f64>,
    /// One-way delay; only with a stated error of the clocks.
    pub one_way_delay: Option<TimeDistribution>,
    /// At most this wrong.
    pub one_way_delay_error_ns: Option<u64>,
    /// Packet delay variation against the smallest delay (RFC 5481).
    pub delay_variation: Option<TimeDistribution>,
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
}

/// What happens to marks on the way.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Marks {
    /// ECN codepoints: sent → arrived.
    pub ecn: Vec<MarkFate>,
    /// DSCPs: sent → arrived.
    pub dscp: Vec<MarkFate>,
}

/// One codepoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MarkFate {
    /// Its name, for example `ECT(0)` or `EF`.
    pub name: String,
    /// The bits sent.
    pub sent: u8,
    /// The bits that arrived; `None` when no packet with it arrived.
    pub arrived: Option<u8>,
}

/// A policer (Flach et al. 2016).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Policer {
    /// Whether one was found.
    pub present: bool,
    /// IP-layer bits per second that it lets pass.
    pub bits_per_second: Option<f64>,
    /// Its bucket.
    pub burst_bytes: Option<u64>,
    /// What the decision rests on.
    pub evidence: String,
}

/// The clocks of both ends.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Clock {
    /// Far clock minus near clock.
    pub offset_ns: i64,
    /// At most this wrong.
    pub error_ns: u64,
    /// Drift of the far clock, parts per million.
    pub drift_ppm: Option<f64>,
    /// Where the receive time stamps came from: `hardware`, `kernel`, `program`.
    pub time_stamps: TimeStampSource,
}

/// Who stamps a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TimeStampSource {
    /// The network card.
    Hardware,
    /// The kernel.
    Kernel,
    /// The program.
    Program,
}

/// What TCP agrees on over this path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct TcpFeatures {
    /// Largest segment that this end may send.
    pub send_mss_bytes: Option<u64>,
    /// Timestamps (RFC 7323).
    pub timestamps: Option<bool>,
    /// Selective acknowledgements (RFC 2018).
    pub selective_acknowledgements: Option<bool>,
    /// Window scale of the peer's windows; `None` when scaling was not agreed.
    pub window_scale_peer: Option<u8>,
    /// Window scale of this end's windows.
    pub window_scale_own: Option<u8>,
    /// ECN (RFC 3168).
    pub explicit_congestion_notification: Option<bool>,
    /// The options of the SYN as they arrived at the far end, where it tells; else `None`.
    pub syn_options_arrived: Option<Vec<String>>,
    /// What this end asked for and did not get, with the likely reason.
    pub missing: Vec<String>,
}

/// A hop that answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Hop {
    /// Distance from here, from 1.
    pub distance: u8,
    /// Who answered; `None` when nobody did.
    pub address: Option<String>,
    /// Round-trip times to it.
    pub rtt: Option<TimeDistribution>,
}
