//! Throughput test for people: several runs over one path, for comparison.

mod figures;

use crate::direction::Direction;
use linerate_units::{Port, StreamCount};

use crate::diagnosis::TransferDiagnosis;
use crate::event::TestStart;
use crate::quic::QuicResult;
use crate::report::TestReport;
use crate::sample::IntervalReport;
use crate::summary::DurationDistribution;

pub use figures::{LoadedRtt, MeasuredRate, rtt_samples};

/// One test of the series.
#[derive(Clone, Debug, PartialEq)]
pub struct ThroughputRun {
    /// Direction.
    pub direction: Direction,
    /// Parallel streams.
    pub streams: StreamCount,
    /// Start of the test; `None` when it never started.
    pub start: Option<TestStart>,
    /// Intervals as observed by the local host.
    pub intervals: Vec<IntervalReport>,
    /// Report of the test.
    pub report: TestReport,
    /// Diagnosis, from observations at both ends; `None` where they do not suffice.
    pub diagnosis: Option<TransferDiagnosis>,
}

/// Result of the whole series.
#[derive(Clone, Debug, PartialEq)]
pub struct ThroughputResult {
    /// The host as the user wrote it.
    pub host: String,
    /// Port of the host; of one that dialed in, the port on which this host waited.
    pub port: Port,
    /// True when the server opened the connections (`--listen`).
    pub dialed_in: bool,
    /// True when the peer runs linerate; else values that only linerate reports are unknown.
    pub peer_is_linerate: bool,
    /// Round-trip times of the connections' handshakes, before any load.
    pub idle_rtt: Option<DurationDistribution>,
    /// Runs in the order in which they ran.
    pub runs: Vec<ThroughputRun>,
    /// The same over QUIC; `None` when it was not requested.
    pub quic: Option<QuicResult>,
}
