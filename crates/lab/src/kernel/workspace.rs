//! Working directory of a build, removed afterwards, with a log, and a lock so that there is one build at a time.

use core::time::Duration;
use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use linerate_sys::clock::monotonic_now;
use linerate_sys::command::command_line;
use linerate_sys::command_stream::{CommandEnding, OutputEvent, StreamedCommand, stream};
use linerate_sys::file_lock::{self, FileLock};
use linerate_sys::resources::space_in;
use linerate_sys::signals::InterruptSignals;
use linerate_units::{MonotonicTime, Ratio};

use super::cache::CachedKernel;
use super::error::KernelError;
use super::{BuildEvent, BuildStep, MIN_FREE_SPACE, cache};

/// Prefix of the directories of builds; one that is found was left by a build that was killed.
const PREFIX: &str = ".build-";

/// Number of a program's last lines that are kept to explain its failure.
const LAST_LINES: usize = 200;

/// Directory, log and lock of a build, and the listener for its events.
pub(super) struct BuildWorkspace<'a> {
    cache: PathBuf,
    directory: PathBuf,
    log_path: PathBuf,
    /// `None` when it could not be created: a full disk must not hide its cause.
    log: Option<File>,
    start: MonotonicTime,
    interrupts: Option<InterruptSignals>,
    listener: &'a mut dyn FnMut(&BuildEvent),
    _lock: FileLock,
}

/// A program to run.
#[derive(Clone, Copy, Debug)]
pub(super) struct BuildTask<'a> {
    /// Purpose, for the error message; `None` for the command line.
    pub(super) what: Option<&'a str>,
    pub(super) program: &'a str,
    pub(super) arguments: &'a [&'a str],
    pub(super) directory: &'a Path,
    pub(super) environment: &'a [(&'a str, &'a str)],
}

/// Result of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TaskResult {
    pub(super) success: bool,
    /// Last lines.
    pub(super) lines: VecDeque<String>,
}

/// Progress of a program: the share, and figures as text.
pub(super) type TaskProgress = (Option<Ratio>, String);

impl<'a> BuildWorkspace<'a> {
    /// Takes the lock and makes the directory.
    pub(super) fn open(
        start: MonotonicTime,
        interrupts: Option<InterruptSignals>,
        listener: &'a mut dyn FnMut(&BuildEvent),
    ) -> Result<Self, KernelError> {
        let cache = cache::directory()?;
        let workspace = Self::open_in(cache, start, interrupts, listener)?;
        let free = space_in(&workspace.cache)?.free;
        if free < MIN_FREE_SPACE {
            return Err(KernelError::NoSpace { directory: workspace.cache.clone(), free, needed: MIN_FREE_SPACE });
        }
        Ok(workspace)
    }

    /// [`Self::open`] in a given cache, whatever space is left there.
    fn open_in(
        cache: PathBuf,
        start: MonotonicTime,
        interrupts: Option<InterruptSignals>,
        listener: &'a mut dyn FnMut(&BuildEvent),
    ) -> Result<Self, KernelError> {
        let unwritable = |cause| KernelError::CacheNotWritable { directory: cache.clone(), cause };
        fs::create_dir_all(&cache).map_err(unwritable)?;
        let lock = file_lock::try_lock(&cache.join(".lock")).map_err(|error| unwritable(error.into()))?;
        let lock = lock.ok_or_else(|| KernelError::Busy { directory: cache.clone() })?;
        remove_leftovers(&cache).map_err(unwritable)?;
        let directory = cache.join(format!("{PREFIX}{}", std::process::id()));
        fs::create_dir(&directory).map_err(unwritable)?;
        let log_path = cache.join("build.log");
        let log = File::create(&log_path).ok();
        Ok(Self { cache, directory, log_path, log, start, interrupts, listener, _lock: lock })
    }

    /// Ends the build: only a failed one leaves its log.
    pub(super) fn close(self, outcome: Result<CachedKernel, KernelError>) -> Result<CachedKernel, KernelError> {
        if !matches!(outcome, Err(KernelError::Failed { .. })) {
            let _ = fs::remove_file(&self.log_path);
        }
        outcome
    }

    /// The directory of this build.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// The directory of all kernels.
    pub(super) fn cache(&self) -> &Path {
        &self.cache
    }

    /// Makes a directory in that of this build.
    pub(super) fn subdirectory(&self, name: &str) -> Result<PathBuf, KernelError> {
        let path = self.directory.join(name);
        fs::create_dir_all(&path).map_err(|cause| KernelError::file("making", &path, cause))?;
        Ok(path)
    }

