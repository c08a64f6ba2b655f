//! Export and import of runs.

use std::cell::Cell;
use std::io::{self, BufRead, Read, Write};

use linerate_documents::run::RunDocument;
use serde_json::Deserializer;
use serde_json::error::Category;
use serde_json::value::RawValue;

use crate::document::{self, kind_name, outcome_name, unit_name};
use crate::filter::RunFilter;
use crate::history::{AddOutcome, History, RunSummary};
use crate::id::RunId;
use crate::{HistoryError, utc_time};

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

/// Writes the selected runs as JSON Lines, the oldest first: each line is a [`RunDocument`], with the key `tags` where
/// it has some. [`read_runs`] reads it.
///
/// # Errors
///
/// Reading the history or writing to `out` fails.
pub fn write_json_lines(history: &History, filter: &RunFilter, out: &mut dyn Write) -> Result<(), HistoryError> {
    for_each_run(history, filter, &mut |entry, run| out.write_all(json_line(&entry.tags, run)?.as_bytes()))
}

/// Writes the figures of the selected runs as CSV (RFC 4180) with a heading, the oldest run first: one line for each
/// figure, times in UTC, values in the unit of the next column. Unknown values are empty.
///
/// # Errors
///
/// Reading the history or writing to `out` fails.
pub fn write_csv(history: &History, filter: &RunFilter, out: &mut dyn Write) -> Result<(), HistoryError> {
    out.write_all(format!("{CSV_COLUMNS}\r\n").as_bytes()).map_err(export_error)?;
    for_each_run(history, filter, &mut |entry, run| {
        for figure in &run.figures {
            let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
            let cells = [
                entry.id.to_string(),
                utc_time::rfc3339(entry.started_at),
                entry.duration.as_secs_f64().to_string(),
                kind_name(run.kind).to_owned(),
                run.host.clone(),
                run.port.to_string(),
                outcome_name(run.termination.outcome()).to_owned(),
                entry.lab_path.clone().unwrap_or_default(),
                entry.tags.join(" "),
                figure.name.clone(),
                unit_name(figure.unit).to_owned(),
                number(figure.value),
                number(figure.low),
                number(figure.high),
                figure.count.map_or_else(String::new, |count| count.to_string()),
                run.verdict.clone(),
            ];
            let line = cells.map(|cell| csv_cell(&cell)).join(",");
            out.write_all(format!("{line}\r\n").as_bytes())?;
        }
        Ok(())
    })
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

/// Reads runs as JSON, one after the other: the output of [`write_json_lines`] or of a measurement's `--json`. Stores
/// those that are new. Each run is stored by itself: runs before one that cannot be read have been stored.
///
/// # Errors
///
/// A document is not a run, or the history cannot be written.
pub fn read_runs(history: &mut History, input: &mut dyn BufRead) -> Result<ImportReport, HistoryError> {
    let mut imported = ImportReport::default();
    let count = Cell::new(0);
    // The parser takes single bytes from the reader, so that the count is that of the present document's end.
    let documents = Deserializer::from_reader(LineCounter { inner: input, count: &count }).into_iter::<Box<RawValue>>();
    for document in documents {
        let not_a_run = |detail| HistoryError::InvalidRun { line: count.get() + 1, detail };
        let text = document.map_err(|cause| match cause.classify() {
            Category::Io => HistoryError::Stream { operation: "reading runs", cause: cause.into() },
            _ => not_a_run(cause.to_string()),
        })?;
        let run = document::parse(text.get().as_bytes()).map_err(not_a_run)?;
        let tags = tags_of(text.get().as_bytes()).map_err(not_a_run)?;
        match history.add_unless_known(&run, &tags)? {
            AddOutcome::New(id) => imported.added.push(id),
            AddOutcome::Known(id) => imported.known.push(id),
        }
    }
    Ok(imported)
}

fn for_each_run(
    history: &History,
    filter: &RunFilter,
    write: &mut dyn FnMut(&RunSummary, &RunDocument) -> io::Result<()>,
) -> Result<(), HistoryError> {
    let mut entries = history.list(filter)?;
    entries.reverse();
    for entry in &entries {
        // One at a time: all of them may exceed memory. A run that was deleted meanwhile is left out.
        match history.get(entry.id) {
            Ok(run) => write(entry, &run).map_err(export_error)?,
            Err(HistoryError::NoSuchRun(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn export_error(cause: io::Error) -> HistoryError {
    HistoryError::Stream { operation: "writing the export", cause }
}

fn json_line(tags: &[String], run: &RunDocument) -> io::Result<String> {
    let mut line = serde_json::to_string(run)?;
    if !tags.is_empty() {
        line.pop();
        line.push_str(",\"tags\":");
        line.push_str(&serde_json::to_string(tags)?);
        line.push('}');
    }
    line.push('\n');
    Ok(line)
}

fn tags_of(text: &[u8]) -> Result<Vec<String>, String> {
    #[derive(serde::Deserialize)]
    struct RunTags {
        #[serde(default)]
        tags: Vec<String>,
    }
    serde_json::from_slice(text).map(|read: RunTags| read.tags).map_err(|cause| cause.to_string())
}

/// A cell of a CSV file, quoted where it contains a separator.
fn csv_cell(cell: &str) -> String {
    if cell.contains([',', '"', '\r', '\n']) { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell.to_owned() }
}
