//! The file's schema, and how an older one becomes the present one.
//!
//! `PRAGMA user_version` has the schema's number; each step leads to the next one. A step is never changed once a release
//! has it: a change is a new step.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use crate::HistoryError;
use crate::opening::BUSY_LIMIT;

/// The steps: the first makes schema 1 out of an empty file.
pub(crate) const STEPS: &[&str] = &[include_str!("schema1.sql")];

/// What marks a file as linerate's (`PRAGMA application_id`): "linR".
pub(crate) const APPLICATION: i64 = 0x6c69_6e52;

/// Brings the file to the newest schema, if it is not there yet. What was there before is kept in a file beside it,
/// `FILE.schema-N`.
///
/// Whoever comes first does it; other processes wait and find it done.
pub(crate) fn bring_up(connection: &mut Connection, file: &Path, steps: &[&str]) -> Result<(), HistoryError> {
    let failed = |cause| HistoryError::of("preparing the tables", file, cause);
    let known = newest(steps);
    if version(connection, file, steps)? == known {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
    let present = version(&transaction, file, steps)?;
    if present > 0 && present < known {
        keep_copy(file, present)?;
    }
    let begin = usize::try_from(present).unwrap_or(0);
    for step in &steps[begin.min(steps.len())..] {
        transaction.execute_batch(step).map_err(failed)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION).map_err(failed)?;
    transaction.pragma_update(None, "user_version", known).map_err(failed)?;
    transaction.commit().map_err(failed)
}

/// The file's schema; 0 for an empty file. Other programs' files and those of a newer linerate are refused.
pub(crate) fn version(connection: &Connection, file: &Path, steps: &[&str]) -> Result<i64, HistoryError> {
    let failed = |cause| HistoryError::of("opening", file, cause);
    // In one statement, and so of one moment: another process may be making the file just now.
    let query = "SELECT (SELECT application_id FROM pragma_application_id), \
                 (SELECT user_version FROM pragma_user_version), (SELECT count(*) FROM sqlite_schema)";
    let numbers = connection.query_row(query, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
    let (application, found, tables): (i64, i64, i64) = numbers.map_err(failed)?;
    if application != APPLICATION && (application != 0 || found != 0 || tables != 0) {
        return Err(HistoryError::Foreign { file: file.to_path_buf() });
    }
    let known = newest(steps);
    if found > known {
        return Err(HistoryError::Newer { file: file.to_path_buf(), found, known });
    }
    Ok(found)
}

/// The schema that the last step leads to.
pub(crate) fn newest(steps: &[&str]) -> i64 {
    i64::try_from(steps.len()).unwrap_or(i64::MAX)
}

/// Copies what has been committed. The caller holds the right to write, so that nothing changes meanwhile.
fn keep_copy(file: &Path, version: i64) -> Result<(), HistoryError> {
    let failed = |cause| HistoryError::of("keeping a copy before its schema changes", file, cause);
    let moved =
        |cause| HistoryError::Stream { operation: "keeping a copy of the history before its schema changes", cause };
    let (partial, copy) = (beside(file, &format!("schema-{version}.partial")), copy_of(file, version));
    match std::fs::remove_file(&partial) {
        Err(cause) if cause.kind() != std::io::ErrorKind::NotFound => return Err(moved(cause)),
        _ => {}
    }
    let reader = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(failed)?;
    reader.busy_timeout(BUSY_LIMIT).map_err(failed)?;
    reader.execute("VACUUM INTO ?1", [partial.to_string_lossy()]).map_err(failed)?;
    std::fs::rename(&partial, &copy).map_err(moved)
}

/// Where the copy of a file with that schema is kept.
pub(crate) fn copy_of(file: &Path, version: i64) -> PathBuf {
    beside(file, &format!("schema-{version}"))
}

fn beside(file: &Path, ending: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    name.into()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::opening;

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
    fn an_older_file_is_brought_up_and_kept() {
        let scratch = Scratch::new();
        let file = scratch.0.join("history.sqlite");
        drop(opening::to_write(&file, FIRST).expect("made"));
        assert!(!copy_of(&file, 0).exists(), "an empty file is not worth a copy");
        let connection = opening::to_read(&file, SECOND).expect("brought up");
        assert_eq!((sum(&connection, "x"), sum(&connection, "y")), (Some(1), Some(2)));
        assert_eq!(version(&connection, &file, SECOND).expect("known"), 2);
        let copy = opening::to_read(&copy_of(&file, 1), FIRST).expect("the copy is of the old schema");
        assert_eq!((sum(&copy, "x"), sum(&copy, "y")), (Some(1), None));
        let back = opening::to_read(&file, FIRST).expect_err("too new now");
        assert!(matches!(back, HistoryError::Newer { found: 2, known: 1, .. }), "{back:?}");
    }

    #[test]
    fn a_step_that_fails_changes_nothing() {
        let scratch = Scratch::new();
        let file = scratch.0.join("history.sqlite");
        drop(opening::to_write(&file, FIRST).expect("made"));
        opening::to_write(&file, BROKEN).expect_err("the step is wrong");
        let connection = opening::to_write(&file, FIRST).expect("as before");
        assert_eq!((sum(&connection, "x"), sum(&connection, "y")), (Some(1), None));
    }

    #[test]
    fn several_bring_it_up_once() {
        let scratch = Scratch::new();
        let file = scratch.0.join("history.sqlite");
        drop(opening::to_write(&file, FIRST).expect("made"));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| opening::to_write(&file, SECOND).map(drop).expect("brought up"));
            }
        });
        let connection = opening::to_read(&file, SECOND).expect("opened");
        assert_eq!(sum(&connection, "y"), Some(2));
    }
}
