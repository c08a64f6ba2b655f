//! Where a build happens: a directory that is gone afterwards, a log, and a lock so that there is one build at a time.

use core::time::Duration;
use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use linerate_sys::clock::monotonic_now;
use linerate_sys::command::command_line;
use linerate_sys::command_stream::{Ending, Said, Streamed, stream};
use linerate_sys::file_lock::{self, FileLock};
use linerate_sys::resources::space_in;
use linerate_sys::signals::Interrupts;
use linerate_units::{MonotonicTime, Ratio};

use super::cache::CachedKernel;
use super::error::KernelError;
use super::{Event, SPACE, Step, cache};

/// Begins the names of directories of builds; one that is found was left by a build that was killed.
const PREFIX: &str = ".build-";

/// How many of the last lines of a program are kept to say why it failed.
const LAST_LINES: usize = 200;

/// The directory, the log and the lock, and who hears of what happens.
pub(super) struct Workshop<'a> {
    cache: PathBuf,
    directory: PathBuf,
    log_path: PathBuf,
    /// `None` when it could not be made: a full disk is not to hide what it was full of.
    log: Option<File>,
    start: MonotonicTime,
    interrupts: Option<Interrupts>,
    listener: &'a mut dyn FnMut(&Event),
    _lock: FileLock,
}

/// A program to run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Task<'a> {
    /// What it does, for the error message; the command line when there is nothing better to say.
    pub(super) what: Option<&'a str>,
    pub(super) program: &'a str,
    pub(super) arguments: &'a [&'a str],
    pub(super) directory: &'a Path,
    pub(super) environment: &'a [(&'a str, &'a str)],
}

/// What a program did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Finished {
    pub(super) success: bool,
    /// Its last lines.
    pub(super) lines: VecDeque<String>,
}

/// How far a program is: the share, and figures in words.
pub(super) type Progress = (Option<Ratio>, String);

impl<'a> Workshop<'a> {
    /// Takes the lock and makes the directory.
    pub(super) fn open(
        start: MonotonicTime,
        interrupts: Option<Interrupts>,
        listener: &'a mut dyn FnMut(&Event),
    ) -> Result<Self, KernelError> {
        Self::open_in(cache::directory()?, start, interrupts, listener)
    }

