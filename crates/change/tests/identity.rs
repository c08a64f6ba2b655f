//! Applying and rolling back restores the host: over random plans, in random steps, with random faults.

use std::collections::BTreeMap;

use linerate_change::{ChangeSetState, ChangeTrial, RestoreOutcome, RollbackMode, WriteOutcome, roll_back};
use linerate_model::change::{ChangeGroup, ChangeTarget};
use linerate_sys::host_access::{FakeHost, HostAccess, WriteFault};
use proptest::prelude::*;

use crate::support::{Scratch, TARGETS, everything, host, keep, options, plan, state, target, value};

#[derive(Clone, Copy, Debug)]
enum TrialStep {
    Apply(ChangeGroup),
    TakeBack(ChangeGroup),
    ApplyAll,
    /// Other values for all targets of the plan, in any state of the earlier ones.
    PlanAgain(u8),
}

fn steps() -> impl Strategy<Value = Vec<TrialStep>> {
    let group = prop_oneof![Just(ChangeGroup::Buffers), Just(ChangeGroup::Pacing)];
    let step = prop_oneof![
        group.clone().prop_map(TrialStep::Apply),
        group.prop_map(TrialStep::TakeBack),
        Just(TrialStep::ApplyAll),
        (0_u8..5).prop_map(TrialStep::PlanAgain)
    ];
    proptest::collection::vec(step, 1..6)
}

fn changes() -> impl Strategy<Value = Vec<(usize, u8)>> {
    let all: Vec<usize> = (0..TARGETS).collect();
    proptest::sample::subsequence(all, 1..=TARGETS)
        .prop_shuffle()
        .prop_flat_map(|numbers| {
            let count = numbers.len();
            (Just(numbers), proptest::collection::vec(0_u8..5, count))
        })
        .prop_map(|(numbers, values)| numbers.into_iter().zip(values).collect())
}

fn faults() -> impl Strategy<Value = Vec<(usize, WriteFault)>> {
    let fault = (0..TARGETS, 5_u8..9).prop_flat_map(|(number, other)| {
        let other = value(&target(number), other);
        prop_oneof![
            prop_oneof![Just(1), Just(13), Just(22), Just(30)].prop_map(WriteFault::Refused),
            Just(WriteFault::Clamped(other.clone())),
            Just(WriteFault::WrittenAndRefused(16)),
            Just(WriteFault::OthersWrote(target(number), other)),
            Just(WriteFault::Vanishes("eth0".to_owned())),
        ]
    });
    proptest::collection::vec((0_usize..30, fault), 0..3)
}

/// Values that must be as before: those that no other program has written, of targets that still exist.
fn expected(
    before: &BTreeMap<ChangeTarget, String>,
    faults: &[(usize, WriteFault)],
    writes: usize,
) -> BTreeMap<ChangeTarget, Option<String>> {
    let happened = || faults.iter().filter(|(write, _)| *write < writes).map(|(_, fault)| fault);
    let others: Vec<&ChangeTarget> = happened()
        .filter_map(|fault| if let WriteFault::OthersWrote(target, _) = fault { Some(target) } else { None })
        .collect();
    let vanished = happened().any(|fault| matches!(fault, WriteFault::Vanishes(_)));
    let all = (0..TARGETS).map(target);
    let lasts = |target: &ChangeTarget| target.interfaces([before[target].as_str()]).is_empty();
    all.filter(|target| !others.contains(&target) && (!vanished || lasts(target)))
        .map(|target| (target.clone(), before.get(&target).cloned()))
        .collect()
}

