//! Locks between processes (`flock(2)`).

use std::cell::RefCell;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::error::{Error, Result};

/// A lock that this process holds. It ends with this value, and with the process, however that ends.
#[derive(Debug)]
pub struct FileLock {
    /// `None` only while it is dropped.
    file: Option<Arc<File>>,
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // A program of another thread, between its fork and its exec, has a copy of the descriptor: closing this one alone
        // would leave the lock held.
        if let Some(file) = self.file.take() {
            let _ = flock(&file, FlockOperation::Unlock);
        }
    }
}

thread_local! {
    /// The file whose lock the programs of this thread hold, too.
    static SHARED: RefCell<Weak<File>> = const { RefCell::new(Weak::new()) };
}

impl FileLock {
    /// Lets the programs hold the lock, too, that this thread starts from now on and that must not outlive it. One that
    /// waits in the kernel ends, and may still change something, after the process that was killed.
    pub fn share_with_programs(&self) {
        let file = self.file.as_ref().map_or_else(Weak::new, Arc::downgrade);
        SHARED.with(|shared| *shared.borrow_mut() = file);
    }
}

/// The file of [`FileLock::share_with_programs`], while that lock is held.
pub(crate) fn shared_with_programs() -> Option<Arc<File>> {
    SHARED.with(|shared| shared.borrow().upgrade())
}

/// A file to lock, kept open: it stays the same file when a program removes or replaces its name.
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
            Ok(()) => Ok(Ok(FileLock { file: Some(Arc::new(self.file)) })),
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
    use crate::command;

    /// A program that outlives the process which was killed, as one does that waits in the kernel.
    #[test]
    fn a_program_holds_the_lock_until_its_end() {
        let directory = std::env::temp_dir().join(format!("linerate-sys-shared-lock-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("room");
        let place = |name: &str| directory.join(name).display().to_string();
        let (path, fifos) = (directory.join("lock"), [place("started"), place("go")]);
        let patience = core::time::Duration::from_secs(60);
        command::run_checked("mkfifo", &[&fifos[0], &fifos[1]], None, patience).expect("coreutils");
        let script = format!("echo > {}; read line < {}", fifos[0], fifos[1]);
        let (sender, receiver) = std::sync::mpsc::channel();
        let running = std::thread::spawn({
            let path = path.clone();
            move || {
                let lock = try_lock(&path).expect("writable").expect("free");
                lock.share_with_programs();
                sender.send(lock).expect("received");
                command::run_bound_to_thread("sh", &["-c", &script], None, patience).expect("it runs")
            }
        });
        let mut lock = receiver.recv().expect("sent");
        assert_eq!(std::fs::read_to_string(&fifos[0]).expect("started"), "\n");
        // Closed, not unlocked: as for a process that is killed.
        drop(lock.file.take());
        assert!(try_lock(&path).expect("writable").is_none(), "the program holds it");
        std::fs::write(&fifos[1], "\n").expect("it reads");
        assert!(running.join().expect("no panic").status.success());
        assert!(try_lock(&path).expect("writable").is_some());
        std::fs::remove_dir_all(&directory).expect("ours");
    }

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
