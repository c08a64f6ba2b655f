//! Export and import of runs.

use std::cell::Cell;
use std::io::{self, BufRead, Read, Write};

use linerate_documents::civil_time;
use linerate_documents::run::RunFigure;
use linerate_documents::run_list::{ListedRun, RunId};
use linerate_model::json;
use rusqlite::Row;
use serde_json::Deserializer;
use serde_json::error::Category;
use serde_json::value::RawValue;

use crate::HistoryError;
use crate::document::{self, kind_name, outcome_name, unit_name};
use crate::filter::RunFilter;
use crate::history::{AddOutcome, History};
use crate::row::{self, FIGURE_COLUMNS, RunRow, SUMMARY_COLUMNS, run_summary};

/// The columns of [`write_csv`].
const CSV_COLUMNS: &str =
    "id,started_at,duration_s,kind,host,port,outcome,lab_path,tags,figure,unit,value,low,high,count,verdict";

/// Result of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportReport {
    /// Numbers of the runs that were added.
    pub added: Vec<RunId>,
    /// Numbers of the runs that existed already.
    pub known: Vec<RunId>,
}

/// Writes the selected runs as JSON Lines, the oldest first: each line is a
/// [`linerate_documents::run::RunDocument`], with the key `tags` where
/// it has some. [`read_runs`] reads it.
///
/// # Errors
///
/// Reading the history or writing to `out` fails.
pub fn write_json_lines(history: &History, filter: &RunFilter, out: &mut dyn Write) -> Result<(), HistoryError> {
    let (condition, values) = filter.selection();
    let query = format!(
        "SELECT {SUMMARY_COLUMNS}, document FROM runs CROSS JOIN documents ON documents.run = id \
         WHERE {condition} ORDER BY started_at_unix_ns, id"
    );
    // Row by row: all of them may exceed memory.
    let each = |row: &Row<'_>| {
        let run = run_summary(row)?;
        Ok((run, row.get::<_, Vec<u8>>(9)?))
    };
    history.for_each_row(&query, values, each, &mut |(run, packed)| {
        let line = json_line(&run.tags, document::unpack(run.id, &packed)?)
            .ok_or_else(|| HistoryError::DamagedRun { id: run.id, detail: "its document is no object".to_owned() })?;
        out.write_all(&line).map_err(export_error)
    })
}

/// Writes the figures of the selected runs as CSV (RFC 4180) with a heading, the oldest run first: one line for each
/// figure, times in UTC, values in the unit of the next column. Unknown values are empty.
///
/// # Errors
///
/// Reading the history or writing to `out` fails.
pub fn write_csv(history: &History, filter: &RunFilter, out: &mut dyn Write) -> Result<(), HistoryError> {
    out.write_all(format!("{CSV_COLUMNS}\r\n").as_bytes()).map_err(export_error)?;
    let (condition, values) = filter.selection();
    let query = format!(
        "SELECT {SUMMARY_COLUMNS}, port, {FIGURE_COLUMNS} FROM runs CROSS JOIN figures ON figures.run = id \
         WHERE {condition} ORDER BY started_at_unix_ns, id, position"
    );
    let each = |row: &Row<'_>| Ok((run_summary(row)?, row.get::<_, u16>(9)?, row::figure(row, 10)?));
    history.for_each_row(&query, values, each, &mut |(run, port, figure)| {
        out.write_all(csv_line(&run, port, &figure).as_bytes()).map_err(export_error)
    })
}

fn csv_line(run: &ListedRun, port: u16, figure: &RunFigure) -> String {
    let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    let cells = [
        run.id.to_string(),
        civil_time::rfc3339(run.started_at),
        run.duration.as_secs_f64().to_string(),
        kind_name(run.kind).to_owned(),
        run.host.clone(),
        port.to_string(),
        outcome_name(run.outcome).to_owned(),
        run.lab_path.clone().unwrap_or_default(),
        run.tags.join(" "),
        figure.name.clone(),
        unit_name(figure.unit).to_owned(),
        number(figure.value),
        number(figure.low),
        number(figure.high),
        figure.count.map_or_else(String::new, |count| count.to_string()),
        run.verdict.clone(),
    ];
    let line = cells.map(|cell| csv_cell(&cell)).join(",");
    format!("{line}\r\n")
}

