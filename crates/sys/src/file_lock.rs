//! Locks between processes (`flock(2)`).

use std::fs::{File, OpenOptions};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::error::{Error, Result};

/// A lock that this process holds. It ends with this value, and with the process, however that ends.
#[derive(Debug)]
pub struct FileLock {
    _file: File,
}

/// Acquires the lock of the file at `path`, without waiting; creates the file if there is none. `None` when another
/// process holds it.
pub fn try_lock(path: &Path) -> Result<Option<FileLock>> {
    let failed = |cause| Error::system(format!("locking {}", path.display()), cause);
    let file = OpenOptions::new().create(true).append(true).open(path).map_err(failed)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(FileLock { _file: file })),
        Err(Errno::WOULDBLOCK) => Ok(None),
        Err(cause) => Err(failed(cause.into())),
    }
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
        drop(first);
        assert!(try_lock(&path).expect("writable").is_some());
        std::fs::remove_file(&path).expect("there");
        let error = try_lock(Path::new("/proc/no-such-file")).expect_err("no files can be created there").to_string();
        assert!(error.starts_with("locking /proc/no-such-file: "), "{error}");
    }
}
