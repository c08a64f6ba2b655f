//! Running in the background, and the file that says under which number.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result, check};

/// Goes to the background: the caller continues in a new session without a terminal, standard input, output and error
/// on `/dev/null`, in the same directory (`daemon(3)` with `nochdir`, as iperf3 `-D` does since 3.17). The process that
/// was started ends with status 0.
///
/// Flush what was printed before, and call it before any thread is started: it refuses when there are others, as they
/// would not survive.
pub fn daemonize() -> Result<()> {
    let operation = "going to the background";
    let failed = |cause| Error::system(operation, cause);
    if fs::read_dir("/proc/self/task").map_err(failed)?.count() != 1 {
        return Err(Error::refused(operation, "other threads run already, and would be lost"));
    }
    let null = OpenOptions::new().read(true).write(true).open("/dev/null").map_err(failed)?;
    // SAFETY: there is one thread (checked above), so the child's memory is consistent and it may do anything.
    match check(unsafe { libc::fork() }).map_err(failed)? {
        0 => detach(&null).map_err(failed),
        // SAFETY: ends this process at once; the child owns everything from here on.
        _ => unsafe { libc::_exit(0) },
    }
}

fn detach(null: &File) -> io::Result<()> {
    // SAFETY: takes nothing; a freshly forked child is never a group leader, so it works.
    check(unsafe { libc::setsid() })?;
    for standard in [libc::STDIN_FILENO, libc::STDOUT_FILENO, libc::STDERR_FILENO] {
        // SAFETY: both descriptors are numbers; the standard ones are owned by nobody in particular.
        check(unsafe { libc::dup2(null.as_raw_fd(), standard) })?;
    }
    Ok(())
}

/// A file with this process's number, removed on drop if the number in it is still ours.
#[derive(Debug)]
pub struct PidFile {
    path: PathBuf,
}

/// Writes this process's number into the file `path`. Refuses when the file has the number of another process that
/// runs; overwrites it otherwise (iperf3 `iperf_create_pidfile`).
pub fn write_pid_file(path: &Path) -> Result<PidFile> {
    let operation = || format!("writing the pid file {}", path.display());
    if let Some(other) = read_pid(path)
        && other != std::process::id()
        && runs(other)
    {
        let reason =
            format!("another instance appears to be running, as process {other}; stop it or name another file");
        return Err(Error::refused(operation(), reason));
    }
    let failed = |cause| Error::system(operation(), cause);
    let mut file = File::create(path).map_err(failed)?;
    writeln!(file, "{}", std::process::id()).map_err(failed)?;
    Ok(PidFile { path: path.to_owned() })
}

impl Drop for PidFile {
    fn drop(&mut self) {
        if read_pid(&self.path) == Some(std::process::id()) {
            // There is nobody left to tell.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn read_pid(path: &Path) -> Option<u32> {
    let text = fs::read_to_string(path).ok()?;
    text.trim_matches(|character: char| character.is_whitespace() || character == '\0').parse().ok()
}

fn runs(process: u32) -> bool {
    let Ok(process @ 1..) = libc::pid_t::try_from(process) else { return false };
    // SAFETY: signal 0 only asks whether the process exists; the number is positive, so no group is meant.
    let answer = check(unsafe { libc::kill(process, 0) });
    answer.map_or_else(|error| error.raw_os_error() == Some(libc::EPERM), |_| true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("linerate-sys-{name}-{}", std::process::id()))
    }

    #[test]
    fn a_pid_file_lives_as_long_as_its_guard() {
        let path = scratch("pid");
        fs::write(&path, "999999999").expect("temporary directory"); // of nobody: beyond the kernel's largest
        let guard = write_pid_file(&path).expect("a stale file is overwritten");
        assert_eq!(fs::read_to_string(&path).expect("there"), format!("{}\n", std::process::id()));
        drop(guard);
        assert!(!path.exists());
    }

    #[test]
    fn another_instance_is_left_alone() {
        let path = scratch("other-pid");
        fs::write(&path, "1\0").expect("temporary directory"); // iperf3 writes a NUL at the end
        let error = write_pid_file(&path).expect_err("process 1 runs");
        assert!(error.to_string().contains("another instance appears to be running, as process 1"), "{error}");
        assert_eq!(fs::read_to_string(&path).expect("there"), "1\0");
        fs::remove_file(&path).expect("there");
    }

    #[test]
    fn a_file_taken_over_by_another_is_not_removed() {
        let path = scratch("taken-pid");
        let guard = write_pid_file(&path).expect("temporary directory");
        fs::write(&path, "1").expect("temporary directory");
        drop(guard);
        assert!(path.exists());
        fs::remove_file(&path).expect("there");
    }

    /// A copy of this process, with this one thread alone, goes to the background and tells how it is there.
    #[test]
    fn the_background_has_no_terminal_and_the_same_directory() {
        let (mut told, teller) = io::pipe().expect("descriptors");
        let directory = std::env::current_dir().expect("there");
        // SAFETY: the child takes no lock that another thread could hold, except the allocator's, which the C library
        // keeps usable after a fork; it ends without running anything of the test's.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let background = daemonize().is_ok()
                // SAFETY: takes numbers only.
                && unsafe { libc::getsid(0) == libc::getpid() }
                && (0..3).all(|standard| {
                    fs::read_link(format!("/proc/self/fd/{standard}")).is_ok_and(|path| path == Path::new("/dev/null"))
                })
                && std::env::current_dir().is_ok_and(|here| here == directory);
            let _ = (&teller).write_all(if background { b"yes" } else { b"no" });
            // SAFETY: ends the child at once.
            unsafe { libc::_exit(0) };
        }
        drop(teller);
        let mut answer = String::new();
        io::Read::read_to_string(&mut told, &mut answer).expect("readable");
        assert_eq!(answer, "yes");
        let mut status = -1;
        // SAFETY: `status` is ours alone; the child is ours to wait for.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 0, "the process that was started ends well");
    }

    #[test]
    fn a_test_has_threads_and_so_no_background() {
        let error = daemonize().expect_err("the test runner has threads");
        assert!(error.to_string().starts_with("going to the background: other threads"), "{error}");
    }
}
