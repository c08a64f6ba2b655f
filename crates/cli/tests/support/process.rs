//! A process with a time limit, its output in files, gone with its owner.

use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::Scratch;

/// How often a state that has no event is looked at.
const LOOK: Duration = Duration::from_millis(5);

/// Waits until `holds`, at most `limit`; whether it came to hold.
pub fn eventually(limit: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    loop {
        if holds() {
            return true;
        }
        if start.elapsed() > limit {
            return false;
        }
        std::thread::sleep(LOOK);
    }
}

/// A running process. Killed when dropped.
#[derive(Debug)]
pub struct Process {
    child: Child,
    started: Instant,
    line: String,
    folder: Scratch,
}

impl Process {
    /// Starts `command` without input, its output into files.
    pub fn start(mut command: Command) -> Self {
        let folder = Scratch::new();
        let create = |name| std::fs::File::create(folder.path(name)).expect("an output file");
        command.stdin(Stdio::null()).stdout(create("stdout")).stderr(create("stderr"));
        let line = format!("{command:?}");
        let child = command.spawn().unwrap_or_else(|cause| panic!("starting {line}: {cause}"));
        Self { child, started: Instant::now(), line, folder }
    }

    /// Its process number.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it has written to the standard output so far.
    pub fn stdout(&self) -> String {
        read(&self.folder.path("stdout"))
    }

    /// What it has written to the standard error output so far.
    pub fn stderr(&self) -> String {
        read(&self.folder.path("stderr"))
    }

    /// Whether it has not ended yet.
    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("waiting for a child").is_none()
    }

    /// Sends it a signal by name, such as `INT`.
    pub fn signal(&self, name: &str) {
        send_signal(self.id(), name);
    }

    /// Waits until the standard output holds `text`.
    ///
    /// # Panics
    ///
    /// When it does not within `limit`.
    pub fn wait_for_output(&self, text: &str, limit: Duration) {
        let came = eventually(limit, || self.stdout().contains(text));
        assert!(came, "{} did not print {text:?} within {limit:?}:\n{}{}", self.line, self.stdout(), self.stderr());
    }

    /// Waits for its end.
    ///
    /// # Panics
    ///
    /// When it lasts longer than `limit` since the start.
    pub fn finish(mut self, limit: Duration) -> Finished {
        let mut status = None;
        let left = limit.saturating_sub(self.started.elapsed());
        let ended = eventually(left, || {
            status = self.child.try_wait().expect("waiting for a child");
            status.is_some()
        });
        let elapsed = self.started.elapsed();
        let (stdout, stderr) = (self.stdout(), self.stderr());
        assert!(ended, "{} still ran after {limit:?}:\n{stdout}{stderr}", self.line);
        Finished { status: status.expect("it ended"), stdout, stderr, elapsed, line: self.line.clone() }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a signal by name.
pub fn send_signal(process: u32, name: &str) {
    let sent = Command::new("sh").args(["-c", &format!("kill -{name} {process}")]).status();
    assert!(sent.is_ok_and(|status| status.success()), "sending SIG{name} to process {process}");
}

/// Ends a process that is not our child with a signal when the test is over, however it went.
#[derive(Debug)]
pub struct SignalAtEnd(pub u32, pub &'static str);

impl Drop for SignalAtEnd {
    fn drop(&mut self) {
        // A failure to send it must not hide why the test failed.
        let _ = Command::new("sh").args(["-c", &format!("kill -{} {}", self.1, self.0)]).status();
    }
}

fn read(path: &str) -> String {
    String::from_utf8_lossy(&std::fs::read(Path::new(path)).unwrap_or_default()).into_owned()
}

/// Runs `command` to its end, at most `limit`.
pub fn run(command: Command, limit: Duration) -> Finished {
    Process::start(command).finish(limit)
}

/// A process that has ended.
#[derive(Clone, Debug)]
pub struct Finished {
    /// How.
    pub status: ExitStatus,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error output.
    pub stderr: String,
    /// How long it ran.
    pub elapsed: Duration,
    /// Its command line.
    pub line: String,
}

impl Finished {
    /// Its exit code; `None` when a signal ended it.
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// # Panics
    ///
    /// When the exit code is another one.
    #[track_caller]
    pub fn expect_code(self, code: i32) -> Self {
        assert_eq!(self.code(), Some(code), "{self:#?}");
        self
    }

    /// The standard output as one JSON document, without duplicate keys in an object.
    ///
    /// # Panics
    ///
    /// When it is not one.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|cause| panic!("not JSON ({cause}): {self:#?}"))
    }
}
