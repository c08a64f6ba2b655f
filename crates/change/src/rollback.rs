//! Taking changes back, at once or after whatever interrupted them.

use core::fmt;
use std::path::PathBuf;

use linerate_model::change::Target;
use linerate_sys::host_access::{Host, Identity};

use crate::agreement::shown;
use crate::error::{ChangeError, Result};
use crate::id::ChangeId;
use crate::journal::{self, Journal};
use crate::session::Session;
use crate::set::{ChangeSet, Phase, State};
use crate::store::Store;

/// Whether anything is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It is.
    ForReal,
    /// Only what would be done is said.
    DryRun,
}

/// What taking back did to one target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Back {
    /// What stood there before was written and read back.
    Restored,
    /// It stood there already.
    AlreadyBack,
    /// Nothing had been written.
    NeverWritten,
    /// Something else stands there than what linerate wrote: it belongs to somebody else now, and was left alone.
    ChangedByOthers {
        /// What stands there.
        now: Option<String>,
    },
    /// The interface or the network namespace is not there any more.
    Gone,
    /// A boot since has undone it.
    LostAtReboot,
    /// It could not be put back.
    Failed(String),
}

impl Back {
    /// Whether nothing of linerate's is left there that should not be.
    #[must_use]
    pub const fn is_back(&self) -> bool {
        !matches!(self, Self::ChangedByOthers { .. } | Self::Failed(_))
    }

    /// The same for people: with values of this target in few words ([`shown`]).
    #[must_use]
    pub fn shown(&self, target: &Target) -> Self {
        match self {
            Self::ChangedByOthers { now: Some(now) } => {
                Self::ChangedByOthers { now: Some(shown(target, now).into_owned()) }
            }
            other => other.clone(),
        }
    }

    /// Its name in documents.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Restored => "restored",
            Self::AlreadyBack => "already_back",
            Self::NeverWritten => "never_written",
            Self::ChangedByOthers { .. } => "changed_by_others",
            Self::Gone => "gone",
            Self::LostAtReboot => "lost_at_reboot",
            Self::Failed(_) => "failed",
        }
    }
}

impl fmt::Display for Back {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Restored => formatter.write_str("restored"),
            Self::AlreadyBack => formatter.write_str("was back already"),
            Self::NeverWritten => formatter.write_str("had not been changed"),
            Self::ChangedByOthers { now: Some(now) } => {
                write!(formatter, "left alone: somebody else has changed it since, to \"{now}\"")
            }
            Self::ChangedByOthers { now: None } => {
                formatter.write_str("left alone: somebody else has taken it away since")
            }
            Self::Gone => formatter.write_str("gone with its interface or namespace"),
            Self::LostAtReboot => formatter.write_str("undone by a reboot"),
            Self::Failed(reason) => write!(formatter, "not restored: {reason}"),
        }
    }
}

/// What was done to one target.
#[derive(Clone, Debug, PartialEq)]
pub struct TargetReport {
    /// The target.
    pub target: Target,
    /// What stood there before the change.
    pub from: Option<String>,
    /// What the change was to put there.
    pub to: String,
    /// What taking it back did.
    pub result: Back,
}

/// What was done to a configuration file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileReport {
    /// The file.
    pub path: PathBuf,
    /// Whether nothing of the set's is left in it.
    pub is_back: bool,
    /// How it went.
    pub message: String,
}

/// What taking back a set did.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The set.
    pub id: ChangeId,
    /// What has become of it; in a dry run, what it was.
    pub state: State,
    /// Its targets, in the order in which they were taken back.
    pub targets: Vec<TargetReport>,
    /// The file that made it last.
    pub file: Option<FileReport>,
    /// What else there is to know.
    pub notes: Vec<String>,
}

impl Report {
    /// Whether the host has nothing of the set any more.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.targets.iter().all(|target| target.result.is_back()) && self.file.as_ref().is_none_or(|file| file.is_back)
    }
}

/// The sets that were begun and neither kept nor taken back, the latest first: being tried just now, or interrupted.
pub fn pending(store: &Store, host: &dyn Host) -> Result<Vec<ChangeSet>> {
    let here = host.identity()?;
    let all = store.list()?.into_iter().rev().filter_map(|(_, set)| set.ok());
    Ok(all.filter(|set| set.state(&here) == State::Pending).collect())
}

