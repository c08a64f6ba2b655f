use std::io;
use std::path::PathBuf;

use linerate_model::change::Target;
use linerate_model::schema::change::NotAPlan;

use crate::id::ChangeId;

/// The outcome of changing a host, or of taking changes back.
pub type Result<T> = core::result::Result<T, ChangeError>;

/// Why a host was not changed, or its changes not taken back.
///
/// The text is complete: what was tried, on what, what was said, and the way out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChangeError {
    /// Nobody says where the journals belong.
    #[error("there is no place for the journals of changes: set LINERATE_STATE to a directory")]
    NoPlace,
    /// The directory of the journals cannot be used.
    #[error("{operation} {}: {}{}", path.display(), linerate_sys::describe_os_error(cause), place_hint(cause))]
    Place {
        /// What was tried.
        operation: &'static str,
        /// The directory or file.
        path: PathBuf,
        /// What the kernel said.
        cause: io::Error,
    },
    /// A journal could not be written; nothing was written to the host without it.
    #[error("writing the journal {}: {}{}", path.display(), linerate_sys::describe_os_error(cause), place_hint(cause))]
    Journal {
        /// The journal.
        path: PathBuf,
        /// What the kernel said.
        cause: io::Error,
    },
    /// A journal that is not as it was written.
    #[error("the journal {} is damaged: {detail}; it is left as it is, and what it records has to be put back by hand", path.display())]
    Damaged {
        /// The journal.
        path: PathBuf,
        /// What is wrong with it.
        detail: String,
    },
    /// A newer linerate wrote it.
    #[error("the journal {} was written by a newer linerate (schema {found}): use that one", path.display())]
    Newer {
        /// The journal.
        path: PathBuf,
        /// Its schema.
        found: u64,
    },
    /// Another process is changing this host.
    #[error("another linerate is changing this host: wait for it, or end it, and its changes are taken back")]
    Busy,
    /// Earlier changes were neither kept nor taken back.
    #[error(
        "changes {0} were interrupted, and are neither kept nor taken back: `linerate rollback --pending` takes them back first"
    )]
    Pending(ChangeId),
    /// There is no such record.
    #[error("there is no record of changes {0}: `linerate rollback --list` lists those that are there")]
    NoSuchSet(ChangeId),
    /// Nothing is there to take back.
    #[error("no changes of linerate are in force")]
    NothingInForce,
    /// The host refused.
    #[error("{0}")]
    Host(#[from] linerate_sys::Error),
    /// What the plan wants to change is not there.
    #[error("{target} is not there to be changed: this kernel, device or network namespace does not have it")]
    Absent {
        /// The target.
        target: Target,
    },
    /// The host is not any more what the plan was made for.
    #[error(
        "{target} is \"{found}\" now, and was \"{expected}\" when the change was planned: somebody else has changed it, so it is left alone; plan again"
    )]
    Stale {
        /// The target.
        target: Target,
        /// What the plan says stands there.
        expected: String,
        /// What stands there.
        found: String,
    },
    /// A plan that names the same target twice.
    #[error("the plan changes {target} twice: there could be no telling which of them helped")]
    Twice {
        /// The target.
        target: Target,
    },
    /// A plan for what this trial has changed already.
    #[error("{target} has been changed by this trial, and is in force: take that back before another value is tried")]
    InForce {
        /// The target.
        target: Target,
    },
    /// The kernel took a value and did not keep it.
    #[error(
        "{target} is still \"{now}\" after it was set to \"{wanted}\": the kernel took the value without a word and did not use it"
    )]
    Ignored {
        /// The target.
        target: Target,
        /// What was written.
        wanted: String,
        /// What stands there.
        now: String,
    },
    /// Time is up.
    #[error("the time that was given to try changes is over: they are taken back")]
    Expired,
    /// The trial has ended already.
    #[error("these changes were kept or taken back already")]
    Over,
    /// The process that watches over the changes did not start; nothing was written.
    #[error("nothing was changed, as the watchdog that would take it back did not start: {0}")]
    Watchdog(String),
    /// The changes were made in another network namespace.
    #[error(
        "changes {id} were made in another network namespace, and can only be taken back there: `nsenter --net={way} linerate rollback {id}`"
    )]
    OtherNamespace {
        /// The changes.
        id: ChangeId,
        /// A file that stands for it.
        way: String,
    },
    /// The record is of another machine.
    #[error("changes {0} were made on another machine: this directory of journals was copied here")]
    OtherMachine(ChangeId),
    /// A plan that this version does not understand.
    #[error("{0}")]
    Plan(#[from] NotAPlan),
}

impl ChangeError {
    /// Whether more privilege would help.
    #[must_use]
    pub fn needs_privilege(&self) -> bool {
        match self {
            Self::Place { cause, .. } | Self::Journal { cause, .. } => cause.kind() == io::ErrorKind::PermissionDenied,
            Self::Host(error) => error.kind() == io::ErrorKind::PermissionDenied,
            _ => false,
        }
    }
}

fn place_hint(cause: &io::Error) -> &'static str {
    match cause.kind() {
        io::ErrorKind::PermissionDenied => " (changing a host needs root: run it with sudo)",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            " (the disk is full: make room, or name another directory with LINERATE_STATE)"
        }
        io::ErrorKind::ReadOnlyFilesystem => " (it cannot be written: name another directory with LINERATE_STATE)",
        _ => "",
    }
}
