//! Records of a journal. A version of linerate that does not know a record does not touch the set.

use linerate_model::change::{HostChange, InterfaceIdentity};
use serde::{Deserialize, Serialize};

/// Version of the lines of a journal.
pub(crate) const SCHEMA: u64 = 1;

/// One line of a journal, without its number and checksum. Times are nanoseconds since 1970-01-01 00:00 UTC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum JournalRecord {
    /// First record: the process, the purpose and the host.
    Begun {
        /// Number of the change set.
        id: u64,
        /// Time of the record.
        at_unix_ns: u64,
        /// Version of linerate.
        linerate_version: String,
        /// Purpose, as text for the user.
        purpose: String,
        /// Process that makes the changes.
        process: u32,
        /// Start time of that process, in kernel ticks since boot; 0 where it is unknown.
        process_began: u64,
        /// [`linerate_sys::host_access::HostIdentity::boot`].
        boot: String,
        /// [`linerate_sys::host_access::HostIdentity::machine`].
        machine: Option<String>,
        /// [`linerate_sys::host_access::HostIdentity::namespace`].
        namespace: u64,
        /// [`linerate_sys::host_access::HostIdentity::namespace_cookie`].
        #[serde(default, skip_serializing_if = "Option::is_none")]
        namespace_cookie: Option<u64>,
        /// Release of the kernel.
        kernel: String,
    },
    /// A change that may be applied; its `from` is the value at the time of this record.
    Planned {
        /// Index within the set, from 0.
        index: usize,
        /// The change.
        change: HostChange,
        /// Interfaces that the target or its values name.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        interfaces: Vec<InterfaceIdentity>,
    },
    /// The change is about to be written.
    Intent {
        /// Index within the set.
        index: usize,
    },
    /// Outcome of writing the change.
    Outcome {
        /// Index within the set.
        index: usize,
        /// Result of the write.
        result: WriteOutcome,
        /// Present value.
        now: Option<String>,
        /// Error message.
        message: Option<String>,
    },
    /// Kernel modules that a write has loaded; a rollback does not unload them.
    Loaded {
        /// Names of the modules.
        modules: Vec<String>,
    },
    /// The previous value is about to be restored.
    TakingBack {
        /// Index within the set.
        index: usize,
    },
    /// Outcome of restoring it.
    TakenBack {
        /// Index within the set.
        index: usize,
        /// True when nothing of the change is left.
        is_back: bool,
        /// Result, as text for the user.
        message: String,
        /// True when the value is another program's, so that nothing is left to do.
        #[serde(default, skip_serializing_if = "core::ops::Not::not")]
        is_foreign: bool,
        /// Value that a failed attempt has left, which counts as the set's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        left: Option<String>,
    },
    /// The file that makes settings persistent is about to be written.
    Keeping {
        /// The file.
        path: String,
        /// Previous contents; `None` when the file did not exist.
        before: Option<String>,
        /// New contents.
        after: String,
        /// Keys and values of this set.
        settings: Vec<(String, String)>,
    },
    /// The set is kept.
    Kept {
        /// Time of the record.
        at_unix_ns: u64,
        /// Reasons why the settings may not apply at the next boot.
        warnings: Vec<String>,
    },
    /// Outcome of reverting the file.
    FileTakenBack {
        /// The file.
        path: String,
        /// True when nothing of the set is left in the file.
        is_back: bool,
        /// Result, as text for the user.
        message: String,
    },
    /// The rollback is complete, as far as it was possible.
    Closed {
        /// Time of the record.
        at_unix_ns: u64,
        /// True when nothing of the set is left.
        is_clean: bool,
        /// Reason for the rollback, as text for the user.
        reason: String,
    },
}

/// Result of writing a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WriteOutcome {
    /// The host has the wanted value.
    Written,
    /// The host had the value before.
    NoNeed,
    /// The host has another value than the one that was written.
    Adjusted,
    /// The host refused the value and has the previous one.
    Refused,
}
