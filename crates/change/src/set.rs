//! A change set, replayed from its journal.

use core::time::Duration;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use linerate_model::change::{ChangePhaseName, ChangeSetState, ChangeTarget, HostChange, InterfaceIdentity};
use linerate_model::socket::ProcessId;
use linerate_sys::host_access::HostIdentity;
use linerate_units::WallTime;

use crate::error::{ChangeError, Result};
use crate::id::ChangeId;
use crate::journal::{JournalRecord, WriteOutcome};

/// Changes that are begun together, and kept or rolled back together.
#[derive(Clone, Debug, PartialEq)]
pub struct ChangeSet {
    /// Number of the set.
    pub id: ChangeId,
    /// Time of its beginning.
    pub begun_at: WallTime,
    /// Version of the linerate that began it.
    pub linerate_version: String,
    /// Purpose, as text for the user.
    pub purpose: String,
    /// The process that made it.
    pub process: ProcessId,
    /// Start time of that process, in kernel ticks since boot; 0 where it is unknown.
    pub process_began: u64,
    /// The host.
    pub identity: HostIdentity,
    /// The changes, in the order in which they were planned.
    pub items: Vec<PlannedChange>,
    /// The file that makes its settings persistent; `None` when none was written.
    pub file: Option<KeptFile>,
    /// Kernel modules that its changes have loaded.
    pub modules: BTreeSet<String>,
    /// Time at which it was kept, and reasons why it may not apply at the next boot.
    pub kept: Option<(WallTime, Vec<String>)>,
    /// Time of the rollback, whether nothing is left, and the reason.
    pub closed: Option<(WallTime, bool, String)>,
    /// True when the user has confirmed it, so that it is not rolled back automatically.
    pub is_confirmed: bool,
}

/// One change of a set.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedChange {
    /// The change; `from` is the value when it was planned.
    pub change: HostChange,
    /// Interfaces that the target or its values name, as they were when it was planned.
    pub interfaces: Vec<InterfaceIdentity>,
    /// Progress of the change.
    pub phase: ChangePhase,
    /// Latest message about it, for the user; may be empty.
    pub message: String,
    /// True when the latest rollback left it alone, as its value is another program's.
    pub is_foreign: bool,
}

/// Progress of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangePhase {
    /// Nothing was written.
    Planned,
    /// The host had the value before.
    NoNeed,
    /// The host refused the value and has the previous one.
    Refused,
    /// The journal ends before the outcome of the write: the value may or may not have been written.
    Attempted,
    /// The value is in effect.
    InForce {
        /// Value that was read after the write.
        now: Option<String>,
    },
    /// The journal ends before the outcome of the rollback.
    TakingBack {
        /// Value that was read after the write; `None` when it was not recorded.
        now: Option<Option<String>>,
    },
    /// The previous value is restored.
    Back,
    /// Nothing of it is on the host, and a later change of the set replaces it: it is no longer applied.
    Replaced,
}

impl ChangePhase {
    /// The same phase with its value in another form.
    fn with_value(self, convert: impl Fn(String) -> String) -> Self {
        match self {
            Self::InForce { now } => Self::InForce { now: now.map(convert) },
            Self::TakingBack { now } => Self::TakingBack { now: now.map(|now| now.map(convert)) },
            other => other,
        }
    }

    /// Name of the phase.
    #[must_use]
    pub const fn name(&self) -> ChangePhaseName {
        match self {
            Self::Planned => ChangePhaseName::Planned,
            Self::NoNeed => ChangePhaseName::NoNeed,
            Self::Refused => ChangePhaseName::Refused,
            Self::Attempted | Self::TakingBack { .. } => ChangePhaseName::Unfinished,
            Self::InForce { .. } => ChangePhaseName::InForce,
            Self::Back => ChangePhaseName::Back,
            Self::Replaced => ChangePhaseName::Replaced,
        }
    }

    /// True when something of the change may be on the host.
    #[must_use]
    pub const fn is_on_the_host(&self) -> bool {
        matches!(self, Self::Attempted | Self::InForce { .. } | Self::TakingBack { .. })
    }
}

