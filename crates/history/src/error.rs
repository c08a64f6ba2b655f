//! Errors of the history, with their remedies.

use std::path::{Path, PathBuf};

use linerate_documents::run_list::RunId;
use rusqlite::ErrorCode;

use crate::id::RunReference;

/// Error of an operation on the history. Stored runs are unaffected.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// The environment names no location for the history.
    #[error("no location for the history: none of LINERATE_HISTORY, XDG_DATA_HOME and HOME is set")]
    NoPlace,
    /// The user has switched the history off.
    #[error("the history is switched off: LINERATE_HISTORY is `off`")]
    SwitchedOff,
    /// The directory could not be created.
    #[error("creating the directory {} for the history: {cause}", directory.display())]
    Directory {
        /// The directory.
        directory: PathBuf,
        /// The kernel's error.
        cause: std::io::Error,
    },
    /// The file does not exist; the first run creates it.
    #[error("there is no history yet: {} does not exist", file.display())]
    Missing {
        /// The file.
        file: PathBuf,
    },
    /// The file cannot be written.
    #[error("{operation} in the history {}: the file cannot be written ({cause})", file.display())]
    NotWritable {
        /// The operation that failed.
        operation: &'static str,
        /// The file.
        file: PathBuf,
        /// The error of `SQLite`.
        cause: rusqlite::Error,
    },
    /// The disk is full.
    #[error("{operation} in the history {}: the disk is full ({cause})", file.display())]
    DiskFull {
        /// The operation that failed.
        operation: &'static str,
        /// The file.
        file: PathBuf,
        /// The error of `SQLite`.
        cause: rusqlite::Error,
    },
    /// Another process held the lock for too long.
    #[error("{operation} in the history {}: another process holds the lock ({cause})", file.display())]
    Busy {
        /// The operation that failed.
        operation: &'static str,
        /// The file.
        file: PathBuf,
        /// The error of `SQLite`.
        cause: rusqlite::Error,
    },
    /// The file is damaged, or is not an `SQLite` file.
    #[error("{operation} in the history {}: the file is damaged ({cause})", file.display())]
    Damaged {
        /// The operation that failed.
        operation: &'static str,
        /// The file.
        file: PathBuf,
        /// The error of `SQLite`.
        cause: rusqlite::Error,
    },
    /// The `SQLite` file belongs to another program.
    #[error("opening the history {}: this is another program's SQLite file", file.display())]
    Foreign {
        /// The file.
        file: PathBuf,
    },
    /// The file was written by a newer linerate.
    #[error(
        "opening the history {}: a newer linerate wrote it (schema {found}, this version supports up to {known})",
        file.display()
    )]
    Newer {
        /// The file.
        file: PathBuf,
        /// Schema of the file.
        found: i64,
        /// Newest schema that this version supports.
        known: i64,
    },
    /// Any other error of `SQLite`.
    #[error("{operation} in the history {}: {cause}", file.display())]
    Database {
        /// The operation that failed.
        operation: &'static str,
        /// The file.
        file: PathBuf,
        /// The error of `SQLite`.
        cause: rusqlite::Error,
    },
    /// One run's document cannot be read; the others can.
    #[error("reading run {id} of the history: {detail}")]
    DamagedRun {
        /// The run.
        id: RunId,
        /// Description of the damage.
        detail: String,
    },
    /// A run that could not be made into a document.
    #[error("writing a run for the history: {0}")]
    Unwritable(String),
    /// The run does not exist.
    #[error("the history has no run {0}")]
    NoSuchRun(RunReference),
    /// Writing an export or reading an import failed.
    #[error("{operation}: {cause}")]
    Stream {
        /// The operation that failed.
        operation: &'static str,
        /// The kernel's error.
        cause: std::io::Error,
    },
    /// A document of an import is not a run.
    #[error("line {line} is not a run of linerate: {detail}")]
    InvalidRun {
        /// Line number of its end, from 1.
        line: usize,
        /// Description of the damage.
        detail: String,
    },
}

impl HistoryError {
    /// Remedy, where one is known.
    #[must_use]
    pub fn advice(&self) -> Option<String> {
        match self {
            Self::NoPlace => Some("set LINERATE_HISTORY to a file, or to `off`".into()),
            Self::SwitchedOff => Some("unset it, or set it to a file".into()),
            Self::Directory { .. } | Self::NotWritable { .. } => {
                Some("set LINERATE_HISTORY=FILE for another file, LINERATE_HISTORY=off for no history".into())
            }
            Self::Missing { .. } => Some("each measurement is recorded there, unless --no-history is given".into()),
            Self::DiskFull { .. } => Some(
                "earlier runs are safe: free some space on that disk, or choose another file with \
                 LINERATE_HISTORY=FILE; `linerate history delete` needs a little space, too"
                    .into(),
            ),
            Self::Busy { .. } => Some("try again when the other process has ended".into()),
            Self::Damaged { file, .. } => Some(damage_advice(file)),
            Self::Foreign { .. } => {
                Some("set LINERATE_HISTORY to a history of linerate, or to a file that does not exist".into())
            }
            Self::Newer { .. } => Some(
                "use the newer linerate, or another file: LINERATE_HISTORY=FILE; this file is left as it is".into(),
            ),
            Self::DamagedRun { id, .. } => Some(format!("`linerate history delete {id}` removes it")),
            Self::NoSuchRun(_) => Some("`linerate history` lists them".into()),
            Self::InvalidRun { .. } => Some(
                "`import` reads what a measurement prints with --json, and `linerate history export --format jsonl`"
                    .into(),
            ),
            Self::Unwritable(_) | Self::Database { .. } | Self::Stream { .. } => None,
        }
    }

    /// Classifies an `SQLite` error of `operation` on `file`.
    pub(crate) fn from_sqlite(operation: &'static str, file: &Path, cause: rusqlite::Error) -> Self {
        let file = file.to_path_buf();
        let code = cause.sqlite_error_code();
        // `SQLITE_IOERR_WRITE` and its like carry no errno; a write that fails is nearly always a full disk or quota.
        let extended = cause.sqlite_error().map_or(0, |error| error.extended_code);
        match code {
            Some(ErrorCode::DiskFull) => Self::DiskFull { operation, file, cause },
            Some(ErrorCode::SystemIoFailure) if DISK_FULL_CODES.contains(&extended) => {
                Self::DiskFull { operation, file, cause }
            }
            Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
                Self::NotWritable { operation, file, cause }
            }
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy { operation, file, cause },
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Damaged { operation, file, cause },
            _ => Self::Database { operation, file, cause },
        }
    }
}

/// Extended codes of IO errors that mean a full disk: of writing, of truncating, and of the index of the write-ahead
/// log.
const DISK_FULL_CODES: [i32; 3] =
    [rusqlite::ffi::SQLITE_IOERR_WRITE, rusqlite::ffi::SQLITE_IOERR_TRUNCATE, rusqlite::ffi::SQLITE_IOERR_SHMSIZE];

fn damage_advice(file: &Path) -> String {
    let file = file.display();
    format!(
        "it is left as it is: `mv {file} {file}.damaged` lets the next run create a new one, and \
         `sqlite3 {file}.damaged .recover` may recover its contents"
    )
}