    /// The time since the build began.
    pub(super) fn elapsed(&self) -> Duration {
        monotonic_now() - self.start
    }

    /// Reports that a step begins.
    pub(super) fn step(&mut self, step: BuildStep) {
        self.tell(&BuildEvent::Step(step));
    }

    /// Reports an event.
    pub(super) fn tell(&mut self, event: &BuildEvent) {
        (self.listener)(event);
    }

    /// Runs a program. `watch` receives its lines, and is called a few times a second in silence; the progress that it
    /// returns is reported. A failed program is not an error here.
    pub(super) fn try_run(
        &mut self,
        task: BuildTask<'_>,
        watch: &mut dyn FnMut(OutputEvent<'_>) -> Option<TaskProgress>,
    ) -> Result<TaskResult, KernelError> {
        let streamed = StreamedCommand {
            program: task.program,
            arguments: task.arguments,
            directory: task.directory,
            environment: task.environment,
            interrupts: self.interrupts.as_ref(),
            deadline: None,
        };
        let mut finished = TaskResult::default();
        let (log, listener, start) = (&mut self.log, &mut *self.listener, self.start);
        write(log, &format!("$ {}", command_line(task.program, task.arguments)));
        let ending = stream(&streamed, &mut |said| {
            if let OutputEvent::Line(line) = said {
                write(log, line);
                finished.add(line);
            }
            if let Some((done, text)) = watch(said) {
                listener(&BuildEvent::Progress { done, text, elapsed: monotonic_now() - start });
            }
        })?;
        match ending {
            CommandEnding::Interrupted(signal) => Err(KernelError::Interrupted { signal }),
            CommandEnding::TooLate => Ok(TaskResult { success: false, ..finished }),
            CommandEnding::Status(status) => Ok(TaskResult { success: status.success(), ..finished }),
        }
    }

    /// Runs a program that must succeed.
    pub(super) fn run(
        &mut self,
        task: BuildTask<'_>,
        watch: &mut dyn FnMut(OutputEvent<'_>) -> Option<TaskProgress>,
    ) -> Result<TaskResult, KernelError> {
        let finished = self.try_run(task, watch)?;
        if finished.success { Ok(finished) } else { Err(self.failure(task, &finished)) }
    }

    /// Error for a failed program.
    pub(super) fn failure(&self, task: BuildTask<'_>, finished: &TaskResult) -> KernelError {
        if finished.disk_is_full() {
            return KernelError::DiskFull { directory: self.cache.clone() };
        }
        let what = task.what.map_or_else(|| command_line(task.program, task.arguments), str::to_owned);
        KernelError::Failed { what, last: finished.reasons(), log: self.log_path.clone() }
    }
}

impl Drop for BuildWorkspace<'_> {
    fn drop(&mut self) {
        // What cannot be removed now is removed by the next build.
        let _ = fs::remove_dir_all(&self.directory);
    }
}

impl TaskResult {
    fn add(&mut self, line: &str) {
        if self.lines.len() == LAST_LINES {
            self.lines.pop_front();
        }
        self.lines.push_back(line.to_owned());
    }

    /// True when it ended because of a full disk: compilers and archivers have these messages.
    pub(super) fn disk_is_full(&self) -> bool {
        self.lines.iter().any(|line| line.contains("No space left on device") || line.contains("Disk quota exceeded"))
    }

    /// Lines that explain its failure: the first with errors, else the last ones.
    pub(super) fn reasons(&self) -> Vec<String> {
        let speaks =
            |line: &&String| ["error", "Error", "***", "E: ", "Failed to fetch"].iter().any(|word| line.contains(word));
        let found: Vec<_> = self.lines.iter().filter(speaks).take(3).cloned().collect();
        if found.is_empty() { self.lines.iter().rev().take(3).rev().cloned().collect() } else { found }
    }
}

fn write(log: &mut Option<File>, line: &str) {
    // A log that cannot be written is no reason to end a build; the failure itself is reported otherwise.
    if log.as_mut().is_some_and(|file| writeln!(file, "{line}").is_err()) {
        *log = None;
    }
}

/// Removes the remains of killed builds: the caller has the lock, so there is no other.
fn remove_leftovers(cache: &Path) -> io::Result<()> {
    for entry in fs::read_dir(cache)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(PREFIX) {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A cache of its own for a test, removed at its end.
    pub(in crate::kernel) struct TestCache(pub(in crate::kernel) PathBuf);

    impl TestCache {
        pub(in crate::kernel) fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("linerate-kernel-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).expect("temporary directory");
            Self(path)
        }

        /// A workshop in it.
        pub(in crate::kernel) fn open<'a>(
            &self,
            listener: &'a mut dyn FnMut(&BuildEvent),
        ) -> Result<BuildWorkspace<'a>, KernelError> {
            BuildWorkspace::open_in(self.0.clone(), monotonic_now(), None, listener)
        }
    }

