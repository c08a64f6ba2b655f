//! Document of `linerate history compare --json`: runs before and after, figure by figure.

use serde::Serialize;

use super::run::{RunComparison, RunKind};

/// Version of this document's schema.
pub const SCHEMA: u32 = 1;

/// Confidence level of the intervals.
pub const CONFIDENCE: f64 = 0.95;

/// Comparison of two sides of runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ComparisonDocument {
    /// Schema version ([`SCHEMA`]).
    pub schema: u32,
    /// First side.
    pub before: ComparedRuns,
    /// Second side.
    pub after: ComparedRuns,
    /// Confidence level of all intervals, 0 to 1 ([`CONFIDENCE`]).
    pub confidence: f64,
    /// Figures, and differences of the environment.
    pub comparison: RunComparison,
}

/// Runs of one side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ComparedRuns {
    /// Number of the last run.
    pub id: i64,
    /// Numbers of all runs, in the order of the command line.
    pub ids: Vec<i64>,
    /// Host of the last run, as given by the user.
    pub host: String,
    /// Command that measured.
    pub kind: RunKind,
}
