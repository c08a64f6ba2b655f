//! The watchdog: rolls changes back when the process that makes them cannot.
//!
//! A second linerate in its own session waits for one of three events: the lock of the state directory becomes free
//! without the set being kept (the process was killed, or lost its terminal); the deadline expires (the process hangs,
//! or the user cannot reach the host to confirm); or the set is kept or rolled back, after which the watchdog exits.
//! Where systemd runs the host, the watchdog is a transient service, so that it survives the end of a login session;
//! elsewhere, in network namespaces and containers, and where systemd is too old or may not run this program, it is a
//! process in the same namespace.

mod start;

use core::time::Duration;
use std::fs::File;
use std::path::PathBuf;

use linerate_model::change::ChangeSetState;
use linerate_sys::clock::{monotonic_now, sleep_until};
use linerate_sys::file_lock::LockFile;
use linerate_sys::host_access::{HostAccess, HostIdentity};
use linerate_sys::process::ProcessIdentity;
use linerate_units::MonotonicTime;

pub use start::WatchdogKind;
use start::{ServiceManager, WatchdogStart};

use crate::error::{ChangeError, Result};
use crate::id::ChangeId;
use crate::journal;
use crate::rollback::{RollbackReport, roll_back_read};
use crate::set::ChangeSet;
use crate::store::ChangeStore;

/// Process that rolls the changes back if this one cannot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RollbackGuard {
    /// This program, which is linerate, as `PROGRAM rollback --watch ID`.
    Program(PathBuf),
    /// None: a killed process leaves its changes until the next start or boot. For changes to a host in memory.
    Unguarded,
}

const DEADLINE_NOTE: &str = "deadline";
const WATCHDOG_NOTE: &str = "watchdog";

/// Interval at which the watchdog polls.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Time for the process to exit after SIGTERM, before SIGKILL.
const TERMINATION_GRACE: Duration = Duration::from_secs(2);

pub(crate) fn write_deadline(store: &ChangeStore, id: ChangeId, deadline: MonotonicTime) -> Result<()> {
    store.write_note(id, DEADLINE_NOTE, &deadline.as_nanos().to_string())
}

fn read_deadline(store: &ChangeStore, id: ChangeId) -> Option<MonotonicTime> {
    store.read_note(id, DEADLINE_NOTE)?.trim().parse().ok().map(MonotonicTime::from_nanos)
}

/// Starts the watchdog, and returns when it is ready, with the way in which it runs.
pub(crate) fn arm(guard: &RollbackGuard, store: &ChangeStore, id: ChangeId) -> Result<WatchdogKind> {
    match guard {
        RollbackGuard::Program(program) => WatchdogStart { program, store, id }.start(ServiceManager::of_this_host()),
        RollbackGuard::Unguarded => Ok(WatchdogKind::None),
    }
}

/// Runs the watchdog. Returns when nothing is left to watch, with a report if it rolled the set back.
pub fn watch(store: &ChangeStore, host: &dyn HostAccess, id: ChangeId) -> Result<Option<RollbackReport>> {
    Watchdog::start(store, host, id)?.run()
}

/// A watchdog that has reported, so that the trial may begin to write.
pub(crate) struct Watchdog<'a> {
    store: &'a ChangeStore,
    host: &'a dyn HostAccess,
    here: HostIdentity,
    watched: WatchedSet,
    lock: LockFile,
}

impl<'a> Watchdog<'a> {
    pub(crate) fn start(store: &'a ChangeStore, host: &'a dyn HostAccess, id: ChangeId) -> Result<Self> {
        let here = host.identity()?;
        let watched = WatchedSet::open(store, id)?;
        let lock = store.lock_file()?;
        store.write_note(id, WATCHDOG_NOTE, &std::process::id().to_string())?;
        Ok(Self { store, host, here, watched, lock })
    }

    pub(crate) fn run(self) -> Result<Option<RollbackReport>> {
        let Self { store, host, here, mut watched, mut lock } = self;
        let mut expiry = Expiry::default();
        loop {
            lock = match lock.try_lock()? {
                Ok(lock) => {
                    lock.share_with_programs();
                    watched.refresh(store);
                    let is_pending = watched.set.state(&here) == ChangeSetState::Pending;
                    let reason =
                        if expiry.asked_at.is_some() { "its time limit expired" } else { "its process had ended" };
                    return is_pending.then(|| watched.roll_back(store, host, reason)).transpose();
                }
                Err(held) => held,
            };
            watched.refresh(store);
            if watched.set.state(&here) != ChangeSetState::Pending {
                return Ok(None);
            }
            let now = monotonic_now();
            let process = ProcessIdentity { number: watched.set.process.0, began: watched.set.process_began };
            // While it exists, it could write again. One that cannot be signalled keeps the lock, and is retried.
            let _ = match expiry.next(now, watched.deadline) {
                None => Ok(()),
                Some(EndSignal::Terminate) => process.terminate(),
                Some(EndSignal::Kill) => process.kill(),
            };
            sleep_until(now + POLL_INTERVAL);
        }
    }
}

