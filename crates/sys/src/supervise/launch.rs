//! Starting a program that this one watches.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::process::{
    Resource, Rlimit, Signal, WaitOptions, set_parent_process_death_signal, setrlimit, setsid, wait,
};

use crate::channel;
use crate::error::{Error, Result};
use crate::process;

/// A program to start, and its inheritance from this one. It never gets the terminal: its standard input is empty.
#[derive(Debug)]
pub struct SupervisedLaunch<'a> {
    /// The program's file.
    pub program: &'a Path,
    /// Arguments, without the program's name.
    pub arguments: &'a [OsString],
    /// Complete environment; `None` for this process's own.
    pub environment: Option<&'a [(OsString, OsString)]>,
    /// Destination of its standard output and error; `None` for nowhere.
    pub output: Option<BorrowedFd<'a>>,
    /// Descriptors that it inherits under the same numbers. All others are closed for it.
    pub inherited: &'a [BorrowedFd<'a>],
    /// True to separate it from this process's terminal and process group, so that Ctrl-C there does not reach it
    /// (`setsid(2)`).
    pub own_session: bool,
    /// True to have the kernel kill it when the thread that starts it ends (`PR_SET_PDEATHSIG`).
    pub dies_with_parent: bool,
}

impl SupervisedLaunch<'_> {
    /// Starts it.
    pub fn start(&self) -> Result<SupervisedProcess> {
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
        match process::ending(&child) {
            Ok(end) => Ok(SupervisedProcess { child, end }),
            Err(cause) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(Error::system(format!("{}: watching it", self.operation()), cause))
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

/// Prepares the new process before it becomes the program.
fn prepare(inherited: &[RawFd], own_session: bool, dies_with_parent: bool) -> io::Result<()> {
    for descriptor in inherited {
        // SAFETY: the descriptor was open at the fork.
        fcntl_setfd(unsafe { BorrowedFd::borrow_raw(*descriptor) }, FdFlags::empty())?;
    }
    if own_session {
        setsid()?; // a new process leads no group, so it works
    }
    if dies_with_parent {
        set_parent_process_death_signal(Some(Signal::KILL))?;
    }
    // A kernel that panics in user mode aborts; its memory is of no use as a file.
    Ok(setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?)
}

/// Has the kernel kill this process when the thread that started it ends.
pub fn die_with_parent() -> Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|cause| Error::system("asking to end with the parent process", cause))
}

/// Becomes another program, which keeps this process's identity and the descriptors that are given to it. Returns only
/// with an error.
pub fn become_program(
    program: &Path,
    arguments: &[OsString],
    environment: &[(OsString, OsString)],
    inherited: &[BorrowedFd<'_>],
) -> Error {
    let operation = || format!("becoming {}", program.display());
    for descriptor in inherited {
        if let Err(cause) = fcntl_setfd(descriptor, FdFlags::empty()) {
            return Error::system(operation(), cause);
        }
    }
    let mut command = Command::new(program);
    command.args(arguments).env_clear().envs(environment.iter().map(|(key, value)| (key, value)));
    Error::system(operation(), command.exec())
}

/// Takes over a descriptor that the parent process left open under this number ([`SupervisedLaunch::inherited`]); programs that
/// this process starts do not get it any more. To be called once for each number, before anything else is opened: from
/// then on the descriptor is closed with what this returns.
pub fn take_inherited(number: RawFd) -> Result<OwnedFd> {
    channel::inherited(number)
}

/// A program that was started. It becomes readable for [`crate::poll::wait`] when it has ended.
#[derive(Debug)]
pub struct SupervisedProcess {
    child: Child,
    end: OwnedFd,
}

impl SupervisedProcess {
    /// Process identifier.
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

impl AsFd for SupervisedProcess {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.end.as_fd()
    }
}

/// Waits for the end of this child, and meanwhile reaps any other: a duty of the first process of a namespace, which
/// inherits all orphans.
pub fn reap_until(process: u32) -> Result<ExitStatus> {
    loop {
        match wait(WaitOptions::from_bits_retain(libc::__WALL.cast_unsigned())) {
            Ok(Some((ended, status))) if ended.as_raw_pid().cast_unsigned() == process => {
                return Ok(ExitStatus::from_raw(status.as_raw()));
            }
            Ok(_) | Err(Errno::INTR) => {}
            Err(cause) => return Err(Error::system(format!("waiting for process {process}"), cause)),
        }
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;
    use std::io::Read;

    use super::*;
    use crate::poll::{PollInterest, wait_for};

    const LONG: Duration = Duration::from_secs(20);

    fn shell(script: &str) -> [OsString; 2] {
        ["-c".into(), script.into()]
    }

    #[test]
    fn it_has_what_it_was_given_and_no_more() {
        let (mut reader, writer) = io::pipe().expect("descriptors");
        let (_reader, hidden) = io::pipe().expect("descriptors");
        // Not `>&12`: some shells know descriptors of one digit only.
        let script = format!(
            "fd=/proc/self/fd; echo \"$A-$HOME\"; echo given >$fd/{}; (echo hidden >$fd/{}) 2>/dev/null || echo closed; ulimit -c",
            writer.as_raw_fd(),
            hidden.as_raw_fd()
        );
        let launch = SupervisedLaunch {
            program: Path::new("/bin/sh"),
            arguments: &shell(&script),
            environment: Some(&[("A".into(), "a".into())]),
            output: Some(writer.as_fd()),
            inherited: &[writer.as_fd()],
            own_session: true,
            dies_with_parent: true,
        };
        let mut process = launch.start().expect("every system has a shell");
        assert!(wait_for(&process, PollInterest::READ, Some(LONG)).expect("poll"), "it ends");
        assert!(process.wait().expect("is our child").success());
        drop(writer);
        let mut text = String::new();
        reader.read_to_string(&mut text).expect("readable");
        assert_eq!(text, "a-\ngiven\nclosed\n0\n");
    }

    #[test]
    fn a_missing_program_is_named() {
        let launch = SupervisedLaunch {
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
            let launch = SupervisedLaunch {
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
        assert!(wait_for(&process, PollInterest::READ, Some(LONG)).expect("poll"), "it was killed");
        assert_eq!(process.wait().expect("is our child").signal(), Some(libc::SIGKILL));
    }
}
