//! Document of `linerate history list --json`: recorded runs.

use core::fmt;
use core::time::Duration;

use linerate_model::report::Outcome;
use linerate_units::WallTime;
use linerate_units::serde::Nanoseconds;
use serde::{Deserialize, Serialize};

use super::civil_time::as_rfc3339;
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

/// Number of a run, assigned when it is stored and never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct RunId(i64);

impl RunId {
    /// The run with that number, which may or may not exist.
    #[must_use]
    pub const fn new(number: i64) -> Self {
        Self(number)
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> i64 {
        self.0
    }
}

impl fmt::Display for RunId {
    /// The bare number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Recorded run, without its figures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ListedRun {
    /// Number of the run.
    pub id: RunId,
    /// Start time in UTC, as RFC 3339 writes it: `2026-11-21T23:51:07Z`.
    #[serde(with = "as_rfc3339")]
    #[cfg_attr(test, schemars(with = "String"))]
    pub started_at: WallTime,
    /// Duration in nanoseconds.
    #[serde(rename = "duration_ns", with = "Nanoseconds")]
    pub duration: Duration,
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
