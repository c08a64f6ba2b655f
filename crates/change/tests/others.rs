//! Other programs, another namespace, another boot, another process, a full disk.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use linerate_change::{
    ChangeError, ChangeId, ChangeSetState, ChangeStore, ChangeTrial, RestoreOutcome, RollbackGuard, RollbackMode,
    TrialOptions, latest_in_effect, pending, recover, roll_back, unfinished,
};
use linerate_model::change::ChangePlan;
use linerate_sys::host_access::{FakeHost, HostAccess, WriteFault};

use crate::support::{FILE, Scratch, change, everything, host, keep, options, plan, state, target, value};

fn kept(store: &ChangeStore, host: &FakeHost, plan: &ChangePlan) -> ChangeId {
    let mut trial = ChangeTrial::begin(store, host, plan, &options()).expect("begun");
    trial.apply(|_| true).expect("applied");
    trial.keep(&keep()).expect("kept").id
}

#[test]
fn a_value_of_another_program_is_left_alone() {
    let (host, scratch) = (host(), Scratch::new());
    let store = scratch.store();
    let mut trial = ChangeTrial::begin(&store, &host, &plan(&[(0, 1), (1, 1)]), &options()).expect("begun");
    trial.apply(|_| true).expect("applied");
    host.foreign_write(&target(0), Some("4096 55 6291456"));
    let report = trial.roll_back("a test");
    assert_eq!((report.state, report.is_clean()), (ChangeSetState::Partly, false));
    assert_eq!(report.targets[1].result, RestoreOutcome::ChangedByOthers { now: Some("4096 55 6291456".into()) });
    assert!(report.targets[1].result.to_string().contains("another program"), "{report:?}");
    assert_eq!(host.read(&target(0)).expect("read").as_deref(), Some("4096 55 6291456"));
    assert_eq!(host.read(&target(1)).expect("read"), Some(value(&target(1), 0)));
    // Again, and nothing is different.
    let again = roll_back(&store, &host, report.id, RollbackMode::ForReal, "a test").expect("readable");
    assert!(!again.is_clean() && host.read(&target(0)).expect("read").as_deref() == Some("4096 55 6291456"));
}

/// One flipped bit anywhere in the journal of changes in effect: nothing says that all is well, nothing new begins.
#[test]
fn a_damaged_journal_is_an_error_and_blocks_new_trials() {
    let (host, scratch) = (host(), Scratch::new());
    let store = scratch.store();
    let first = kept(&store, &host, &plan(&[(0, 1)]));
    let journal = std::fs::read(scratch.journal(first.get())).expect("readable");
    let second = plan(&[(1, 1)]);
    for place in (0..journal.len()).step_by(journal.len() / 60 + 1) {
        let mut damaged = journal.clone();
        damaged[place] ^= 4;
        std::fs::write(scratch.journal(first.get()), damaged).expect("writable");
        let is_damage = |error: Option<ChangeError>| {
            matches!(error, Some(ChangeError::Damaged { .. } | ChangeError::NewerSchema { .. }))
        };
        assert!(is_damage(store.check_readable().err()), "byte {place}");
        assert!(is_damage(latest_in_effect(&store, &host).err()), "byte {place}");
        let writes = host.writes();
        assert!(is_damage(ChangeTrial::begin(&store, &host, &second, &options()).err()), "byte {place}");
        assert_eq!((host.writes(), store.ids().expect("listed").len()), (writes, 1));
    }
    std::fs::write(scratch.journal(first.get()), &journal).expect("writable");
    store.check_readable().expect("readable again");
    assert!(roll_back(&store, &host, first, RollbackMode::ForReal, "a test").expect("readable").is_clean());
}

/// Root that is pointed at another user's directory does not carry out that user's journals.
#[test]
#[ignore = "needs root: a journal that belongs to another user"]
fn a_journal_of_another_user_is_not_carried_out() {
    let (host, scratch) = (host(), Scratch::new());
    let store = scratch.store();
    let id = kept(&store, &host, &plan(&[(0, 1)]));
    let journal = scratch.journal(id.get());
    let directory = journal.parent().expect("a directory").to_owned();
    let is_foreign = |error: Option<ChangeError>| matches!(error, Some(ChangeError::Foreign { owner: 4242, .. }));
    for path in [&journal, &directory] {
        std::os::unix::fs::chown(path, Some(4242), None).expect("root may");
        let writes = host.writes();
        assert!(is_foreign(store.check_readable().err()), "{path:?}");
        assert!(is_foreign(roll_back(&store, &host, id, RollbackMode::ForReal, "a test").err()), "{path:?}");
        assert!(is_foreign(ChangeTrial::begin(&store, &host, &plan(&[(1, 1)]), &options()).err()), "{path:?}");
        assert_eq!(host.writes(), writes);
        std::os::unix::fs::chown(path, Some(0), None).expect("root may");
    }
    assert!(roll_back(&store, &host, id, RollbackMode::ForReal, "a test").expect("readable").is_clean());
}

