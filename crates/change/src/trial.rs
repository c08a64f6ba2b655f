//! Trying changes: begin, apply, measure, take back or keep.

use core::time::Duration;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use linerate_model::change::{Change, Plan, Target};
use linerate_sys::clock::{format_utc, monotonic_now, realtime_now};
use linerate_sys::file_lock::FileLock;
use linerate_sys::host_access::Host;
use linerate_sys::process::ProcessIdentity;
use linerate_units::MonotonicTime;

use crate::drop_in::{self, Heading, Setting};
use crate::error::{ChangeError, Result};
use crate::id::ChangeId;
use crate::journal::{Journal, Record, Written};
use crate::rollback::{Mode, Report, TargetReport, all_back, pending};
use crate::session::{Session, now};
use crate::set::{ChangeSet, Phase};
use crate::store::Store;
use crate::watchdog::{self, Guard};

/// How changes are tried.
#[derive(Clone, Debug)]
pub struct Options {
    /// What for, in words for a person who reads the list of change sets.
    pub purpose: String,
    /// Version of linerate.
    pub linerate_version: String,
    /// Who takes the changes back if this process cannot.
    pub guard: Guard,
    /// After this time the changes are taken back, unless they are kept, confirmed, or the time renewed.
    pub time_limit: Duration,
}

/// What came of applying one change.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The change; `from` is what stood there.
    pub change: Change,
    /// How it went.
    pub written: Written,
    /// What stands there now.
    pub now: Option<String>,
}

/// How changes are kept.
#[derive(Clone, Debug)]
pub struct Keep {
    /// The file that makes settings last ([`drop_in::PATH`]); `None` keeps them until the next boot.
    pub file: Option<PathBuf>,
    /// Where the evidence is, for example `runs 31 and 32 of linerate history`.
    pub evidence: String,
    /// What may defeat the file at the next boot, as far as it is known; kept with the set.
    pub warnings: Vec<String>,
}

/// What is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The set.
    pub id: ChangeId,
    /// The file; `None` when nothing stands in one.
    pub file: Option<PathBuf>,
    /// What lasts.
    pub lasting: Vec<Target>,
    /// What holds until the next boot, or as long as the interface is there.
    pub until_reboot: Vec<Target>,
    /// As given.
    pub warnings: Vec<String>,
}

/// Changes that are being tried. Dropping it takes back everything that is not kept.
pub struct Trial<'a> {
    session: Session<'a>,
    store: &'a Store,
    deadline: MonotonicTime,
    version: String,
    is_over: bool,
    _lock: FileLock,
}

impl<'a> Trial<'a> {
    /// Records what stands at all targets of the plan and starts the watchdog; nothing is written to the host. Fails when
    /// another trial runs, when an interrupted one has not been taken back ([`crate::recover`]), when a target is not
    /// there or is not any more what the plan was made for, and when the journal cannot be written.
    pub fn begin(store: &'a Store, host: &'a dyn Host, plan: &Plan, options: &Options) -> Result<Self> {
        let identity = host.identity()?;
        let lock = store.lock()?;
        if let Some(set) = pending(store, host)?.first() {
            return Err(ChangeError::Pending(set.id));
        }
        let id = store.make_next()?;
        let mut journal = Journal::create(&store.journal_of(id))?;
        let process = ProcessIdentity::of_this();
        let begun = Record::Begun {
            id: id.get(),
            at_unix_ns: now(),
            linerate_version: options.linerate_version.clone(),
            purpose: options.purpose.clone(),
            process: std::process::id(),
            process_began: process.map_or(0, |process| process.began),
            boot: identity.boot,
            machine: identity.machine,
            namespace: identity.namespace,
            kernel: identity.kernel,
        };
        journal.append(&begun)?;
        let Some(set) = ChangeSet::begin(&begun) else { return Err(ChangeError::NoSuchSet(id)) };
        let session = Session { host, journal: Some(journal), set, mode: Mode::ForReal, notes: Vec::new() };
        let deadline = monotonic_now() + options.time_limit;
        let version = options.linerate_version.clone();
        let mut trial = Self { session, store, deadline, version, is_over: false, _lock: lock };
        let ready = trial.extend(plan).and_then(|()| trial.renew(options.time_limit));
        match ready.and_then(|()| watchdog::arm(&options.guard, store, id)) {
            Ok(()) => Ok(trial),
            Err(error) => {
                trial.is_over = true;
                store.forget(id);
                Err(error)
            }
        }
    }

    /// Its number.
    #[must_use]
    pub fn id(&self) -> ChangeId {
        self.session.set.id
    }

    /// As its journal has it.
    #[must_use]
    pub fn set(&self) -> &ChangeSet {
        &self.session.set
    }

    /// Takes up further changes, found while measuring the first ones. Writes nothing to the host. One for a target that
    /// was only planned, or taken back, replaces what was planned for it; one for a target that is in force is refused.
    pub fn extend(&mut self, plan: &Plan) -> Result<()> {
        self.check()?;
        let mut targets = BTreeSet::new();
        if let Some(change) = plan.changes.iter().find(|change| !targets.insert(&change.target)) {
            return Err(ChangeError::Twice { target: change.target.clone() });
        }
        plan.changes.iter().try_for_each(|change| self.session.plan(change))
    }

