//! Document of `linerate rfc6349 --json`: the procedure of RFC 6349 and its three metrics.

use linerate_model::direction::Direction;
use serde::{Deserialize, Serialize};

use linerate_model::path::{PathDocument, PolicerDetection, UnknownValue};
use linerate_model::report::TestTermination;

/// Version of this document's schema.
pub const SCHEMA: u32 = 1;

/// RFC 6349 test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Rfc6349Document {
    /// Schema version ([`SCHEMA`]).
    pub schema: u32,
    /// Version of linerate that measured.
    pub linerate_version: String,
    /// The host as the user wrote it.
    pub host: String,
    /// Port of the host.
    pub port: u16,
    /// Start time in nanoseconds since 1970-01-01 00:00 UTC.
    pub started_at_unix_ns: u64,
    /// Duration in nanoseconds.
    pub duration_ns: u64,
    /// Outcome of the run.
    pub termination: TestTermination,
    /// Steps 1 and 2 (path MTU, baseline round trip, bottleneck bandwidth).
    pub path: PathDocument,
    /// Basis of the expected figures.
    pub baseline: Rfc6349Baseline,
    /// Step 3: tests in the order in which they ran.
    pub tests: Vec<TcpTest>,
    /// Sweep over window sizes.
    pub windows: Vec<WindowTest>,
    /// Optional traffic-management test (RFC 6349 §5).
    pub traffic_management: Vec<TrafficManagement>,
    /// Values that could not be measured: key → reason.
    #[serde(default)]
    pub unknown: Vec<UnknownValue>,
    /// Notes shown below the table.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// Basis of the expected figures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Rfc6349Baseline {
    /// Smallest round trip without load.
    pub rtt_ns: Option<u64>,
    /// Bottleneck bandwidth up, IP layer.
    pub bandwidth_up_bits_per_second: Option<f64>,
    /// Bottleneck bandwidth down, IP layer.
    pub bandwidth_down_bits_per_second: Option<f64>,
    /// Path MTU up.
    pub mtu_up_bytes: Option<u64>,
    /// Path MTU down.
    pub mtu_down_bytes: Option<u64>,
    /// Bandwidth-delay product up: the smallest window that fills the path.
    pub bdp_up_bytes: Option<u64>,
    /// Bandwidth-delay product down.
    pub bdp_down_bytes: Option<u64>,
    /// Largest TCP payload rate up.
    pub achievable_up_bits_per_second: Option<f64>,
    /// Largest TCP payload rate down.
    pub achievable_down_bits_per_second: Option<f64>,
}

/// Directions of the data in a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LoadedDirections {
    /// From the local host.
    Up,
    /// To the local host.
    Down,
    /// Both at once; each set of metrics is for one direction.
    Both,
}

impl LoadedDirections {
    /// All values.
    pub const ALL: [Self; 3] = [Self::Up, Self::Down, Self::Both];

    /// Name in documents: `up`, `down` or `both`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Up => Direction::Up.name(),
            Self::Down => Direction::Down.name(),
            Self::Both => "both",
        }
    }
}

/// One TCP throughput test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TcpTest {
    /// Directions of the data.
    pub flows: LoadedDirections,
    /// Direction of these metrics.
    pub direction: Direction,
    /// Connections.
    pub connections: u64,
    /// Goodput: payload received per second.
    pub goodput_bits_per_second: Option<f64>,
    /// Share of the achievable rate.
    pub share_of_achievable: Option<f64>,
    /// Actual over ideal transfer time (RFC 6349 §4.1).
    pub transfer_time_ratio: Option<f64>,
    /// Share of the sent bytes that were not retransmitted (RFC 6349 §4.2).
    pub efficiency: Option<f64>,
    /// Mean round trip under load over the baseline, minus one (RFC 6349 §4.3); a share, 0.28 for 28 %.
    pub buffer_delay: Option<f64>,
    /// Mean round trip during the transfer.
    pub mean_rtt_ns: Option<u64>,
    /// Payload bytes received.
    pub bytes: Option<u64>,
    /// Duration of the transfer.
    pub duration_ns: Option<u64>,
    /// Interpretation of the three metrics.
    pub meaning: String,
    /// Reason why it did not run or did not complete.
    pub problem: Option<String>,
}

/// Result of one window size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WindowTest {
    /// Direction.
    pub direction: Direction,
    /// Requested window in bytes.
    pub window_bytes: u64,
    /// Ratio of the window to the bandwidth-delay product.
    pub share_of_bdp: Option<f64>,
    /// Largest window that the sender observed.
    pub observed_window_bytes: Option<u64>,
    /// Window over round trip, or the achievable rate where that is less.
    pub expected_bits_per_second: Option<f64>,
    /// Payload rate received.
    pub achieved_bits_per_second: Option<f64>,
    /// Achieved over expected.
    pub ratio: Option<f64>,
}

/// Traffic management of a direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ManagementVerdict {
    /// Packets above a rate are dropped.
    Policed,
    /// Packets above a rate wait in a queue.
    Shaped,
    /// Neither.
    Neither,
    /// Undetermined.
    Unknown,
}

impl ManagementVerdict {
    /// Name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Policed => "policed",
            Self::Shaped => "shaped",
            Self::Neither => "neither",
            Self::Unknown => "unknown",
        }
    }
}

/// Traffic-management test of one direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TrafficManagement {
    /// Direction.
    pub direction: Direction,
    /// Verdict.
    pub verdict: ManagementVerdict,
    /// Policer that was found.
    pub policer: Option<PolicerDetection>,
    /// Evidence for the verdict.
    pub evidence: String,
}
