//! Locks between processes (`flock(2)`).

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::path::Path;

use crate::error::{Error, Result, check};

/// A lock that this process holds. It ends with this value, and with the process, however that ends.
#[derive(Debug)]
pub struct FileLock {
    _file: File,
}

/// Takes the lock that the file at `path` stands for, without waiting; makes the file if there is none. `None` when
/// another process has it.
pub fn try_lock(path: &Path) -> Result<Option<FileLock>> {
    let failed = |cause| Error::system(format!("locking {}", path.display()), cause);
    let file = OpenOptions::new().create(true).append(true).open(path).map_err(failed)?;
    // SAFETY: takes numbers; the descriptor is open, as it is borrowed.
    match check(unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) }) {
        Ok(_) => Ok(Some(FileLock { _file: file })),
        Err(cause) if cause.raw_os_error() == Some(libc::EWOULDBLOCK) => Ok(None),
        Err(cause) => Err(failed(cause)),
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
        let error = try_lock(Path::new("/proc/no-such-file")).expect_err("nobody makes files there").to_string();
        assert!(error.starts_with("locking /proc/no-such-file: "), "{error}");
    }
}
