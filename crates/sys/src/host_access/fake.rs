//! A host in memory, for tests and rehearsals, with faults on demand.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use linerate_model::change::{ChangeTarget, InterfaceIdentity};

use super::{HostAccess, HostIdentity, InterfaceLocation};
use crate::error::{Error, Result};

/// A fault at a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteFault {
    /// The kernel refuses with this error number, and nothing is changed.
    Refused(i32),
    /// The kernel sets another value than it was given.
    Clamped(String),
    /// The kernel sets the value and then reports a failure.
    WrittenAndRefused(i32),
    /// Another program has just set this target.
    OthersWrote(ChangeTarget, String),
    /// This interface is gone from now on.
    Vanishes(String),
    /// The host stops before this write: the process was killed, or the power cut.
    StopsBefore,
    /// The host stops after this write.
    StopsAfter,
}

/// A host in memory.
#[derive(Debug)]
pub struct FakeHost {
    state: Mutex<FakeState>,
}

#[derive(Debug)]
struct FakeState {
    values: BTreeMap<ChangeTarget, String>,
    at_boot: BTreeMap<ChangeTarget, String>,
    files: BTreeMap<PathBuf, String>,
    /// Interfaces of this namespace, with their numbers.
    interfaces: BTreeMap<String, u32>,
    interfaces_at_boot: BTreeMap<String, u32>,
    /// Interfaces that are in another namespace now.
    elsewhere: BTreeMap<String, u32>,
    faults: BTreeMap<usize, WriteFault>,
    /// Modules that the kernel loads when a value is written.
    loads: BTreeMap<String, String>,
    modules: BTreeSet<String>,
    writes: usize,
    stopped: bool,
    identity: HostIdentity,
    boots: u32,
}

