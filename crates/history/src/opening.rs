//! Opening the file.

use core::time::Duration;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::time::Instant;

use rusqlite::{Connection, OpenFlags};

use crate::HistoryError;
use crate::migration;

/// How long one process waits for another that is writing. Writing a run takes milliseconds.
pub(crate) const BUSY_LIMIT: Duration = Duration::from_secs(20);

/// Going over to the write-ahead log does not wait by itself, so it is tried again at this interval.
const PAUSE: Duration = Duration::from_millis(5);

/// Opens the file to write to it, and makes it and its directory where they are not there.
pub(crate) fn to_write(file: &Path, steps: &[&str]) -> Result<Connection, HistoryError> {
    if let Some(directory) = file.parent().filter(|directory| !directory.as_os_str().is_empty()) {
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700);
        let made = builder.create(directory);
        made.map_err(|cause| HistoryError::Directory { directory: directory.to_path_buf(), cause })?;
    }
    open(file, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE, steps)
}

/// Opens a file that is there. One that cannot be written can still be read, if nobody is writing to it.
pub(crate) fn to_read(file: &Path, steps: &[&str]) -> Result<Connection, HistoryError> {
    if matches!(file.try_exists(), Ok(false)) {
        return Err(HistoryError::Missing { file: file.to_path_buf() });
    }
    match open(file, OpenFlags::SQLITE_OPEN_READ_WRITE, steps) {
        Err(refused @ HistoryError::NotWritable { .. }) => open_immutable(file, steps).map_err(|_| refused),
        opened => opened,
    }
}

fn open(file: &Path, flags: OpenFlags, steps: &[&str]) -> Result<Connection, HistoryError> {
    let failed = |cause| HistoryError::of("opening", file, cause);
    let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(file, flags).map_err(failed)?;
    connection.busy_timeout(BUSY_LIMIT).map_err(failed)?;
    // Before anything is changed: is it ours?
    migration::version(&connection, file, steps)?;
    use_write_ahead_log(&connection, file)?;
    connection.pragma_update(None, "synchronous", "FULL").map_err(failed)?;
    connection.pragma_update(None, "foreign_keys", true).map_err(failed)?;
    // The log is carried over after each run and gives its room back: on a full disk, two copies are one too many.
    connection.pragma_update(None, "wal_autocheckpoint", 1).map_err(failed)?;
    connection.pragma_update_and_check(None, "journal_size_limit", 0, |row| row.get::<_, i64>(0)).map_err(failed)?;
    migration::bring_up(&mut connection, file, steps)?;
    Ok(connection)
}

/// With a write-ahead log readers do not wait for a writer. A file system that cannot carry one (shared memory is needed)
/// keeps the ordinary journal, which is as safe.
fn use_write_ahead_log(connection: &Connection, file: &Path) -> Result<(), HistoryError> {
    let start = Instant::now();
    loop {
        let answer = connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0));
        match answer.map_err(|cause| HistoryError::of("opening", file, cause)) {
            Err(HistoryError::Busy { .. }) if start.elapsed() < BUSY_LIMIT => std::thread::sleep(PAUSE),
            other => return other.map(|_| ()),
        }
    }
}

/// Opens a file on a medium that cannot be written, on which `SQLite` cannot lock and need not. What lies only in a log
/// beside it would not be seen; then it is refused.
fn open_immutable(file: &Path, steps: &[&str]) -> Result<Connection, HistoryError> {
    let failed = |cause| HistoryError::of("opening", file, cause);
    let mut log = file.as_os_str().to_owned();
    log.push("-wal");
    let has_log = std::fs::metadata(log).is_ok_and(|log| log.len() > 0);
    let absolute = std::path::absolute(file).unwrap_or_else(|_| file.to_path_buf());
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let uri = format!("file:{}?immutable=1", escaped(&absolute.to_string_lossy()));
    let connection = Connection::open_with_flags(uri, flags).map_err(failed)?;
    let outdated = migration::version(&connection, file, steps)? != migration::newest(steps);
    if has_log || outdated {
        let read_only = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_READONLY);
        return Err(failed(rusqlite::Error::SqliteFailure(read_only, None)));
    }
    Ok(connection)
}

/// A path for a URI (RFC 3986): what has a meaning there is written as a percent code.
fn escaped(path: &str) -> String {
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
