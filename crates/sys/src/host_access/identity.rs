//! Identity of the machine, its boot and its network namespace.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::HostIdentity;
use crate::error::{Error, Result};
use crate::host;

const OWN_NAMESPACE: &str = "/proc/thread-self/ns/net";

pub(super) fn identity() -> Result<HostIdentity> {
    let read = |path: &str| {
        fs::read_to_string(path)
            .map(|text| text.trim().to_owned())
            .map_err(|cause| Error::system(format!("reading {path}"), cause))
    };
    let namespace = number_of(Path::new(OWN_NAMESPACE))
        .map_err(|cause| Error::system(format!("reading {OWN_NAMESPACE}"), cause))?;
    Ok(HostIdentity {
        boot: read("/proc/sys/kernel/random/boot_id")?,
        machine: read("/etc/machine-id").ok().filter(|id| !id.is_empty()),
        namespace,
        kernel: host::kernel_release(),
    })
}

fn number_of(path: &Path) -> std::io::Result<u64> {
    fs::metadata(path).map(|metadata| metadata.ino())
}

/// Number of the calling thread's network namespace.
pub(super) fn own_namespace() -> Option<u64> {
    number_of(Path::new(OWN_NAMESPACE)).ok()
}

/// All network namespaces that have a file, each with its number: the named ones first, then those of all processes.
pub(super) fn namespaces() -> impl Iterator<Item = (u64, PathBuf)> {
    let named = fs::read_dir("/run/netns").into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    let of_process = |entry: fs::DirEntry| {
        let is_process = entry.file_name().to_str()?.bytes().all(|byte| byte.is_ascii_digit());
        is_process.then(|| entry.path().join("ns/net"))
    };
    let running = fs::read_dir("/proc").into_iter().flatten().filter_map(move |entry| of_process(entry.ok()?));
    named.chain(running).filter_map(|path| Some((number_of(&path).ok()?, path)))
}

pub(super) fn namespace_file(namespace: u64) -> Option<String> {
    namespaces().find(|(number, _)| *number == namespace).map(|(_, path)| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_host_is_itself() {
        let identity = identity().expect("procfs");
        assert_eq!(identity.boot.len(), 36);
        assert!(identity.namespace > 0 && !identity.kernel.is_empty());
        assert!(namespace_file(identity.namespace).is_some_and(|path| path.contains("net")));
        assert_eq!(namespace_file(1), None);
    }
}
