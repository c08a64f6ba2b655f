//! Processes that have a socket open: `/proc/PID/fd` against the sockets' inodes.
//!
//! The kernel does not report them, so the descriptors of all processes must be searched. Results are kept, and
//! searches that come too often are delayed: at most a fiftieth of the time is spent on them.

use core::time::Duration;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::path::Path;

use linerate_model::fact::Fact;
use linerate_model::socket::{ProcessId, SocketInode, SocketOwner};
use linerate_units::MonotonicTime;

use crate::clock;

/// Pause after a search, in multiples of its duration.
const SEARCH_PAUSE_FACTOR: u32 = 50;
/// Time after which sockets without an owner are searched again.
const MISSING_RETRY_INTERVAL: Duration = Duration::from_secs(10);

/// The processes that have the host's sockets open, as far as they were looked for.
#[derive(Debug)]
pub struct SocketOwners {
    by_inode: HashMap<SocketInode, KnownOwner>,
    processes: HashMap<ProcessId, String>,
    /// Earliest time of the next search.
    next: Option<MonotonicTime>,
    not_open: Fact<SocketOwner>,
    not_looked_for: Fact<SocketOwner>,
    no_owner: Fact<SocketOwner>,
}

#[derive(Debug)]
enum KnownOwner {
    Owned(Fact<SocketOwner>),
    Missing { looked_for: MonotonicTime },
}

impl Default for SocketOwners {
    fn default() -> Self {
        Self {
            by_inode: HashMap::new(),
            processes: HashMap::new(),
            next: None,
            not_open: Fact::absent("no process has it open any more: the kernel ends the connection"),
            not_looked_for: Fact::default(),
            no_owner: Fact::default(),
        }
    }
}

impl SocketOwners {
    /// Nothing is known yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Searches the processes that have these sockets open, where it is not known yet; forgets all other sockets, and
    /// processes that have ended.
    pub fn refresh(&mut self, sockets: impl Iterator<Item = SocketInode>) {
        let now = clock::monotonic_now();
        let there: HashSet<SocketInode> = sockets.collect();
        self.processes.retain(|process, _| Path::new(&format!("/proc/{process}")).exists());
        let alive = |known: &KnownOwner, processes: &HashMap<ProcessId, String>| match known {
            KnownOwner::Owned(owner) => owner.known().is_some_and(|owner| processes.contains_key(&owner.process)),
            KnownOwner::Missing { looked_for } => now.since(*looked_for) < MISSING_RETRY_INTERVAL,
        };
        self.by_inode.retain(|inode, known| there.contains(inode) && alive(known, &self.processes));
        let mut wanted: HashSet<SocketInode> =
            there.into_iter().filter(|inode| !self.by_inode.contains_key(inode)).collect();
        if wanted.is_empty() || self.next.is_some_and(|next| now < next) {
            return;
        }
        let hidden = self.search(&mut wanted);
        for inode in wanted {
            self.by_inode.insert(inode, KnownOwner::Missing { looked_for: now });
        }
        self.no_owner = no_owner(hidden);
        let end = clock::monotonic_now();
        self.next = Some(end + end.since(now) * SEARCH_PAUSE_FACTOR);
    }

    /// The process that has the socket with this inode open, as of the last search; `None` is a socket without one.
    /// With several, the one with the lowest number.
    #[must_use]
    pub fn owner(&self, inode: Option<SocketInode>) -> &Fact<SocketOwner> {
        let Some(inode) = inode else { return &self.not_open };
        match self.by_inode.get(&inode) {
            Some(KnownOwner::Owned(owner)) => owner,
            Some(KnownOwner::Missing { .. }) => &self.no_owner,
            None => &self.not_looked_for,
        }
    }

    /// Removes found sockets from `wanted`; returns the number of processes that hid their descriptors.
    fn search(&mut self, wanted: &mut HashSet<SocketInode>) -> usize {
        let mut hidden = 0;
        for process in processes() {
            if wanted.is_empty() {
                break;
            }
            hidden += usize::from(self.search_process(process, wanted).is_err_and(|error| is_denied(&error)));
        }
        hidden
    }

    fn search_process(&mut self, process: ProcessId, wanted: &mut HashSet<SocketInode>) -> io::Result<()> {
        let mut name = None;
        for entry in fs::read_dir(format!("/proc/{process}/fd"))? {
            let target = match entry.and_then(|entry| fs::read_link(entry.path())) {
                Ok(target) => target,
                // In other user namespaces the list may be visible and its targets not.
                Err(cause) if is_denied(&cause) => return Err(cause),
                // A descriptor that has been closed meanwhile is none of ours.
                Err(_) => continue,
            };
            let Some(inode) = socket_inode(&target).filter(|inode| wanted.remove(inode)) else { continue };
            let name = name.get_or_insert_with(|| name_of(process));
            let owner = SocketOwner { process, name: name.clone() };
            self.by_inode.insert(inode, KnownOwner::Owned(Fact::Known(owner)));
        }
        if let Some(name) = name {
            self.processes.insert(process, name);
        }
        Ok(())
    }
}

fn no_owner(hidden: usize) -> Fact<SocketOwner> {
    if hidden == 0 {
        return Fact::absent(
            "no process that can be seen from here has it open: it is the kernel's own, or of another container",
        );
    }
    let processes = if hidden == 1 { "process".to_owned() } else { format!("{hidden} processes") };
    Fact::denied(format!(
        "it belongs to another user's process, or to the kernel: root sees whose sockets they are (/proc/PID/fd of \
         {processes}: Permission denied)"
    ))
}

fn is_denied(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied
}

/// The processes, by number.
fn processes() -> Vec<ProcessId> {
    let names = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut processes: Vec<ProcessId> =
        names.filter_map(|entry| entry.file_name().to_str()?.parse().ok().map(ProcessId)).collect();
    processes.sort_unstable();
    processes
}

fn name_of(process: ProcessId) -> String {
    fs::read(format!("/proc/{process}/comm")).map_or_else(
        |_| "?".to_owned(),
        |name| String::from_utf8_lossy(&name).trim_end().chars().map(printable).collect(),
    )
}

/// Processes choose their names themselves; control characters are not shown.
fn printable(character: char) -> char {
    if character.is_control() { '?' } else { character }
}

/// The number in `socket:[NUMBER]`.
fn socket_inode(target: &Path) -> Option<SocketInode> {
    target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok().map(SocketInode)
}
