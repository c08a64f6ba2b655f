//! The throughput test for people: several runs over one path, side by side.

use linerate_units::{Port, StreamCount};

use crate::diagnosis::Diagnosis;
use crate::event::TestStart;
use crate::report::TestReport;
use crate::sample::IntervalReport;
use crate::summary::Distribution;

/// Which way the data of a run flows, seen from the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Flow {
    /// From the client to the server.
    Up,
    /// From the server to the client.
    Down,
}

/// One test of the series.
#[derive(Clone, Debug, PartialEq)]
pub struct ThroughputRun {
    /// Which way.
    pub flow: Flow,
    /// Parallel streams.
    pub streams: StreamCount,
    /// How it started; `None` when it never did.
    pub start: Option<TestStart>,
    /// Intervals as this end saw them.
    pub intervals: Vec<IntervalReport>,
    /// How it ended.
    pub report: TestReport,
    /// What limited it, from what both ends saw; `None` where that says nothing.
    pub diagnosis: Option<Diagnosis>,
}

/// The whole series.
#[derive(Clone, Debug, PartialEq)]
pub struct ThroughputResult {
    /// The host as the user wrote it.
    pub host: String,
    /// Its port.
    pub port: Port,
    /// Whether the peer is a linerate; else what only a linerate tells is unknown.
    pub peer_is_linerate: bool,
    /// Round-trip times of the connections' handshakes, before any load.
    pub idle_rtt: Option<Distribution>,
    /// In the order in which they ran.
    pub runs: Vec<ThroughputRun>,
}
