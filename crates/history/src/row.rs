//! Rows of the file: a run to store, and a run read for lists.

use core::time::Duration;

use linerate_documents::run::{FigureUnit, ImprovementDirection, RunDocument, RunFigure, RunKind};
use linerate_documents::run_list::{ListedRun, RunId};
use linerate_documents::trend::TrendSample;
use linerate_units::WallTime;
use rusqlite::types::Type;
use rusqlite::{OptionalExtension, Row, Statement, Transaction, params};

use crate::HistoryError;
use crate::document::{self, integer};
use crate::history::AddOutcome;

/// Columns of [`run_summary`], of table `runs`.
pub(crate) const SUMMARY_COLUMNS: &str = "id, started_at_unix_ns, duration_ns, kind, host, outcome, verdict, lab_path, \
     (SELECT json_group_array(text) FROM (SELECT text FROM tags WHERE run = id ORDER BY text))";

/// Columns of [`figure`], of table `figures`.
pub(crate) const FIGURE_COLUMNS: &str = "name, title, unit, better, value, low, high, count";

/// A run as it is stored: its columns and its packed document, which takes a twentieth of the run's own memory.
#[derive(Debug)]
pub(crate) struct RunRow {
    started_at: i64,
    duration: i64,
    kind: RunKind,
    host: String,
    port: u16,
    outcome: &'static str,
    verdict: String,
    lab_path: Option<String>,
    linerate_version: String,
    figures: Vec<RunFigure>,
    document: Vec<u8>,
}

impl RunRow {
    pub(crate) fn new(run: &RunDocument) -> Result<Self, HistoryError> {
        Ok(Self {
            started_at: integer(run.started_at_unix_ns),
            duration: integer(run.duration_ns),
            kind: run.kind,
            host: run.host.clone(),
            port: run.port,
            outcome: document::outcome_name(run.termination.outcome()),
            verdict: run.verdict.clone(),
            lab_path: run.environment.lab.as_ref().map(|lab| lab.name.clone()),
            linerate_version: run.linerate_version.clone(),
            figures: run.figures.clone(),
            document: document::encode(run)?,
        })
    }

    /// Size of the packed document in bytes.
    pub(crate) const fn document_size(&self) -> usize {
        self.document.len()
    }
}

/// Prepared statements that store runs in a transaction.
pub(crate) struct RunWriter<'t> {
    transaction: &'t Transaction<'t>,
    run: Statement<'t>,
    document: Statement<'t>,
    figure: Statement<'t>,
    tag: Statement<'t>,
    duplicate: Statement<'t>,
}

impl<'t> RunWriter<'t> {
    pub(crate) fn new(transaction: &'t Transaction<'t>) -> rusqlite::Result<Self> {
        Ok(Self {
            transaction,
            run: transaction.prepare(
                "INSERT INTO runs (started_at_unix_ns, duration_ns, kind, host, port, outcome, verdict, lab_path, \
                 linerate_version) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            )?,
            document: transaction.prepare("INSERT INTO documents VALUES (?1, ?2)")?,
            figure: transaction.prepare("INSERT INTO figures VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)")?,
            tag: transaction.prepare("INSERT OR IGNORE INTO tags VALUES (?1, ?2)")?,
            duplicate: transaction.prepare(
                "SELECT id FROM runs WHERE host = ?1 AND started_at_unix_ns = ?2 AND duration_ns = ?3 AND kind = ?4 \
                 AND port = ?5 LIMIT 1",
            )?,
        })
    }

    pub(crate) fn insert(&mut self, run: &RunRow, tags: &[String]) -> rusqlite::Result<RunId> {
        self.run.execute(params![
            run.started_at,
            run.duration,
            document::kind_name(run.kind),
            run.host,
            run.port,
            run.outcome,
            run.verdict,
            run.lab_path,
            run.linerate_version,
        ])?;
        let id = RunId::new(self.transaction.last_insert_rowid());
        self.document.execute(params![id.get(), run.document])?;
        for (position, figure) in (0_i64..).zip(&run.figures) {
            self.insert_figure(id, position, figure)?;
        }
        for tag in tags {
            self.tag.execute(params![id.get(), tag])?;
        }
        Ok(id)
    }

    fn insert_figure(&mut self, id: RunId, position: i64, figure: &RunFigure) -> rusqlite::Result<()> {
        self.figure.execute(params![
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
        Ok(())
    }

    /// Stores the run, unless one of the same command, host, time and duration exists.
    pub(crate) fn insert_unless_known(&mut self, run: &RunRow, tags: &[String]) -> rusqlite::Result<AddOutcome> {
        let values = params![run.host, run.started_at, run.duration, document::kind_name(run.kind), run.port];
        let known = self.duplicate.query_row(values, |row| row.get(0).map(RunId::new)).optional()?;
        known.map_or_else(|| self.insert(run, tags).map(AddOutcome::New), |id| Ok(AddOutcome::Known(id)))
    }
}

/// Reads the columns [`SUMMARY_COLUMNS`].
pub(crate) fn run_summary(row: &Row<'_>) -> rusqlite::Result<ListedRun> {
    let tags: String = row.get(8)?;
    Ok(ListedRun {
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

/// Reads the columns [`FIGURE_COLUMNS`] from the column `first` on.
pub(crate) fn figure(row: &Row<'_>, first: usize) -> rusqlite::Result<RunFigure> {
    Ok(RunFigure {
        name: row.get(first)?,
        title: row.get(first + 1)?,
        unit: name_column::<FigureUnit>(row, first + 2, document::parse_unit)?,
        better: name_column::<ImprovementDirection>(row, first + 3, document::parse_better)?,
        value: row.get(first + 4)?,
        low: row.get(first + 5)?,
        high: row.get(first + 6)?,
        count: row.get::<_, Option<i64>>(first + 7)?.and_then(|count| u64::try_from(count).ok()),
        note: None,
    })
}

/// Reads number, time and host of a run, then the columns [`FIGURE_COLUMNS`].
pub(crate) fn figure_sample(row: &Row<'_>) -> rusqlite::Result<TrendSample> {
    Ok(TrendSample {
        id: Some(RunId::new(row.get(0)?)),
        started_at: WallTime::from_unix(duration_column(row, 1)?),
        host: row.get(2)?,
        figure: figure(row, 3)?,
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
