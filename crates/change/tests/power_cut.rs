//! Whatever byte of the journal is the last one on the disk, and whether the write it announced was done or not: the next
//! start finds the way home. The same when that start is killed at any of its own writes.

mod support;

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use linerate_change::{Mode, State, Store, Trial, pending, recover, roll_back};
use linerate_model::change::{Group, Target};
use linerate_sys::host_access::{FakeHost, Host, Identity};
use support::{Deadly, FILE, Scratch, everything, host, keep, options, plan, state};

/// A write that was made, and how long the journal was then.
#[derive(Clone, Debug)]
struct Write {
    journal: usize,
    target: Option<Target>,
    value: Option<String>,
}

impl Write {
    fn repeat(&self, host: &FakeHost) {
        match &self.target {
            Some(target) => host.others_write(target, self.value.as_deref()),
            None => host.others_write_file(Path::new(FILE), self.value.as_deref().unwrap_or_default()),
        }
    }
}

struct Observed<'a> {
    host: &'a FakeHost,
    journal: &'a Path,
    writes: RefCell<Vec<Write>>,
}

impl Observed<'_> {
    fn note(&self, target: Option<&Target>, value: Option<&str>) {
        let journal = std::fs::metadata(self.journal).expect("written before the host").len();
        let journal = usize::try_from(journal).expect("short");
        self.writes.borrow_mut().push(Write { journal, target: target.cloned(), value: value.map(str::to_owned) });
    }
}

impl Host for Observed<'_> {
    fn read(&self, target: &Target) -> linerate_sys::Result<Option<String>> {
        self.host.read(target)
    }

    fn write(&self, target: &Target, value: Option<&str>) -> linerate_sys::Result<()> {
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

    fn identity(&self) -> linerate_sys::Result<Identity> {
        self.host.identity()
    }

    fn way_into_namespace(&self, namespace: u64) -> Option<String> {
        self.host.way_into_namespace(namespace)
    }
}

/// A whole trial: one group tried, taken back, tried again; the other upon it, tried, taken back, and tried with other
/// values; kept.
fn a_trial() -> (Vec<u8>, Vec<Write>) {
    let (host, scratch) = (host(), Scratch::new());
    let (store, journal) = (scratch.store(), scratch.journal(1));
    let observed = Observed { host: &host, journal: &journal, writes: RefCell::default() };
    let mut trial = Trial::begin(&store, &observed, &everything(), &options()).expect("begun");
    trial.apply(|change| change.group == Group::Buffers).expect("applied");
    trial.take_back(|change| change.group == Group::Buffers);
    trial.apply(|change| change.group == Group::Buffers).expect("applied again");
    trial.apply(|change| change.group == Group::Pacing).expect("applied");
    trial.take_back(|change| change.group == Group::Pacing);
    trial.extend(&plan(&[(1, 3), (5, 4)])).expect("in place of what was taken back");
    trial.apply(|change| change.group == Group::Pacing).expect("applied with other values");
    trial.keep(&keep()).expect("kept");
    let bytes = std::fs::read(&journal).expect("there");
    (bytes, observed.writes.into_inner())
}

/// How many of the writes may have been made when the journal has so many bytes.
fn possible(writes: &[Write], cut: usize) -> Vec<usize> {
    let surely = writes.iter().filter(|write| write.journal < cut).count();
    let at_most = writes.iter().filter(|write| write.journal <= cut).count();
    (surely..=at_most).collect()
}

fn host_after(writes: &[Write]) -> FakeHost {
    let host = host();
    for write in writes {
        write.repeat(&host);
    }
    host
}

/// Everything back, as a person would: interrupted sets by themselves, a kept one when told to.
fn home(store: &Store, host: &dyn Host) {
    for report in recover(store, host).expect("readable") {
        assert!(report.is_clean(), "{report:?}");
    }
    for (id, set) in store.list().expect("readable") {
        if set.expect("readable").state(&host.identity().expect("in memory")) == State::Kept {
            let report = roll_back(store, host, id, Mode::ForReal, "a test").expect("readable");
            assert!(report.is_clean(), "{report:?}");
        }
    }
    assert!(recover(store, host).expect("readable").is_empty() && pending(store, host).expect("readable").is_empty());
}

#[test]
fn every_byte_may_be_the_last() {
    let (bytes, writes) = a_trial();
    let before = state(&host());
    assert!(writes.len() >= 16, "{writes:?}");
    let mut kept = 0;
    for cut in 0..=bytes.len() {
        for count in possible(&writes, cut) {
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
fn after_a_power_cut_only_files_are_left() {
    let (bytes, writes) = a_trial();
    let before = state(&host());
    let ends: Vec<usize> = (0..bytes.len()).filter(|place| bytes[*place] == b'\n').map(|place| place + 1).collect();
    for cut in ends.into_iter().flat_map(|end| [end - 2, end]) {
        for count in possible(&writes, cut) {
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
    let (bytes, writes) = a_trial();
    let before = state(&host());
    let ends: Vec<usize> = (0..bytes.len()).filter(|place| bytes[*place] == b'\n').map(|place| place + 1).collect();
    for cut in ends {
        for count in possible(&writes, cut) {
            for (left, after) in (0..12).flat_map(|left| [(left, false), (left, true)]) {
                let (host, scratch) = (host_after(&writes[..count]), Scratch::with_journal(&bytes[..cut]));
                let store = scratch.store();
                let deadly = Deadly { host: &host, left: Cell::new(left), after };
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