    impl Drop for TestCache {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn task<'a>(script: &'a [&'a str]) -> BuildTask<'a> {
        BuildTask { what: None, program: "sh", arguments: script, directory: Path::new("/"), environment: &[] }
    }

    #[test]
    fn one_build_at_a_time_and_nothing_left() {
        let cache = TestCache::new("lock");
        let (mut first, mut second) = (|_: &BuildEvent| {}, |_: &BuildEvent| {});
        fs::create_dir_all(cache.0.join(".build-1/left")).expect("writable");
        let open = cache.open(&mut first).expect("free");
        assert!(!cache.0.join(".build-1").exists(), "a build that was killed is cleared away");
        let place = open.directory().to_owned();
        assert!(place.is_dir());
        let error = cache.open(&mut second).map(drop).expect_err("taken");
        assert!(matches!(error, KernelError::Busy { .. }), "{error}");
        drop(open);
        assert!(!place.exists());
        // A child that another test is just starting has a copy of the lock until it executes its program.
        let free = (0..100).any(|_| {
            let opened = cache.open(&mut second).map(drop).is_ok();
            if !opened {
                std::thread::sleep(Duration::from_millis(10));
            }
            opened
        });
        assert!(free, "free again");
    }

    #[test]
    fn a_cache_that_cannot_be_created_is_named() {
        let mut listener = |_: &BuildEvent| {};
        let place = PathBuf::from("/proc/no/such/cache");
        let error = BuildWorkspace::open_in(place, monotonic_now(), None, &mut listener)
            .map(drop)
            .expect_err("procfs is read-only");
        let text = error.to_string();
        assert!(text.starts_with("the cache directory /proc/no/such/cache: "), "{text}");
        assert!(error.advice().is_some_and(|advice| advice.contains("XDG_CACHE_HOME")));
    }

    #[test]
    fn a_failed_program_is_reported_with_its_reasons_and_log() {
        let cache = TestCache::new("failed");
        let mut listener = |_: &BuildEvent| {};
        let mut workshop = cache.open(&mut listener).expect("free");
        let script = ["-c", "echo CC a.o; echo 'a.c:1: error: no such type'; echo 'make: *** [a.o] Error 1'; exit 2"];
        let error = workshop.run(task(&script), &mut |_| None).expect_err("exit 2");
        let KernelError::Failed { last, log, .. } = &error else { panic!("{error}") };
        assert_eq!(last, &["a.c:1: error: no such type", "make: *** [a.o] Error 1"]);
        let log = log.clone();
        let outcome = workshop.close(Err(error));
        assert!(outcome.is_err());
        let text = fs::read_to_string(log).expect("kept");
        assert!(text.starts_with("$ sh -c ") && text.contains("CC a.o\n"), "{text}");
    }

    #[test]
    fn a_full_disk_is_recognised_by_the_programs_messages() {
        let cache = TestCache::new("full");
        let mut listener = |_: &BuildEvent| {};
        let mut workshop = cache.open(&mut listener).expect("free");
        let script = ["-c", "echo 'fatal error: error writing to /x/a.o: No space left on device'; exit 1"];
        let error = workshop.run(task(&script), &mut |_| None).expect_err("exit 1");
        assert!(matches!(error, KernelError::DiskFull { .. }), "{error}");
    }

    #[test]
    fn progress_is_passed_on() {
        let cache = TestCache::new("progress");
        let mut seen = Vec::new();
        let mut listener = |event: &BuildEvent| {
            if let BuildEvent::Progress { text, .. } = event {
                seen.push(text.clone());
            }
        };
        let mut workshop = cache.open(&mut listener).expect("free");
        let watch = &mut |said: OutputEvent<'_>| match said {
            OutputEvent::Line(line) => Some((None, line.to_owned())),
            OutputEvent::Nothing => None,
        };
        workshop.run(task(&["-c", "echo a; echo b"]), watch).expect("exit 0");
        drop(workshop);
        assert_eq!(seen, ["a", "b"]);
    }
}
