//! Resources that this host has to spare: memory, space in directories, processors.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use linerate_model::parameters::CpuIndex;
use linerate_units::ByteCount;
use rustix::fs::{Access, StatVfsMountFlags, access, statfs, statvfs};

use crate::error::{Error, Result, check};
use crate::supervise;

/// Memory available to programs without swapping, and its limiting factor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AvailableMemory {
    /// Available memory.
    pub size: ByteCount,
    /// `MemAvailable in /proc/meminfo`, or the control group whose limit is tighter.
    pub limited_by: String,
}

/// Memory available to this process and its children: the system's, or the remainder in the control groups of this
/// process if that is less.
pub fn available_memory() -> Result<AvailableMemory> {
    let operation = "reading MemAvailable from /proc/meminfo";
    let text = fs::read_to_string("/proc/meminfo").map_err(|cause| Error::system(operation, cause))?;
    let size = meminfo_available(&text).ok_or_else(|| Error::refused(operation, "it has no such line"))?;
    let system = AvailableMemory { size, limited_by: "MemAvailable in /proc/meminfo".into() };
    Ok(control_group_memory()
        .into_iter()
        .fold(system, |least, group| if group.size < least.size { group } else { least }))
}

fn meminfo_available(text: &str) -> Option<ByteCount> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok().map(ByteCount::from_kibibytes)
}

/// Remaining memory of each control group with a limit, from this process's up to the root.
fn control_group_memory() -> Vec<AvailableMemory> {
    let text = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    text.lines()
        .filter_map(group_directory)
        .flat_map(|(root, path)| levels(&root, &path))
        .filter_map(|level| remaining_memory(&level))
        .collect()
}

/// The mount point and the path in it, from a line `ID:CONTROLLERS:PATH`.
fn group_directory(line: &str) -> Option<(PathBuf, String)> {
    let mut fields = line.splitn(3, ':');
    let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
    let root = match controllers {
        "" => "/sys/fs/cgroup",
        "memory" => "/sys/fs/cgroup/memory",
        _ => return None,
    };
    Some((root.into(), path.trim_start_matches('/').to_owned()))
}

/// The group's directory and those above it. In a container the path may be of the host: then only the root exists.
fn levels(root: &Path, path: &str) -> Vec<PathBuf> {
    let group = root.join(path);
    group.ancestors().take_while(|level| level.starts_with(root)).map(Path::to_owned).collect()
}

fn remaining_memory(group: &Path) -> Option<AvailableMemory> {
    let number = |name: &str| fs::read_to_string(group.join(name)).ok()?.trim().parse::<u64>().ok();
    // The first names are of version 2, whose limit may be the text "max"; the others of version 1.
    let limit = number("memory.max").or_else(|| number("memory.limit_in_bytes"))?;
    let used = number("memory.current").or_else(|| number("memory.usage_in_bytes"))?;
    let statistics = fs::read_to_string(group.join("memory.stat")).unwrap_or_default();
    let left = limit.saturating_sub(used.saturating_sub(cached(&statistics)));
    Some(AvailableMemory { size: ByteCount::new(left), limited_by: format!("the control group {}", group.display()) })
}

/// File contents that the kernel drops when memory is short.
fn cached(statistics: &str) -> u64 {
    let value = |name: &str| {
        statistics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse::<u64>().ok())
    };
    value("total_inactive_file").or_else(|| value("inactive_file")).unwrap_or(0)
}

/// A file system, seen from a directory in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileSystemSpace {
    /// Bytes that may still be written there.
    pub free: ByteCount,
    /// True when this user may create files there.
    pub writable: bool,
    /// True when programs may be run from it (not mounted `noexec`).
    pub executable: bool,
    /// True when it is in memory (`tmpfs`): files there use up memory.
    pub in_memory: bool,
}

/// Free space of this directory's file system, for this user.
pub fn space_in(directory: &Path) -> Result<FileSystemSpace> {
    let operation = || format!("asking for the space in {}", directory.display());
    let space = statvfs(directory).map_err(|cause| Error::system(operation(), cause))?;
    let kind = statfs(directory).map_err(|cause| Error::system(operation(), cause))?;
    Ok(FileSystemSpace {
        writable: access(directory, Access::WRITE_OK | Access::EXEC_OK).is_ok(),
        free: ByteCount::new(space.f_bavail.saturating_mul(space.f_frsize)),
        executable: !space.f_flag.contains(StatVfsMountFlags::NOEXEC),
        in_memory: kind.f_type == libc::TMPFS_MAGIC,
    })
}

