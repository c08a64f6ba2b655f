//! A change set in progress: every step is in the journal before it is carried out on the host.

use linerate_model::change::{ChangeTarget, HostChange};
use linerate_sys::clock::realtime_now;
use linerate_sys::host_access::{HostAccess, is_gone};
use linerate_units::serde::nanoseconds;

use crate::comparison::{is_unchanged, optional_value_matches, shown, value_matches};
use crate::drop_in;
use crate::error::{ChangeError, Result};
use crate::interfaces::identities;
use crate::journal::{Journal, JournalRecord, WriteOutcome};
use crate::rollback::{FileRollbackReport, RestoreOutcome, RollbackMode, TargetReport};
use crate::set::{ChangePhase, ChangeSet, PlannedChange};

pub(crate) struct ChangeSession<'a> {
    pub(crate) host: &'a dyn HostAccess,
    /// `None` in a dry run.
    pub(crate) journal: Option<Journal>,
    pub(crate) set: ChangeSet,
    pub(crate) mode: RollbackMode,
    /// Notes for the report.
    pub(crate) notes: Vec<String>,
}

pub(crate) fn unix_time_ns() -> u64 {
    nanoseconds(realtime_now().since_unix_epoch())
}

const fn may_be_absent(target: &ChangeTarget) -> bool {
    matches!(target, ChangeTarget::Queueing { .. } | ChangeTarget::FirewallTable { .. } | ChangeTarget::Route { .. })
}

/// Passes over the targets of a rollback: a target may fail until others are restored.
const MAX_RESTORE_PASSES: usize = 3;

