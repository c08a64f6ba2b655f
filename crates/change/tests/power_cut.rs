//! For each byte of the journal as the last one on the disk, and for an announced write carried out or not, the next
//! start rolls back completely; also when that start is killed at any of its own writes.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use linerate_change::{ChangeSetState, ChangeStore, ChangeTrial, RollbackMode, pending, recover, roll_back};
use linerate_model::change::{ChangeGroup, ChangeTarget, InterfaceIdentity};
use linerate_sys::host_access::{FakeHost, HostAccess, HostIdentity, InterfaceLocation};

use crate::support::{CrashingHost, FILE, Scratch, everything, host, keep, options, plan, state};

/// A write, and the length of the journal at that time.
#[derive(Clone, Debug)]
struct HostWrite {
    journal: usize,
    target: Option<ChangeTarget>,
    value: Option<String>,
}

impl HostWrite {
    fn repeat(&self, host: &FakeHost) {
        match &self.target {
            Some(target) => host.foreign_write(target, self.value.as_deref()),
            None => host.foreign_write_file(Path::new(FILE), self.value.as_deref().unwrap_or_default()),
        }
    }
}

struct RecordingHost<'a> {
    host: &'a FakeHost,
    journal: &'a Path,
    writes: RefCell<Vec<HostWrite>>,
}

impl RecordingHost<'_> {
    fn note(&self, target: Option<&ChangeTarget>, value: Option<&str>) {
        let journal = std::fs::metadata(self.journal).expect("written before the host").len();
        let journal = usize::try_from(journal).expect("short");
        self.writes.borrow_mut().push(HostWrite { journal, target: target.cloned(), value: value.map(str::to_owned) });
    }
}

impl HostAccess for RecordingHost<'_> {
    fn read(&self, target: &ChangeTarget) -> linerate_sys::Result<Option<String>> {
        self.host.read(target)
    }

    fn write(&self, target: &ChangeTarget, value: Option<&str>) -> linerate_sys::Result<()> {
        self.note(Some(target), value);
        self.host.write(target, value)
    }

    fn read_file(&self, path: &Path) -> linerate_sys::Result<Option<String>> {
        self.host.read_file(path)
    }

    fn replace_file(&self, path: &Path, contents: Option<&str>) -> linerate_sys::Result<()> {
        self.note(None, contents);
        self.host.replace_file(path, contents)
    }

    fn identity(&self) -> linerate_sys::Result<HostIdentity> {
        self.host.identity()
    }

    fn way_into_namespace(&self, namespace: u64) -> Option<String> {
        self.host.way_into_namespace(namespace)
    }

    fn interface_identity(&self, name: &str) -> linerate_sys::Result<Option<InterfaceIdentity>> {
        self.host.interface_identity(name)
    }

    fn modules(&self) -> BTreeSet<String> {
        self.host.modules()
    }

    fn locate_interface(&self, interface: &InterfaceIdentity) -> linerate_sys::Result<InterfaceLocation> {
        self.host.locate_interface(interface)
    }
}

/// A whole trial: one group applied, rolled back, applied again; the other on top of it, applied, rolled back, and
/// applied with other values; kept.
fn recorded_trial() -> (Vec<u8>, Vec<HostWrite>) {
    let (host, scratch) = (host(), Scratch::new());
    let (store, journal) = (scratch.store(), scratch.journal(1));
    let observed = RecordingHost { host: &host, journal: &journal, writes: RefCell::default() };
    let mut trial = ChangeTrial::begin(&store, &observed, &everything(), &options()).expect("begun");
    trial.apply(|change| change.group == ChangeGroup::Buffers).expect("applied");
    trial.roll_back_selected(|change| change.group == ChangeGroup::Buffers);
    trial.apply(|change| change.group == ChangeGroup::Buffers).expect("applied again");
    trial.apply(|change| change.group == ChangeGroup::Pacing).expect("applied");
    trial.roll_back_selected(|change| change.group == ChangeGroup::Pacing);
    trial.extend(&plan(&[(1, 3), (5, 4)])).expect("in place of those rolled back");
    trial.apply(|change| change.group == ChangeGroup::Pacing).expect("applied with other values");
    trial.keep(&keep()).expect("kept");
    let bytes = std::fs::read(&journal).expect("there");
    (bytes, observed.writes.into_inner())
}

