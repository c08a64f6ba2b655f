//! The process between a session and its guest, which ensures that nothing is left of the guest.
//!
//! User-Mode Linux traces its processes from a session of its own, so neither a process group nor Ctrl-C reaches them,
//! and a kernel that is killed would leave them behind. Cleanup by killed process, with a signal that cannot be caught:
//!
//! | killed | cleanup |
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

use linerate_model::json;
use linerate_model::parameters::CpuIndex;
use linerate_sys::poll::{self, PollInterest, PollItem};
use linerate_sys::process::pin_thread;
use linerate_sys::supervise::{
    NamespaceIsolation, SupervisedLaunch, SupervisedProcess, adopt_orphans, become_program, die_with_parent, isolate,
    kill_descendants, reap_until, take_inherited,
};

use crate::session::orders::{SupervisorOrders, SupervisorReport};

/// Hidden subcommand of the linerate binary that runs the supervisor.
pub const HIDDEN_SUBCOMMAND: &str = "__lab-supervise";

/// First argument of the supervisor: watch a guest.
pub(super) const WATCH_ROLE: &str = "watch";

/// First argument of the supervisor: be the first process of a namespace.
const FIRST_PROCESS_ROLE: &str = "first";

/// Maximum time for killed processes to be gone.
const KILL_TIMEOUT: Duration = Duration::from_secs(10);

/// The exit code of a supervisor that could not do its work.
const EXIT_UNABLE: u8 = 125;

/// Runs the hidden subcommand with the arguments after its name; returns the exit code.
#[must_use]
pub fn run(arguments: &[OsString]) -> u8 {
    let words: Vec<&OsStr> = arguments.iter().map(OsString::as_os_str).collect();
    let (role, path, lifeline) = match words[..] {
        [role, path] if role == WATCH_ROLE => (WATCH_ROLE, path, None),
        [role, path, number] if role == FIRST_PROCESS_ROLE => {
            (FIRST_PROCESS_ROLE, path, number.to_str().and_then(|text| text.parse().ok()))
        }
        _ => return EXIT_UNABLE,
    };
    let read = fs::read(path).ok().and_then(|text| json::from_slice::<SupervisorOrders>(&text).ok());
    // Without these there is no channel for a report: the session sees the exit code.
    let Some(orders) = read else { return EXIT_UNABLE };
    match SessionChannels::take(&orders) {
        Ok(mut channels) if role == WATCH_ROLE => watch(&orders, Path::new(path), &mut channels),
        Ok(channels) => run_first_process(&orders, &channels, lifeline),
        Err(_) => EXIT_UNABLE,
    }
}

/// Descriptors that the session left open for the supervisor.
struct SessionChannels {
    alive: OwnedFd,
    reports: fs::File,
    /// Descriptors for the guest: its copies are the only ones once these are closed.
    guest: Option<(OwnedFd, OwnedFd)>,
}

impl SessionChannels {
    fn take(orders: &SupervisorOrders) -> linerate_sys::Result<Self> {
        Ok(Self {
            alive: take_inherited(orders.alive)?,
            reports: take_inherited(orders.reports)?.into(),
            guest: Some((take_inherited(orders.requests)?, take_inherited(orders.frames)?)),
        })
    }

    /// A session that is gone reads no reports.
    fn report(&self, report: &SupervisorReport) {
        let _ = (&self.reports).write_all(&report.line());
    }
}

/// Starts the guest, waits until it or the session has ended, and leaves nothing behind.
fn watch(orders: &SupervisorOrders, path: &Path, channels: &mut SessionChannels) -> u8 {
    let lifeline;
    let mut process = match start(orders, path, channels) {
        Ok((process, line)) => {
            lifeline = line;
            process
        }
        Err((error, namespace)) => {
            channels.report(&SupervisorReport::Failed { error: error.to_string(), namespace });
            return EXIT_UNABLE;
        }
    };
    channels.guest = None;
    channels.report(&SupervisorReport::Started { process: process.id() });
    let code = wait_for_end(&mut process, &channels.alive);
    drop(lifeline);
    let _ = kill_descendants(KILL_TIMEOUT);
    let _ = fs::remove_dir_all(&orders.directory);
    channels.report(&SupervisorReport::Ended { code });
    0
}

