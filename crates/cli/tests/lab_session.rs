//! Tests that a guest ends with its session, even if processes are killed, and that a hanging guest is detected. The
//! guest's kernel is mostly a script here, which behaves like a guest and leaves processes in sessions of their own,
//! like a kernel in user mode; the last tests verify the same with the lab's own kernel.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use linerate_lab::job::{self, CommandEnd, GuestFrame, GuestMessage};
use linerate_lab::plan::{GuestSizing, NEAR, PathPlan};
use linerate_lab::session::{
    self, BackEnd, ProcessContainment, SessionError, SessionEvent, SessionOutcome, SessionRequest,
};
use linerate_lab::{frame, job::CommandEnd::Code};
use linerate_sys::signals::InterruptSignals;
use linerate_units::ByteCount;

use crate::support::lab::OwnPath;
use crate::support::process::{assert_some_within, eventually, send_signal};
use crate::support::{self, Process, Scratch};

const LIMIT: Duration = Duration::from_secs(300);

/// Containment of the guest's processes: all tests apply to both.
const CONTAINMENTS: [ProcessContainment; 2] = [ProcessContainment::Best, ProcessContainment::ProcessTree];

fn message(message: GuestMessage) -> Vec<u8> {
    frame::encode(&GuestFrame::Message(message)).expect("short")
}

fn alive(seconds: u64) -> Vec<u8> {
    message(GuestMessage::Alive { guest_nanoseconds: seconds * 1_000_000_000 })
}

/// Fake kernel that reports ready, and then executes `behaviour`: lines for a shell, in which `say FILE` sends the
/// frames of a file, and `hear` waits for a request.
struct FakeKernel {
    folder: Scratch,
    kernel: PathBuf,
}

impl FakeKernel {
    fn new(behaviour: &str) -> Self {
        let folder = Scratch::new();
        let write = |name: &str, contents: &[u8]| fs::write(folder.path(name), contents).expect("a scratch file");
        write("ready", &message(GuestMessage::Ready { guest_nanoseconds: 1_000_000_000 }));
        write("alive", &alive(2));
        write("output", &frame::encode(&GuestFrame::Output(b"hello\n".into())).expect("short"));
        let running = vec![(71, "sh -c while :; do :; done".to_owned())];
        write("running", &message(GuestMessage::Running { processes: running }));
        for (name, end) in [("ended", Code(3)), ("interrupted", CommandEnd::Signal(2))] {
            let captured = Some((5, 1));
            write(name, &message(GuestMessage::Ended { end, guest_nanoseconds: 3_500_000_000, captured }));
        }
        let script = format!(
            "#!/bin/sh\nfor word; do case $word in con1=*) pair=${{word#con1=fd:}};; esac; done\n\
             requests=/proc/self/fd/${{pair%%,*}}; frames=/proc/self/fd/${{pair#*,fd:}}\n\
             say() {{ cat \"{}/$1\" > $frames; }}\nhear() {{ head -c 1 < $requests; }}\n\
             echo 'Linux version 0' >&2\nsay ready\nsetsid sleep 1000 &\nsetsid setsid sleep 1000 &\n{behaviour}\n",
            folder.path("").trim_end_matches('/')
        );
        let kernel = PathBuf::from(folder.path("kernel"));
        fs::write(&kernel, script).expect("a scratch file");
        fs::set_permissions(&kernel, fs::Permissions::from_mode(0o755)).expect("our file");
        Self { folder, kernel }
    }

    fn request(&self, containment: ProcessContainment, stall_limit: Duration) -> SessionRequest {
        request(&self.kernel, containment, stall_limit)
    }

    fn run(
        &self,
        containment: ProcessContainment,
        stall_limit: Duration,
    ) -> (Result<SessionOutcome, SessionError>, String) {
        let mut seen = String::new();
        let outcome = session::run(&self.request(containment, stall_limit), None, &mut |event| match event {
            SessionEvent::Output(bytes) => seen.push_str(&String::from_utf8_lossy(bytes)),
            SessionEvent::KernelLine(line) => seen.push_str(line),
            _ => {}
        });
        (outcome, seen)
    }

    /// Starts a separate process that runs a session.
    fn tool(&self, containment: ProcessContainment) -> Process {
        let mut command = Command::new(std::env::current_exe().expect("this test"));
        command.args(["--exact", "lab_session::tool", "--ignored", "--nocapture"]);
        command.env("LAB_SESSION_KERNEL", &self.kernel).env("TMPDIR", self.folder.path(""));
        command.env("LAB_SESSION_CONTAINMENT", format!("{containment:?}"));
        Process::start(command)
    }
}

