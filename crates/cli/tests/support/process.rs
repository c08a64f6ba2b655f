//! Process with a time limit and its output in files, ended on drop.

use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::Scratch;

/// Polling interval of [`eventually`], the only place in these tests that sleeps.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Waits until `holds`, at most `limit`; returns false on a time-out.
pub(crate) fn eventually(limit: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    loop {
        if holds() {
            return true;
        }
        if start.elapsed() > limit {
            return false;
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Repeats `attempt` until one takes less than `bound`: a busy host delays single attempts, a program that is held up
/// is slow each time.
///
/// # Panics
///
/// Panics if none does within a minute.
#[track_caller]
pub(crate) fn assert_some_within(bound: Duration, mut attempt: impl FnMut() -> Duration) {
    let mut fastest = Duration::MAX;
    let found = eventually(Duration::from_secs(60), || {
        fastest = fastest.min(attempt());
        fastest < bound
    });
    assert!(found, "the fastest attempt took {fastest:?}");
}

/// Running process. Killed when dropped.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    started: Instant,
    line: String,
    folder: Scratch,
}

impl Process {
    /// Starts `command` without input, with its output in files.
    pub(crate) fn start(mut command: Command) -> Self {
        let folder = Scratch::new();
        let create = |name| std::fs::File::create(folder.path(name)).expect("an output file");
        command.stdin(Stdio::null()).stdout(create("stdout")).stderr(create("stderr"));
        let line = format!("{command:?}");
        let child = command.spawn().unwrap_or_else(|cause| panic!("starting {line}: {cause}"));
        Self { child, started: Instant::now(), line, folder }
    }

    /// Process ID.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Standard output so far.
    pub(crate) fn stdout(&self) -> String {
        read(&self.folder.path("stdout"))
    }

    /// Standard error so far.
    pub(crate) fn stderr(&self) -> String {
        read(&self.folder.path("stderr"))
    }

    /// True until the process has ended.
    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("waiting for a child").is_none()
    }

    /// Sends a signal by name, such as `INT`.
    pub(crate) fn signal(&self, name: &str) {
        send_signal(self.id(), name);
    }

    /// Waits until the standard output contains `text`.
    ///
    /// # Panics
    ///
    /// Panics if it does not within `limit`.
    pub(crate) fn wait_for_output(&self, text: &str, limit: Duration) {
        let came = eventually(limit, || self.stdout().contains(text));
        assert!(came, "{} did not print {text:?} within {limit:?}:\n{}{}", self.line, self.stdout(), self.stderr());
    }

    /// Waits until the text of an interval has been printed that ends at this time or later, in seconds since the start.
    /// A busy host ends intervals late.
    ///
    /// # Panics
    ///
    /// Panics if it is not within `limit`.
    pub(crate) fn wait_for_interval(&self, end: f64, limit: Duration) {
        let came = eventually(limit, || self.intervals().iter().any(|(_, to)| *to >= end));
        assert!(came, "{}: no interval to {end} s within {limit:?}:\n{}{}", self.line, self.stdout(), self.stderr());
    }

    /// Returns beginning and end, in seconds, of each interval printed so far.
    pub(crate) fn intervals(&self) -> Vec<(f64, f64)> {
        let output = self.stdout();
        let ranges = output.split_whitespace().filter_map(|word| word.split_once('-'));
        ranges.filter_map(|(from, to)| Some((from.parse().ok()?, to.parse().ok()?))).collect()
    }

    /// Waits for the end.
    ///
    /// # Panics
    ///
    /// Panics if the process runs longer than `limit` since the start.
    pub(crate) fn finish(mut self, limit: Duration) -> FinishedChild {
        let mut status = None;
        let left = limit.saturating_sub(self.started.elapsed());
        let ended = eventually(left, || {
            status = self.child.try_wait().expect("waiting for a child");
            status.is_some()
        });
        let elapsed = self.started.elapsed();
        let (stdout, stderr) = (self.stdout(), self.stderr());
        assert!(ended, "{} still ran after {limit:?}:\n{stdout}{stderr}", self.line);
        FinishedChild { status: status.expect("it ended"), stdout, stderr, elapsed, line: self.line.clone() }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a signal by name.
pub(crate) fn send_signal(process: u32, name: &str) {
    let sent = Command::new("sh").args(["-c", &format!("kill -{name} {process}")]).status();
    assert!(sent.is_ok_and(|status| status.success()), "sending SIG{name} to process {process}");
}

/// Sends a signal to a process that is not our child on drop, even after a failure.
#[derive(Debug)]
pub(crate) struct SignalAtEnd(pub(crate) u32, pub(crate) &'static str);

impl Drop for SignalAtEnd {
    fn drop(&mut self) {
        // A failure to send it must not hide the failure of the test.
        let _ = Command::new("sh").args(["-c", &format!("kill -{} {}", self.1, self.0)]).status();
    }
}

fn read(path: &str) -> String {
    String::from_utf8_lossy(&std::fs::read(Path::new(path)).unwrap_or_default()).into_owned()
}

/// Runs `command` to its end, at most `limit`.
pub(crate) fn run(command: Command, limit: Duration) -> FinishedChild {
    Process::start(command).finish(limit)
}

/// Ended process.
#[derive(Clone, Debug)]
pub(crate) struct FinishedChild {
    /// Exit status.
    pub(crate) status: ExitStatus,
    /// Standard output.
    pub(crate) stdout: String,
    /// Standard error.
    pub(crate) stderr: String,
    /// Run time.
    pub(crate) elapsed: Duration,
    /// Command line.
    pub(crate) line: String,
}

impl FinishedChild {
    /// Exit code; `None` when a signal ended the process.
    pub(crate) fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// # Panics
    ///
    /// Panics if the exit code is another one.
    #[track_caller]
    pub(crate) fn expect_code(self, code: i32) -> Self {
        assert_eq!(self.code(), Some(code), "{self:#?}");
        self
    }

    /// Parses the standard output as one JSON document, without duplicate keys in an object. Of a run, returns the
    /// result of its command.
    ///
    /// # Panics
    ///
    /// Panics if it is not valid.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        result(self.document())
    }

    /// Parses the documents on stdout, one after another.
    ///
    /// # Panics
    ///
    /// Panics if one is not valid.
    #[track_caller]
    pub(crate) fn documents(&self) -> Vec<Value> {
        let documents = serde_json::Deserializer::from_str(&self.stdout).into_iter::<Value>();
        documents.collect::<Result<_, _>>().unwrap_or_else(|cause| panic!("not JSON ({cause}): {self:#?}"))
    }

    /// Parses the whole document on stdout.
    ///
    /// # Panics
    ///
    /// Panics if it is not valid.
    #[track_caller]
    pub(crate) fn document(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|cause| panic!("not JSON ({cause}): {self:#?}"))
    }
}

/// Returns the result of a run's command; another document as it is.
pub(crate) fn result(mut document: Value) -> Value {
    let kind = document["kind"].as_str().map(str::to_owned);
    match kind.and_then(|kind| document.get_mut("result")?.get_mut(kind)) {
        Some(result) => result.take(),
        None => document,
    }
}
