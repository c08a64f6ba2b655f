//! A change set as its journal tells it.

use core::time::Duration;
use std::path::{Path, PathBuf};

use linerate_model::change::{Change, Target};
use linerate_sys::host_access::Identity;
use linerate_units::WallTime;

use crate::error::{ChangeError, Result};
use crate::id::ChangeId;
use crate::journal::{Record, Written};

/// Changes that were begun together, and are kept or taken back together.
#[derive(Clone, Debug, PartialEq)]
pub struct ChangeSet {
    /// Its number.
    pub id: ChangeId,
    /// When it was begun.
    pub begun_at: WallTime,
    /// The linerate that began it.
    pub linerate_version: String,
    /// What for.
    pub purpose: String,
    /// The process that made it.
    pub process: u32,
    /// When that process began, in ticks since the boot; 0 where it is not known.
    pub process_began: u64,
    /// The host.
    pub identity: Identity,
    /// The changes, in the order in which they were planned.
    pub items: Vec<Item>,
    /// The file that makes them last; `None` when none was written.
    pub file: Option<KeptFile>,
    /// When it was kept, and what may defeat it at the next boot.
    pub kept: Option<(WallTime, Vec<String>)>,
    /// When it was taken back, whether nothing is left, and why.
    pub closed: Option<(WallTime, bool, String)>,
    /// Whether somebody has confirmed it, so that nothing takes it back by itself.
    pub is_confirmed: bool,
}

/// One change of a set.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// The change; `from` is what stood there when it was planned.
    pub change: Change,
    /// How far it has come.
    pub phase: Phase,
    /// What was said last about it, for a person; empty when there was nothing to say.
    pub message: String,
}

/// How far a change has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Nothing was written.
    Planned,
    /// The host had it before.
    NoNeed,
    /// The host refused it, and has what it had before.
    Refused,
    /// It was about to be written when the journal ends, so it may or may not stand there.
    Attempted,
    /// It stands there.
    InForce {
        /// What was read after writing it.
        now: Option<String>,
    },
    /// It was about to be put back when the journal ends.
    TakingBack {
        /// What was read after writing it; `None` when that was not recorded.
        now: Option<Option<String>>,
    },
    /// What stood there before stands there again.
    Back,
    /// Nothing of it is on the host, and a later change of the set has taken its place: it is not applied any more.
    Replaced,
}

impl Phase {
    /// Whether something may be left of it on the host.
    #[must_use]
    pub const fn is_on_the_host(&self) -> bool {
        matches!(self, Self::Attempted | Self::InForce { .. } | Self::TakingBack { .. })
    }
}

/// A file that makes settings last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptFile {
    /// The file.
    pub path: PathBuf,
    /// What it had before; `None` when it was not there.
    pub before: Option<String>,
    /// What was written into it.
    pub after: String,
    /// Keys and values of this set.
    pub settings: Vec<(String, String)>,
    /// Whether nothing of ours is left in it.
    pub is_back: bool,
}

/// What has become of a change set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// Begun, and neither kept nor taken back: it is being tried, or was interrupted.
    Pending,
    /// Confirmed, and not written into a file: it holds until the next boot.
    UntilReboot,
    /// Kept.
    Kept,
    /// Taken back; the host is as before.
    RolledBack,
    /// Taken back, as far as that could be done.
    Partly,
    /// Never kept, and gone with a boot since.
    LostAtReboot,
}

impl State {
    /// Its name in documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::UntilReboot => "until_reboot",
            Self::Kept => "kept",
            Self::RolledBack => "rolled_back",
            Self::Partly => "partly_rolled_back",
            Self::LostAtReboot => "lost_at_reboot",
        }
    }

    /// In words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::UntilReboot => "kept until the next boot",
            Self::Kept => "kept",
            Self::RolledBack => "rolled back",
            Self::Partly => "partly rolled back",
            Self::LostAtReboot => "lost at a reboot",
        }
    }
}

impl ChangeSet {
    /// Reads the records in their order.
    pub(crate) fn replay(path: &Path, records: &[Record]) -> Result<Option<Self>> {
        let Some((first, rest)) = records.split_first() else { return Ok(None) };
        let damaged = |detail: &str| ChangeError::Damaged { path: path.to_owned(), detail: detail.to_owned() };
        let mut set = Self::begin(first).ok_or_else(|| damaged("it does not begin with its beginning"))?;
        for record in rest {
            set.apply(record)?.ok_or_else(|| damaged("a record is about a change that it does not have"))?;
        }
        Ok(Some(set))
    }

