//! A whole trial with one fault, the repair, and the expectations.

use core::time::Duration;
use std::collections::BTreeMap;
use std::rc::Rc;

use linerate_model::change::{ChangeGroup, ChangePlan, ChangeReason, ChangeTarget, EffectTiming, HostChange};
use linerate_sys::host_access::HostAccess;
use linerate_units::WallTime;

use super::faulty_host::{Fault, FaultyHost, RENAMED};
use super::{INTERFACE, TestedTarget, companion, host};
use crate::drop_in::DEFAULT_FILE;
use crate::interfaces::stays_with_device;
use crate::scratch::Scratch;
use crate::{
    ChangeSetState, ChangeStore, ChangeTrial, KeepOptions, Result, RollbackGuard, RollbackMode, TrialOptions, pending,
    recover, roll_back, state_disk,
};

type Values = BTreeMap<ChangeTarget, String>;
type Verdict = core::result::Result<(), String>;

/// Runs the trial; the defect, if there is one. `None` when the trial has fewer steps.
pub(super) fn run(tested: &TestedTarget, fault: Fault, step: usize) -> Option<Verdict> {
    let scratch = Scratch::new();
    let store = ChangeStore::at(scratch.path());
    let faulty = Rc::new(FaultyHost::new(host(tested), tested.clone(), fault, step));
    let before = faulty.host.values();
    let disk = Rc::clone(&faulty);
    // The trial ends, with or without an error, before the fault does.
    let outcome = state_disk::with_fault(Rc::new(move || disk.state_disk()), || trial(&store, &*faulty, tested));
    let (at_fault, error) = (faulty.at_fault(), outcome.err().map(|error| error.to_string()).unwrap_or_default());
    let ended = Ended { tested, fault, store: &store, faulty: &faulty, before, at_fault, error };
    faulty.has_come().then(|| ended.judge())
}

/// Applied, rolled back, applied again, kept, and rolled back on request.
fn trial(store: &ChangeStore, host: &dyn HostAccess, tested: &TestedTarget) -> Result<()> {
    let mut trial = ChangeTrial::begin(store, host, &plan(tested), &options())?;
    trial.apply(|_| true)?;
    trial.roll_back_selected(|_| true);
    trial.apply(|_| true)?;
    let kept =
        trial.keep(&KeepOptions { file: Some(DEFAULT_FILE.into()), evidence: String::new(), warnings: Vec::new() })?;
    roll_back(store, host, kept.id, RollbackMode::ForReal, "a test").map(drop)
}

fn plan(tested: &TestedTarget) -> ChangePlan {
    let change = |tested: &TestedTarget| HostChange {
        target: tested.target.clone(),
        from: None,
        to: tested.values[1].clone(),
        group: ChangeGroup::Device,
        takes_effect: EffectTiming::Now,
        reason: ChangeReason { text: "required by a test".to_owned(), ..ChangeReason::default() },
    };
    let changes = [tested, &companion()].map(change).into();
    ChangePlan { made_at: WallTime::from_unix(Duration::from_secs(1_795_161_279)), changes }
}

fn options() -> TrialOptions {
    TrialOptions {
        purpose: "a test".to_owned(),
        linerate_version: "0.1.0".to_owned(),
        guard: RollbackGuard::Unguarded,
        time_limit: Duration::from_secs(3600),
    }
}

/// A trial that has ended, with the fault still there.
struct Ended<'a> {
    tested: &'a TestedTarget,
    fault: Fault,
    store: &'a ChangeStore,
    faulty: &'a FaultyHost,
    before: Values,
    at_fault: Option<String>,
    /// Error of the trial; empty when it had none.
    error: String,
}

