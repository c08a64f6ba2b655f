//! Waiting for the end of a child process next to other events.

use std::io;
use std::os::fd::OwnedFd;
use std::process::Child;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, WaitId, WaitIdOptions, pidfd_open, waitid};

/// A descriptor that becomes readable when the child has ended. The child must not have been waited for, so that its
/// number is still its own.
pub(crate) fn ending(child: &Child) -> io::Result<OwnedFd> {
    ending_with(Pid::from_child(child), |child| pidfd_open(child, PidfdFlags::empty()))
}

/// [`ending`] with this system call. Kernels before 5.3 have no `pidfd_open`; some containers do not allow it.
fn ending_with(child: Pid, open: impl FnOnce(Pid) -> Result<OwnedFd, Errno>) -> io::Result<OwnedFd> {
    match open(child) {
        Err(Errno::NOSYS | Errno::PERM) => ending_in_thread(child),
        other => Ok(other?),
    }
}

/// A pipe, which a thread that waits for the child closes.
fn ending_in_thread(child: Pid) -> io::Result<OwnedFd> {
    let (reader, writer) = io::pipe()?;
    let wait = move || {
        // The child stays to be reaped by its owner; one that is reaped already has ended as well.
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while matches!(waitid(WaitId::Pid(child), options), Err(Errno::INTR)) {}
        drop(writer);
    };
    std::thread::Builder::new().name("child".into()).spawn(wait)?;
    Ok(reader.into())
}

#[cfg(test)]
mod tests {
    use core::time::Duration;
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Command, Stdio};

    use super::*;
    use crate::poll::{PollInterest, wait_for};

    const LONG: Duration = Duration::from_secs(20);

    #[test]
    fn the_end_is_noticed_without_pidfd_open() {
        for refusal in [None, Some(Errno::NOSYS), Some(Errno::PERM)] {
            let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().expect("every system has it");
            let open = |child| refusal.map_or_else(|| pidfd_open(child, PidfdFlags::empty()), Err);
            let end = ending_with(Pid::from_child(&child), open).expect("descriptors");
            assert!(!wait_for(&end, PollInterest::READ, Some(Duration::ZERO)).expect("poll"), "{refusal:?}");
            child.kill().expect("running");
            assert!(wait_for(&end, PollInterest::READ, Some(LONG)).expect("poll"), "{refusal:?}");
            assert_eq!(child.wait().expect("still to be reaped").signal(), Some(libc::SIGKILL));
        }
        let child = Command::new("true").spawn().expect("every system has it");
        let error = ending_with(Pid::from_child(&child), |_| Err(Errno::MFILE)).expect_err("no descriptors");
        assert_eq!(error.raw_os_error(), Some(libc::EMFILE));
        child.wait_with_output().expect("our child");
    }
}
