//! End of a load connection on which nothing moves.

use core::time::Duration;

use linerate_units::{ByteCount, MonotonicTime};

/// Watches the progress of a load connection.
#[derive(Debug)]
pub(super) struct StallWatch {
    /// Longest time without progress; `None` for any.
    limit: Option<Duration>,
    moved: ByteCount,
    since: Option<MonotonicTime>,
}

impl StallWatch {
    pub(super) const fn new(limit: Option<Duration>) -> Self {
        Self { limit, moved: ByteCount::ZERO, since: None }
    }

    /// Records the bytes moved so far; returns the reason to end the connection when they have not grown for too long.
    pub(super) fn check(&mut self, now: MonotonicTime, moved: ByteCount) -> Option<String> {
        let since = *self.since.get_or_insert(now);
        if moved > self.moved {
            (self.moved, self.since) = (moved, Some(now));
            return None;
        }
        let limit = self.limit.filter(|limit| now.since(since) >= *limit)?;
        let limit = linerate_units::display::duration(limit);
        Some(format!("stalled: no data was acknowledged or received for {limit}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> MonotonicTime {
        MonotonicTime::from_nanos(seconds * 1_000_000_000)
    }

    #[test]
    fn each_byte_of_progress_renews_the_time() {
        let mut watch = StallWatch::new(Some(Duration::from_secs(30)));
        for (time, moved) in [(5, 0), (34, 0), (34, 1), (63, 1), (63, 2), (92, 2)] {
            assert_eq!(watch.check(at(time), ByteCount::new(moved)), None, "{time}");
        }
        let reason = watch.check(at(93), ByteCount::new(2)).expect("30 s after the last byte");
        assert!(reason.contains("30.0 s"), "{reason}");
    }

    #[test]
    fn without_a_limit_there_is_no_end() {
        let mut watch = StallWatch::new(None);
        watch.check(at(0), ByteCount::ZERO);
        assert_eq!(watch.check(at(1_000_000), ByteCount::ZERO), None);
    }
}
