//! Document of `linerate history trend --json`: one figure over the runs or results.

use linerate_units::WallTime;
use serde::{Deserialize, Serialize};

use super::civil_time::as_rfc3339;
use super::run::RunFigure;
use super::run_list::RunId;

/// Version of this document's schema.
pub const SCHEMA: u32 = 1;

/// Trend of a figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TrendDocument {
    /// Schema version ([`SCHEMA`]).
    pub schema: u32,
    /// Name of the figure, for example `goodput_down`.
    pub figure: String,
    /// Values, the earliest first.
    pub samples: Vec<TrendSample>,
}

/// Value of a figure in a run or a result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TrendSample {
    /// Number of the run; `null` for a result of a monitor or an agent.
    pub id: Option<RunId>,
    /// Start time in UTC, as RFC 3339 writes it: `2026-11-21T23:51:07Z`.
    #[serde(with = "as_rfc3339")]
    #[cfg_attr(test, schemars(with = "String"))]
    pub started_at: WallTime,
    /// Host of the run as given by the user; of a result, both hosts: `a -> b`.
    pub host: String,
    /// Figure; of a run without its note.
    #[serde(flatten)]
    pub figure: RunFigure,
}
