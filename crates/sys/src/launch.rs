//! Programs that run beside this one: started in a network namespace, watched, signalled.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::command::{self, command_line, set_nonblocking};
use crate::error::{Error, Result, check};
use crate::machine;
use crate::namespace::{self, NetworkNamespace};

/// What to start, and where.
#[derive(Clone, Copy, Debug)]
pub struct Launch<'a> {
    /// Name or path of the program. Without a slash it is looked for in the `PATH` of its own environment, then in the
    /// places of administration programs; with one it is taken as seen from `directory`.
    pub program: &'a str,
    /// Its arguments.
    pub arguments: &'a [String],
    /// Where it runs; `None` for the directory of this process.
    pub directory: Option<&'a Path>,
    /// Its whole environment; `None` for that of this process.
    pub environment: Option<&'a [(String, String)]>,
    /// The network that it sees; `None` for that of this thread.
    pub namespace: Option<&'a NetworkNamespace>,
    /// Where its standard output and its standard error go.
    pub outputs: Outputs<'a>,
    /// Whether it runs only when nothing else can (`SCHED_IDLE`), so that it cannot hold up who watches it.
    pub gives_way: bool,
}

/// Where the outputs of a program go.
#[derive(Clone, Copy, Debug)]
pub enum Outputs<'a> {
    /// Into a pipe each, which this process reads.
    Pipes,
    /// Both into a file.
    File(&'a File),
}

/// A program that was started, with its standard input on `/dev/null`, as the leader of a process group of its own.
///
/// Dropping this neither ends nor waits for it. Whoever reaps all children ([`crate::machine::reap`]) learns from there
/// how it ended.
#[derive(Debug)]
pub struct Launched {
    process: u32,
    ended: OwnedFd,
    /// Its standard output, to be read without waiting; `None` without pipes.
    pub stdout: Option<File>,
    /// Its standard error, likewise.
    pub stderr: Option<File>,
}

/// A signal for a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// `SIGINT`, as Ctrl-C does: to come to an end.
    Interrupt,
    /// `SIGKILL`: it ends now.
    Kill,
}

/// Starts a program.
pub fn start(launch: &Launch<'_>) -> Result<Launched> {
    // A program inherits the network and the scheduling of the thread that starts it.
    let start = || {
        if launch.gives_way {
            machine::run_after_others()?;
        }
        start_here(launch)
    };
    match launch.namespace {
        Some(namespace) => namespace.within(start)?,
        None => namespace::in_thread(start)?,
    }
}

fn start_here(launch: &Launch<'_>) -> Result<Launched> {
    let failed = |cause| Error::system(description(launch), cause);
    if let Some(directory) = launch.directory
        && let Err(cause) = directory.metadata()
    {
        return Err(failed(cause).hint_on(libc::ENOENT, "the directory does not exist there"));
    }
    let program = find(launch).map_err(|cause| failed(cause).hint_on(libc::ENOENT, command::NOT_FOUND))?;
    let hint = "there is no such file, or what runs it (the first line of a script) is missing";
    let child = spawn(launch, &program).map_err(|cause| failed(cause).hint_on(libc::ENOENT, hint))?;
    watch(child).map_err(failed)
}

fn description(launch: &Launch<'_>) -> String {
    let arguments: Vec<&str> = launch.arguments.iter().map(String::as_str).collect();
    let line = command_line(launch.program, &arguments);
    match launch.directory {
        Some(directory) => format!("running `{line}` in {}", directory.display()),
        None => format!("running `{line}`"),
    }
}

/// Where the program is, as seen from the directory in which it runs.
fn find(launch: &Launch<'_>) -> io::Result<PathBuf> {
    let own = |variables: &[(String, String)]| {
        variables.iter().find(|(name, _)| name == "PATH").map(|(_, value)| OsString::from(value))
    };
    let path = launch.environment.map_or_else(|| std::env::var_os("PATH"), own);
    let program = command::find(launch.program, path)?;
    Ok(launch.directory.map_or_else(|| program.clone(), |directory| directory.join(&program)))
}

