//! Locks between processes (`flock(2)`).

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::error::{Error, Result};

/// A lock that this process holds. It ends with this value, and with the process, however that ends.
#[derive(Debug)]
pub struct FileLock {
    _file: File,
}

/// A file to lock, kept open: it stays the same file when somebody removes or replaces its name.
#[derive(Debug)]
pub struct LockFile {
    file: File,
    path: PathBuf,
}

impl LockFile {
    /// Opens the file at `path`; creates it if there is none. On a read-only file system it is only read, which suffices
    /// for a lock.
    pub fn open(path: &Path) -> Result<Self> {
        let file = match OpenOptions::new().create(true).append(true).open(path) {
            Err(cause) if cause.kind() == io::ErrorKind::ReadOnlyFilesystem => File::open(path),
            other => other,
        };
        let file = file.map_err(|cause| Error::system(format!("locking {}", path.display()), cause))?;
        Ok(Self { file, path: path.to_owned() })
    }

    /// Acquires the lock, without waiting. Returns the file itself when another process holds it.
    pub fn try_lock(self) -> Result<core::result::Result<FileLock, Self>> {
        match flock(&self.file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Ok(FileLock { _file: self.file })),
            Err(Errno::WOULDBLOCK) => Ok(Err(self)),
            Err(cause) => Err(Error::system(format!("locking {}", self.path.display()), io::Error::from(cause))),
        }
    }
}

/// Acquires the lock of the file at `path`, without waiting; creates the file if there is none. `None` when another
/// process holds it.
pub fn try_lock(path: &Path) -> Result<Option<FileLock>> {
    Ok(LockFile::open(path)?.try_lock()?.ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time() {
        let path = std::env::temp_dir().join(format!("linerate-sys-lock-{}", std::process::id()));
        let first = try_lock(&path).expect("writable");
        assert!(first.is_some());
        assert!(try_lock(&path).expect("writable").is_none(), "each opening counts by itself");
        // The name leads to another file, but it is the first one's lock that matters.
        let waiting = LockFile::open(&path).expect("writable");
        std::fs::remove_file(&path).expect("there");
        let waiting = waiting.try_lock().expect("open").expect_err("held");
        drop(first);
        assert!(waiting.try_lock().expect("open").is_ok());
        assert!(try_lock(&path).expect("writable").is_some());
        std::fs::remove_file(&path).expect("there");
        let error = try_lock(Path::new("/proc/no-such-file")).expect_err("no files can be created there").to_string();
        assert!(error.starts_with("locking /proc/no-such-file: "), "{error}");
    }
}
