//! What a journal records. A version of linerate that does not know a record does not touch the set.

use linerate_model::schema::change::ChangeDocument;
use serde::{Deserialize, Serialize};

/// Version of the lines of a journal.
pub(crate) const SCHEMA: u64 = 1;

/// One line of a journal, without its number and checksum. Times are nanoseconds since 1970-01-01 00:00 UTC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Record {
    /// The first line: who begins what, on which host.
    Begun {
        /// Number of the set.
        id: u64,
        /// When.
        at_unix_ns: u64,
        /// Version of linerate.
        linerate_version: String,
        /// What for, in words for a person.
        purpose: String,
        /// Process that makes the changes.
        process: u32,
        /// When that process began, in the kernel's ticks since the boot; 0 where it is not known.
        process_began: u64,
        /// [`linerate_sys::host_access::Identity::boot`].
        boot: String,
        /// [`linerate_sys::host_access::Identity::machine`].
        machine: Option<String>,
        /// [`linerate_sys::host_access::Identity::namespace`].
        namespace: u64,
        /// Release of the kernel.
        kernel: String,
    },
    /// A change that may be made; its `from` is what stood there when this was written.
    Planned {
        /// Its number within the set, from 0.
        index: usize,
        /// The change.
        change: ChangeDocument,
    },
    /// The next thing is to write it.
    Intent {
        /// Its number.
        index: usize,
    },
    /// What came of it.
    Outcome {
        /// Its number.
        index: usize,
        /// How it went.
        result: Written,
        /// What stands there now.
        now: Option<String>,
        /// What went wrong.
        message: Option<String>,
    },
    /// The next thing is to put back what stood there.
    TakingBack {
        /// Its number.
        index: usize,
    },
    /// What came of that.
    TakenBack {
        /// Its number.
        index: usize,
        /// Whether nothing of it is left.
        is_back: bool,
        /// How it went, for a person.
        message: String,
    },
    /// The next thing is to write a file that makes changes last.
    Keeping {
        /// The file.
        path: String,
        /// Its contents before; `None` where there was no such file.
        before: Option<String>,
        /// What is to stand in it.
        after: String,
        /// Keys and values that are this set's.
        settings: Vec<(String, String)>,
    },
    /// The set is kept.
    Kept {
        /// When.
        at_unix_ns: u64,
        /// What may defeat it at the next boot.
        warnings: Vec<String>,
    },
    /// The file has been put right again, or not.
    FileTakenBack {
        /// The file.
        path: String,
        /// Whether nothing of ours is left in it.
        is_back: bool,
        /// How it went, for a person.
        message: String,
    },
    /// All that could be taken back was.
    Closed {
        /// When.
        at_unix_ns: u64,
        /// Whether nothing is left.
        is_clean: bool,
        /// Why it was taken back, in words for a person.
        reason: String,
    },
}

/// How writing a change went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Written {
    /// The host has what was wanted.
    Written,
    /// It had it before.
    NoNeed,
    /// It took another value than the one that was written.
    Adjusted,
    /// It refused, and has what it had before.
    Refused,
}
