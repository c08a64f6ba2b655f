//! Kernel release, memory, and the privileges of this process.

use std::path::Path;

use linerate_model::fact::Fact;
use linerate_model::host::kernel::RunningKernel;
use linerate_model::host::memory::HostMemory;
use linerate_model::host::privileges::{CapabilitySet, ProcessPrivileges};
use linerate_units::ByteCount;

use super::{below, text};

/// Release of the running kernel.
pub(super) fn kernel(root: &Path) -> RunningKernel {
    RunningKernel { release: text(root, "proc/sys/kernel/osrelease").map(|release| release.trim().to_owned()) }
}

/// Memory, and TCP's part of it.
pub(super) fn memory(root: &Path) -> HostMemory {
    let page_size = ByteCount::from_usize(rustix::param::page_size());
    let sockets = match text(root, "proc/thread-self/net/sockstat") {
        Fact::Unknown(_) => text(root, "proc/net/sockstat"),
        known @ Fact::Known(_) => known,
    };
    let tcp = |word| field(&sockets, "/proc/net/sockstat", |text| sockstat_value(text, word));
    let pages = tcp("mem");
    let meminfo = text(root, "proc/meminfo");
    HostMemory {
        total: field(&meminfo, "/proc/meminfo", |text| kibibytes(text, "MemTotal")),
        available: field(&meminfo, "/proc/meminfo", |text| kibibytes(text, "MemAvailable")),
        tcp_in_use: pages.map(|pages| ByteCount::new(pages.saturating_mul(page_size.get()))),
        tcp_sockets: tcp("inuse"),
        page_size: Fact::Known(page_size),
    }
}

/// Value from a text that was read; failed when the text lacks it.
fn field<T>(text: &Fact<String>, path: &str, find: impl Fn(&str) -> Option<T>) -> Fact<T> {
    match text {
        Fact::Unknown(unread) => Fact::Unknown(unread.clone()),
        Fact::Known(text) => {
            find(text).map_or_else(|| Fact::failed(format!("{path} does not contain it")), Fact::Known)
        }
    }
}

fn kibibytes(text: &str, name: &str) -> Option<ByteCount> {
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    value.trim().strip_suffix(" kB")?.trim().parse().ok().map(ByteCount::from_kibibytes)
}

/// `TCP: inuse 1 orphan 0 tw 0 alloc 1 mem 35`.
fn sockstat_value(text: &str, word: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("TCP:"))?;
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    words.chunks(2).find(|pair| pair[0] == word)?.get(1)?.parse().ok()
}

/// Privileges of this process, and its namespaces.
pub(super) fn privileges(root: &Path) -> ProcessPrivileges {
    let status = text(root, "proc/thread-self/status");
    let status = if status.known().is_some() { status } else { text(root, "proc/self/status") };
    ProcessPrivileges {
        root: field(&status, "/proc/self/status", |text| {
            Some(status_line(text, "Uid:")?.split_ascii_whitespace().nth(1)? == "0")
        }),
        capabilities: field(&status, "/proc/self/status", |text| CapabilitySet::parse(status_line(text, "CapEff:")?)),
        initial_network_namespace: initial_network_namespace(root),
        initial_user_namespace: text(root, "proc/self/uid_map").map(|map| is_whole_map(&map)),
        container: container(root),
        settings_mounted_for_writing: text(root, "proc/self/mountinfo").map(|mounts| is_writable_mount(&mounts)),
    }
}

fn status_line<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

/// The first user namespace maps every number onto itself (`user_namespaces(7)`).
fn is_whole_map(map: &str) -> bool {
    map.split_ascii_whitespace().eq(["0", "0", "4294967295"])
}

/// Only the first network namespace has the settings of the whole host; that can be seen without privilege, while
/// `/proc/1/ns/net` cannot.
fn initial_network_namespace(root: &Path) -> Fact<bool> {
    if !below(root, "proc/sys/net/ipv4").is_dir() {
        return Fact::absent("/proc/sys/net/ipv4 is not there");
    }
    Fact::Known(below(root, "proc/sys/net/core/netdev_max_backlog").exists())
}