    /// Carries out the chosen changes that are not in force, in the order of the plan. All or none: when one fails, those
    /// of this call are taken back and its error is returned.
    pub fn apply(&mut self, chosen: impl Fn(&Change) -> bool) -> Result<Vec<Outcome>> {
        let mut done = Vec::new();
        for index in self.chosen(chosen, |phase| !phase.is_on_the_host() && *phase != Phase::Replaced) {
            let applied = self.check().and_then(|()| self.session.apply(index));
            match applied {
                Ok(written) => done.push((index, written)),
                Err(error) => {
                    let indices: Vec<usize> = done.iter().map(|(index, _)| *index).collect();
                    self.session.take_back(&indices, |_| None);
                    return Err(error);
                }
            }
        }
        let outcome = |(index, written): (usize, Written)| {
            let item = &self.session.set.items[index];
            let now = match &item.phase {
                Phase::InForce { now } => now.clone(),
                _ => item.change.from.clone(),
            };
            Outcome { change: item.change.clone(), written, now }
        };
        Ok(done.into_iter().map(outcome).collect())
    }

    /// Takes back the chosen changes, the last one first; they can be applied again.
    pub fn take_back(&mut self, chosen: impl Fn(&Change) -> bool) -> Vec<TargetReport> {
        let indices = self.chosen(chosen, Phase::is_on_the_host);
        self.session.take_back(&indices, |_| None)
    }

    fn chosen(&self, chosen: impl Fn(&Change) -> bool, phase: impl Fn(&Phase) -> bool) -> Vec<usize> {
        let items = self.session.set.items.iter().enumerate();
        items.filter(|(_, item)| chosen(&item.change) && phase(&item.phase)).map(|(index, _)| index).collect()
    }

    /// From now on there is this much time until the watchdog takes everything back: to be called as long as all goes
    /// well.
    pub fn renew(&mut self, time: Duration) -> Result<()> {
        self.check()?;
        self.deadline = monotonic_now() + time;
        watchdog::write_deadline(self.store, self.id(), self.deadline)
    }

    /// How much time is left.
    #[must_use]
    pub fn time_left(&self) -> Duration {
        self.deadline - monotonic_now()
    }

    /// Whether somebody has confirmed the set from another process ([`Store::confirm`]).
    #[must_use]
    pub fn is_confirmed(&self) -> bool {
        self.store.is_confirmed(self.id())
    }

    fn check(&self) -> Result<()> {
        match (self.is_over, self.time_left().is_zero()) {
            (true, _) => Err(ChangeError::Over),
            (false, true) => Err(ChangeError::Expired),
            (false, false) => Ok(()),
        }
    }

    /// Keeps what is in force: settings also in the file. What was never applied, or was taken back, is no part of that.
    /// When this is an error, everything has been taken back.
    pub fn keep(mut self, keep: &Keep) -> Result<Kept> {
        self.check()?;
        let (lasting, until_reboot) = match &keep.file {
            Some(path) => self.write_file(path, keep)?,
            None => (Vec::new(), self.in_force().map(|(change, _)| change.target.clone()).collect()),
        };
        self.session.record(&Record::Kept { at_unix_ns: now(), warnings: keep.warnings.clone() })?;
        self.is_over = true;
        let file = self.session.set.file.as_ref().map(|file| file.path.clone());
        Ok(Kept { id: self.id(), file, lasting, until_reboot, warnings: keep.warnings.clone() })
    }

    fn in_force(&self) -> impl Iterator<Item = (&Change, Option<&str>)> {
        self.session.set.items.iter().filter_map(|item| match &item.phase {
            Phase::InForce { now } => Some((&item.change, now.as_deref())),
            _ => None,
        })
    }

    fn write_file(&mut self, path: &Path, keep: &Keep) -> Result<(Vec<Target>, Vec<Target>)> {
        let (mut settings, mut lasting, mut until_reboot) = (Vec::new(), Vec::new(), Vec::new());
        for (change, now) in self.in_force() {
            match (&change.target, now) {
                (Target::Setting { key }, Some(now)) => {
                    let reason = change.reason.text.clone();
                    settings.push(Setting { key: key.clone(), value: now.to_owned(), reason });
                    lasting.push(change.target.clone());
                }
                _ => until_reboot.push(change.target.clone()),
            }
        }
        if settings.is_empty() {
            return Ok((lasting, until_reboot));
        }
        let before = self.session.host.read_file(path)?;
        let after = drop_in::with(before.as_deref(), &settings, &self.heading(keep));
        let settings = settings.into_iter().map(|setting| (setting.key, setting.value)).collect();
        let record = Record::Keeping { path: path.display().to_string(), before, after: after.clone(), settings };
        self.session.record(&record)?;
        self.session.host.replace_file(path, Some(&after))?;
        Ok((lasting, until_reboot))
    }

    fn heading(&self, keep: &Keep) -> Heading {
        Heading {
            linerate_version: self.version.clone(),
            date: format_utc(realtime_now(), "%Y-%m-%d %H:%M UTC"),
            kernel: self.session.set.identity.kernel.clone(),
            id: self.id().to_string(),
            evidence: keep.evidence.clone(),
        }
    }

    /// Takes everything back, and says what that did.
    #[must_use = "says what could not be put back"]
    pub fn roll_back(mut self, reason: &str) -> Report {
        self.end(reason)
    }

    fn end(&mut self, reason: &str) -> Report {
        self.is_over = true;
        let here = self.session.set.identity.clone();
        all_back(&mut self.session, &here, reason)
    }
}

impl Drop for Trial<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            // There is nobody left to tell; the journal has it.
            let _ = self.end("the trial was broken off");
        }
    }
}
