//! Position of a receiver in a log of results.

use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use linerate_documents::fleet_result::FleetResult;
use linerate_units::WallTime;
use serde::{Deserialize, Serialize};

use super::{MAX_LINE, ResultLog, ResultLogError, parse};

/// Suffix of the files with positions.
const POSITION_SUFFIX: &str = ".position";

/// Receiver of the results of a log, by its name.
#[derive(Debug)]
pub struct ResultReceiver {
    log: ResultLog,
    /// `None` for a position that lasts as long as this receiver.
    file: Option<PathBuf>,
    position: Position,
}

/// Result of a log, and the line that holds it.
#[derive(Clone, Debug)]
pub struct LoggedResult {
    /// Result.
    pub result: FleetResult,
    /// The line without its end: a labelled JSON document.
    pub line: Vec<u8>,
    next: Position,
}

/// Position before the next result.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Position {
    /// Name of the file.
    file: String,
    /// Bytes of it that the receiver has.
    offset_bytes: u64,
}

impl ResultReceiver {
    /// Receiver of this name (letters, digits and `-`), where it was; a new one begins at the first result.
    ///
    /// # Errors
    ///
    /// [`ResultLogError`] when its position cannot be read.
    pub fn open(log: &ResultLog, name: &str) -> Result<Self, ResultLogError> {
        let file = log.directory.join(format!("{name}{POSITION_SUFFIX}"));
        let position = read_position(&file)?.unwrap_or_default();
        Ok(Self { log: log.clone(), file: Some(file), position })
    }

    /// Receiver of the results from the day of `time` (UTC) on, with a position of its own that no file has.
    #[must_use]
    pub fn of_days_since(log: &ResultLog, time: WallTime) -> Self {
        let file = super::file_name(time);
        Self { log: log.clone(), file: None, position: Position { file, offset_bytes: 0 } }
    }

    /// Results that the receiver has not yet, at most `count`. Lines that are no results are passed over.
    ///
    /// # Errors
    ///
    /// [`ResultLogError`] when the log cannot be read.
    pub fn pending(&self, count: usize) -> Result<Vec<LoggedResult>, ResultLogError> {
        let mut found = Vec::new();
        for path in self.log.files()? {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if name < self.position.file {
                continue;
            }
            let offset = if name == self.position.file { self.position.offset_bytes } else { 0 };
            read_results(&path, &name, offset, count, &mut found).map_err(ResultLogError::new("reading", &path))?;
            if found.len() >= count {
                break;
            }
        }
        Ok(found)
    }

    /// Moves behind a result that the receiver has.
    ///
    /// # Errors
    ///
    /// [`ResultLogError`] when the position cannot be written; the result will be sent again after a restart.
    pub fn advance(&mut self, result: &LoggedResult) -> Result<(), ResultLogError> {
        self.position = result.next.clone();
        let Some(position_file) = &self.file else { return Ok(()) };
        let write = || -> io::Result<()> {
            let temporary = position_file.with_extension("position-new");
            let mut file = File::create(&temporary)?;
            file.write_all(&serde_json::to_vec(&self.position)?)?;
            file.sync_data()?;
            std::fs::rename(&temporary, position_file)
        };
        write().map_err(ResultLogError::new("writing the position", position_file))
    }
}

fn read_results(
    path: &Path,
    name: &str,
    mut offset: u64,
    count: usize,
    found: &mut Vec<LoggedResult>,
) -> io::Result<()> {
    let mut file = BufReader::new(File::open(path)?);
    file.seek(SeekFrom::Start(offset))?;
    let mut line = Vec::new();
    while found.len() < count {
        line.clear();
        let length = file.read_until(b'\n', &mut line)?;
        // The rest of a line is written later, or was cut off and gets its end with the next result.
        if length == 0 || line.last() != Some(&b'\n') || length > MAX_LINE {
            break;
        }
        offset += length as u64;
        line.pop();
        if let Some(result) = parse(&line) {
            let next = Position { file: name.to_owned(), offset_bytes: offset };
            found.push(LoggedResult { result, line: line.clone(), next });
        }
    }
    Ok(())
}

/// `None` without the file, and for one that a crash left empty: results are rather sent twice than never.
fn read_position(file: &Path) -> Result<Option<Position>, ResultLogError> {
    match std::fs::read(file) {
        Ok(text) => Ok(serde_json::from_slice(&text).ok()),
        Err(cause) if cause.kind() == ErrorKind::NotFound => Ok(None),
        Err(cause) => Err(ResultLogError::new("reading the position", file)(cause)),
    }
}

/// Name of the oldest file that a receiver still needs; `None` without receivers.
pub(super) fn oldest_position(directory: &Path) -> Result<Option<String>, ResultLogError> {
    let listing = || -> io::Result<Vec<PathBuf>> {
        std::fs::read_dir(directory)?.map(|entry| entry.map(|entry| entry.path())).collect()
    };
    let paths = listing().map_err(ResultLogError::new("listing", directory))?;
    let mut oldest: Option<String> = None;
    for path in paths.iter().filter(|path| path.to_string_lossy().ends_with(POSITION_SUFFIX)) {
        let file = read_position(path)?.unwrap_or_default().file;
        oldest = Some(oldest.map_or(file.clone(), |known| known.min(file)));
    }
    Ok(oldest)
}