impl PlannedChange {
    /// Follows the rename of an interface, in memory: the journal has the names of the time of its records.
    pub(crate) fn follow_rename(&mut self, old: &str, new: &str) {
        let target = self.change.target.clone();
        let renamed = |value: String| target.value_with_renamed(&value, old, new);
        let HostChange { from, to, .. } = &mut self.change;
        *from = from.take().map(renamed);
        *to = renamed(core::mem::take(to));
        self.phase = core::mem::replace(&mut self.phase, ChangePhase::Planned).with_value(renamed);
        self.change.target = target.with_renamed(old, new);
        for interface in self.interfaces.iter_mut().filter(|interface| interface.name == old) {
            new.clone_into(&mut interface.name);
        }
    }
}

/// A file that makes settings persistent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptFile {
    /// The file.
    pub path: PathBuf,
    /// Previous contents; `None` when the file did not exist.
    pub before: Option<String>,
    /// Contents that were written.
    pub after: String,
    /// Keys and values of this set.
    pub settings: Vec<(String, String)>,
    /// True when nothing of the set is left in it.
    pub is_reverted: bool,
}

impl ChangeSet {
    /// Replays the records in order.
    pub(crate) fn replay(path: &Path, records: &[JournalRecord]) -> Result<Option<Self>> {
        let Some((first, rest)) = records.split_first() else { return Ok(None) };
        let damaged = |detail: &str| ChangeError::Damaged { path: path.to_owned(), detail: detail.to_owned() };
        let mut set = Self::begin(first).ok_or_else(|| damaged("its first record is not `begun`"))?;
        for record in rest {
            set.apply(record).ok_or_else(|| damaged("a record names an unknown change"))?;
        }
        Ok(Some(set))
    }

    pub(crate) fn begin(record: &JournalRecord) -> Option<Self> {
        let JournalRecord::Begun {
            id,
            at_unix_ns,
            linerate_version,
            purpose,
            process,
            process_began,
            boot,
            machine,
            namespace,
            namespace_cookie,
            kernel,
        } = record.clone()
        else {
            return None;
        };
        Some(Self {
            id: ChangeId::new(id),
            begun_at: wall_time(at_unix_ns),
            linerate_version,
            purpose,
            process: ProcessId(process),
            process_began,
            identity: HostIdentity { boot, machine, namespace, namespace_cookie, kernel },
            items: Vec::new(),
            file: None,
            modules: BTreeSet::new(),
            kept: None,
            closed: None,
            is_confirmed: false,
        })
    }

    /// Applies one more record; `None` when the record does not fit.
    pub(crate) fn apply(&mut self, record: &JournalRecord) -> Option<()> {
        match record {
            JournalRecord::Planned { index, change, interfaces } if *index == self.items.len() => {
                self.mark_replaced(&change.target);
                self.items.push(PlannedChange {
                    change: change.clone(),
                    interfaces: interfaces.clone(),
                    phase: ChangePhase::Planned,
                    message: String::new(),
                    is_foreign: false,
                });
                Some(())
            }
            JournalRecord::Begun { .. } | JournalRecord::Planned { .. } => None,
            JournalRecord::Intent { index } => self.advance(*index, |_| ChangePhase::Attempted, None),
            JournalRecord::Outcome { index, result, now, message } => {
                let phase = |_| match result {
                    WriteOutcome::Written | WriteOutcome::Adjusted => ChangePhase::InForce { now: now.clone() },
                    WriteOutcome::NoNeed => ChangePhase::NoNeed,
                    WriteOutcome::Refused => ChangePhase::Refused,
                };
                self.advance(*index, phase, Some(message.clone().unwrap_or_default()))
            }
            JournalRecord::TakingBack { index } => self.advance(*index, to_rolling_back, None),
            JournalRecord::TakenBack { index, is_back, message, is_foreign, left } => {
                let phase = |phase| match left {
                    _ if *is_back => ChangePhase::Back,
                    Some(left) => ChangePhase::TakingBack { now: Some(Some(left.clone())) },
                    None => phase,
                };
                self.advance(*index, phase, Some(message.clone()))?;
                self.items[*index].is_foreign = *is_foreign;
                Some(())
            }
            JournalRecord::Keeping { path, before, after, settings } => {
                let (path, before, after) = (PathBuf::from(path), before.clone(), after.clone());
                self.file = Some(KeptFile { path, before, after, settings: settings.clone(), is_reverted: false });
                Some(())
            }
            JournalRecord::Loaded { modules } => {
                self.modules.extend(modules.iter().cloned());
                Some(())
            }
            JournalRecord::Kept { at_unix_ns, warnings } => {
                self.kept = Some((wall_time(*at_unix_ns), warnings.clone()));
                Some(())
            }
            JournalRecord::FileTakenBack { is_back, .. } => self.file.as_mut().map(|file| file.is_reverted = *is_back),
            JournalRecord::Closed { at_unix_ns, is_clean, reason } => {
                self.closed = Some((wall_time(*at_unix_ns), *is_clean, reason.clone()));
                Some(())
            }
        }
    }

