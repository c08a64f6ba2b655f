//! One case: a procedure with one fault, the repair, and the expectations.

use std::collections::BTreeMap;
use std::rc::Rc;

use linerate_model::change::ChangeTarget;
use linerate_sys::host_access::HostAccess;

use super::fault::Fault;
use super::faulty_host::{FaultyHost, RENAMED};
use super::procedure::{self, Procedure, ProcedureEnd};
use super::{INTERFACE, TestedTarget, host};
use crate::interfaces::stays_with_device;
use crate::scratch::Scratch;
use crate::state_disk::{self, DiskFault};
use crate::{ChangeSetState, ChangeStore, Result, RollbackMode, pending, recover, roll_back, unfinished};

pub(super) type Values = BTreeMap<ChangeTarget, String>;
type Verdict = core::result::Result<(), String>;

/// Outcome of a case without a defect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Outcome {
    /// Nothing of the changes was left while the fault lasted.
    Restored,
    /// The rest was reported, and restored by the next start after the fault.
    RestoredLater,
    /// The value of another program was left alone.
    LeftToOther,
    /// The record was removed when no process knew the changes: they stay as they were.
    Unrecorded,
}

/// Runs the case; the defect, if there is one. `None` when the procedure has fewer steps.
pub(super) fn run(
    tested: &TestedTarget,
    procedure: Procedure,
    fault: Fault,
    step: usize,
) -> Option<core::result::Result<Outcome, String>> {
    let scratch = Scratch::new();
    let store = ChangeStore::at(scratch.path());
    let faulty = Rc::new(FaultyHost::new(host(tested), store, tested.clone(), fault, step));
    let before = faulty.host.values();
    let end = procedure::run(procedure, &faulty, tested);
    let case = Case { tested, procedure, fault, faulty: &faulty, before, end };
    faulty.has_come().then(|| case.judge())
}

/// A procedure that has ended, with the fault still there.
struct Case<'a> {
    tested: &'a TestedTarget,
    procedure: Procedure,
    fault: Fault,
    faulty: &'a Rc<FaultyHost>,
    before: Values,
    end: ProcedureEnd,
}

