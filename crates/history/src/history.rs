//! The runs that are kept.

use core::time::Duration;
use std::path::{Path, PathBuf};

use linerate_model::schema::run::{Better, Figure, Kind, RunDocument, Unit};
use linerate_model::schema::throughput::Outcome;
use linerate_units::WallTime;
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, TransactionBehavior, params, params_from_iter};

use crate::document::{self, integer};
use crate::filter::Filter;
use crate::id::{RunId, RunReference};
use crate::{HistoryError, migration, opening};

/// The history: one connection to its file. Each thread and each process opens its own.
#[derive(Debug)]
pub struct History {
    connection: Connection,
    file: PathBuf,
}

/// A run as a list shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its number.
    pub id: RunId,
    /// When it began.
    pub started_at: WallTime,
    /// How long it took.
    pub duration: Duration,
    /// Which command measured.
    pub kind: Kind,
    /// The host as the user wrote it.
    pub host: String,
    /// How it ended.
    pub outcome: Outcome,
    /// What came out, in one sentence.
    pub verdict: String,
    /// The emulated path, when it was one.
    pub lab_path: Option<String>,
    /// What the user wrote beside it, in alphabetical order.
    pub tags: Vec<String>,
}

/// One figure of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct FigureReading {
    /// The run.
    pub id: RunId,
    /// When the run began.
    pub started_at: WallTime,
    /// The host as the user wrote it.
    pub host: String,
    /// The figure, without its note.
    pub figure: Figure,
}

/// What became of a run that was to be added unless it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    /// It was not there: this is its number.
    New(RunId),
    /// It was there already, with this number.
    Known(RunId),
}

impl History {
    /// Opens `file` to store runs, and makes it where it does not exist.
    ///
    /// # Errors
    ///
    /// The directory or the file cannot be made or written, or is no history that this linerate knows.
    pub fn open(file: &Path) -> Result<Self, HistoryError> {
        let connection = opening::to_write(file, migration::STEPS)?;
        Ok(Self { connection, file: file.to_path_buf() })
    }

    /// Opens `file` as it is, to look at runs; a file that cannot be written is no obstacle.
    ///
    /// # Errors
    ///
    /// There is no such file, or it is no history that this linerate knows.
    pub fn open_existing(file: &Path) -> Result<Self, HistoryError> {
        let connection = opening::to_read(file, migration::STEPS)?;
        Ok(Self { connection, file: file.to_path_buf() })
    }

    /// The file.
    #[must_use]
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Stores a run, all of it or nothing.
    ///
    /// # Errors
    ///
    /// The file cannot be written, the disk is full, or another process holds the file for longer than 20 s.
    pub fn add(&mut self, run: &RunDocument) -> Result<RunId, HistoryError> {
        let document = document::encode(run)?;
        self.writing("storing a run", |transaction| insert(transaction, run, &document))
    }

    /// Stores a run with tags, unless one of the same command, host, time and duration is there.
    ///
    /// # Errors
    ///
    /// As [`Self::add`].
    pub fn add_unless_known(&mut self, run: &RunDocument, tags: &[String]) -> Result<Added, HistoryError> {
        let document = document::encode(run)?;
        self.writing("storing a run", |transaction| {
            if let Some(id) = find_same(transaction, run)? {
                return Ok(Added::Known(id));
            }
            let id = insert(transaction, run, &document)?;
            for tag in tags {
                transaction.execute("INSERT OR IGNORE INTO tags VALUES (?1, ?2)", params![id.get(), tag])?;
            }
            Ok(Added::New(id))
        })
    }

    /// The run of that number, whole.
    ///
    /// # Errors
    ///
    /// There is none, or its document is damaged.
    pub fn get(&self, id: RunId) -> Result<RunDocument, HistoryError> {
        let bytes: Option<Vec<u8>> = self
            .connection
            .query_row("SELECT document FROM runs WHERE id = ?1", [id.get()], |row| row.get(0))
            .optional()
            .map_err(|cause| self.failed("reading a run", cause))?;
        document::decode(id, &bytes.ok_or(HistoryError::NoSuchRun(RunReference::Id(id)))?)
    }

    /// The number of the run that `reference` names.
    ///
    /// # Errors
    ///
    /// There is no such run.
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

