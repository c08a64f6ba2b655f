//! Programs that run next to this one: started in a network namespace, watched, signalled.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group};

use crate::command::{self, command_line, set_nonblocking};
use crate::error::{Error, Result};
use crate::machine;
use crate::namespace::{self, NetworkNamespace};
use crate::process;

/// Parameters of the program to start.
#[derive(Clone, Copy, Debug)]
pub struct LaunchParameters<'a> {
    /// Name or path of the program. Without a slash it is searched in the `PATH` of its own environment, then in the
    /// directories of administration programs; with one it is relative to `directory`.
    pub program: &'a str,
    /// Arguments.
    pub arguments: &'a [String],
    /// Working directory; `None` for that of this process.
    pub directory: Option<&'a Path>,
    /// Complete environment; `None` for that of this process.
    pub environment: Option<&'a [(String, String)]>,
    /// Network namespace of the program; `None` for that of this thread.
    pub namespace: Option<&'a NetworkNamespace>,
    /// Destination of its standard output and its standard error.
    pub outputs: OutputTarget<'a>,
    /// True when it runs only when nothing else can (`SCHED_IDLE`), so that it cannot delay its observer.
    pub gives_way: bool,
}

/// Destination of a program's outputs.
#[derive(Clone, Copy, Debug)]
pub enum OutputTarget<'a> {
    /// Into a pipe each, which this process reads.
    Pipes,
    /// Both into a file.
    File(&'a File),
}

/// A program that was started, with its standard input on `/dev/null`, as the leader of a process group of its own.
///
/// Dropping this neither ends nor waits for it. A process that reaps all children ([`crate::machine::reap`]) learns
/// from there how it ended.
#[derive(Debug)]
pub struct LaunchedProcess {
    process: u32,
    ended: OwnedFd,
    /// Standard output, to be read without waiting; `None` without pipes.
    pub stdout: Option<File>,
    /// Standard error, likewise.
    pub stderr: Option<File>,
}

/// A signal for a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaunchSignal {
    /// `SIGINT`, as Ctrl-C does: finish.
    Interrupt,
    /// `SIGKILL`: end now.
    Kill,
}

/// Starts a program.
pub fn start(launch: &LaunchParameters<'_>) -> Result<LaunchedProcess> {
    // A program inherits the network and the scheduling of the thread that starts it.
    let start = || {
        if launch.gives_way {
            machine::use_idle_scheduling()?;
        }
        start_here(launch)
    };
    match launch.namespace {
        Some(namespace) => namespace.within(start)?,
        None => namespace::in_thread(start)?,
    }
}

fn start_here(launch: &LaunchParameters<'_>) -> Result<LaunchedProcess> {
    let failed = |cause| Error::system(description(launch), cause);
    if let Some(directory) = launch.directory
        && let Err(cause) = directory.metadata()
    {
        return Err(failed(cause).hint_on(libc::ENOENT, "the directory does not exist there"));
    }
    let not_installed = |launch: &LaunchParameters<'_>| command::not_found_hint(launch.program);
    let program = find(launch).map_err(|cause| failed(cause).hint_on(libc::ENOENT, not_installed(launch)))?;
    let hint = "there is no such file, or its interpreter (the first line of a script) is missing";
    let child = spawn(launch, &program).map_err(|cause| failed(cause).hint_on(libc::ENOENT, hint))?;
    watch(child).map_err(failed)
}

fn description(launch: &LaunchParameters<'_>) -> String {
    let arguments: Vec<&str> = launch.arguments.iter().map(String::as_str).collect();
    let line = command_line(launch.program, &arguments);
    match launch.directory {
        Some(directory) => format!("running `{line}` in {}", directory.display()),
        None => format!("running `{line}`"),
    }
}

