//! Namespaces that nobody else is in: they have no name, and go when their last process does.

use std::fs;
use std::io;

use crate::error::{Error, Result, check};
use crate::process::is_root;

/// What the processes that this one starts share with nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// Process identifiers: the next child is process 1 of a new namespace, and when it ends the kernel kills all others
    /// there. Made with a user namespace around it when this process may not make one otherwise; the user and the group
    /// stay the same, others look like `nobody` in it.
    Processes,
    /// Mounts and network of this process itself, from now on. Needs root.
    MountsAndNetwork,
}

/// Makes and enters new namespaces. An error leaves this process as it was, except when it says that the user could not
/// be carried over: then only ending is left.
pub fn isolate(isolation: Isolation) -> Result<()> {
    match isolation {
        Isolation::Processes => isolate_processes(),
        Isolation::MountsAndNetwork => unshare(libc::CLONE_NEWNS | libc::CLONE_NEWNET).map_err(|cause| {
            Error::system("making a mount and a network namespace", cause).hint_on(libc::EPERM, "be root")
        }),
    }
}

fn isolate_processes() -> Result<()> {
    if is_root() && unshare(libc::CLONE_NEWPID).is_ok() {
        return Ok(());
    }
    // SAFETY: both take nothing and cannot fail.
    let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
    let hint = "this system does not let users make namespaces";
    unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWPID)
        .map_err(|cause| Error::system("making a process namespace", cause).hint_on(libc::EPERM, hint))?;
    let write = |file: &str, text: &str| {
        fs::write(format!("/proc/self/{file}"), text)
            .map_err(|cause| Error::system(format!("carrying user {user} over into a user namespace ({file})"), cause))
    };
    // Without this the kernel does not let a user map a group.
    write("setgroups", "deny")?;
    write("uid_map", &format!("{user} {user} 1"))?;
    write("gid_map", &format!("{group} {group} 1"))
}

fn unshare(flags: libc::c_int) -> io::Result<()> {
    // SAFETY: takes a number; descriptors, memory and threads stay as they are with these flags.
    check(unsafe { libc::unshare(flags) }).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The change is for good, so it is tried in a child process; not as root, so that it needs a user namespace.
    #[test]
    fn a_process_namespace_or_a_clean_refusal() {
        // SAFETY: the child uses the allocator, which the C library keeps usable after a fork, and no other lock.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let code = match isolate(Isolation::Processes) {
                Ok(()) => i32::from(!next_child_is_first()),
                Err(error) => i32::from(error.errno().is_none()),
            };
            // SAFETY: ends the child at once.
            unsafe { libc::_exit(code) };
        }
        let mut status = -1;
        // SAFETY: `status` is ours alone; the child is ours to wait for.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 0);
    }

    fn next_child_is_first() -> bool {
        // SAFETY: as in the test.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: takes nothing; then ends the process at once.
            unsafe { libc::_exit(i32::from(libc::getpid() != 1)) };
        }
        let mut status = -1;
        // SAFETY: `status` is ours alone; the child is ours to wait for.
        unsafe { libc::waitpid(child, &raw mut status, 0) == child && status == 0 }
    }
}