#[test]
fn a_plan_for_another_host_is_not_carried_out() {
    let (host, scratch) = (host(), Scratch::new());
    let store = scratch.store();
    let mut stale = plan(&[(0, 1)]);
    stale.changes[0].from = Some("4096 77 6291456".into());
    let error = ChangeTrial::begin(&store, &host, &stale, &options()).err().expect("stale");
    assert!(matches!(error, ChangeError::Stale { .. }), "{error}");
    let mut absent = plan(&[(0, 1)]);
    absent.changes[0].target = linerate_model::change::ChangeTarget::Setting { key: "net.no.such".into() };
    let error = ChangeTrial::begin(&store, &host, &absent, &options()).err().expect("absent");
    assert!(matches!(error, ChangeError::MissingTarget { .. }), "{error}");
    let twice = ChangePlan { changes: vec![change(0, 1), change(0, 2)], ..plan(&[]) };
    assert!(matches!(ChangeTrial::begin(&store, &host, &twice, &options()), Err(ChangeError::Twice { .. })));
    assert_eq!((host.writes(), store.list().expect("readable").len()), (0, 0), "nothing was begun");
    // Between beginning and applying, too.
    let mut trial = ChangeTrial::begin(&store, &host, &plan(&[(0, 1)]), &options()).expect("begun");
    host.foreign_write(&target(0), Some("4096 55 6291456"));
    assert!(matches!(trial.apply(|_| true), Err(ChangeError::Stale { .. })));
}

#[test]
fn a_removed_interface_removes_its_settings() {
    let (host, scratch) = (host().with_fault(5, WriteFault::Vanishes("eth0".into())), Scratch::new());
    let store = scratch.store();
    let mut trial = ChangeTrial::begin(&store, &host, &everything(), &options()).expect("begun");
    let error = trial.apply(|_| true).expect_err("gone").to_string();
    assert!(error.contains("No such device"), "{error}");
    let report = trial.roll_back("a test");
    assert!(report.is_clean(), "{report:?}");
    assert!((0..4).all(|number| host.values()[&target(number)] == value(&target(number), 0)));
}

#[test]
fn one_trial_at_a_time_and_none_over_an_interrupted_one() {
    let (host, scratch) = (host(), Scratch::new());
    let store = scratch.store();
    let trial = ChangeTrial::begin(&store, &host, &everything(), &options()).expect("begun");
    // A watchdog that looks whether anything is left to do holds the lock for a moment.
    let asked = std::time::Instant::now();
    assert!(matches!(ChangeTrial::begin(&store, &host, &everything(), &options()), Err(ChangeError::Busy)));
    assert!(asked.elapsed() >= Duration::from_secs(1));
    assert!(matches!(roll_back(&store, &host, trial.id(), RollbackMode::ForReal, ""), Err(ChangeError::Busy)));
    let bytes = std::fs::read(scratch.journal(1)).expect("there");
    drop(trial);
    let after_a_kill = Scratch::with_journal(&bytes);
    let store = after_a_kill.store();
    assert_eq!(pending(&store, &host).expect("readable").len(), 1);
    assert!(matches!(ChangeTrial::begin(&store, &host, &everything(), &options()), Err(ChangeError::Pending(_))));
    assert_eq!(recover(&store, &host).expect("readable").len(), 1);
    drop(ChangeTrial::begin(&store, &host, &everything(), &options()).expect("begun"));
}

