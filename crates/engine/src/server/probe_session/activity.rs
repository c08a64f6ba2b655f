//! Activity of a probe session: messages that only keep it alive are none.

use core::time::Duration;

use linerate_units::MonotonicTime;

/// Time for which a session may keep streams, load connections or records that it does not use.
pub(super) const MAX_IDLE: Duration = Duration::from_secs(600);

/// Shortest time between two notes to the registry.
const NOTE_INTERVAL: Duration = Duration::from_secs(1);

/// Time of a session's last traffic, or of the last request for it.
#[derive(Debug)]
pub(super) struct SessionActivity {
    last: MonotonicTime,
    noted: Option<MonotonicTime>,
}

impl SessionActivity {
    pub(super) const fn new(now: MonotonicTime) -> Self {
        Self { last: now, noted: None }
    }

    /// Records traffic or a request at `time`.
    pub(super) fn record(&mut self, time: MonotonicTime) {
        self.last = self.last.max(time);
    }

    /// Last activity, when it is news to the registry.
    pub(super) fn news(&mut self) -> Option<MonotonicTime> {
        let is_old = self.noted.is_some_and(|noted| self.last.since(noted) < NOTE_INTERVAL);
        if is_old {
            return None;
        }
        self.noted = Some(self.last);
        self.noted
    }

    /// True when a session that has streams or load connections uses none of them any more.
    pub(super) fn is_over(&self, now: MonotonicTime) -> bool {
        now.since(self.last) >= MAX_IDLE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> MonotonicTime {
        MonotonicTime::from_nanos(seconds * 1_000_000_000)
    }

    #[test]
    fn a_session_without_traffic_is_over_after_ten_minutes() {
        let mut activity = SessionActivity::new(at(1));
        activity.record(at(50));
        activity.record(at(40));
        assert!(!activity.is_over(at(649)));
        assert!(activity.is_over(at(650)));
        activity.record(at(650));
        assert!(!activity.is_over(at(651)));
    }

    #[test]
    fn the_registry_hears_of_activity_once_a_second() {
        let mut activity = SessionActivity::new(at(1));
        assert_eq!(activity.news(), Some(at(1)));
        assert_eq!(activity.news(), None);
        activity.record(at(2));
        assert_eq!((activity.news(), activity.news()), (Some(at(2)), None));
    }
}
