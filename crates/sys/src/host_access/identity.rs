//! Identity of the machine, its boot and its network namespace.

use std::fs;
use std::path::PathBuf;

use super::HostIdentity;
use crate::error::{Error, Result};
use crate::host;
use crate::namespace::{self, number_of};

pub(super) fn identity() -> Result<HostIdentity> {
    let read = |path: &str| {
        fs::read_to_string(path)
            .map(|text| text.trim().to_owned())
            .map_err(|cause| Error::system(format!("reading {path}"), cause))
    };
    let own = namespace::own_file();
    let namespace = number_of(&own).map_err(|cause| Error::system(format!("reading {}", own.display()), cause))?;
    Ok(HostIdentity {
        boot: read("/proc/sys/kernel/random/boot_id")?,
        machine: read("/etc/machine-id").ok().filter(|id| !id.is_empty()),
        namespace,
        namespace_cookie: namespace::own_cookie(),
        kernel: host::kernel_release(),
    })
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
        assert!(identity.shares_namespace(&super::identity().expect("procfs")));
        let renewed =
            HostIdentity { namespace_cookie: identity.namespace_cookie.map(|cookie| cookie + 1), ..identity.clone() };
        let unknown = HostIdentity { namespace_cookie: None, ..identity.clone() };
        assert!(identity.shares_namespace(&unknown) && (renewed == unknown || !identity.shares_namespace(&renewed)));
    }
}
