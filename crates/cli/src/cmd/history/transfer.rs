//! Runs out to other programs, and in again.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use linerate_history::{HistoryError, transfer};

use super::arguments::{FilterArguments, Format};
use crate::console;
use crate::exit::Exit;

pub(super) fn export(format: Format, out: Option<&Path>, filter: &FilterArguments) -> Result<Exit, HistoryError> {
    let history = super::open_existing()?;
    let mut sink: BufWriter<Box<dyn Write>> = BufWriter::new(match out {
        None => Box::new(Output),
        Some(file) => match File::create(file) {
            Ok(open) => Box::new(open),
            Err(cause) => return Ok(refused("creating", file, &cause)),
        },
    });
    let filter = filter.filter();
    let written = match format {
        Format::Csv => transfer::write_csv(&history, &filter, &mut sink),
        Format::Jsonl => transfer::write_json_lines(&history, &filter, &mut sink),
    };
    let written = written
        .and_then(|()| sink.flush().map_err(|cause| HistoryError::Stream { operation: "writing the export", cause }));
    match written {
        // A reader that has gone away (`| head`) is no error.
        Err(HistoryError::Stream { cause, .. }) if out.is_none() && cause.kind() == io::ErrorKind::BrokenPipe => {
            Ok(Exit::Success)
        }
        other => other.map(|()| Exit::Success),
    }
}

pub(super) fn import(files: &[PathBuf]) -> Result<Exit, HistoryError> {
    let mut history = super::open()?;
    for file in files {
        let imported = if file == Path::new("-") {
            transfer::read_json_lines(&mut history, &mut io::stdin().lock())
        } else {
            match File::open(file) {
                Ok(open) => transfer::read_json_lines(&mut history, &mut BufReader::new(open)),
                Err(cause) => return Ok(refused("opening", file, &cause)),
            }
        };
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
    Ok(Exit::Success)
}

fn refused(verb: &str, file: &Path, cause: &io::Error) -> Exit {
    let text = format!("{verb} {}: {}", file.display(), linerate_sys::describe_os_error(cause));
    console::error(&text, None);
    Exit::Unable
}

/// The standard output.
struct Output;

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if console::relay_data(bytes) { Ok(bytes.len()) } else { Err(io::ErrorKind::BrokenPipe.into()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
