//! Trials of changes: begin, apply, measure, roll back or keep.

use core::time::Duration;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use linerate_model::change::{ChangePlan, ChangeTarget, HostChange};
use linerate_sys::clock::{format_utc, monotonic_now, realtime_now};
use linerate_sys::file_lock::FileLock;
use linerate_sys::host_access::HostAccess;
use linerate_sys::process::ProcessIdentity;
use linerate_units::MonotonicTime;

use crate::drop_in::{self, DropInHeading, DropInSetting};
use crate::error::{ChangeError, Result};
use crate::id::ChangeId;
use crate::journal::{Journal, JournalRecord, WriteOutcome};
use crate::rollback::{RollbackMode, RollbackReport, TargetReport, pending, roll_back_all};
use crate::session::{ChangeSession, unix_time_ns};
use crate::set::{ChangePhase, ChangeSet};
use crate::store::ChangeStore;
use crate::watchdog::{self, RollbackGuard, WatchdogKind};

/// Options of a trial.
#[derive(Clone, Debug)]
pub struct TrialOptions {
    /// Purpose, shown in the list of change sets.
    pub purpose: String,
    /// Version of linerate.
    pub linerate_version: String,
    /// Process that rolls the changes back if this one cannot.
    pub guard: RollbackGuard,
    /// Time after which the changes are rolled back, unless they are kept or confirmed, or the time is renewed.
    pub time_limit: Duration,
}

/// Outcome of applying one change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApplyOutcome {
    /// The change; `from` is the previous value.
    pub change: HostChange,
    /// Result of the write.
    pub written: WriteOutcome,
    /// Present value.
    pub now: Option<String>,
}

/// Options for keeping changes.
#[derive(Clone, Debug)]
pub struct KeepOptions {
    /// The file that makes settings persistent (`DEFAULT_FILE`); `None` keeps them until the next boot.
    pub file: Option<PathBuf>,
    /// Location of the evidence, for example `runs 31 and 32 of linerate history`.
    pub evidence: String,
    /// Known reasons why the file may not apply at the next boot; recorded with the set.
    pub warnings: Vec<String>,
}

/// Changes that were kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptChanges {
    /// Number of the change set.
    pub id: ChangeId,
    /// The file; `None` when none was written.
    pub file: Option<PathBuf>,
    /// Targets that persist across reboots.
    pub lasting: Vec<ChangeTarget>,
    /// Targets in effect until the next boot, or while the interface exists.
    pub until_reboot: Vec<ChangeTarget>,
    /// The warnings of [`KeepOptions::warnings`], and the kernel modules that were loaded.
    pub warnings: Vec<String>,
}

/// Changes on trial. Dropping it rolls back everything that is not kept.
pub struct ChangeTrial<'a> {
    session: ChangeSession<'a>,
    store: &'a ChangeStore,
    deadline: MonotonicTime,
    version: String,
    watchdog: WatchdogKind,
    is_over: bool,
    _lock: FileLock,
}

impl<'a> ChangeTrial<'a> {
    /// Records the present values of all targets of the plan and starts the watchdog; nothing is written to the host.
    /// Fails when another trial runs, when an interrupted one has not been rolled back ([`crate::recover`]), when a
    /// set cannot be read, when a
    /// target does not exist or has another value than the plan expects, and when the journal cannot be written.
    pub fn begin(
        store: &'a ChangeStore,
        host: &'a dyn HostAccess,
        plan: &ChangePlan,
        options: &TrialOptions,
    ) -> Result<Self> {
        let identity = host.identity()?;
        let lock = store.lock()?;
        if let Some(set) = pending(store, host)?.first() {
            return Err(ChangeError::Pending(set.id));
        }
        // Its values would be recorded as those before the changes.
        store.check_readable()?;
        let id = store.create_next()?;
        let mut journal = Journal::create(&store.journal_file(id))?;
        let process = ProcessIdentity::of_this();
        let begun = JournalRecord::Begun {
            id: id.get(),
            at_unix_ns: unix_time_ns(),
            linerate_version: options.linerate_version.clone(),
            purpose: options.purpose.clone(),
            process: std::process::id(),
            process_began: process.map_or(0, |process| process.began),
            boot: identity.boot,
            machine: identity.machine,
            namespace: identity.namespace,
            namespace_cookie: identity.namespace_cookie,
            kernel: identity.kernel,
        };
        journal.append(&begun)?;
        let Some(set) = ChangeSet::begin(&begun) else { return Err(ChangeError::NoSuchSet(id)) };
        let session =
            ChangeSession { host, journal: Some(journal), set, mode: RollbackMode::ForReal, notes: Vec::new() };
        let deadline = monotonic_now() + options.time_limit;
        let version = options.linerate_version.clone();
        let watchdog = WatchdogKind::None;
        let mut trial = Self { session, store, deadline, version, watchdog, is_over: false, _lock: lock };
        let ready = trial.extend(plan).and_then(|()| trial.renew(options.time_limit));
        match ready.and_then(|()| watchdog::arm(&options.guard, store, id)) {
            Ok(kind) => {
                trial.watchdog = kind;
                Ok(trial)
            }
            Err(error) => {
                trial.is_over = true;
                store.remove(id);
                Err(error)
            }
        }
    }

