//! The stored runs.

use std::path::{Path, PathBuf};

use linerate_documents::run::RunDocument;
use linerate_documents::run_list::{ListedRun, RunId};
use linerate_documents::trend::TrendSample;
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, TransactionBehavior, params, params_from_iter};

use crate::filter::RunFilter;
use crate::id::RunReference;
use crate::row::{FIGURE_COLUMNS, RunRow, RunWriter, SUMMARY_COLUMNS, figure_sample, run_summary};
use crate::{HistoryError, document, migration, open_file};

/// The history: one connection to its file. Each thread and each process opens its own.
#[derive(Debug)]
pub struct History {
    connection: Connection,
    file: PathBuf,
}

/// Outcome of adding a run unless it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AddOutcome {
    /// The run was added with this number.
    New(RunId),
    /// The run existed already, with this number.
    Known(RunId),
}

impl History {
    /// Opens `file` to store runs, and creates it where it does not exist.
    ///
    /// # Errors
    ///
    /// The directory or the file cannot be created or written, or is not a history that this version supports.
    pub fn open(file: &Path) -> Result<Self, HistoryError> {
        let connection = open_file::open_for_writing(file, migration::STEPS)?;
        Ok(Self { connection, file: file.to_path_buf() })
    }

    /// Opens an existing `file` to read runs; it need not be writable.
    ///
    /// # Errors
    ///
    /// The file does not exist, or is not a history that this version supports.
    pub fn open_existing(file: &Path) -> Result<Self, HistoryError> {
        let connection = open_file::open_for_reading(file, migration::STEPS)?;
        Ok(Self { connection, file: file.to_path_buf() })
    }

    /// The file.
    #[must_use]
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Stores a run, atomically.
    ///
    /// # Errors
    ///
    /// The file cannot be written, the disk is full, or another process holds the file for longer than 20 s.
    pub fn add(&mut self, run: &RunDocument) -> Result<RunId, HistoryError> {
        let row = RunRow::new(run)?;
        self.writing("storing a run", |transaction| RunWriter::new(transaction)?.insert(&row, &[]))
    }

    /// Stores those runs that are not known, in one transaction; returns an outcome for each. A run is known when one of
    /// the same command, host, time and duration exists.
    pub(crate) fn add_unknown(&mut self, runs: &[(RunRow, Vec<String>)]) -> Result<Vec<AddOutcome>, HistoryError> {
        self.writing("storing runs", |transaction| {
            let mut writer = RunWriter::new(transaction)?;
            runs.iter().map(|(run, tags)| writer.insert_unless_known(run, tags)).collect()
        })
    }

    /// Returns the run with that number.
    ///
    /// # Errors
    ///
    /// The run does not exist, or its document is damaged.
    pub fn get(&self, id: RunId) -> Result<RunDocument, HistoryError> {
        let bytes: Option<Vec<u8>> = self
            .connection
            .query_row("SELECT document FROM documents WHERE run = ?1", [id.get()], |row| row.get(0))
            .optional()
            .map_err(|cause| self.failed("reading a run", cause))?;
        document::decode(id, &bytes.ok_or(HistoryError::NoSuchRun(RunReference::Id(id)))?)
    }

    /// Returns the number of the run that `reference` names.
    ///
    /// # Errors
    ///
    /// The run does not exist.
    pub fn resolve(&self, reference: RunReference) -> Result<RunId, HistoryError> {
        let number = |row: &Row<'_>| row.get(0).map(RunId::new);
        let found = match reference {
            RunReference::Id(id) => self.connection.query_row("SELECT id FROM runs WHERE id = ?1", [id.get()], number),
            RunReference::BeforeLast(back) => {
                let query = "SELECT id FROM runs ORDER BY started_at_unix_ns DESC, id DESC LIMIT 1 OFFSET ?1";
                self.connection.query_row(query, [back], number)
            }
        };
        let found = found.optional().map_err(|cause| self.failed("looking for a run", cause))?;
        found.ok_or(HistoryError::NoSuchRun(reference))
    }

