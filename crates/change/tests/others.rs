//! Somebody else, another namespace, another boot, another process, no room.

mod support;

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use linerate_change::{
    Back, ChangeError, ChangeId, Guard, Mode, Options, State, Store, Trial, pending, recover, roll_back,
};
use linerate_model::change::Plan;
use linerate_sys::host_access::{FakeHost, Fault, Host};
use support::{FILE, Scratch, change, everything, host, keep, options, plan, state, target, value};

fn kept(store: &Store, host: &FakeHost, plan: &Plan) -> ChangeId {
    let mut trial = Trial::begin(store, host, plan, &options()).expect("begun");
    trial.apply(|_| true).expect("applied");
    trial.keep(&keep()).expect("kept").id
}

#[test]
fn what_somebody_else_has_set_is_left_alone() {
    let (host, scratch) = (host(), Scratch::new());
    let store = scratch.store();
    let mut trial = Trial::begin(&store, &host, &plan(&[(0, 1), (1, 1)]), &options()).expect("begun");
    trial.apply(|_| true).expect("applied");
    host.others_write(&target(0), Some("4096 55 6291456"));
    let report = trial.roll_back("a test");
    assert_eq!((report.state, report.is_clean()), (State::Partly, false));
    assert_eq!(report.targets[1].result, Back::ChangedByOthers { now: Some("4096 55 6291456".into()) });
    assert!(report.targets[1].result.to_string().contains("somebody else"), "{report:?}");
    assert_eq!(host.read(&target(0)).expect("read").as_deref(), Some("4096 55 6291456"));
    assert_eq!(host.read(&target(1)).expect("read"), Some(value(&target(1), 0)));
    // Again, and nothing is different.
    let again = roll_back(&store, &host, report.id, Mode::ForReal, "a test").expect("readable");
    assert!(!again.is_clean() && host.read(&target(0)).expect("read").as_deref() == Some("4096 55 6291456"));
}

#[test]
fn a_plan_for_another_host_is_not_carried_out() {
    let (host, scratch) = (host(), Scratch::new());
    let store = scratch.store();
    let mut stale = plan(&[(0, 1)]);
    stale.changes[0].from = Some("4096 77 6291456".into());
    let error = Trial::begin(&store, &host, &stale, &options()).err().expect("stale");
    assert!(matches!(error, ChangeError::Stale { .. }), "{error}");
    let mut absent = plan(&[(0, 1)]);
    absent.changes[0].target = linerate_model::change::Target::Setting { key: "net.no.such".into() };
    let error = Trial::begin(&store, &host, &absent, &options()).err().expect("absent");
    assert!(matches!(error, ChangeError::Absent { .. }), "{error}");
    let twice = Plan { changes: vec![change(0, 1), change(0, 2)], ..plan(&[]) };
    assert!(matches!(Trial::begin(&store, &host, &twice, &options()), Err(ChangeError::Twice { .. })));
    assert_eq!((host.writes(), store.list().expect("readable").len()), (0, 0), "nothing was begun");
    // Between beginning and applying, too.
    let mut trial = Trial::begin(&store, &host, &plan(&[(0, 1)]), &options()).expect("begun");
    host.others_write(&target(0), Some("4096 55 6291456"));
    assert!(matches!(trial.apply(|_| true), Err(ChangeError::Stale { .. })));
}

#[test]
fn an_interface_that_vanishes_takes_its_settings_along() {
    let (host, scratch) = (host().with_fault(5, Fault::Vanishes("eth0".into())), Scratch::new());
    let store = scratch.store();
    let mut trial = Trial::begin(&store, &host, &everything(), &options()).expect("begun");
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
    let trial = Trial::begin(&store, &host, &everything(), &options()).expect("begun");
    assert!(matches!(Trial::begin(&store, &host, &everything(), &options()), Err(ChangeError::Busy)));
    assert!(matches!(roll_back(&store, &host, trial.id(), Mode::ForReal, ""), Err(ChangeError::Busy)));
    let bytes = std::fs::read(scratch.journal(1)).expect("there");
    drop(trial);
    let after_a_kill = Scratch::with_journal(&bytes);
    let store = after_a_kill.store();
    assert_eq!(pending(&store, &host).expect("readable").len(), 1);
    assert!(matches!(Trial::begin(&store, &host, &everything(), &options()), Err(ChangeError::Pending(_))));
    assert_eq!(recover(&store, &host).expect("readable").len(), 1);
    drop(Trial::begin(&store, &host, &everything(), &options()).expect("begun"));
}