/// Starts the process to be watched; returns the writing end of the pipe that shows the first process that the
/// supervisor still lives. An error includes whether it is about the namespace.
fn start(
    orders: &SupervisorOrders,
    path: &Path,
    channels: &SessionChannels,
) -> Result<(SupervisedProcess, io::PipeWriter), (linerate_sys::Error, bool)> {
    adopt_orphans().map_err(|error| (error, false))?;
    if let Some(processor) = orders.processor {
        // It also runs unbound, only slower.
        let _ = pin_thread(CpuIndex(processor));
    }
    let (line, writer) = pipe().map_err(|error| (error, false))?;
    if !orders.in_namespace {
        return Ok((start_program(orders, channels).map_err(|error| (error, false))?, writer));
    }
    isolate(NamespaceIsolation::Processes).map_err(|error| (error, true))?;
    Ok((start_first(orders, path, channels, &line).map_err(|error| (error, false))?, writer))
}

fn pipe() -> linerate_sys::Result<(PipeReader, io::PipeWriter)> {
    io::pipe().map_err(|cause| linerate_sys::Error::System { operation: "making a pipe".into(), cause, hint: None })
}

/// Starts this binary again, as the first process of the namespace.
fn start_first(
    orders: &SupervisorOrders,
    path: &Path,
    channels: &SessionChannels,
    lifeline: &PipeReader,
) -> linerate_sys::Result<SupervisedProcess> {
    let mut inherited = vec![lifeline.as_fd(), channels.alive.as_fd(), channels.reports.as_fd()];
    if let Some((requests, frames)) = &channels.guest {
        inherited.extend([requests.as_fd(), frames.as_fd()]);
    }
    let number = lifeline.as_raw_fd().to_string();
    SupervisedLaunch {
        program: &orders.linerate,
        arguments: &[HIDDEN_SUBCOMMAND.into(), FIRST_PROCESS_ROLE.into(), path.into(), number.into()],
        environment: None,
        output: Some(io::stderr().as_fd()),
        inherited: &inherited,
        own_session: true,
        dies_with_parent: true,
    }
    .start()
}

/// Starts the kernel in user mode.
fn start_program(orders: &SupervisorOrders, channels: &SessionChannels) -> linerate_sys::Result<SupervisedProcess> {
    let (arguments, environment) = os_arguments(orders);
    let inherited = channels.guest.iter().flat_map(|(requests, frames)| [requests.as_fd(), frames.as_fd()]);
    SupervisedLaunch {
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

type EnvironmentVariables = Vec<(OsString, OsString)>;

fn os_arguments(orders: &SupervisorOrders) -> (Vec<OsString>, EnvironmentVariables) {
    let environment = orders.environment.iter().map(|(key, value)| (key.into(), value.into()));
    (orders.arguments.iter().map(OsString::from).collect(), environment.collect())
}

/// Waits until the process has ended, or kills it when the session has. Returns its exit code, as in shells.
fn wait_for_end(process: &mut SupervisedProcess, alive: &OwnedFd) -> i32 {
    let ended = {
        let mut items = [PollItem::new(&*process, PollInterest::READ), PollItem::new(alive, PollInterest::READ)];
        poll::wait(&mut items, None).is_ok() && items[0].is_ready()
    };
    if !ended {
        process.kill();
    }
    process.wait().map_or(i32::from(EXIT_UNABLE), code_of)
}

fn code_of(status: ExitStatus) -> i32 {
    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or_else(|| i32::from(EXIT_UNABLE))
}

/// The first process of a namespace: starts the kernel and ends with it, or becomes the guest.
fn run_first_process(orders: &SupervisorOrders, channels: &SessionChannels, lifeline: Option<i32>) -> u8 {
    let failed = |error: &linerate_sys::Error| {
        channels.report(&SupervisorReport::Failed { error: error.to_string(), namespace: false });
        EXIT_UNABLE
    };
    // A supervisor that died before this line would not have been noticed: then the pipe has ended.
    let orphaned = || {
        let line = lifeline.and_then(|number| take_inherited(number).ok());
        line.is_none_or(|line| poll::wait_for(&line, PollInterest::READ, Some(Duration::ZERO)).unwrap_or(true))
    };
    if let Err(error) = die_with_parent() {
        return failed(&error);
    }
    if orphaned() {
        return EXIT_UNABLE;
    }
    if orders.own_network {
        return failed(&become_guest(orders, channels));
    }
    match start_program(orders, channels).and_then(|process| reap_until(process.id())) {
        Ok(status) => u8::try_from(code_of(status)).unwrap_or(EXIT_UNABLE),
        Err(error) => failed(&error),
    }
}

/// Returns only with an error.
fn become_guest(orders: &SupervisorOrders, channels: &SessionChannels) -> linerate_sys::Error {
    if let Err(error) = isolate(NamespaceIsolation::MountsAndNetwork) {
        return error;
    }
    let (arguments, environment) = os_arguments(orders);
    let inherited = channels.guest.iter().flat_map(|(requests, frames)| [requests.as_fd(), frames.as_fd()]);
    become_program(&orders.program, &arguments, &environment, &inherited.collect::<Vec<_>>())
}
