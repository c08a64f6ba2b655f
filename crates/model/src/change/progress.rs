//! Progress of changes: states of a set, phases of a change, outcomes of a rollback.

use serde::{Deserialize, Serialize};

/// State of a change set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ChangeSetState {
    /// Begun, and neither kept nor rolled back: in progress, or interrupted.
    Pending,
    /// Confirmed, and not written to a file: in effect until the next boot.
    UntilReboot,
    /// Kept.
    Kept,
    /// Rolled back; the host is as before.
    RolledBack,
    /// Rolled back as far as possible.
    #[serde(rename = "partly_rolled_back")]
    Partly,
    /// Not kept, and lost at a reboot.
    LostAtReboot,
}

impl ChangeSetState {
    /// Label for the user.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::UntilReboot => "kept until the next boot",
            Self::Kept => "kept",
            Self::RolledBack => "rolled back",
            Self::Partly => "partly rolled back",
            Self::LostAtReboot => "lost at a reboot",
        }
    }
}

/// Name of the phase of a change, without the values that belong to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ChangePhaseName {
    /// Nothing was written.
    Planned,
    /// The host had the value before.
    NoNeed,
    /// The host refused the value and has the previous one.
    Refused,
    /// The record ends before the outcome of the write, or of the rollback.
    Unfinished,
    /// The value is in effect.
    InForce,
    /// The previous value is restored.
    Back,
    /// Nothing of it is on the host, and a later change of the set replaces it.
    Replaced,
}

impl ChangePhaseName {
    /// Label for the user.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Planned => "not tried",
            Self::NoNeed => "already set",
            Self::Refused => "refused",
            Self::Unfinished => "interrupted",
            Self::InForce => "in effect",
            Self::Back => "rolled back",
            Self::Replaced => "replaced by a later change",
        }
    }
}

/// Name of the outcome of the rollback of one target, without the values that belong to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RestoreOutcomeName {
    /// The previous value was written and read back.
    Restored,
    /// The target had the previous value already.
    AlreadyRestored,
    /// Nothing was written to the target before.
    NeverWritten,
    /// The target has another value than linerate wrote: another program has changed it, and it was left alone.
    ChangedByOthers,
    /// The interface or the network namespace no longer exists.
    Gone,
    /// The interface is in another network namespace, with this change.
    Moved,
    /// A reboot has undone the change.
    LostAtReboot,
    /// The previous value could not be restored.
    Failed,
}