    /// Marks earlier changes of this target of which nothing is on the host as replaced.
    fn mark_replaced(&mut self, target: &ChangeTarget) {
        let earlier = |item: &&mut PlannedChange| item.change.target == *target && !item.phase.is_on_the_host();
        for item in self.items.iter_mut().filter(earlier) {
            item.phase = ChangePhase::Replaced;
        }
    }

    fn advance(
        &mut self,
        index: usize,
        to: impl FnOnce(ChangePhase) -> ChangePhase,
        message: Option<String>,
    ) -> Option<()> {
        let item = self.items.get_mut(index)?;
        item.phase = to(core::mem::replace(&mut item.phase, ChangePhase::Planned));
        if let Some(message) = message {
            item.message = message;
        }
        Some(())
    }

    /// State of the set, as seen from this boot of the host.
    #[must_use]
    pub fn state(&self, here: &HostIdentity) -> ChangeSetState {
        match (&self.closed, &self.kept) {
            (Some((_, true, _)), _) => ChangeSetState::RolledBack,
            (Some((_, false, _)), _) => ChangeSetState::Partly,
            (None, Some(_)) if self.file.is_some() => ChangeSetState::Kept,
            (None, kept) => {
                // A boot has applied the file, though it may be reverted since.
                if self.identity.boot != here.boot && self.file.is_none() {
                    ChangeSetState::LostAtReboot
                } else if kept.is_some() || self.is_confirmed {
                    ChangeSetState::UntilReboot
                } else {
                    ChangeSetState::Pending
                }
            }
        }
    }

    /// Takes each planned change for one that may have been written: the journal says no more.
    pub(crate) fn assume_attempts(&mut self) {
        for item in self.items.iter_mut().filter(|item| item.phase == ChangePhase::Planned) {
            item.phase = ChangePhase::Attempted;
        }
    }

    /// Note about modules that its changes have loaded and that are still there.
    pub(crate) fn module_note(&self, present: &BTreeSet<String>) -> Option<String> {
        let left: Vec<&str> = self.modules.intersection(present).map(String::as_str).collect();
        let names = left.join(" ");
        (!left.is_empty()).then(|| {
            format!(
                "these changes loaded kernel modules, which stay loaded: {names} (`modprobe -r {names}` unloads them)"
            )
        })
    }

    /// True when something of the set may be on the host, or in its files.
    #[must_use]
    pub fn has_residue(&self) -> bool {
        self.items.iter().any(|item| item.phase.is_on_the_host()) || self.is_in_its_file()
    }

    fn is_in_its_file(&self) -> bool {
        self.file.as_ref().is_some_and(|file| !file.is_reverted)
    }

    /// True when the set was begun and is neither kept nor rolled back completely: it is in progress, was interrupted, or
    /// something of it could not be restored.
    #[must_use]
    pub fn is_unfinished(&self, here: &HostIdentity) -> bool {
        let is_own = |item: &PlannedChange| item.phase.is_on_the_host() && !item.is_foreign;
        match self.state(here) {
            ChangeSetState::Pending => true,
            ChangeSetState::Partly => self.is_in_its_file() || self.items.iter().any(is_own),
            _ => false,
        }
    }
}

fn to_rolling_back(phase: ChangePhase) -> ChangePhase {
    match phase {
        ChangePhase::InForce { now } => ChangePhase::TakingBack { now: Some(now) },
        ChangePhase::TakingBack { now } => ChangePhase::TakingBack { now },
        _ => ChangePhase::TakingBack { now: None },
    }
}

pub(crate) fn wall_time(nanoseconds: u64) -> WallTime {
    WallTime::from_unix(Duration::from_nanos(nanoseconds))
}
