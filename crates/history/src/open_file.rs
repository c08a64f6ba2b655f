//! Opening the file.

use core::time::Duration;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::time::Instant;

use rusqlite::{Connection, OpenFlags};

use crate::HistoryError;
use crate::migration;

/// Maximum wait for another process that is writing. Writing a run takes milliseconds.
pub(crate) const MAX_BUSY_WAIT: Duration = Duration::from_secs(20);

/// Interval between attempts to enable the write-ahead log, which does not honour the busy timeout.
const RETRY_INTERVAL: Duration = Duration::from_millis(5);

/// Opens the file for writing, and creates it and its directory where they do not exist.
pub(crate) fn open_for_writing(file: &Path, steps: &[&str]) -> Result<Connection, HistoryError> {
    if let Some(directory) = file.parent().filter(|directory| !directory.as_os_str().is_empty()) {
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700);
        let made = builder.create(directory);
        made.map_err(|cause| HistoryError::Directory { directory: directory.to_path_buf(), cause })?;
    }
    open(file, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE, steps)
}

/// Opens an existing file. A file that cannot be written can be read while no process writes to it.
pub(crate) fn open_for_reading(file: &Path, steps: &[&str]) -> Result<Connection, HistoryError> {
    if matches!(file.try_exists(), Ok(false)) {
        return Err(HistoryError::Missing { file: file.to_path_buf() });
    }
    match open(file, OpenFlags::SQLITE_OPEN_READ_WRITE, steps) {
        Err(refused @ HistoryError::NotWritable { .. }) => open_immutable(file, steps).map_err(|_| refused),
        opened => opened,
    }
}

fn open(file: &Path, flags: OpenFlags, steps: &[&str]) -> Result<Connection, HistoryError> {
    let failed = |cause| HistoryError::from_sqlite("opening", file, cause);
    let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(file, flags).map_err(failed)?;
    connection.busy_timeout(MAX_BUSY_WAIT).map_err(failed)?;
    // Before anything is changed: refuse files of other programs.
    let is_new = migration::schema_version(&connection, file, steps)? == 0;
    if is_new {
        // So that deleting runs makes the file smaller. It has an effect, and writes, before the first table only.
        connection.pragma_update(None, "auto_vacuum", "INCREMENTAL").map_err(failed)?;
    }
    enable_write_ahead_log(&connection, file)?;
    connection.pragma_update(None, "synchronous", "FULL").map_err(failed)?;
    connection.pragma_update(None, "foreign_keys", true).map_err(failed)?;
    // Checkpoint and truncate the log after each run: on a full disk, two copies are one too many.
    connection.pragma_update(None, "wal_autocheckpoint", 1).map_err(failed)?;
    connection.pragma_update_and_check(None, "journal_size_limit", 0, |row| row.get::<_, i64>(0)).map_err(failed)?;
    migration::migrate(&mut connection, file, steps)?;
    Ok(connection)
}

/// Enables the write-ahead log, with which readers do not wait for a writer. A file system that does not support it (it
/// needs shared memory) keeps the rollback journal, which is as safe.
fn enable_write_ahead_log(connection: &Connection, file: &Path) -> Result<(), HistoryError> {
    let start = Instant::now();
    loop {
        let answer = connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0));
        match answer.map_err(|cause| HistoryError::from_sqlite("opening", file, cause)) {
            Err(HistoryError::Busy { .. }) if start.elapsed() < MAX_BUSY_WAIT => std::thread::sleep(RETRY_INTERVAL),
            other => return other.map(|_| ()),
        }
    }
}

/// Opens a file on a read-only medium, where `SQLite` cannot and need not lock. Refuses a file with a non-empty log,
/// whose contents would be missed.
fn open_immutable(file: &Path, steps: &[&str]) -> Result<Connection, HistoryError> {
    let failed = |cause| HistoryError::from_sqlite("opening", file, cause);
    let mut log = file.as_os_str().to_owned();
    log.push("-wal");
    let has_log = std::fs::metadata(log).is_ok_and(|log| log.len() > 0);
    let absolute = std::path::absolute(file).unwrap_or_else(|_| file.to_path_buf());
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let uri = format!("file:{}?immutable=1", percent_encode(&absolute.to_string_lossy()));
    let connection = Connection::open_with_flags(uri, flags).map_err(failed)?;
    let outdated = migration::schema_version(&connection, file, steps)? != migration::latest_schema(steps);
    if has_log || outdated {
        let read_only = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_READONLY);
        return Err(failed(rusqlite::Error::SqliteFailure(read_only, None)));
    }
    Ok(connection)
}

/// Percent-encodes the reserved characters of a path for a URI (RFC 3986).
fn percent_encode(path: &str) -> String {
    let mut text = String::with_capacity(path.len());
    for character in path.chars() {
        match character {
            '%' => text.push_str("%25"),
            '?' => text.push_str("%3f"),
            '#' => text.push_str("%23"),
            other => text.push(other),
        }
    }
    text
}