#[test]
fn kept_and_rolled_back_after_a_boot() {
    let (host, scratch) = (host(), Scratch::new());
    let (store, before) = (scratch.store(), state(&host));
    let id = kept(&store, &host, &everything());
    let text = host.files()[Path::new(FILE)].clone();
    for number in 0..4 {
        let line = format!("net.ipv4.key{number} = {}\n", value(&target(number), 7));
        assert!(text.contains(&line) && text.contains("required by a test"), "{text}");
    }
    host.reboot();
    // As the file would set them.
    for number in 0..4 {
        host.foreign_write(&target(number), Some(&value(&target(number), 7)));
    }
    let here = host.identity().expect("in memory");
    assert_eq!(store.get(id).expect("readable").state(&here), ChangeSetState::Kept);
    let rehearsal = roll_back(&store, &host, id, RollbackMode::DryRun, "").expect("readable");
    assert!(rehearsal.is_clean() && host.files().len() == 1 && rehearsal.state == ChangeSetState::Kept);
    let report = roll_back(&store, &host, id, RollbackMode::ForReal, "a test").expect("readable");
    assert!(report.is_clean() && report.state == ChangeSetState::RolledBack, "{report:?}");
    let lost = report.targets.iter().filter(|target| target.result == RestoreOutcome::LostAtReboot).count();
    assert_eq!((lost, state(&host)), (4, before));
}

#[test]
fn loaded_modules_are_named() {
    let value_of_bbr = value(&target(0), 1);
    let (host, scratch) = (host().with_module(&value_of_bbr, "tcp_bbr"), Scratch::new());
    let store = scratch.store();
    let names_it = |notes: &[String]| notes.iter().any(|note| note.contains("`modprobe -r tcp_bbr`"));
    let mut trial = ChangeTrial::begin(&store, &host, &plan(&[(0, 1), (1, 1)]), &options()).expect("begun");
    trial.apply(|_| true).expect("applied");
    let done = trial.keep(&keep()).expect("kept");
    assert!(names_it(&done.warnings), "{done:?}");
    let report = roll_back(&store, &host, done.id, RollbackMode::ForReal, "a test").expect("readable");
    assert!(report.is_clean() && names_it(&report.notes), "{report:?}");
    // Loaded before: not by this trial.
    let again = kept(&store, &host, &plan(&[(0, 1)]));
    let report = roll_back(&store, &host, again, RollbackMode::ForReal, "a test").expect("readable");
    assert!(report.is_clean() && report.notes.is_empty(), "{report:?}");
}

/// The kernel refuses the writes of these numbers.
fn refusing(writes: impl IntoIterator<Item = usize>) -> FakeHost {
    writes.into_iter().fold(host(), |host, write| host.with_fault(write, WriteFault::Refused(16)))
}

#[test]
fn a_failed_rollback_is_listed_and_repeated() {
    let (host, scratch) = (refusing(1..4), Scratch::new());
    let (store, before) = (scratch.store(), state(&host));
    let mut trial = ChangeTrial::begin(&store, &host, &plan(&[(0, 1)]), &options()).expect("begun");
    trial.apply(|_| true).expect("applied");
    let report = trial.roll_back("a test");
    assert_eq!((report.state, report.is_clean(), host.writes()), (ChangeSetState::Partly, false, 4), "{report:?}");
    let listed: Vec<ChangeId> = unfinished(&store, &host).expect("readable").iter().map(|set| set.id).collect();
    assert_eq!((listed, pending(&store, &host).expect("readable").len()), (vec![report.id], 0));
    assert_eq!(latest_in_effect(&store, &host).expect("this one").id, report.id);
    let again = recover(&store, &host).expect("readable");
    assert_eq!((again.len(), again[0].state, state(&host)), (1, ChangeSetState::RolledBack, before), "{again:?}");
    assert!(recover(&store, &host).expect("readable").is_empty());
    assert!(matches!(latest_in_effect(&store, &host), Err(ChangeError::NothingInForce)));
}

#[test]
fn the_value_of_another_program_is_not_unfinished() {
    let (host, scratch) = (host(), Scratch::new());
    let store = scratch.store();
    let mut trial = ChangeTrial::begin(&store, &host, &plan(&[(0, 1)]), &options()).expect("begun");
    trial.apply(|_| true).expect("applied");
    host.foreign_write(&target(0), Some("4096 55 6291456"));
    assert_eq!(trial.roll_back("a test").state, ChangeSetState::Partly);
    assert!(unfinished(&store, &host).expect("readable").is_empty());
    assert!(matches!(latest_in_effect(&store, &host), Err(ChangeError::NothingInForce)));
}