#[test]
fn kept_and_taken_back_after_a_boot() {
    let (host, scratch) = (host(), Scratch::new());
    let (store, before) = (scratch.store(), state(&host));
    let id = kept(&store, &host, &everything());
    let text = host.files()[Path::new(FILE)].clone();
    for number in 0..4 {
        let line = format!("net.ipv4.key{number} = {}\n", value(&target(number), 7));
        assert!(text.contains(&line) && text.contains("a test says so"), "{text}");
    }
    host.reboot();
    // As the file would have it.
    for number in 0..4 {
        host.others_write(&target(number), Some(&value(&target(number), 7)));
    }
    let here = host.identity().expect("in memory");
    assert_eq!(store.get(id).expect("readable").state(&here), State::Kept);
    let rehearsal = roll_back(&store, &host, id, Mode::DryRun, "").expect("readable");
    assert!(rehearsal.is_clean() && host.files().len() == 1 && rehearsal.state == State::Kept);
    let report = roll_back(&store, &host, id, Mode::ForReal, "a test").expect("readable");
    assert!(report.is_clean() && report.state == State::RolledBack, "{report:?}");
    let lost = report.targets.iter().filter(|target| target.result == Back::LostAtReboot).count();
    assert_eq!((lost, state(&host)), (4, before));
}

#[test]
fn sets_upon_each_other_and_lines_of_people() {
    let (host, scratch) = (host(), Scratch::new());
    let store = scratch.store();
    host.others_write_file(Path::new(FILE), "# mine\nvm.swappiness = 10\n");
    let before = state(&host);
    let first = kept(&store, &host, &plan(&[(0, 1), (1, 1)]));
    let second = kept(&store, &host, &plan(&[(1, 2), (2, 2)]));
    let text = host.files()[Path::new(FILE)].clone();
    assert!(text.contains("vm.swappiness") && text.contains("key0") && text.matches("key1").count() == 1, "{text}");
    // Key 1 belongs to the second now.
    let report = roll_back(&store, &host, first, Mode::ForReal, "a test").expect("readable");
    assert_eq!(report.state, State::Partly);
    assert!(!host.files()[Path::new(FILE)].contains("key0"));
    let report = roll_back(&store, &host, second, Mode::ForReal, "a test").expect("readable");
    assert!(report.is_clean(), "{report:?}");
    let report = roll_back(&store, &host, first, Mode::ForReal, "a test").expect("readable");
    assert!(report.targets.iter().all(|target| target.result.is_back()), "{report:?}");
    assert_eq!(host.values(), before.0);
    assert!(host.files()[Path::new(FILE)].contains("# mine\nvm.swappiness = 10"));
}

#[test]
fn only_where_they_were_made() {
    let (host, scratch) = (host(), Scratch::new());
    let store = scratch.store();
    let id = kept(&store, &host, &everything());
    host.enter_namespace(2);
    let error = roll_back(&store, &host, id, Mode::ForReal, "a test").expect_err("elsewhere").to_string();
    assert!(error.contains("nsenter --net=/run/netns/1 linerate rollback 1"), "{error}");
}

