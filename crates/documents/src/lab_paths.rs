//! Document of `linerate lab list --json`: paths of the library.

use linerate_model::diagnosis::{CauseLocation, PathLabel};
use serde::{Deserialize, Serialize};

/// Version of this document's schema.
pub const SCHEMA: u32 = 1;

/// Paths of the library.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LabPathsDocument {
    /// Schema version ([`SCHEMA`]).
    pub schema: u32,
    /// Paths, in the order of the library.
    pub paths: Vec<LabPathEntry>,
}

/// One path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LabPathEntry {
    /// Name.
    pub name: String,
    /// Built-in cause.
    pub label: PathLabel,
    /// Location of that cause; `nowhere` also for a label that is no cause.
    pub location: CauseLocation,
    /// Description of the path and its purpose.
    pub story: String,
    /// Source of the figures; empty where there is none.
    pub source: String,
    /// Arguments of linerate that demonstrate it.
    pub scenario: Vec<String>,
}
