//! Rollback of changes, at once or after an interruption.

use core::fmt;
use std::path::PathBuf;

use linerate_model::change::{ChangeSetState, ChangeTarget, RestoreOutcomeName};
use linerate_sys::host_access::{HostAccess, HostIdentity};

use crate::comparison::shown;
use crate::error::{ChangeError, Result};
use crate::id::ChangeId;
use crate::journal::{self, Journal};
use crate::session::ChangeSession;
use crate::set::{ChangePhase, ChangeSet};
use crate::store::ChangeStore;

/// Mode of a rollback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RollbackMode {
    /// Roll back.
    ForReal,
    /// Only report the steps.
    DryRun,
}

/// Outcome of the rollback of one target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RestoreOutcome {
    /// The previous value was written and read back.
    Restored,
    /// The target had the previous value already.
    AlreadyBack,
    /// Nothing was written to the target before.
    NeverWritten,
    /// The target has another value than linerate wrote: another program has changed it, and it was left alone.
    ChangedByOthers {
        /// Present value.
        now: Option<String>,
    },
    /// The interface or the network namespace no longer exists.
    Gone,
    /// The interface is in another network namespace, with this change.
    Moved {
        /// Name of the interface there.
        name: String,
        /// File that names the network namespace.
        file: String,
    },
    /// A reboot has undone the change.
    LostAtReboot,
    /// The previous value could not be restored.
    Failed(String),
}

impl RestoreOutcome {
    /// True when nothing of the change is left at the target.
    #[must_use]
    pub const fn is_restored(&self) -> bool {
        !matches!(self, Self::ChangedByOthers { .. } | Self::Moved { .. } | Self::Failed(_))
    }

    /// The outcome with values for display ([`shown`]).
    #[must_use]
    pub fn with_display_values(&self, target: &ChangeTarget) -> Self {
        match self {
            Self::ChangedByOthers { now: Some(now) } => {
                Self::ChangedByOthers { now: Some(shown(target, now).into_owned()) }
            }
            other => other.clone(),
        }
    }

    /// Name of the outcome.
    #[must_use]
    pub const fn name(&self) -> RestoreOutcomeName {
        match self {
            Self::Restored => RestoreOutcomeName::Restored,
            Self::AlreadyBack => RestoreOutcomeName::AlreadyRestored,
            Self::NeverWritten => RestoreOutcomeName::NeverWritten,
            Self::ChangedByOthers { .. } => RestoreOutcomeName::ChangedByOthers,
            Self::Gone => RestoreOutcomeName::Gone,
            Self::Moved { .. } => RestoreOutcomeName::Moved,
            Self::LostAtReboot => RestoreOutcomeName::LostAtReboot,
            Self::Failed(_) => RestoreOutcomeName::Failed,
        }
    }
}

impl fmt::Display for RestoreOutcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Restored => formatter.write_str("restored"),
            Self::AlreadyBack => formatter.write_str("already restored"),
            Self::NeverWritten => formatter.write_str("was not changed"),
            Self::ChangedByOthers { now: Some(now) } => {
                write!(formatter, "left alone: another program has changed it since, to \"{now}\"")
            }
            Self::ChangedByOthers { now: None } => {
                formatter.write_str("left alone: another program has removed it since")
            }
            Self::Gone => formatter.write_str("removed with its interface or namespace"),
            Self::Moved { name, file } => write!(
                formatter,
                "not restored: its interface is {name} in another network namespace ({file}): move it back \
                 (`nsenter --net={file} ip link set dev {name} netns PID`, PID of a process in this namespace) and roll \
                 back again"
            ),
            Self::LostAtReboot => formatter.write_str("undone by a reboot"),
            Self::Failed(reason) => write!(formatter, "not restored: {reason}"),
        }
    }
}

/// Rollback of one target.
#[derive(Clone, Debug, PartialEq)]
pub struct TargetReport {
    /// The target.
    pub target: ChangeTarget,
    /// Value before the change.
    pub from: Option<String>,
    /// Value that the change was to set.
    pub to: String,
    /// Outcome of the rollback.
    pub result: RestoreOutcome,
}

/// Rollback of a configuration file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileRollbackReport {
    /// The file.
    pub path: PathBuf,
    /// True when nothing of the set is left in it.
    pub is_back: bool,
    /// Result, as text.
    pub message: String,
}

