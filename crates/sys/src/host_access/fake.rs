//! A host in memory, for tests and rehearsals: nothing of it is real, and everything can go wrong.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use linerate_model::change::Target;

use super::{Host, Identity};
use crate::error::{Error, Result};

/// What goes wrong at a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The kernel refuses with this error number, and nothing is changed.
    Refused(i32),
    /// The kernel takes another value than it was given.
    Clamped(String),
    /// The kernel takes the value and then says that it failed.
    WrittenAndRefused(i32),
    /// Somebody else has just set this target.
    OthersWrote(Target, String),
    /// This interface is gone from now on.
    Vanishes(String),
    /// Nothing happens from now on, before this write: the process was killed, or the power cut.
    StopsBefore,
    /// The same, after this write.
    StopsAfter,
}

/// A host in memory.
#[derive(Debug)]
pub struct FakeHost {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    values: BTreeMap<Target, String>,
    at_boot: BTreeMap<Target, String>,
    files: BTreeMap<PathBuf, String>,
    gone: BTreeSet<String>,
    faults: BTreeMap<usize, Fault>,
    writes: usize,
    stopped: bool,
    identity: Identity,
    boots: u32,
}

impl FakeHost {
    /// A host with these values, which it also has after each boot.
    #[must_use]
    pub fn new(values: BTreeMap<Target, String>) -> Self {
        let identity = Identity {
            boot: "boot-0".to_owned(),
            machine: Some("machine".to_owned()),
            namespace: 1,
            kernel: "6.18.0-fake".to_owned(),
        };
        let state = State {
            at_boot: values.clone(),
            values,
            files: BTreeMap::new(),
            gone: BTreeSet::new(),
            faults: BTreeMap::new(),
            writes: 0,
            stopped: false,
            identity,
            boots: 0,
        };
        Self { state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has this go wrong at the write of that number; the first is 0. Files count as well.
    #[must_use]
    pub fn with_fault(self, write: usize, fault: Fault) -> Self {
        self.state().faults.insert(write, fault);
        self
    }

    /// How many writes were tried.
    #[must_use]
    pub fn writes(&self) -> usize {
        self.state().writes
    }

    /// Everything that stands somewhere.
    #[must_use]
    pub fn values(&self) -> BTreeMap<Target, String> {
        self.state().values.clone()
    }

    /// All configuration files.
    #[must_use]
    pub fn files(&self) -> BTreeMap<PathBuf, String> {
        self.state().files.clone()
    }

    /// Somebody else sets a value (`None`: takes it away).
    pub fn others_write(&self, target: &Target, value: Option<&str>) {
        put(&mut self.state().values, target, value);
    }

    /// Somebody else writes a file.
    pub fn others_write_file(&self, path: &Path, contents: &str) {
        self.state().files.insert(path.to_owned(), contents.to_owned());
    }

    /// A new process on the same host: it had stopped, and nothing goes wrong any more.
    pub fn revive(&self) {
        let mut state = self.state();
        state.stopped = false;
        state.faults.clear();
    }

    /// Starts anew: running settings are those of the boot, files stay.
    pub fn reboot(&self) {
        self.revive();
        let mut state = self.state();
        state.boots += 1;
        state.values = state.at_boot.clone();
        state.gone.clear();
        state.identity.boot = format!("boot-{}", state.boots);
    }

    /// Moves into another network namespace.
    pub fn enter_namespace(&self, namespace: u64) {
        self.state().identity.namespace = namespace;
    }
}

fn put(values: &mut BTreeMap<Target, String>, target: &Target, value: Option<&str>) {
    match value {
        Some(value) => drop(values.insert(target.clone(), value.to_owned())),
        None => drop(values.remove(target)),
    }
}

fn failed(operation: &str, target: &dyn core::fmt::Display, errno: i32) -> Error {
    Error::system(format!("{operation} {target}"), io::Error::from_raw_os_error(errno))
}

impl State {
    fn reach(&self, target: &Target) -> Result<()> {
        if self.stopped {
            return Err(failed("reaching", target, libc::EIO));
        }
        match target.interface() {
            Some(interface) if self.gone.contains(interface) => Err(failed("reaching", target, libc::ENODEV)),
            _ => Ok(()),
        }
    }

    /// The fault of this write, as far as it happens before it.
    fn next_fault(&mut self) -> Option<Fault> {
        let fault = self.faults.get(&self.writes).cloned();
        self.writes += 1;
        match &fault {
            Some(Fault::OthersWrote(target, value)) => drop(self.values.insert(target.clone(), value.clone())),
            Some(Fault::Vanishes(interface)) => drop(self.gone.insert(interface.clone())),
            Some(Fault::StopsBefore) => self.stopped = true,
            _ => {}
        }
        fault
    }
}

impl Host for FakeHost {
    fn read(&self, target: &Target) -> Result<Option<String>> {
        let state = self.state();
        state.reach(target)?;
        Ok(state.values.get(target).cloned())
    }

    fn write(&self, target: &Target, value: Option<&str>) -> Result<()> {
        let mut state = self.state();
        let fault = state.next_fault();
        state.reach(target)?;
        match fault {
            Some(Fault::Refused(errno)) => return Err(failed("setting", target, errno)),
            Some(Fault::Clamped(other)) => put(&mut state.values, target, Some(&other)),
            Some(Fault::WrittenAndRefused(errno)) => {
                put(&mut state.values, target, value);
                return Err(failed("setting", target, errno));
            }
            Some(Fault::StopsAfter) => {
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
        if let Some(Fault::Refused(errno) | Fault::WrittenAndRefused(errno)) = fault {
            return Err(failed("writing", &path.display(), errno));
        }
        match contents {
            Some(contents) => drop(state.files.insert(path.to_owned(), contents.to_owned())),
            None => drop(state.files.remove(path)),
        }
        state.stopped = fault == Some(Fault::StopsAfter);
        Ok(())
    }

    fn identity(&self) -> Result<Identity> {
        Ok(self.state().identity.clone())
    }

    fn way_into_namespace(&self, namespace: u64) -> Option<String> {
        (namespace < 10).then(|| format!("/run/netns/{namespace}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_come_when_they_are_due() {
        let target = Target::Setting { key: "net.a".into() };
        let host = FakeHost::new([(target.clone(), "1".to_owned())].into())
            .with_fault(1, Fault::Refused(libc::EINVAL))
            .with_fault(2, Fault::Clamped("9".into()))
            .with_fault(3, Fault::StopsAfter);
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
