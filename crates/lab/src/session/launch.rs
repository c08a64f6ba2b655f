//! Launching a guest: what it needs is looked for, what it reads is written, the supervisor is started.

use core::time::Duration;
use std::io::{self, PipeReader, PipeWriter, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};

use linerate_sys::poll::{Interest, wait_for};
use linerate_sys::process::is_root;
use linerate_sys::supervise::{
    Launch, Process, alarm_running, descendants, kill_remains, set_nonblocking, set_pipe_capacity,
};
use linerate_units::ByteCount;

use crate::guest::{self, Channel};
use crate::job::{self, Job};
use crate::session::orders::Orders;
use crate::session::private::PrivateDirectory;
use crate::session::processor::{Seat, take_seat};
use crate::session::requirements::place_for_memory;
use crate::session::supervisor;
use crate::session::{BackEnd, Containment, Request, SessionError};

/// The guest's clock at its boot: the same in every session, so that whatever contains the time repeats. In nanoseconds
/// since 1970: 14 November 2023, 22:13:20 UTC.
const BOOT_TIME: u64 = 1_700_000_000_000_000_000;

/// What a pipe from the guest holds: a writer that waits for us would see its time pass differently.
const PIPE_CAPACITY: ByteCount = ByteCount::from_mebibytes(1);

/// Where programs are found that the guest itself starts.
const SEARCH_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// How long the supervisor may take to kill everything.
const GONE_WITHIN: Duration = Duration::from_secs(15);

/// What comes from the guest and its supervisor.
#[derive(Debug)]
pub(super) struct Streams {
    /// The guest's frames.
    pub(super) frames: PipeReader,
    /// The kernel's log.
    pub(super) log: PipeReader,
    /// The supervisor's reports.
    pub(super) reports: PipeReader,
}

/// A guest that runs. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct Guest {
    supervisor: Process,
    /// Its end tells the supervisor that the session is over.
    alive: Option<PipeWriter>,
    requests: PipeWriter,
    directory: PrivateDirectory,
    in_namespace: bool,
    own_kernel: bool,
    process: Option<u32>,
    _seat: Option<Seat>,
}

/// Launches a guest.
pub(super) fn launch(request: &Request, containment: Containment) -> Result<(Guest, Streams), SessionError> {
    let directory = PrivateDirectory::new()?;
    let job = directory.write("job.json", &json(&job(request), "the guest's job")?)?;
    let pipes = Pipes::new()?;
    let program = match &request.back_end {
        BackEnd::UserModeLinux { kernel } => user_mode_linux(request, kernel, &directory, &job, &pipes)?,
        BackEnd::Namespaces => in_namespaces(request, &job, &pipes)?,
    };
    let seat = program.on_one_processor.then(take_seat).flatten();
    let own_network = request.back_end == BackEnd::Namespaces;
    let orders = Orders {
        in_namespace: containment == Containment::Best || own_network,
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
    let guest = Guest {
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

/// The pipes between the session and what it starts. The other ends are closed here when this is dropped, so that each
/// stream ends when nobody there has it any more.
struct Pipes {
    streams: Streams,
    requests: PipeWriter,
    alive: PipeWriter,
    guest_frames: PipeWriter,
    guest_requests: PipeReader,
    guest_log: PipeWriter,
    supervisor_reports: PipeWriter,
    supervisor_alive: PipeReader,
}

impl Pipes {
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
        let streams = Streams { frames, log, reports };
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

    fn start_supervisor(&self, linerate: &Path, orders: PathBuf) -> Result<Process, SessionError> {
        let launch = Launch {
            program: linerate,
            arguments: &[supervisor::COMMAND.into(), supervisor::WATCH.into(), orders.into()],
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

fn job(request: &Request) -> Job {
    Job {
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

/// What the supervisor is to start.
struct Program {
    path: PathBuf,
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
    on_one_processor: bool,
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// The kernel as a process. Its command line is one text with blanks between the words, so the paths in it are those of
/// the private directory, which has none.
fn user_mode_linux(
    request: &Request,
    kernel: &Path,
    directory: &PrivateDirectory,
    job: &Path,
    pipes: &Pipes,
) -> Result<Program, SessionError> {
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
    arguments.extend(guest_arguments(job, &Channel::Console(CONSOLE.into())));
    let environment = vec![
        ("PATH".into(), SEARCH_PATH.into()),
        // This also marks everything that the kernel starts on this host.
        ("HOME".into(), text(directory.path())),
        ("TMPDIR".into(), text(&place)),
    ];
    // A bare name would be looked for among the host's programs.
    let path = std::path::absolute(kernel).unwrap_or_else(|_| kernel.to_owned());
    Ok(Program { path, arguments, environment, on_one_processor: true })
}

/// The console of which both ends are pipes to this process: the first that [`user_mode_linux`] leaves to the guest.
const CONSOLE: &str = "/dev/tty1";

/// The arguments of the linerate binary that make it the guest.
fn guest_arguments(job: &Path, channel: &Channel) -> [String; 3] {
    [guest::HIDDEN_COMMAND.into(), text(job), channel.to_argument().to_string_lossy().into_owned()]
}

/// The guest as a process of this host.
fn in_namespaces(request: &Request, job: &Path, pipes: &Pipes) -> Result<Program, SessionError> {
    if !is_root() {
        return Err(SessionError::Missing {
            problem: "the namespaces back end needs root: it makes networks in this host's kernel".into(),
            advice: "use sudo, or the User-Mode Linux back end, which needs no privileges".into(),
        });
    }
    let channel =
        Channel::Descriptors { requests: pipes.guest_requests.as_raw_fd(), frames: pipes.guest_frames.as_raw_fd() };
    Ok(Program {
        path: request.linerate.clone(),
        arguments: guest_arguments(job, &channel).to_vec(),
        environment: vec![("PATH".into(), SEARCH_PATH.into())],
        on_one_processor: false,
    })
}

impl Guest {
    /// Sends a request. A guest that is gone or does not read is found out otherwise.
    pub(super) fn send(&self, request: job::Request) {
        let _ = (&self.requests).write(&[request as u8]);
    }

    /// The guest runs below this process.
    pub(super) fn started(&mut self, process: u32) {
        self.process = Some(process);
    }

    /// Has a kernel in user mode look at its requests although a program computes in it without end: a request makes it
    /// want to run another process, but only a tick of its clock, which does not come as time stands still, or a system
    /// call of that program would let it.
    pub(super) fn nudge(&self) {
        alarm_running(&self.processes());
    }

    /// The processes that are programs of the guest, as this host sees them; none when they are this host's own.
    pub(super) fn processes(&self) -> Vec<u32> {
        let Some(process) = self.process.filter(|_| self.own_kernel) else { return Vec::new() };
        let mut below = descendants(process).unwrap_or_default();
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
        if !wait_for(&self.supervisor, Interest::READ, Some(GONE_WITHIN)).unwrap_or(false) {
            self.supervisor.kill();
        }
        let orderly = self.supervisor.wait().is_ok_and(|status| status.code().is_some());
        // A supervisor that was killed has not looked after the rest; the namespace does so by itself.
        if let Some(process) = self.process.filter(|_| !orderly && !self.in_namespace) {
            let _ = kill_remains(process, &text(self.directory.path()), GONE_WITHIN);
        }
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.end();
    }
}
