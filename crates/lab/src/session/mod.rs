//! The host's side of a guest: launching it, passing on what it says, watching that it advances, ending it.
//!
//! ```text
//!   this process ──► supervisor ──► (first process of a namespace) ──► User-Mode Linux ──► its traced processes
//!        ▲  │            watches a pipe from this process, whose end tells that this process is gone
//!        │  └── requests, single bytes
//!        └───── frames, kernel's log, supervisor's reports
//! ```
//!
//! Nothing that is started here outlives the session, whichever of these processes is killed: see [`supervisor`].

mod error;
mod host_view;
mod kernel_log;
mod launch;
mod orders;
mod private;
mod processor;
mod reader;
mod requirements;
pub mod supervisor;
mod watch;
mod watchdog;

use core::time::Duration;
use std::path::PathBuf;

use linerate_sys::signals::{Interrupts, Signal};
use linerate_units::PacketCount;

use crate::job::{Capture, Command, End};
use crate::plan::Plan;

pub use error::{Culprit, SessionError};
pub use kernel_log::KernelTrouble;

/// What to run, and how.
#[derive(Clone, Debug)]
pub struct Request {
    /// What to set up.
    pub plan: Plan,
    /// What to run in it.
    pub command: Command,
    /// Directories of this host in which the command may write.
    pub writable: Vec<PathBuf>,
    /// Packets to capture.
    pub capture: Option<Capture>,
    /// What carries the path.
    pub back_end: BackEnd,
    /// Seed of the guest's kernel: ports, sequence numbers, hashes. Only a kernel of its own has one.
    pub seed: u64,
    /// How long the guest may say nothing, in this host's time, before it is taken to hang. It says something in each
    /// second of its own time.
    pub stall_limit: Duration,
    /// The linerate binary: it is the guest's first process, and supervises it.
    pub linerate: PathBuf,
    /// How the guest's processes are held together.
    pub containment: Containment,
}

impl Request {
    /// The usual [`Request::stall_limit`].
    pub const STALL_LIMIT: Duration = Duration::from_secs(60);
}

/// What carries a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BackEnd {
    /// A Linux kernel as a process, in virtual time.
    UserModeLinux {
        /// The kernel.
        kernel: PathBuf,
    },
    /// Namespaces of this host's kernel, in real time. Needs root, and netem for most paths.
    Namespaces,
}

/// How the guest's processes are held together, so that none survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Containment {
    /// By a process namespace where this host allows that, else as [`Containment::ProcessTree`].
    #[default]
    Best,
    /// By a supervisor that adopts and kills whatever is below it.
    ProcessTree,
}

/// What happens in a session, as it happens. Times are since the session's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionEvent<'a> {
    /// Everything stands, and the command starts.
    Ready {
        /// Time on this host.
        wall_time: Duration,
    },
    /// The command wrote this to its standard output.
    Output(&'a [u8]),
    /// The command wrote this to its standard error.
    Error(&'a [u8]),
    /// Time has passed in the guest.
    Progress {
        /// Since the command's start, in the guest's time.
        guest_time: Duration,
        /// Since the session's start, on this host.
        wall_time: Duration,
    },
    /// Something that a person should know about this run, which goes on.
    Note(&'a str),
    /// The guest's kernel, or the guest in namespaces, logged this line.
    KernelLine(&'a str),
}

/// How a session went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// How the command ended; `None` when the guest was killed before that, as it was interrupted and did not end in
    /// time.
    pub end: Option<End>,
    /// The signal that interrupted the session: then the result is a part.
    pub interrupted: Option<Signal>,
    /// The command's time in the guest, as far as the guest has told.
    pub guest_time: Duration,
    /// The command's time on this host.
    pub wall_time: Duration,
    /// From the launch to the command's start, on this host: boot and set-up. `None` when it did not start.
    pub boot_time: Option<Duration>,
    /// Packets in the capture; `None` without a capture.
    pub captured: Option<Captured>,
}

/// What a capture has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Captured {
    /// Packets in the file.
    pub packets: PacketCount,
    /// Packets that went past unseen, as the capture did not keep up.
    pub missed: PacketCount,
}

/// Runs a guest to its end, and tells `observer` what happens. The observer does not hold the guest up: what it has not
/// taken yet waits here, up to 64 MiB.
///
/// The first signal from `stop` interrupts the command, which then can end with a partial result; a second one, or five
/// seconds without an end, kills the guest.
pub fn run(
    request: &Request,
    stop: Option<&Interrupts>,
    observer: &mut dyn FnMut(SessionEvent<'_>),
) -> Result<Outcome, SessionError> {
    let first = watch::run(request, request.containment, stop, observer);
    match (first, request.containment) {
        // Namespaces were promised and then could not be entered: nothing has run yet.
        (Err(SessionError::NotContained { .. }), Containment::Best) if request.back_end != BackEnd::Namespaces => {
            watch::run(request, Containment::ProcessTree, stop, observer)
        }
        (result, _) => result,
    }
}
