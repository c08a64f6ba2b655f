//! Rate limit that the streams or load connections of a session share (`--server-bitrate-limit`).

use core::time::Duration;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use linerate_units::{BitRate, ByteCount, MonotonicTime};

/// Time for which one step may use the whole rate: short enough that the connections take turns. A thread that is late by
/// no more catches up.
const STEP: Duration = Duration::from_millis(10);

/// Limit of the sum of several threads' rates. Each waits until the bytes of all earlier steps have had their time.
#[derive(Debug)]
pub(crate) struct SharedRate {
    rate: BitRate,
    /// Time of the next step, in nanoseconds of the monotonic clock.
    next: AtomicU64,
}

impl SharedRate {
    pub(crate) fn new(rate: BitRate) -> Arc<Self> {
        Arc::new(Self { rate, next: AtomicU64::new(0) })
    }

    /// Earliest time of the next step; `None` when it is now.
    pub(crate) fn deferred_until(&self, now: MonotonicTime) -> Option<MonotonicTime> {
        let next = MonotonicTime::from_nanos(self.next.load(Ordering::Relaxed));
        (next > now).then_some(next)
    }

    /// Most bytes of one step, at least `least`.
    pub(crate) fn step(&self, least: ByteCount) -> ByteCount {
        (self.rate * STEP).max(least)
    }

    /// Counts `bytes` that have been moved.
    pub(crate) fn count(&self, bytes: ByteCount, now: MonotonicTime) {
        let counted = |next: u64| Some(self.after(next, now, bytes));
        let _ = self.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, counted);
    }

    /// Reserves `bytes` to send; `false` when another thread has had the turn meanwhile.
    pub(crate) fn reserve(&self, bytes: ByteCount, now: MonotonicTime) -> bool {
        let reserved = |next: u64| (next <= now.as_nanos()).then(|| self.after(next, now, bytes));
        self.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, reserved).is_ok()
    }

    fn after(&self, next: u64, now: MonotonicTime, bytes: ByteCount) -> u64 {
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let start = next.max(now.as_nanos().saturating_sub(nanos(STEP)));
        start.saturating_add(self.rate.time_to_send(bytes).map_or(u64::MAX, nanos))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> MonotonicTime {
        MonotonicTime::from_nanos(1_000_000_000 + milliseconds * 1_000_000)
    }

    #[test]
    fn two_senders_have_the_rate_of_one() {
        // 1000 bytes a millisecond.
        let rate = SharedRate::new(BitRate::from_bits_per_second(8e6));
        assert_eq!(rate.step(ByteCount::new(1)), ByteCount::new(10_000));
        let mut sent = 0;
        for millisecond in 0..1000 {
            for _ in 0..2 {
                if rate.reserve(ByteCount::new(5000), at(millisecond)) {
                    sent += 5000;
                }
            }
        }
        assert_eq!(sent, 1_010_000, "a second, and the step before it");
        assert_eq!(rate.deferred_until(at(999)), Some(at(1000)));
        assert_eq!(rate.deferred_until(at(1000)), None);
    }

    #[test]
    fn received_bytes_delay_the_next_step_and_pauses_are_not_caught_up() {
        let rate = SharedRate::new(BitRate::from_bits_per_second(8e6));
        rate.count(ByteCount::new(13_000), at(0));
        rate.count(ByteCount::new(3000), at(1));
        assert!(!rate.reserve(ByteCount::new(1), at(5)));
        assert_eq!(rate.deferred_until(at(5)), Some(at(6)));
        rate.count(ByteCount::new(11_000), at(500));
        assert_eq!(rate.deferred_until(at(500)), Some(at(501)), "10 ms of the pause");
    }
}