impl FakeHost {
    /// A host with these values, which it also has after each boot.
    #[must_use]
    pub fn new(values: BTreeMap<ChangeTarget, String>) -> Self {
        let identity = HostIdentity {
            boot: "boot-0".to_owned(),
            machine: Some("machine".to_owned()),
            namespace: 1,
            namespace_cookie: Some(1),
            kernel: "6.18.0-fake".to_owned(),
        };
        let names: BTreeSet<String> =
            values.iter().flat_map(|(target, value)| target.interfaces([value.as_str()])).collect();
        let interfaces: BTreeMap<String, u32> = names.into_iter().zip(2..).collect();
        let state = FakeState {
            at_boot: values.clone(),
            values,
            files: BTreeMap::new(),
            interfaces_at_boot: interfaces.clone(),
            interfaces,
            elsewhere: BTreeMap::new(),
            faults: BTreeMap::new(),
            loads: BTreeMap::new(),
            modules: BTreeSet::new(),
            writes: 0,
            stopped: false,
            identity,
            boots: 0,
        };
        Self { state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, FakeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a fault at the write of that number; the first is 0. Files count as well.
    #[must_use]
    pub fn with_fault(self, write: usize, fault: WriteFault) -> Self {
        self.state().faults.insert(write, fault);
        self
    }

    /// Loads a module when this value is written.
    #[must_use]
    pub fn with_module(self, value: &str, module: &str) -> Self {
        self.state().loads.insert(value.to_owned(), module.to_owned());
        self
    }

    /// The error of a system call, for hosts that add faults of their own.
    #[must_use]
    pub fn system_error(operation: &str, errno: i32) -> Error {
        Error::system(operation, io::Error::from_raw_os_error(errno))
    }

    /// Number of attempted writes.
    #[must_use]
    pub fn writes(&self) -> usize {
        self.state().writes
    }

    /// Values of all targets.
    #[must_use]
    pub fn values(&self) -> BTreeMap<ChangeTarget, String> {
        self.state().values.clone()
    }

    /// All configuration files.
    #[must_use]
    pub fn files(&self) -> BTreeMap<PathBuf, String> {
        self.state().files.clone()
    }

    /// Sets a value as another program would (`None` removes it).
    pub fn foreign_write(&self, target: &ChangeTarget, value: Option<&str>) {
        put(&mut self.state().values, target, value);
    }

    /// Writes a file as another program would.
    pub fn foreign_write_file(&self, path: &Path, contents: &str) {
        self.state().files.insert(path.to_owned(), contents.to_owned());
    }

    /// Renames an interface, as udev or a user would.
    pub fn rename_interface(&self, old: &str, new: &str) {
        self.state().rename(old, new);
    }

    /// Removes an interface with its settings.
    pub fn remove_interface(&self, name: &str) {
        self.state().remove(name);
    }

    /// Moves an interface into another network namespace; its routes and disciplines are lost.
    pub fn move_interface_away(&self, name: &str) {
        let mut state = self.state();
        if let Some(index) = state.interfaces.remove(name) {
            state.elsewhere.insert(name.to_owned(), index);
            state.values.retain(|target, value| !is_lost_when_moved(target, value, name));
        }
    }

    /// Moves all such interfaces back.
    pub fn move_interfaces_back(&self) {
        let mut state = self.state();
        let all = core::mem::take(&mut state.elsewhere);
        state.interfaces.extend(all);
    }

    /// Starts a new process on the same host after a stop, without further faults.
    pub fn revive(&self) {
        let mut state = self.state();
        state.stopped = false;
        state.faults.clear();
    }

    /// Reboots: running settings are those of the boot and then of the files in `/etc/sysctl.d`, in their order.
    pub fn reboot(&self) {
        self.revive();
        let mut state = self.state();
        state.boots += 1;
        state.values = state.at_boot.clone();
        state.apply_setting_files();
        state.interfaces = state.interfaces_at_boot.clone();
        state.elsewhere.clear();
        state.identity.boot = format!("boot-{}", state.boots);
    }

    /// Moves into another network namespace; its file may have the number of an earlier one.
    pub fn enter_namespace(&self, namespace: u64, cookie: u64) {
        let mut state = self.state();
        (state.identity.namespace, state.identity.namespace_cookie) = (namespace, Some(cookie));
    }
}

fn put(values: &mut BTreeMap<ChangeTarget, String>, target: &ChangeTarget, value: Option<&str>) {
    match value {
        Some(value) => drop(values.insert(target.clone(), value.to_owned())),
        None => drop(values.remove(target)),
    }
}

/// The kernel shuts traffic control down, removes routes, and makes the settings of an interface anew.
fn is_lost_when_moved(target: &ChangeTarget, value: &str, name: &str) -> bool {
    let is_of_device = matches!(
        target,
        ChangeTarget::Link { .. }
            | ChangeTarget::Offload { .. }
            | ChangeTarget::Device { .. }
            | ChangeTarget::File { .. }
    );
    !is_of_device && target.interfaces([value]).contains(name)
}

fn failed(operation: &str, target: &dyn core::fmt::Display, errno: i32) -> Error {
    Error::system(format!("{operation} {target}"), io::Error::from_raw_os_error(errno))
}

impl FakeState {
    fn reach(&self, target: &ChangeTarget) -> Result<()> {
        if self.stopped {
            return Err(failed("reaching", target, libc::EIO));
        }
        match target.interface() {
            Some(interface) if !self.interfaces.contains_key(interface) => {
                Err(failed("reaching", target, libc::ENODEV))
            }
            _ => Ok(()),
        }
    }

    fn rename(&mut self, old: &str, new: &str) {
        let Some(index) = self.interfaces.remove(old) else { return };
        self.interfaces.insert(new.to_owned(), index);
        let renamed = |(target, value): (ChangeTarget, String)| {
            let value = target.value_with_renamed(&value, old, new);
            (target.with_renamed(old, new), value)
        };
        self.values = core::mem::take(&mut self.values).into_iter().map(renamed).collect();
    }

    fn remove(&mut self, name: &str) {
        self.interfaces.remove(name);
        self.values.retain(|target, value| !target.interfaces([value.as_str()]).contains(name));
    }

    /// As `systemd-sysctl` does at boot.
    fn apply_setting_files(&mut self) {
        let files = self.files.iter().filter(|(path, _)| path.starts_with("/etc/sysctl.d"));
        let lines = files.flat_map(|(_, text)| text.lines()).filter(|line| !line.starts_with(['#', ';']));
        for (key, value) in lines.filter_map(|line| line.split_once('=')) {
            let target = ChangeTarget::Setting { key: key.trim().to_owned() };
            // The kernel has no other settings.
            if let Some(present) = self.values.get_mut(&target) {
                value.trim().clone_into(present);
            }
        }
    }

    /// Fault of this write, with its effects from before the write.
    fn next_fault(&mut self) -> Option<WriteFault> {
        let fault = self.faults.get(&self.writes).cloned();
        self.writes += 1;
        match &fault {
            Some(WriteFault::OthersWrote(target, value)) => drop(self.values.insert(target.clone(), value.clone())),
            Some(WriteFault::Vanishes(interface)) => self.remove(interface),
            Some(WriteFault::StopsBefore) => self.stopped = true,
            _ => {}
        }
        fault
    }
}

impl HostAccess for FakeHost {
    fn read(&self, target: &ChangeTarget) -> Result<Option<String>> {
        let state = self.state();
        state.reach(target)?;
        Ok(state.values.get(target).cloned())
    }

    fn write(&self, target: &ChangeTarget, value: Option<&str>) -> Result<()> {
        let mut state = self.state();
        let fault = state.next_fault();
        state.reach(target)?;
        if target.interfaces(value).iter().any(|name| !state.interfaces.contains_key(name)) {
            return Err(failed("setting", target, libc::ENODEV));
        }
        if let Some(module) = value.and_then(|value| state.loads.get(value)).cloned() {
            state.modules.insert(module);
        }
        match fault {
            Some(WriteFault::Refused(errno)) => return Err(failed("setting", target, errno)),
            Some(WriteFault::Clamped(other)) => put(&mut state.values, target, Some(&other)),
            Some(WriteFault::WrittenAndRefused(errno)) => {
                put(&mut state.values, target, value);
                return Err(failed("setting", target, errno));
            }
            Some(WriteFault::StopsAfter) => {
                put(&mut state.values, target, value);
                state.stopped = true;
            }
            _ => put(&mut state.values, target, value),
        }
        Ok(())
    }

    fn read_file(&self, path: &Path) -> Result<Option<String>> {
        let state = self.state();
        if state.stopped {
            return Err(failed("reading", &path.display(), libc::EIO));
        }
        Ok(state.files.get(path).cloned())
    }

    fn replace_file(&self, path: &Path, contents: Option<&str>) -> Result<()> {
        let mut state = self.state();
        let fault = state.next_fault();
        if state.stopped {
            return Err(failed("writing", &path.display(), libc::EIO));
        }
        if let Some(WriteFault::Refused(errno) | WriteFault::WrittenAndRefused(errno)) = fault {
            return Err(failed("writing", &path.display(), errno));
        }
        match contents {
            Some(contents) => drop(state.files.insert(path.to_owned(), contents.to_owned())),
            None => drop(state.files.remove(path)),
        }
        state.stopped = fault == Some(WriteFault::StopsAfter);
        Ok(())
    }

    fn identity(&self) -> Result<HostIdentity> {
        Ok(self.state().identity.clone())
    }

    fn way_into_namespace(&self, namespace: u64) -> Option<String> {
        (namespace < 10).then(|| format!("/run/netns/{namespace}"))
    }

    fn interface_identity(&self, name: &str) -> Result<Option<InterfaceIdentity>> {
        let index = self.state().interfaces.get(name).copied();
        Ok(index.map(|index| InterfaceIdentity { name: name.to_owned(), index, address: Vec::new() }))
    }

    fn modules(&self) -> BTreeSet<String> {
        self.state().modules.clone()
    }

    fn locate_interface(&self, interface: &InterfaceIdentity) -> Result<InterfaceLocation> {
        let state = self.state();
        let name = |all: &BTreeMap<String, u32>| {
            all.iter().find(|(_, index)| **index == interface.index).map(|(name, _)| name.clone())
        };
        Ok(match (name(&state.interfaces), name(&state.elsewhere)) {
            (Some(name), _) => InterfaceLocation::Here { name },
            (None, Some(name)) => InterfaceLocation::Moved { name, file: "/run/netns/2".to_owned() },
            (None, None) => InterfaceLocation::Gone,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_come_when_they_are_due() {
        let target = ChangeTarget::Setting { key: "net.a".into() };
        let host = FakeHost::new([(target.clone(), "1".to_owned())].into())
            .with_fault(1, WriteFault::Refused(libc::EINVAL))
            .with_fault(2, WriteFault::Clamped("9".into()))
            .with_fault(3, WriteFault::StopsAfter);
        host.write(&target, Some("2")).expect("nothing wrong yet");
        assert_eq!(host.write(&target, Some("3")).expect_err("refused").errno(), Some(libc::EINVAL));
        assert_eq!(host.read(&target).expect("read").as_deref(), Some("2"));
        host.write(&target, Some("3")).expect("clamped");
        assert_eq!(host.read(&target).expect("read").as_deref(), Some("9"));
        host.write(&target, Some("4")).expect("the last one");
        assert!(host.read(&target).is_err());
        host.reboot();
        assert_eq!(host.read(&target).expect("read").as_deref(), Some("1"));
    }
}
