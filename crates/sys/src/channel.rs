//! Byte channels that a process finds at its start: a console, or descriptors that its parent left open.

use std::fs::{File, OpenOptions};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::clock::retry;
use crate::error::{Error, Result, check};

/// Opens a terminal device for bytes as they are: nothing is echoed, translated, kept back until the end of a line, or
/// taken for a signal. It does not become this process's terminal.
pub fn open_raw_console(path: &Path) -> Result<File> {
    let failed = |cause| Error::system(format!("opening the console {}", path.display()), cause);
    let console = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NOCTTY).open(path).map_err(failed)?;
    // SAFETY: termios is integers, for which zero is a value.
    let mut state: libc::termios = unsafe { core::mem::zeroed() };
    // SAFETY: `state` is ours alone.
    check(unsafe { libc::tcgetattr(console.as_raw_fd(), &raw mut state) }).map_err(failed)?;
    // SAFETY: as above.
    unsafe { libc::cfmakeraw(&raw mut state) };
    // SAFETY: `state` is filled and lives through the call, which only reads it.
    check(unsafe { libc::tcsetattr(console.as_raw_fd(), libc::TCSANOW, &raw const state) }).map_err(failed)?;
    Ok(console)
}

/// Waits until everything that was written to a terminal has left it. Does nothing for what is none.
pub fn wait_until_sent(console: &File) {
    // SAFETY: the descriptor is open, as it is borrowed; the call touches no memory of ours.
    let _ = retry(|| check(unsafe { libc::tcdrain(console.as_raw_fd()) }));
}

/// Takes over a descriptor that the parent left open at this number. Programs that are started later do not get it.
///
/// Refuses numbers that this process itself has opened: those are closed on `exec` from the beginning, as it is itself
/// after this call.
pub fn inherited(number: i32) -> Result<OwnedFd> {
    let operation = || format!("taking over file descriptor {number}");
    let failed = |cause| Error::system(operation(), cause).hint_on(libc::EBADF, "the parent has not left it open");
    // SAFETY: takes numbers.
    let flags = check(unsafe { libc::fcntl(number, libc::F_GETFD) }).map_err(failed)?;
    if flags & libc::FD_CLOEXEC != 0 || number <= libc::STDERR_FILENO {
        return Err(Error::refused(operation(), "it is this process's own"));
    }
    // SAFETY: takes numbers.
    check(unsafe { libc::fcntl(number, libc::F_SETFD, flags | libc::FD_CLOEXEC) }).map_err(failed)?;
    // SAFETY: it is open. The standard library and this crate open everything with FD_CLOEXEC, and this function sets
    // it, so that nothing here owns a descriptor without it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

#[cfg(test)]
mod tests {
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
        // SAFETY: takes numbers; the copy has no owner, as one that was inherited.
        let number = check(unsafe { libc::dup(libc::STDERR_FILENO) }).expect("a copy");
        let taken = inherited(number).expect("nobody's");
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
