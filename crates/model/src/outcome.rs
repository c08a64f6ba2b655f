//! Small types that several documents share: end of a run, order statistics.

use core::time::Duration;

use linerate_analysis::statistics::SampleSummary;
use linerate_units::serde::nanoseconds;
use serde::{Deserialize, Serialize};

use crate::report;
use crate::summary::DurationDistribution;

/// Outcome of a test, with details.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TerminationDetail {
    /// Outcome.
    pub outcome: Outcome,
    /// Signal that ended it, for [`Outcome::Interrupted`], for example `Interrupt(2)`.
    pub signal: Option<String>,
    /// Error message, for [`Outcome::Failed`].
    pub message: Option<String>,
}

/// Outcome of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Complete, as requested.
    Complete,
    /// The process that writes the document received a signal.
    Interrupted,
    /// The peer received a signal.
    PeerTerminated,
    /// An error.
    Failed,
}

/// Order statistics of measured times (nearest rank).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TimeDistribution {
    /// Number of samples.
    pub count: u64,
    /// Smallest.
    pub min_ns: u64,
    /// 50th percentile.
    pub median_ns: u64,
    /// Arithmetic mean.
    pub mean_ns: u64,
    /// 95th percentile.
    pub p95_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// Largest.
    pub max_ns: u64,
}

impl From<&report::TestTermination> for TerminationDetail {
    fn from(termination: &report::TestTermination) -> Self {
        let (outcome, signal, message) = match termination {
            report::TestTermination::Complete => (Outcome::Complete, None, None),
            report::TestTermination::Interrupted { signal } => (Outcome::Interrupted, Some(signal.clone()), None),
            report::TestTermination::PeerTerminated => (Outcome::PeerTerminated, None, None),
            report::TestTermination::Failed { message } => (Outcome::Failed, None, Some(message.clone())),
        };
        Self { outcome, signal, message }
    }
}

impl From<&DurationDistribution> for TimeDistribution {
    fn from(distribution: &DurationDistribution) -> Self {
        Self {
            count: distribution.count,
            min_ns: nanoseconds(distribution.min),
            median_ns: nanoseconds(distribution.median),
            mean_ns: nanoseconds(distribution.mean),
            p95_ns: nanoseconds(distribution.p95),
            p99_ns: nanoseconds(distribution.p99),
            max_ns: nanoseconds(distribution.max),
        }
    }
}

impl From<&SampleSummary<Duration>> for TimeDistribution {
    fn from(summary: &SampleSummary<Duration>) -> Self {
        Self {
            count: summary.count,
            min_ns: nanoseconds(summary.min),
            median_ns: nanoseconds(summary.median),
            mean_ns: nanoseconds(summary.mean),
            p95_ns: nanoseconds(summary.p95),
            p99_ns: nanoseconds(summary.p99),
            max_ns: nanoseconds(summary.max),
        }
    }
}
