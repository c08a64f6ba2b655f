//! Errors of a description.

use crate::sessions::MAX_HOSTS;

/// Reason why there is no timetable.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// The text is not the JSON of a description, or has a part of psConfig that linerate does not read.
    #[error("the description is not valid: {0} (linerate reads a part of psConfig: docs/fleet.md)")]
    Syntax(#[from] serde_json::Error),
    /// A name that nothing has.
    #[error("{owner} names the {kind} {name:?}, which is not there")]
    Unknown {
        /// Entry that names it.
        owner: String,
        /// Kind of the missing entry: `address`, `group`, …
        kind: &'static str,
        /// Name as given.
        name: String,
    },
    /// A part of an entry that cannot be used.
    #[error("{owner}: {reason}")]
    Unusable {
        /// Entry.
        owner: String,
        /// Clause with the remedy.
        reason: String,
    },
    /// More hosts than a timetable is made for.
    #[error("{0} hosts are more than the {MAX_HOSTS} that one timetable takes: divide them into several fleets")]
    TooManyHosts(usize),
}

impl FleetError {
    pub(crate) fn unusable(owner: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Unusable { owner: owner.into(), reason: reason.into() }
    }
}
