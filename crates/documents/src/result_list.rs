//! Document of `linerate history list --results --json`: results of monitors and agents.

use linerate_units::WallTime;
use serde::{Deserialize, Serialize};

use super::civil_time::as_rfc3339;
use super::fleet_result::{FleetTestKind, SessionOutcome};

/// Version of this document's schema.
pub const SCHEMA: u32 = 1;

/// Results of monitors and agents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ResultListDocument {
    /// Schema version ([`SCHEMA`]).
    pub schema: u32,
    /// Results that match, the latest first.
    pub results: Vec<ListedResult>,
}

/// Test, or the light tests of an hour between two hosts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ListedResult {
    /// Identity of the result; `null` for the tests of an hour.
    pub id: Option<String>,
    /// Planned time of the test, or start of the hour, in UTC, as RFC 3339 writes it: `2026-11-21T23:51:07Z`.
    #[serde(with = "as_rfc3339")]
    #[cfg_attr(test, schemars(with = "String"))]
    pub at: WallTime,
    /// Name of the task of the description; `test` or `probe` of a monitor.
    pub task: String,
    /// Type of the test: `throughput`, `diagnose`, `load`, `rtt`, ….
    #[cfg_attr(test, schemars(with = "String"))]
    pub test: FleetTestKind,
    /// Name of the address whose agent started the test.
    pub source: String,
    /// Name of the other address.
    pub destination: String,
    /// Number of tests.
    pub count: usize,
    /// Outcome; `null` for the tests of an hour, whose outcomes may differ.
    pub outcome: Option<SessionOutcome>,
    /// Result in one sentence, the reason why there is none, or the sums of the hour.
    pub verdict: String,
}
