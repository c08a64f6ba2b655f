//! Position of a receiver in a log of results.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, ErrorKind, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use linerate_documents::fleet_result::FleetResult;
use linerate_model::json;
use linerate_units::WallTime;
use serde::{Deserialize, Serialize};

use super::{MAX_LINE, ResultLog, ResultLogError, parse};

/// Suffix of the files with positions.
const POSITION_SUFFIX: &str = ".position";

/// Time after which a receiver that no process uses holds back no result.
const MAX_UNUSED: Duration = Duration::from_secs(30 * 24 * 3600);

/// Time between two marks of a receiver that is in use.
const MARK_INTERVAL: Duration = Duration::from_secs(3600);

/// Receiver of the results of a log, by its name.
#[derive(Debug)]
pub struct ResultReceiver {
    log: ResultLog,
    /// `None` for a position that lasts as long as this receiver.
    file: Option<PathBuf>,
    /// Name of the first file that is read.
    first: String,
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

/// Position in each file: a test that ends after midnight is written to the file of its day when the next one has results already.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Position {
    /// Bytes that the receiver has, by the names of the files.
    offsets_bytes: BTreeMap<String, u64>,
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
        let receiver = Self { log: log.clone(), file: Some(file), first: String::new(), position };
        receiver.mark_as_used(Duration::ZERO);
        Ok(receiver)
    }

    /// Receiver of the results from the day of `time` (UTC) on, with a position of its own that no file has.
    #[must_use]
    pub fn of_days_since(log: &ResultLog, time: WallTime) -> Self {
        Self { log: log.clone(), file: None, first: super::file_name(time), position: Position::default() }
    }

    /// Results that the receiver has not yet, at most `count`. Lines that are no results are passed over.
    ///
    /// # Errors
    ///
    /// [`ResultLogError`] when the log cannot be read.
    pub fn pending(&self, count: usize) -> Result<Vec<LoggedResult>, ResultLogError> {
        self.mark_as_used(MARK_INTERVAL);
        let mut found = Vec::new();
        let files: Vec<(PathBuf, String)> =
            self.log.files()?.into_iter().map(|path| (path.clone(), file_name(&path))).collect();
        // Files that were deleted leave the position here.
        let offsets = files.iter().map(|(_, name)| (name.clone(), self.position.offset(name)));
        let mut position = Position { offsets_bytes: offsets.collect() };
        for (path, name) in files.iter().filter(|(_, name)| *name >= self.first) {
            let is_longer = path.metadata().is_ok_and(|metadata| metadata.len() > position.offset(name));
            if is_longer && found.len() < count {
                read_results(path, name, count, &mut position, &mut found)
                    .map_err(ResultLogError::new("reading", path))?;
            }
        }
        Ok(found)
    }

    /// Moves behind a result that the receiver has, with those before it.
    ///
    /// # Errors
    ///
    /// [`ResultLogError`] when the position cannot be written; the result is sent once more after a restart.
    pub fn advance(&mut self, result: &LoggedResult) -> Result<(), ResultLogError> {
        self.position = result.next.clone();
        self.write()
    }

    /// Notes in the time of the position's file that the receiver is in use, unless that is newer than `interval`. A full disk
    /// or a log that is read only leave it unmarked.
    fn mark_as_used(&self, interval: Duration) {
        let Some(file) = &self.file else { return };
        let age = file.metadata().and_then(|metadata| metadata.modified()).ok().and_then(|time| time.elapsed().ok());
        if age.is_some_and(|age| age < interval) {
            return;
        }
        let open = OpenOptions::new().create(true).append(true).open(file);
        drop(open.and_then(|open| open.set_modified(SystemTime::now())));
    }

    fn write(&self) -> Result<(), ResultLogError> {
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

impl Position {
    fn offset(&self, name: &str) -> u64 {
        self.offsets_bytes.get(name).copied().unwrap_or_default()
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Reads results of a file behind the position, and moves it.
fn read_results(
    path: &Path,
    name: &str,
    count: usize,
    position: &mut Position,
    found: &mut Vec<LoggedResult>,
) -> io::Result<()> {
    let mut offset = position.offset(name);
    let mut file = BufReader::new(File::open(path)?);
    file.seek(SeekFrom::Start(offset))?;
    let mut line = Vec::new();
    while found.len() < count {
        line.clear();
        let length = file.read_until(b'\n', &mut line)?;
        // The rest of a line is written later, or was cut off and gets its end with the next result.
        if length == 0 || line.last() != Some(&b'\n') {
            break;
        }
        offset += length as u64;
        line.pop();
        if let Some(result) = parse(&line).filter(|_| length <= MAX_LINE) {
            position.offsets_bytes.insert(name.to_owned(), offset);
            found.push(LoggedResult { result, line: line.clone(), next: position.clone() });
        }
    }
    Ok(())
}

/// `None` without the file, and for one that a crash left empty: results are rather sent twice than never.
fn read_position(file: &Path) -> Result<Option<Position>, ResultLogError> {
    match std::fs::read(file) {
        Ok(text) => Ok(json::from_slice(&text).ok()),
        Err(cause) if cause.kind() == ErrorKind::NotFound => Ok(None),
        Err(cause) => Err(ResultLogError::new("reading the position", file)(cause)),
    }
}

/// Names of files with results that a receiver, which was in use lately, does not have yet.
pub(super) fn needed_files(log: &ResultLog, now: WallTime) -> Result<Vec<String>, ResultLogError> {
    let directory = &log.directory;
    let listing = || -> io::Result<Vec<PathBuf>> {
        std::fs::read_dir(directory)?.map(|entry| entry.map(|entry| entry.path())).collect()
    };
    let paths = listing().map_err(ResultLogError::new("listing", directory))?;
    let mut needed = Vec::new();
    let is_used = |path: &&PathBuf| path.to_string_lossy().ends_with(POSITION_SUFFIX) && !is_unused(path, now);
    for path in paths.iter().filter(is_used) {
        let mut position = read_position(path)?.unwrap_or_default();
        for file in log.files()? {
            let (name, mut found) = (file_name(&file), Vec::new());
            read_results(&file, &name, 1, &mut position, &mut found).map_err(ResultLogError::new("reading", &file))?;
            needed.extend(found.first().map(|_| name));
        }
    }
    Ok(needed)
}

fn is_unused(position: &Path, now: WallTime) -> bool {
    let marked = position.metadata().and_then(|metadata| metadata.modified()).ok();
    let marked = marked.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    marked.is_some_and(|marked| now.since_unix_epoch().saturating_sub(marked) > MAX_UNUSED)
}