    /// Number of the change set.
    #[must_use]
    pub fn id(&self) -> ChangeId {
        self.session.set.id
    }

    /// Form in which the watchdog runs.
    #[must_use]
    pub fn watchdog(&self) -> &WatchdogKind {
        &self.watchdog
    }

    /// The change set, as recorded in its journal.
    #[must_use]
    pub fn set(&self) -> &ChangeSet {
        &self.session.set
    }

    /// Adds changes to the plan, found while measuring the first ones. Writes nothing to the host. A change for a
    /// target that was only planned, or rolled back, replaces the earlier one; a change for a target whose change is in
    /// effect is refused.
    pub fn extend(&mut self, plan: &ChangePlan) -> Result<()> {
        self.check_active()?;
        let mut targets = BTreeSet::new();
        if let Some(change) = plan.changes.iter().find(|change| !targets.insert(&change.target)) {
            return Err(ChangeError::Twice { target: change.target.clone() });
        }
        plan.changes.iter().try_for_each(|change| self.session.plan(change))
    }

    /// Applies the chosen changes that are not in effect, in the order of the plan. All or none: when one fails, those
    /// of this call are rolled back and its error is returned.
    pub fn apply(&mut self, chosen: impl Fn(&HostChange) -> bool) -> Result<Vec<ApplyOutcome>> {
        let mut done = Vec::new();
        for index in self.select_items(chosen, |phase| !phase.is_on_the_host() && *phase != ChangePhase::Replaced) {
            let applied = self.check_active().and_then(|()| self.session.apply(index));
            match applied {
                Ok(written) => done.push((index, written)),
                Err(error) => {
                    let indices: Vec<usize> = done.iter().map(|(index, _)| *index).collect();
                    self.session.roll_back(&indices, |_| None);
                    return Err(error);
                }
            }
        }
        let outcome = |(index, written): (usize, WriteOutcome)| {
            let item = &self.session.set.items[index];
            let now = match &item.phase {
                ChangePhase::InForce { now } => now.clone(),
                _ => item.change.from.clone(),
            };
            ApplyOutcome { change: item.change.clone(), written, now }
        };
        Ok(done.into_iter().map(outcome).collect())
    }

    /// Rolls back the chosen changes, the last one first; they can be applied again.
    pub fn roll_back_selected(&mut self, chosen: impl Fn(&HostChange) -> bool) -> Vec<TargetReport> {
        let indices = self.select_items(chosen, ChangePhase::is_on_the_host);
        self.session.roll_back(&indices, |_| None)
    }

    fn select_items(&self, chosen: impl Fn(&HostChange) -> bool, phase: impl Fn(&ChangePhase) -> bool) -> Vec<usize> {
        let items = self.session.set.items.iter().enumerate();
        items.filter(|(_, item)| chosen(&item.change) && phase(&item.phase)).map(|(index, _)| index).collect()
    }

    /// Restarts the time limit, after which the watchdog rolls everything back. Call it regularly while all goes well.
    pub fn renew(&mut self, time: Duration) -> Result<()> {
        self.check_active()?;
        self.deadline = monotonic_now() + time;
        watchdog::write_deadline(self.store, self.id(), self.deadline)
    }

    /// Time left until the deadline.
    #[must_use]
    pub fn time_left(&self) -> Duration {
        self.deadline - monotonic_now()
    }