impl ChangeSession<'_> {
    /// Appends to the journal, and only then updates the set in memory.
    pub(crate) fn record(&mut self, record: &JournalRecord) -> Result<()> {
        if let Some(journal) = &mut self.journal {
            journal.append(record)?;
        }
        // A record that does not fit the set is one for the journal alone.
        let _ = self.set.apply(record);
        Ok(())
    }

    /// [`Self::record`] during a rollback, which a full disk must not prevent.
    fn append_if_possible(&mut self, record: &JournalRecord) {
        if self.mode == RollbackMode::DryRun {
            return;
        }
        if let Err(error) = self.record(record) {
            let _ = self.set.apply(record);
            self.note(format!("the rollback is not recorded: {error}"));
        }
    }

    /// Plans a change, with the present value of its target. It replaces those for the same target of which nothing is
    /// on the host.
    pub(crate) fn plan(&mut self, change: &HostChange) -> Result<()> {
        let target = &change.target;
        // Stacked values could not always be rolled back: when the upper one cannot be restored at first, the lower one
        // may look as if it were restored.
        let is_there = |item: &PlannedChange| item.change.target == *target && item.phase.is_on_the_host();
        if self.set.items.iter().any(is_there) {
            return Err(ChangeError::AlreadyChanged { target: target.clone() });
        }
        let found = self.host.read(target)?;
        match (&change.from, &found) {
            (_, None) if !may_be_absent(target) => return Err(ChangeError::MissingTarget { target: target.clone() }),
            (Some(expected), Some(found)) if !value_matches(target, expected, found) => {
                let (expected, found) = (shown(target, expected).into_owned(), shown(target, found).into_owned());
                return Err(ChangeError::Stale { target: target.clone(), expected, found });
            }
            _ => {}
        }
        if let Some(found) = &found {
            self.host.check_restorable(target, found)?;
        }
        let change = HostChange { from: found, ..change.clone() };
        let interfaces = identities(self.host, &change)?;
        self.record(&JournalRecord::Planned { index: self.set.items.len(), change, interfaces })
    }

    /// Applies one change. On an error the host has the previous value, as far as that can be restored; what cannot be
    /// restored at once stays in the set for the rollback.
    pub(crate) fn apply(&mut self, index: usize) -> Result<WriteOutcome> {
        self.check_interfaces(index)?;
        let HostChange { target, from, to, .. } = self.set.items[index].change.clone();
        let current = self.host.read(&target)?;
        if !optional_value_matches(&target, from.as_deref(), current.as_deref()) {
            let text =
                |value: Option<String>| value.map_or("nothing".to_owned(), |value| shown(&target, &value).into_owned());
            let (expected, found) = (text(from), text(current));
            return Err(ChangeError::Stale { target, expected, found });
        }
        if optional_value_matches(&target, Some(&to), current.as_deref()) {
            self.record_outcome(index, WriteOutcome::NoNeed, current, None)?;
            return Ok(WriteOutcome::NoNeed);
        }
        self.record(&JournalRecord::Intent { index })?;
        let written = self.write_noting_modules(&target, &to);
        let read = self.host.read(&target);
        match (written, read) {
            (Ok(()), Ok(now)) if optional_value_matches(&target, Some(&to), now.as_deref()) => {
                self.record_applied(index, WriteOutcome::Written, now)
            }
            // The result of commands is read as a record, which cannot be compared with the commands.
            (Ok(()), Ok(now)) if now != current && matches!(target, ChangeTarget::TrafficControl { .. }) => {
                self.record_applied(index, WriteOutcome::Written, now)
            }
            (Ok(()), Ok(None)) if !may_be_absent(&target) => {
                // Its interface was renamed or removed.
                self.put_back(index);
                Err(ChangeError::MissingTarget { target })
            }
            (Ok(()), Ok(now)) if now != current => self.record_applied(index, WriteOutcome::Adjusted, now),
            (Ok(()), Ok(now)) => {
                let text = |value: &str| shown(&target, value).into_owned();
                let (wanted, seen) = (text(&to), text(now.as_deref().unwrap_or_default()));
                let error = ChangeError::Ignored { target, wanted, now: seen };
                self.record_refused(index, now, error)
            }
            (Err(error), Ok(now)) if now == current => self.record_refused(index, now, error.into()),
            (Err(error), _) | (Ok(()), Err(error)) => {
                // It is partly written, or its state is unknown: restore it before anything else.
                let back = self.put_back(index);
                let now = self.host.read(&target).ok().flatten();
                if back.is_restored() { self.record_refused(index, now, error.into()) } else { Err(error.into()) }
            }
        }
    }

    /// The kernel loads a module for a congestion control or a queueing discipline that is not there.
    fn write_noting_modules(&mut self, target: &ChangeTarget, to: &str) -> linerate_sys::Result<()> {
        let before = self.host.modules();
        let written = self.host.write(target, Some(to));
        let modules: Vec<String> = self.host.modules().difference(&before).cloned().collect();
        if !modules.is_empty() {
            self.append_if_possible(&JournalRecord::Loaded { modules });
        }
        written
    }

    fn record_applied(&mut self, index: usize, result: WriteOutcome, now: Option<String>) -> Result<WriteOutcome> {
        let message = (result == WriteOutcome::Adjusted).then(|| {
            let HostChange { to, .. } = &self.set.items[index].change;
            format!("the kernel changed \"{to}\" to \"{}\"", now.as_deref().unwrap_or_default())
        });
        match self.record_outcome(index, result, now, message) {
            Ok(()) => Ok(result),
            Err(error) => {
                self.put_back(index);
                Err(error)
            }
        }
    }

    fn record_refused(&mut self, index: usize, now: Option<String>, error: ChangeError) -> Result<WriteOutcome> {
        // The host is as before, so nothing is lost if the journal cannot be written either.
        let _ = self.record_outcome(index, WriteOutcome::Refused, now, Some(error.to_string()));
        Err(error)
    }

    fn record_outcome(
        &mut self,
        index: usize,
        result: WriteOutcome,
        now: Option<String>,
        message: Option<String>,
    ) -> Result<()> {
        self.record(&JournalRecord::Outcome { index, result, now, message })
    }

    /// Rolls back these changes, the last one first. A target that cannot be restored, or changes again while others
    /// are, is retried.
    pub(crate) fn roll_back(
        &mut self,
        indices: &[usize],
        lost: impl Fn(&ChangeTarget) -> Option<RestoreOutcome>,
    ) -> Vec<TargetReport> {
        let mut results: Vec<(usize, RestoreOutcome)> = Vec::new();
        for index in indices.iter().rev() {
            let lost = lost(&self.set.items[*index].change.target);
            let result = match &self.set.items[*index].phase {
                ChangePhase::Back => RestoreOutcome::AlreadyBack,
                phase if !phase.is_on_the_host() => RestoreOutcome::NeverWritten,
                _ => lost.inspect(|back| self.taken_back(*index, back)).unwrap_or_else(|| self.put_back(*index)),
            };
            results.push((*index, result));
        }
        for _ in 1..MAX_RESTORE_PASSES {
            let unsettled: Vec<usize> =
                (0..results.len()).filter(|place| !self.is_settled(results[*place].0, &results[*place].1)).collect();
            if unsettled.is_empty() || self.mode == RollbackMode::DryRun {
                break;
            }
            for place in unsettled {
                results[place].1 = self.put_back(results[place].0);
            }
        }
        let report = |(index, result): (usize, RestoreOutcome)| {
            let HostChange { target, from, to, .. } = self.set.items[index].change.clone();
            TargetReport { target, from, to, result }
        };
        results.into_iter().map(report).collect()
    }

    fn is_settled(&self, index: usize, result: &RestoreOutcome) -> bool {
        let HostChange { target, from, .. } = &self.set.items[index].change;
        let below = |item: &PlannedChange| item.change.target == *target && item.phase != ChangePhase::Replaced;
        match result {
            RestoreOutcome::Failed(_) => false,
            // An earlier item of the same target has restored its own value since.
            RestoreOutcome::Restored if !self.set.items[..index].iter().any(below) => {
                self.host.read(target).is_ok_and(|now| optional_value_matches(target, from.as_deref(), now.as_deref()))
            }
            _ => true,
        }
    }

    fn taken_back(&mut self, index: usize, back: &RestoreOutcome) {
        let item = &self.set.items[index];
        let message = back.with_display_values(&item.change.target).to_string();
        let (is_back, is_foreign) = (back.is_restored(), matches!(back, RestoreOutcome::ChangedByOthers { .. }));
        let left = match &item.phase {
            ChangePhase::TakingBack { now: Some(now) } if !is_back => now.clone(),
            _ => None,
        };
        self.append_if_possible(&JournalRecord::TakenBack { index, is_back, message, is_foreign, left });
    }

    /// Restores the previous value of the target of one change, if the present value is linerate's.
    fn put_back(&mut self, index: usize) -> RestoreOutcome {
        let HostChange { target, from, .. } = self.set.items[index].change.clone();
        let back = self.put_back_by_present_name(index);
        if self.set.items[index].change.target != target && back.is_restored() {
            // An interrupted rollback may have left it under the earlier name.
            self.remove_intermediate_device(&target, from.as_deref());
        }
        self.taken_back(index, &back);
        back
    }

    /// An interface may be renamed between the look at its name and the access to its values.
    fn put_back_by_present_name(&mut self, index: usize) -> RestoreOutcome {
        for _ in 1..MAX_RESTORE_PASSES {
            let back = self.follow_interfaces(index).unwrap_or_else(|| self.try_to_put_back(index));
            if matches!(back, RestoreOutcome::Restored | RestoreOutcome::AlreadyBack) || self.has_present_names(index) {
                return back;
            }
        }
        self.follow_interfaces(index).unwrap_or_else(|| self.try_to_put_back(index))
    }

    fn try_to_put_back(&mut self, index: usize) -> RestoreOutcome {
        let HostChange { target, from, .. } = self.set.items[index].change.clone();
        let current = match self.host.read(&target) {
            Ok(current) => current,
            Err(error) if is_gone(&error) => {
                self.remove_intermediate_device(&target, from.as_deref());
                return RestoreOutcome::Gone;
            }
            Err(error) => return RestoreOutcome::Failed(error.to_string()),
        };
        if current == from {
            return RestoreOutcome::AlreadyBack;
        }
        if !self.is_own_value(index, current.as_deref()) {
            return RestoreOutcome::ChangedByOthers { now: current };
        }
        if self.mode == RollbackMode::DryRun {
            return RestoreOutcome::Restored;
        }
        self.append_if_possible(&JournalRecord::TakingBack { index });
        let written = self.host.write(&target, from.as_deref());
        match (self.host.read(&target), written) {
            (Ok(now), _) if optional_value_matches(&target, from.as_deref(), now.as_deref()) => {
                RestoreOutcome::Restored
            }
            (Err(error), _) if is_gone(&error) => RestoreOutcome::Gone,
            (_, Err(error)) | (Err(error), Ok(())) => RestoreOutcome::Failed(error.to_string()),
            (Ok(now), Ok(())) => {
                // The present value is the one just written, in the kernel's form.
                self.set.items[index].phase = ChangePhase::TakingBack { now: Some(now.clone()) };
                let text = |value: Option<&str>| shown(&target, value.unwrap_or("nothing")).into_owned();
                let (now, from) = (text(now.as_deref()), text(from.as_deref()));
                RestoreOutcome::Failed(format!("the value is \"{now}\" after \"{from}\" was written"))
            }
        }
    }

    /// True when this set has written the present value. After an interrupted write this is unknown; where the kernel
    /// rounds values or several steps are needed, the value counts as the set's.
    fn is_own_value(&self, index: usize, current: Option<&str>) -> bool {
        let item = &self.set.items[index];
        let HostChange { target, to, .. } = &item.change;
        let rounds = !matches!(target, ChangeTarget::Setting { .. } | ChangeTarget::File { .. });
        match &item.phase {
            ChangePhase::InForce { now } => is_unchanged(target, now.as_deref(), current),
            ChangePhase::Attempted | ChangePhase::TakingBack { now: None } => {
                rounds || optional_value_matches(target, Some(to), current)
            }
            ChangePhase::TakingBack { now: Some(now) } => rounds || now.as_deref() == current,
            _ => false,
        }
    }

    /// Reverts this set's settings in the file that makes them persistent.
    pub(crate) fn revert_file(&mut self) -> Option<FileRollbackReport> {
        let file = self.set.file.clone().filter(|file| !file.is_reverted)?;
        let (is_back, message) = match self.reverted_contents(&file) {
            Ok((contents, others)) => {
                let done = match self.mode {
                    RollbackMode::DryRun => Ok(()),
                    RollbackMode::ForReal => {
                        contents.map_or(Ok(()), |contents| self.host.replace_file(&file.path, contents.as_deref()))
                    }
                };
                match done {
                    Ok(()) if others.is_empty() => (true, "its lines are reverted".to_owned()),
                    Ok(()) => {
                        (true, format!("another program has changed {} there since; left alone", others.join(", ")))
                    }
                    Err(error) => (false, error.to_string()),
                }
            }
            Err(error) => (false, error.to_string()),
        };
        let path = file.path.display().to_string();
        self.append_if_possible(&JournalRecord::FileTakenBack { path, is_back, message: message.clone() });
        Some(FileRollbackReport { path: file.path, is_back, message })
    }

    /// Contents of the file without this set, and the keys that another program has changed; `None` when the contents
    /// are right already.
    #[expect(clippy::option_option, reason = "what to write, if anything: text, or no file")]
    fn reverted_contents(
        &self,
        file: &crate::set::KeptFile,
    ) -> linerate_sys::Result<(Option<Option<String>>, Vec<String>)> {
        let Some(now) = self.host.read_file(&file.path)? else { return Ok((None, Vec::new())) };
        if Some(&now) == file.before.as_ref() {
            return Ok((None, Vec::new()));
        }
        if now == file.after {
            return Ok((Some(file.before.clone()), Vec::new()));
        }
        let (contents, others) = drop_in::remove_settings(&now, &file.settings, file.before.as_deref());
        Ok((Some(contents), others))
    }

    /// Records the end of the rollback.
    pub(crate) fn close(&mut self, reason: &str) {
        let is_clean = !self.set.has_residue();
        self.append_if_possible(&JournalRecord::Closed {
            at_unix_ns: unix_time_ns(),
            is_clean,
            reason: reason.to_owned(),
        });
    }
}
