//! Document of `linerate load --json`: latency on the idle path, and with the downlink, the uplink and both loaded.

use crate::diagnosis::Confidence;
use crate::direction::Direction;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use super::path::{PathHop, PeerKind, UnknownValue};
use super::report::TestTermination;
use super::summary::DurationDistribution;
use super::traffic_profile::ProfileResult;
pub use linerate_analysis::latency_under_load::{
    DualQueue, LatencyClass, LatencyGrade, MedianDelay, ResponsivenessMethod,
};
use linerate_analysis::statistics::SampleSummary;
use linerate_units::serde::nanoseconds;

/// Version of this document's schema.
pub const SCHEMA: u32 = 1;

/// Latency under load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadDocument {
    /// Schema version ([`SCHEMA`]).
    pub schema: u32,
    /// Version of linerate that measured.
    pub linerate_version: String,
    /// The host as the user wrote it.
    pub host: String,
    /// Port of the host.
    pub port: u16,
    /// Kind of server that answers.
    pub peer: PeerKind,
    /// Start time in nanoseconds since 1970-01-01 00:00 UTC.
    pub started_at_unix_ns: u64,
    /// Duration in nanoseconds.
    pub duration_ns: u64,
    /// Outcome of the run.
    pub termination: TestTermination,
    /// Congestion control of the load, confirmed by both hosts.
    pub congestion_control: Option<String>,
    /// Connections of the load per direction.
    pub connections: u64,
    /// Phases in the order in which they ran.
    pub phases: Vec<LoadPhase>,
    /// Grade; `None` when there is none, with the reason in `ungraded_because`.
    pub grade: Option<LoadGrade>,
    /// Reason why there is no grade.
    pub ungraded_because: Option<String>,
    /// Responsiveness (draft-ietf-ippm-responsiveness).
    pub responsiveness: Option<PhaseResponsiveness>,
    /// Test over HTTP/2; `None` of one over linerate's own protocol.
    #[serde(default)]
    pub http: Option<HttpLoad>,
    /// Location of the queue, per loaded direction.
    pub queues: Vec<QueueFinding>,
    /// Dual queue per loaded direction, where ECN codepoints were probed.
    #[serde(default)]
    pub dual_queues: Vec<DualQueueFinding>,
    /// Traffic profiles next to each phase, where they were requested.
    #[serde(default)]
    pub profiles: Vec<ProfileResult>,
    /// Cross traffic during the phases.
    pub contamination: Option<CrossTrafficFinding>,
    /// Values that could not be measured: key → reason.
    #[serde(default)]
    pub unknown: Vec<UnknownValue>,
    /// Notes shown below the table.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// Loaded direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PhaseKind {
    /// None: the path is idle.
    Idle,
    /// From the remote to the local host.
    Down,
    /// From the local to the remote host.
    Up,
    /// Both directions.
    Both,
}

impl PhaseKind {
    /// Name used in documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Down => "down",
            Self::Up => "up",
            Self::Both => "both",
        }
    }

    /// Directions that are loaded.
    #[must_use]
    pub const fn directions(self) -> &'static [Direction] {
        match self {
            Self::Idle => &[],
            Self::Down => &[Direction::Down],
            Self::Up => &[Direction::Up],
            Self::Both => &[Direction::Down, Direction::Up],
        }
    }
}

/// One phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadPhase {
    /// Loaded direction.
    pub kind: PhaseKind,
    /// Nanoseconds since the measurement began.
    pub start_ns: u64,
    /// Time at which the load was stable, and counting began.
    pub stable_ns: Option<u64>,
    /// Nanoseconds since the measurement began.
    pub end_ns: u64,
    /// True when the throughput was stable before counting began.
    pub stable: Option<bool>,
    /// Payload rate of the load while it counted, uplink.
    pub goodput_up_bits_per_second: Option<f64>,
    /// Payload rate of the load while it counted, downlink.
    pub goodput_down_bits_per_second: Option<f64>,
    /// Retransmitted TCP segments, both directions together.
    pub retransmitted_segments: Option<u64>,
    /// Results by class of probes.
    pub classes: Vec<ProbeClass>,
}

/// Results of one class in one phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProbeClass {
    /// Probe class.
    pub class: LatencyClass,
    /// Probes sent while it counted.
    pub sent: Option<u64>,
    /// Probes lost.
    pub lost: Option<u64>,
    /// Lost probes on the uplink, where the remote host counts them.
    pub lost_up: Option<u64>,
    /// Lost probes on the downlink.
    pub lost_down: Option<u64>,
    /// Round-trip times.
    pub rtt: Option<DurationDistribution>,
    /// More percentiles.
    pub percentiles: Option<LatencyPercentiles>,
    /// Points of the cumulative distribution of the round-trip times: nanoseconds at equal steps of share.
    #[serde(default)]
    pub cdf_ns: Vec<u64>,
    /// Delay of the uplink, relative to the smallest of the idle phase.
    pub up: Option<DurationDistribution>,
    /// Delay of the downlink, relative to the smallest of the idle phase.
    pub down: Option<DurationDistribution>,
    /// Median under load minus idle median of the same class.
    pub uplift_median_ns: Option<i64>,
    /// 95th percentile under load minus idle median of the same class.
    pub uplift_p95_ns: Option<i64>,
    /// Mean absolute difference of consecutive round trips.
    pub ipdv_mean_ns: Option<u64>,
}

