//! The stored runs.

use core::time::Duration;
use std::path::{Path, PathBuf};

use linerate_documents::run::{FigureUnit, ImprovementDirection, RunDocument, RunFigure, RunKind};
use linerate_model::report::Outcome;
use linerate_units::WallTime;
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, TransactionBehavior, params, params_from_iter};

use crate::document::{self, integer};
use crate::filter::RunFilter;
use crate::id::{RunId, RunReference};
use crate::{HistoryError, migration, open_file};

/// The history: one connection to its file. Each thread and each process opens its own.
#[derive(Debug)]
pub struct History {
    connection: Connection,
    file: PathBuf,
}

/// Summary of a run, for lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunSummary {
    /// Number of the run.
    pub id: RunId,
    /// Start time.
    pub started_at: WallTime,
    /// Duration.
    pub duration: Duration,
    /// Command of the measurement.
    pub kind: RunKind,
    /// The host as the user wrote it.
    pub host: String,
    /// Outcome of the run.
    pub outcome: Outcome,
    /// Result, in one sentence.
    pub verdict: String,
    /// Name of the emulated path; `None` for a real one.
    pub lab_path: Option<String>,
    /// Tags of the user, in alphabetical order.
    pub tags: Vec<String>,
}

/// One sample of a figure: its value in one run.
#[derive(Clone, Debug, PartialEq)]
pub struct FigureSample {
    /// The run.
    pub id: RunId,
    /// Start time of the run.
    pub started_at: WallTime,
    /// The host as the user wrote it.
    pub host: String,
    /// The figure, without its note.
    pub figure: RunFigure,
}

