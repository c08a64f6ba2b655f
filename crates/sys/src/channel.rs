//! Byte channels that a process finds at its start: a console, or descriptors that its parent left open.

use std::fs::{File, OpenOptions};
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::io::{FdFlags, fcntl_setfd, retry_on_intr};
use rustix::termios::{OptionalActions, tcdrain, tcgetattr, tcsetattr};

use crate::error::{Error, Result, check};

/// Opens a terminal device for raw bytes: without echo, translation, line buffering or signal characters. It does not
/// become this process's controlling terminal.
pub fn open_raw_console(path: &Path) -> Result<File> {
    let failed = |cause| Error::system(format!("opening the console {}", path.display()), cause);
    let console = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NOCTTY).open(path).map_err(failed)?;
    let mut state = tcgetattr(&console).map_err(|cause| failed(cause.into()))?;
    state.make_raw();
    tcsetattr(&console, OptionalActions::Now, &state).map_err(|cause| failed(cause.into()))?;
    Ok(console)
}

/// Waits until everything written to a terminal has left it. Does nothing for other files.
pub fn wait_until_sent(console: &File) {
    let _ = retry_on_intr(|| tcdrain(console));
}

/// Takes over a descriptor that the parent left open at this number. Programs that are started later do not get it.
///
/// Refuses descriptors that this process itself has opened: they are close-on-exec from the start, as this one is after
/// the call.
pub fn inherited(number: i32) -> Result<OwnedFd> {
    let operation = || format!("taking over file descriptor {number}");
    let failed = |cause| Error::system(operation(), cause).hint_on(libc::EBADF, "the parent has not left it open");
    // SAFETY: the calls take numbers, and fail when it is not open. The standard library and this crate open everything
    // with FD_CLOEXEC, and this function sets it, so that nothing here owns a descriptor without it.
    let taken = unsafe {
        let flags = check(libc::fcntl(number, libc::F_GETFD)).map_err(failed)?;
        (flags & libc::FD_CLOEXEC == 0 && number > libc::STDERR_FILENO).then(|| OwnedFd::from_raw_fd(number))
    };
    let taken = taken.ok_or_else(|| Error::refused(operation(), "it is this process's own"))?;
    fcntl_setfd(&taken, FdFlags::CLOEXEC).map_err(|cause| failed(cause.into()))?;
    Ok(taken)
}

#[cfg(test)]
mod tests {
    use std::os::fd::{AsRawFd, IntoRawFd};

    use super::*;

    #[test]
    fn only_what_was_inherited_is_taken_over() {
        let own = File::open("/dev/null").expect("there");
        let error = inherited(own.as_raw_fd()).expect_err("it has an owner");
        assert!(error.to_string().ends_with("it is this process's own"), "{error}");
        assert!(inherited(0).is_err());
        assert_eq!(inherited(987_654).expect_err("nothing there").errno(), Some(libc::EBADF));
    }

    #[test]
    fn a_descriptor_is_taken_over_once() {
        // The copy has no owner, as one that was inherited.
        let number = rustix::io::dup(std::io::stderr()).expect("a copy").into_raw_fd();
        let taken = inherited(number).expect("without an owner");
        assert_eq!(taken.as_raw_fd(), number);
        assert!(inherited(number).is_err());
    }

    #[test]
    fn a_console_is_raw() {
        let error = open_raw_console(Path::new("/dev/null")).expect_err("no terminal");
        assert_eq!(error.errno(), Some(libc::ENOTTY));
        assert!(error.to_string().starts_with("opening the console /dev/null"), "{error}");
    }
}
