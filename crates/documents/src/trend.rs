//! Document of `linerate history trend --json`: one figure over the runs or results.

use serde::{Deserialize, Serialize};

use super::run::FigureUnit;

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
    pub id: Option<i64>,
    /// Start time in UTC, as RFC 3339 writes it: `2026-11-21T23:51:07Z`.
    pub started_at: String,
    /// Host of the run as given by the user; of a result, both hosts: `a -> b`.
    pub host: String,
    /// Unit of all values here.
    pub unit: FigureUnit,
    /// Value; `null` when it could not be measured.
    pub value: Option<f64>,
    /// Lower bound of the 95 % confidence interval; `null` where the run has no interval.
    pub low: Option<f64>,
    /// Upper bound of the 95 % confidence interval; `null` where the run has no interval.
    pub high: Option<f64>,
    /// Number of independent samples; `null` where the run does not have it.
    pub count: Option<u64>,
}
