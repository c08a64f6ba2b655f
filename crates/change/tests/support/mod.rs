//! Hosts in memory, plans for them, and directories for their journals.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use linerate_change::{ChangeStore, KeepOptions, RollbackGuard, TrialOptions};
use linerate_model::change::{
    ChangeGroup, ChangePlan, ChangeReason, ChangeTarget, EffectTiming, HostChange, InterfaceIdentity, LinkAttribute,
};
use linerate_sys::host_access::{FakeHost, HostAccess, HostIdentity, InterfaceLocation};
use linerate_units::WallTime;

/// A directory that is removed when dropped; in memory where possible, as these tests write much.
#[derive(Debug)]
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let memory = Path::new("/dev/shm");
        let parent = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let name = format!("linerate-change-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        std::fs::create_dir_all(parent.join(&name)).expect("a scratch directory");
        Self(parent.join(name))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn store(&self) -> ChangeStore {
        ChangeStore::at(&self.0)
    }

    /// The journal of a set.
    pub(crate) fn journal(&self, id: u64) -> PathBuf {
        self.0.join("changes").join(id.to_string()).join("journal")
    }

    /// A store with this journal as its only one.
    pub(crate) fn with_journal(bytes: &[u8]) -> Self {
        let scratch = Self::new();
        let journal = scratch.journal(1);
        std::fs::create_dir_all(journal.parent().expect("it has one")).expect("room");
        std::fs::write(journal, bytes).expect("room");
        scratch
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(crate) const FILE: &str = "/etc/sysctl.d/90-linerate.conf";

/// Targets of the host in memory: several settings, one of each other kind.
pub(crate) fn target(number: usize) -> ChangeTarget {
    let interface = || "eth0".to_owned();
    match number {
        0..=3 => ChangeTarget::Setting { key: format!("net.ipv4.key{number}") },
        4 => ChangeTarget::Link { interface: interface(), attribute: LinkAttribute::Mtu },
        5 => ChangeTarget::Queueing { interface: interface() },
        6 => ChangeTarget::Route { destination: "default".to_owned() },
        _ => ChangeTarget::File { path: "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor".to_owned() },
    }
}

pub(crate) const TARGETS: usize = 8;

/// A value that the target can have.
pub(crate) fn value(target: &ChangeTarget, number: u8) -> String {
    match target {
        ChangeTarget::Queueing { interface } if number == 0 => {
            let _ = interface;
            "# made by the kernel: fq_codel".to_owned()
        }
        ChangeTarget::Queueing { interface } => format!("qdisc replace dev {interface} root fq maxrate {number}mbit"),
        ChangeTarget::Route { .. } => format!("via 192.0.2.1 dev eth0 initcwnd {number}"),
        ChangeTarget::Setting { .. } => format!("4096 {number} 6291456"),
        _ => number.to_string(),
    }
}

pub(crate) fn host() -> FakeHost {
    FakeHost::new((0..TARGETS).map(|number| (target(number), value(&target(number), 0))).collect())
}

/// A change of the target of that number; even ones are of one group, odd ones of another.
pub(crate) fn change(number: usize, to: u8) -> HostChange {
    let target = target(number);
    HostChange {
        to: value(&target, to),
        target,
        from: None,
        group: if number.is_multiple_of(2) { ChangeGroup::Buffers } else { ChangeGroup::Pacing },
        takes_effect: EffectTiming::Now,
        reason: ChangeReason { text: "required by a test".to_owned(), ..ChangeReason::default() },
    }
}

/// A change of a device.
pub(crate) fn device_change(target: ChangeTarget, to: &str) -> HostChange {
    HostChange { to: to.to_owned(), target, group: ChangeGroup::Device, ..change(0, 0) }
}

pub(crate) fn plan(changes: &[(usize, u8)]) -> ChangePlan {
    let changes = changes.iter().map(|(number, to)| change(*number, *to)).collect();
    ChangePlan { made_at: WallTime::from_unix(Duration::from_secs(1_795_161_279)), changes }
}

pub(crate) fn everything() -> ChangePlan {
    plan(&(0..TARGETS).map(|number| (number, 7)).collect::<Vec<_>>())
}

pub(crate) fn options() -> TrialOptions {
    TrialOptions {
        purpose: "a test".to_owned(),
        linerate_version: "0.1.0".to_owned(),
        guard: RollbackGuard::Unguarded,
        time_limit: Duration::from_secs(3600),
    }
}

pub(crate) fn keep() -> KeepOptions {
    KeepOptions { file: Some(FILE.into()), evidence: "a test".to_owned(), warnings: vec!["none".to_owned()] }
}

/// Values and files of a host.
pub(crate) fn state(host: &FakeHost) -> (BTreeMap<ChangeTarget, String>, BTreeMap<PathBuf, String>) {
    (host.values(), host.files())
}

/// A host on which this process is killed at a write: before it, or after it.
pub(crate) struct CrashingHost<'a> {
    pub(crate) host: &'a FakeHost,
    pub(crate) left: Cell<usize>,
    pub(crate) after: bool,
}

impl CrashingHost<'_> {
    fn step<T>(&self, write: impl FnOnce() -> T) -> T {
        let is_last = self.left.get() == 0;
        self.left.set(self.left.get().wrapping_sub(1));
        assert!(!is_last || self.after, "killed before a write, as a test");
        let done = write();
        assert!(!is_last, "killed after a write, as a test");
        done
    }
}

impl HostAccess for CrashingHost<'_> {
    fn read(&self, target: &ChangeTarget) -> linerate_sys::Result<Option<String>> {
        self.host.read(target)
    }

    fn write(&self, target: &ChangeTarget, value: Option<&str>) -> linerate_sys::Result<()> {
        self.step(|| self.host.write(target, value))
    }

    fn read_file(&self, path: &Path) -> linerate_sys::Result<Option<String>> {
        self.host.read_file(path)
    }

    fn replace_file(&self, path: &Path, contents: Option<&str>) -> linerate_sys::Result<()> {
        self.step(|| self.host.replace_file(path, contents))
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
