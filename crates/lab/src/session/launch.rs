//! Launches a guest: checks its requirements, writes its files, starts the supervisor.

use core::time::Duration;
use std::io::{self, PipeReader, PipeWriter, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};

use linerate_model::socket::ProcessId;
use linerate_sys::poll::{PollInterest, wait_for};
use linerate_sys::process::is_root;
use linerate_sys::supervise::{
    SupervisedLaunch, SupervisedProcess, alarm_running, descendants, kill_remains, set_nonblocking, set_pipe_capacity,
};
use linerate_units::ByteCount;

use crate::guest::{self, GuestChannel};
use crate::job::{self, GuestJob};
use crate::session::cpu_claim::{CpuClaim, claim_processor};
use crate::session::orders::SupervisorOrders;
use crate::session::private_directory::PrivateDirectory;
use crate::session::requirements::place_for_memory;
use crate::session::supervisor;
use crate::session::{BackEnd, ProcessContainment, SessionError, SessionRequest};

/// The guest's clock at its boot: the same in every session, so that output that contains the time repeats. In
/// nanoseconds since 1970: 14 November 2023, 22:13:20 UTC.
const BOOT_TIME: u64 = 1_700_000_000_000_000_000;

/// Capacity of a pipe from the guest: a writer that waits for this process would see its time pass differently.
const PIPE_CAPACITY: ByteCount = ByteCount::from_mebibytes(1);

/// Search path of programs that the guest itself starts.
const SEARCH_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Maximum time for the supervisor to kill everything.
const SUPERVISOR_TIMEOUT: Duration = Duration::from_secs(15);

/// Streams from the guest and its supervisor.
#[derive(Debug)]
pub(super) struct GuestStreams {
    /// The guest's frames.
    pub(super) frames: PipeReader,
    /// The kernel's log.
    pub(super) log: PipeReader,
    /// The supervisor's reports.
    pub(super) reports: PipeReader,
}

/// A running guest. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct RunningGuest {
    supervisor: SupervisedProcess,
    /// Pipe whose closing signals the end of the session to the supervisor.
    alive: Option<PipeWriter>,
    requests: PipeWriter,
    directory: PrivateDirectory,
    in_namespace: bool,
    own_kernel: bool,
    process: Option<u32>,
    _seat: Option<CpuClaim>,
}

/// Launches a guest.
pub(super) fn launch(
    request: &SessionRequest,
    containment: ProcessContainment,
) -> Result<(RunningGuest, GuestStreams), SessionError> {
    let directory = PrivateDirectory::new()?;
    let job = directory.write("job.json", &json(&job(request), "the guest's job")?)?;
    let pipes = SessionPipes::new()?;
    let program = match &request.back_end {
        BackEnd::UserModeLinux { kernel } => user_mode_linux(request, kernel, &directory, &job, &pipes)?,
        BackEnd::Namespaces => in_namespaces(request, &job, &pipes)?,
    };
    let seat = program.on_one_processor.then(claim_processor).flatten();
    let own_network = request.back_end == BackEnd::Namespaces;
    let orders = SupervisorOrders {
        in_namespace: containment == ProcessContainment::Best || own_network,
        own_network,
        processor: seat.as_ref().map(|seat| seat.processor.0),
        linerate: request.linerate.clone(),
        program: program.path,
        arguments: program.arguments,
        environment: program.environment,
        alive: pipes.supervisor_alive.as_raw_fd(),
        reports: pipes.supervisor_reports.as_raw_fd(),
        requests: pipes.guest_requests.as_raw_fd(),
        frames: pipes.guest_frames.as_raw_fd(),
        directory: directory.path().to_owned(),
    };
    let orders_file = directory.write("orders.json", &json(&orders, "the supervisor's orders")?)?;
    let guest = RunningGuest {
        supervisor: pipes.start_supervisor(&request.linerate, orders_file)?,
        alive: Some(pipes.alive),
        requests: pipes.requests,
        directory,
        in_namespace: orders.in_namespace,
        own_kernel: !own_network,
        process: None,
        _seat: seat,
    };
    Ok((guest, pipes.streams))
}