/// Path of the program, as seen from the directory in which it runs.
fn find(launch: &LaunchParameters<'_>) -> io::Result<PathBuf> {
    let own = |variables: &[(String, String)]| {
        variables.iter().find(|(name, _)| name == "PATH").map(|(_, value)| OsString::from(value))
    };
    let path = launch.environment.map_or_else(|| std::env::var_os("PATH"), own);
    let program = command::find(launch.program, path)?;
    Ok(launch.directory.map_or_else(|| program.clone(), |directory| directory.join(&program)))
}

fn spawn(launch: &LaunchParameters<'_>, program: &Path) -> io::Result<Child> {
    let mut command = Command::new(program);
    command.arg0(launch.program).args(launch.arguments).stdin(Stdio::null()).process_group(0);
    if let Some(directory) = launch.directory {
        command.current_dir(directory);
    }
    if let Some(variables) = launch.environment {
        command.env_clear().envs(variables.iter().map(|(name, value)| (name, value)));
    }
    match launch.outputs {
        OutputTarget::Pipes => command.stdout(Stdio::piped()).stderr(Stdio::piped()),
        OutputTarget::File(file) => command.stdout(file.try_clone()?).stderr(file.try_clone()?),
    };
    command.spawn()
}

fn watch(mut child: Child) -> io::Result<LaunchedProcess> {
    let pipe = |end: Option<OwnedFd>| end.map(|end| set_nonblocking(&end).map(|()| File::from(end))).transpose();
    let stdout = pipe(child.stdout.take().map(OwnedFd::from))?;
    let stderr = pipe(child.stderr.take().map(OwnedFd::from))?;
    let process = child.id();
    // The child has not been waited for, so the number is its own.
    let ended = process::ending(&child)?;
    Ok(LaunchedProcess { process, ended, stdout, stderr })
}

impl LaunchedProcess {
    /// Process identifier, which is that of its process group, too.
    #[must_use]
    pub fn process(&self) -> u32 {
        self.process
    }

    /// Sends a signal to it and all that it has started (its process group). One that is gone already is no error.
    pub fn ask(&self, what: LaunchSignal) -> Result<()> {
        let signal = match what {
            LaunchSignal::Interrupt => Signal::INT,
            LaunchSignal::Kill => Signal::KILL,
        };
        // The group was made for this program, and is none of ours.
        let Some(group) = Pid::from_raw(self.process.cast_signed()) else { return Ok(()) };
        match kill_process_group(group, signal) {
            Ok(()) | Err(Errno::SRCH) => Ok(()),
            Err(cause) => {
                let (signal, group) = (signal.as_raw(), self.process);
                Err(Error::system(format!("sending signal {signal} to process group {group}"), cause))
            }
        }
    }

    /// True when it has a listening TCP socket; false also when `/proc` does not show it.
    #[must_use]
    pub fn listens(&self) -> bool {
        let directory = Path::new("/proc").join(self.process.to_string());
        let sockets = open_sockets(&directory.join("fd")).unwrap_or_default();
        ["net/tcp", "net/tcp6"].iter().any(|table| {
            let table = fs::read_to_string(directory.join(table)).unwrap_or_default();
            listening_sockets(&table).any(|socket| sockets.contains(socket))
        })
    }
}

impl AsFd for LaunchedProcess {
    /// Becomes readable when the program has ended.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ended.as_fd()
    }
}

/// The inode numbers of a process's sockets: its descriptors are links to `socket:[NUMBER]`.
fn open_sockets(descriptors: &Path) -> io::Result<HashSet<String>> {
    let number = |link: &Path| Some(link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned());
    let links = fs::read_dir(descriptors)?.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    Ok(links.filter_map(|link| number(&link)).collect())
}

/// The inode numbers of the sockets in state 0A, `TCP_LISTEN` (`proc_net_tcp(5)`).
fn listening_sockets(table: &str) -> impl Iterator<Item = &str> {
    table.lines().filter_map(|line| {
        let mut fields = line.split_ascii_whitespace();
        (fields.nth(3)? == "0A").then(|| fields.nth(5)).flatten()
    })
}

#[cfg(test)]
mod tests {
    use core::time::Duration;
    use std::io::Read;

