//! End of an export, for its threads.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use linerate_sys::clock::monotonic_now;
use linerate_units::MonotonicTime;

/// Time for the last results after the end.
pub(super) const FLUSH_LIMIT: Duration = Duration::from_secs(5);

/// Signal of the end.
#[derive(Debug, Default)]
pub(super) struct EndSignal {
    deadline: Mutex<Option<MonotonicTime>>,
    changed: Condvar,
}

impl EndSignal {
    pub(super) fn end(&self) {
        *self.deadline.lock().unwrap_or_else(PoisonError::into_inner) = Some(monotonic_now() + FLUSH_LIMIT);
        self.changed.notify_all();
    }

    /// Time until which the last results are shipped; `None` before the end.
    pub(super) fn deadline(&self) -> Option<MonotonicTime> {
        *self.deadline.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the end, or for the time.
    pub(super) fn wait(&self, time: Duration) {
        let deadline = self.deadline.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.changed.wait_timeout_while(deadline, time, |deadline| deadline.is_none()));
    }
}
