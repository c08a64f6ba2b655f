//! Schema of the file, and migration of an older one.
//!
//! `PRAGMA user_version` has the schema's number; each step leads to the next one. A step never changes after its
//! release: a change is a new step.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use crate::HistoryError;
use crate::open_file::MAX_BUSY_WAIT;

/// The steps: the first creates schema 1 in an empty file, the second moves the documents to a table of their own.
pub(crate) const STEPS: &[&str] = &[include_str!("schema1.sql"), include_str!("schema2.sql")];

/// Application ID of linerate's files (`PRAGMA application_id`): "linR".
pub(crate) const APPLICATION_ID: i64 = 0x6c69_6e52;

/// Migrates the file to the newest schema. The previous contents are kept in the file `FILE.schema-N` in the same
/// directory.
///
/// One process migrates; the others wait.
pub(crate) fn migrate(connection: &mut Connection, file: &Path, steps: &[&str]) -> Result<(), HistoryError> {
    let failed = |cause| HistoryError::from_sqlite("preparing the tables", file, cause);
    let known = latest_schema(steps);
    if schema_version(connection, file, steps)? == known {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
    let present = schema_version(&transaction, file, steps)?;
    if present > 0 && present < known {
        back_up(file, present)?;
    }
    let begin = usize::try_from(present).unwrap_or(0);
    for step in &steps[begin.min(steps.len())..] {
        transaction.execute_batch(step).map_err(failed)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID).map_err(failed)?;
    transaction.pragma_update(None, "user_version", known).map_err(failed)?;
    transaction.commit().map_err(failed)?;
    if present > 0 {
        // Without room, or beside other readers, the file stays as large as it is.
        let _ = connection.execute_batch("PRAGMA auto_vacuum = INCREMENTAL; VACUUM");
    }
    Ok(())
}

/// Schema of the file; 0 for an empty file. Refuses files of other programs and of a newer linerate.
pub(crate) fn schema_version(connection: &Connection, file: &Path, steps: &[&str]) -> Result<i64, HistoryError> {
    let failed = |cause| HistoryError::from_sqlite("opening", file, cause);
    // In one statement, hence consistent: another process may be creating the file.
    let query = "SELECT (SELECT application_id FROM pragma_application_id), \
                 (SELECT user_version FROM pragma_user_version), (SELECT count(*) FROM sqlite_schema)";
    let numbers = connection.query_row(query, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
    let (application, found, tables): (i64, i64, i64) = numbers.map_err(failed)?;
    if application != APPLICATION_ID && (application != 0 || found != 0 || tables != 0) {
        return Err(HistoryError::Foreign { file: file.to_path_buf() });
    }
    let known = latest_schema(steps);
    if found > known {
        return Err(HistoryError::Newer { file: file.to_path_buf(), found, known });
    }
    Ok(found)
}

/// Number of the newest schema.
pub(crate) fn latest_schema(steps: &[&str]) -> i64 {
    i64::try_from(steps.len()).unwrap_or(i64::MAX)
}

/// Copies the committed contents. The caller holds the write lock, so that nothing changes meanwhile.
fn back_up(file: &Path, version: i64) -> Result<(), HistoryError> {
    let failed = |cause| HistoryError::from_sqlite("keeping a copy before its schema changes", file, cause);
    let moved =
        |cause| HistoryError::Stream { operation: "keeping a copy of the history before its schema changes", cause };
    let (partial, copy) = (with_suffix(file, &format!("schema-{version}.partial")), backup_file(file, version));
    match std::fs::remove_file(&partial) {
        Err(cause) if cause.kind() != std::io::ErrorKind::NotFound => return Err(moved(cause)),
        _ => {}
    }
    let reader = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(failed)?;
    reader.busy_timeout(MAX_BUSY_WAIT).map_err(failed)?;
    reader.execute("VACUUM INTO ?1", [partial.to_string_lossy()]).map_err(failed)?;
    std::fs::rename(&partial, &copy).map_err(moved)
}

/// File with the copy of that schema.
pub(crate) fn backup_file(file: &Path, version: i64) -> PathBuf {
    with_suffix(file, &format!("schema-{version}"))
}

fn with_suffix(file: &Path, ending: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    name.into()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::open_file;

    const FIRST: &[&str] = &["CREATE TABLE a (x INTEGER); INSERT INTO a VALUES (1);"];
    const SECOND: &[&str] = &[FIRST[0], "ALTER TABLE a ADD COLUMN y INTEGER NOT NULL DEFAULT 2;"];
    const BROKEN: &[&str] = &[FIRST[0], "ALTER TABLE a ADD COLUMN y INTEGER; INSERT INTO missing VALUES (1);"];

    struct Scratch(PathBuf);

    impl Scratch {
        fn new() -> Self {
            static NEXT: AtomicU32 = AtomicU32::new(0);
            let name = format!("linerate-migration-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
            let path = std::env::temp_dir().join(name);
            std::fs::create_dir_all(&path).expect("a scratch folder");
            Self(path)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn sum(connection: &Connection, column: &str) -> Option<i64> {
        connection.query_row(&format!("SELECT sum({column}) FROM a"), [], |row| row.get(0)).ok()
    }

    #[test]
    fn an_older_file_is_migrated_and_kept() {
        let scratch = Scratch::new();
        let file = scratch.0.join("history.sqlite");
        drop(open_file::open_for_writing(&file, FIRST).expect("made"));
        assert!(!backup_file(&file, 0).exists(), "an empty file is not worth a copy");
        let connection = open_file::open_for_reading(&file, SECOND).expect("migrated");
        assert_eq!((sum(&connection, "x"), sum(&connection, "y")), (Some(1), Some(2)));
        assert_eq!(schema_version(&connection, &file, SECOND).expect("known"), 2);
        let copy = open_file::open_for_reading(&backup_file(&file, 1), FIRST).expect("the copy is of the old schema");
        assert_eq!((sum(&copy, "x"), sum(&copy, "y")), (Some(1), None));
        let back = open_file::open_for_reading(&file, FIRST).expect_err("too new now");
        assert!(matches!(back, HistoryError::Newer { found: 2, known: 1, .. }), "{back:?}");
    }

    #[test]
    fn a_step_that_fails_changes_nothing() {
        let scratch = Scratch::new();
        let file = scratch.0.join("history.sqlite");
        drop(open_file::open_for_writing(&file, FIRST).expect("made"));
        open_file::open_for_writing(&file, BROKEN).expect_err("the step is wrong");
        let connection = open_file::open_for_writing(&file, FIRST).expect("as before");
        assert_eq!((sum(&connection, "x"), sum(&connection, "y")), (Some(1), None));
    }

    #[test]
    fn concurrent_processes_migrate_once() {
        let scratch = Scratch::new();
        let file = scratch.0.join("history.sqlite");
        drop(open_file::open_for_writing(&file, FIRST).expect("made"));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| open_file::open_for_writing(&file, SECOND).map(drop).expect("migrated"));
            }
        });
        let connection = open_file::open_for_reading(&file, SECOND).expect("opened");
        assert_eq!(sum(&connection, "y"), Some(2));
    }
}
