//! Log of the results of a fleet's tests: one file of JSON Lines per day (UTC) in one directory.
//!
//! A result is written before anything is sent on, and a receiver's position moves only after the receiver has it: a
//! result is sent at least once, and its id lets a reader keep it exactly once. Several processes may append.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use linerate_documents::civil_time;
use linerate_documents::fleet_result::FleetResult;
use linerate_documents::label::{DocumentKind, LabelledDocument};
use linerate_model::json;
use linerate_units::WallTime;

use crate::{HistoryError, HistoryLocation};

mod receiver;
mod recent_page;

pub use receiver::{LoggedResult, ResultReceiver};
pub use recent_page::RecentPage;

/// Longest line that is read: a run's document is far below it.
const MAX_LINE: usize = 16 << 20;

/// Directory with results.
#[derive(Clone, Debug)]
pub struct ResultLog {
    directory: PathBuf,
}

/// Error of an operation on a log of results.
#[derive(Debug, thiserror::Error)]
#[error("{operation} {}: {cause}", path.display())]
pub struct ResultLogError {
    /// The operation that failed.
    operation: &'static str,
    /// File or directory.
    path: PathBuf,
    /// The kernel's error.
    #[source]
    cause: io::Error,
}

impl ResultLogError {
    fn new(operation: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |cause| Self { operation, path: path.to_owned(), cause }
    }
}

/// Results of some logs, each once, in the order of their times.
#[derive(Debug, Default)]
pub struct ReadResults {
    /// Results.
    pub results: Vec<FleetResult>,
    /// Lines that are no results: a write that a full disk cut off, or another program's.
    pub unreadable: usize,
}

impl ResultLog {
    /// Log in a directory, which is made when it is missing.
    ///
    /// # Errors
    ///
    /// [`ResultLogError`] when it cannot be made.
    pub fn open(directory: &Path) -> Result<Self, ResultLogError> {
        std::fs::create_dir_all(directory).map_err(ResultLogError::new("making the directory", directory))?;
        Ok(Self { directory: directory.to_owned() })
    }

    /// Log in a directory that exists.
    #[must_use]
    pub fn existing(directory: &Path) -> Option<Self> {
        directory.is_dir().then(|| Self { directory: directory.to_owned() })
    }

    /// True for a directory, and for a file whose first line is a result.
    #[must_use]
    pub fn has_results(path: &Path) -> bool {
        if path.is_dir() {
            return true;
        }
        let Some(file) = File::open(path).ok().filter(|_| path.is_file()) else { return false };
        let mut line = Vec::new();
        let read = BufReader::new(file.take(MAX_LINE as u64)).read_until(b'\n', &mut line);
        read.is_ok() && parse(&line).is_some()
    }

    /// Directory `results` where the history is, or would be, were it not switched off.
    ///
    /// # Errors
    ///
    /// [`HistoryError::NoPlace`] and [`HistoryError::SwitchedOff`].
    pub fn usual_directory() -> Result<PathBuf, HistoryError> {
        match HistoryLocation::from_environment()? {
            HistoryLocation::File(file) => Ok(file.parent().unwrap_or(Path::new(".")).join("results")),
            HistoryLocation::Off => Err(HistoryError::SwitchedOff),
        }
    }

    /// The directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Appends a result to the file of its day, and has it on the disk before it returns.
    ///
    /// # Errors
    ///
    /// [`ResultLogError`], with the log as it was but for a line that readers skip.
    pub fn append(&self, result: &FleetResult) -> Result<(), ResultLogError> {
        let line = line(result).map_err(ResultLogError::new("encoding a result for", &self.directory))?;
        let file = self.directory.join(file_name(result.at()));
        append_line(&file, &line).map_err(ResultLogError::new("writing a result to", &file))
    }

