//! Document of a test in a browser, as the server measured it (`linerate serve --web`).
//!
//! Byte counts, rates and the state of the connections are those of the server's own sockets. Round trips of the phases are
//! the browser's: their keys begin with `browser_`, and nothing verifies them.

use linerate_model::diagnosis::DiagnosisVerdict;
use linerate_model::direction::Direction;
use linerate_model::limit::LimitShares;
use linerate_model::load::{LatencyGrade, PhaseKind};
use linerate_model::path::UnknownValue;
use linerate_model::report::TestTermination;
use linerate_model::summary::DurationDistribution;
use serde::{Deserialize, Serialize};

/// Version of this document's schema.
pub const SCHEMA: u32 = 1;

/// Test in a browser.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WebDocument {
    /// Schema version ([`SCHEMA`]).
    pub schema: u32,
    /// Version of linerate that measured.
    pub linerate_version: String,
    /// Address of the browser.
    pub host: String,
    /// Port of the server's web page.
    pub port: u16,
    /// Start time in nanoseconds since 1970-01-01 00:00 UTC.
    pub started_at_unix_ns: u64,
    /// Duration in nanoseconds.
    pub duration_ns: u64,
    /// Outcome of the run.
    pub termination: TestTermination,
    /// Name that the browser gives itself (`User-Agent`), shortened; not verified.
    pub browser: Option<String>,
    /// Congestion control of the server's connections.
    pub congestion_control: Option<String>,
    /// Limit of the server for all its traffic.
    pub rate_limit_bits_per_second: Option<f64>,
    /// Phases, in order of time.
    pub phases: Vec<WebPhase>,
    /// Grade of the latency under load, by the browser's round trips.
    pub grade: Option<WebGrade>,
    /// Reason why there is no grade.
    pub ungraded_because: Option<String>,
    /// Figures that could not be observed: name → reason.
    #[serde(default)]
    pub unknown: Vec<UnknownValue>,
    /// Notes shown below the table.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// One phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WebPhase {
    /// Direction of the load, as seen from the browser.
    pub kind: PhaseKind,
    /// Nanoseconds since the measurement began.
    pub start_ns: u64,
    /// Nanoseconds since the measurement began.
    pub end_ns: u64,
    /// Number of connections that carried the load.
    pub connections: u32,
    /// Payload rate after the first second: acknowledged to the server, or received by it.
    pub goodput_bits_per_second: Option<f64>,
    /// Bytes acknowledged or received in the whole phase.
    pub bytes: Option<u64>,
    /// Round trips that the browser reports, of small requests on a connection of their own.
    pub browser_rtt: Option<DurationDistribution>,
    /// Median of the browser's round trips minus that of the idle phase, in nanoseconds.
    pub browser_added_median_ns: Option<i64>,
    /// 95th percentile of the browser's round trips minus the median of the idle phase, in nanoseconds.
    pub browser_added_p95_ns: Option<i64>,
    /// Smoothed round trips of the loaded connections, by the server's kernel.
    pub kernel_rtt: Option<DurationDistribution>,
    /// Smallest round trip of the loaded connections, by the server's kernel.
    pub kernel_rtt_min_ns: Option<u64>,
    /// Median congestion window of the server's connections, all together, in bytes.
    pub congestion_window_bytes: Option<u64>,
    /// Segments that the server retransmitted.
    pub retransmitted_segments: Option<u64>,
    /// Retransmitted share of the bytes that the server sent.
    pub retransmitted_share: Option<f64>,
    /// Shares of the time under each limit, by the server's kernel.
    pub limits: Option<LimitShares>,
    /// Limiting causes by the server's view alone, most important first.
    pub verdicts: Vec<DiagnosisVerdict>,
}

/// Grade of the latency under load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WebGrade {
    /// Grade of the worse direction.
    pub letter: LatencyGrade,
    /// Added delay that determined the grade.
    pub added_ns: u64,
    /// Direction that determined the grade.
    pub direction: Direction,
    /// True when the loaded connections waited as long, by the server's kernel, so that the delay is one of the path; false when
    /// they did not, so that the browser or a host was busy. `None` for an upload, whose round trips the server does not know.
    pub is_on_path: Option<bool>,
    /// Grade of the upload.
    pub up: Option<LatencyGrade>,
    /// Grade of the download.
    pub down: Option<LatencyGrade>,
    /// Thresholds: letter and added delay below which it is given, in nanoseconds; all others get `F`.
    pub thresholds: Vec<(LatencyGrade, u64)>,
}

impl WebDocument {
    /// Phase of this kind.
    #[must_use]
    pub fn phase(&self, kind: PhaseKind) -> Option<&WebPhase> {
        self.phases.iter().find(|phase| phase.kind == kind)
    }
}
