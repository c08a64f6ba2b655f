//! The directory of the journals.

use core::time::Duration;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use linerate_sys::clock::{monotonic_now, sleep_until};
use linerate_sys::file_lock::{FileLock, LockFile};

use crate::error::{ChangeError, Result};
use crate::id::ChangeId;
use crate::journal;
use crate::set::ChangeSet;
use crate::state_disk;

/// Environment variable that names another directory for the state of linerate.
pub const STATE_VARIABLE: &str = "LINERATE_STATE";

/// Maximum wait for the lock of the host, many times what a watchdog needs to see that nothing is left to do.
const MAX_LOCK_WAIT: Duration = Duration::from_secs(1);

/// Time between two attempts to take the lock.
const LOCK_INTERVAL: Duration = Duration::from_millis(5);

/// The directory of all change sets of a host: one subdirectory each, named by its number, with the journal and the
/// notes that processes leave for each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeStore {
    directory: PathBuf,
}

/// A change set that may be unreadable.
pub type ListedChangeSet = (ChangeId, Result<ChangeSet>);

impl ChangeStore {
    /// Returns the store of this user: `$LINERATE_STATE/changes`; else `/var/lib/linerate/changes` for root, below
    /// `$XDG_STATE_HOME` or `~/.local/state` for others.
    pub fn from_environment() -> Result<Self> {
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let of_user = || {
            let home = || variable("HOME").map(|home| home.join(".local/state"));
            variable("XDG_STATE_HOME").or_else(home).map(|state| state.join("linerate"))
        };
        let of_root = || linerate_sys::process::is_root().then(|| PathBuf::from("/var/lib/linerate"));
        let state = variable(STATE_VARIABLE).or_else(of_root).or_else(of_user).ok_or(ChangeError::NoPlace)?;
        Ok(Self::at(&state))
    }

    /// Returns the store below this state directory.
    #[must_use]
    pub fn at(state: &Path) -> Self {
        // The watchdog may run in another directory.
        let state = std::path::absolute(state).unwrap_or_else(|_| state.to_owned());
        Self { directory: state.join("changes") }
    }

    /// Returns the state directory, the value of [`STATE_VARIABLE`].
    #[must_use]
    pub fn state_directory(&self) -> &Path {
        self.directory.parent().unwrap_or(&self.directory)
    }

    pub(crate) fn set_directory(&self, id: ChangeId) -> PathBuf {
        self.directory.join(id.to_string())
    }

    pub(crate) fn journal_file(&self, id: ChangeId) -> PathBuf {
        self.set_directory(id).join("journal")
    }

    /// Returns the numbers of all sets, the earliest first.
    pub fn ids(&self) -> Result<Vec<ChangeId>> {
        let entries = match fs::read_dir(&self.directory) {
            Ok(entries) => entries,
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(cause) => {
                return Err(ChangeError::Place {
                    operation: "listing the changes in",
                    path: self.directory.clone(),
                    cause,
                });
            }
        };
        let mut ids: Vec<ChangeId> =
            entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
        ids.sort_unstable();
        Ok(ids)
    }

    /// Returns all sets, the earliest first; those that cannot be read with the error.
    pub fn list(&self) -> Result<Vec<ListedChangeSet>> {
        let all = self.ids()?.into_iter().map(|id| (id, self.get(id)));
        // A set without its first record has changed nothing.
        Ok(all.filter(|(_, set)| !matches!(set, Err(ChangeError::NoSuchSet(_)))).collect())
    }

    /// Fails when a set cannot be read: its changes may be in effect, and nothing knows the values before them.
    pub fn check_readable(&self) -> Result<()> {
        self.list()?.into_iter().try_for_each(|(_, set)| set.map(drop))
    }

    /// Reads one set.
    pub fn get(&self, id: ChangeId) -> Result<ChangeSet> {
        let path = self.journal_file(id);
        if matches!(path.try_exists(), Ok(false)) {
            return Err(ChangeError::NoSuchSet(id));
        }
        let records = journal::read(&path)?;
        let mut set = ChangeSet::replay(&path, &records)?.ok_or(ChangeError::NoSuchSet(id))?;
        set.is_confirmed = self.is_confirmed(id);
        Ok(set)
    }

    /// Opens the file whose lock is that of the host.
    pub(crate) fn lock_file(&self) -> Result<LockFile> {
        let failed =
            |cause| ChangeError::Place { operation: "creating the directory", path: self.directory.clone(), cause };
        DirBuilder::new().recursive(true).mode(0o700).create(&self.directory).map_err(failed)?;
        let path = self.directory.join("lock");
        LockFile::open(&path).map_err(|error| ChangeError::Place { operation: "locking", path, cause: error.into() })
    }

    /// Takes the lock of the host; `None` when another process holds it.
    pub(crate) fn try_lock(&self) -> Result<Option<FileLock>> {
        let lock = self.lock_file()?.try_lock()?.ok();
        // Until they have ended, a killed process has not.
        Ok(lock.inspect(FileLock::share_with_programs))
    }

    /// Takes the lock of the host, which a watchdog holds for a moment at the end of each trial. Fails with
    /// [`ChangeError::Busy`] when a process keeps it longer than [`MAX_LOCK_WAIT`].
    pub(crate) fn lock(&self) -> Result<FileLock> {
        let limit = monotonic_now() + MAX_LOCK_WAIT;
        loop {
            if let Some(lock) = self.try_lock()? {
                return Ok(lock);
            }
            let now = monotonic_now();
            if now > limit {
                return Err(ChangeError::Busy);
            }
            sleep_until(now + LOCK_INTERVAL);
        }
    }

    /// Creates the directory of the next set. The caller holds the lock.
    pub(crate) fn create_next(&self) -> Result<ChangeId> {
        let number = self.ids()?.last().map_or(1, |last| last.get() + 1);
        let path = self.directory.join(number.to_string());
        let made = state_disk::check().and_then(|()| DirBuilder::new().mode(0o700).create(&path));
        let made = made.and_then(|()| fs::File::open(&self.directory)?.sync_all());
        made.map_err(|cause| ChangeError::Place { operation: "creating the directory", path, cause })?;
        Ok(ChangeId::new(number))
    }

    /// Removes the record of a set that has changed nothing.
    pub(crate) fn remove(&self, id: ChangeId) {
        // What remains records no change.
        let _ = fs::remove_dir_all(self.set_directory(id));
    }

    /// Confirms a set, so that neither the watchdog nor a later start rolls it back: it is in effect until the next
    /// boot. May be called from any process; the trial may go on and keep the changes for good.
    pub fn confirm(&self, id: ChangeId) -> Result<()> {
        self.get(id)?;
        self.write_note(id, CONFIRMED_NOTE, "")
    }

    pub(crate) fn is_confirmed(&self, id: ChangeId) -> bool {
        self.set_directory(id).join(CONFIRMED_NOTE).exists()
    }

    /// Writes a note for other processes, atomically.
    pub(crate) fn write_note(&self, id: ChangeId, name: &str, text: &str) -> Result<()> {
        let (path, new) = (self.set_directory(id).join(name), self.set_directory(id).join(format!("{name}.new")));
        let written = state_disk::check().and_then(|()| fs::write(&new, text)).and_then(|()| fs::rename(&new, &path));
        written.map_err(|cause| ChangeError::Place { operation: "writing", path, cause })
    }

    pub(crate) fn read_note(&self, id: ChangeId, name: &str) -> Option<String> {
        fs::read_to_string(self.set_directory(id).join(name)).ok()
    }
}

const CONFIRMED_NOTE: &str = "confirmed";