/// Neither what could not be rolled back nor the value of another program is made persistent.
#[test]
fn only_wanted_changes_are_kept() {
    let (host, scratch) = (refusing(3..6), Scratch::new());
    let store = scratch.store();
    let mut trial = ChangeTrial::begin(&store, &host, &plan(&[(0, 1), (1, 1), (2, 1)]), &options()).expect("begun");
    trial.apply(|_| true).expect("applied");
    let left = trial.roll_back_selected(|change| change.target == target(0));
    assert!(matches!(left[0].result, RestoreOutcome::Failed(_)), "{left:?}");
    host.foreign_write(&target(1), Some("4096 55 6291456"));
    trial.roll_back_selected(|change| change.target == target(1));
    let done = trial.keep(&keep()).expect("kept");
    let text = host.files()[Path::new(FILE)].clone();
    assert!(text.contains("key2") && !text.contains("key0") && !text.contains("key1"), "{text}");
    assert_eq!(done.lasting, [target(2)]);
    assert!(done.warnings.iter().any(|warning| warning.starts_with("net.ipv4.key0: not restored: ")), "{done:?}");
}

#[test]
fn a_trial_whose_record_is_gone_is_rolled_back() {
    for is_moved in [false, true] {
        let (host, scratch) = (host(), Scratch::new());
        let (store, before) = (scratch.store(), state(&host));
        let mut trial = ChangeTrial::begin(&store, &host, &everything(), &options()).expect("begun");
        trial.apply(|_| true).expect("applied");
        if is_moved {
            std::fs::rename(scratch.path().join("changes"), scratch.path().join("elsewhere")).expect("ours");
        } else {
            std::fs::remove_dir_all(scratch.path().join("changes")).expect("ours");
        }
        let error = trial.keep(&keep()).expect_err("nothing could roll it back later").to_string();
        assert!(error.starts_with("writing the journal ") && error.contains("No such file"), "{error}");
        assert_eq!(state(&host), before);
    }
}

#[test]
fn stacked_sets_and_lines_of_users() {
    let (host, scratch) = (host(), Scratch::new());
    let store = scratch.store();
    host.foreign_write_file(Path::new(FILE), "# mine\nvm.swappiness = 10\n");
    let before = state(&host);
    let first = kept(&store, &host, &plan(&[(0, 1), (1, 1)]));
    let second = kept(&store, &host, &plan(&[(1, 2), (2, 2)]));
    let text = host.files()[Path::new(FILE)].clone();
    assert!(text.contains("vm.swappiness") && text.contains("key0") && text.matches("key1").count() == 1, "{text}");
    // Key 1 belongs to the second now.
    let report = roll_back(&store, &host, first, RollbackMode::ForReal, "a test").expect("readable");
    assert_eq!(report.state, ChangeSetState::Partly);
    assert!(!host.files()[Path::new(FILE)].contains("key0"));
    let report = roll_back(&store, &host, second, RollbackMode::ForReal, "a test").expect("readable");
    assert!(report.is_clean(), "{report:?}");
    let report = roll_back(&store, &host, first, RollbackMode::ForReal, "a test").expect("readable");
    assert!(report.targets.iter().all(|target| target.result.is_restored()), "{report:?}");
    assert_eq!(host.values(), before.0);
    assert!(host.files()[Path::new(FILE)].contains("# mine\nvm.swappiness = 10"));
}

#[test]
fn only_in_the_namespace_of_the_changes() {
    let (host, scratch) = (host(), Scratch::new());
    let store = scratch.store();
    let id = kept(&store, &host, &everything());
    host.enter_namespace(2, 2);
    let error = roll_back(&store, &host, id, RollbackMode::ForReal, "a test").expect_err("elsewhere").to_string();
    assert!(error.contains("nsenter --net=/run/netns/1 linerate rollback 1"), "{error}");
}

/// The kernel gives the number of a removed namespace to a new one, whose values no change set has written.
#[test]
fn a_namespace_with_the_number_of_an_earlier_one_is_another() {
    let (host, scratch) = (host(), Scratch::new());
    let store = scratch.store();
    let id = kept(&store, &host, &plan(&[(0, 1), (7, 1)]));
    host.enter_namespace(1, 2);
    let (before, writes) = (host.values(), host.writes());
    let report = roll_back(&store, &host, id, RollbackMode::ForReal, "a test").expect("readable");
    assert_eq!(report.targets[1].result, RestoreOutcome::Gone, "{report:?}");
    assert_eq!(report.targets[0].result, RestoreOutcome::Restored, "a processor belongs to no namespace");
    assert_eq!(host.values()[&target(0)], before[&target(0)], "the setting of the other namespace");
    assert!(report.is_clean() && host.writes() > writes, "{report:?}");
}

