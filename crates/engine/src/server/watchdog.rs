//! Limits that end a test when its client does not.

use core::time::Duration;

use linerate_model::parameters::TestParameters;
use linerate_units::{ByteCount, MonotonicTime};
use linerate_wire::error::ErrorCode;

use super::ServerOptions;
use super::rate_watch::RateWatch;
use crate::error::Error;
use crate::server_rate::RateAccount;

/// Time by which a timed test may exceed its duration (iperf3 `server_timer_proc`: 40 s), for slow paths.
const GRACE: Duration = Duration::from_secs(40);

/// Time by which the data of a timed test may exceed `--server-max-duration`: the client's clock starts later.
const TRAFFIC_GRACE: Duration = Duration::from_secs(2);

/// Watches one test.
#[derive(Debug)]
pub(super) struct TestWatchdog {
    /// Latest end of a timed test.
    deadline: Option<MonotonicTime>,
    /// Latest end of its data, where the server limits the duration.
    traffic_end: Option<MonotonicTime>,
    stall_limit: Duration,
    rate: Option<RateWatch>,
}

impl TestWatchdog {
    pub(super) fn new(
        options: &ServerOptions,
        parameters: &TestParameters,
        rate: Option<RateAccount>,
        now: MonotonicTime,
    ) -> Self {
        let deadline = parameters.end.time_limit().map(|time| now + time + parameters.omit + GRACE);
        let longest = options.limits.max_duration.map(|most| now + most + GRACE);
        Self {
            deadline: [deadline, longest].into_iter().flatten().min(),
            traffic_end: options.limits.max_duration.map(|most| now + most + TRAFFIC_GRACE),
            stall_limit: options.stall_timeout,
            rate: RateWatch::new(rate, options.rate_averaging, now),
        }
    }

    /// True when no more data may move: the client has only a while left to end the test.
    pub(super) fn ends_traffic(&self, now: MonotonicTime) -> bool {
        self.traffic_end.is_some_and(|end| now >= end)
    }

    /// Returns the reason to end the test now, if any.
    ///
    /// `stalled` is the time since data moved in either direction, which covers a case that iperf3 leaves open: a client
    /// that stops reading in a test without a time limit. `received` is what the client has sent, and `sessions` the
    /// number of its network's sessions with traffic.
    pub(super) fn check(
        &mut self,
        now: MonotonicTime,
        stalled: Duration,
        received: ByteCount,
        sessions: impl FnOnce() -> u64,
    ) -> Option<Error> {
        if self.deadline.is_some_and(|deadline| now >= deadline) {
            return Some(Error::new(ErrorCode::TEST_DURATION_EXPIRED));
        }
        if stalled >= self.stall_limit {
            return Some(Error::new(ErrorCode::IDLE_RECEIVER));
        }
        let excess = self.rate.as_mut()?.check(now, received, sessions)?;
        let error = Error::new(ErrorCode::TOTAL_RATE);
        Some(match excess.detail() {
            Some(detail) => error.with_detail(detail),
            None => error,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::parameters::EndCondition;

    fn at(seconds: u64) -> MonotonicTime {
        MonotonicTime::from_nanos(seconds * 1_000_000_000)
    }

    fn code(error: Option<Error>) -> Option<ErrorCode> {
        error.map(|error| error.code())
    }

    #[test]
    fn a_timed_test_ends_forty_seconds_late() {
        let parameters = TestParameters { omit: Duration::from_secs(2), ..TestParameters::default() };
        let mut watchdog = TestWatchdog::new(&ServerOptions::default(), &parameters, None, at(0));
        assert_eq!(code(watchdog.check(at(51), Duration::ZERO, ByteCount::ZERO, || 1)), None);
        assert_eq!(
            code(watchdog.check(at(52), Duration::ZERO, ByteCount::ZERO, || 1)),
            Some(ErrorCode::TEST_DURATION_EXPIRED)
        );
    }

    #[test]
    fn a_test_without_time_limit_ends_when_nothing_moves() {
        for end in [EndCondition::Time(Duration::ZERO), EndCondition::Bytes(ByteCount::new(100_000_000_000))] {
            let parameters = TestParameters { end, ..TestParameters::default() };
            let mut watchdog = TestWatchdog::new(&ServerOptions::default(), &parameters, None, at(0));
            assert_eq!(code(watchdog.check(at(100_000), Duration::from_secs(119), ByteCount::ZERO, || 1)), None);
            assert_eq!(
                code(watchdog.check(at(100_000), Duration::from_secs(120), ByteCount::ZERO, || 1)),
                Some(ErrorCode::IDLE_RECEIVER)
            );
        }
    }
}
