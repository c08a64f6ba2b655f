//! Hosts in memory, plans for them, and places for their journals.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses a part")]

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use linerate_change::{Guard, Keep, Options, Store};
use linerate_model::change::{Change, Group, LinkAttribute, Plan, Reason, TakesEffect, Target};
use linerate_sys::host_access::{FakeHost, Host, Identity};
use linerate_units::WallTime;

/// A directory that is gone with its owner; in memory where that is possible, as these tests write much.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let memory = Path::new("/dev/shm");
        let parent = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let name = format!("linerate-change-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        std::fs::create_dir_all(parent.join(&name)).expect("a scratch directory");
        Self(parent.join(name))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn store(&self) -> Store {
        Store::at(&self.0)
    }

    /// The journal of a set.
    pub fn journal(&self, id: u64) -> PathBuf {
        self.0.join("changes").join(id.to_string()).join("journal")
    }

    /// A store with this journal as its only one.
    pub fn with_journal(bytes: &[u8]) -> Self {
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

pub const FILE: &str = "/etc/sysctl.d/90-linerate.conf";

/// The places of the host in memory: of each kind one, settings several.
pub fn target(number: usize) -> Target {
    let interface = || "eth0".to_owned();
    match number {
        0..=3 => Target::Setting { key: format!("net.ipv4.key{number}") },
        4 => Target::Link { interface: interface(), attribute: LinkAttribute::Mtu },
        5 => Target::Queueing { interface: interface() },
        6 => Target::Route { destination: "default".to_owned() },
        _ => Target::File { path: "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor".to_owned() },
    }
}

pub const TARGETS: usize = 8;

/// Something that can stand there.
pub fn value(target: &Target, number: u8) -> String {
    match target {
        Target::Queueing { interface } if number == 0 => {
            let _ = interface;
            "# made by the kernel: fq_codel".to_owned()
        }
        Target::Queueing { interface } => format!("qdisc replace dev {interface} root fq maxrate {number}mbit"),
        Target::Route { .. } => format!("via 192.0.2.1 dev eth0 initcwnd {number}"),
        Target::Setting { .. } => format!("4096 {number} 6291456"),
        _ => number.to_string(),
    }
}

pub fn host() -> FakeHost {
    FakeHost::new((0..TARGETS).map(|number| (target(number), value(&target(number), 0))).collect())
}

/// A change of the target of that number; even ones are of one group, odd ones of another.
pub fn change(number: usize, to: u8) -> Change {
    let target = target(number);
    Change {
        to: value(&target, to),
        target,
        from: None,
        group: if number.is_multiple_of(2) { Group::Buffers } else { Group::Pacing },
        takes_effect: TakesEffect::Now,
        reason: Reason { text: "a test says so".to_owned(), ..Reason::default() },
    }
}

pub fn plan(changes: &[(usize, u8)]) -> Plan {
    let changes = changes.iter().map(|(number, to)| change(*number, *to)).collect();
    Plan { made_at: WallTime::from_unix(Duration::from_secs(1_795_161_279)), changes }
}

pub fn everything() -> Plan {
    plan(&(0..TARGETS).map(|number| (number, 7)).collect::<Vec<_>>())
}

pub fn options() -> Options {
    Options {
        purpose: "a test".to_owned(),
        linerate_version: "0.1.0".to_owned(),
        guard: Guard::Nobody,
        time_limit: Duration::from_secs(3600),
    }
}

pub fn keep() -> Keep {
    Keep { file: Some(FILE.into()), evidence: "a test".to_owned(), warnings: vec!["none".to_owned()] }
}

/// What a host has, and its files.
pub fn state(host: &FakeHost) -> (BTreeMap<Target, String>, BTreeMap<PathBuf, String>) {
    (host.values(), host.files())
}

/// A host on which this process is killed at a write: before it, or after it.
pub struct Deadly<'a> {
    pub host: &'a FakeHost,
    pub left: Cell<usize>,
    pub after: bool,
}

impl Deadly<'_> {
    fn step<T>(&self, write: impl FnOnce() -> T) -> T {
        let is_last = self.left.get() == 0;
        self.left.set(self.left.get().wrapping_sub(1));
        assert!(!is_last || self.after, "killed before a write, as a test");
        let done = write();
        assert!(!is_last, "killed after a write, as a test");
        done
    }
}

impl Host for Deadly<'_> {
    fn read(&self, target: &Target) -> linerate_sys::Result<Option<String>> {
        self.host.read(target)
    }

    fn write(&self, target: &Target, value: Option<&str>) -> linerate_sys::Result<()> {
        self.step(|| self.host.write(target, value))
    }

    fn read_file(&self, path: &Path) -> linerate_sys::Result<Option<String>> {
        self.host.read_file(path)
    }

    fn replace_file(&self, path: &Path, contents: Option<&str>) -> linerate_sys::Result<()> {
        self.step(|| self.host.replace_file(path, contents))
    }

    fn identity(&self) -> linerate_sys::Result<Identity> {
        self.host.identity()
    }

    fn way_into_namespace(&self, namespace: u64) -> Option<String> {
        self.host.way_into_namespace(namespace)
    }
}