#[test]
fn confirmed_from_elsewhere_is_in_effect_until_the_next_boot() {
    let (host, scratch) = (host(), Scratch::new());
    let store = scratch.store();
    let mut trial = ChangeTrial::begin(&store, &host, &everything(), &options()).expect("begun");
    trial.apply(|_| true).expect("applied");
    assert!(!trial.is_confirmed());
    store.confirm(trial.id()).expect("there");
    assert!(trial.is_confirmed() && store.confirm(ChangeId::new(99)).is_err());
    let here = host.identity().expect("in memory");
    assert_eq!(store.get(trial.id()).expect("readable").state(&here), ChangeSetState::UntilReboot);
    assert!(pending(&store, &host).expect("readable").is_empty());
}

#[test]
fn an_expired_time_limit_is_an_error() {
    let (host, scratch) = (host(), Scratch::new());
    let store = scratch.store();
    let options = TrialOptions { time_limit: Duration::ZERO, ..options() };
    // The time limit may expire before the trial has begun.
    match ChangeTrial::begin(&store, &host, &everything(), &options) {
        Ok(mut trial) => assert!(matches!(trial.apply(|_| true), Err(ChangeError::Expired))),
        Err(error) => assert!(matches!(error, ChangeError::Expired), "{error}"),
    }
    assert_eq!(host.writes(), 0);
}

#[test]
fn without_a_watchdog_nothing_is_written() {
    let (host, scratch) = (host(), Scratch::new());
    let store = scratch.store();
    let options = TrialOptions { guard: RollbackGuard::Program("/no/such/program".into()), ..options() };
    let error = ChangeTrial::begin(&store, &host, &everything(), &options).err().expect("no program").to_string();
    assert!(error.starts_with("nothing was changed") && error.contains("/no/such/program"), "{error}");
    assert_eq!(host.writes(), 0);
}

#[test]
fn a_file_that_cannot_be_written_rolls_everything_back() {
    let (host, scratch) = (host().with_fault(8, WriteFault::Refused(30)), Scratch::new());
    let (store, before) = (scratch.store(), state(&host));
    let mut trial = ChangeTrial::begin(&store, &host, &everything(), &options()).expect("begun");
    trial.apply(|_| true).expect("applied");
    let error = trial.keep(&keep()).expect_err("read-only").to_string();
    assert!(error.contains("Read-only file system"), "{error}");
    assert_eq!(state(&host), before);
}

/// Runs only the test of that name, in a copy of this test program with a small file system of its own.
fn on_a_small_disk(test: &str, blocks: &str) {
    let scratch = Scratch::new();
    let script = format!(
        "mount -t tmpfs -o size={blocks} none {} && exec \"$0\" --exact --ignored others::{test}",
        scratch.path().display()
    );
    let program = std::env::current_exe().expect("procfs");
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", &script]).arg(program);
    let output = command.env("CHANGE_PLACE", scratch.path()).output().expect("unshare runs");
    let output_text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && output_text.contains("1 passed"), "{output_text}");
}

#[test]
fn on_a_full_disk_nothing_is_written_to_the_host() {
    on_a_small_disk("child_on_a_full_disk", "64k");
}

#[test]
#[ignore = "child of the test above"]
fn child_on_a_full_disk() {
    let Some(place) = std::env::var_os("CHANGE_PLACE") else { return };
    let store = ChangeStore::at(Path::new(&place));
    let (host, ballast) = (host(), Path::new(&place).join("ballast"));
    let before = state(&host);
    let (mut refused, mut carried_out) = (0, 0);
    // From no free space to enough, one page more each time.
    for pages in (0..=15_usize).rev() {
        let _ = std::fs::remove_dir_all(Path::new(&place).join("changes"));
        let _ = std::fs::remove_file(&ballast);
        std::fs::write(&ballast, vec![1; pages * 4096]).expect("room for the ballast");
        let trial = ChangeTrial::begin(&store, &host, &everything(), &options());
        let applied = trial.and_then(|mut trial| {
            for _ in 0..40 {
                trial.apply(|_| true)?;
                trial.roll_back_selected(|_| true);
            }
            Ok(())
        });
        match applied {
            Ok(()) => carried_out += 1,
            Err(error) => {
                assert!(error.to_string().contains("the disk is full: free some space"), "{error}");
                refused += 1;
            }
        }
        assert_eq!(state(&host), before, "{pages} pages taken");
    }
    assert!(refused > 1, "{refused} refused, {carried_out} carried out");
}