    /// Returns the selected runs, the latest first.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn list(&self, filter: &RunFilter) -> Result<Vec<ListedRun>, HistoryError> {
        let (condition, mut values) = filter.condition();
        values.push(filter.limit().into());
        let query = format!(
            "SELECT {SUMMARY_COLUMNS} FROM runs WHERE {condition} ORDER BY started_at_unix_ns DESC, id DESC LIMIT ?"
        );
        let list = || {
            let mut statement = self.connection.prepare(&query)?;
            let rows = statement.query_map(params_from_iter(values), run_summary)?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        };
        list().map_err(|cause| self.failed("listing the runs", cause))
    }

    /// Returns the latest `count` runs, the latest first.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn latest(&self, count: core::num::NonZeroU32) -> Result<Vec<ListedRun>, HistoryError> {
        self.list(&RunFilter { limit: Some(count), ..RunFilter::default() })
    }

    /// Returns the samples of the figure `name` over the selected runs, the oldest first. Runs in which it could not be
    /// measured have a sample without a value; runs without the figure have none.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn figures(&self, name: &str, filter: &RunFilter) -> Result<Vec<TrendSample>, HistoryError> {
        let (condition, mut values) = filter.condition();
        values.insert(0, name.to_owned().into());
        values.push(filter.limit().into());
        let query = format!(
            "SELECT id, started_at_unix_ns, host, {FIGURE_COLUMNS} FROM figures \
             JOIN runs ON runs.id = figures.run WHERE name = ? AND {condition} \
             ORDER BY started_at_unix_ns DESC, id DESC LIMIT ?"
        );
        let read = || {
            let mut statement = self.connection.prepare(&query)?;
            let rows = statement.query_map(params_from_iter(values), figure_sample)?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        };
        let mut samples = read().map_err(|cause| self.failed("reading figures", cause))?;
        samples.reverse();
        Ok(samples)
    }

    /// Returns the names of all figures of all runs, in alphabetical order.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn figure_names(&self) -> Result<Vec<String>, HistoryError> {
        let read = || {
            // One lookup for each name, not one for each figure of each run.
            let mut statement = self.connection.prepare(
                "WITH RECURSIVE names (name) AS (SELECT min(name) FROM figures UNION ALL \
                 SELECT (SELECT min(name) FROM figures WHERE figures.name > names.name) FROM names \
                 WHERE names.name IS NOT NULL) SELECT name FROM names WHERE name IS NOT NULL",
            )?;
            let rows = statement.query_map([], |row| row.get(0))?;
            rows.collect::<rusqlite::Result<Vec<String>>>()
        };
        read().map_err(|cause| self.failed("reading figures", cause))
    }

    /// Deletes runs, all of them or none.
    ///
    /// # Errors
    ///
    /// One of them does not exist, or the file cannot be written.
    pub fn delete(&mut self, ids: &[RunId]) -> Result<(), HistoryError> {
        let missing = self.writing("deleting runs", |transaction| {
            for id in ids {
                // The error drops the transaction, which rolls it back.
                if transaction.execute("DELETE FROM runs WHERE id = ?1", [id.get()])? == 0 {
                    return Err(MissingRun(*id).into());
                }
            }
            Ok(())
        });
        missing.map_err(restore_missing_run)?;
        self.release_free_pages();
        Ok(())
    }

    /// Adds the tag `text` to a run; adding it again has no effect.
    ///
    /// # Errors
    ///
    /// The run does not exist, or the file cannot be written.
    pub fn tag(&mut self, id: RunId, text: &str) -> Result<(), HistoryError> {
        self.resolve(RunReference::Id(id))?;
        self.writing("tagging a run", |transaction| {
            transaction.execute("INSERT OR IGNORE INTO tags VALUES (?1, ?2)", params![id.get(), text]).map(|_| ())
        })
    }

    /// Removes the tag `text` from a run; returns true if it had the tag.
    ///
    /// # Errors
    ///
    /// The run does not exist, or the file cannot be written.
    pub fn untag(&mut self, id: RunId, text: &str) -> Result<bool, HistoryError> {
        self.resolve(RunReference::Id(id))?;
        self.writing("tagging a run", |transaction| {
            let removed =
                transaction.execute("DELETE FROM tags WHERE run = ?1 AND text = ?2", params![id.get(), text])?;
            Ok(removed > 0)
        })
    }

    /// Runs `read`.
    pub(crate) fn reading<T>(
        &self,
        operation: &'static str,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, HistoryError> {
        read(&self.connection).map_err(|cause| self.failed(operation, cause))
    }

    /// Reads each row of `query` and passes it on, as the file was at the start.
    pub(crate) fn for_each_row<T>(
        &self,
        query: &str,
        values: Vec<Value>,
        read: impl Fn(&Row<'_>) -> rusqlite::Result<T>,
        each: &mut dyn FnMut(T) -> Result<(), HistoryError>,
    ) -> Result<(), HistoryError> {
        let failed = |cause| self.failed("reading the runs", cause);
        let mut statement = self.connection.prepare(query).map_err(failed)?;
        let mut rows = statement.query(params_from_iter(values)).map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            each(read(row).map_err(failed)?)?;
        }
        Ok(())
    }

    /// Runs `change` in a transaction.
    pub(crate) fn writing<T>(
        &mut self,
        operation: &'static str,
        change: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, HistoryError> {
        let (result, transaction) = self.changed(operation, change)?;
        transaction.commit().map_err(|cause| HistoryError::from_sqlite(operation, &self.file, cause))?;
        Ok(result)
    }

    /// Runs `change` in a transaction that is rolled back.
    pub(crate) fn trying<T>(
        &mut self,
        operation: &'static str,
        change: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, HistoryError> {
        // Dropping the transaction rolls it back.
        self.changed(operation, change).map(|(result, _transaction)| result)
    }

    /// Runs `change` in a transaction that is neither committed nor rolled back.
    fn changed<T>(
        &mut self,
        operation: &'static str,
        change: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<(T, Transaction<'_>), HistoryError> {
        let file = &self.file;
        let failed = |cause| HistoryError::from_sqlite(operation, file, cause);
        // Immediately: a transaction that began with reading could not wait for the write lock.
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
        // A newer linerate may have changed the schema since this one opened the file.
        migration::schema_version(&transaction, file, migration::STEPS)?;
        let result = change(&transaction).map_err(failed)?;
        Ok((result, transaction))
    }

    fn failed(&self, operation: &'static str, cause: rusqlite::Error) -> HistoryError {
        HistoryError::from_sqlite(operation, &self.file, cause)
    }
}

/// A run that was to be deleted and does not exist, wrapped in an `SQLite` error.
#[derive(Debug, thiserror::Error)]
#[error("no run {0}")]
struct MissingRun(RunId);

impl From<MissingRun> for rusqlite::Error {
    fn from(missing: MissingRun) -> Self {
        Self::ToSqlConversionFailure(Box::new(missing))
    }
}

fn restore_missing_run(error: HistoryError) -> HistoryError {
    match &error {
        HistoryError::Database { cause: rusqlite::Error::ToSqlConversionFailure(inner), .. } => {
            match inner.downcast_ref::<MissingRun>() {
                Some(MissingRun(id)) => HistoryError::NoSuchRun(RunReference::Id(*id)),
                None => error,
            }
        }
        _ => error,
    }
}
