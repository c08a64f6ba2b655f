//! The document of `linerate rfc6349 --json`: the procedure of RFC 6349 and its three metrics.

use serde::{Deserialize, Serialize};

use super::path::{PathDocument, Policer, Unknown};
use super::throughput::{Direction, Termination};

/// Version of the shape.
pub const SCHEMA: u32 = 1;

/// A test after RFC 6349.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Rfc6349Document {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The linerate that measured.
    pub linerate_version: String,
    /// The host as the user wrote it.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// When it began: nanoseconds since 1970-01-01 00:00 UTC.
    pub started_at_unix_ns: u64,
    /// How long it took.
    pub duration_ns: u64,
    /// How it ended.
    pub termination: Termination,
    /// Steps 1 and 2 (path MTU, baseline round trip, bottleneck bandwidth).
    pub path: PathDocument,
    /// The figures that the expectations rest on.
    pub baseline: Baseline,
    /// Step 3, in the order in which they ran.
    pub tests: Vec<TcpTest>,
    /// The sweep over window sizes.
    pub windows: Vec<WindowTest>,
    /// The optional traffic-management test (RFC 6349 §5).
    pub traffic_management: Vec<TrafficManagement>,
    /// What could not be measured: name of the key → why.
    #[serde(default)]
    pub unknown: Vec<Unknown>,
    /// What a reader should know.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// The figures that the expectations rest on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Baseline {
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

/// Which way the data of a test flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Flows {
    /// From here.
    Up,
    /// To here.
    Down,
    /// Both at once; the metrics are of one direction each.
    Both,
}

/// One TCP throughput test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TcpTest {
    /// What flowed.
    pub flows: Flows,
    /// The direction that these metrics are of.
    pub direction: Direction,
    /// Connections.
    pub connections: u64,
    /// Payload that arrived per second.
    pub goodput_bits_per_second: Option<f64>,
    /// Its share of the achievable rate.
    pub share_of_achievable: Option<f64>,
    /// Actual over ideal transfer time (RFC 6349 §4.1).
    pub transfer_time_ratio: Option<f64>,
    /// Share of the sent bytes that were not sent again (RFC 6349 §4.2).
    pub efficiency: Option<f64>,
    /// Mean round trip under load over the baseline, minus one (RFC 6349 §4.3); a share, 0.28 for 28 %.
    pub buffer_delay: Option<f64>,
    /// Mean of the round trips during the transfer.
    pub mean_rtt_ns: Option<u64>,
    /// Payload bytes that arrived.
    pub bytes: Option<u64>,
    /// Time of the transfer.
    pub duration_ns: Option<u64>,
    /// What the three metrics say together.
    pub meaning: String,
    /// Why it did not run or not to its end.
    pub problem: Option<String>,
}

/// One window size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WindowTest {
    /// The direction.
    pub direction: Direction,
    /// The window asked for, in bytes.
    pub window_bytes: u64,
    /// The share of the bandwidth-delay product that it is.
    pub share_of_bdp: Option<f64>,
    /// The largest window that the sender really saw.
    pub observed_window_bytes: Option<u64>,
    /// Window over round trip, or the achievable rate where that is less.
    pub expected_bits_per_second: Option<f64>,
    /// What arrived.
    pub achieved_bits_per_second: Option<f64>,
    /// Achieved over expected.
    pub ratio: Option<f64>,
}

/// The traffic-management test of one direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TrafficManagement {
    /// The direction.
    pub direction: Direction,
    /// `policed`, `shaped` or `neither`.
    pub verdict: String,
    /// The policer that was found.
    pub policer: Option<Policer>,
    /// What it rests on.
    pub evidence: String,
}
