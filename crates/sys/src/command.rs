//! Running another program to its end. Other modules that start programs: [`crate::launch`] for programs that run next
//! to this one, [`crate::companion`] for interactive ones. No shell is involved.

use core::time::Duration;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};

use linerate_units::MonotonicTime;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Pid, Signal, kill_process_group, set_parent_process_death_signal};

use crate::clock::{self, monotonic_now};
use crate::distribution;
use crate::error::{Error, Result};
use crate::file_lock;
use crate::poll::{self, PollInterest, PollItem};

/// Exit status and output of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// Exit status.
    pub status: ExitStatus,
    /// Bytes written to standard output.
    pub stdout: Vec<u8>,
    /// Bytes written to standard error.
    pub stderr: Vec<u8>,
}

impl Output {
    /// The standard output as text.
    #[must_use]
    pub fn stdout_text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// The standard error as trimmed text.
    #[must_use]
    pub fn stderr_text(&self) -> String {
        String::from_utf8_lossy(&self.stderr).trim().to_owned()
    }
}

/// Maximum bytes that a program may write to one of its outputs.
const MAX_OUTPUT_BYTES: usize = 64 << 20;

/// Runs `program` with these arguments, gives it `input` on its standard input, and collects what it writes. Its
/// messages are in English (`LC_ALL=C`). It is killed with its children after `timeout`, and when it writes more than
/// 64 MiB. A failed program is no error here: see [`Output::status`], or use [`run_checked`].
pub fn run(program: &str, arguments: &[&str], input: Option<&[u8]>, timeout: Duration) -> Result<Output> {
    run_child(program, arguments, input, timeout, ProgramLifetime::BesideUs)
}

/// As [`run`], for programs that must not outlive this process: the kernel then kills them. They hold the lock of
/// [`file_lock::FileLock::share_with_programs`].
pub(crate) fn run_bound_to_thread(
    program: &str,
    arguments: &[&str],
    input: Option<&[u8]>,
    timeout: Duration,
) -> Result<Output> {
    run_child(program, arguments, input, timeout, ProgramLifetime::WithUs)
}

/// Lifetime of a program.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ProgramLifetime {
    /// Until its exit, even if this process ends first.
    BesideUs,
    /// At most that of the thread that waits for it.
    WithUs,
}

fn run_child(
    program: &str,
    arguments: &[&str],
    input: Option<&[u8]>,
    timeout: Duration,
    lasting: ProgramLifetime,
) -> Result<Output> {
    let deadline = monotonic_now() + timeout;
    let mut child = start(program, arguments, input.is_some(), lasting)?;
    let outcome = exchange(&mut child, input.unwrap_or_default(), deadline);
    if outcome.is_err() {
        kill_group(&mut child);
    }
    outcome.map_err(|failure| match failure {
        CommandFailure::TooLate => Error::TimedOut { operation: running(program, arguments), after: timeout },
        CommandFailure::TooMuch => Error::refused(running(program, arguments), "its output exceeds 64 MiB"),
        CommandFailure::Io(cause) => Error::system(running(program, arguments), cause),
    })
}

/// As [`run`], where a program that fails is an error with what it wrote to its standard error.
pub fn run_checked(program: &str, arguments: &[&str], input: Option<&[u8]>, timeout: Duration) -> Result<Output> {
    checked(program, arguments, run(program, arguments, input, timeout)?)
}

/// As [`run_checked`], for programs that must not outlive this process.
pub(crate) fn run_bound_checked(
    program: &str,
    arguments: &[&str],
    input: Option<&[u8]>,
    timeout: Duration,
) -> Result<Output> {
    checked(program, arguments, run_bound_to_thread(program, arguments, input, timeout)?)
}

fn checked(program: &str, arguments: &[&str], output: Output) -> Result<Output> {
    if output.status.success() {
        return Ok(output);
    }
    Err(failure(program, arguments, &output))
}

