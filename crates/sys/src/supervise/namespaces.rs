//! Private namespaces: they have no name, and go when their last process does.

use std::fs;

use rustix::process::{getegid, geteuid};
use rustix::thread::UnshareFlags;

use crate::error::{Error, Result};
use crate::namespace::unshare;
use crate::process::is_root;

/// Namespaces that the started programs, or this process, share with no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamespaceIsolation {
    /// Process identifiers: the next child is process 1 of a new namespace, and when it ends the kernel kills all
    /// others there. Made with a user namespace around it when this process may not make one otherwise; the user and
    /// the group stay the same, others look like `nobody` in it.
    Processes,
    /// Mounts and network of this process itself, from now on. Needs root.
    MountsAndNetwork,
}

/// Makes and enters new namespaces. An error leaves this process as it was, except when the user could not
/// be carried over: then only ending is left.
pub fn isolate(isolation: NamespaceIsolation) -> Result<()> {
    match isolation {
        NamespaceIsolation::Processes => isolate_processes(),
        NamespaceIsolation::MountsAndNetwork => unshare(UnshareFlags::NEWNS | UnshareFlags::NEWNET).map_err(|cause| {
            Error::system("making a mount and a network namespace", cause).hint_on(libc::EPERM, "be root")
        }),
    }
}

fn isolate_processes() -> Result<()> {
    if is_root() && unshare(UnshareFlags::NEWPID).is_ok() {
        return Ok(());
    }
    let (user, group) = (geteuid(), getegid());
    let hint = "this system does not allow users to create namespaces";
    unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWPID)
        .map_err(|cause| Error::system("making a process namespace", cause).hint_on(libc::EPERM, hint))?;
    let write = |file: &str, text: &str| {
        fs::write(format!("/proc/self/{file}"), text)
            .map_err(|cause| Error::system(format!("mapping user {user} into a user namespace ({file})"), cause))
    };
    // Without this the kernel does not let a user map a group.
    write("setgroups", "deny")?;
    write("uid_map", &format!("{user} {user} 1"))?;
    write("gid_map", &format!("{group} {group} 1"))
}

#[cfg(test)]
mod tests {
    use rustix::process::{Pid, WaitOptions, waitpid};

    use super::*;
    use crate::process::exit_at_once;

    /// The change is for good, so it is tried in a child process; not as root, so that it needs a user namespace.
    #[test]
    fn a_process_namespace_or_a_clean_refusal() {
        // SAFETY: the child uses the allocator, which the C library keeps usable after a fork, and no other lock.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let code = match isolate(NamespaceIsolation::Processes) {
                Ok(()) => i32::from(!next_child_is_first()),
                Err(error) => i32::from(error.errno().is_none()),
            };
            exit_at_once(code);
        }
        assert_eq!(exit_code(child), Some(0));
    }

    fn exit_code(child: i32) -> Option<i32> {
        let (_, status) = waitpid(Pid::from_raw(child), WaitOptions::empty()).expect("ours").expect("it has ended");
        status.exit_status()
    }

    fn next_child_is_first() -> bool {
        // SAFETY: as in the test.
        let child = unsafe { libc::fork() };
        if child == 0 {
            exit_at_once(i32::from(std::process::id() != 1));
        }
        exit_code(child) == Some(0)
    }
}