/// The latest set of which something is in force.
pub fn latest_in_force(store: &Store, host: &dyn Host) -> Result<ChangeSet> {
    let here = host.identity()?;
    let in_force = |set: &ChangeSet| matches!(set.state(&here), State::Pending | State::UntilReboot | State::Kept);
    store.list()?.into_iter().rev().find_map(|(_, set)| set.ok().filter(in_force)).ok_or(ChangeError::NothingInForce)
}

/// Takes back all sets that were interrupted, the latest first: what every command that changes a host does first. Fails
/// with [`ChangeError::Busy`] while a trial runs.
pub fn recover(store: &Store, host: &dyn Host) -> Result<Vec<Report>> {
    if pending(store, host)?.is_empty() {
        return Ok(Vec::new());
    }
    let _lock = store.lock()?;
    let sets = pending(store, host)?;
    sets.iter().map(|set| take_back(store, host, set.id, Mode::ForReal, "it had been interrupted")).collect()
}

/// Takes back one set, whatever has become of it so far. Fails with [`ChangeError::Busy`] while a trial runs; a dry run
/// does not.
pub fn roll_back(store: &Store, host: &dyn Host, id: ChangeId, mode: Mode, reason: &str) -> Result<Report> {
    store.get(id)?;
    let _lock = match mode {
        Mode::ForReal => Some(store.lock()?),
        Mode::DryRun => None,
    };
    take_back(store, host, id, mode, reason)
}

/// The same for who has the lock.
pub(crate) fn take_back(store: &Store, host: &dyn Host, id: ChangeId, mode: Mode, reason: &str) -> Result<Report> {
    let path = store.journal_of(id);
    let (journal, records) = match mode {
        Mode::ForReal => Journal::open(&path).map(|(journal, records)| (Some(journal), records))?,
        Mode::DryRun => (None, journal::read(&path)?),
    };
    let set = ChangeSet::replay(&path, &records)?.ok_or(ChangeError::NoSuchSet(id))?;
    let here = host.identity()?;
    check_place(host, &set, &here)?;
    let mut session = Session { host, journal, set, mode, notes: Vec::new() };
    Ok(all_back(&mut session, &here, reason))
}

/// Takes everything back that a session's set has done.
pub(crate) fn all_back(session: &mut Session<'_>, here: &Identity, reason: &str) -> Report {
    let set = &session.set;
    let (was_kept, began_in) = (set.kept.is_some(), set.identity.clone());
    let was_closed_clean = matches!(set.closed, Some((_, true, _)));
    // The file first: after a power cut in between, the next boot does not bring the settings back.
    let file = session.take_file_back();
    let items = session.set.items.iter().enumerate();
    let all: Vec<usize> = items.filter(|(_, item)| item.phase != Phase::Replaced).map(|(index, _)| index).collect();
    let lost = |target: &Target| -> Option<Back> {
        if began_in.boot != here.boot {
            // What was kept came back with the boot, if it was a setting; nothing else did.
            let came_back = was_kept && matches!(target, Target::Setting { .. });
            return (!came_back).then_some(Back::LostAtReboot);
        }
        (began_in.namespace != here.namespace && target.is_of_network_namespace()).then_some(Back::Gone)
    };
    let targets = session.take_back(&all, lost);
    if session.mode == Mode::ForReal && !was_closed_clean {
        session.close(reason);
    }
    Report {
        id: session.set.id,
        state: session.set.state(here),
        targets,
        file,
        notes: core::mem::take(&mut session.notes),
    }
}

/// Changes can only be taken back where they were made.
fn check_place(host: &dyn Host, set: &ChangeSet, here: &Identity) -> Result<()> {
    let there = &set.identity;
    if there.machine.is_some() && here.machine.is_some() && there.machine != here.machine {
        return Err(ChangeError::OtherMachine(set.id));
    }
    let is_elsewhere = there.boot == here.boot && there.namespace != here.namespace;
    let concerns_it =
        |item: &crate::set::Item| item.phase.is_on_the_host() && item.change.target.is_of_network_namespace();
    if is_elsewhere
        && set.items.iter().any(concerns_it)
        && let Some(way) = host.way_into_namespace(there.namespace)
    {
        return Err(ChangeError::OtherNamespace { id: set.id, way });
    }
    Ok(())
}