/// Error of a program that ended with a failure.
pub(crate) fn failure(program: &str, arguments: &[&str], output: &Output) -> Error {
    let said = output.stderr_text();
    let output_text = match busybox_hint(program, &said) {
        Some(hint) => format!("{} ({hint})", said.lines().next().unwrap_or_default()),
        None => said,
    };
    Error::Program { command: command_line(program, arguments), status: output.status.to_string(), output: output_text }
}

/// Command line quoted for a shell.
#[must_use]
pub fn command_line(program: &str, arguments: &[&str]) -> String {
    let plain = |word: &&str| {
        let harmless = |byte: u8| byte.is_ascii_alphanumeric() || b"-_=+/.,:@%".contains(&byte);
        if !word.is_empty() && word.bytes().all(harmless) {
            (*word).to_owned()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    };
    [program].iter().chain(arguments).map(plain).collect::<Vec<_>>().join(" ")
}

pub(crate) fn running(program: &str, arguments: &[&str]) -> String {
    format!("running `{}`", command_line(program, arguments))
}

fn start(program: &str, arguments: &[&str], with_input: bool, lasting: ProgramLifetime) -> Result<Child> {
    let stdin = if with_input { Stdio::piped() } else { Stdio::null() };
    find(program, std::env::var_os("PATH"))
        .and_then(|path| {
            let mut command = Command::new(path);
            let lock = file_lock::shared_with_programs().filter(|_| lasting == ProgramLifetime::WithUs);
            if lasting == ProgramLifetime::WithUs {
                die_with_parent(&mut command, Signal::KILL);
            }
            if let Some(lock) = &lock {
                inherit(&mut command, lock);
            }
            command
                .arg0(program)
                .args(arguments)
                .env("LC_ALL", "C")
                .stdin(stdin)
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .process_group(0)
                .spawn()
        })
        .map_err(|cause| {
            Error::system(running(program, arguments), cause).hint_on(libc::ENOENT, not_found_hint(program))
        })
}

/// Remedy for a program that is not there, with its package on this distribution.
pub(crate) fn not_found_hint(program: &str) -> String {
    let package = distribution::install_advice(&[program]).map(|advice| format!(": {advice}")).unwrap_or_default();
    format!("{NOT_IN_PATH}{package}")
}

/// Remedy for a program that refuses its arguments because it is `BusyBox`'s, which knows fewer; `None` for others.
pub(crate) fn busybox_hint(program: &str, complaint: &str) -> Option<String> {
    // Every applet prints this line before its usage.
    let is_busybox = complaint.lines().any(|line| line.starts_with("BusyBox v"));
    let package = distribution::install_advice(&[program]).unwrap_or_else(|| "install the full program".to_owned());
    is_busybox.then(|| format!("this {program} is BusyBox's, which cannot do that: {package}"))
}

/// Path of a program, as it would be started by this name.
pub fn path_of(program: &str) -> Result<PathBuf> {
    find(program, std::env::var_os("PATH"))
        .map_err(|cause| Error::system(format!("looking for {program}"), cause).hint_on(libc::ENOENT, NOT_IN_PATH))
}

const NOT_IN_PATH: &str = "the program is not installed, or not in $PATH";

/// Path of the program: in `path` (a value of `$PATH`), else in the directories of administration programs, which are
/// often missing from an unprivileged user's `$PATH`. Relative directories are skipped: anyone may write to the current
/// directory.
pub(crate) fn find(program: &str, path: Option<OsString>) -> io::Result<PathBuf> {
    if program.contains('/') {
        return Ok(program.into());
    }
    let path = path.filter(|path| !path.is_empty()).unwrap_or_else(|| "/usr/bin:/bin".into());
    let more = ["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from);
    let executable =
        |path: &PathBuf| path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0);
    std::env::split_paths(&path)
        .chain(more)
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join(program))
        .find(executable)
        .ok_or_else(|| io::Error::from_raw_os_error(libc::ENOENT))
}

enum CommandFailure {
    TooLate,
    TooMuch,
    Io(io::Error),
}

