//! Features of the kernel that linerate uses where they exist, each tried. No version is read: distributions add features
//! to old versions, and containers forbid them in new ones.

use std::path::Path;

use rustix::process::{PidfdFlags, getpid, pidfd_open};

use crate::error::{Error, Result};
use crate::netlink::NetlinkSocket;

/// Texts about errors in requests to the routing subsystem (`NETLINK_EXT_ACK`, Linux 4.12).
pub fn error_texts() -> Result<()> {
    NetlinkSocket::route_with_extack()
        .map(drop)
        .map_err(|cause| Error::system("asking the routing subsystem for texts about errors (NETLINK_EXT_ACK)", cause))
}

/// Descriptors of processes (`pidfd_open(2)`, Linux 5.3).
pub fn process_descriptors() -> Result<()> {
    pidfd_open(getpid(), PidfdFlags::empty())
        .map(drop)
        .map_err(|cause| Error::system("opening a descriptor of this process (pidfd_open)", cause))
}

/// Files of the calling thread (`/proc/thread-self`, Linux 3.17).
pub fn thread_files() -> Result<()> {
    Path::new("/proc/thread-self")
        .metadata()
        .map(drop)
        .map_err(|cause| Error::system("looking for /proc/thread-self", cause))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernels that tests run on have them all.
    #[test]
    fn this_kernel_has_them() {
        error_texts().expect("Linux 4.12");
        process_descriptors().expect("Linux 5.3");
        thread_files().expect("Linux 3.17");
    }
}