#[test]
fn confirmed_from_elsewhere_holds_until_the_next_boot() {
    let (host, scratch) = (host(), Scratch::new());
    let store = scratch.store();
    let mut trial = Trial::begin(&store, &host, &everything(), &options()).expect("begun");
    trial.apply(|_| true).expect("applied");
    assert!(!trial.is_confirmed());
    store.confirm(trial.id()).expect("there");
    assert!(trial.is_confirmed() && store.confirm(ChangeId::new(99)).is_err());
    let here = host.identity().expect("in memory");
    assert_eq!(store.get(trial.id()).expect("readable").state(&here), State::UntilReboot);
    assert!(pending(&store, &host).expect("readable").is_empty());
}

#[test]
fn time_is_up() {
    let (host, scratch) = (host(), Scratch::new());
    let store = scratch.store();
    let options = Options { time_limit: Duration::ZERO, ..options() };
    // The time may be over while it begins, already.
    match Trial::begin(&store, &host, &everything(), &options) {
        Ok(mut trial) => assert!(matches!(trial.apply(|_| true), Err(ChangeError::Expired))),
        Err(error) => assert!(matches!(error, ChangeError::Expired), "{error}"),
    }
    assert_eq!(host.writes(), 0);
}

#[test]
fn without_a_watchdog_nothing_is_written() {
    let (host, scratch) = (host(), Scratch::new());
    let store = scratch.store();
    let options = Options { guard: Guard::Program("/no/such/program".into()), ..options() };
    let error = Trial::begin(&store, &host, &everything(), &options).err().expect("no program").to_string();
    assert!(error.starts_with("nothing was changed") && error.contains("/no/such/program"), "{error}");
    assert_eq!(host.writes(), 0);
}

#[test]
fn a_file_that_cannot_be_written_takes_everything_back() {
    let (host, scratch) = (host().with_fault(8, Fault::Refused(30)), Scratch::new());
    let (store, before) = (scratch.store(), state(&host));
    let mut trial = Trial::begin(&store, &host, &everything(), &options()).expect("begun");
    trial.apply(|_| true).expect("applied");
    let error = trial.keep(&keep()).expect_err("read-only").to_string();
    assert!(error.contains("Read-only file system"), "{error}");
    assert_eq!(state(&host), before);
}

/// A copy of this test program with a small disk of its own, where only the test of that name runs.
fn on_a_small_disk(test: &str, blocks: &str) {
    let scratch = Scratch::new();
    let script = format!(
        "mount -t tmpfs -o size={blocks} none {} && exec \"$0\" --exact --ignored {test}",
        scratch.path().display()
    );
    let program = std::env::current_exe().expect("procfs");
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", &script]).arg(program);
    let output = command.env("CHANGE_PLACE", scratch.path()).output().expect("unshare runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

#[test]
fn on_a_full_disk_nothing_is_written_to_the_host() {
    on_a_small_disk("child_on_a_full_disk", "64k");
}

#[test]
#[ignore = "a process of the test above"]
fn child_on_a_full_disk() {
    let Some(place) = std::env::var_os("CHANGE_PLACE") else { return };
    let store = Store::at(Path::new(&place));
    let (host, ballast) = (host(), Path::new(&place).join("ballast"));
    let before = state(&host);
    let (mut refused, mut carried_out) = (0, 0);
    // From no room at all to enough, a page more each time.
    for pages in (0..=15_usize).rev() {
        let _ = std::fs::remove_dir_all(Path::new(&place).join("changes"));
        let _ = std::fs::remove_file(&ballast);
        std::fs::write(&ballast, vec![1; pages * 4096]).expect("room for the ballast");
        let trial = Trial::begin(&store, &host, &everything(), &options());
        let applied = trial.and_then(|mut trial| {
            for _ in 0..40 {
                trial.apply(|_| true)?;
                trial.take_back(|_| true);
            }
            Ok(())
        });
        match applied {
            Ok(()) => carried_out += 1,
            Err(error) => {
                assert!(error.to_string().contains("the disk is full: make room"), "{error}");
                refused += 1;
            }
        }
        assert_eq!(state(&host), before, "{pages} pages taken");
    }
    assert!(refused > 1, "{refused} refused, {carried_out} carried out");
}