/// Outcome of the rollback of a change set.
#[derive(Clone, Debug, PartialEq)]
pub struct RollbackReport {
    /// Number of the change set.
    pub id: ChangeId,
    /// State after the rollback; in a dry run, the present state.
    pub state: ChangeSetState,
    /// Targets, in the order of their rollback.
    pub targets: Vec<TargetReport>,
    /// The file that made its settings persistent.
    pub file: Option<FileRollbackReport>,
    /// Notes for the user.
    pub notes: Vec<String>,
}

impl RollbackReport {
    /// True when nothing of the set is left on the host.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.targets.iter().all(|target| target.result.is_restored())
            && self.file.as_ref().is_none_or(|file| file.is_back)
    }
}

/// Returns the sets that were begun and neither kept nor rolled back, the latest first: in progress, or interrupted.
pub fn pending(store: &ChangeStore, host: &dyn HostAccess) -> Result<Vec<ChangeSet>> {
    let here = host.identity()?;
    let all = store.list()?.into_iter().rev().filter_map(|(_, set)| set.ok());
    Ok(all.filter(|set| set.state(&here) == ChangeSetState::Pending).collect())
}

/// Returns the sets that [`recover`] rolls back, the latest first: [`pending`] ones, and those of which something could
/// not be restored before.
pub fn unfinished(store: &ChangeStore, host: &dyn HostAccess) -> Result<Vec<ChangeSet>> {
    let here = host.identity()?;
    let all = store.list()?.into_iter().rev().filter_map(|(_, set)| set.ok());
    Ok(all.filter(|set| set.is_unfinished(&here)).collect())
}

/// Returns the latest set that is in effect. Fails at a later one that cannot be read, as that may be it.
pub fn latest_in_effect(store: &ChangeStore, host: &dyn HostAccess) -> Result<ChangeSet> {
    let here = host.identity()?;
    let in_force = |set: &ChangeSet| {
        set.is_unfinished(&here) || matches!(set.state(&here), ChangeSetState::UntilReboot | ChangeSetState::Kept)
    };
    let latest = store.list()?.into_iter().rev().find(|(_, set)| set.as_ref().map_or(true, in_force));
    latest.map_or(Err(ChangeError::NothingInForce), |(_, set)| set)
}

/// Rolls back all readable [`unfinished`] sets (see [`ChangeStore::check_readable`]), the latest first, as every command
/// that changes a host does first. All are tried; the first error is returned. Fails with [`ChangeError::Busy`] while a
/// trial runs.
pub fn recover(store: &ChangeStore, host: &dyn HostAccess) -> Result<Vec<RollbackReport>> {
    if unfinished(store, host)?.is_empty() {
        return Ok(Vec::new());
    }
    let _lock = store.lock()?;
    let (mut reports, mut failure) = (Vec::new(), None);
    for set in unfinished(store, host)? {
        let is_repeated = set.closed.is_some();
        match roll_back_read(store, host, set, "it was interrupted") {
            Ok(report) => reports.push(report),
            // Its rollback was reported there, and is repeated there.
            Err(ChangeError::OtherNamespace { .. } | ChangeError::OtherMachine(_)) if is_repeated => {}
            Err(error) => failure = failure.or(Some(error)),
        }
    }
    failure.map_or(Ok(reports), Err)
}

/// Rolls back one set in any state. Fails with [`ChangeError::Busy`] while a trial runs; a dry run does not.
pub fn roll_back(
    store: &ChangeStore,
    host: &dyn HostAccess,
    id: ChangeId,
    mode: RollbackMode,
    reason: &str,
) -> Result<RollbackReport> {
    let set = store.get(id)?;
    if mode == RollbackMode::DryRun {
        return roll_back_locked(store, host, id, mode, reason);
    }
    let _lock = store.lock()?;
    roll_back_read(store, host, set, reason)
}

/// Rolls back a set that was read before, also when its journal has been removed or damaged since. The caller holds the
/// lock.
pub(crate) fn roll_back_read(
    store: &ChangeStore,
    host: &dyn HostAccess,
    set: ChangeSet,
    reason: &str,
) -> Result<RollbackReport> {
    match roll_back_locked(store, host, set.id, RollbackMode::ForReal, reason) {
        Err(error) if error.is_of_journal() => roll_back_unrecorded(host, set, reason, &error),
        other => other,
    }
}

