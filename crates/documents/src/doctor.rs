//! Document of `linerate doctor --json`: a complete guided run.

use serde::{Deserialize, Serialize};

use super::tune::{MeasuredEffect, TuneDocument};
use linerate_model::load::LoadDocument;
use linerate_model::path::{PathDocument, UnknownValue};
use linerate_model::report::TestTermination;

/// Version of this document's schema.
pub const SCHEMA: u32 = 1;

/// One guided run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DoctorDocument {
    /// Schema version ([`SCHEMA`]).
    pub schema: u32,
    /// Version of linerate that ran.
    pub linerate_version: String,
    /// Remote host as given by the user.
    pub host: String,
    /// Port of the host.
    pub port: u16,
    /// Start time in nanoseconds since 1970-01-01 00:00 UTC.
    pub started_at_unix_ns: u64,
    /// Duration in nanoseconds, without the steps of an earlier run.
    pub duration_ns: u64,
    /// Outcome of the run.
    pub termination: TestTermination,
    /// Findings and actions, in one sentence.
    pub sentence: String,
    /// Steps with their results, in order.
    pub steps: Vec<DoctorStep>,
    /// Measured path; `null` where it was not measured.
    pub path: Option<Box<PathDocument>>,
    /// Latency under load before any change.
    pub load_before: Option<Box<LoadDocument>>,
    /// Diagnosis, plan, trials and kept changes.
    pub tune: Option<Box<TuneDocument>>,
    /// Predicted effect of a well-known recommendation.
    pub comparison: Option<RecommendationComparison>,
    /// Latency under load with the kept changes; `null` where none were kept.
    pub load_after: Option<Box<LoadDocument>>,
    /// Figures before and after.
    pub effects: Vec<MeasuredEffect>,
    /// Steps and figures that are missing: name → reason.
    #[serde(default)]
    pub unknown: Vec<UnknownValue>,
    /// Notes shown below the table.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// Stage of a guided run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum DoctorStage {
    /// The path is measured.
    Path,
    /// Latency under load is measured.
    Load,
    /// The limiting cause is found.
    Diagnose,
    /// Changes are proposed.
    Plan,
    /// A group of changes is tried.
    Trial,
    /// The result is verified.
    Verify,
}

impl DoctorStage {
    /// Name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Load => "load",
            Self::Diagnose => "diagnose",
            Self::Plan => "plan",
            Self::Trial => "trial",
            Self::Verify => "verify",
        }
    }
}

/// One step of a guided run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DoctorStep {
    /// Step.
    pub name: DoctorStage,
    /// Result in one sentence.
    pub text: String,
    /// Duration in nanoseconds.
    pub duration_ns: u64,
    /// True when an earlier, interrupted run completed the step.
    pub resumed: bool,
}

/// Third-party recommendation for such a path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RecommendationComparison {
    /// Source, for example `RHEL guide, TCP throughput`.
    pub source: String,
    /// Settings and their values, one `key = value` each.
    pub settings: Vec<String>,
    /// Derivation of the value, with its errors.
    pub arithmetic: String,
    /// Goodput predicted by the formula for these settings.
    pub predicted_bits_per_second: Option<f64>,
    /// Goodput measured with them; `null` where they were not tried.
    pub measured_bits_per_second: Option<f64>,
    /// Payload capacity of the path.
    pub capacity_bits_per_second: Option<f64>,
}