/// `/proc/sys` is read-only when it, or `/proc` where it is no mount of its own, is mounted so
/// (`proc_pid_mountinfo(5)`).
fn is_writable_mount(mounts: &str) -> bool {
    let option = |point: &str| {
        let lines = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        lines
            .filter(|fields| fields.get(4) == Some(&point))
            .filter_map(|fields| fields.get(5).copied().map(str::to_owned))
            .next_back()
    };
    let options = option("/proc/sys").or_else(|| option("/proc"));
    options.is_none_or(|options| options.split(',').all(|word| word != "ro"))
}

/// The number of the first process namespace, the same on every host (`PROC_PID_INIT_INO`, `include/linux/proc_ns.h`).
const INITIAL_PROCESS_NAMESPACE: &str = "pid:[4026531836]";

/// Files that container runtimes leave. A host that was unpacked from a container's image has them, too, but runs in
/// the first process namespace.
fn container(root: &Path) -> Fact<String> {
    let namespace = std::fs::read_link(below(root, "proc/self/ns/pid"));
    if namespace.is_ok_and(|name| name.as_os_str() == INITIAL_PROCESS_NAMESPACE) {
        return Fact::absent("this is the first process namespace of a host");
    }
    if below(root, "run/secrets/kubernetes.io").exists() || below(root, "var/run/secrets/kubernetes.io").exists() {
        return Fact::Known("kubernetes".to_owned());
    }
    if let Some(name) =
        text(root, "run/systemd/container").known().map(|name| name.trim()).filter(|name| !name.is_empty())
    {
        return Fact::Known(name.to_owned());
    }
    for (path, name) in [(".dockerenv", "docker"), ("run/.containerenv", "podman")] {
        if below(root, path).exists() {
            return Fact::Known(name.to_owned());
        }
    }
    Fact::absent("no container detected: none of /run/systemd/container, /.dockerenv, /run/.containerenv exists")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_and_sockets() {
        let text = "MemTotal:       24684096 kB\nMemFree: 1 kB\nMemAvailable:   24142300 kB\n";
        assert_eq!(kibibytes(text, "MemAvailable"), Some(ByteCount::from_kibibytes(24_142_300)));
        assert_eq!(kibibytes(text, "Mem"), None);
        let sockets = "sockets: used 13\nTCP: inuse 1 orphan 0 tw 0 alloc 1 mem 35\nUDP: inuse 0 mem 178\n";
        assert_eq!((sockstat_value(sockets, "mem"), sockstat_value(sockets, "inuse")), (Some(35), Some(1)));
        assert_eq!(sockstat_value("UDP: inuse 0 mem 178", "mem"), None);
        let here = memory(Path::new("/"));
        assert!(here.total.known() > here.available.known() && here.page_size.known() >= Some(&ByteCount::new(4096)));
        assert!(here.tcp_in_use.known().is_some(), "{here:?}");
    }

    #[test]
    fn rights_of_this_process() {
        let here = privileges(Path::new("/"));
        assert!(here.root.known().is_some() && here.capabilities.known().is_some(), "{here:?}");
        assert!(
            here.initial_network_namespace.known().is_some() && here.settings_mounted_for_writing.known().is_some()
        );
        assert!(kernel(Path::new("/")).version().is_some());
    }

    #[test]
    fn maps_and_mounts() {
        assert!(is_whole_map("         0          0 4294967295\n") && !is_whole_map("0 100000 65536\n"));
        let host = "22 27 0:21 / /proc rw,relatime - proc proc rw\n";
        let docker = format!("{host}23 22 0:21 /sys /proc/sys ro,nosuid - proc proc rw\n");
        assert!(is_writable_mount(host) && !is_writable_mount(&docker) && is_writable_mount(""));
        assert!(is_writable_mount(&format!("{docker}24 22 0:21 /sys /proc/sys rw - proc proc rw\n")));
    }
}
