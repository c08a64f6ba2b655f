//! The procedures in which the faults come.

use core::time::Duration;
use std::rc::Rc;

use linerate_model::change::{ChangeGroup, ChangePlan, ChangeReason, EffectTiming, HostChange};
use linerate_sys::host_access::{FakeHost, HostAccess};
use linerate_units::WallTime;

use super::faulty_host::FaultyHost;
use super::{TestedTarget, companion};
use crate::drop_in::DEFAULT_FILE;
use crate::watchdog::Watchdog;
use crate::{
    ChangeId, ChangeStore, ChangeTrial, KeepOptions, Result, RollbackGuard, RollbackMode, RollbackReport, TrialOptions,
    recover, roll_back, state_disk,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Procedure {
    /// Applied, rolled back, applied again, kept, and rolled back on request.
    Trial,
    /// The watchdog of a process that was killed while it kept its changes.
    Watchdog,
    /// The next start after that process and its watchdog were killed.
    Recovery,
    /// The same after a boot, which has applied the setting file.
    RecoveryAfterBoot,
    /// Kept changes rolled back after a boot.
    RollbackAfterBoot,
}

impl Procedure {
    pub(super) const ALL: [Self; 5] =
        [Self::Trial, Self::Watchdog, Self::Recovery, Self::RecoveryAfterBoot, Self::RollbackAfterBoot];

    /// True for those that know the changes only by their journal.
    pub(super) const fn starts_from_the_journal(self) -> bool {
        !matches!(self, Self::Trial | Self::Watchdog)
    }
}

/// End of a procedure.
#[derive(Debug, Default)]
pub(super) struct ProcedureEnd {
    /// Error, or the targets that were not restored; empty when there are none.
    pub(super) reported: String,
    /// True when the changes were kept before the fault came.
    pub(super) was_kept: bool,
}

/// Runs a procedure on this host.
pub(super) fn run(procedure: Procedure, faulty: &Rc<FaultyHost>, tested: &TestedTarget) -> ProcedureEnd {
    let mut was_kept = false;
    let work = || match procedure {
        Procedure::Trial => trial(faulty, tested, &mut was_kept),
        Procedure::Watchdog => watchdog(faulty, tested),
        Procedure::Recovery => {
            kill_within_keep(faulty, tested, |_| ())?;
            recovered(faulty)
        }
        Procedure::RecoveryAfterBoot => {
            kill_within_keep(faulty, tested, |_| ())?;
            faulty.host.reboot();
            recovered(faulty)
        }
        Procedure::RollbackAfterBoot => {
            let id = kept(faulty, tested)?;
            faulty.host.reboot();
            was_kept = true;
            faulty.run();
            roll_back(&faulty.store, &**faulty, id, RollbackMode::ForReal, "a test").map(|report| vec![report])
        }
    };
    let disk: Rc<dyn state_disk::DiskFault> = Rc::<FaultyHost>::clone(faulty);
    let reported = match state_disk::with_fault(disk, work) {
        Ok(reports) => unrestored(&reports),
        Err(error) => error.to_string(),
    };
    ProcedureEnd { reported, was_kept }
}

fn unrestored(reports: &[RollbackReport]) -> String {
    let targets = reports.iter().flat_map(|report| &report.targets).filter(|target| !target.result.is_restored());
    let targets = targets.map(|target| format!("{}: {}", target.target, target.result));
    let files = reports.iter().filter_map(|report| report.file.as_ref()).filter(|file| !file.is_back);
    targets.chain(files.map(|file| file.message.clone())).collect::<Vec<_>>().join("; ")
}

fn trial(faulty: &FaultyHost, tested: &TestedTarget, was_kept: &mut bool) -> Result<Vec<RollbackReport>> {
    faulty.run();
    let mut trial = ChangeTrial::begin(&faulty.store, faulty, &plan(&both(tested)), &options())?;
    trial.apply(|_| true)?;
    trial.roll_back_selected(|_| true);
    trial.apply(|_| true)?;
    let id = trial.keep(&keep())?.id;
    *was_kept = !faulty.has_come();
    roll_back(&faulty.store, faulty, id, RollbackMode::ForReal, "a test").map(|report| vec![report])
}

fn kept(faulty: &FaultyHost, tested: &TestedTarget) -> Result<ChangeId> {
    let mut trial = ChangeTrial::begin(&faulty.store, faulty, &plan(&both(tested)), &options())?;
    trial.apply(|_| true)?;
    Ok(trial.keep(&keep())?.id)
}

fn watchdog(faulty: &FaultyHost, tested: &TestedTarget) -> Result<Vec<RollbackReport>> {
    let mut watchdog = None;
    kill_within_keep(faulty, tested, |id| watchdog = Watchdog::start(&faulty.store, faulty, id).ok())?;
    faulty.run();
    let watchdog = watchdog.expect("it was started before the fault");
    watchdog.run().map(|report| report.into_iter().collect())
}

fn recovered(faulty: &FaultyHost) -> Result<Vec<RollbackReport>> {
    faulty.run();
    // As `linerate rollback --pending` does.
    let reports = recover(&faulty.store, faulty)?;
    faulty.store.check_readable()?;
    Ok(reports)
}

/// The process ends between the setting file and the record that the set is kept.
fn kill_within_keep(faulty: &FaultyHost, tested: &TestedTarget, begun: impl FnOnce(ChangeId)) -> Result<()> {
    let mut trial = ChangeTrial::begin(&faulty.store, faulty, &plan(&both(tested)), &options())?;
    begun(trial.id());
    trial.apply(|_| true)?;
    faulty.kill_by_file();
    assert!(trial.keep(&keep()).is_err(), "it was killed");
    Ok(())
}

/// Another linerate, which waits while a trial runs, and else tries another value and rolls it back.
pub(super) fn second_trial(store: &ChangeStore, host: &FakeHost, tested: &TestedTarget) {
    if store.try_lock().expect("a directory").is_none() {
        return;
    }
    recover(store, host).expect("readable");
    let TestedTarget { target, values: [first, second, other, _] } = tested.clone();
    let tested = TestedTarget { target, values: [first, other.clone(), second, other] };
    let mut trial = ChangeTrial::begin(store, host, &plan(&both(&tested)), &options()).expect("begun");
    trial.apply(|_| true).expect("applied");
    assert!(trial.roll_back("a test").is_clean());
}

/// All changes of a trial: the tested one, and one of a setting.
fn both(tested: &TestedTarget) -> [TestedTarget; 2] {
    [tested.clone(), companion()]
}

fn plan(changes: &[TestedTarget]) -> ChangePlan {
    let change = |tested: &TestedTarget| HostChange {
        target: tested.target.clone(),
        from: None,
        to: tested.values[1].clone(),
        group: ChangeGroup::Device,
        takes_effect: EffectTiming::Now,
        reason: ChangeReason { text: "required by a test".to_owned(), ..ChangeReason::default() },
    };
    let changes = changes.iter().map(change).collect();
    ChangePlan { made_at: WallTime::from_unix(Duration::from_secs(1_795_161_279)), changes }
}

pub(super) fn options() -> TrialOptions {
    TrialOptions {
        purpose: "a test".to_owned(),
        linerate_version: "0.1.0".to_owned(),
        guard: RollbackGuard::Unguarded,
        time_limit: Duration::from_secs(3600),
    }
}

fn keep() -> KeepOptions {
    KeepOptions { file: Some(DEFAULT_FILE.into()), evidence: String::new(), warnings: Vec::new() }
}

/// A new trial of the companion alone; returns its error.
pub(super) fn refusal(store: &ChangeStore, host: &dyn HostAccess) -> Option<String> {
    let begun = ChangeTrial::begin(store, host, &plan(&[companion()]), &options());
    begun.err().map(|error| error.to_string())
}