/// Outcome of adding a run unless it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddOutcome {
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
        let document = document::encode(run)?;
        self.writing("storing a run", |transaction| insert(transaction, run, &document))
    }

    /// Stores a run with tags, unless one of the same command, host, time and duration exists.
    ///
    /// # Errors
    ///
    /// As [`Self::add`].
    pub fn add_unless_known(&mut self, run: &RunDocument, tags: &[String]) -> Result<AddOutcome, HistoryError> {
        let document = document::encode(run)?;
        self.writing("storing a run", |transaction| {
            if let Some(id) = find_duplicate(transaction, run)? {
                return Ok(AddOutcome::Known(id));
            }
            let id = insert(transaction, run, &document)?;
            for tag in tags {
                transaction.execute("INSERT OR IGNORE INTO tags VALUES (?1, ?2)", params![id.get(), tag])?;
            }
            Ok(AddOutcome::New(id))
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
            .query_row("SELECT document FROM runs WHERE id = ?1", [id.get()], |row| row.get(0))
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
    pub fn list(&self, filter: &RunFilter) -> Result<Vec<RunSummary>, HistoryError> {
        let (condition, mut values) = filter.condition();
        values.push(filter.limit().into());
        let query = format!(
            "SELECT id, started_at_unix_ns, duration_ns, kind, host, outcome, verdict, lab_path, \
             (SELECT json_group_array(text) FROM (SELECT text FROM tags WHERE run = id ORDER BY text)) \
             FROM runs WHERE {condition} ORDER BY started_at_unix_ns DESC, id DESC LIMIT ?"
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
    pub fn latest(&self, count: core::num::NonZeroU32) -> Result<Vec<RunSummary>, HistoryError> {
        self.list(&RunFilter { limit: Some(count), ..RunFilter::default() })
    }

    /// Returns the samples of the figure `name` over the selected runs, the oldest first. Runs in which it could not be
    /// measured have a sample without a value; runs without the figure have none.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn figures(&self, name: &str, filter: &RunFilter) -> Result<Vec<FigureSample>, HistoryError> {
        let (condition, mut values) = filter.condition();
        values.insert(0, name.to_owned().into());
        values.push(filter.limit().into());
        let query = format!(
            "SELECT id, started_at_unix_ns, host, title, unit, better, value, low, high, count \
             FROM figures JOIN runs ON runs.id = figures.run WHERE name = ? AND {condition} \
             ORDER BY started_at_unix_ns DESC, id DESC LIMIT ?"
        );
        let read = || {
            let mut statement = self.connection.prepare(&query)?;
            let rows = statement.query_map(params_from_iter(values), |row| figure_sample(name, row))?;
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
            let mut statement = self.connection.prepare("SELECT DISTINCT name FROM figures ORDER BY name")?;
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
        missing.map_err(restore_missing_run)
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

    /// Runs `change` in a transaction.
    fn writing<T>(
        &mut self,
        operation: &'static str,
        change: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, HistoryError> {
        let file = &self.file;
        let failed = |cause| HistoryError::from_sqlite(operation, file, cause);
        // Immediately: a transaction that began with reading could not wait for the write lock.
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
        // A newer linerate may have changed the schema since this one opened the file.
        migration::schema_version(&transaction, file, migration::STEPS)?;
        let result = change(&transaction).map_err(failed)?;
        transaction.commit().map_err(failed)?;
        Ok(result)
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

fn insert(transaction: &Transaction<'_>, run: &RunDocument, document: &[u8]) -> rusqlite::Result<RunId> {
    transaction.execute(
        "INSERT INTO runs (started_at_unix_ns, duration_ns, kind, host, port, outcome, verdict, lab_path, \
         linerate_version, document) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        params![
            integer(run.started_at_unix_ns),
            integer(run.duration_ns),
            document::kind_name(run.kind),
            run.host,
            run.port,
            document::outcome_name(run.termination.outcome()),
            run.verdict,
            run.environment.lab.as_ref().map(|lab| &lab.name),
            run.linerate_version,
            document,
        ],
    )?;
    let id = RunId::new(transaction.last_insert_rowid());
    let mut statement = transaction.prepare("INSERT INTO figures VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)")?;
    for (position, figure) in (0_i64..).zip(&run.figures) {
        statement.execute(params![
            id.get(),
            position,
            figure.name,
            figure.title,
            document::unit_name(figure.unit),
            document::better_name(figure.better),
            figure.value,
            figure.low,
            figure.high,
            figure.count.map(integer),
        ])?;
    }
    Ok(id)
}

fn find_duplicate(transaction: &Transaction<'_>, run: &RunDocument) -> rusqlite::Result<Option<RunId>> {
    let query = "SELECT id FROM runs WHERE host = ?1 AND started_at_unix_ns = ?2 AND duration_ns = ?3 AND kind = ?4 \
                 AND port = ?5 LIMIT 1";
    let (started, lasted) = (integer(run.started_at_unix_ns), integer(run.duration_ns));
    let values = params![run.host, started, lasted, document::kind_name(run.kind), run.port];
    transaction.query_row(query, values, |row| row.get(0).map(RunId::new)).optional()
}

fn run_summary(row: &Row<'_>) -> rusqlite::Result<RunSummary> {
    let tags: String = row.get(8)?;
    Ok(RunSummary {
        id: RunId::new(row.get(0)?),
        started_at: WallTime::from_unix(duration_column(row, 1)?),
        duration: duration_column(row, 2)?,
        kind: name_column(row, 3, document::parse_kind)?,
        host: row.get(4)?,
        outcome: name_column(row, 5, document::parse_outcome)?,
        verdict: row.get(6)?,
        lab_path: row.get(7)?,
        tags: serde_json::from_str(&tags)
            .map_err(|cause| rusqlite::Error::FromSqlConversionFailure(8, Type::Text, Box::new(cause)))?,
    })
}

fn figure_sample(name: &str, row: &Row<'_>) -> rusqlite::Result<FigureSample> {
    Ok(FigureSample {
        id: RunId::new(row.get(0)?),
        started_at: WallTime::from_unix(duration_column(row, 1)?),
        host: row.get(2)?,
        figure: RunFigure {
            name: name.to_owned(),
            title: row.get(3)?,
            unit: name_column::<FigureUnit>(row, 4, document::parse_unit)?,
            better: name_column::<ImprovementDirection>(row, 5, document::parse_better)?,
            value: row.get(6)?,
            low: row.get(7)?,
            high: row.get(8)?,
            count: row.get::<_, Option<i64>>(9)?.and_then(|count| u64::try_from(count).ok()),
            note: None,
        },
    })
}

fn duration_column(row: &Row<'_>, column: usize) -> rusqlite::Result<Duration> {
    let nanoseconds: i64 = row.get(column)?;
    Ok(Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(0)))
}

/// Parses a name of a closed set; an unknown name means that another program has changed the file.
fn name_column<T>(row: &Row<'_>, column: usize, read: fn(&str) -> Option<T>) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    read(&text).ok_or_else(|| {
        rusqlite::Error::FromSqlConversionFailure(column, Type::Text, format!("unknown value {text:?}").into())
    })
}