    use super::*;
    use crate::poll::{self, PollInterest};

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    fn launch<'a>(program: &'a str, arguments: &'a [String]) -> LaunchParameters<'a> {
        LaunchParameters {
            program,
            arguments,
            directory: None,
            environment: None,
            namespace: None,
            outputs: OutputTarget::Pipes,
            gives_way: true,
        }
    }

    fn wait_for_end(launched: &LaunchedProcess) {
        assert!(poll::wait_for(launched, PollInterest::READ, Some(Duration::from_secs(20))).expect("poll"), "it ends");
    }

    fn read(pipe: Option<File>) -> String {
        let mut text = String::new();
        // What was written before the end is there; a group's other members may keep the pipe open.
        let _ = pipe.expect("a pipe").read_to_string(&mut text);
        text
    }

    #[test]
    fn it_has_its_directory_environment_and_outputs() {
        let arguments = ["-c".to_owned(), "pwd; echo $A$HOME; echo oh >&2; cat".to_owned()];
        let environment = [("A".to_owned(), "b".to_owned()), ("PATH".to_owned(), "/usr/bin:/bin".to_owned())];
        let mut launch = launch("sh", &arguments);
        launch.directory = Some(Path::new("/usr"));
        launch.environment = Some(&environment);
        let launched = start(&launch).expect("sh runs");
        wait_for_end(&launched);
        assert_eq!((read(launched.stdout).as_str(), read(launched.stderr).as_str()), ("/usr\nb\n", "oh\n"));
    }

    #[test]
    fn an_interrupt_reaches_the_group() {
        let arguments = ["-c".to_owned(), "sleep 100 & wait; echo not here".to_owned()];
        let launched = start(&launch("sh", &arguments)).expect("sh runs");
        assert!(!poll::wait_for(&launched, PollInterest::READ, Some(Duration::from_millis(50))).expect("poll"));
        launched.ask(LaunchSignal::Interrupt).expect("ours");
        launched.ask(LaunchSignal::Kill).expect("ours, or gone");
        wait_for_end(&launched);
        assert_eq!(read(launched.stdout), "");
    }

    #[test]
    fn failed_starts_are_explained() {
        let arguments = words("-x y");
        let mut absent = launch("no-such-program-here", &arguments);
        absent.directory = Some(Path::new("/usr"));
        let nowhere = LaunchParameters { directory: Some(Path::new("/no/such/place")), ..absent };
        let error = start(&absent).expect_err("not there").to_string();
        assert_eq!(
            error,
            "running `no-such-program-here -x y` in /usr: No such file or directory (the program is not installed, or \
             not in $PATH)"
        );
        let error = start(&nowhere).expect_err("no directory").to_string();
        assert!(error.ends_with("No such file or directory (the directory does not exist there)"), "{error}");
        let error = start(&LaunchParameters { program: "./absent", ..absent }).expect_err("no file").to_string();
        assert!(error.ends_with("(there is no such file, or its interpreter (the first line of a script) is missing)"));
    }

    #[test]
    fn listeners_in_the_kernels_table() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
                     0: 00000000:1451 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1\n   \
                     1: 0100007F:1451 0100007F:9C40 01 00000000:00000000 00:00000000 00000000     0        0 4712 1\n";
        assert_eq!(listening_sockets(table).collect::<Vec<_>>(), ["4711"]);
        assert_eq!(listening_sockets("").count(), 0);
    }

    #[test]
    fn this_process_listens_or_does_not() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback");
        let sockets = open_sockets(Path::new("/proc/self/fd")).expect("procfs");
        let table = fs::read_to_string("/proc/self/net/tcp").expect("procfs");
        assert!(listening_sockets(&table).any(|socket| sockets.contains(socket)));
        drop(listener);
        let arguments = words("0");
        let idle = start(&launch("sleep", &arguments)).expect("sleep runs");
        assert!(!idle.listens());
        wait_for_end(&idle);
    }
}