impl From<io::Error> for CommandFailure {
    fn from(cause: io::Error) -> Self {
        Self::Io(cause)
    }
}

impl From<Error> for CommandFailure {
    fn from(error: Error) -> Self {
        Self::Io(error.into())
    }
}

/// Interval between checks for the program's exit while a child of its own keeps its outputs open.
const EXIT_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Feeds and reads the program until it has ended.
fn exchange(
    child: &mut Child,
    mut input: &[u8],
    deadline: MonotonicTime,
) -> core::result::Result<Output, CommandFailure> {
    let (mut stdin, mut stdout, mut stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    stdin.as_ref().map(set_nonblocking).transpose()?;
    stdout.as_ref().map(set_nonblocking).transpose()?;
    stderr.as_ref().map(set_nonblocking).transpose()?;
    let (mut written, mut complaints) = (Vec::new(), Vec::new());
    loop {
        if stdin.as_mut().is_some_and(|pipe| !feed(pipe, &mut input)) {
            stdin = None;
        }
        let ended = child.try_wait()?;
        if stdout.as_mut().map_or(Ok(false), |pipe| drain(pipe, &mut written))? {
            stdout = None;
        }
        if stderr.as_mut().map_or(Ok(false), |pipe| drain(pipe, &mut complaints))? {
            stderr = None;
        }
        if let Some(status) = ended {
            return Ok(Output { status, stdout: written, stderr: complaints });
        }
        let left = deadline - monotonic_now();
        if left.is_zero() {
            return Err(CommandFailure::TooLate);
        }
        let mut items = Vec::with_capacity(3);
        items.extend(stdin.as_ref().map(|pipe| PollItem::new(pipe, PollInterest::WRITE)));
        items.extend(stdout.as_ref().map(|pipe| PollItem::new(pipe, PollInterest::READ)));
        items.extend(stderr.as_ref().map(|pipe| PollItem::new(pipe, PollInterest::READ)));
        // With its outputs closed it is about to end.
        let pause = if items.is_empty() { Duration::from_millis(1) } else { EXIT_POLL_INTERVAL };
        poll::wait(&mut items, Some(left.min(pause)))?;
    }
}

/// Writes as much as the pipe accepts; returns true while input remains.
fn feed(pipe: &mut impl Write, input: &mut &[u8]) -> bool {
    while !input.is_empty() {
        match pipe.write(input) {
            Ok(length) => *input = &input[length..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // A program that closes its input may report the reason itself.
            Err(error) => return poll::would_block(&error),
        }
    }
    false
}

/// Reads the pipe's contents; returns true at its end.
fn drain(pipe: &mut impl Read, into: &mut Vec<u8>) -> core::result::Result<bool, CommandFailure> {
    let mut block = [0_u8; 8 << 10];
    loop {
        match pipe.read(&mut block) {
            Ok(0) => return Ok(true),
            Ok(length) if into.len() + length > MAX_OUTPUT_BYTES => return Err(CommandFailure::TooMuch),
            Ok(length) => into.extend_from_slice(&block[..length]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if poll::would_block(&error) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
    }
}

pub(crate) fn set_nonblocking(pipe: &impl AsFd) -> io::Result<()> {
    let flags = fcntl_getfl(pipe)?;
    Ok(fcntl_setfl(pipe, flags | OFlags::NONBLOCK)?)
}

/// Has the kernel send the program this signal when the thread that starts it ends.
pub(crate) fn die_with_parent(command: &mut Command, signal: Signal) {
    // SAFETY: the closure runs between fork and exec and only makes a system call, which takes numbers.
    unsafe { command.pre_exec(move || Ok(set_parent_process_death_signal(Some(signal))?)) };
}

/// Lets the program inherit this file, which the caller keeps open until it is started.
fn inherit(command: &mut Command, file: &File) {
    let number = file.as_raw_fd();
    let keep_open = move || {
        // SAFETY: the descriptor was open at the fork.
        Ok(fcntl_setfd(unsafe { BorrowedFd::borrow_raw(number) }, FdFlags::empty())?)
    };
    // SAFETY: the closure runs between fork and exec and only makes a system call, which takes numbers.
    unsafe { command.pre_exec(keep_open) };
}

/// Kills the program with everything that it has started, and waits for it.
pub(crate) fn kill_group(child: &mut Child) {
    // The group was made for this child, which has not been waited for, so its number is still its own.
    if let Ok(None) = child.try_wait() {
        let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
    }
    let _ = clock::retry(|| child.wait());
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(20);

    #[test]
    fn output_status_and_complaints() {
        let output = run("sh", &["-c", "echo out; echo err >&2; exit 3"], None, LONG).expect("sh runs");
        assert_eq!(output.status.code(), Some(3));
        assert_eq!((output.stdout_text().as_str(), output.stderr_text().as_str()), ("out\n", "err"));
    }

    #[test]
    fn large_input_comes_back_whole() {
        let input: Vec<u8> = (0..3_000_000_u32).map(|index| index.to_le_bytes()[0]).collect();
        let output = run("cat", &[], Some(&input), LONG).expect("cat runs");
        assert!(output.stdout == input, "{} bytes of {}", output.stdout.len(), input.len());
    }

    #[test]
    fn a_program_that_ignores_its_input() {
        let output = run("true", &[], Some(&vec![0; 1 << 20]), LONG).expect("true runs");
        assert!(output.status.success());
    }

    #[test]
    fn arguments_stay_separate() {
        let output = run("printf", &["%s|", "a b", "$HOME", "`id`", "'"], None, LONG).expect("printf runs");
        assert_eq!(output.stdout_text(), "a b|$HOME|`id`|'|");
        assert_eq!(command_line("nft", &["a b", "it's", "-x", ""]), r"nft 'a b' 'it'\''s' -x ''");
    }

    #[test]
    fn it_ends_in_time_with_its_children() {
        let start = monotonic_now();
        let timeout = Duration::from_millis(100);
        let error = run("sh", &["-c", "sleep 30 & sleep 30"], None, timeout).expect_err("too late");
        assert!(matches!(error, Error::TimedOut { .. }), "{error}");
        assert!(monotonic_now() - start < Duration::from_secs(5));
    }

    #[test]
    fn a_child_that_keeps_the_outputs_open_does_not_hold_us() {
        let start = monotonic_now();
        let output = run("sh", &["-c", "sleep 3 & echo done"], None, LONG).expect("sh runs");
        assert_eq!(output.stdout_text(), "done\n");
        assert!(monotonic_now() - start < Duration::from_secs(2));
    }

    #[test]
    fn programs_are_found_where_administrators_have_them() {
        assert!(find("sh", None).expect("every system has it").is_absolute());
        assert_eq!(find("./here", None).expect("used unchanged"), PathBuf::from("./here"));
        assert_eq!(find("passwd.d", None).expect_err("not a program").kind(), io::ErrorKind::NotFound);
        let relative = Some(OsString::from(".:bin:/nowhere"));
        assert_eq!(find("sh", relative).expect_err("not there").kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_missing_program_is_named() {
        let error = run("no-such-program-here", &["x"], None, LONG).expect_err("not there");
        assert_eq!(
            error.to_string(),
            "running `no-such-program-here x`: No such file or directory (the program is not installed, or not in $PATH)"
        );
    }

    #[test]
    fn a_checked_failure_includes_the_programs_stderr() {
        let error = run_checked("sh", &["-c", "echo no >&2; exit 1"], None, LONG).expect_err("fails");
        assert_eq!(error.to_string(), "`sh -c 'echo no >&2; exit 1'` failed (exit status: 1): no");
    }

    #[test]
    fn endless_output_is_cut() {
        let error = run("cat", &["/dev/zero"], None, LONG).expect_err("too much");
        assert!(error.to_string().ends_with("its output exceeds 64 MiB"), "{error}");
    }
}
