//! The host's side of a guest: launching it, relaying its messages, watching that it advances, ending it.
//!
//! ```text
//!   this process ──► supervisor ──► (first process of a namespace) ──► User-Mode Linux ──► its traced processes
//!        ▲  │            watches a pipe from this process, whose end means that this process is gone
//!        │  └── requests, single bytes
//!        └───── frames, kernel's log, supervisor's reports
//! ```
//!
//! Nothing that is started here outlives the session, whichever of these processes is killed: see [`supervisor`].

mod cpu_claim;
mod error;
mod host_view;
mod kernel_log;
mod launch;
mod orders;
mod private_directory;
mod reader;
mod requirements;
pub mod supervisor;
mod watch;
mod watchdog;

use core::time::Duration;
use std::path::PathBuf;

use linerate_sys::signals::{InterruptSignals, Signal};
use linerate_units::PacketCount;

use crate::job::{CaptureRequest, CommandEnd, GuestCommand};
use crate::plan::PathPlan;

pub use error::{SessionError, StallingProcess};
pub use kernel_log::KernelProblem;

/// Parameters of a session.
#[derive(Clone, Debug)]
pub struct SessionRequest {
    /// Plan to set up.
    pub plan: PathPlan,
    /// Command to run in it.
    pub command: GuestCommand,
    /// Directories of this host in which the command may write.
    pub writable: Vec<PathBuf>,
    /// Packets to capture.
    pub capture: Option<CaptureRequest>,
    /// Back end that emulates the path.
    pub back_end: BackEnd,
    /// Seed of the guest's kernel: ports, sequence numbers, hashes. Only a kernel of its own has one.
    pub seed: u64,
    /// Maximum silence of the guest, in this host's time, before it is considered stalled. It sends a message in each
    /// second of its own time.
    pub stall_limit: Duration,
    /// The linerate binary: it is the guest's first process, and supervises it.
    pub linerate: PathBuf,
    /// Containment of the guest's processes.
    pub containment: ProcessContainment,
}

impl SessionRequest {
    /// Default of [`SessionRequest::stall_limit`].
    pub const STALL_LIMIT: Duration = Duration::from_secs(60);
}

/// Back ends that emulate a path.
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

/// Containment of the guest's processes, so that none survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProcessContainment {
    /// By a process namespace where this host allows that, else as [`ProcessContainment::ProcessTree`].
    #[default]
    Best,
    /// By a supervisor that adopts and kills whatever is below it.
    ProcessTree,
}

/// Events of a session. Times are since the session's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionEvent<'a> {
    /// The path is set up, and the command starts.
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
    /// Note for people about this run, which goes on.
    Note(&'a str),
    /// The guest's kernel, or the guest in namespaces, logged this line.
    KernelLine(&'a str),
}

/// Result of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionOutcome {
    /// End of the command; `None` when the guest was killed before that, as it was interrupted and did not end in time.
    pub end: Option<CommandEnd>,
    /// Signal that interrupted the session: the result is partial.
    pub interrupted: Option<Signal>,
    /// The command's time in the guest, as last reported.
    pub guest_time: Duration,
    /// The command's time on this host.
    pub wall_time: Duration,
    /// From the launch to the command's start, on this host: boot and set-up. `None` when it did not start.
    pub boot_time: Option<Duration>,
    /// Packets in the capture; `None` without a capture.
    pub captured: Option<CapturedPackets>,
}

/// Counts of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CapturedPackets {
    /// Packets in the file.
    pub packets: PacketCount,
    /// Packets that were missed, as the capture did not keep up.
    pub missed: PacketCount,
}

/// Runs a guest to its end, and reports events to `observer`. The observer does not delay the guest: events that it has
/// not received wait here, up to 64 MiB.
///
/// The first signal from `stop` interrupts the command, which then can end with a partial result; a second one, or five
/// seconds without an end, kills the guest.
pub fn run(
    request: &SessionRequest,
    stop: Option<&InterruptSignals>,
    observer: &mut dyn FnMut(SessionEvent<'_>),
) -> Result<SessionOutcome, SessionError> {
    let first = watch::run(request, request.containment, stop, observer);
    match (first, request.containment) {
        // Namespaces were promised and then could not be entered: nothing has run yet.
        (Err(SessionError::NotContained { .. }), ProcessContainment::Best)
            if request.back_end != BackEnd::Namespaces =>
        {
            watch::run(request, ProcessContainment::ProcessTree, stop, observer)
        }
        (result, _) => result,
    }
}