    fn open_in(
        cache: PathBuf,
        start: MonotonicTime,
        interrupts: Option<Interrupts>,
        listener: &'a mut dyn FnMut(&Event),
    ) -> Result<Self, KernelError> {
        let unwritable = |cause| KernelError::CacheNotWritable { directory: cache.clone(), cause };
        fs::create_dir_all(&cache).map_err(unwritable)?;
        let lock = file_lock::try_lock(&cache.join(".lock")).map_err(|error| unwritable(error.into()))?;
        let lock = lock.ok_or_else(|| KernelError::Busy { directory: cache.clone() })?;
        remove_leftovers(&cache).map_err(unwritable)?;
        let free = space_in(&cache)?.free;
        if free < SPACE {
            return Err(KernelError::NoSpace { directory: cache, free, needed: SPACE });
        }
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

    /// Says that a step begins.
    pub(super) fn step(&mut self, step: Step) {
        self.tell(&Event::Step(step));
    }

    /// Says something.
    pub(super) fn tell(&mut self, event: &Event) {
        (self.listener)(event);
    }

    /// Runs a program. `watch` sees its lines, and its silence a few times a second; what it returns is passed on. A
    /// program that fails is no error here.
    pub(super) fn try_run(
        &mut self,
        task: Task<'_>,
        watch: &mut dyn FnMut(Said<'_>) -> Option<Progress>,
    ) -> Result<Finished, KernelError> {
        let streamed = Streamed {
            program: task.program,
            arguments: task.arguments,
            directory: task.directory,
            environment: task.environment,
            interrupts: self.interrupts.as_ref(),
        };
        let mut finished = Finished::default();
        let (log, listener, start) = (&mut self.log, &mut *self.listener, self.start);
        write(log, &format!("$ {}", command_line(task.program, task.arguments)));
        let ending = stream(&streamed, &mut |said| {
            if let Said::Line(line) = said {
                write(log, line);
                finished.add(line);
            }
            if let Some((done, text)) = watch(said) {
                listener(&Event::Progress { done, text, elapsed: monotonic_now() - start });
            }
        })?;
        match ending {
            Ending::Interrupted(signal) => Err(KernelError::Interrupted { signal }),
            Ending::Status(status) => Ok(Finished { success: status.success(), ..finished }),
        }
    }

    /// Runs a program that has to succeed.
    pub(super) fn run(
        &mut self,
        task: Task<'_>,
        watch: &mut dyn FnMut(Said<'_>) -> Option<Progress>,
    ) -> Result<Finished, KernelError> {
        let finished = self.try_run(task, watch)?;
        if finished.success { Ok(finished) } else { Err(self.failure(task, &finished)) }
    }

    /// What the failure of a program means.
    pub(super) fn failure(&self, task: Task<'_>, finished: &Finished) -> KernelError {
        if finished.disk_is_full() {
            return KernelError::DiskFull { directory: self.cache.clone() };
        }
        let what = task.what.map_or_else(|| command_line(task.program, task.arguments), str::to_owned);
        KernelError::Failed { what, last: finished.reasons(), log: self.log_path.clone() }
    }
}

impl Drop for Workshop<'_> {
    fn drop(&mut self) {
        // What cannot be removed now is removed by the next build.
        let _ = fs::remove_dir_all(&self.directory);
    }
}

impl Finished {
    fn add(&mut self, line: &str) {
        if self.lines.len() == LAST_LINES {
            self.lines.pop_front();
        }
        self.lines.push_back(line.to_owned());
    }

    /// Whether it ended because nothing more could be written: compilers and archivers say so in these words.
    pub(super) fn disk_is_full(&self) -> bool {
        self.lines.iter().any(|line| line.contains("No space left on device") || line.contains("Disk quota exceeded"))
    }

    /// The lines that say why it failed: the first that speak of errors, else the last ones.
    pub(super) fn reasons(&self) -> Vec<String> {
        let speaks =
            |line: &&String| ["error", "Error", "***", "E: ", "Failed to fetch"].iter().any(|word| line.contains(word));
        let found: Vec<_> = self.lines.iter().filter(speaks).take(3).cloned().collect();
        if found.is_empty() { self.lines.iter().rev().take(3).rev().cloned().collect() } else { found }
    }
}

fn write(log: &mut Option<File>, line: &str) {
    // A log that cannot be written is no reason to end a build; the failure itself is told otherwise.
    if log.as_mut().is_some_and(|file| writeln!(file, "{line}").is_err()) {
        *log = None;
    }
}

/// Removes what builds left that were killed: the caller has the lock, so there is no other.
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
            listener: &'a mut dyn FnMut(&Event),
        ) -> Result<Workshop<'a>, KernelError> {
            Workshop::open_in(self.0.clone(), monotonic_now(), None, listener)
        }
    }

    impl Drop for TestCache {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn task<'a>(script: &'a [&'a str]) -> Task<'a> {
        Task { what: None, program: "sh", arguments: script, directory: Path::new("/"), environment: &[] }
    }

    #[test]
    fn one_build_at_a_time_and_nothing_left() {
        let cache = TestCache::new("lock");
        let (mut first, mut second) = (|_: &Event| {}, |_: &Event| {});
        fs::create_dir_all(cache.0.join(".build-1/left")).expect("writable");
        let open = cache.open(&mut first).expect("free");
        assert!(!cache.0.join(".build-1").exists(), "a build that was killed is cleared away");
        let place = open.directory().to_owned();
        assert!(place.is_dir());
        let error = cache.open(&mut second).map(drop).expect_err("taken");
        assert!(matches!(error, KernelError::Busy { .. }), "{error}");
        drop(open);
        assert!(!place.exists());
        // A child that another test is just starting has a copy of the lock until it is another program.
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
    fn a_cache_that_cannot_be_made_says_where() {
        let mut listener = |_: &Event| {};
        let place = PathBuf::from("/proc/no/such/cache");
        let error = Workshop::open_in(place, monotonic_now(), None, &mut listener).map(drop).expect_err("nobody can");
        let text = error.to_string();
        assert!(text.starts_with("the cache directory /proc/no/such/cache: "), "{text}");
        assert!(error.advice().is_some_and(|advice| advice.contains("XDG_CACHE_HOME")));
    }

    #[test]
    fn a_failed_program_is_told_with_its_reasons_and_log() {
        let cache = TestCache::new("failed");
        let mut listener = |_: &Event| {};
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
    fn a_full_disk_is_known_by_what_programs_say() {
        let cache = TestCache::new("full");
        let mut listener = |_: &Event| {};
        let mut workshop = cache.open(&mut listener).expect("free");
        let script = ["-c", "echo 'fatal error: error writing to /x/a.o: No space left on device'; exit 1"];
        let error = workshop.run(task(&script), &mut |_| None).expect_err("exit 1");
        assert!(matches!(error, KernelError::DiskFull { .. }), "{error}");
    }

    #[test]
    fn progress_is_passed_on() {
        let cache = TestCache::new("progress");
        let mut seen = Vec::new();
        let mut listener = |event: &Event| {
            if let Event::Progress { text, .. } = event {
                seen.push(text.clone());
            }
        };
        let mut workshop = cache.open(&mut listener).expect("free");
        let watch = &mut |said: Said<'_>| match said {
            Said::Line(line) => Some((None, line.to_owned())),
            Said::Nothing => None,
        };
        workshop.run(task(&["-c", "echo a; echo b"]), watch).expect("exit 0");
        drop(workshop);
        assert_eq!(seen, ["a", "b"]);
    }
}