    /// The runs that are meant, the latest first.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn list(&self, filter: &Filter) -> Result<Vec<Entry>, HistoryError> {
        let (condition, mut values) = filter.condition();
        values.push(filter.limit().into());
        let query = format!(
            "SELECT id, started_at_unix_ns, duration_ns, kind, host, outcome, verdict, lab_path, \
             (SELECT json_group_array(text) FROM (SELECT text FROM tags WHERE run = id ORDER BY text)) \
             FROM runs WHERE {condition} ORDER BY started_at_unix_ns DESC, id DESC LIMIT ?"
        );
        let list = || {
            let mut statement = self.connection.prepare(&query)?;
            let rows = statement.query_map(params_from_iter(values), entry)?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        };
        list().map_err(|cause| self.failed("listing the runs", cause))
    }

    /// The latest `count` runs, the latest first.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn latest(&self, count: core::num::NonZeroU32) -> Result<Vec<Entry>, HistoryError> {
        self.list(&Filter { limit: Some(count), ..Filter::default() })
    }

    /// The readings of the figure `name` over the runs that are meant, the oldest first. Runs in which it could not be
    /// measured are there without a value; runs that do not have it are not.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn figures(&self, name: &str, filter: &Filter) -> Result<Vec<FigureReading>, HistoryError> {
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
            let rows = statement.query_map(params_from_iter(values), |row| figure_reading(name, row))?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        };
        let mut readings = read().map_err(|cause| self.failed("reading figures", cause))?;
        readings.reverse();
        Ok(readings)
    }

    /// The names of all figures that any run has, in alphabetical order.
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

    /// Removes runs, all of them or none.
    ///
    /// # Errors
    ///
    /// One of them does not exist, or the file cannot be written.
    pub fn delete(&mut self, ids: &[RunId]) -> Result<(), HistoryError> {
        let missing = self.writing("deleting runs", |transaction| {
            for id in ids {
                // The transaction is dropped with the error, so that nothing has happened.
                if transaction.execute("DELETE FROM runs WHERE id = ?1", [id.get()])? == 0 {
                    return Err(Missing(*id).into());
                }
            }
            Ok(())
        });
        missing.map_err(named_missing)
    }

    /// Writes `text` beside a run; once only, however often it is written.
    ///
    /// # Errors
    ///
    /// There is no such run, or the file cannot be written.
    pub fn tag(&mut self, id: RunId, text: &str) -> Result<(), HistoryError> {
        self.resolve(RunReference::Id(id))?;
        self.writing("tagging a run", |transaction| {
            transaction.execute("INSERT OR IGNORE INTO tags VALUES (?1, ?2)", params![id.get(), text]).map(|_| ())
        })
    }

    /// Takes `text` away from a run; whether it was there.
    ///
    /// # Errors
    ///
    /// There is no such run, or the file cannot be written.
    pub fn untag(&mut self, id: RunId, text: &str) -> Result<bool, HistoryError> {
        self.resolve(RunReference::Id(id))?;
        self.writing("tagging a run", |transaction| {
            let removed =
                transaction.execute("DELETE FROM tags WHERE run = ?1 AND text = ?2", params![id.get(), text])?;
            Ok(removed > 0)
        })
    }

    /// Carries `change` out, all of it or nothing.
    fn writing<T>(
        &mut self,
        operation: &'static str,
        change: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, HistoryError> {
        let file = &self.file;
        let failed = |cause| HistoryError::of(operation, file, cause);
        // Immediately: a transaction that began with reading could not wait for its turn to write.
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
        // A newer linerate may have changed the schema since this one opened the file.
        migration::version(&transaction, file, migration::STEPS)?;
        let result = change(&transaction).map_err(failed)?;
        transaction.commit().map_err(failed)?;
        Ok(result)
    }

    fn failed(&self, operation: &'static str, cause: rusqlite::Error) -> HistoryError {
        HistoryError::of(operation, &self.file, cause)
    }
}

/// A run that was to be deleted and is not there, on its way through `SQLite`'s error.
#[derive(Debug, thiserror::Error)]
#[error("there is no run {0}")]
struct Missing(RunId);

impl From<Missing> for rusqlite::Error {
    fn from(missing: Missing) -> Self {
        Self::ToSqlConversionFailure(Box::new(missing))
    }
}

fn named_missing(error: HistoryError) -> HistoryError {
    match &error {
        HistoryError::Database { cause: rusqlite::Error::ToSqlConversionFailure(inner), .. } => {
            match inner.downcast_ref::<Missing>() {
                Some(Missing(id)) => HistoryError::NoSuchRun(RunReference::Id(*id)),
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
            document::outcome_name(run.termination.outcome),
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

fn find_same(transaction: &Transaction<'_>, run: &RunDocument) -> rusqlite::Result<Option<RunId>> {
    let query = "SELECT id FROM runs WHERE host = ?1 AND started_at_unix_ns = ?2 AND duration_ns = ?3 AND kind = ?4 \
                 AND port = ?5 LIMIT 1";
    let (started, lasted) = (integer(run.started_at_unix_ns), integer(run.duration_ns));
    let values = params![run.host, started, lasted, document::kind_name(run.kind), run.port];
    transaction.query_row(query, values, |row| row.get(0).map(RunId::new)).optional()
}

fn entry(row: &Row<'_>) -> rusqlite::Result<Entry> {
    let tags: String = row.get(8)?;
    Ok(Entry {
        id: RunId::new(row.get(0)?),
        started_at: WallTime::from_unix(time(row, 1)?),
        duration: time(row, 2)?,
        kind: word(row, 3, document::kind_of)?,
        host: row.get(4)?,
        outcome: word(row, 5, document::outcome_of)?,
        verdict: row.get(6)?,
        lab_path: row.get(7)?,
        tags: serde_json::from_str(&tags)
            .map_err(|cause| rusqlite::Error::FromSqlConversionFailure(8, Type::Text, Box::new(cause)))?,
    })
}

fn figure_reading(name: &str, row: &Row<'_>) -> rusqlite::Result<FigureReading> {
    Ok(FigureReading {
        id: RunId::new(row.get(0)?),
        started_at: WallTime::from_unix(time(row, 1)?),
        host: row.get(2)?,
        figure: Figure {
            name: name.to_owned(),
            title: row.get(3)?,
            unit: word::<Unit>(row, 4, document::unit_of)?,
            better: word::<Better>(row, 5, document::better_of)?,
            value: row.get(6)?,
            low: row.get(7)?,
            high: row.get(8)?,
            count: row.get::<_, Option<i64>>(9)?.and_then(|count| u64::try_from(count).ok()),
            note: None,
        },
    })
}

fn time(row: &Row<'_>, column: usize) -> rusqlite::Result<Duration> {
    let nanoseconds: i64 = row.get(column)?;
    Ok(Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(0)))
}

/// A word of a closed set; another one means that the file was changed by something else.
fn word<T>(row: &Row<'_>, column: usize, read: fn(&str) -> Option<T>) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    read(&text).ok_or_else(|| {
        rusqlite::Error::FromSqlConversionFailure(column, Type::Text, format!("{text:?} is not known here").into())
    })
}
