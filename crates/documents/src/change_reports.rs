//! Document of `linerate rollback --json` and `linerate shape DEV off --json`: outcome of rollbacks.

use linerate_model::change::{ChangeSetState, RestoreOutcomeName};
use serde::{Deserialize, Serialize};

/// Version of this document's schema.
pub const SCHEMA: u32 = 1;

/// Rollback of change sets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ChangeReportsDocument {
    /// Schema version ([`SCHEMA`]).
    pub schema: u32,
    /// True when the steps were only reported (`--dry-run`).
    pub dry_run: bool,
    /// True when nothing of the sets is left on the host.
    pub is_clean: bool,
    /// Change sets, in the order of their rollback.
    pub sets: Vec<ChangeSetRollback>,
}

/// Rollback of one change set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ChangeSetRollback {
    /// Number of the set.
    pub id: u64,
    /// State after the rollback; in a dry run, the present state.
    pub state: ChangeSetState,
    /// True when nothing of the set is left on the host.
    pub is_clean: bool,
    /// Targets, in the order of their rollback.
    pub targets: Vec<TargetRollback>,
    /// File that made its settings persistent; `null` where none was written.
    pub file: Option<FileRollback>,
    /// Notes for people.
    pub notes: Vec<String>,
}

/// Rollback of one target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TargetRollback {
    /// Display name of the target.
    pub name: String,
    /// Value before the change; `null` where the target was absent.
    pub from: Option<String>,
    /// Value that the change was to set.
    pub to: String,
    /// Outcome.
    pub result: RestoreOutcomeName,
    /// Outcome as text, with the values that belong to it.
    pub message: String,
}

/// Rollback of a configuration file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FileRollback {
    /// Absolute path of the file.
    pub path: String,
    /// True when nothing of the set is left in it.
    pub is_back: bool,
    /// Result, as text.
    pub message: String,
}