/// The pipes between the session and its processes. The other ends are closed here when this is dropped, so that each
/// stream ends when no process there has it any more.
struct SessionPipes {
    streams: GuestStreams,
    requests: PipeWriter,
    alive: PipeWriter,
    guest_frames: PipeWriter,
    guest_requests: PipeReader,
    guest_log: PipeWriter,
    supervisor_reports: PipeWriter,
    supervisor_alive: PipeReader,
}

impl SessionPipes {
    fn new() -> Result<Self, SessionError> {
        let (frames, guest_frames) = pipe()?;
        let (guest_requests, requests) = pipe()?;
        let (log, guest_log) = pipe()?;
        let (reports, supervisor_reports) = pipe()?;
        let (supervisor_alive, alive) = pipe()?;
        // A smaller pipe works too.
        let _ = set_pipe_capacity(&frames, PIPE_CAPACITY);
        for stream in [&frames, &log, &reports] {
            set_nonblocking(stream)?;
        }
        set_nonblocking(&requests)?;
        let streams = GuestStreams { frames, log, reports };
        Ok(Self {
            streams,
            requests,
            alive,
            guest_frames,
            guest_requests,
            guest_log,
            supervisor_reports,
            supervisor_alive,
        })
    }

    fn start_supervisor(&self, linerate: &Path, orders: PathBuf) -> Result<SupervisedProcess, SessionError> {
        let launch = SupervisedLaunch {
            program: linerate,
            arguments: &[supervisor::HIDDEN_SUBCOMMAND.into(), supervisor::WATCH_ROLE.into(), orders.into()],
            environment: None,
            output: Some(self.guest_log.as_fd()),
            inherited: &[
                self.supervisor_alive.as_fd(),
                self.supervisor_reports.as_fd(),
                self.guest_requests.as_fd(),
                self.guest_frames.as_fd(),
            ],
            own_session: true,
            dies_with_parent: false,
        };
        Ok(launch.start()?)
    }
}

fn job(request: &SessionRequest) -> GuestJob {
    GuestJob {
        plan: request.plan.clone(),
        command: request.command.clone(),
        own_kernel: request.back_end != BackEnd::Namespaces,
        writable: request.writable.clone(),
        capture: request.capture.clone(),
        linerate: request.linerate.clone(),
    }
}

fn json(value: &impl serde::Serialize, what: &str) -> Result<Vec<u8>, SessionError> {
    serde_json::to_vec(value)
        .map_err(|error| SessionError::File { operation: format!("writing {what} as JSON"), cause: error.into() })
}

fn pipe() -> Result<(PipeReader, PipeWriter), SessionError> {
    io::pipe().map_err(|cause| SessionError::File { operation: "making a pipe".into(), cause })
}

