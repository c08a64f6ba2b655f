//! Export and import of runs.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use linerate_history::HistoryError;
use linerate_history::transfer::{self, ImportReport};

use super::arguments::{ExportFormat, FilterArguments};
use super::limit::note_deleted;
use crate::console;
use crate::exit::ExitStatus;

pub(super) fn export(
    format: ExportFormat,
    out: Option<&Path>,
    filter: &FilterArguments,
) -> Result<ExitStatus, HistoryError> {
    let history = super::open_existing()?;
    let mut sink: BufWriter<Box<dyn Write>> = BufWriter::new(match out {
        None => Box::new(StandardOutput),
        Some(file) => match File::create(file) {
            Ok(open) => Box::new(open),
            Err(cause) => return Ok(report_file_error("creating", file, &cause)),
        },
    });
    let filter = filter.filter();
    let written = match format {
        ExportFormat::Csv => transfer::write_csv(&history, &filter, &mut sink),
        ExportFormat::Jsonl => transfer::write_json_lines(&history, &filter, &mut sink),
    };
    let written = written
        .and_then(|()| sink.flush().map_err(|cause| HistoryError::Stream { operation: "writing the export", cause }));
    match written {
        // A reader that closed the pipe (`| head`) is no error; any other has been reported.
        Err(HistoryError::Stream { cause, .. }) if out.is_none() && cause.kind() == io::ErrorKind::BrokenPipe => {
            Ok(ExitStatus::Success)
        }
        Err(HistoryError::Stream { operation, cause }) => match out {
            Some(file) => Ok(report_file_error("writing", file, &cause)),
            None => Err(HistoryError::Stream { operation, cause }),
        },
        other => other.map(|()| ExitStatus::Success),
    }
}

pub(super) fn import(files: &[PathBuf]) -> Result<ExitStatus, HistoryError> {
    let mut history = super::open()?;
    for file in files {
        let shown = console::progress_style().is_some();
        let mut progress = |report: &ImportReport| {
            if shown {
                let count = report.added.len() + report.known.len();
                console::progress(&format!("{}: {count} runs", file.display()));
            }
        };
        let imported = if file == Path::new("-") {
            transfer::read_runs(&mut history, &mut io::stdin().lock(), &mut progress)
        } else {
            match File::open(file) {
                Ok(open) => transfer::read_runs(&mut history, &mut BufReader::new(open), &mut progress),
                Err(cause) => return Ok(report_file_error("opening", file, &cause)),
            }
        };
        if shown {
            console::progress("");
        }
        match imported {
            Ok(imported) => {
                let known = match imported.known.len() {
                    0 => String::new(),
                    count => format!(", {count} known already"),
                };
                console::note(&format!("{}: {} runs added{known}", file.display(), imported.added.len()));
            }
            Err(error) => {
                console::note(&format!("{}:", file.display()));
                return Err(error);
            }
        }
    }
    note_deleted(history.delete_excess()?);
    Ok(ExitStatus::Success)
}

fn report_file_error(verb: &str, file: &Path, cause: &io::Error) -> ExitStatus {
    let text = format!("{verb} {}: {}", file.display(), linerate_sys::describe_os_error(cause));
    console::error(&text, None);
    ExitStatus::Unable
}

/// Standard output as a writer.
struct StandardOutput;

impl Write for StandardOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if console::relay_data(bytes) { Ok(bytes.len()) } else { Err(io::ErrorKind::BrokenPipe.into()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
