//! Where the journals are.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use linerate_sys::file_lock::{FileLock, try_lock};

use crate::error::{ChangeError, Result};
use crate::id::ChangeId;
use crate::journal;
use crate::set::ChangeSet;

/// The variable that names another directory for the state of linerate.
pub const VARIABLE: &str = "LINERATE_STATE";

/// The directory of all change sets of a host: one directory each, named by its number, with the journal and what the
/// processes around it tell each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Store {
    directory: PathBuf,
}

/// A change set that may be unreadable.
pub type Listed = (ChangeId, Result<ChangeSet>);

impl Store {
    /// The one of this user: `$LINERATE_STATE/changes`; else `/var/lib/linerate/changes` for root, below
    /// `$XDG_STATE_HOME` or `~/.local/state` for others.
    pub fn from_environment() -> Result<Self> {
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let of_user = || {
            let home = || variable("HOME").map(|home| home.join(".local/state"));
            variable("XDG_STATE_HOME").or_else(home).map(|state| state.join("linerate"))
        };
        let of_root = || linerate_sys::process::is_root().then(|| PathBuf::from("/var/lib/linerate"));
        let state = variable(VARIABLE).or_else(of_root).or_else(of_user).ok_or(ChangeError::NoPlace)?;
        Ok(Self::at(&state))
    }

    /// Below this directory.
    #[must_use]
    pub fn at(state: &Path) -> Self {
        // The watchdog may run elsewhere.
        let state = std::path::absolute(state).unwrap_or_else(|_| state.to_owned());
        Self { directory: state.join("changes") }
    }

    /// The directory that holds the sets, and its parent's name for [`VARIABLE`].
    #[must_use]
    pub fn state_directory(&self) -> &Path {
        self.directory.parent().unwrap_or(&self.directory)
    }

    pub(crate) fn directory_of(&self, id: ChangeId) -> PathBuf {
        self.directory.join(id.to_string())
    }

    pub(crate) fn journal_of(&self, id: ChangeId) -> PathBuf {
        self.directory_of(id).join("journal")
    }

    /// The numbers of all sets, the earliest first.
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

    /// All sets, the earliest first; those that cannot be read with the reason.
    pub fn list(&self) -> Result<Vec<Listed>> {
        let all = self.ids()?.into_iter().map(|id| (id, self.get(id)));
        // One that never got its first line has changed nothing.
        Ok(all.filter(|(_, set)| !matches!(set, Err(ChangeError::NoSuchSet(_)))).collect())
    }

    /// One set.
    pub fn get(&self, id: ChangeId) -> Result<ChangeSet> {
        let path = self.journal_of(id);
        if matches!(path.try_exists(), Ok(false)) {
            return Err(ChangeError::NoSuchSet(id));
        }
        let records = journal::read(&path)?;
        let mut set = ChangeSet::replay(&path, &records)?.ok_or(ChangeError::NoSuchSet(id))?;
        set.is_confirmed = self.is_confirmed(id);
        Ok(set)
    }

    /// Lets only one process at a time change the host: `None` when another one does.
    pub(crate) fn try_lock(&self) -> Result<Option<FileLock>> {
        let failed =
            |cause| ChangeError::Place { operation: "making the directory", path: self.directory.clone(), cause };
        DirBuilder::new().recursive(true).mode(0o700).create(&self.directory).map_err(failed)?;
        let path = self.directory.join("lock");
        try_lock(&path).map_err(|error| ChangeError::Place { operation: "locking", path, cause: error.into() })
    }

    pub(crate) fn lock(&self) -> Result<FileLock> {
        self.try_lock()?.ok_or(ChangeError::Busy)
    }

    /// A directory for the next set. The caller has the lock.
    pub(crate) fn make_next(&self) -> Result<ChangeId> {
        let number = self.ids()?.last().map_or(1, |last| last.get() + 1);
        let path = self.directory.join(number.to_string());
        let made = DirBuilder::new().mode(0o700).create(&path);
        let made = made.and_then(|()| fs::File::open(&self.directory)?.sync_all());
        made.map_err(|cause| ChangeError::Place { operation: "making the directory", path, cause })?;
        Ok(ChangeId::new(number))
    }

    /// Removes the record of a set that has changed nothing.
    pub(crate) fn forget(&self, id: ChangeId) {
        // What stays is the record of nothing.
        let _ = fs::remove_dir_all(self.directory_of(id));
    }

    /// Confirms a set, so that neither the watchdog nor a later start takes it back: what it changed holds until the next
    /// boot. From any process; the one that tries the changes may go on and keep them for good.
    pub fn confirm(&self, id: ChangeId) -> Result<()> {
        self.get(id)?;
        self.write_note(id, CONFIRMED, "")
    }

    pub(crate) fn is_confirmed(&self, id: ChangeId) -> bool {
        self.directory_of(id).join(CONFIRMED).exists()
    }

    /// Leaves a word for other processes, as a whole.
    pub(crate) fn write_note(&self, id: ChangeId, name: &str, text: &str) -> Result<()> {
        let (path, new) = (self.directory_of(id).join(name), self.directory_of(id).join(format!("{name}.new")));
        let written = fs::write(&new, text).and_then(|()| fs::rename(&new, &path));
        written.map_err(|cause| ChangeError::Place { operation: "writing", path, cause })
    }

    pub(crate) fn read_note(&self, id: ChangeId, name: &str) -> Option<String> {
        fs::read_to_string(self.directory_of(id).join(name)).ok()
    }
}

const CONFIRMED: &str = "confirmed";
