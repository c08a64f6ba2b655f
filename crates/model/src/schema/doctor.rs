//! The document of `linerate doctor --json`: the guided run as a whole.

use serde::{Deserialize, Serialize};

use super::load::LoadDocument;
use super::path::{PathDocument, Unknown};
use super::throughput::Termination;
use super::tune::{Effect, TuneDocument};

/// Version of the shape.
pub const SCHEMA: u32 = 1;

/// One guided run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DoctorDocument {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The linerate that did it.
    pub linerate_version: String,
    /// The far end as the user wrote it.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// When it began: nanoseconds since 1970-01-01 00:00 UTC.
    pub started_at_unix_ns: u64,
    /// How long it took, without what an earlier run had done.
    pub duration_ns: u64,
    /// How it ended.
    pub termination: Termination,
    /// What was found and done, in one sentence.
    pub sentence: String,
    /// Each step with what came out of it, in order.
    pub steps: Vec<Step>,
    /// The path; `null` where it was not measured.
    pub path: Option<Box<PathDocument>>,
    /// Latency under load before anything was changed.
    pub load_before: Option<Box<LoadDocument>>,
    /// What was diagnosed, planned, tried and kept.
    pub tune: Option<Box<TuneDocument>>,
    /// What a well-known recommendation would have done.
    pub comparison: Option<Comparison>,
    /// Latency under load with what was kept; `null` where nothing was.
    pub load_after: Option<Box<LoadDocument>>,
    /// Before and after.
    pub effects: Vec<Effect>,
    /// What could not be done or seen: name → why.
    #[serde(default)]
    pub unknown: Vec<Unknown>,
    /// What a reader should know.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// One step of a guided run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Step {
    /// `path`, `load`, `diagnose`, `plan`, `trial`, `proof`.
    pub name: String,
    /// What came out, in one sentence.
    pub text: String,
    /// How long it took.
    pub duration_ns: u64,
    /// Whether it was done by an earlier run that was interrupted.
    pub resumed: bool,
}

/// What somebody else recommends for such a path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Comparison {
    /// Who, for example `RHEL guide, TCP throughput`.
    pub source: String,
    /// The settings and their values, one `key = value` each.
    pub settings: Vec<String>,
    /// How the value came about, with what is wrong about it.
    pub arithmetic: String,
    /// The goodput that they allow by the formula.
    pub predicted_bits_per_second: Option<f64>,
    /// The goodput that was measured with them; `null` where they were not tried.
    pub measured_bits_per_second: Option<f64>,
    /// Payload that the path carries.
    pub capacity_bits_per_second: Option<f64>,
}
