//! The process between a session and its guest, which sees to it that nothing is left of the guest.
//!
//! User-Mode Linux traces its processes from a session of its own, so neither a process group nor Ctrl-C reaches them,
//! and a kernel that is killed would leave them behind. Whoever is killed, with a signal that cannot be caught:
//!
//! | killed | what ends the rest |
//! |---|---|
//! | the session | the supervisor reads the end of a pipe of which the session had the other end, and kills everything |
//! | the supervisor | the first process of the namespace has asked to die with its parent, and the namespace goes with it; without a namespace the kernel in user mode has asked to, and its processes to die with it; the session looks again |
//! | the first process of the namespace | the host's kernel kills all others there; the supervisor sees the end |
//! | the kernel in user mode | its parent sees the end, and kills what is left |

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, PipeReader, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use linerate_model::parameters::Cpu;
use linerate_sys::poll::{self, Interest, PollItem};
use linerate_sys::process::pin_thread;
use linerate_sys::supervise::{
    Isolation, Launch, Process, adopt_orphans, become_program, die_with_parent, isolate, kill_descendants, reap_until,
    take_inherited,
};

use crate::session::orders::{Orders, Report};

/// The hidden command of the linerate binary that comes here.
pub const COMMAND: &str = "__lab-supervise";

/// The supervisor's first argument: it watches.
pub(super) const WATCH: &str = "watch";

/// Or: it is the first process of a namespace.
const FIRST: &str = "first";

/// How long killed processes may take to be gone.
const GONE_WITHIN: Duration = Duration::from_secs(10);

/// The exit code of a supervisor that could not do its work.
const UNABLE: u8 = 125;

/// Carries out the hidden command with the arguments after its name; the answer is the exit code.
#[must_use]
pub fn run(arguments: &[OsString]) -> u8 {
    let words: Vec<&OsStr> = arguments.iter().map(OsString::as_os_str).collect();
    let (role, path, lifeline) = match words[..] {
        [role, path] if role == WATCH => (WATCH, path, None),
        [role, path, number] if role == FIRST => (FIRST, path, number.to_str().and_then(|text| text.parse().ok())),
        _ => return UNABLE,
    };
    let read = fs::read(path).ok().and_then(|text| serde_json::from_slice::<Orders>(&text).ok());
    // Without these there is nobody to tell: the session sees the exit code.
    let Some(orders) = read else { return UNABLE };
    match Channels::take(&orders) {
        Ok(mut channels) if role == WATCH => watch(&orders, Path::new(path), &mut channels),
        Ok(channels) => be_first(&orders, &channels, lifeline),
        Err(_) => UNABLE,
    }
}

/// The descriptors that the session left open for us.
struct Channels {
    alive: OwnedFd,
    reports: fs::File,
    /// These two are for the guest: its ends are the only ones when we have closed ours.
    guest: Option<(OwnedFd, OwnedFd)>,
}

impl Channels {
    fn take(orders: &Orders) -> linerate_sys::Result<Self> {
        Ok(Self {
            alive: take_inherited(orders.alive)?,
            reports: take_inherited(orders.reports)?.into(),
            guest: Some((take_inherited(orders.requests)?, take_inherited(orders.frames)?)),
        })
    }

    /// A session that is gone reads no reports.
    fn report(&self, report: &Report) {
        let _ = (&self.reports).write_all(&report.line());
    }
}

/// Starts the guest, waits until it or the session has ended, and leaves nothing behind.
fn watch(orders: &Orders, path: &Path, channels: &mut Channels) -> u8 {
    let lifeline;
    let mut process = match start(orders, path, channels) {
        Ok((process, line)) => {
            lifeline = line;
            process
        }
        Err((error, namespace)) => {
            channels.report(&Report::Failed { error: error.to_string(), namespace });
            return UNABLE;
        }
    };
    channels.guest = None;
    channels.report(&Report::Started { process: process.id() });
    let code = wait_for_end(&mut process, &channels.alive);
    drop(lifeline);
    let _ = kill_descendants(GONE_WITHIN);
    let _ = fs::remove_dir_all(&orders.directory);
    channels.report(&Report::Ended { code });
    0
}

