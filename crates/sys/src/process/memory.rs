//! Memory and other limits of this process.

use std::fs;
use std::io;

use linerate_units::ByteCount;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::error::{Error, Result};

/// Memory of this process that is in RAM now (`/proc/self/statm`).
pub fn resident_memory() -> Result<ByteCount> {
    let failed = |cause| Error::system("reading /proc/self/statm", cause);
    let text = fs::read_to_string("/proc/self/statm").map_err(failed)?;
    let pages = resident_pages(&text).ok_or_else(|| failed(io::ErrorKind::InvalidData.into()))?;
    Ok(ByteCount::from_usize(rustix::param::page_size()) * pages)
}

/// The second field, in pages (`proc_pid_statm(5)`).
fn resident_pages(statm: &str) -> Option<u64> {
    statm.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Allows this process as many open files as the system lets it have without privilege: many clients at once need
/// them.
pub fn raise_open_file_limit() -> Result<()> {
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })
        .map_err(|cause| Error::system("raising the limit of open files", cause))
}

/// Number of files and sockets that this process may have open; the largest number where it is not limited.
#[must_use]
pub fn open_file_limit() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Keeps glibc from reserving an arena of memory for each thread, which a server with many short-lived threads would
/// never get back. Call it before threads are started. Does nothing under other C libraries.
pub fn limit_malloc_arenas() {
    #[cfg(target_env = "gnu")]
    // SAFETY: takes numbers; glibc locks what it changes.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 2);
    }
}

/// Gives memory that was freed back to the system. Does nothing under C libraries other than glibc.
pub fn release_free_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: takes a number; glibc locks what it changes.
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_field_is_the_resident_memory() {
        assert_eq!(resident_pages("10473 2291 1532 28 0 1270 0\n"), Some(2291));
        assert_eq!(resident_pages("10473"), None);
        assert_eq!(resident_pages(""), None);
        let now = resident_memory().expect("procfs");
        assert!(now > ByteCount::from_kibibytes(500) && now < ByteCount::from_mebibytes(1 << 20), "{now:?}");
    }

    #[test]
    fn freed_memory_can_be_released_at_any_time() {
        limit_malloc_arenas();
        drop(core::hint::black_box(vec![1_u8; 1 << 20]));
        release_free_memory();
        assert_eq!(vec![2_u8; 1 << 16].iter().map(|byte| u64::from(*byte)).sum::<u64>(), 2 << 16);
    }

    #[test]
    fn the_soft_limit_becomes_the_hard_one() {
        raise_open_file_limit().expect("within the hard limit");
        let limits = fs::read_to_string("/proc/self/limits").expect("procfs");
        let line = limits.lines().find(|line| line.starts_with("Max open files")).expect("is listed");
        let mut fields = line["Max open files".len()..].split_ascii_whitespace();
        let (soft, hard) = (fields.next(), fields.next());
        assert!(soft.is_some());
        let limit = soft.and_then(|soft| soft.parse().ok()).unwrap_or(u64::MAX);
        assert_eq!(open_file_limit(), limit);
        assert_eq!(soft, hard);
    }
}