impl Ended<'_> {
    fn judge(&self) -> Verdict {
        self.check_before_repair()?;
        self.faulty.repair();
        self.roll_back_the_rest().map_err(|error| format!("after the repair: {error}"))?;
        self.check_values("at last")?;
        self.check_report()?;
        match self.faulty.host.files() {
            files if files.is_empty() => Ok(()),
            files => Err(format!("files are left: {files:?}")),
        }
    }

    /// A rollback needs no disk, and follows interfaces at once.
    fn check_before_repair(&self) -> Verdict {
        match self.fault {
            Fault::Kill | Fault::PowerCut | Fault::ReadOnlyHost => Ok(()),
            Fault::Move if self.stays_with_device() => {
                let is_named = self.messages().contains("move it back");
                if !self.was_applied() || is_named { Ok(()) } else { Err(self.unnamed("the move")) }
            }
            _ => self.check_values("before the repair"),
        }
    }

    /// As the next start and the user do.
    fn roll_back_the_rest(&self) -> Result<()> {
        let host: &dyn HostAccess = self.faulty;
        recover(self.store, host)?;
        let here = host.identity()?;
        for (id, set) in self.store.list()? {
            if !matches!(set?.state(&here), ChangeSetState::RolledBack | ChangeSetState::LostAtReboot) {
                roll_back(self.store, host, id, RollbackMode::ForReal, "a test")?;
            }
        }
        assert!(pending(self.store, host)?.is_empty(), "recovered");
        self.store.check_readable()
    }

    fn check_values(&self, time: &str) -> Verdict {
        let (mut expected, mut found) = (self.expected(), self.faulty.host.values());
        let target = &self.tested.target;
        if self.fault.is_second_writer() && !(self.fault == Fault::SameValue && self.was_applied()) {
            let allowed = [expected.remove(target), Some(self.written_by_other().to_owned())];
            let value = found.remove(target);
            if !allowed.contains(&value) {
                return Err(format!("{time}: {target} is {value:?}"));
            }
        }
        if found == expected { Ok(()) } else { Err(format!("{time}: {found:?}, and not {expected:?}")) }
    }

    /// Values as before, except for those that the fault itself changes.
    fn expected(&self) -> Values {
        let is_of_interface = |target: &ChangeTarget, value: &str| target.interfaces([value]).contains(INTERFACE);
        let mut values = self.before.clone();
        match self.fault {
            Fault::Rename => {
                let renamed = |(target, value): (ChangeTarget, String)| {
                    let value = target.value_with_renamed(&value, INTERFACE, RENAMED);
                    (target.with_renamed(INTERFACE, RENAMED), value)
                };
                return values.into_iter().map(renamed).collect();
            }
            Fault::Delete => values.retain(|target, value| !is_of_interface(target, value)),
            Fault::Move => {
                values.retain(|target, value| stays_with_device(target) || !is_of_interface(target, value));
            }
            _ => {}
        }
        values
    }

    fn written_by_other(&self) -> &str {
        match self.fault {
            Fault::SameValue => &self.tested.values[1],
            _ => &self.tested.values[2],
        }
    }

    /// True when the value was in effect as the fault came.
    fn was_applied(&self) -> bool {
        self.at_fault.as_ref() == Some(&self.tested.values[1])
    }

    fn stays_with_device(&self) -> bool {
        stays_with_device(&self.tested.target) && self.is_of_interface()
    }

    fn is_of_interface(&self) -> bool {
        self.tested.target.interfaces([self.tested.values[0].as_str()]).contains(INTERFACE)
    }

    /// The error of the trial, and the messages of all sets.
    fn messages(&self) -> String {
        let sets = self.store.list().expect("readable").into_iter().map(|(_, set)| set.expect("readable"));
        sets.flat_map(|set| set.items)
            .map(|item| item.message)
            .chain([self.error.clone()])
            .collect::<Vec<_>>()
            .join("; ")
    }

    fn unnamed(&self, what: &str) -> String {
        format!("{what} is not named: {}", self.messages())
    }

    /// A value that is not as before is reported with its reason.
    fn check_report(&self) -> Verdict {
        let value = self.faulty.host.values().get(&self.tested.target).cloned();
        let named = |text: &str| if self.messages().contains(text) { Ok(()) } else { Err(self.unnamed(text)) };
        match self.fault {
            Fault::OtherValue if self.was_applied() && value.as_ref() == Some(&self.tested.values[2]) => {
                named("another program has changed it since")
            }
            Fault::Delete if self.was_applied() && self.is_of_interface() => named("removed with its interface")
                .or_else(|_| named("No such device"))
                .or_else(|_| named("does not exist")),
            _ => Ok(()),
        }
    }
}