fn run_trial(host: &FakeHost, scratch: &Scratch, changes: &[(usize, u8)], steps: &[TrialStep], ending: u8) {
    let store = scratch.store();
    let Ok(mut trial) = ChangeTrial::begin(&store, host, &plan(changes), &options()) else { return };
    for step in steps {
        match step {
            TrialStep::Apply(group) => drop(trial.apply(|change| change.group == *group)),
            TrialStep::TakeBack(group) => drop(trial.roll_back_selected(|change| change.group == *group)),
            TrialStep::ApplyAll => drop(trial.apply(|_| true)),
            TrialStep::PlanAgain(to) => {
                let others: Vec<(usize, u8)> = changes.iter().map(|(number, _)| (*number, *to)).collect();
                drop(trial.extend(&plan(&others)));
            }
        }
    }
    let id = trial.id();
    match ending {
        0 => drop(trial),
        1 => drop(trial.roll_back("a test")),
        _ => {
            // Kept, and then rolled back; or not kept, and rolled back at once.
            let _ = trial.keep(&keep());
            drop(roll_back(&store, host, id, RollbackMode::ForReal, "a test").expect("the lock is free"));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]
    #[test]
    fn applied_and_rolled_back_is_as_before(
        changes in changes(),
        steps in steps(),
        faults in faults(),
        ending in 0_u8..3,
    ) {
        let mut host = host();
        let before = host.values();
        for (write, fault) in &faults {
            host = host.with_fault(*write, fault.clone());
        }
        let scratch = Scratch::new();
        run_trial(&host, &scratch, &changes, &steps, ending);
        let after = host.values();
        for (target, value) in expected(&before, &faults, host.writes()) {
            prop_assert_eq!(after.get(&target).cloned(), value, "{}", target);
        }
        let files_fail = faults.iter().any(|(_, fault)| matches!(fault, WriteFault::Refused(_) | WriteFault::WrittenAndRefused(_)));
        prop_assert!(host.files().is_empty() || files_fail, "{:?}", host.files());
    }
}

#[test]
fn each_write_may_be_refused() {
    for write in 0..TARGETS {
        let host = host().with_fault(write, WriteFault::Refused(22));
        let before = state(&host);
        let scratch = Scratch::new();
        let store = scratch.store();
        let mut trial = ChangeTrial::begin(&store, &host, &everything(), &options()).expect("begun");
        let error = trial.apply(|_| true).expect_err("refused").to_string();
        assert!(error.contains("Invalid argument"), "{error}");
        assert_eq!(state(&host), before, "all or none");
        let report = trial.roll_back("a test");
        assert!(report.is_clean() && report.state == ChangeSetState::RolledBack, "{report:?}");
    }
}

#[test]
fn a_present_value_is_not_written() {
    let host = host();
    let scratch = Scratch::new();
    let store = scratch.store();
    let mut trial = ChangeTrial::begin(&store, &host, &plan(&[(0, 0), (1, 3)]), &options()).expect("begun");
    let outcomes = trial.apply(|_| true).expect("applied");
    assert_eq!(
        outcomes.iter().map(|outcome| outcome.written).collect::<Vec<_>>(),
        [WriteOutcome::NoNeed, WriteOutcome::Written]
    );
    assert_eq!(host.writes(), 1);
    let report = trial.roll_back("a test");
    let results: Vec<&RestoreOutcome> = report.targets.iter().map(|target| &target.result).collect();
    assert_eq!(results, [&RestoreOutcome::Restored, &RestoreOutcome::NeverWritten]);
}

#[test]
fn a_clamped_value_is_reported_and_rolled_back() {
    let host = host().with_fault(0, WriteFault::Clamped("4096 99 6291456".into()));
    let before = state(&host);
    let scratch = Scratch::new();
    let store = scratch.store();
    let mut trial = ChangeTrial::begin(&store, &host, &plan(&[(0, 5)]), &options()).expect("begun");
    let outcomes = trial.apply(|_| true).expect("applied");
    assert_eq!((outcomes[0].written, outcomes[0].now.as_deref()), (WriteOutcome::Adjusted, Some("4096 99 6291456")));
    assert!(trial.set().items[0].message.contains("to \"4096 99 6291456\""), "{:?}", trial.set().items[0]);
    drop(trial);
    assert_eq!(state(&host), before);
}

#[test]
fn an_ignored_value_is_an_error() {
    let host = host().with_fault(0, WriteFault::Clamped(value(&target(0), 0)));
    let scratch = Scratch::new();
    let store = scratch.store();
    let mut trial = ChangeTrial::begin(&store, &host, &plan(&[(0, 5)]), &options()).expect("begun");
    let error = trial.apply(|_| true).expect_err("ignored").to_string();
    assert!(error.contains("without an error"), "{error}");
}

#[test]
fn nothing_is_planned_on_a_change_in_effect() {
    let host = host();
    let before = state(&host);
    let scratch = Scratch::new();
    let store = scratch.store();
    let mut trial = ChangeTrial::begin(&store, &host, &plan(&[(0, 1)]), &options()).expect("begun");
    trial.apply(|_| true).expect("applied");
    let error = trial.extend(&plan(&[(6, 2), (0, 2)])).expect_err("in effect").to_string();
    assert!(error.starts_with("net.ipv4.key0 ") && error.contains("in effect"), "{error}");
    trial.apply(|_| true).expect("applied, with those before the refused one");
    assert_eq!(host.read(&target(0)).expect("read"), Some(value(&target(0), 1)));
    assert!(trial.roll_back("a test").is_clean());
    assert_eq!(state(&host), before);
}

#[test]
fn a_later_plan_replaces_changes_that_are_not_in_effect() {
    let host = host();
    let before = state(&host);
    let scratch = Scratch::new();
    let store = scratch.store();
    let mut trial = ChangeTrial::begin(&store, &host, &plan(&[(0, 1), (1, 1), (2, 1)]), &options()).expect("begun");
    trial.apply(|change| change.group == ChangeGroup::Buffers).expect("applied");
    trial.roll_back_selected(|change| change.group == ChangeGroup::Buffers);
    // One that was rolled back, and one that was never applied.
    trial.extend(&plan(&[(0, 2), (1, 2)])).expect("planned again");
    let outcomes = trial.apply(|_| true).expect("applied");
    let written: Vec<(&ChangeTarget, &str)> =
        outcomes.iter().map(|outcome| (&outcome.change.target, outcome.change.to.as_str())).collect();
    let (of_0, of_1, of_2) = (value(&target(0), 2), value(&target(1), 2), value(&target(2), 1));
    assert_eq!(written, [(&target(2), of_2.as_str()), (&target(0), of_0.as_str()), (&target(1), of_1.as_str())]);
    assert_eq!(store.get(trial.id()).expect("readable").items, trial.set().items, "as in the journal");
    let report = trial.roll_back("a test");
    assert!(report.is_clean() && report.targets.len() == 3, "{report:?}");
    assert_eq!(state(&host), before);
}

#[test]
fn only_changes_in_effect_are_kept() {
    let host = host();
    let before = state(&host);
    let scratch = Scratch::new();
    let store = scratch.store();
    let mut trial =
        ChangeTrial::begin(&store, &host, &plan(&[(0, 1), (1, 1), (2, 1), (3, 1)]), &options()).expect("begun");
    trial.apply(|change| change.group == ChangeGroup::Buffers).expect("applied");
    trial.roll_back_selected(|change| change.target == target(0));
    trial.extend(&plan(&[(0, 2)])).expect("planned again");
    trial.apply(|change| change.target == target(0)).expect("applied");
    trial.apply(|change| change.target == target(3)).expect("applied");
    trial.roll_back_selected(|change| change.group == ChangeGroup::Pacing);
    let id = trial.id();
    let kept = trial.keep(&keep()).expect("kept");
    assert_eq!((kept.lasting.as_slice(), kept.until_reboot.as_slice()), (&[target(2), target(0)][..], &[][..]));
    let file = host.files().into_values().next().expect("written");
    let expected = format!("net.ipv4.key0 = {}\n", value(&target(0), 2));
    assert!(file.contains(&expected) && file.contains("net.ipv4.key2"), "{file}");
    assert!(!file.contains("key1") && !file.contains("key3") && file.matches("key0").count() == 1, "{file}");
    for number in [1, 3] {
        assert_eq!(host.read(&target(number)).expect("read"), Some(value(&target(number), 0)), "not kept");
    }
    assert!(roll_back(&store, &host, id, RollbackMode::ForReal, "a test").expect("readable").is_clean());
    assert_eq!(state(&host), before);
}