fn spawn(launch: &Launch<'_>, program: &Path) -> io::Result<Child> {
    let mut command = Command::new(program);
    command.arg0(launch.program).args(launch.arguments).stdin(Stdio::null()).process_group(0);
    if let Some(directory) = launch.directory {
        command.current_dir(directory);
    }
    if let Some(variables) = launch.environment {
        command.env_clear().envs(variables.iter().map(|(name, value)| (name, value)));
    }
    match launch.outputs {
        Outputs::Pipes => command.stdout(Stdio::piped()).stderr(Stdio::piped()),
        Outputs::File(file) => command.stdout(file.try_clone()?).stderr(file.try_clone()?),
    };
    command.spawn()
}

fn watch(mut child: Child) -> io::Result<Launched> {
    let pipe = |end: Option<OwnedFd>| end.map(|end| set_nonblocking(&end).map(|()| File::from(end))).transpose();
    let stdout = pipe(child.stdout.take().map(OwnedFd::from))?;
    let stderr = pipe(child.stderr.take().map(OwnedFd::from))?;
    let process = child.id();
    // SAFETY: takes numbers. The child has not been waited for, so the number is its own; the descriptor that comes back
    // is new (and closed on exec), so nothing else owns it.
    let ended = unsafe {
        let answer = libc::syscall(libc::SYS_pidfd_open, libc::c_long::from(process), 0);
        OwnedFd::from_raw_fd(check(libc::c_int::try_from(answer).unwrap_or(-1))?)
    };
    Ok(Launched { process, ended, stdout, stderr })
}

impl Launched {
    /// Its number, which is its process group's too.
    #[must_use]
    pub fn process(&self) -> u32 {
        self.process
    }

    /// Sends a signal to it and all that it has started (its process group). One that is gone already is no error.
    pub fn ask(&self, what: Ask) -> Result<()> {
        let signal = match what {
            Ask::Interrupt => libc::SIGINT,
            Ask::Kill => libc::SIGKILL,
        };
        let Ok(group @ 2..) = libc::pid_t::try_from(self.process) else { return Ok(()) };
        // SAFETY: takes numbers; the group was made for this program, and is none of ours.
        match check(unsafe { libc::kill(-group, signal) }) {
            Err(cause) if cause.raw_os_error() != Some(libc::ESRCH) => {
                Err(Error::system(format!("sending signal {signal} to process group {group}"), cause))
            }
            _ => Ok(()),
        }
    }

    /// Whether it has a TCP socket that listens. `false` also when `/proc` does not tell.
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

impl AsFd for Launched {
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
    use crate::poll::{self, Interest};

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    fn launch<'a>(program: &'a str, arguments: &'a [String]) -> Launch<'a> {
        Launch {
            program,
            arguments,
            directory: None,
            environment: None,
            namespace: None,
            outputs: Outputs::Pipes,
            gives_way: true,
        }
    }

    fn wait_for_end(launched: &Launched) {
        assert!(poll::wait_for(launched, Interest::READ, Some(Duration::from_secs(20))).expect("poll"), "it ends");
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
        assert!(!poll::wait_for(&launched, Interest::READ, Some(Duration::from_millis(50))).expect("poll"));
        launched.ask(Ask::Interrupt).expect("ours");
        launched.ask(Ask::Kill).expect("ours, or gone");
        wait_for_end(&launched);
        assert_eq!(read(launched.stdout), "");
    }

    #[test]
    fn what_cannot_start_says_so() {
        let arguments = words("-x y");
        let mut absent = launch("no-such-program-here", &arguments);
        absent.directory = Some(Path::new("/usr"));
        let nowhere = Launch { directory: Some(Path::new("/no/such/place")), ..absent };
        let error = start(&absent).expect_err("not there").to_string();
        assert_eq!(
            error,
            "running `no-such-program-here -x y` in /usr: No such file or directory (the program is not installed, or \
             not in $PATH)"
        );
        let error = start(&nowhere).expect_err("no directory").to_string();
        assert!(error.ends_with("No such file or directory (the directory does not exist there)"), "{error}");
        let error = start(&Launch { program: "./absent", ..absent }).expect_err("no file").to_string();
        assert!(error.ends_with("(there is no such file, or what runs it (the first line of a script) is missing)"));
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
