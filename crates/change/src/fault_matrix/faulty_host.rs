//! A host in memory with one fault, at one step.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use linerate_model::change::{ChangeTarget, InterfaceIdentity};
use linerate_sys::Result;
use linerate_sys::host_access::{FakeHost, HostAccess, HostIdentity, InterfaceLocation};

use super::{INTERFACE, TestedTarget};

pub(super) const RENAMED: &str = "wan0";

const EIO: i32 = 5;
const ENOSPC: i32 = 28;
const EROFS: i32 = 30;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The process is killed.
    Kill,
    /// The power is cut; the next boot applies the setting files.
    PowerCut,
    Rename,
    Delete,
    Move,
    FullDisk,
    ReadOnlyDisk,
    /// Targets cannot be written (`/proc/sys` and `/sys` are read-only, as in a container).
    ReadOnlyHost,
    /// Another program writes another value.
    OtherValue,
    /// Another program writes the value that is applied.
    SameValue,
}

impl Fault {
    pub(super) const ALL: [Self; 10] = [
        Self::Kill,
        Self::PowerCut,
        Self::Rename,
        Self::Delete,
        Self::Move,
        Self::FullDisk,
        Self::ReadOnlyDisk,
        Self::ReadOnlyHost,
        Self::OtherValue,
        Self::SameValue,
    ];

    pub(super) const fn stops(self) -> bool {
        matches!(self, Self::Kill | Self::PowerCut)
    }

    pub(super) const fn is_second_writer(self) -> bool {
        matches!(self, Self::OtherValue | Self::SameValue)
    }
}

pub(super) struct FaultyHost {
    pub(super) host: FakeHost,
    tested: TestedTarget,
    fault: Fault,
    at: usize,
    steps: Cell<usize>,
    is_active: Cell<bool>,
    /// True once the fault has come.
    has_come: Cell<bool>,
    /// Value of the target when it came.
    at_fault: RefCell<Option<String>>,
}

impl FaultyHost {
    pub(super) fn new(host: FakeHost, tested: TestedTarget, fault: Fault, at: usize) -> Self {
        let (steps, is_active, has_come) = (Cell::new(0), Cell::new(false), Cell::new(false));
        Self { host, tested, fault, at, steps, is_active, has_come, at_fault: RefCell::default() }
    }

    pub(super) fn has_come(&self) -> bool {
        self.has_come.get()
    }

    /// Value of the target when the fault came.
    pub(super) fn at_fault(&self) -> Option<String> {
        self.at_fault.borrow().clone()
    }

    /// Ends the fault, as a new process, a boot, or an operator who frees the disk does.
    pub(super) fn repair(&self) {
        self.is_active.set(false);
        match self.fault {
            Fault::PowerCut => self.host.reboot(),
            Fault::Move => self.host.move_interfaces_back(),
            _ => {}
        }
    }

    fn step(&self) {
        let step = self.steps.get();
        self.steps.set(step + 1);
        if step == self.at {
            *self.at_fault.borrow_mut() = self.host.values().get(&self.tested.target).cloned();
            self.has_come.set(true);
            self.is_active.set(true);
            self.begin();
        }
    }

    fn begin(&self) {
        let TestedTarget { target, values: [_, applied, other] } = &self.tested;
        match self.fault {
            Fault::Rename => self.host.rename_interface(INTERFACE, RENAMED),
            Fault::Delete => self.host.remove_interface(INTERFACE),
            Fault::Move => self.host.move_interface_away(INTERFACE),
            Fault::OtherValue => self.host.foreign_write(target, Some(other)),
            Fault::SameValue => self.host.foreign_write(target, Some(applied)),
            _ => {}
        }
    }

    /// An access to the host.
    fn reach(&self) -> Result<()> {
        self.step();
        if self.is_active.get() && self.fault.stops() { Err(FakeHost::system_error("reaching", EIO)) } else { Ok(()) }
    }

    fn is_active(&self, fault: Fault) -> bool {
        self.is_active.get() && self.fault == fault
    }

    /// A write to a disk.
    fn write_disk(&self) -> io::Result<()> {
        let errno = match self.fault {
            _ if !self.is_active.get() => return Ok(()),
            Fault::Kill | Fault::PowerCut => EIO,
            Fault::FullDisk => ENOSPC,
            Fault::ReadOnlyDisk => EROFS,
            _ => return Ok(()),
        };
        Err(io::Error::from_raw_os_error(errno))
    }

    /// A write to the disk of the journals.
    pub(super) fn state_disk(&self) -> io::Result<()> {
        self.step();
        self.write_disk()
    }
}

impl HostAccess for FaultyHost {
    fn read(&self, target: &ChangeTarget) -> Result<Option<String>> {
        self.reach()?;
        self.host.read(target)
    }

    fn write(&self, target: &ChangeTarget, value: Option<&str>) -> Result<()> {
        self.reach()?;
        if self.is_active(Fault::ReadOnlyHost) {
            return Err(FakeHost::system_error("setting", EROFS));
        }
        self.host.write(target, value)
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
        self.host.replace_file(path, contents)
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
