//! Log file with rotation.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use linerate_shape::autorate::AutorateLogLine;
use linerate_sys::describe_os_error;
use linerate_units::ByteCount;

use crate::shaping::error::ShapeError;

/// Size at which the file is rotated to `FILE.1`, which is overwritten.
const MAX_LOG_SIZE: ByteCount = ByteCount::from_mebibytes(64);

/// Log of the controller.
pub(super) struct AutorateLog {
    path: PathBuf,
    file: BufWriter<File>,
    written: u64,
    largest: ByteCount,
}

impl AutorateLog {
    /// Creates a file with a header line. An existing file is renamed to `FILE.1`.
    pub(super) fn create(path: &Path) -> Result<Self, ShapeError> {
        Self::with_size(path, MAX_LOG_SIZE)
    }

    fn with_size(path: &Path, largest: ByteCount) -> Result<Self, ShapeError> {
        let (file, written) = create_file(path).map_err(|cause| write_error(path, &cause))?;
        Ok(Self { path: path.to_owned(), file, written, largest })
    }

    /// Writes a line down.
    pub(super) fn write(&mut self, line: &AutorateLogLine) -> Result<(), ShapeError> {
        self.try_write(line).map_err(|cause| write_error(&self.path, &cause))
    }

    fn try_write(&mut self, line: &AutorateLogLine) -> io::Result<()> {
        let text = format!("{line}\n");
        if self.written + text.len() as u64 > self.largest.get() {
            self.file.flush()?;
            (self.file, self.written) = create_file(&self.path)?;
        }
        self.written += text.len() as u64;
        self.file.write_all(text.as_bytes())
    }

    /// Flushes buffered lines to the file.
    pub(super) fn flush(&mut self) -> Result<(), ShapeError> {
        self.file.flush().map_err(|cause| write_error(&self.path, &cause))
    }
}

fn create_file(path: &Path) -> io::Result<(BufWriter<File>, u64)> {
    // Targets other than regular files, such as /dev/stderr, are not rotated.
    if path.is_file() {
        std::fs::rename(path, rotated_path(path))?;
    }
    let mut file = BufWriter::new(File::create(path)?);
    writeln!(file, "{}", AutorateLogLine::HEADER)?;
    Ok((file, AutorateLogLine::HEADER.len() as u64 + 1))
}

/// Returns `FILE.1`.
fn rotated_path(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".1");
    name.into()
}

fn write_error(path: &Path, cause: &io::Error) -> ShapeError {
    ShapeError::impossible(format!("writing the log {}: {}", path.display(), describe_os_error(cause)))
}

#[cfg(test)]
mod tests {
    use linerate_model::direction::Direction;
    use std::time::Duration;

    use linerate_shape::autorate::{ControllerState, LoadLevel, RateReason};
    use linerate_units::{BitRate, MonotonicTime};

    use super::*;

    pub(in super::super) fn line(number: u64) -> AutorateLogLine {
        AutorateLogLine {
            at: MonotonicTime::from_nanos(number * 1_000_000_000),
            direction: Direction::Up,
            state: ControllerState::Running,
            load: LoadLevel::High,
            rate: BitRate::from_bits_per_second(1e6),
            achieved: None,
            capacity: None,
            queue: None,
            threshold: Duration::from_millis(10),
            reason: RateReason::Hold,
        }
    }

    #[test]
    fn a_large_file_is_rotated_and_no_line_is_lost() {
        let directory = std::env::temp_dir().join(format!("linerate-log-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        let path = directory.join("autorate.log");
        let mut log = AutorateLog::with_size(&path, ByteCount::new(400)).expect("a file");
        for number in 0..8 {
            log.write(&line(number)).expect("written");
        }
        log.flush().expect("written");
        let read = |path: &Path| std::fs::read_to_string(path).expect("there");
        let (old, new) = (read(&rotated_path(&path)), read(&path));
        assert!(old.len() <= 400 && new.len() <= 400, "{} and {}", old.len(), new.len());
        for text in [&old, &new] {
            assert_eq!(text.lines().next(), Some(AutorateLogLine::HEADER));
        }
        assert_eq!(new.lines().last(), Some(line(7).to_string().as_str()));
        std::fs::remove_dir_all(&directory).expect("removed");
    }

    #[test]
    fn an_unwritable_log_is_named_in_the_error() {
        let error = AutorateLog::create(Path::new("/nowhere/at/all.log")).err().expect("no such directory");
        assert!(error.text.contains("/nowhere/at/all.log"), "{}", error.text);
    }
}
