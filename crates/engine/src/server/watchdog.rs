//! Limits that end a test when its client does not.

use core::time::Duration;

use linerate_model::parameters::TestParameters;
use linerate_units::{BitRate, ByteCount, MonotonicTime};
use linerate_wire::error::ErrorCode;

use super::ServerOptions;
use crate::error::Error;

/// Time by which a timed test may exceed its duration (iperf3 `server_timer_proc`: 40 s), for slow paths.
const GRACE: Duration = Duration::from_secs(40);

/// Watches one test.
#[derive(Debug)]
pub(super) struct TestWatchdog {
    /// Latest end of a timed test.
    deadline: Option<MonotonicTime>,
    stall_limit: Duration,
    rate: Option<RateLimit>,
}

/// Rate limit of a test, averaged over a time.
#[derive(Debug)]
struct RateLimit {
    most: BitRate,
    averaging: Duration,
    since: MonotonicTime,
    bytes: ByteCount,
}

impl TestWatchdog {
    pub(super) fn new(options: &ServerOptions, parameters: &TestParameters, now: MonotonicTime) -> Self {
        let deadline = parameters.end.time_limit().map(|time| now + time + parameters.omit + GRACE);
        let longest = options.limits.max_duration.map(|most| now + most + GRACE);
        Self {
            deadline: [deadline, longest].into_iter().flatten().min(),
            stall_limit: options.stall_timeout,
            rate: options.limits.max_total_rate.map(|most| RateLimit {
                most,
                averaging: options.rate_averaging,
                since: now,
                bytes: ByteCount::ZERO,
            }),
        }
    }

    /// Returns the reason to end the test now, if any.
    ///
    /// `stalled` is the time since data moved in either direction, `bytes` the total moved. That covers a case that
    /// iperf3 leaves open: a client that stops reading in a test without a time limit.
    pub(super) fn check(&mut self, now: MonotonicTime, stalled: Duration, bytes: ByteCount) -> Option<Error> {
        if self.deadline.is_some_and(|deadline| now >= deadline) {
            return Some(Error::new(ErrorCode::TEST_DURATION_EXPIRED));
        }
        if stalled >= self.stall_limit {
            return Some(Error::new(ErrorCode::IDLE_RECEIVER));
        }
        let rate = self.rate.as_mut()?;
        let elapsed = now.since(rate.since);
        if elapsed < rate.averaging {
            return None;
        }
        let average = (bytes - rate.bytes) / elapsed;
        (rate.since, rate.bytes) = (now, bytes);
        (average > rate.most).then(|| Error::new(ErrorCode::TOTAL_RATE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::parameters::EndCondition;
    use linerate_wire::parameters::ServerLimits;

    fn at(seconds: u64) -> MonotonicTime {
        MonotonicTime::from_nanos(seconds * 1_000_000_000)
    }

    fn code(error: Option<Error>) -> Option<ErrorCode> {
        error.map(|error| error.code())
    }

    #[test]
    fn a_timed_test_ends_forty_seconds_late() {
        let parameters = TestParameters { omit: Duration::from_secs(2), ..TestParameters::default() };
        let mut watchdog = TestWatchdog::new(&ServerOptions::default(), &parameters, at(0));
        assert_eq!(code(watchdog.check(at(51), Duration::ZERO, ByteCount::ZERO)), None);
        assert_eq!(
            code(watchdog.check(at(52), Duration::ZERO, ByteCount::ZERO)),
            Some(ErrorCode::TEST_DURATION_EXPIRED)
        );
    }

    #[test]
    fn a_test_without_time_limit_ends_when_nothing_moves() {
        for end in [EndCondition::Time(Duration::ZERO), EndCondition::Bytes(ByteCount::new(100_000_000_000))] {
            let parameters = TestParameters { end, ..TestParameters::default() };
            let mut watchdog = TestWatchdog::new(&ServerOptions::default(), &parameters, at(0));
            assert_eq!(code(watchdog.check(at(100_000), Duration::from_secs(119), ByteCount::ZERO)), None);
            assert_eq!(
                code(watchdog.check(at(100_000), Duration::from_secs(120), ByteCount::ZERO)),
                Some(ErrorCode::IDLE_RECEIVER)
            );
        }
    }

    #[test]
    fn the_rate_is_averaged() {
        let options = ServerOptions {
            limits: ServerLimits {
                max_total_rate: Some(BitRate::from_bits_per_second(8e6)),
                ..ServerLimits::default()
            },
            ..ServerOptions::default()
        };
        let mut watchdog = TestWatchdog::new(&options, &TestParameters::default(), at(0));
        let megabytes = |count: u64| ByteCount::new(count * 1_000_000);
        assert_eq!(code(watchdog.check(at(4), Duration::ZERO, megabytes(50))), None, "not yet five seconds");
        assert_eq!(code(watchdog.check(at(5), Duration::ZERO, megabytes(5))), None);
        assert_eq!(code(watchdog.check(at(10), Duration::ZERO, megabytes(11))), Some(ErrorCode::TOTAL_RATE));
    }
}
