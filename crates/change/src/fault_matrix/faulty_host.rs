//! A host in memory with one fault, at one step.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use linerate_model::change::{ChangeTarget, InterfaceIdentity};
use linerate_sys::Result;
use linerate_sys::host_access::{FakeHost, HostAccess, HostIdentity, InterfaceLocation};

use super::fault::Fault;
use super::procedure::second_trial;
use super::verdict::Values;
use super::{INTERFACE, TestedTarget};
use crate::ChangeStore;
use crate::journal::in_newer_schema;
use crate::state_disk::DiskFault;

pub(super) const RENAMED: &str = "wan0";

/// Owner of journals of another user.
const OTHER_USER: u32 = 4242;

const EIO: i32 = 5;
const EINVAL: i32 = 22;
const ENOSPC: i32 = 28;
const EROFS: i32 = 30;

/// Progress of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Before the procedure; steps are not counted.
    Preparing,
    /// The process is killed as soon as the setting file is written.
    KilledByFile,
    /// The process was killed.
    Killed,
    /// Steps are counted, and the fault comes at its step.
    Running,
}

pub(super) struct FaultyHost {
    pub(super) host: FakeHost,
    pub(super) store: ChangeStore,
    tested: TestedTarget,
    fault: Fault,
    at: usize,
    stage: Cell<Stage>,
    steps: Cell<usize>,
    /// True from the fault to the repair.
    is_active: Cell<bool>,
    /// True from a fault of one write to that write.
    is_due: Cell<bool>,
    has_come: Cell<bool>,
    /// Values when the fault came.
    at_fault: RefCell<Values>,
    /// Whole journals, and their names.
    altered: RefCell<Vec<(PathBuf, Vec<u8>)>>,
}

impl FaultyHost {
    pub(super) fn new(host: FakeHost, store: ChangeStore, tested: TestedTarget, fault: Fault, at: usize) -> Self {
        Self {
            host,
            store,
            tested,
            fault,
            at,
            stage: Cell::new(Stage::Preparing),
            steps: Cell::new(0),
            is_active: Cell::new(false),
            is_due: Cell::new(false),
            has_come: Cell::new(false),
            at_fault: RefCell::default(),
            altered: RefCell::default(),
        }
    }

    pub(super) fn has_come(&self) -> bool {
        self.has_come.get()
    }

    /// Values of the host when the fault came.
    pub(super) fn values_at_fault(&self) -> Values {
        self.at_fault.borrow().clone()
    }

    /// True when the fault has altered a journal.
    pub(super) fn has_altered_journals(&self) -> bool {
        !self.altered.borrow().is_empty()
    }

    /// Kills the process that prepares the procedure, after it has written the setting file.
    pub(super) fn kill_by_file(&self) {
        self.stage.set(Stage::KilledByFile);
    }

    /// Begins to count the steps, of a new process if one was killed.
    pub(super) fn run(&self) {
        self.stage.set(Stage::Running);
    }

    /// Ends the fault, as a new process, a boot, or an operator does.
    pub(super) fn repair(&self) {
        self.is_active.set(false);
        self.is_due.set(false);
        match self.fault {
            Fault::PowerCut => self.host.reboot(),
            Fault::Move => self.host.move_interfaces_back(),
            _ => {}
        }
        for (path, line) in self.altered.take() {
            replace_first_line(&path, |_| line.clone());
        }
    }

    fn step(&self) {
        if self.stage.get() != Stage::Running {
            return;
        }
        let step = self.steps.get();
        self.steps.set(step + 1);
        if step == self.at {
            *self.at_fault.borrow_mut() = self.host.values();
            self.has_come.set(true);
            // What the fault does is no step.
            self.stage.set(Stage::Preparing);
            self.begin();
            self.stage.set(Stage::Running);
            self.is_active.set(true);
        }
    }

    fn begin(&self) {
        let TestedTarget { target, values: [_, applied, other, _] } = &self.tested;
        match self.fault {
            Fault::Rename => self.host.rename_interface(INTERFACE, RENAMED),
            Fault::Delete => self.host.remove_interface(INTERFACE),
            Fault::Move => self.host.move_interface_away(INTERFACE),
            Fault::OtherValue => self.host.foreign_write(target, Some(other)),
            Fault::SameValue => self.host.foreign_write(target, Some(applied)),
            Fault::RemovedDirectory => drop(fs::remove_dir_all(self.store.state_directory())),
            Fault::DamagedJournal => self.alter_journals(|line| {
                let mut altered = line.to_vec();
                altered[40] ^= 4;
                altered
            }),
            Fault::NewerJournal => self.alter_journals(in_newer_schema),
            // The owners are asked for.
            Fault::ForeignJournal => self.alter_journals(<[u8]>::to_vec),
            Fault::Refused | Fault::WrittenAndRefused | Fault::ClampedOnce => self.is_due.set(true),
            Fault::SecondTrial => second_trial(&self.store, &self.host, &self.tested),
            _ => {}
        }
    }

