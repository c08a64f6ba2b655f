//! Taking runs out, and in again.

use std::io::{self, BufRead, Write};

use linerate_model::schema::run::RunDocument;

use crate::document::{self, kind_name, outcome_name, unit_name};
use crate::filter::Filter;
use crate::history::{Added, Entry, History};
use crate::id::RunId;
use crate::{HistoryError, moment};

/// The columns of [`write_csv`].
const COLUMNS: &str =
    "id,started_at,duration_s,kind,host,port,outcome,lab_path,tags,figure,unit,value,low,high,count,verdict";

/// What an import brought.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// The numbers of the runs that were new.
    pub added: Vec<RunId>,
    /// The numbers of those that were there already.
    pub known: Vec<RunId>,
}

/// Writes the runs that are meant as JSON Lines, the oldest first: each line is a [`RunDocument`], with the key `tags` where
/// it has some. [`read_json_lines`] reads it.
///
/// # Errors
///
/// Reading the history or writing to `out` fails.
pub fn write_json_lines(history: &History, filter: &Filter, out: &mut dyn Write) -> Result<(), HistoryError> {
    each(history, filter, &mut |entry, run| out.write_all(json_line(&entry.tags, run)?.as_bytes()))
}

/// Writes the figures of the runs that are meant as CSV (RFC 4180) with a heading, the oldest run first: one line for each
/// figure, times in UTC, values in the unit that stands beside them. What is unknown is empty.
///
/// # Errors
///
/// Reading the history or writing to `out` fails.
pub fn write_csv(history: &History, filter: &Filter, out: &mut dyn Write) -> Result<(), HistoryError> {
    out.write_all(format!("{COLUMNS}\r\n").as_bytes()).map_err(unwritten)?;
    each(history, filter, &mut |entry, run| {
        for figure in &run.figures {
            let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
            let cells = [
                entry.id.to_string(),
                moment::rfc3339(entry.started_at),
                entry.duration.as_secs_f64().to_string(),
                kind_name(run.kind).to_owned(),
                run.host.clone(),
                run.port.to_string(),
                outcome_name(run.termination.outcome).to_owned(),
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
            let line = cells.map(|cell| quoted(&cell)).join(",");
            out.write_all(format!("{line}\r\n").as_bytes())?;
        }
        Ok(())
    })
}

/// Reads what [`write_json_lines`] wrote, and stores the runs that are not known yet. Empty lines are skipped. Each run is
/// stored by itself: what comes before a line that cannot be read has been stored.
///
/// # Errors
///
/// A line is no run, or the history cannot be written.
pub fn read_json_lines(history: &mut History, lines: &mut dyn BufRead) -> Result<Imported, HistoryError> {
    let mut imported = Imported::default();
    let mut text = Vec::new();
    for line in 1.. {
        text.clear();
        let read = lines.read_until(b'\n', &mut text);
        if read.map_err(|cause| HistoryError::Stream { operation: "reading runs", cause })? == 0 {
            break;
        }
        if text.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let not_a_run = |detail| HistoryError::NotARun { line, detail };
        let run = document::parse(&text).map_err(not_a_run)?;
        let tags = tags_of(&text).map_err(not_a_run)?;
        match history.add_unless_known(&run, &tags)? {
            Added::New(id) => imported.added.push(id),
            Added::Known(id) => imported.known.push(id),
        }
    }
    Ok(imported)
}

fn each(
    history: &History,
    filter: &Filter,
    write: &mut dyn FnMut(&Entry, &RunDocument) -> io::Result<()>,
) -> Result<(), HistoryError> {
    let mut entries = history.list(filter)?;
    entries.reverse();
    for entry in &entries {
        // One at a time: all of them may be more than fits into memory. One that was deleted meanwhile is left out.
        match history.get(entry.id) {
            Ok(run) => write(entry, &run).map_err(unwritten)?,
            Err(HistoryError::NoSuchRun(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn unwritten(cause: io::Error) -> HistoryError {
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
    struct Tags {
        #[serde(default)]
        tags: Vec<String>,
    }
    serde_json::from_slice(text).map(|read: Tags| read.tags).map_err(|cause| cause.to_string())
}

/// A cell of a CSV file: in quotes where it has something that separates.
fn quoted(cell: &str) -> String {
    if cell.contains([',', '"', '\r', '\n']) { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell.to_owned() }
}
