//! Starting a program that this one watches.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use crate::error::{Error, Result, check};

/// A program to start, and what it gets from this one. It never gets the terminal: its standard input is empty.
#[derive(Debug)]
pub struct Launch<'a> {
    /// The program's file.
    pub program: &'a Path,
    /// Its arguments, without its name.
    pub arguments: &'a [OsString],
    /// Its whole environment; `None` for this process's own.
    pub environment: Option<&'a [(OsString, OsString)]>,
    /// Where its standard output and error go; `None` for nowhere.
    pub output: Option<BorrowedFd<'a>>,
    /// Descriptors that it finds open under the same numbers. All others are closed for it.
    pub inherited: &'a [BorrowedFd<'a>],
    /// Whether it is cut off from this process's terminal and process group, so that Ctrl-C there does not reach it
    /// (`setsid(2)`).
    pub own_session: bool,
    /// Whether the kernel kills it when the thread that starts it ends (`PR_SET_PDEATHSIG`).
    pub dies_with_parent: bool,
}

impl Launch<'_> {
    /// Starts it.
    pub fn start(&self) -> Result<Process> {
        let failed = |cause| Error::system(self.operation(), cause).hint_on(libc::ENOENT, "there is no such file");
        let mut command = Command::new(self.program);
        command.args(self.arguments).stdin(Stdio::null());
        command.stdout(self.output()?).stderr(self.output()?);
        if let Some(environment) = self.environment {
            command.env_clear().envs(environment.iter().map(|(key, value)| (key, value)));
        }
        let inherited: Vec<RawFd> = self.inherited.iter().map(AsRawFd::as_raw_fd).collect();
        let (own_session, dies_with_parent) = (self.own_session, self.dies_with_parent);
        // SAFETY: between fork and exec the closure makes system calls only, on numbers that it has; it neither
        // allocates nor takes locks.
        unsafe { command.pre_exec(move || prepare(&inherited, own_session, dies_with_parent)) };
        let mut child = command.spawn().map_err(failed)?;
        match end_descriptor(child.id()) {
            Ok(end) => Ok(Process { child, end }),
            Err(cause) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(Error::system(format!("{}: watching it", self.operation()), cause)
                    .hint_on(libc::ENOSYS, "Linux 5.3 or newer is needed"))
            }
        }
    }

    fn operation(&self) -> String {
        format!("starting {}", self.program.display())
    }

    fn output(&self) -> Result<Stdio> {
        let copy = |descriptor: BorrowedFd<'_>| descriptor.try_clone_to_owned().map(Stdio::from);
        self.output.map_or_else(|| Ok(Stdio::null()), copy).map_err(|cause| Error::system(self.operation(), cause))
    }
}

/// What happens in the new process before it becomes the program.
fn prepare(inherited: &[RawFd], own_session: bool, dies_with_parent: bool) -> io::Result<()> {
    for descriptor in inherited {
        // SAFETY: takes numbers; the descriptor was open at the fork.
        check(unsafe { libc::fcntl(*descriptor, libc::F_SETFD, 0) })?;
    }
    if own_session {
        // SAFETY: takes nothing; a new process leads no group, so it works.
        check(unsafe { libc::setsid() })?;
    }
    if dies_with_parent {
        request_death_signal()?;
    }
    // A kernel that panics in user mode aborts; nobody wants its memory as a file.
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `none` lives through the call, which only reads it.
    check(unsafe { libc::setrlimit(libc::RLIMIT_CORE, &raw const none) }).map(drop)
}

fn request_death_signal() -> io::Result<()> {
    // The kernel takes whole words here.
    let signal: libc::c_ulong = 9;
    // SAFETY: takes numbers.
    check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, signal) }).map(drop)
}

/// Has the kernel kill this process when the thread that started it ends.
pub fn die_with_parent() -> Result<()> {
    request_death_signal().map_err(|cause| Error::system("asking to end with the parent process", cause))
}

/// Becomes another program, which keeps this process's identity and the descriptors that are given to it. Comes back
/// only with an error.
pub fn become_program(
    program: &Path,
    arguments: &[OsString],
    environment: &[(OsString, OsString)],
    inherited: &[BorrowedFd<'_>],
) -> Error {
    let operation = || format!("becoming {}", program.display());
    for descriptor in inherited {
        // SAFETY: takes numbers; the descriptor is open, as it is borrowed.
        if let Err(cause) = check(unsafe { libc::fcntl(descriptor.as_raw_fd(), libc::F_SETFD, 0) }) {
            return Error::system(operation(), cause);
        }
    }
    let mut command = Command::new(program);
    command.args(arguments).env_clear().envs(environment.iter().map(|(key, value)| (key, value)));
    Error::system(operation(), command.exec())
}

/// Takes over a descriptor that the parent process left open under this number ([`Launch::inherited`]); programs that
/// this process starts do not get it any more. To be called once for each number, before anything else is opened: from
/// then on the descriptor is closed with what this returns.
pub fn take_inherited(number: RawFd) -> Result<OwnedFd> {
    let operation = || format!("taking over descriptor {number}");
    if number <= libc::STDERR_FILENO {
        return Err(Error::refused(operation(), "the standard ones belong to the whole program"));
    }
    // SAFETY: takes numbers; fails when the descriptor is not open.
    check(unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) })
        .map_err(|cause| Error::system(operation(), cause).hint_on(libc::EBADF, "it is not open"))?;
    // SAFETY: the descriptor is open (checked above) and came from the parent, so nothing in this program owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// A program that was started. It becomes readable for [`crate::poll::wait`] when it has ended.
