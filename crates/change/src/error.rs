use std::io;
use std::path::PathBuf;

use linerate_model::change::ChangeTarget;

use crate::id::ChangeId;
use crate::rollback::RestoreOutcome;

/// Result of changing a host, or of rolling changes back.
pub type Result<T> = core::result::Result<T, ChangeError>;

/// Reason why a host was not changed, or its changes not rolled back.
///
/// The text is complete: the operation, its object, the system's message, and the remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChangeError {
    /// The environment names no directory for the journals.
    #[error("no directory for the journals of changes: set LINERATE_STATE to a directory")]
    NoPlace,
    /// The directory of the journals cannot be used.
    #[error("{operation} {}: {}{}", path.display(), linerate_sys::describe_os_error(cause), io_hint(cause))]
    Place {
        /// The operation that failed.
        operation: &'static str,
        /// The directory or file.
        path: PathBuf,
        /// The kernel's error.
        cause: io::Error,
    },
    /// A journal could not be written; nothing was written to the host without it.
    #[error("writing the journal {}: {}{}", path.display(), linerate_sys::describe_os_error(cause), io_hint(cause))]
    Journal {
        /// The journal.
        path: PathBuf,
        /// The kernel's error.
        cause: io::Error,
    },
    /// A journal whose checksums, numbers or records are wrong.
    #[error(
        "the journal {} is damaged: {detail}; restore the values that it records by hand, then move its directory away: until then nothing else is changed",
        path.display()
    )]
    Damaged {
        /// The journal.
        path: PathBuf,
        /// Description of the damage.
        detail: String,
    },
    /// A journal of another user, who may have written anything into it.
    #[error(
        "{} belongs to user {owner}: its changes are not carried out; move it away if it is not yours, or change its owner",
        path.display()
    )]
    Foreign {
        /// The journal, or its directory.
        path: PathBuf,
        /// Number of its owner.
        owner: u32,
    },
    /// The journal was written by a newer linerate.
    #[error("the journal {} was written by a newer linerate (schema {found}): use that version", path.display())]
    NewerSchema {
        /// The journal.
        path: PathBuf,
        /// Schema of the journal.
        found: u64,
    },
    /// Another process is changing this host.
    #[error("another linerate is changing this host: wait for it, or end it, which rolls its changes back")]
    Busy,
    /// Earlier changes were neither kept nor rolled back.
    #[error(
        "changes {0} were interrupted, and are neither kept nor rolled back: run `linerate rollback --pending` first"
    )]
    Pending(ChangeId),
    /// No record with that number.
    #[error("no record of changes {0}: `linerate rollback --list` lists the recorded changes")]
    NoSuchSet(ChangeId),
    /// No changes to roll back.
    #[error("no changes of linerate are in effect")]
    NothingInForce,
    /// The host refused the operation.
    #[error("{0}")]
    Host(#[from] linerate_sys::Error),
    /// A target of the plan does not exist.
    #[error("{target} does not exist: this kernel, device or network namespace does not have it")]
    MissingTarget {
        /// The target.
        target: ChangeTarget,
    },
    /// A target has another value than the plan expects.
    #[error(
        "{target} is \"{found}\", but the plan expects \"{expected}\": another program has \
         changed it, so it is left alone; plan again"
    )]
    Stale {
        /// The target.
        target: ChangeTarget,
        /// Value that the plan expects.
        expected: String,
        /// Present value.
        found: String,
    },
    /// The interface of a target is no longer in this network namespace.
    #[error("{target} is not changed: {outcome}")]
    InterfaceLost {
        /// The target.
        target: ChangeTarget,
        /// Location of the interface.
        outcome: RestoreOutcome,
    },
    /// A plan that names the same target twice.
    #[error("the plan changes {target} twice: name each target once")]
    Twice {
        /// The target.
        target: ChangeTarget,
    },
    /// A plan for a target that this trial has changed already.
    #[error(
        "{target} is already changed by this trial, and the change is in effect: roll it back before \
         trying another value"
    )]
    AlreadyChanged {
        /// The target.
        target: ChangeTarget,
    },
    /// The kernel accepted a value and did not use it.
    #[error(
        "{target} is still \"{now}\" after it was set to \"{wanted}\": the kernel accepted the value without an \
         error and did not use it"
    )]
    Ignored {
        /// The target.
        target: ChangeTarget,
        /// Value that was written.
        wanted: String,
        /// Present value.
        now: String,
    },
    /// The time limit of the trial has expired.
    #[error("the time limit of the trial has expired: its changes are rolled back")]
    Expired,
    /// The trial has ended already.
    #[error("these changes are already kept or rolled back")]
    Over,
    /// The watchdog did not start; nothing was written.
    #[error("nothing was changed, because the watchdog did not start: {0}")]
    Watchdog(String),
    /// The changes were made in another network namespace.
    #[error(
        "changes {id} were made in another network namespace, and can only be rolled back there: \
         `nsenter --net={way} linerate rollback {id}`"
    )]
    OtherNamespace {
        /// The changes.
        id: ChangeId,
        /// File that names the network namespace.
        way: String,
    },
    /// The journal is from another machine.
    #[error("changes {0} were made on another machine: the journals were copied here")]
    OtherMachine(ChangeId),
}

impl ChangeError {
    /// True when the record of a set is missing or cannot be used.
    pub(crate) const fn is_of_journal(&self) -> bool {
        matches!(
            self,
            Self::Place { .. }
                | Self::Journal { .. }
                | Self::Damaged { .. }
                | Self::Foreign { .. }
                | Self::NewerSchema { .. }
                | Self::NoSuchSet(_)
        )
    }

    /// True when the error is a lack of privilege.
    #[must_use]
    pub fn needs_privilege(&self) -> bool {
        match self {
            Self::Place { cause, .. } | Self::Journal { cause, .. } => cause.kind() == io::ErrorKind::PermissionDenied,
            Self::Host(error) => error.kind() == io::ErrorKind::PermissionDenied,
            _ => false,
        }
    }
}

fn io_hint(cause: &io::Error) -> &'static str {
    match cause.kind() {
        io::ErrorKind::PermissionDenied => " (changing a host needs root: run it with sudo)",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            " (the disk is full: free some space, or name another directory with LINERATE_STATE)"
        }
        io::ErrorKind::ReadOnlyFilesystem => " (name another directory with LINERATE_STATE)",
        _ => "",
    }
}
