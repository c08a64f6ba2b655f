//! Document of `linerate rollback --list --json`: changes to this host, and their state.

use linerate_model::change::{ChangePhaseName, ChangeSetState, HostChange};
use serde::{Deserialize, Serialize};

/// Version of this document's schema.
pub const SCHEMA: u32 = 1;

/// Changes to this host, as recorded in their journals.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ChangeSetsDocument {
    /// Schema version ([`SCHEMA`]).
    pub schema: u32,
    /// Change sets, the latest first.
    pub sets: Vec<RecordedChangeSet>,
    /// Change sets whose record cannot be read, the latest first.
    pub unreadable: Vec<UnreadableChangeSet>,
}

/// Changes that were begun together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RecordedChangeSet {
    /// Number of the set.
    pub id: u64,
    /// State, as seen from this boot of the host.
    pub state: ChangeSetState,
    /// Time of its beginning, in UTC (RFC 3339).
    pub begun_at: String,
    /// Purpose, as text for people.
    pub purpose: String,
    /// Version of the linerate that began it.
    pub linerate_version: String,
    /// Release of the kernel at that time.
    pub kernel: String,
    /// Time at which it was kept, in UTC (RFC 3339); `null` where it was not.
    pub kept_at: Option<String>,
    /// Reasons why it may not apply at the next boot; empty also where it was not kept.
    pub warnings: Vec<String>,
    /// Time of the rollback, in UTC (RFC 3339); `null` where it was not rolled back.
    pub closed_at: Option<String>,
    /// Reason for the rollback; `null` where it was not rolled back.
    pub closed_because: Option<String>,
    /// File that makes its settings persistent; `null` where none was written.
    pub file: Option<PersistentFile>,
    /// Changes, in the order in which they were planned.
    pub changes: Vec<RecordedChange>,
}

/// File that makes settings persistent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PersistentFile {
    /// Absolute path of the file.
    pub path: String,
    /// True when nothing of the set is left in it.
    pub is_back: bool,
}

/// One change of a set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RecordedChange {
    /// Display name of the target.
    pub name: String,
    /// Change; `from` is the value when it was planned.
    pub change: HostChange,
    /// Progress.
    pub phase: ChangePhaseName,
    /// Value that was read after the write; `null` where the change is not in effect, and where the target was absent.
    pub written: Option<String>,
    /// Latest message about it, for people; may be empty.
    pub message: String,
}

/// Change set whose record cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct UnreadableChangeSet {
    /// Number of the set.
    pub id: u64,
    /// Reason.
    pub reason: String,
}
