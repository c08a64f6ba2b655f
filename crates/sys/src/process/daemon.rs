//! Running in the background, and the pid file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::process::{Pid, setsid, test_kill_process};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};

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
        _ => exit_at_once(0), // the child owns everything from here on
    }
}

fn detach(null: &File) -> io::Result<()> {
    setsid()?; // a freshly forked child is never a group leader, so it works
    dup2_stdin(null)?;
    dup2_stdout(null)?;
    Ok(dup2_stderr(null)?)
}

/// Ends this process without any clean-up, as it is a copy of another.
pub(crate) fn exit_at_once(code: i32) -> ! {
    // SAFETY: takes a number.
    unsafe { libc::_exit(code) }
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
            // Errors cannot be reported any more.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn read_pid(path: &Path) -> Option<u32> {
    let text = fs::read_to_string(path).ok()?;
    text.trim_matches(|character: char| character.is_whitespace() || character == '\0').parse().ok()
}

fn runs(process: u32) -> bool {
    let Ok(process @ 1..) = i32::try_from(process) else { return false };
    Pid::from_raw(process).is_some_and(|process| matches!(test_kill_process(process), Ok(()) | Err(Errno::PERM)))
}

#[cfg(test)]
mod tests {
    use rustix::process::{WaitOptions, getpid, getsid, waitpid};

    use super::*;

    fn scratch(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("linerate-sys-{name}-{}", std::process::id()))
    }

    #[test]
    fn a_pid_file_lives_as_long_as_its_guard() {
        let path = scratch("pid");
        fs::write(&path, "999999999").expect("temporary directory"); // of no process: beyond the kernel's largest
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

    /// A copy of this process, with this one thread alone, goes to the background and reports its state.
    #[test]
    fn the_background_has_no_terminal_and_the_same_directory() {
        let (mut reader, writer) = io::pipe().expect("descriptors");
        let directory = std::env::current_dir().expect("there");
        // SAFETY: the child takes no lock that another thread could hold, except the allocator's, which the C library
        // keeps usable after a fork; it ends without running anything of the test's.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let background = daemonize().is_ok()
                && getsid(None) == Ok(getpid())
                && (0..3).all(|standard| {
                    fs::read_link(format!("/proc/self/fd/{standard}")).is_ok_and(|path| path == Path::new("/dev/null"))
                })
                && std::env::current_dir().is_ok_and(|here| here == directory);
            let _ = (&writer).write_all(if background { b"yes" } else { b"no" });
            exit_at_once(0);
        }
        drop(writer);
        let mut answer = String::new();
        io::Read::read_to_string(&mut reader, &mut answer).expect("readable");
        assert_eq!(answer, "yes");
        let (_, status) = waitpid(Pid::from_raw(child), WaitOptions::empty()).expect("ours").expect("it has ended");
        assert_eq!(status.exit_status(), Some(0), "the process that was started ends well");
    }

    #[test]
    fn a_test_has_threads_and_so_no_background() {
        let error = daemonize().expect_err("the test runner has threads");
        assert!(error.to_string().starts_with("going to the background: other threads"), "{error}");
    }
}