    fn alter_journals(&self, alter: impl Fn(&[u8]) -> Vec<u8>) {
        for id in self.store.ids().unwrap_or_default() {
            let path = self.store.journal_file(id);
            if let Some(line) = replace_first_line(&path, &alter) {
                self.altered.borrow_mut().push((path, line));
            }
        }
    }

    fn is_dead(&self) -> bool {
        self.stage.get() == Stage::Killed || self.is_active.get() && self.fault.stops()
    }

    /// An access to the host.
    fn reach(&self) -> Result<()> {
        self.step();
        if self.is_dead() { Err(FakeHost::system_error("reaching", EIO)) } else { Ok(()) }
    }

    /// A write to a disk.
    fn write_disk(&self) -> io::Result<()> {
        let errno = match self.fault {
            _ if self.is_dead() => EIO,
            Fault::FullDisk if self.is_active.get() => ENOSPC,
            Fault::ReadOnlyDisk if self.is_active.get() => EROFS,
            _ => return Ok(()),
        };
        Err(io::Error::from_raw_os_error(errno))
    }

    /// Answer of the kernel to a write that it does not simply carry out.
    fn faulty_write(&self, target: &ChangeTarget, value: Option<&str>) -> Option<Result<()>> {
        let refused = |errno| Some(Err(FakeHost::system_error("setting", errno)));
        let is_due = self.is_due.replace(false);
        let clamped = || (*target == self.tested.target).then(|| self.host.write(target, Some(&self.tested.values[3])));
        match self.fault {
            Fault::ReadOnlyHost if self.is_active.get() => refused(EROFS),
            Fault::Clamped if self.is_active.get() => clamped(),
            Fault::Ignored if self.is_active.get() => Some(Ok(())),
            Fault::ClampedOnce if is_due => clamped(),
            Fault::Refused if is_due => refused(EINVAL),
            Fault::WrittenAndRefused if is_due => {
                self.host.write(target, value).map_or_else(|error| Some(Err(error)), |()| refused(EINVAL))
            }
            _ => None,
        }
    }
}

/// Replaces the first line of a file by one of the same length, and returns it; `None` when there is none.
fn replace_first_line(path: &Path, alter: impl Fn(&[u8]) -> Vec<u8>) -> Option<Vec<u8>> {
    let mut bytes = fs::read(path).ok()?;
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let line = bytes[..end].to_vec();
    bytes[..end].copy_from_slice(&alter(&line));
    // The file stays the same one: the process has it open.
    fs::write(path, bytes).ok()?;
    Some(line)
}

impl DiskFault for FaultyHost {
    fn write(&self) -> io::Result<()> {
        self.step();
        self.write_disk()
    }

    fn owner(&self) -> Option<u32> {
        (self.is_active.get() && self.fault == Fault::ForeignJournal).then_some(OTHER_USER)
    }
}

impl HostAccess for FaultyHost {
    fn read(&self, target: &ChangeTarget) -> Result<Option<String>> {
        self.reach()?;
        self.host.read(target)
    }

    fn write(&self, target: &ChangeTarget, value: Option<&str>) -> Result<()> {
        self.reach()?;
        self.faulty_write(target, value).unwrap_or_else(|| self.host.write(target, value))
    }

    fn check_restorable(&self, target: &ChangeTarget, value: &str) -> Result<()> {
        self.reach()?;
        self.host.check_restorable(target, value)
    }

    fn read_file(&self, path: &Path) -> Result<Option<String>> {
        self.reach()?;
        self.host.read_file(path)
    }

    fn replace_file(&self, path: &Path, contents: Option<&str>) -> Result<()> {
        self.reach()?;
        self.write_disk().map_err(|cause| FakeHost::system_error("writing", cause.raw_os_error().unwrap_or(EIO)))?;
        self.host.replace_file(path, contents)?;
        if self.stage.get() == Stage::KilledByFile {
            self.stage.set(Stage::Killed);
        }
        Ok(())
    }

    fn identity(&self) -> Result<HostIdentity> {
        self.reach()?;
        self.host.identity()
    }

    fn way_into_namespace(&self, namespace: u64) -> Option<String> {
        self.host.way_into_namespace(namespace)
    }

    fn interface_identity(&self, name: &str) -> Result<Option<InterfaceIdentity>> {
        self.reach()?;
        self.host.interface_identity(name)
    }

    fn modules(&self) -> BTreeSet<String> {
        self.host.modules()
    }

    fn locate_interface(&self, interface: &InterfaceIdentity) -> Result<InterfaceLocation> {
        self.reach()?;
        self.host.locate_interface(interface)
    }
}