/// Reader that counts the lines read so far.
struct LineCounter<'a> {
    inner: &'a mut dyn BufRead,
    count: &'a Cell<usize>,
}

impl Read for LineCounter<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.inner.read(buffer)?;
        self.count
            .set(self.count.get() + buffer[..length].iter().map(|byte| usize::from(*byte == b'\n')).sum::<usize>());
        Ok(length)
    }
}

/// Runs to store in one transaction: few enough for memory, many enough that waiting for the disk does not matter.
const MAX_BATCH_RUNS: usize = 500;
const MAX_BATCH_BYTES: usize = 8 << 20;

/// Reads runs as JSON, one after the other: the output of [`write_json_lines`] or of a measurement's `--json`. Stores
/// those that are new, some hundred at a time, and calls `progress` after each time. Runs before one that cannot be read
/// have been stored.
///
/// # Errors
///
/// A document is not a run, or the history cannot be written.
pub fn read_runs(
    history: &mut History,
    input: &mut dyn BufRead,
    progress: &mut dyn FnMut(&ImportReport),
) -> Result<ImportReport, HistoryError> {
    let mut import = RunImport { history, batch: Vec::new(), bytes: 0, report: ImportReport::default(), progress };
    let count = Cell::new(0);
    // The parser takes single bytes from the reader, so that the count is that of the present document's end.
    let documents = Deserializer::from_reader(LineCounter { inner: input, count: &count }).into_iter::<Box<RawValue>>();
    for document in documents {
        let not_a_run = |detail| HistoryError::InvalidRun { line: count.get() + 1, detail };
        let read = document
            .map_err(|cause| match cause.classify() {
                Category::Io => HistoryError::Stream { operation: "reading runs", cause: cause.into() },
                _ => not_a_run(cause.to_string()),
            })
            .and_then(|text| {
                let text = text.get().as_bytes();
                let run = document::parse(text).map_err(not_a_run)?;
                Ok((RunRow::new(&run)?, tags_of(text).map_err(not_a_run)?))
            });
        match read {
            Ok((run, tags)) => import.add(run, tags)?,
            Err(error) => {
                import.store()?;
                return Err(error);
            }
        }
    }
    import.store()?;
    Ok(import.report)
}

/// Import in progress.
struct RunImport<'a> {
    history: &'a mut History,
    batch: Vec<(RunRow, Vec<String>)>,
    /// Size of the batch's documents.
    bytes: usize,
    report: ImportReport,
    progress: &'a mut dyn FnMut(&ImportReport),
}

impl RunImport<'_> {
    fn add(&mut self, run: RunRow, tags: Vec<String>) -> Result<(), HistoryError> {
        self.bytes += run.document_size();
        self.batch.push((run, tags));
        if self.batch.len() >= MAX_BATCH_RUNS || self.bytes >= MAX_BATCH_BYTES { self.store() } else { Ok(()) }
    }

    fn store(&mut self) -> Result<(), HistoryError> {
        for outcome in self.history.add_unknown(&self.batch)? {
            match outcome {
                AddOutcome::New(id) => self.report.added.push(id),
                AddOutcome::Known(id) => self.report.known.push(id),
            }
        }
        self.batch.clear();
        self.bytes = 0;
        (self.progress)(&self.report);
        Ok(())
    }
}

fn export_error(cause: io::Error) -> HistoryError {
    HistoryError::Stream { operation: "writing the export", cause }
}

/// Appends the tags to a run's document, which is one object; `None` when it is not.
fn json_line(tags: &[String], mut document: Vec<u8>) -> Option<Vec<u8>> {
    if !document.ends_with(b"}") {
        return None;
    }
    if !tags.is_empty() {
        document.pop();
        document.extend_from_slice(b",\"tags\":");
        document.extend_from_slice(&serde_json::to_vec(tags).ok()?);
        document.push(b'}');
    }
    document.push(b'\n');
    Some(document)
}

fn tags_of(text: &[u8]) -> Result<Vec<String>, String> {
    #[derive(serde::Deserialize)]
    struct RunTags {
        #[serde(default)]
        tags: Vec<String>,
    }
    json::from_slice(text).map(|read: RunTags| read.tags).map_err(|cause| cause.to_string())
}

/// A cell of a CSV file, quoted where it contains a separator.
fn csv_cell(cell: &str) -> String {
    if cell.contains([',', '"', '\r', '\n']) { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell.to_owned() }
}