/// A set as last read: its directory may be removed or its journal damaged while the trial runs.
struct WatchedSet {
    /// Stays readable when its name is gone.
    journal: File,
    set: ChangeSet,
    /// False when the journal says more, and cannot be read.
    is_current: bool,
    deadline: Option<MonotonicTime>,
}

impl WatchedSet {
    fn open(store: &ChangeStore, id: ChangeId) -> Result<Self> {
        let set = store.get(id)?;
        let path = store.journal_file(id);
        let journal = File::open(&path).map_err(|cause| ChangeError::Journal { path, cause })?;
        // The trial that waits for this may be over, and its directory gone, before the first look at the lock.
        let deadline = read_deadline(store, id);
        Ok(Self { journal, set, is_current: true, deadline })
    }

    /// Reads the journal and the notes again; what cannot be read stays as it was.
    fn refresh(&mut self, store: &ChangeStore) {
        let id = self.set.id;
        let was_confirmed = self.set.is_confirmed;
        let path = store.journal_file(id);
        let records = journal::read_open(&mut self.journal, &path);
        let read = records.and_then(|records| ChangeSet::replay(&path, &records));
        self.is_current = matches!(read, Ok(Some(_)));
        if let Ok(Some(set)) = read {
            self.set = set;
            self.set.is_confirmed = was_confirmed || store.is_confirmed(id);
        }
        self.deadline = read_deadline(store, id).or(self.deadline);
    }

    fn roll_back(mut self, store: &ChangeStore, host: &dyn HostAccess, reason: &str) -> Result<RollbackReport> {
        if !self.is_current {
            self.set.assume_attempts();
        }
        roll_back_read(store, host, self.set, reason)
    }
}

/// Signal for a process whose time limit has expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EndSignal {
    Terminate,
    Kill,
}

/// End of a process whose time limit has expired: SIGTERM, and SIGKILL after [`TERMINATION_GRACE`].
#[derive(Debug, Default)]
struct Expiry {
    asked_at: Option<MonotonicTime>,
}

impl Expiry {
    fn next(&mut self, now: MonotonicTime, deadline: Option<MonotonicTime>) -> Option<EndSignal> {
        if deadline.is_some_and(|deadline| now <= deadline) {
            // It was late, and has renewed its time.
            self.asked_at = None;
            return None;
        }
        let asked_at = *self.asked_at.get_or_insert(now);
        if asked_at == now {
            return Some(EndSignal::Terminate);
        }
        (now - asked_at > TERMINATION_GRACE).then_some(EndSignal::Kill)
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::change::ChangePlan;
    use linerate_sys::host_access::FakeHost;

    use super::*;
    use crate::scratch::Scratch;
    use crate::trial::{ChangeTrial, TrialOptions};

    /// Else the process of a trial that was rolled back at once would be ended.
    #[test]
    fn the_deadline_outlives_its_note() {
        let scratch = Scratch::new();
        let (store, host) =
            (ChangeStore::at(&scratch.path().join("state")), FakeHost::new(std::collections::BTreeMap::new()));
        let options = TrialOptions {
            purpose: "test".to_owned(),
            linerate_version: "0.1.0".to_owned(),
            guard: RollbackGuard::Unguarded,
            time_limit: Duration::from_secs(60),
        };
        let plan = ChangePlan { made_at: linerate_sys::clock::realtime_now(), changes: Vec::new() };
        let trial = ChangeTrial::begin(&store, &host, &plan, &options).expect("begun");
        let mut watched = WatchedSet::open(&store, trial.id()).expect("recorded");
        std::fs::remove_dir_all(store.set_directory(trial.id())).expect("there");
        watched.refresh(&store);
        assert_eq!(Expiry::default().next(monotonic_now(), watched.deadline), None);
    }

    #[test]
    fn a_process_that_is_late_again_is_asked_again() {
        let at = |seconds: u64| MonotonicTime::from_nanos(seconds * 1_000_000_000);
        let mut expiry = Expiry::default();
        let mut next = |now: u64, deadline: u64| expiry.next(at(now), Some(at(deadline)));
        assert_eq!(next(9, 10), None);
        assert_eq!(next(11, 10), Some(EndSignal::Terminate));
        assert_eq!(next(12, 10), None, "it has time to end");
        assert_eq!(next(13, 30), None, "it has renewed its time");
        assert_eq!(next(31, 30), Some(EndSignal::Terminate), "not killed at once");
        assert_eq!(next(34, 30), Some(EndSignal::Kill));
        assert_eq!(Expiry::default().next(at(1), None), Some(EndSignal::Terminate), "no deadline is known");
    }
}