    /// True when the set has been confirmed from another process ([`ChangeStore::confirm`]).
    #[must_use]
    pub fn is_confirmed(&self) -> bool {
        self.store.is_confirmed(self.id())
    }

    fn check_active(&self) -> Result<()> {
        match (self.is_over, self.time_left().is_zero()) {
            (true, _) => Err(ChangeError::Over),
            (false, true) => Err(ChangeError::Expired),
            (false, false) => Ok(()),
        }
    }

    /// Keeps the changes in effect; settings are also written to the file. Changes that were never applied, or were
    /// rolled back, are left out. On an error everything has been rolled back.
    pub fn keep(mut self, keep: &KeepOptions) -> Result<KeptChanges> {
        self.check_active()?;
        let (lasting, until_reboot) = match &keep.file {
            Some(path) => self.write_file(path, keep)?,
            None => (Vec::new(), self.changes_in_effect().map(|(change, _)| change.target.clone()).collect()),
        };
        self.session.record(&JournalRecord::Kept { at_unix_ns: unix_time_ns(), warnings: keep.warnings.clone() })?;
        self.is_over = true;
        let file = self.session.set.file.as_ref().map(|file| file.path.clone());
        let modules = self.session.set.module_note(&self.session.host.modules());
        let warnings = keep.warnings.iter().cloned().chain(self.unrestored()).chain(modules).collect();
        Ok(KeptChanges { id: self.id(), file, lasting, until_reboot, warnings })
    }

    fn changes_in_effect(&self) -> impl Iterator<Item = (&HostChange, Option<&str>)> {
        self.session.set.items.iter().filter_map(|item| match &item.phase {
            ChangePhase::InForce { now } if !item.is_foreign => Some((&item.change, now.as_deref())),
            _ => None,
        })
    }

    /// Changes that should have been rolled back, and could not.
    fn unrestored(&self) -> impl Iterator<Item = String> {
        let items = self.session.set.items.iter();
        let left = items.filter(|item| matches!(item.phase, ChangePhase::TakingBack { .. }) && !item.is_foreign);
        left.map(|item| format!("{}: {}", item.change.target, item.message))
    }

    fn write_file(&mut self, path: &Path, keep: &KeepOptions) -> Result<(Vec<ChangeTarget>, Vec<ChangeTarget>)> {
        let (mut settings, mut lasting, mut until_reboot) = (Vec::new(), Vec::new(), Vec::new());
        for (change, now) in self.changes_in_effect() {
            match (&change.target, now) {
                (ChangeTarget::Setting { key }, Some(now)) => {
                    let reason = change.reason.text.clone();
                    settings.push(DropInSetting { key: key.clone(), value: now.to_owned(), reason });
                    lasting.push(change.target.clone());
                }
                _ => until_reboot.push(change.target.clone()),
            }
        }
        if settings.is_empty() {
            return Ok((lasting, until_reboot));
        }
        let before = self.session.host.read_file(path)?;
        let after = drop_in::add_settings(before.as_deref(), &settings, &self.heading(keep));
        let settings = settings.into_iter().map(|setting| (setting.key, setting.value)).collect();
        let record =
            JournalRecord::Keeping { path: path.display().to_string(), before, after: after.clone(), settings };
        self.session.record(&record)?;
        self.session.host.replace_file(path, Some(&after))?;
        Ok((lasting, until_reboot))
    }

    fn heading(&self, keep: &KeepOptions) -> DropInHeading {
        DropInHeading {
            linerate_version: self.version.clone(),
            date: format_utc(realtime_now(), "%Y-%m-%d %H:%M UTC"),
            kernel: self.session.set.identity.kernel.clone(),
            id: self.id().to_string(),
            evidence: keep.evidence.clone(),
        }
    }

    /// Rolls everything back and returns the outcome.
    #[must_use = "reports what could not be restored"]
    pub fn roll_back(mut self, reason: &str) -> RollbackReport {
        self.end(reason)
    }

    fn end(&mut self, reason: &str) -> RollbackReport {
        self.is_over = true;
        let here = self.session.set.identity.clone();
        roll_back_all(&mut self.session, &here, reason)
    }
}

impl Drop for ChangeTrial<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            // No caller is left; the journal has the outcome.
            let _ = self.end("the trial was aborted");
        }
    }
}