    pub(crate) fn begin(record: &Record) -> Option<Self> {
        let Record::Begun {
            id,
            at_unix_ns,
            linerate_version,
            purpose,
            process,
            process_began,
            boot,
            machine,
            namespace,
            kernel,
        } = record.clone()
        else {
            return None;
        };
        Some(Self {
            id: ChangeId::new(id),
            begun_at: time(at_unix_ns),
            linerate_version,
            purpose,
            process,
            process_began,
            identity: Identity { boot, machine, namespace, kernel },
            items: Vec::new(),
            file: None,
            kept: None,
            closed: None,
            is_confirmed: false,
        })
    }

    /// What one more record makes of it; `None` when the record does not fit.
    pub(crate) fn apply(&mut self, record: &Record) -> Result<Option<()>> {
        let done = match record {
            Record::Planned { index, change } if *index == self.items.len() => {
                let change = Change::try_from(change)?;
                self.replace(&change.target);
                self.items.push(Item { change, phase: Phase::Planned, message: String::new() });
                Some(())
            }
            Record::Begun { .. } | Record::Planned { .. } => None,
            Record::Intent { index } => self.advance(*index, |_| Phase::Attempted, None),
            Record::Outcome { index, result, now, message } => {
                let phase = |_| match result {
                    Written::Written | Written::Adjusted => Phase::InForce { now: now.clone() },
                    Written::NoNeed => Phase::NoNeed,
                    Written::Refused => Phase::Refused,
                };
                self.advance(*index, phase, Some(message.clone().unwrap_or_default()))
            }
            Record::TakingBack { index } => self.advance(*index, taking_back, None),
            Record::TakenBack { index, is_back, message } => {
                let phase = |phase| if *is_back { Phase::Back } else { phase };
                self.advance(*index, phase, Some(message.clone()))
            }
            Record::Keeping { path, before, after, settings } => {
                let (path, before, after) = (PathBuf::from(path), before.clone(), after.clone());
                self.file = Some(KeptFile { path, before, after, settings: settings.clone(), is_back: false });
                Some(())
            }
            Record::Kept { at_unix_ns, warnings } => {
                self.kept = Some((time(*at_unix_ns), warnings.clone()));
                Some(())
            }
            Record::FileTakenBack { is_back, .. } => self.file.as_mut().map(|file| file.is_back = *is_back),
            Record::Closed { at_unix_ns, is_clean, reason } => {
                self.closed = Some((time(*at_unix_ns), *is_clean, reason.clone()));
                Some(())
            }
        };
        Ok(done)
    }

    /// What was planned for this target, and of which nothing is on the host, gives way to what is planned for it now.
    fn replace(&mut self, target: &Target) {
        let earlier = |item: &&mut Item| item.change.target == *target && !item.phase.is_on_the_host();
        for item in self.items.iter_mut().filter(earlier) {
            item.phase = Phase::Replaced;
        }
    }

    fn advance(&mut self, index: usize, to: impl FnOnce(Phase) -> Phase, message: Option<String>) -> Option<()> {
        let item = self.items.get_mut(index)?;
        item.phase = to(core::mem::replace(&mut item.phase, Phase::Planned));
        if let Some(message) = message {
            item.message = message;
        }
        Some(())
    }

    /// What has become of it, as seen from this boot of the host.
    #[must_use]
    pub fn state(&self, here: &Identity) -> State {
        match (&self.closed, &self.kept) {
            (Some((_, true, _)), _) => State::RolledBack,
            (Some((_, false, _)), _) => State::Partly,
            (None, Some(_)) if self.file.is_some() => State::Kept,
            (None, kept) => {
                let leaves_a_file = self.file.as_ref().is_some_and(|file| !file.is_back);
                if self.identity.boot != here.boot && !leaves_a_file {
                    State::LostAtReboot
                } else if kept.is_some() || self.is_confirmed {
                    State::UntilReboot
                } else {
                    State::Pending
                }
            }
        }
    }

    /// Whether something of it may be on the host, or in its files.
    #[must_use]
    pub fn leaves_something(&self) -> bool {
        self.items.iter().any(|item| item.phase.is_on_the_host())
            || self.file.as_ref().is_some_and(|file| !file.is_back)
    }
}

fn taking_back(phase: Phase) -> Phase {
    match phase {
        Phase::InForce { now } => Phase::TakingBack { now: Some(now) },
        Phase::TakingBack { now } => Phase::TakingBack { now },
        _ => Phase::TakingBack { now: None },
    }
}

pub(crate) fn time(nanoseconds: u64) -> WallTime {
    WallTime::from_unix(Duration::from_nanos(nanoseconds))
}
