//! The log: lines in a file, which is begun anew when it has grown large.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use linerate_shape::autorate::LogLine;
use linerate_sys::describe_os_error;
use linerate_units::ByteCount;

use crate::cmd::shape::error::ShapeError;

/// A file that has grown to this is set aside, in place of the one that was set aside before.
const LARGEST: ByteCount = ByteCount::from_mebibytes(64);

/// Lines that are written down.
pub(super) struct LogFile {
    path: PathBuf,
    file: BufWriter<File>,
    written: u64,
    largest: ByteCount,
}

impl LogFile {
    /// A new file with the line that names its columns. One that is there is set aside as `FILE.1`.
    pub(super) fn create(path: &Path) -> Result<Self, ShapeError> {
        Self::with_size(path, LARGEST)
    }

    fn with_size(path: &Path, largest: ByteCount) -> Result<Self, ShapeError> {
        let (file, written) = begin(path).map_err(|cause| failed(path, &cause))?;
        Ok(Self { path: path.to_owned(), file, written, largest })
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a line down.
    pub(super) fn write(&mut self, line: &LogLine) -> Result<(), ShapeError> {
        self.try_write(line).map_err(|cause| failed(&self.path, &cause))
    }

    fn try_write(&mut self, line: &LogLine) -> io::Result<()> {
        let text = format!("{line}\n");
        if self.written + text.len() as u64 > self.largest.get() {
            self.file.flush()?;
            (self.file, self.written) = begin(&self.path)?;
        }
        self.written += text.len() as u64;
        self.file.write_all(text.as_bytes())
    }

    /// Has readers see what was written.
    pub(super) fn flush(&mut self) -> Result<(), ShapeError> {
        self.file.flush().map_err(|cause| failed(&self.path, &cause))
    }
}

fn begin(path: &Path) -> io::Result<(BufWriter<File>, u64)> {
    // What is no file, such as /dev/stderr, is written to as it is.
    if path.is_file() {
        std::fs::rename(path, aside(path))?;
    }
    let mut file = BufWriter::new(File::create(path)?);
    writeln!(file, "{}", LogLine::HEADER)?;
    Ok((file, LogLine::HEADER.len() as u64 + 1))
}

/// `FILE.1`.
fn aside(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".1");
    name.into()
}

fn failed(path: &Path, cause: &io::Error) -> ShapeError {
    ShapeError::unable(format!("writing the log {}: {}", path.display(), describe_os_error(cause)))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use linerate_model::throughput::Flow;
    use linerate_shape::autorate::{Load, Reason, State};
    use linerate_units::{BitRate, MonotonicTime};

    use super::*;

    pub(in super::super) fn line(number: u64) -> LogLine {
        LogLine {
            at: MonotonicTime::from_nanos(number * 1_000_000_000),
            direction: Flow::Up,
            state: State::Running,
            load: Load::High,
            rate: BitRate::from_bits_per_second(1e6),
            achieved: None,
            capacity: None,
            queue: None,
            threshold: Duration::from_millis(10),
            reason: Reason::Hold,
        }
    }

    #[test]
    fn a_large_file_is_set_aside_and_no_line_is_lost() {
        let directory = std::env::temp_dir().join(format!("linerate-log-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        let path = directory.join("autorate.log");
        let mut log = LogFile::with_size(&path, ByteCount::new(400)).expect("a file");
        for number in 0..8 {
            log.write(&line(number)).expect("written");
        }
        log.flush().expect("written");
        let read = |path: &Path| std::fs::read_to_string(path).expect("there");
        let (old, new) = (read(&aside(&path)), read(&path));
        assert!(old.len() <= 400 && new.len() <= 400, "{} and {}", old.len(), new.len());
        for text in [&old, &new] {
            assert_eq!(text.lines().next(), Some(LogLine::HEADER));
        }
        assert_eq!(new.lines().last(), Some(line(7).to_string().as_str()));
        std::fs::remove_dir_all(&directory).expect("removed");
    }

    #[test]
    fn a_log_that_cannot_be_written_says_where() {
        let error = LogFile::create(Path::new("/nowhere/at/all.log")).err().expect("no such directory");
        assert!(error.text.contains("/nowhere/at/all.log"), "{}", error.text);
    }
}