/// Numbers of writes that may have been made when the journal has `cut` bytes.
fn possible_write_counts(writes: &[HostWrite], cut: usize) -> Vec<usize> {
    let surely = writes.iter().filter(|write| write.journal < cut).count();
    let at_most = writes.iter().filter(|write| write.journal <= cut).count();
    (surely..=at_most).collect()
}

fn host_after(writes: &[HostWrite]) -> FakeHost {
    let host = host();
    for write in writes {
        write.repeat(&host);
    }
    host
}

/// Rolls everything back, as a user would: interrupted sets automatically, a kept one on request.
fn home(store: &ChangeStore, host: &dyn HostAccess) {
    for report in recover(store, host).expect("readable") {
        assert!(report.is_clean(), "{report:?}");
    }
    for (id, set) in store.list().expect("readable") {
        if set.expect("readable").state(&host.identity().expect("in memory")) == ChangeSetState::Kept {
            let report = roll_back(store, host, id, RollbackMode::ForReal, "a test").expect("readable");
            assert!(report.is_clean(), "{report:?}");
        }
    }
    assert!(recover(store, host).expect("readable").is_empty() && pending(store, host).expect("readable").is_empty());
}

#[test]
fn any_byte_may_be_the_last() {
    let (bytes, writes) = recorded_trial();
    let before = state(&host());
    assert!(writes.len() >= 16, "{writes:?}");
    let mut kept = 0;
    for cut in 0..=bytes.len() {
        for count in possible_write_counts(&writes, cut) {
            let (host, scratch) = (host_after(&writes[..count]), Scratch::with_journal(&bytes[..cut]));
            let store = scratch.store();
            home(&store, &host);
            assert_eq!(state(&host), before, "{cut} bytes of the journal, {count} writes");
            kept += 1;
        }
    }
    assert!(kept > bytes.len());
}

#[test]
fn a_power_cut_leaves_only_files() {
    let (bytes, writes) = recorded_trial();
    let before = state(&host());
    let ends: Vec<usize> = (0..bytes.len()).filter(|place| bytes[*place] == b'\n').map(|place| place + 1).collect();
    for cut in ends.into_iter().flat_map(|end| [end - 2, end]) {
        for count in possible_write_counts(&writes, cut) {
            let (host, scratch) = (host_after(&writes[..count]), Scratch::with_journal(&bytes[..cut]));
            let store = scratch.store();
            host.reboot();
            home(&store, &host);
            assert_eq!(state(&host), before, "{cut} bytes of the journal, {count} writes");
        }
    }
}

#[test]
fn a_recovery_may_be_killed_at_any_write_too() {
    let (bytes, writes) = recorded_trial();
    let before = state(&host());
    let ends: Vec<usize> = (0..bytes.len()).filter(|place| bytes[*place] == b'\n').map(|place| place + 1).collect();
    for cut in ends {
        for count in possible_write_counts(&writes, cut) {
            for (left, after) in (0..12).flat_map(|left| [(left, false), (left, true)]) {
                let (host, scratch) = (host_after(&writes[..count]), Scratch::with_journal(&bytes[..cut]));
                let store = scratch.store();
                let deadly = CrashingHost { host: &host, left: Cell::new(left), after };
                let survived = catch_unwind(AssertUnwindSafe(|| home(&store, &deadly))).is_ok();
                home(&store, &host);
                assert_eq!(state(&host), before, "{cut} bytes, {count} writes, killed at {left}");
                if survived {
                    break;
                }
            }
        }
    }
}