/// Program for the supervisor to start.
struct GuestProgram {
    path: PathBuf,
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
    on_one_processor: bool,
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// The kernel as a process. Its command line is one text with blanks between the arguments, so the paths in it are
/// those of the private directory, which has none.
fn user_mode_linux(
    request: &SessionRequest,
    kernel: &Path,
    directory: &PrivateDirectory,
    job: &Path,
    pipes: &SessionPipes,
) -> Result<GuestProgram, SessionError> {
    let memory = request.plan.sizing.memory;
    let place = place_for_memory(request.plan.sizing.taken)?;
    let init = directory.link("linerate", &request.linerate)?;
    let mut arguments = vec![
        format!("mem={}K", memory.get().div_ceil(1 << 10)),
        "root=/dev/root".into(),
        "rootfstype=hostfs".into(),
        "rootflags=/".into(),
        "ro".into(),
        "time-travel=inf-cpu".into(),
        // In newer kernels (7.2, not 6.12): system calls and page faults of the guest cost half as much as by ptrace, where this host
        // permits seccomp filters. Older kernels ignore it.
        "seccomp=auto".into(),
        format!("time-travel-start={BOOT_TIME}"),
        format!("linerate.seed={}", request.seed),
        "con=null".into(),
        "ssl=null".into(),
        "con0=null,fd:2".into(),
        format!("con1=fd:{},fd:{}", pipes.guest_requests.as_raw_fd(), pipes.guest_frames.as_raw_fd()),
        format!("uml_dir={}/", directory.path().display()),
        "umid=guest".into(),
        format!("init={}", init.display()),
        "--".into(),
    ];
    arguments.extend(guest_arguments(job, &GuestChannel::Console(CONSOLE.into())));
    let environment = vec![
        ("PATH".into(), SEARCH_PATH.into()),
        // This also marks everything that the kernel starts on this host.
        ("HOME".into(), text(directory.path())),
        ("TMPDIR".into(), text(&place)),
    ];
    // A bare name would be looked for among the host's programs.
    let path = std::path::absolute(kernel).unwrap_or_else(|_| kernel.to_owned());
    Ok(GuestProgram { path, arguments, environment, on_one_processor: true })
}

/// The console of which both ends are pipes to this process: the first that [`user_mode_linux`] leaves to the guest.
const CONSOLE: &str = "/dev/tty1";

/// The arguments of the linerate binary that make it the guest.
fn guest_arguments(job: &Path, channel: &GuestChannel) -> [String; 3] {
    [guest::HIDDEN_COMMAND.into(), text(job), channel.to_argument().to_string_lossy().into_owned()]
}

/// The guest as a process of this host.
fn in_namespaces(request: &SessionRequest, job: &Path, pipes: &SessionPipes) -> Result<GuestProgram, SessionError> {
    if !is_root() {
        return Err(SessionError::Missing {
            problem: "the namespaces back end needs root: it makes networks in this host's kernel".into(),
            advice: "use sudo, or the User-Mode Linux back end, which needs no privileges".into(),
        });
    }
    let channel = GuestChannel::Descriptors {
        requests: pipes.guest_requests.as_raw_fd(),
        frames: pipes.guest_frames.as_raw_fd(),
    };
    Ok(GuestProgram {
        path: request.linerate.clone(),
        arguments: guest_arguments(job, &channel).to_vec(),
        environment: vec![("PATH".into(), SEARCH_PATH.into())],
        on_one_processor: false,
    })
}

impl RunningGuest {
    /// Sends a request. A guest that is gone or does not read is detected otherwise.
    pub(super) fn send(&self, request: job::GuestRequest) {
        let _ = (&self.requests).write(&[request as u8]);
    }

    /// The guest runs below this process.
    pub(super) fn started(&mut self, process: u32) {
        self.process = Some(process);
    }

    /// Makes a kernel in user mode read its requests although a program computes in it without end: a request makes it
    /// want to run another process, but only a tick of its clock, which does not come while time is stalled, or a
    /// system call of that program would let it.
    pub(super) fn nudge(&self) {
        alarm_running(&self.processes());
    }

    /// The processes that are programs of the guest, as this host sees them; none when they are this host's own.
    pub(super) fn processes(&self) -> Vec<ProcessId> {
        let Some(process) = self.process.filter(|_| self.own_kernel) else { return Vec::new() };
        let mut below = descendants(ProcessId(process)).unwrap_or_default();
        // The kernel itself is that process or, in a namespace, its first child.
        below.drain(..usize::from(self.in_namespace).min(below.len()));
        below
    }

    /// The guest has read its files.
    pub(super) fn forget_files(&self) {
        self.directory.remove();
    }

    /// Ends everything, unless it has ended, and waits for it.
    fn end(&mut self) {
        self.alive = None;
        if !wait_for(&self.supervisor, PollInterest::READ, Some(SUPERVISOR_TIMEOUT)).unwrap_or(false) {
            self.supervisor.kill();
        }
        let orderly = self.supervisor.wait().is_ok_and(|status| status.code().is_some());
        // A killed supervisor has not cleaned up; the namespace does so by itself.
        if let Some(process) = self.process.filter(|_| !orderly && !self.in_namespace) {
            let _ = kill_remains(process, &text(self.directory.path()), SUPERVISOR_TIMEOUT);
        }
    }
}

impl Drop for RunningGuest {
    fn drop(&mut self) {
        self.end();
    }
}
