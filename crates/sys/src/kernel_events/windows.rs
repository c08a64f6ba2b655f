//! Windows of time in which programs at frequent events are attached: they cost a part of what they would all the time.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use linerate_units::MonotonicTime;

use super::bpf::DetachableProgram;
use crate::clock;
use crate::error::{Error, Result};

/// Length of a window, and of the pause until the next. The first one begins at once.
const WINDOW: Duration = Duration::from_millis(64);
const PAUSE: Duration = Duration::from_millis(448);

/// State that the thread shares with its watch.
#[derive(Debug, Default)]
struct WindowClock {
    /// Time of all windows that ended.
    closed: Duration,
    /// Begin of the present window.
    open_since: Option<MonotonicTime>,
    is_stopped: bool,
}

/// Thread that attaches and detaches programs, until this is dropped.
#[derive(Debug)]
pub(super) struct TracingWindows {
    shared: Arc<(Mutex<WindowClock>, Condvar)>,
}

impl TracingWindows {
    /// Starts with attached programs, whose first window is open. They are detached in this order, and attached in the reverse.
    pub(super) fn start(programs: Vec<DetachableProgram>) -> Result<Self> {
        let clock = WindowClock { open_since: Some(clock::monotonic_now()), ..WindowClock::default() };
        let shared = Arc::new((Mutex::new(clock), Condvar::new()));
        let of_thread = Arc::clone(&shared);
        // Reports on late hosts may name it.
        let start = thread::Builder::new().name("linerate-trace".to_owned());
        let started = start.spawn(move || run(programs, &of_thread));
        started.map_err(|cause| Error::system("starting a thread that traces in windows", cause))?;
        Ok(Self { shared })
    }

    /// Time of all windows so far.
    pub(super) fn traced(&self) -> Duration {
        let clock = lock(&self.shared.0);
        let open = clock.open_since.map(|since| clock::monotonic_now().since(since));
        clock.closed + open.unwrap_or_default()
    }
}

impl Drop for TracingWindows {
    fn drop(&mut self) {
        lock(&self.shared.0).is_stopped = true;
        self.shared.1.notify_all();
    }
}

fn lock(clock: &Mutex<WindowClock>) -> MutexGuard<'_, WindowClock> {
    clock.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for `time`; returns true when the watch has ended.
fn is_stopped_within(time: Duration, shared: &(Mutex<WindowClock>, Condvar)) -> bool {
    let until = |clock: &mut WindowClock| !clock.is_stopped;
    let waited = shared.1.wait_timeout_while(lock(&shared.0), time, until);
    waited.map_or(true, |(clock, _)| clock.is_stopped)
}

fn run(mut programs: Vec<DetachableProgram>, shared: &(Mutex<WindowClock>, Condvar)) {
    loop {
        let is_stopped = is_stopped_within(WINDOW, shared);
        {
            let mut clock = lock(&shared.0);
            let open = clock.open_since.take().map(|since| clock::monotonic_now().since(since));
            clock.closed += open.unwrap_or_default();
        }
        programs.iter_mut().for_each(DetachableProgram::detach);
        if is_stopped || is_stopped_within(PAUSE, shared) {
            return;
        }
        // A program that no longer attaches ends the windows: their time no longer grows.
        if programs.iter_mut().rev().any(|program| program.attach().is_err()) {
            return;
        }
        lock(&shared.0).open_since = Some(clock::monotonic_now());
    }
}
