//! Time for which a probe session may keep the network busy (`--server-max-duration`).

use core::time::Duration;

use linerate_units::MonotonicTime;

/// Sum of the times in which at least one stream is sent or one load connection runs.
#[derive(Debug)]
pub(super) struct TrafficTime {
    /// Largest sum; `None` for any.
    limit: Option<Duration>,
    used: Duration,
    busy_since: Option<MonotonicTime>,
}

impl TrafficTime {
    pub(super) const fn new(limit: Option<Duration>) -> Self {
        Self { limit, used: Duration::ZERO, busy_since: None }
    }

    /// Records whether there is traffic from `now` on.
    pub(super) fn follow(&mut self, now: MonotonicTime, is_busy: bool) {
        if let Some(since) = self.busy_since.take() {
            self.used += now.since(since);
        }
        self.busy_since = is_busy.then_some(now);
    }

    /// True when no more traffic is allowed.
    pub(super) fn is_over(&self) -> bool {
        self.limit.is_some_and(|limit| self.used >= limit)
    }

    /// Time at which the running traffic has to end; `None` for never.
    pub(super) fn deadline(&self) -> Option<MonotonicTime> {
        Some(self.busy_since? + self.limit?.saturating_sub(self.used))
    }

    /// Refuses a request for traffic when no more is allowed.
    pub(super) fn admit(&self) -> Result<(), String> {
        match self.limit {
            Some(limit) if self.is_over() => Err(format!(
                "this server lets a session cause traffic for at most {} (--server-max-duration)",
                linerate_units::display::duration(limit)
            )),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> MonotonicTime {
        MonotonicTime::from_nanos(seconds * 1_000_000_000)
    }

    #[test]
    fn pauses_do_not_count() {
        let mut time = TrafficTime::new(Some(Duration::from_secs(3)));
        time.follow(at(1), true);
        assert_eq!(time.deadline(), Some(at(4)));
        time.follow(at(3), false);
        assert_eq!((time.deadline(), time.is_over()), (None, false));
        time.follow(at(100), true);
        assert_eq!(time.deadline(), Some(at(101)));
        assert_eq!(time.admit(), Ok(()));
        time.follow(at(101), true);
        assert!(time.is_over());
        assert!(time.admit().expect_err("no more").contains("at most 3"));
    }

    #[test]
    fn without_a_limit_there_is_no_end() {
        let mut time = TrafficTime::new(None);
        time.follow(at(1), true);
        time.follow(at(1_000_000), true);
        assert_eq!((time.deadline(), time.is_over(), time.admit()), (None, false, Ok(())));
    }
}