/// The processors that this process may use.
pub fn allowed_processors() -> Result<Vec<CpuIndex>> {
    let failed = |cause| Error::system("asking which processors this process may use", cause);
    let bits = libc::c_ulong::BITS as usize;
    // The kernel refuses masks with fewer bits than it has processors.
    let mut mask: Vec<libc::c_ulong> = vec![0; (usize::from(u16::MAX) + 1) / bits];
    // SAFETY: the pointer and length in bytes describe `mask`, which is ours alone.
    let answer = unsafe {
        libc::sched_getaffinity(0, size_of_val(mask.as_slice()), mask.as_mut_ptr().cast::<libc::cpu_set_t>())
    };
    check(answer).map_err(failed)?;
    let used = mask.iter().enumerate().filter(|(_, word)| **word != 0);
    let allowed =
        used.flat_map(|(word, set)| (0..bits).filter(move |bit| set >> bit & 1 == 1).map(move |bit| word * bits + bit));
    Ok(allowed.filter_map(|index| u16::try_from(index).ok()).map(CpuIndex).collect())
}

/// Last processor of each thread that runs or could run now, which shows the current load of each processor. This
/// thread is not counted.
pub fn runnable_threads() -> Result<Vec<CpuIndex>> {
    let failed = |cause| Error::system("listing the processes in /proc", cause);
    let own = format!("/proc/{}", std::process::id());
    let mut running = Vec::new();
    for process in fs::read_dir("/proc").map_err(failed)? {
        let path = process.map_err(failed)?.path();
        let number = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.parse::<u32>().ok());
        if number.is_none() || path == Path::new(&own) {
            continue;
        }
        // A process that has ended meanwhile runs nowhere.
        let Ok(threads) = fs::read_dir(path.join("task")) else { continue };
        let stat = |thread: io::Result<fs::DirEntry>| fs::read_to_string(thread.ok()?.path().join("stat")).ok();
        let states = threads.filter_map(stat).filter_map(|stat| supervise::parse_state(&stat));
        running.extend(states.filter(|state| state.letter == 'R').filter_map(|state| state.processor).map(CpuIndex));
    }
    Ok(running)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_systems_memory() {
        let text = "MemTotal:       24684124 kB\nMemFree:        1 kB\nMemAvailable:   24245696 kB\n";
        assert_eq!(meminfo_available(text), Some(ByteCount::from_kibibytes(24_245_696)));
        assert_eq!(meminfo_available("MemTotal: 1 kB\n"), None);
        let now = available_memory().expect("procfs");
        assert!(now.size > ByteCount::ZERO && now.size < ByteCount::from_mebibytes(1 << 26), "{now:?}");
    }

    #[test]
    fn a_control_group_and_those_above_it() {
        assert_eq!(group_directory("0::/a/b"), Some(("/sys/fs/cgroup".into(), "a/b".into())));
        assert_eq!(group_directory("4:memory:/"), Some(("/sys/fs/cgroup/memory".into(), String::new())));
        assert_eq!(group_directory("9:name=systemd:/"), None);
        let levels = levels(Path::new("/sys/fs/cgroup"), "a/b");
        assert_eq!(levels, ["/sys/fs/cgroup/a/b", "/sys/fs/cgroup/a", "/sys/fs/cgroup"].map(PathBuf::from));
    }

    #[test]
    fn cached_files_count_as_free() {
        let directory = std::env::temp_dir().join(format!("linerate-sys-group-{}", std::process::id()));
        fs::create_dir_all(&directory).expect("temporary directory");
        let write = |name: &str, text: &str| fs::write(directory.join(name), text).expect("writable");
        write("memory.max", "max\n");
        write("memory.current", "700\n");
        write("memory.stat", "anon 5\ninactive_file 300\n");
        assert_eq!(remaining_memory(&directory), None, "no limit");
        write("memory.max", "1000\n");
        assert_eq!(remaining_memory(&directory).map(|left| left.size), Some(ByteCount::new(600)), "1000 - (700 - 300)");
        fs::remove_dir_all(&directory).expect("there");
    }

    #[test]
    fn space_and_kind_of_a_file_system() {
        let space = space_in(Path::new("/proc")).expect("mounted");
        assert_eq!((space.free, space.in_memory), (ByteCount::ZERO, false));
        let error = space_in(Path::new("/no/such/directory")).expect_err("not there");
        assert!(error.to_string().starts_with("asking for the space in /no/such/directory: No such file"), "{error}");
    }

    #[test]
    fn processors_and_what_runs_on_them() {
        let allowed = allowed_processors().expect("Linux reports them");
        assert!(allowed.is_sorted() && allowed.len() <= 1 << 16, "{allowed:?}");
        assert!(crate::process::current_cpu().is_some_and(|here| allowed.contains(&here)));
        // Another process that never sleeps is seen where it runs.
        let script = "while :; do :; done";
        let mut busy = std::process::Command::new("sh").args(["-c", script]).spawn().expect("every system has a shell");
        let seen = (0..1000).any(|_| runnable_threads().is_ok_and(|running| !running.is_empty()));
        busy.kill().expect("is our child");
        busy.wait().expect("is our child");
        assert!(seen, "a busy process was not seen");
    }
}