#[derive(Debug)]
pub struct Process {
    child: Child,
    end: OwnedFd,
}

impl Process {
    /// Its process identifier.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Kills it, unless it has ended.
    pub fn kill(&mut self) {
        // It may have ended by itself just now, which is as good.
        let _ = self.child.kill();
    }

    /// Waits for its end.
    pub fn wait(&mut self) -> Result<ExitStatus> {
        let id = self.id();
        self.child.wait().map_err(|cause| Error::system(format!("waiting for process {id}"), cause))
    }
}

impl AsFd for Process {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.end.as_fd()
    }
}

/// A descriptor that becomes readable when the process has ended (`pidfd_open(2)`).
fn end_descriptor(process: u32) -> io::Result<OwnedFd> {
    // SAFETY: takes numbers.
    let answer = unsafe { libc::syscall(libc::SYS_pidfd_open, libc::c_ulong::from(process), 0_u64) };
    let descriptor = check(libc::c_int::try_from(answer).unwrap_or(-1))?;
    // SAFETY: the descriptor is new, so nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Waits for the end of this child, and meanwhile for that of any other: what the first process of a namespace, to which
/// all orphans fall, has to do.
pub fn reap_until(process: u32) -> Result<ExitStatus> {
    loop {
        let mut status = 0;
        // SAFETY: `status` is ours alone.
        match check(unsafe { libc::waitpid(-1, &raw mut status, libc::__WALL) }) {
            Ok(ended) if u32::try_from(ended) == Ok(process) => return Ok(ExitStatus::from_raw(status)),
            Ok(_) => {}
            Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
            Err(cause) => return Err(Error::system(format!("waiting for process {process}"), cause)),
        }
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;
    use std::io::Read;

    use super::*;
    use crate::poll::{Interest, wait_for};

    const LONG: Duration = Duration::from_secs(20);

    fn shell(script: &str) -> [OsString; 2] {
        ["-c".into(), script.into()]
    }

    #[test]
    fn it_has_what_it_was_given_and_no_more() {
        let (mut told, teller) = io::pipe().expect("descriptors");
        let (_reader, hidden) = io::pipe().expect("descriptors");
        let script = format!(
            "echo \"$A-$HOME\"; echo given >&{}; (echo hidden >&{}) 2>/dev/null || echo closed; ulimit -c",
            teller.as_raw_fd(),
            hidden.as_raw_fd()
        );
        let launch = Launch {
            program: Path::new("/bin/sh"),
            arguments: &shell(&script),
            environment: Some(&[("A".into(), "a".into())]),
            output: Some(teller.as_fd()),
            inherited: &[teller.as_fd()],
            own_session: true,
            dies_with_parent: true,
        };
        let mut process = launch.start().expect("every system has a shell");
        assert!(wait_for(&process, Interest::READ, Some(LONG)).expect("poll"), "it ends");
        assert!(process.wait().expect("is our child").success());
        drop(teller);
        let mut text = String::new();
        told.read_to_string(&mut text).expect("readable");
        assert_eq!(text, "a-\ngiven\nclosed\n0\n");
    }

    #[test]
    fn a_missing_program_says_so() {
        let launch = Launch {
            program: Path::new("/no/such/program"),
            arguments: &[],
            environment: None,
            output: None,
            inherited: &[],
            own_session: false,
            dies_with_parent: false,
        };
        let error = launch.start().expect_err("not there");
        assert_eq!(error.to_string(), "starting /no/such/program: No such file or directory (there is no such file)");
    }

    #[test]
    fn it_dies_with_the_thread_that_started_it() {
        let start = || {
            let launch = Launch {
                program: Path::new("/bin/sleep"),
                arguments: &["60".into()],
                environment: None,
                output: None,
                inherited: &[],
                own_session: true,
                dies_with_parent: true,
            };
            launch.start().expect("every system has it")
        };
        let mut process = std::thread::spawn(start).join().expect("no panic");
        assert!(wait_for(&process, Interest::READ, Some(LONG)).expect("poll"), "it was killed");
        assert_eq!(process.wait().expect("is our child").signal(), Some(libc::SIGKILL));
    }
}
