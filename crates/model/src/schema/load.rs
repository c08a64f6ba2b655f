//! The document of `linerate load --json`: latency while the path is idle, loaded down, up, and both ways.

use core::time::Duration;

use serde::{Deserialize, Serialize};

use super::nanoseconds;
use super::path::{Hop, Peer, Unknown};
use super::throughput::{Direction, Termination, TimeDistribution};
use crate::statistics::Summary;

/// Version of the shape.
pub const SCHEMA: u32 = 1;

/// Latency under load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LoadDocument {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The linerate that measured.
    pub linerate_version: String,
    /// The host as the user wrote it.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// What answers there.
    pub peer: Peer,
    /// When it began: nanoseconds since 1970-01-01 00:00 UTC.
    pub started_at_unix_ns: u64,
    /// How long it took.
    pub duration_ns: u64,
    /// How it ended.
    pub termination: Termination,
    /// Congestion control of the load, as both ends confirm it.
    pub congestion_control: Option<String>,
    /// Connections of the load per direction.
    pub connections: u64,
    /// In the order in which they ran.
    pub phases: Vec<Phase>,
    /// The grade; `None` when it cannot be given, and `ungraded_because` says why.
    pub grade: Option<Grade>,
    /// Why there is no grade.
    pub ungraded_because: Option<String>,
    /// Responsiveness (draft-ietf-ippm-responsiveness).
    pub responsiveness: Option<Responsiveness>,
    /// Where the queue stands, per loaded direction.
    pub queues: Vec<QueuePlace>,
    /// Traffic of others during the phases.
    pub contamination: Option<Contamination>,
    /// What could not be measured: name of the key → why.
    #[serde(default)]
    pub unknown: Vec<Unknown>,
    /// What a reader should know.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// What is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PhaseKind {
    /// Nothing.
    Idle,
    /// From the far end to here.
    Down,
    /// From here to the far end.
    Up,
    /// Both ways.
    Both,
}

impl PhaseKind {
    /// Its name, as documents write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Down => "down",
            Self::Up => "up",
            Self::Both => "both",
        }
    }
}

/// One phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Phase {
    /// What is loaded.
    pub kind: PhaseKind,
    /// Nanoseconds since the measurement began.
    pub start_ns: u64,
    /// When the load was stable, and counting began.
    pub stable_ns: Option<u64>,
    /// Nanoseconds since the measurement began.
    pub end_ns: u64,
    /// Whether the throughput came to stand still before counting began.
    pub stable: Option<bool>,
    /// Payload of the load's connections while it counted.
    pub goodput_up_bits_per_second: Option<f64>,
    /// The same, down.
    pub goodput_down_bits_per_second: Option<f64>,
    /// TCP segments sent again, both ways.
    pub retransmitted_segments: Option<u64>,
    /// Each class of probes.
    pub classes: Vec<ProbeClass>,
}

/// A class of probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ClassName {
    /// ICMP echo.
    Icmp,
    /// UDP without a mark.
    UdpBestEffort,
    /// UDP marked EF.
    UdpExpeditedForwarding,
    /// Small messages on the loaded connections.
    TcpApplication,
    /// The kernel's round-trip times of the loaded connections.
    TcpInfo,
    /// New TCP connections.
    TcpHandshake,
}

impl ClassName {
    /// What a person reads.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Icmp => "ICMP echo",
            Self::UdpBestEffort => "UDP best effort",
            Self::UdpExpeditedForwarding => "UDP EF",
            Self::TcpApplication => "TCP in-band",
            Self::TcpInfo => "TCP kernel",
            Self::TcpHandshake => "TCP handshake",
        }
    }
}

/// What one class saw in one phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ProbeClass {
    /// Which class.
    pub class: ClassName,
    /// Probes sent while it counted.
    pub sent: Option<u64>,
    /// Probes lost.
    pub lost: Option<u64>,
    /// … of them on the way up, where the far end counts.
    pub lost_up: Option<u64>,
    /// … of them on the way down.
    pub lost_down: Option<u64>,
    /// Round-trip times.
    pub rtt: Option<TimeDistribution>,
    /// More percentiles.
    pub percentiles: Option<Percentiles>,
    /// Points of the cumulative distribution of the round-trip times: nanoseconds at equal steps of share.
    #[serde(default)]
    pub cdf_ns: Vec<u64>,
    /// Delay up, relative to the smallest of the idle phase.
    pub up: Option<TimeDistribution>,
    /// Delay down, relative to the smallest of the idle phase.
    pub down: Option<TimeDistribution>,
    /// Median under load minus idle median of the same class.
    pub uplift_median_ns: Option<i64>,
    /// 95th percentile under load minus idle median of the same class.
    pub uplift_p95_ns: Option<i64>,
    /// Mean absolute difference of consecutive round trips.
    pub ipdv_mean_ns: Option<u64>,
}

/// Percentiles beside those of [`TimeDistribution`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Percentiles {
    /// 5th.
    pub p5_ns: u64,
    /// 25th.
    pub p25_ns: u64,
    /// 75th.
    pub p75_ns: u64,
    /// 90th.
    pub p90_ns: u64,
    /// 99.9th, from 1000 readings on.
    pub p999_ns: Option<u64>,
}

impl From<&Summary<Duration>> for Percentiles {
    fn from(summary: &Summary<Duration>) -> Self {
        Self {
            p5_ns: nanoseconds(summary.p5),
            p25_ns: nanoseconds(summary.p25),
            p75_ns: nanoseconds(summary.p75),
            p90_ns: nanoseconds(summary.p90),
            p999_ns: summary.p999.map(nanoseconds),
        }
    }
}

/// The grade.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Grade {
    /// `A+` to `F`.
    pub letter: String,
    /// The delay that decided: the worse direction, the worse of UDP best effort and TCP in-band.
    pub added_ns: u64,
    /// Which class decided.
    pub class: ClassName,
    /// Which direction decided.
    pub direction: Direction,
    /// Grades per direction: of the phase up.
    pub up: Option<String>,
    /// Of the phase down.
    pub down: Option<String>,
    /// The thresholds: letter and the added delay below which it is given, in nanoseconds; `F` is the rest.
    pub thresholds: Vec<(String, u64)>,
}

/// Responsiveness in round trips per minute.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Responsiveness {
    /// The draft's name with its version.
    pub method: String,
    /// While loaded down.
    pub down: Option<f64>,
    /// While loaded up.
    pub up: Option<f64>,
    /// While loaded both ways.
    pub both: Option<f64>,
    /// `low`, `medium` or `high`.
    pub confidence: String,
}

/// Where a queue stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct QueuePlace {
    /// Which direction is loaded.
    pub direction: Direction,
    /// Where: `this_host`, `next_hop`, `beyond`, `unknown`.
    pub place: String,
    /// The delay it adds (median).
    pub added_ns: Option<u64>,
    /// Which direction's delay grew, by one-way delays: `true` when it is the loaded one alone.
    pub one_way_confirms: Option<bool>,
    /// What that rests on.
    pub evidence: String,
    /// The hops that answered while it was loaded.
    #[serde(default)]
    pub hops: Vec<Hop>,
}

/// Traffic of others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Contamination {
    /// Whether it is too much to grade.
    pub spoils: bool,
    /// Largest share of others in what went through the interface, over the phases.
    pub share: f64,
    /// What was seen.
    pub evidence: String,
}
