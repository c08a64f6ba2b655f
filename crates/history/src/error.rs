//! What can go wrong with the file, and the way out.

use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

use crate::id::{RunId, RunReference};

/// Why the history did not do what was asked. Whatever was in it is still there.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// The environment names no place for it.
    #[error("finding a place for the history: none of LINERATE_HISTORY, XDG_DATA_HOME and HOME names one")]
    NoPlace,
    /// The user has switched it off.
    #[error("the history is switched off: LINERATE_HISTORY is `off`")]
    SwitchedOff,
    /// The directory could not be made.
    #[error("making the directory {} for the history: {cause}", directory.display())]
    Directory {
        /// The directory.
        directory: PathBuf,
        /// What the kernel said.
        cause: std::io::Error,
    },
    /// There is no such file; it appears with the first run that is kept.
    #[error("there is no history yet: {} does not exist", file.display())]
    Missing {
        /// The file.
        file: PathBuf,
    },
    /// It cannot be written here.
    #[error("{operation} in the history {}: it cannot be written ({cause})", file.display())]
    NotWritable {
        /// What was tried.
        operation: &'static str,
        /// The file.
        file: PathBuf,
        /// What `SQLite` said.
        cause: rusqlite::Error,
    },
    /// The disk is full.
    #[error("{operation} in the history {}: there is no room left ({cause})", file.display())]
    NoRoom {
        /// What was tried.
        operation: &'static str,
        /// The file.
        file: PathBuf,
        /// What `SQLite` said.
        cause: rusqlite::Error,
    },
    /// Another process held it for too long.
    #[error("{operation} in the history {}: another process holds it ({cause})", file.display())]
    Busy {
        /// What was tried.
        operation: &'static str,
        /// The file.
        file: PathBuf,
        /// What `SQLite` said.
        cause: rusqlite::Error,
    },
    /// The file is damaged, or no `SQLite` file at all.
    #[error("{operation} in the history {}: the file is damaged ({cause})", file.display())]
    Damaged {
        /// What was tried.
        operation: &'static str,
        /// The file.
        file: PathBuf,
        /// What `SQLite` said.
        cause: rusqlite::Error,
    },
    /// An `SQLite` file that is not linerate's.
    #[error("opening the history {}: this is another program's SQLite file", file.display())]
    Foreign {
        /// The file.
        file: PathBuf,
    },
    /// A newer linerate wrote it.
    #[error(
        "opening the history {}: a newer linerate wrote it (schema {found}, this one knows up to {known})",
        file.display()
    )]
    Newer {
        /// The file.
        file: PathBuf,
        /// Its schema.
        found: i64,
        /// The newest schema that is known here.
        known: i64,
    },
    /// Anything else that `SQLite` refused.
    #[error("{operation} in the history {}: {cause}", file.display())]
    Database {
        /// What was tried.
        operation: &'static str,
        /// The file.
        file: PathBuf,
        /// What `SQLite` said.
        cause: rusqlite::Error,
    },
    /// One run's document cannot be read; the others can.
    #[error("reading run {id} of the history: {detail}")]
    DamagedRun {
        /// The run.
        id: RunId,
        /// What is wrong with it.
        detail: String,
    },
    /// A run that could not be made into a document.
    #[error("writing a run for the history: {0}")]
    Unwritable(String),
    /// There is no such run.
    #[error("the history has no run {0}")]
    NoSuchRun(RunReference),
    /// Writing an export or reading an import failed.
    #[error("{operation}: {cause}")]
    Stream {
        /// What was tried.
        operation: &'static str,
        /// What the kernel said.
        cause: std::io::Error,
    },
    /// A line of an import is no run.
    #[error("line {line} is no run of linerate: {detail}")]
    NotARun {
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        detail: String,
    },
}

impl HistoryError {
    /// What would help, where that is known.
    #[must_use]
    pub fn advice(&self) -> Option<String> {
        match self {
            Self::NoPlace => Some("set LINERATE_HISTORY to a file, or to `off`".into()),
            Self::SwitchedOff => Some("unset it, or set it to a file".into()),
            Self::Directory { .. } | Self::NotWritable { .. } => {
                Some("LINERATE_HISTORY=FILE chooses another place, LINERATE_HISTORY=off none".into())
            }
            Self::Missing { .. } => Some("each measurement is kept there, unless --no-history is given".into()),
            Self::NoRoom { .. } => Some(
                "what was stored before is safe: make room on that disk, or choose another place with \
                 LINERATE_HISTORY=FILE; `linerate history delete` needs a little room, too"
                    .into(),
            ),
            Self::Busy { .. } => Some("try again when the other process has ended".into()),
            Self::Damaged { file, .. } => Some(way_out_of_damage(file)),
            Self::Foreign { .. } => {
                Some("LINERATE_HISTORY names a file of linerate's own, or one that does not exist".into())
            }
            Self::Newer { .. } => {
                Some("use the newer linerate, or another file: LINERATE_HISTORY=FILE; this one is left as it is".into())
            }
            Self::DamagedRun { id, .. } => Some(format!("`linerate history delete {id}` removes it")),
            Self::NoSuchRun(_) => Some("`linerate history` lists them".into()),
            Self::NotARun { .. } => {
                Some("`linerate history export --format jsonl` writes what `import` reads: one run on each line".into())
            }
            Self::Unwritable(_) | Self::Database { .. } | Self::Stream { .. } => None,
        }
    }

    /// What `operation` on `file` met.
    pub(crate) fn of(operation: &'static str, file: &Path, cause: rusqlite::Error) -> Self {
        let file = file.to_path_buf();
        let code = cause.sqlite_error_code();
        // `SQLITE_IOERR_WRITE` and its like carry no errno; a write that fails is nearly always a full disk or quota.
        let extended = cause.sqlite_error().map_or(0, |error| error.extended_code);
        match code {
            Some(ErrorCode::DiskFull) => Self::NoRoom { operation, file, cause },
            Some(ErrorCode::SystemIoFailure) if NO_ROOM.contains(&extended) => Self::NoRoom { operation, file, cause },
            Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
                Self::NotWritable { operation, file, cause }
            }
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy { operation, file, cause },
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Damaged { operation, file, cause },
            _ => Self::Database { operation, file, cause },
        }
    }
}

/// Extended codes of input and output errors that come with a full disk: of writing, of setting a file's size, and of
/// the index of the write-ahead log.
const NO_ROOM: [i32; 3] =
    [rusqlite::ffi::SQLITE_IOERR_WRITE, rusqlite::ffi::SQLITE_IOERR_TRUNCATE, rusqlite::ffi::SQLITE_IOERR_SHMSIZE];

fn way_out_of_damage(file: &Path) -> String {
    let file = file.display();
    format!(
        "it is left as it is: `mv {file} {file}.damaged` lets the next run begin a new one, and \
         `sqlite3 {file}.damaged .recover` may bring back what was in it"
    )
}