/// Processes of a session with this directory: the supervisor has it among its arguments, the guest in its environment,
/// too.
fn processes_of(folder: &Scratch) -> Vec<u32> {
    let mark = folder.path("linerate-lab-");
    let has = |process: u32, file: &str| {
        let text = fs::read(format!("/proc/{process}/{file}")).unwrap_or_default();
        text.windows(mark.len()).any(|window| window == mark.as_bytes())
    };
    processes().into_iter().filter(|process| has(*process, "cmdline") || has(*process, "environ")).collect()
}

/// Process that is N generations below another one of a session; the first one started, if there are several.
fn descendant(folder: &Scratch, process: u32, generation: u32) -> u32 {
    (0..generation).fold(process, |process, _| {
        let children = processes_of(folder).into_iter().filter(|id| parent(*id) == Some(process));
        children.min().expect("a child")
    })
}

fn expect_nothing_left(folder: &Scratch, context: &str) {
    let gone = eventually(LIMIT, || processes_of(folder).is_empty());
    assert!(gone, "{context}: {:?} are left", processes_of(folder));
    let files: Vec<_> = fs::read_dir(folder.path("")).expect("there").filter_map(Result::ok).collect();
    let left: Vec<_> = files.iter().filter(|file| file.file_name().to_string_lossy().starts_with("linerate")).collect();
    assert!(left.is_empty(), "{context}: {left:?}");
}