/// Starts what is to be watched; the writing end of the pipe that shows the first process whether we still live. With an
/// error, whether it is about the namespace.
fn start(
    orders: &Orders,
    path: &Path,
    channels: &Channels,
) -> Result<(Process, io::PipeWriter), (linerate_sys::Error, bool)> {
    adopt_orphans().map_err(|error| (error, false))?;
    if let Some(processor) = orders.processor {
        // It also runs unbound, only slower.
        let _ = pin_thread(Cpu(processor));
    }
    let (line, writer) = pipe().map_err(|error| (error, false))?;
    if !orders.in_namespace {
        return Ok((start_program(orders, channels).map_err(|error| (error, false))?, writer));
    }
    isolate(Isolation::Processes).map_err(|error| (error, true))?;
    Ok((start_first(orders, path, channels, &line).map_err(|error| (error, false))?, writer))
}

fn pipe() -> linerate_sys::Result<(PipeReader, io::PipeWriter)> {
    io::pipe().map_err(|cause| linerate_sys::Error::System { operation: "making a pipe".into(), cause, hint: None })
}

/// Starts this binary again, as the first process of the namespace.
fn start_first(
    orders: &Orders,
    path: &Path,
    channels: &Channels,
    lifeline: &PipeReader,
) -> linerate_sys::Result<Process> {
    let mut inherited = vec![lifeline.as_fd(), channels.alive.as_fd(), channels.reports.as_fd()];
    if let Some((requests, frames)) = &channels.guest {
        inherited.extend([requests.as_fd(), frames.as_fd()]);
    }
    let number = lifeline.as_raw_fd().to_string();
    Launch {
        program: &orders.linerate,
        arguments: &[COMMAND.into(), FIRST.into(), path.into(), number.into()],
        environment: None,
        output: Some(io::stderr().as_fd()),
        inherited: &inherited,
        own_session: true,
        dies_with_parent: true,
    }
    .start()
}

/// Starts the kernel in user mode.
fn start_program(orders: &Orders, channels: &Channels) -> linerate_sys::Result<Process> {
    let (arguments, environment) = words(orders);
    let inherited = channels.guest.iter().flat_map(|(requests, frames)| [requests.as_fd(), frames.as_fd()]);
    Launch {
        program: &orders.program,
        arguments: &arguments,
        environment: Some(&environment),
        output: Some(io::stderr().as_fd()),
        inherited: &inherited.collect::<Vec<_>>(),
        own_session: true,
        dies_with_parent: true,
    }
    .start()
}

type Environment = Vec<(OsString, OsString)>;

fn words(orders: &Orders) -> (Vec<OsString>, Environment) {
    let environment = orders.environment.iter().map(|(key, value)| (key.into(), value.into()));
    (orders.arguments.iter().map(OsString::from).collect(), environment.collect())
}

/// Waits until the process has ended, or kills it when the session has. Its exit code, as shells have it.
fn wait_for_end(process: &mut Process, alive: &OwnedFd) -> i32 {
    let ended = {
        let mut items = [PollItem::new(&*process, Interest::READ), PollItem::new(alive, Interest::READ)];
        poll::wait(&mut items, None).is_ok() && items[0].is_ready()
    };
    if !ended {
        process.kill();
    }
    process.wait().map_or(i32::from(UNABLE), code_of)
}

fn code_of(status: ExitStatus) -> i32 {
    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or_else(|| i32::from(UNABLE))
}

/// The first process of a namespace: starts the kernel and ends with it, or becomes the guest.
fn be_first(orders: &Orders, channels: &Channels, lifeline: Option<i32>) -> u8 {
    let failed = |error: &linerate_sys::Error| {
        channels.report(&Report::Failed { error: error.to_string(), namespace: false });
        UNABLE
    };
    // A supervisor that died before this line would not have been noticed: then the pipe has ended.
    let orphaned = || {
        let line = lifeline.and_then(|number| take_inherited(number).ok());
        line.is_none_or(|line| poll::wait_for(&line, Interest::READ, Some(Duration::ZERO)).unwrap_or(true))
    };
    if let Err(error) = die_with_parent() {
        return failed(&error);
    }
    if orphaned() {
        return UNABLE;
    }
    if orders.own_network {
        return failed(&become_guest(orders, channels));
    }
    match start_program(orders, channels).and_then(|process| reap_until(process.id())) {
        Ok(status) => u8::try_from(code_of(status)).unwrap_or(UNABLE),
        Err(error) => failed(&error),
    }
}

/// Comes back only with an error.
fn become_guest(orders: &Orders, channels: &Channels) -> linerate_sys::Error {
    if let Err(error) = isolate(Isolation::MountsAndNetwork) {
        return error;
    }
    let (arguments, environment) = words(orders);
    let inherited = channels.guest.iter().flat_map(|(requests, frames)| [requests.as_fd(), frames.as_fd()]);
    become_program(&orders.program, &arguments, &environment, &inherited.collect::<Vec<_>>())
}
