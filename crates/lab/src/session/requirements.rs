//! Checks that this host has what a guest needs, before anything is started.

use std::path::{Path, PathBuf};

use linerate_sys::resources::{self, FileSystemSpace};
use linerate_units::ByteCount;

use crate::session::SessionError;

/// Overhead of a guest's kernel in addition to its memory.
const KERNEL_OVERHEAD: ByteCount = ByteCount::from_mebibytes(64);

/// Directory for the guest's memory, a file without a name: the first with enough space for what will be taken of it.
/// In memory it is faster than on a disk, to which the kernel would begin to write it. The file itself is longer: it is
/// sparse.
pub(super) fn place_for_memory(memory: ByteCount) -> Result<PathBuf, SessionError> {
    let available = resources::available_memory()?;
    if available.size < memory + KERNEL_OVERHEAD {
        let problem = format!(
            "the guest needs {} MiB of memory, and this host has {} MiB ({})",
            (memory + KERNEL_OVERHEAD).get() >> 20,
            available.size.get() >> 20,
            available.limited_by
        );
        let advice = "end other programs, raise the limit, or choose a path with a smaller bandwidth-delay product: \
                      `linerate lab show` shows what the memory is for";
        return Err(SessionError::Missing { problem, advice: advice.into() });
    }
    let looked_at: Vec<_> = places().into_iter().map(|place| (resources::space_in(&place).ok(), place)).collect();
    choose(&looked_at, memory).map(Path::to_owned).ok_or_else(|| no_place(&looked_at, memory))
}

fn places() -> Vec<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = variable("XDG_CACHE_HOME").or_else(|| variable("HOME").map(|home| home.join(".cache")));
    let in_order = [Some(PathBuf::from("/dev/shm")), variable("TMPDIR"), Some(PathBuf::from("/tmp")), cache];
    let mut places: Vec<PathBuf> = in_order.into_iter().flatten().filter(|place| place.is_absolute()).collect();
    places.dedup();
    places
}

fn choose(places: &[(Option<FileSystemSpace>, PathBuf)], memory: ByteCount) -> Option<&Path> {
    let suits = |space: &FileSystemSpace| space.writable && space.executable && space.free > memory;
    places.iter().find_map(|(space, place)| space.as_ref().filter(|space| suits(space)).map(|_| place.as_path()))
}

fn no_place(places: &[(Option<FileSystemSpace>, PathBuf)], memory: ByteCount) -> SessionError {
    let list = places.iter().map(|(space, place)| format!("{} {}", place.display(), verdict(*space)));
    SessionError::Missing {
        problem: format!(
            "no directory fits the guest's memory of {} MiB: {}",
            memory.get() >> 20,
            list.collect::<Vec<_>>().join(", ")
        ),
        advice: "set TMPDIR to a directory with enough space, from which programs may be run; in a container enlarge \
                 /dev/shm (docker run --shm-size)"
            .into(),
    }
}

fn verdict(space: Option<FileSystemSpace>) -> String {
    match space {
        None => "is not there".into(),
        Some(space) if !space.writable => "may not be written to".into(),
        Some(space) if !space.executable => "is mounted noexec".into(),
        Some(space) => format!("has {} MiB", space.free.get() >> 20),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space(mebibytes: u64) -> FileSystemSpace {
        FileSystemSpace {
            free: ByteCount::from_mebibytes(mebibytes),
            writable: true,
            executable: true,
            in_memory: true,
        }
    }

    #[test]
    fn the_first_suitable_directory() {
        let places = vec![
            (Some(space(64)), PathBuf::from("/small")),
            (Some(FileSystemSpace { executable: false, ..space(9000) }), "/noexec".into()),
            (Some(FileSystemSpace { writable: false, ..space(9000) }), "/readonly".into()),
            (None, "/absent".into()),
            (Some(space(9000)), "/large".into()),
        ];
        let memory = ByteCount::from_mebibytes(512);
        assert_eq!(choose(&places, memory), Some(Path::new("/large")));
        assert_eq!(
            no_place(&places[..4], memory).to_string(),
            "no directory fits the guest's memory of 512 MiB: /small has 64 MiB, /noexec is mounted noexec, /readonly may not \
             be written to, /absent is not there"
        );
    }

    #[test]
    fn more_memory_than_any_host_has_is_refused_with_the_figures() {
        let error = place_for_memory(ByteCount::from_mebibytes(1 << 30)).expect_err("a pebibyte");
        let text = error.to_string();
        assert!(text.starts_with("the guest needs 1073741888 MiB of memory, and this host has "), "{text}");
        assert!(error.advice().is_some());
    }
}