fn roll_back_locked(
    store: &ChangeStore,
    host: &dyn HostAccess,
    id: ChangeId,
    mode: RollbackMode,
    reason: &str,
) -> Result<RollbackReport> {
    let path = store.journal_file(id);
    let set = ChangeSet::replay(&path, &journal::read(&path)?)?.ok_or(ChangeError::NoSuchSet(id))?;
    match mode {
        RollbackMode::DryRun => roll_back_set(host, set, None, mode, reason, Vec::new()),
        RollbackMode::ForReal => match Journal::open(&path) {
            Ok((journal, _)) => roll_back_set(host, set, Some(journal), mode, reason, Vec::new()),
            Err(error) => roll_back_unrecorded(host, set, reason, &error),
        },
    }
}

/// Rolls back a set whose journal cannot be written: the host matters more than the record.
fn roll_back_unrecorded(
    host: &dyn HostAccess,
    set: ChangeSet,
    reason: &str,
    error: &ChangeError,
) -> Result<RollbackReport> {
    let note = format!("this rollback is not recorded: {error}");
    roll_back_set(host, set, None, RollbackMode::ForReal, reason, vec![note])
}

fn roll_back_set(
    host: &dyn HostAccess,
    set: ChangeSet,
    journal: Option<Journal>,
    mode: RollbackMode,
    reason: &str,
    notes: Vec<String>,
) -> Result<RollbackReport> {
    let here = host.identity()?;
    check_origin(host, &set, &here)?;
    let mut session = ChangeSession { host, journal, set, mode, notes };
    Ok(roll_back_all(&mut session, &here, reason))
}

/// Rolls back everything that a session's set has done.
pub(crate) fn roll_back_all(session: &mut ChangeSession<'_>, here: &HostIdentity, reason: &str) -> RollbackReport {
    let set = &session.set;
    let (has_file, began_in) = (set.file.is_some(), set.identity.clone());
    let was_closed_clean = matches!(set.closed, Some((_, true, _)));
    // The file first: after a power cut in between, the next boot does not apply the settings again.
    let file = session.revert_file();
    let items = session.set.items.iter().enumerate();
    let all: Vec<usize> =
        items.filter(|(_, item)| item.phase != ChangePhase::Replaced).map(|(index, _)| index).collect();
    let lost = |target: &ChangeTarget| -> Option<RestoreOutcome> {
        if began_in.boot != here.boot {
            // A boot applies the file, also when a power cut came before the record that the set is kept.
            let came_back = has_file && matches!(target, ChangeTarget::Setting { .. });
            return (!came_back).then_some(RestoreOutcome::LostAtReboot);
        }
        (!began_in.shares_namespace(here) && target.is_of_network_namespace()).then_some(RestoreOutcome::Gone)
    };
    let targets = session.roll_back(&all, lost);
    if session.mode == RollbackMode::ForReal && !was_closed_clean {
        session.close(reason);
    }
    if began_in.boot == here.boot
        && let Some(note) = session.set.module_note(&session.host.modules())
    {
        session.note(note);
    }
    RollbackReport {
        id: session.set.id,
        state: session.set.state(here),
        targets,
        file,
        notes: core::mem::take(&mut session.notes),
    }
}

/// Refuses changes that were made on another machine or in another network namespace.
fn check_origin(host: &dyn HostAccess, set: &ChangeSet, here: &HostIdentity) -> Result<()> {
    let there = &set.identity;
    if there.machine.is_some() && here.machine.is_some() && there.machine != here.machine {
        return Err(ChangeError::OtherMachine(set.id));
    }
    let is_elsewhere = there.boot == here.boot && there.namespace != here.namespace;
    let concerns_it =
        |item: &crate::set::PlannedChange| item.phase.is_on_the_host() && item.change.target.is_of_network_namespace();
    if is_elsewhere
        && set.items.iter().any(concerns_it)
        && let Some(way) = host.way_into_namespace(there.namespace)
    {
        return Err(ChangeError::OtherNamespace { id: set.id, way });
    }
    Ok(())
}
