//! Waiting for a time of the wall clock, on a host whose clock may be set and that may sleep.

use std::time::Duration;

use linerate_sys::clock::{monotonic_now, realtime_now};
use linerate_sys::poll::{PollInterest, wait_for};
use linerate_sys::signals::InterruptSignals;
use linerate_units::WallTime;

/// Shortest and longest sleep: steps of the clock and a suspended host are noticed after it.
const TICK: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// Settings of a wait.
pub(crate) struct PlannedWait<'a> {
    /// Signals that end it.
    pub(crate) interrupts: &'a InterruptSignals,
    /// Largest difference to the planned time.
    pub(crate) guard: Duration,
}

/// End of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitEnding {
    /// It is time.
    Due,
    /// The time is over by this much.
    Missed(Duration),
    /// The clock was set back.
    ClockSet,
    /// There is nothing to wait for any longer.
    Over,
}

impl PlannedWait<'_> {
    /// Sleeps until a time of the wall clock, or until `is_over`.
    pub(crate) fn until(&self, at: WallTime, is_over: impl Fn() -> bool) -> WaitEnding {
        let (wall, monotonic) = (realtime_now(), monotonic_now());
        loop {
            if is_over() {
                return WaitEnding::Over;
            }
            let expected = wall.since_unix_epoch() + (monotonic_now() - monotonic);
            match left(realtime_now(), at, WallTime::from_unix(expected), self.guard) {
                // An error would repeat at once: the sleep is what matters.
                Ok(left) => drop(wait_for(self.interrupts, PollInterest::READ, Some(sleep(left)))),
                Err(ending) => return ending,
            }
        }
    }
}

/// Next sleep: the nearer the time, the shorter, so that a long wait costs few of them.
fn sleep(left: Duration) -> Duration {
    left.min((left / 8).clamp(TICK.0, TICK.1))
}

/// Time that is left until `at`, or the end of the wait. `expected` is the time that the clock would show had it not been set.
fn left(now: WallTime, at: WallTime, expected: WallTime, guard: Duration) -> Result<Duration, WaitEnding> {
    let [now, at, expected] = [now, at, expected].map(WallTime::since_unix_epoch);
    match (now.checked_sub(at), at.checked_sub(now)) {
        (Some(late), _) if late > guard => Err(WaitEnding::Missed(late)),
        // Set back, it would have this host sleep through what the others do.
        (None, Some(_)) if now + guard < expected => Err(WaitEnding::ClockSet),
        (None, Some(left)) => Ok(left),
        _ => Err(WaitEnding::Due),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_wait_takes_few_sleeps_and_ends_in_time() {
        let mut left = Duration::from_secs(24 * 3600);
        let mut count = 0;
        while !left.is_zero() {
            left = left.checked_sub(sleep(left)).expect("no sleep is too long");
            count += 1;
        }
        assert!((1440..1500).contains(&count), "{count}");
    }

    #[test]
    fn clocks_that_jump_end_a_wait() {
        let at = |seconds| WallTime::from_unix(Duration::from_secs(seconds));
        let (guard, second) = (Duration::from_secs(2), Duration::from_secs(1));
        for (now, expected, ending) in [
            (90, 90, Ok(10 * second)),
            (100, 100, Err(WaitEnding::Due)),
            (102, 102, Err(WaitEnding::Due)),
            // Asleep, or set forward.
            (103, 91, Err(WaitEnding::Missed(3 * second))),
            (95, 90, Ok(5 * second)),
            // Set back: by no more than clocks differ, and by more.
            (88, 90, Ok(12 * second)),
            (50, 90, Err(WaitEnding::ClockSet)),
        ] {
            assert_eq!(left(at(now), at(100), at(expected), guard), ending, "{now} instead of {expected}");
        }
    }
}
