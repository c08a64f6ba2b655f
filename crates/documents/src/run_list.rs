//! Document of `linerate history list --json`: recorded runs.

use linerate_model::report::Outcome;
use serde::{Deserialize, Serialize};

use super::run::RunKind;

/// Version of this document's schema.
pub const SCHEMA: u32 = 1;

/// Runs of the history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RunListDocument {
    /// Schema version ([`SCHEMA`]).
    pub schema: u32,
    /// Runs that match, the latest first; empty also without a history.
    pub runs: Vec<ListedRun>,
}

/// Recorded run, without its figures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ListedRun {
    /// Number of the run.
    pub id: i64,
    /// Start time in UTC, as RFC 3339 writes it: `2026-11-21T23:51:07Z`.
    pub started_at: String,
    /// Duration in nanoseconds.
    pub duration_ns: u64,
    /// Command that measured.
    pub kind: RunKind,
    /// Host as given by the user.
    pub host: String,
    /// Outcome of the run.
    pub outcome: Outcome,
    /// Result in one sentence.
    pub verdict: String,
    /// Name of the emulated path; `null` for a real one.
    pub lab_path: Option<String>,
    /// Tags of the user, in alphabetical order.
    pub tags: Vec<String>,
}