impl Case<'_> {
    fn judge(&self) -> core::result::Result<Outcome, String> {
        let is_restored = !self.fault.stops() && self.check_values().is_ok();
        let disk: Rc<dyn DiskFault> = Rc::<FaultyHost>::clone(self.faulty);
        state_disk::with_fault(disk, || self.check_before_repair())
            .map_err(|defect| format!("before the repair: {defect}"))?;
        self.faulty.repair();
        self.roll_back_the_rest().map_err(|error| format!("after the repair: {error}"))?;
        if self.is_unrecorded() {
            return Ok(Outcome::Unrecorded);
        }
        self.check_values()?;
        self.check_report()?;
        match self.faulty.host.files() {
            files if files.is_empty() => {}
            files => return Err(format!("files are left: {files:?}")),
        }
        Ok(match (self.is_of_other(), is_restored) {
            (true, _) => Outcome::LeftToOther,
            (false, true) => Outcome::Restored,
            (false, false) => Outcome::RestoredLater,
        })
    }

    /// A rollback needs no disk and no record, and follows interfaces at once. What it cannot do is reported.
    fn check_before_repair(&self) -> Verdict {
        if self.fault.is_of_journal() {
            self.check_unusable_journals()?;
        }
        match self.fault {
            fault if fault.stops() => Ok(()),
            fault if fault.is_of_host() || fault.is_of_journal() => {
                self.check_values().or_else(|_| self.check_listed())
            }
            Fault::RemovedDirectory if self.is_unrecorded() => Ok(()),
            Fault::Move if self.stays_with_device() => {
                let is_named = self.messages().contains("move it back");
                if self.was_applied() && !is_named { Err(self.unnamed("the move")) } else { Ok(()) }
            }
            _ => self.check_values(),
        }
    }

    /// Each journal that cannot be used is an error, and nothing new begins.
    fn check_unusable_journals(&self) -> Verdict {
        if !self.faulty.has_altered_journals() || self.faulty.store.ids().is_ok_and(|ids| ids.is_empty()) {
            return Ok(());
        }
        let writes = self.faulty.host.writes();
        let error = procedure::refusal(&self.faulty.store, &**self.faulty).unwrap_or_default();
        let way_out = match self.fault {
            Fault::NewerJournal => "use that version",
            Fault::ForeignJournal => "change its owner",
            _ => "by hand",
        };
        let is_listed = self.faulty.store.check_readable().is_err_and(|error| error.to_string().contains(way_out));
        if error.contains(way_out) && is_listed && self.faulty.host.writes() == writes {
            return Ok(());
        }
        Err(format!("a new trial: {error:?}; listed: {is_listed}"))
    }

    /// The caller was told of what is left, and `rollback --pending` names it.
    fn check_listed(&self) -> Verdict {
        let (store, host): (_, &dyn HostAccess) = (&self.faulty.store, &**self.faulty);
        let is_listed = store.check_readable().is_err() || unfinished(store, host).is_ok_and(|sets| !sets.is_empty());
        match (self.end.reported.is_empty(), is_listed) {
            (false, true) => Ok(()),
            (true, _) => Err("nothing is reported".to_owned()),
            (false, false) => Err(format!("it is not listed: {}", self.end.reported)),
        }
    }

    /// Nothing and no one knows the changes: a next process finds no record, or a user names one that is gone.
    fn is_unrecorded(&self) -> bool {
        let knows_nothing = self.procedure.starts_from_the_journal() || self.end.was_kept;
        let is_asked = matches!(self.procedure, Procedure::Recovery | Procedure::RecoveryAfterBoot);
        self.fault == Fault::RemovedDirectory
            && knows_nothing
            && (is_asked || self.end.reported.contains("no record of changes 1"))
            && self.faulty.values_at_fault() == self.faulty.host.values()
    }

    /// As the next start and the user do.
    fn roll_back_the_rest(&self) -> Result<()> {
        let (store, host): (_, &dyn HostAccess) = (&self.faulty.store, &**self.faulty);
        recover(store, host)?;
        let here = host.identity()?;
        for (id, set) in store.list()? {
            if !matches!(set?.state(&here), ChangeSetState::RolledBack | ChangeSetState::LostAtReboot) {
                roll_back(store, host, id, RollbackMode::ForReal, "a test")?;
            }
        }
        assert!(pending(store, host)?.is_empty() && unfinished(store, host)?.is_empty(), "recovered");
        store.check_readable()
    }

    fn check_values(&self) -> Verdict {
        let (mut expected, mut found) = (self.expected(), self.faulty.host.values());
        let target = &self.tested.target;
        if self.fault.is_second_writer() && !(self.fault == Fault::SameValue && self.was_applied()) {
            let allowed = [expected.remove(target), Some(self.written_by_other().to_owned())];
            let value = found.remove(target);
            if !allowed.contains(&value) {
                return Err(format!("{target} is {value:?}"));
            }
        }
        if found == expected { Ok(()) } else { Err(format!("{found:?}, and not {expected:?}")) }
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

    /// True when the value of another program has stayed.
    fn is_of_other(&self) -> bool {
        let now = self.faulty.host.values().get(&self.tested.target).cloned();
        self.fault.is_second_writer() && now.as_deref() == Some(self.written_by_other())
    }

    /// True when the value was in effect as the fault came.
    fn was_applied(&self) -> bool {
        self.faulty.values_at_fault().get(&self.tested.target) == Some(&self.tested.values[1])
    }

    fn stays_with_device(&self) -> bool {
        stays_with_device(&self.tested.target) && self.is_of_interface()
    }

    fn is_of_interface(&self) -> bool {
        self.tested.target.interfaces([self.tested.values[0].as_str()]).contains(INTERFACE)
    }

    /// The report, and the messages of all sets.
    fn messages(&self) -> String {
        let sets = self.faulty.store.list().expect("readable").into_iter().map(|(_, set)| set.expect("readable"));
        let recorded = sets.flat_map(|set| set.items).map(|item| item.message);
        recorded.chain([self.end.reported.clone()]).collect::<Vec<_>>().join("; ")
    }

    fn unnamed(&self, what: &str) -> String {
        format!("{what} is not named: {}", self.messages())
    }

    /// A value that is not as before is reported with its reason.
    fn check_report(&self) -> Verdict {
        let named = |text: &str| if self.messages().contains(text) { Ok(()) } else { Err(self.unnamed(text)) };
        match self.fault {
            Fault::OtherValue if self.was_applied() && self.is_of_other() => {
                named("another program has changed it since")
            }
            Fault::Delete if self.was_applied() && self.is_of_interface() => named("removed with its interface")
                .or_else(|_| named("No such device"))
                .or_else(|_| named("does not exist")),
            _ => Ok(()),
        }
    }
}