fn processes() -> Vec<u32> {
    let entries = fs::read_dir("/proc").expect("procfs");
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

fn parent(process: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok()
}

fn request(kernel: &Path, containment: ProcessContainment, stall_limit: Duration) -> SessionRequest {
    let memory = ByteCount::from_mebibytes(64);
    let sizing = GuestSizing { memory, taken: memory, reason: "a test".into() };
    let plan = PathPlan {
        path: "test".into(),
        system: vec![],
        namespaces: vec![],
        pairs: vec![],
        names: vec![],
        sizing,
        traffic: vec![],
        changes: vec![],
    };
    SessionRequest {
        plan,
        command: job::GuestCommand {
            arguments: vec!["true".into()],
            namespace: NEAR.into(),
            directory: "/".into(),
            environment: vec![],
        },
        writable: vec![],
        capture: None,
        back_end: BackEnd::UserModeLinux { kernel: kernel.into() },
        seed: 1,
        stall_limit,
        linerate: env!("CARGO_BIN_EXE_linerate").into(),
        containment,
    }
}

/// Not a test: the process that tests kill. It runs the session in its environment.
#[test]
#[ignore = "child of the other tests"]
fn tool() {
    let Some(kernel) = std::env::var_os("LAB_SESSION_KERNEL") else { return };
    let tree = std::env::var("LAB_SESSION_CONTAINMENT").is_ok_and(|name| name == "ProcessTree");
    let containment = if tree { ProcessContainment::ProcessTree } else { ProcessContainment::Best };
    let stop = InterruptSignals::install().expect("signals can be caught");
    let outcome = session::run(&request(Path::new(&kernel), containment, LIMIT), Some(&stop), &mut |event| {
        if let SessionEvent::Ready { .. } = event {
            tell("READY");
        }
    });
    tell(&format!("{outcome:?}"));
}

fn tell(line: &str) {
    writeln!(std::io::stdout(), "{line}").expect("the other test reads it");
}

const FOREVER: &str = "while :; do sleep 0.2; say alive; done";

/// Guest that notes a request, and runs on.
const IGNORES: &str = "(hear > /dev/null; touch \"${0%/*}/asked\") & while :; do sleep 0.2; say alive; done";

#[test]
fn the_output_of_a_guest_arrives_and_its_end_ends_the_session() {
    for containment in CONTAINMENTS {
        let kernel = FakeKernel::new("say output; say alive; say ended");
        let (outcome, seen) = kernel.run(containment, LIMIT);
        let outcome = outcome.expect("it ended well");
        assert_eq!(outcome.end, Some(Code(3)));
        assert_eq!(outcome.guest_time, Duration::from_millis(2500), "3.5 s less the 1 s of the boot");
        assert_eq!(outcome.captured.map(|captured| (captured.packets.get(), captured.missed.get())), Some((5, 1)));
        assert!(outcome.boot_time.is_some_and(|time| time < LIMIT) && outcome.interrupted.is_none());
        assert!(seen.contains("hello\n") && seen.contains("Linux version 0"), "{seen}");
        expect_nothing_left(&kernel.folder, "after the end");
    }
}

#[test]
fn the_error_for_a_silent_end_of_a_guest_has_its_log() {
    for containment in CONTAINMENTS {
        let kernel = FakeKernel::new("echo '[ 0.5] Kernel panic - not syncing: No working init found.' >&2; exit 1");
        let error = kernel.run(containment, LIMIT).0.expect_err("it panicked");
        assert_eq!(
            error.to_string(),
            "the guest ended with status 1: its kernel panicked (Kernel panic - not syncing: No working init found.)"
        );
        assert!(error.kernel_log().is_some_and(|log| log.starts_with("Linux version 0\n")));
        let killed = FakeKernel::new("kill -9 $$");
        let error = killed.run(containment, LIMIT).0.expect_err("it was killed");
        assert_eq!(error.to_string(), "the guest was ended by signal 9: it was killed from outside");
        expect_nothing_left(&kernel.folder, "after the panic");
        expect_nothing_left(&killed.folder, "after the kill");
    }
}

/// Seconds for which a guest has not advanced, which are more on a busy machine, and the rest of the error.
fn silence(error: &str) -> (u64, &str) {
    let parts = error.strip_prefix("the guest has not advanced for ").and_then(|text| text.split_once(" s"));
    let (seconds, rest) = parts.unwrap_or_else(|| panic!("another error: {error}"));
    (seconds.parse().expect("a number"), rest)
}

#[test]
fn a_hanging_guest_is_queried_for_the_process_and_ended() {
    for containment in CONTAINMENTS {
        // On a busy machine the fake kernel starts late.
        let limit = Duration::from_secs(3);
        let answers = FakeKernel::new("hear; say running; sleep 1000");
        let error = answers.run(containment, limit).0.expect_err("it hangs").to_string();
        let (seconds, rest) = silence(&error);
        assert!((3..30).contains(&seconds) && rest == "; running: 71 sh -c while :; do :; done", "{error}");
        let silent = FakeKernel::new("sleep 1000");
        let error = silent.run(containment, limit).0.expect_err("it hangs").to_string();
        let (seconds, rest) = silence(&error);
        assert!((8..30).contains(&seconds) && rest == ", and does not answer", "{error}");
        expect_nothing_left(&answers.folder, "after an answer");
        expect_nothing_left(&silent.folder, "after silence");
    }
}

#[test]
fn a_missing_kernel_and_a_missing_supervisor_are_reported() {
    for containment in CONTAINMENTS {
        let absent = request(Path::new("/no/such/kernel"), containment, LIMIT);
        let error = session::run(&absent, None, &mut |_| {}).expect_err("it is not there").to_string();
        assert!(error.contains("starting /no/such/kernel: No such file or directory"), "{error}");
        let absent = SessionRequest { linerate: "/no/such/linerate".into(), ..absent };
        let error = session::run(&absent, None, &mut |_| {}).expect_err("it is not there").to_string();
        assert!(error.contains("starting /no/such/linerate: No such file or directory"), "{error}");
    }
}

#[test]
fn nothing_survives_the_death_of_any_process() {
    for containment in CONTAINMENTS {
        // The tool itself, its child (the supervisor), and the child of that one.
        for generation in 0..=2 {
            let kernel = FakeKernel::new(FOREVER);
            let mut tool = kernel.tool(containment);
            tool.wait_for_output("READY", LIMIT);
            // Kernel, its two sleepers, supervisor, and the kernel's current child.
            assert!(eventually(LIMIT, || processes_of(&kernel.folder).len() >= 4), "{containment:?}");
            send_signal(descendant(&kernel.folder, tool.id(), generation), "KILL");
            expect_nothing_left(&kernel.folder, &format!("{containment:?}, generation {generation}"));
            assert!(eventually(LIMIT, || !tool.is_running()), "{containment:?}, generation {generation}");
        }
    }
}

#[test]
fn the_first_signal_requests_a_partial_result_and_the_second_ends() {
    for containment in CONTAINMENTS {
        let obeys = FakeKernel::new("hear; say interrupted; sleep 0.2; exit 0");
        let tool = obeys.tool(containment);
        tool.wait_for_output("READY", LIMIT);
        send_signal(tool.id(), "INT");
        let finished = tool.finish(LIMIT);
        assert!(finished.stdout.contains("end: Some(Signal(2)), interrupted: Some(Interrupt)"), "{}", finished.stdout);
        let time_to_end = |signals| {
            let ignores = FakeKernel::new(IGNORES);
            let was_asked = || Path::new(&ignores.folder.path("asked")).exists();
            let tool = ignores.tool(containment);
            tool.wait_for_output("READY", LIMIT);
            let start = std::time::Instant::now();
            send_signal(tool.id(), "INT");
            if signals == 2 {
                assert!(eventually(LIMIT, was_asked), "the first signal is a request to the guest");
                send_signal(tool.id(), "TERM");
            }
            let finished = tool.finish(LIMIT);
            let time = start.elapsed();
            assert!(finished.stdout.contains("end: None, interrupted: Some(Interrupt)"), "{}", finished.stdout);
            expect_nothing_left(&ignores.folder, "after a kill");
            time
        };
        let patience = Duration::from_secs(5);
        assert!(time_to_end(1) >= patience, "a guest has five seconds after a request");
        assert_some_within(patience, || time_to_end(2));
        expect_nothing_left(&obeys.folder, "after an interrupt");
    }
}

#[test]
fn a_signal_while_the_guest_boots_ends_the_session() {
    for containment in CONTAINMENTS {
        let time_to_end = || {
            let boots = FakeKernel::new("");
            let script = "#!/bin/sh\ntouch \"${0%/*}/boots\"\nsleep 1000\n";
            fs::write(&boots.kernel, script).expect("a scratch file");
            let tool = boots.tool(containment);
            assert!(eventually(LIMIT, || Path::new(&boots.folder.path("boots")).exists()), "it starts");
            let start = std::time::Instant::now();
            send_signal(tool.id(), "INT");
            let finished = tool.finish(LIMIT);
            let time = start.elapsed();
            assert!(finished.stdout.contains("end: None, interrupted: Some(Interrupt)"), "{}", finished.stdout);
            expect_nothing_left(&boots.folder, "after an interrupt");
            time
        };
        // Five seconds are what a command has to end after a request.
        assert_some_within(Duration::from_secs(5), time_to_end);
    }
}

/// Path with little memory, for a fast start of its guest.
const SMALL_PATH: &str = "[host.near]\n[host.far]\n[[link]]\nbetween = [\"near\", \"far\"]\nrate = \"10 Mbit/s\"\n\
                          delay = \"10 ms\"\n";

/// Program that reports its start and then computes for ever, with a child that does the same.
const BUSY: &str = "echo READY; sleep 1; (while :; do :; done) & while :; do :; done";

fn busy_guest(path: &OwnPath, folder: &Scratch, stall_limit: &str) -> Command {
    let mut command = support::linerate();
    command.args(["lab", "run", &path.file, "--stall-limit", stall_limit, "--", "sh", "-c", BUSY]);
    command.env("TMPDIR", folder.path("").trim_end_matches('/'));
    command
}

#[test]
fn nothing_survives_of_the_labs_own_kernel() {
    let path = OwnPath::new(SMALL_PATH);
    // linerate itself, the supervisor, the first process of the namespace, the kernel; without a namespace: linerate
    // itself, the supervisor, the kernel.
    for generation in 0..=2 {
        let folder = Scratch::new();
        let mut tool = Process::start(busy_guest(&path, &folder, "60s"));
        tool.wait_for_output("READY", LIMIT);
        // The guest's processes are not counted: where seccomp filters trap them, they have no environment.
        assert!(processes_of(&folder).len() >= 3, "linerate, supervisor, kernel");
        send_signal(descendant(&folder, tool.id(), generation), "KILL");
        expect_nothing_left(&folder, &format!("generation {generation}"));
        assert!(eventually(LIMIT, || !tool.is_running()), "generation {generation}");
    }
}

#[test]
fn a_program_that_never_sleeps_is_reported_and_can_be_interrupted() {
    let (path, folder) = (OwnPath::new(SMALL_PATH), Scratch::new());
    let finished = support::process::run(busy_guest(&path, &folder, "2s"), LIMIT).expect_code(2);
    assert!(finished.stderr.contains("the guest has not advanced for "), "{}", finished.stderr);
    assert!(finished.stderr.contains("sh -c echo READY"), "{}", finished.stderr);
    // A program that never yields the processor is killed after five seconds, long before its stall limit.
    let tool = Process::start(busy_guest(&path, &folder, "1h"));
    tool.wait_for_output("READY", LIMIT);
    send_signal(tool.id(), "INT");
    tool.finish(LIMIT);
    expect_nothing_left(&folder, "after the end");
}
