//! Document of `linerate lab show PATH --json`: an emulated path, the bounds by formulas, and its ground truth.

use linerate_model::diagnosis::PathLabel;
use serde::{Deserialize, Serialize};

/// Version of this document's schema.
pub const SCHEMA: u32 = 1;

/// One emulated path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LabPathDocument {
    /// Schema version ([`SCHEMA`]).
    pub schema: u32,
    /// Name.
    pub name: String,
    /// Description of the path and its purpose; may be empty.
    pub story: String,
    /// Source of the figures; empty where there is none.
    pub source: String,
    /// Built-in cause.
    pub label: PathLabel,
    /// Arguments of linerate that demonstrate it.
    pub scenario: Vec<String>,
    /// Seed of all randomness on the path.
    pub seed: u64,
    /// Names of the hosts in the order of the path: near, routers, far.
    pub hosts: Vec<String>,
    /// Bounds of one connection towards far.
    pub forward: PredictedBounds,
    /// Bounds of one connection towards near.
    pub backward: PredictedBounds,
    /// Built-in figures that a measurement should find.
    pub truth: PathTruth,
    /// Memory of a guest for this path, as its kernel counts it.
    pub guest_memory_bytes: u64,
    /// Maximum that the guest takes of it from the host.
    pub guest_memory_taken_bytes: u64,
    /// Derivation of both, in a sentence.
    pub guest_memory_reason: String,
}

/// Bounds that formulas predict for one TCP connection over IPv4 in one direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PredictedBounds {
    /// Round trip of a packet without queueing and serialisation: all delays.
    pub base_rtt_seconds: f64,
    /// Round trip of a full segment and its acknowledgement without queueing, with their serialisation on each link.
    pub segment_rtt_seconds: f64,
    /// Highest rate of the slowest link, link layer included; `null` where no link has a rate.
    pub bottleneck_bits_per_second: Option<f64>,
    /// Lowest rate of that link at any time; `null` where no link has a rate.
    pub bottleneck_lowest_bits_per_second: Option<f64>,
    /// Capacity of the queue of that link; `null` for no limit, and where no link has a rate.
    pub buffer_bytes: Option<u64>,
    /// Delay that its full queue adds at the lowest rate; `null` for no limit, and where no link has a rate.
    pub queueing_delay_seconds: Option<f64>,
    /// TCP payload rate of the slowest link, or of the sender's own queueing discipline; `null` where neither has a rate.
    pub goodput_ceiling_bits_per_second: Option<f64>,
    /// TCP payload rate that the strictest policer passes; `null` without a policer.
    pub policer_ceiling_bits_per_second: Option<f64>,
    /// Bandwidth-delay product of the slowest link's highest rate; `null` where no link has a rate.
    pub bdp_bytes: Option<u64>,
    /// Rate of the largest window that the receiver offers; `null` where the round trip takes no time.
    pub receive_window_bits_per_second: Option<f64>,
    /// Rate of a window as large as the send buffer; `null` where the round trip takes no time.
    pub send_buffer_bits_per_second: Option<f64>,
    /// Share of lost packets, 0 to 1; `null` without loss.
    pub loss: Option<f64>,
    /// Rate that the sender's congestion control sustains under that loss; `null` without loss, and where it sets no bound.
    pub loss_bits_per_second: Option<f64>,
    /// Time that slow start takes to fill the slowest link; `null` where no link has a rate.
    pub slow_start_seconds: Option<f64>,
}

/// Built-in figures of a path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PathTruth {
    /// IP size of a small packet: an ICMP echo request of `ping`.
    pub small_packet_bytes: u64,
    /// Round trip of a small packet and an answer of the same size, without queueing and jitter.
    pub small_packet_rtt_seconds: f64,
    /// IP size of a full packet towards far.
    pub full_packet_bytes: u32,
    /// Sum of all delays.
    pub base_rtt_seconds: f64,
    /// Figures towards far.
    pub forward: DirectionTruth,
    /// Figures towards near.
    pub backward: DirectionTruth,
}

/// Built-in figures of one direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DirectionTruth {
    /// Largest IP packet that arrives.
    pub mtu_bytes: u32,
    /// Largest IP packet that the sender's own interface takes.
    pub interface_mtu_bytes: u32,
    /// True when larger packets are dropped without an ICMP error.
    pub black_hole: bool,
    /// IP-layer rate of full packets that arrive; `null` where neither a link, a policer nor the sender's queueing
    /// discipline has a rate.
    pub capacity_bits_per_second: Option<f64>,
    /// Part of it that other traffic keeps without yielding; 0 without such traffic.
    pub taken_bits_per_second: f64,
    /// True when other traffic comes and goes, or shares the capacity.
    pub contended: bool,
    /// Share of packets that do not arrive when no queue overflows, 0 to 1.
    pub loss: f64,
    /// True when losses come in bursts.
    pub bursty: bool,
    /// Period of periodic loss; `null` where loss is not periodic.
    pub periodic_loss_packets: Option<u64>,
    /// Share of packets that arrive twice, 0 to 1.
    pub duplication: f64,
    /// True when packets overtake others.
    pub reordering: bool,
    /// Maximum time by which packets overtake others; 0 where they do not.
    pub overtaking_seconds: f64,
    /// Standard deviation, or half the width, of the delay; 0 where it does not vary.
    pub jitter_seconds: f64,
    /// Rate of the strictest policer; `null` without a policer.
    pub policer_bits_per_second: Option<f64>,
    /// Bucket of that policer; `null` without a policer.
    pub policer_burst_bytes: Option<u64>,
    /// True when the ECN bits are cleared on the path.
    pub bleaches_ecn: bool,
    /// True when ECT(1) becomes ECT(0) on the path.
    pub rewrites_ect1: bool,
}
