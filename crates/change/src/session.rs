//! One change set while it is worked on: every step is in the journal before it is done on the host.

use linerate_model::change::{Change, Target};
use linerate_model::schema::change::ChangeDocument;
use linerate_model::schema::nanoseconds;
use linerate_sys::clock::realtime_now;
use linerate_sys::host_access::{Host, is_gone};

use crate::agreement::{agree, agrees, is_still, shown};
use crate::drop_in;
use crate::error::{ChangeError, Result};
use crate::journal::{Journal, Record, Written};
use crate::rollback::{Back, FileReport, Mode, TargetReport};
use crate::set::{ChangeSet, Item, Phase};

pub(crate) struct Session<'a> {
    pub(crate) host: &'a dyn Host,
    /// `None` in a dry run.
    pub(crate) journal: Option<Journal>,
    pub(crate) set: ChangeSet,
    pub(crate) mode: Mode,
    /// What the reader of a report should know.
    pub(crate) notes: Vec<String>,
}

pub(crate) fn now() -> u64 {
    nanoseconds(realtime_now().since_unix_epoch())
}

/// How often targets that could not be put back are tried again: others may have stood in their way.
const PASSES: usize = 3;

impl Session<'_> {
    /// Into the journal, and only then into memory.
    pub(crate) fn record(&mut self, record: &Record) -> Result<()> {
        if let Some(journal) = &mut self.journal {
            journal.append(record)?;
        }
        self.set.apply(record).map(drop)
    }

    /// The same on the way back, from which a full disk keeps nobody.
    fn record_if_possible(&mut self, record: &Record) {
        if self.mode == Mode::DryRun {
            return;
        }
        if let Err(error) = self.record(record) {
            let _ = self.set.apply(record);
            let note = format!("what is done is not recorded: {error}");
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
    }

    /// Takes up a change, with what stands at its target now. It takes the place of those for the same target of which
    /// nothing is on the host.
    pub(crate) fn plan(&mut self, change: &Change) -> Result<()> {
        let target = &change.target;
        // Values upon values could not always be taken off again: when the upper one cannot be put back at first, the lower
        // one may look as if it were back.
        let is_there = |item: &Item| item.change.target == *target && item.phase.is_on_the_host();
        if self.set.items.iter().any(is_there) {
            return Err(ChangeError::InForce { target: target.clone() });
        }
        let found = self.host.read(target)?;
        let may_be_absent = matches!(target, Target::Queueing { .. } | Target::Route { .. });
        match (&change.from, &found) {
            (_, None) if !may_be_absent => return Err(ChangeError::Absent { target: target.clone() }),
            (Some(expected), Some(found)) if !agrees(target, expected, found) => {
                let (expected, found) = (shown(target, expected).into_owned(), shown(target, found).into_owned());
                return Err(ChangeError::Stale { target: target.clone(), expected, found });
            }
            _ => {}
        }
        if let Some(found) = &found {
            self.host.check_restorable(target, found)?;
        }
        let change = Change { from: found, ..change.clone() };
        self.record(&Record::Planned { index: self.set.items.len(), change: ChangeDocument::from(&change) })
    }

    /// Carries out one change. When this is an error, the host has what it had before, as far as it lets itself be put
    /// back; what cannot be put back at once stays in the set for the rollback.
    pub(crate) fn apply(&mut self, index: usize) -> Result<Written> {
        let Change { target, from, to, .. } = self.set.items[index].change.clone();
        let current = self.host.read(&target)?;
        if !agree(&target, from.as_deref(), current.as_deref()) {
            let text =
                |value: Option<String>| value.map_or("nothing".to_owned(), |value| shown(&target, &value).into_owned());
            let (expected, found) = (text(from), text(current));
            return Err(ChangeError::Stale { target, expected, found });
        }
        if agree(&target, Some(&to), current.as_deref()) {
            self.outcome(index, Written::NoNeed, current, None)?;
            return Ok(Written::NoNeed);
        }
        self.record(&Record::Intent { index })?;
        let written = self.host.write(&target, Some(&to));
        let read = self.host.read(&target);
        match (written, read) {
            (Ok(()), Ok(now)) if agree(&target, Some(&to), now.as_deref()) => {
                self.in_force(index, Written::Written, now)
            }
            // What commands have made is read as a record, in which nothing of theirs can be looked for.
            (Ok(()), Ok(now)) if now != current && matches!(target, Target::TrafficControl { .. }) => {
                self.in_force(index, Written::Written, now)
            }
            (Ok(()), Ok(now)) if now != current => self.in_force(index, Written::Adjusted, now),
            (Ok(()), Ok(now)) => {
                let text = |value: &str| shown(&target, value).into_owned();
                let (wanted, seen) = (text(&to), text(now.as_deref().unwrap_or_default()));
                let error = ChangeError::Ignored { target, wanted, now: seen };
                self.refused(index, now, error)
            }
            (Err(error), Ok(now)) if now == current => self.refused(index, now, error.into()),
            (Err(error), _) | (Ok(()), Err(error)) => {
                // It is half done, or nobody knows. Nothing else is done on top of it.
                let back = self.put_back(index);
                let now = self.host.read(&target).ok().flatten();
                if back.is_back() { self.refused(index, now, error.into()) } else { Err(error.into()) }
            }
        }
    }

    fn in_force(&mut self, index: usize, result: Written, now: Option<String>) -> Result<Written> {
        let message = (result == Written::Adjusted).then(|| {
            let Change { to, .. } = &self.set.items[index].change;
            format!("the kernel made \"{}\" of \"{to}\"", now.as_deref().unwrap_or_default())
        });
        match self.outcome(index, result, now, message) {
            Ok(()) => Ok(result),
            Err(error) => {
                self.put_back(index);
                Err(error)
            }
        }
    }

    fn refused(&mut self, index: usize, now: Option<String>, error: ChangeError) -> Result<Written> {
        // The host is as before, so a journal that cannot take this either loses nothing.
        let _ = self.outcome(index, Written::Refused, now, Some(error.to_string()));
        Err(error)
    }

    fn outcome(&mut self, index: usize, result: Written, now: Option<String>, message: Option<String>) -> Result<()> {
        self.record(&Record::Outcome { index, result, now, message })
    }

    /// Takes back these changes, the last one first. A target that cannot be put back, or does not stay put back while
    /// others are, is tried again.
    pub(crate) fn take_back(&mut self, indices: &[usize], lost: impl Fn(&Target) -> Option<Back>) -> Vec<TargetReport> {
        let mut results: Vec<(usize, Back)> = Vec::new();
        for index in indices.iter().rev() {
            let lost = lost(&self.set.items[*index].change.target);
            let result = match &self.set.items[*index].phase {
                Phase::Back => Back::AlreadyBack,
                phase if !phase.is_on_the_host() => Back::NeverWritten,
                _ => lost.inspect(|back| self.taken_back(*index, back)).unwrap_or_else(|| self.put_back(*index)),
            };
            results.push((*index, result));
        }
        for _ in 1..PASSES {
            let unsettled: Vec<usize> =
                (0..results.len()).filter(|place| !self.is_settled(results[*place].0, &results[*place].1)).collect();
            if unsettled.is_empty() || self.mode == Mode::DryRun {
                break;
            }
            for place in unsettled {
                results[place].1 = self.put_back(results[place].0);
            }
        }
        let report = |(index, result): (usize, Back)| {
            let Change { target, from, to, .. } = self.set.items[index].change.clone();
            TargetReport { target, from, to, result }
        };
        results.into_iter().map(report).collect()
    }

    fn is_settled(&self, index: usize, result: &Back) -> bool {
        let Change { target, from, .. } = &self.set.items[index].change;
        let below = |item: &Item| item.change.target == *target && item.phase != Phase::Replaced;
        match result {
            Back::Failed(_) => false,
            // Another item of the same target that was below this one has its own value there now.
            Back::Restored if !self.set.items[..index].iter().any(below) => {
                self.host.read(target).is_ok_and(|now| agree(target, from.as_deref(), now.as_deref()))
            }
            _ => true,
        }
    }

    fn taken_back(&mut self, index: usize, back: &Back) {
        let message = back.shown(&self.set.items[index].change.target).to_string();
        self.record_if_possible(&Record::TakenBack { index, is_back: back.is_back(), message });
    }

    /// Puts back what stood at the target of one change, if what stands there now is ours.
    fn put_back(&mut self, index: usize) -> Back {
        let back = self.try_to_put_back(index);
        self.taken_back(index, &back);
        back
    }

    fn try_to_put_back(&mut self, index: usize) -> Back {
        let Change { target, from, .. } = self.set.items[index].change.clone();
        let current = match self.host.read(&target) {
            Ok(current) => current,
            Err(error) if is_gone(&error) => {
                self.tidy_up_after(&target, from.as_deref());
                return Back::Gone;
            }
            Err(error) => return Back::Failed(error.to_string()),
        };
        if current == from {
            return Back::AlreadyBack;
        }
        if !self.is_ours(index, current.as_deref()) {
            return Back::ChangedByOthers { now: current };
        }
        if self.mode == Mode::DryRun {
            return Back::Restored;
        }
        self.record_if_possible(&Record::TakingBack { index });
        let written = self.host.write(&target, from.as_deref());
        match (self.host.read(&target), written) {
            (Ok(now), _) if agree(&target, from.as_deref(), now.as_deref()) => Back::Restored,
            (Err(error), _) if is_gone(&error) => Back::Gone,
            (_, Err(error)) | (Err(error), Ok(())) => Back::Failed(error.to_string()),
            (Ok(now), Ok(())) => {
                // What stands there now is what we have just written, in the kernel's version.
                self.set.items[index].phase = Phase::TakingBack { now: Some(now.clone()) };
                let now = now.unwrap_or_else(|| "nothing".to_owned());
                let (now, from) = (shown(&target, &now), from.unwrap_or_default());
                Back::Failed(format!("\"{now}\" stands there after \"{}\" was written", shown(&target, &from)))
            }
        }
    }

    /// An interface that is gone leaves its intermediate device behind: writing takes that away, and then fails.
    fn tidy_up_after(&self, target: &Target, from: Option<&str>) {
        if self.mode == Mode::ForReal && matches!(target, Target::TrafficControl { .. }) {
            let _ = self.host.write(target, from);
        }
    }

    /// Whether what stands at a target is what this set has put there. Of a write that was cut short nobody knows what
    /// came of it; where the kernel rounds or several steps are needed, it is taken to be ours.
    fn is_ours(&self, index: usize, current: Option<&str>) -> bool {
        let item = &self.set.items[index];
        let Change { target, to, .. } = &item.change;
        let rounds = !matches!(target, Target::Setting { .. } | Target::File { .. });
        match &item.phase {
            Phase::InForce { now } => is_still(target, now.as_deref(), current),
            Phase::Attempted | Phase::TakingBack { now: None } => rounds || agree(target, Some(to), current),
            Phase::TakingBack { now: Some(now) } => rounds || now.as_deref() == current,
            _ => false,
        }
    }

    /// Takes this set's settings out of the file that makes them last.
    pub(crate) fn take_file_back(&mut self) -> Option<FileReport> {
        let file = self.set.file.clone().filter(|file| !file.is_back)?;
        let (is_back, message) = match self.file_without_ours(&file) {
            Ok((contents, others)) => {
                let done = match self.mode {
                    Mode::DryRun => Ok(()),
                    Mode::ForReal => {
                        contents.map_or(Ok(()), |contents| self.host.replace_file(&file.path, contents.as_deref()))
                    }
                };
                match done {
                    Ok(()) if others.is_empty() => (true, "its lines are taken back".to_owned()),
                    Ok(()) => {
                        (true, format!("somebody else has changed {} there since; left alone", others.join(", ")))
                    }
                    Err(error) => (false, error.to_string()),
                }
            }
            Err(error) => (false, error.to_string()),
        };
        let path = file.path.display().to_string();
        self.record_if_possible(&Record::FileTakenBack { path, is_back, message: message.clone() });
        Some(FileReport { path: file.path, is_back, message })
    }

    /// What the file is to have; `None` when it has it already.
    #[expect(clippy::option_option, reason = "what to write, if anything: text, or no file")]
    fn file_without_ours(
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
        let (contents, others) = drop_in::without(&now, &file.settings, file.before.as_deref());
        Ok((Some(contents), others))
    }

    /// Records the end.
    pub(crate) fn close(&mut self, reason: &str) {
        let is_clean = !self.set.leaves_something();
        self.record_if_possible(&Record::Closed { at_unix_ns: now(), is_clean, reason: reason.to_owned() });
    }
}