/// Percentiles in addition to those of [`DurationDistribution`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LatencyPercentiles {
    /// 5th percentile.
    pub p5_ns: u64,
    /// 25th percentile.
    pub p25_ns: u64,
    /// 75th percentile.
    pub p75_ns: u64,
    /// 90th percentile.
    pub p90_ns: u64,
    /// 99.9th percentile, from 1000 samples on.
    pub p999_ns: Option<u64>,
}

impl From<&SampleSummary<Duration>> for LatencyPercentiles {
    fn from(summary: &SampleSummary<Duration>) -> Self {
        Self {
            p5_ns: nanoseconds(summary.p5),
            p25_ns: nanoseconds(summary.p25),
            p75_ns: nanoseconds(summary.p75),
            p90_ns: nanoseconds(summary.p90),
            p999_ns: summary.p999.map(nanoseconds),
        }
    }
}

/// Grade of the latency under load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadGrade {
    /// Grade of the worse direction.
    pub letter: LatencyGrade,
    /// Added delay that determined the grade: the worse direction, the worse of UDP best effort and TCP in-band.
    pub added_ns: u64,
    /// Class that determined the grade.
    pub class: LatencyClass,
    /// Direction that determined the grade.
    pub direction: Direction,
    /// Grade of the uplink phase.
    pub up: Option<LatencyGrade>,
    /// Grade of the downlink phase.
    pub down: Option<LatencyGrade>,
    /// Thresholds: letter and added delay below which it is given, in nanoseconds; all others get `F`.
    pub thresholds: Vec<(LatencyGrade, u64)>,
}

/// Responsiveness in round trips per minute.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PhaseResponsiveness {
    /// Method.
    pub method: ResponsivenessMethod,
    /// Downlink loaded.
    pub down: Option<f64>,
    /// Uplink loaded.
    pub up: Option<f64>,
    /// Both directions loaded.
    pub both: Option<f64>,
    /// Confidence.
    pub confidence: Confidence,
}

/// Test over HTTP/2 against a responsiveness server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HttpLoad {
    /// Address and port of all connections.
    pub address: String,
    /// Version of TLS, for example `1.3`.
    pub tls_version: String,
    /// Loaded phases in the order in which they ran.
    pub phases: Vec<HttpLoadPhase>,
}

/// Loaded phase of a test over HTTP/2. Times are means without the largest 5 %, over the last four intervals.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HttpLoadPhase {
    /// Loaded direction.
    pub kind: PhaseKind,
    /// Load-generating connections per direction at the end.
    pub connections: u64,
    /// Intervals of one second until the end.
    pub intervals: u64,
    /// Confidence in the goodput: high when it was stable, medium when it was not within four intervals or more.
    pub goodput_confidence: Confidence,
    /// Confidence in the responsiveness, likewise.
    pub responsiveness_confidence: Confidence,
    /// Round trips per minute on new connections.
    pub foreign_round_trips_per_minute: Option<f64>,
    /// Round trips per minute on the connections that generate the load.
    pub loaded_round_trips_per_minute: Option<f64>,
    /// TCP handshake of a new connection.
    pub tcp_handshake_ns: Option<u64>,
    /// TLS handshake of a new connection, per round trip.
    pub tls_handshake_ns: Option<u64>,
    /// First request on a new connection.
    pub foreign_request_ns: Option<u64>,
    /// Request on a connection that generates the load.
    pub loaded_request_ns: Option<u64>,
    /// New connections on which a request was answered.
    pub foreign_probes: u64,
    /// Answered requests on connections that generate the load.
    pub loaded_probes: u64,
    /// Probes without an answer.
    pub failed_probes: u64,
}

/// Hop of the path at which a queue is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum QueueHost {
    /// No significant queue.
    Nowhere,
    /// This host.
    ThisHost,
    /// Next hop.
    NextHop,
    /// Further away.
    Beyond,
    /// Undetermined: too few hops answer.
    Unknown,
}

/// Finding about the queue that the load of one direction fills.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QueueFinding {
    /// Loaded direction.
    pub direction: Direction,
    /// Location.
    pub location: QueueHost,
    /// Delay that the queue adds (median).
    pub added_ns: Option<u64>,
    /// `true` when, by one-way delays, only the loaded direction's delay grew.
    pub one_way_confirms: Option<bool>,
    /// Evidence in one sentence.
    pub evidence: String,
    /// Hops that answered while it was loaded.
    #[serde(default)]
    pub hops: Vec<PathHop>,
}

/// Finding about a dual queue (RFC 9332) in one loaded direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DualQueueFinding {
    /// Loaded direction.
    pub direction: Direction,
    /// Presence.
    pub finding: DualQueue,
    /// Evidence in one sentence.
    pub evidence: String,
    /// Delay of probes without ECN in the loaded direction, above the smallest of the idle path.
    pub not_ect: Option<MedianDelay>,
    /// The same with ECT(0).
    pub ect0: Option<MedianDelay>,
    /// The same with ECT(1).
    pub ect1: Option<MedianDelay>,
    /// Share of probes with ECT(1) that arrive with it, of those without a mark; `None` where the far end does not report it.
    pub ect1_intact: Option<f64>,
    /// Share of probes with ECT(1) that arrive marked (CE).
    pub ect1_marked: Option<f64>,
}

/// Cross traffic during the measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CrossTrafficFinding {
    /// True when it is too much to grade.
    pub spoils: bool,
    /// Largest share of cross traffic on the interface, over the phases.
    pub share: f64,
    /// Evidence in one sentence.
    pub evidence: String,
}