    /// Files with results, the oldest first.
    fn files(&self) -> Result<Vec<PathBuf>, ResultLogError> {
        let listing = || -> io::Result<Vec<PathBuf>> {
            let entries = std::fs::read_dir(&self.directory)?;
            let paths = entries.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<Vec<_>>>()?;
            Ok(paths
                .into_iter()
                .filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"))
                .collect())
        };
        let mut files = listing().map_err(ResultLogError::new("listing", &self.directory))?;
        files.sort();
        Ok(files)
    }

    /// Reads the results of files, and of all files of directories.
    ///
    /// # Errors
    ///
    /// [`ResultLogError`] for a path that cannot be read.
    pub fn read(paths: &[PathBuf]) -> Result<ReadResults, ResultLogError> {
        let mut files = Vec::new();
        for path in paths {
            if path.is_dir() {
                files.extend(Self { directory: path.clone() }.files()?);
            } else {
                files.push(path.clone());
            }
        }
        read_files(&files)
    }

    /// Results of the days from that of `time` (UTC) on, at most the latest `count`.
    ///
    /// # Errors
    ///
    /// [`ResultLogError`] when the log cannot be read.
    pub fn read_latest(&self, time: WallTime, count: usize) -> Result<ReadResults, ResultLogError> {
        let first = file_name(time);
        let is_wanted = |file: &PathBuf| file.file_name().is_some_and(|name| *name.to_string_lossy() >= *first);
        let files: Vec<PathBuf> = self.files()?.into_iter().filter(is_wanted).collect();
        let mut read = read_files(&files)?;
        read.results.drain(..read.results.len().saturating_sub(count));
        Ok(read)
    }

    /// Deletes the files of days before a time, but for those that a receiver has not yet; a receiver that no process has used for
    /// 30 days until `now` holds back none.
    ///
    /// # Errors
    ///
    /// [`ResultLogError`] for a file that cannot be deleted.
    pub fn delete_before(&self, time: WallTime, now: WallTime) -> Result<usize, ResultLogError> {
        let first_kept = file_name(time);
        let needed = receiver::needed_files(self, now)?;
        let mut deleted = 0;
        for file in self.files()? {
            let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let is_needed = needed.iter().any(|needed| needed == name);
            if name.starts_with("results-") && *name < *first_kept && !is_needed {
                std::fs::remove_file(&file).map_err(ResultLogError::new("deleting", &file))?;
                deleted += 1;
            }
        }
        Ok(deleted)
    }
}

fn read_files(files: &[PathBuf]) -> Result<ReadResults, ResultLogError> {
    let mut read = ReadResults::default();
    let mut known = HashSet::new();
    for file in files {
        let text = std::fs::read(file).map_err(ResultLogError::new("reading", file))?;
        for line in text.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()) {
            match parse(line) {
                Some(result) if known.insert(result.id.clone()) => read.results.push(result),
                Some(_) => {}
                None => read.unreadable += 1,
            }
        }
    }
    read.results.sort_by(|one, other| (one.at_unix_ns, &one.id).cmp(&(other.at_unix_ns, &other.id)));
    Ok(read)
}

/// Name of the file with the results of a day.
fn file_name(time: WallTime) -> String {
    format!("results-{}.jsonl", &civil_time::rfc3339(time)[..10])
}

/// The result as one line, with its schema and kind.
fn line(result: &FleetResult) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(&LabelledDocument::new(DocumentKind::FleetResult, result))?;
    line.push(b'\n');
    Ok(line)
}

fn parse(line: &[u8]) -> Option<FleetResult> {
    json::from_slice(line).ok()
}

/// Appends with one call of the system, after the end of a line that was cut off.
fn append_line(file: &Path, line: &[u8]) -> io::Result<()> {
    let mut open = OpenOptions::new().create(true).read(true).append(true).open(file)?;
    let is_cut_off = ends_within_a_line(&mut open)?;
    let whole = if is_cut_off { [b"\n", line].concat() } else { line.to_vec() };
    open.write_all(&whole)?;
    open.sync_data()
}

fn ends_within_a_line(file: &mut File) -> io::Result<bool> {
    if file.seek(SeekFrom::End(0))? == 0 {
        return Ok(false);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}
