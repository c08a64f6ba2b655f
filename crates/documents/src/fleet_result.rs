//! Result of one test of a fleet or of a monitor, also of one that was skipped: what its agent keeps, sends on, and what
//! `linerate fleet report` reads, one object a line.

use linerate_units::WallTime;
use serde::{Deserialize, Serialize};

use crate::run::{RunDocument, RunFigure};

/// Version of this document's schema.
pub const SCHEMA: u32 = 1;

/// Result of one test between two addresses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FleetResult {
    /// Schema version ([`SCHEMA`]).
    pub schema: u32,
    /// Identity: every copy of a result has the same, by which readers keep one of them.
    pub id: String,
    /// Name of the task of the description; `test` or `probe` of a monitor.
    pub task: String,
    /// Type of the test: `throughput`, `diagnose`, `load`, `rtt`, ….
    pub test: String,
    /// Name of the address whose agent started the test. Up is away from it.
    pub source: String,
    /// Name of the other address.
    pub destination: String,
    /// Time for which the test was planned, in nanoseconds since 1970-01-01 00:00 UTC.
    pub at_unix_ns: u64,
    /// Outcome.
    pub outcome: SessionOutcome,
    /// Reason why there is no result, or why it is a part of one.
    pub reason: Option<String>,
    /// Result in one sentence; empty without one.
    pub verdict: String,
    /// Figures, as those of the run.
    pub figures: Vec<RunFigure>,
    /// Addresses of the routers there, from the first to the last; empty when they were not looked for.
    pub route: Vec<String>,
    /// The run; `None` for a light test, whose figures are all of it, and without one.
    pub run: Option<Box<RunDocument>>,
}

/// Outcome of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SessionOutcome {
    /// It measured.
    Done,
    /// It was started, and has no result.
    Failed,
    /// It was not started, or linerate was ended during it.
    Skipped,
}

impl SessionOutcome {
    /// Name in documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
        }
    }
}

impl FleetResult {
    /// Identity of the test of a task between two addresses at a time.
    #[must_use]
    pub fn identity(task: &str, source: &str, destination: &str, at: WallTime) -> String {
        format!("{task}/{source}/{destination}/{}", at.since_unix_epoch().as_nanos())
    }

    /// Time for which the test was planned.
    #[must_use]
    pub const fn at(&self) -> WallTime {
        WallTime::from_unix(core::time::Duration::from_nanos(self.at_unix_ns))
    }

    /// Value of a figure, in its unit.
    #[must_use]
    pub fn figure(&self, name: &str) -> Option<f64> {
        self.figures.iter().find(|figure| figure.name == name)?.value
    }
}
