//! Limits of a test: the bytes after which it ends, and the times after which a server has failed.

use core::time::Duration;

use linerate_model::event::TestEvent;
use linerate_model::parameters::{EndCondition, TestDirection, TestParameters};
use linerate_model::stream::EndpointRole;
use linerate_sys::clock;
use linerate_units::{ByteCount, MonotonicTime};
use linerate_wire::error::ErrorCode;

use super::ClientDriver;
use crate::error::Error;
use crate::stream::ByteLimits;

/// Time after which a server that accepts the connection and does not answer is reported. It may serve others at first, so
/// that the client waits for much longer.
pub(super) const ANSWER_NOTE_TIME: Duration = Duration::from_secs(5);

impl ClientDriver<'_> {
    /// Reports once that a server does not answer: people wait for one that hangs as for one that is busy.
    pub(super) fn report_silence(&mut self, readable: bool) {
        let is_over = |since: MonotonicTime| clock::monotonic_now().since(since) >= ANSWER_NOTE_TIME;
        if readable || self.interrupted.is_some() {
            self.unanswered = None;
        } else if self.unanswered.take_if(|since| is_over(*since)).is_some() {
            let text = format!(
                "{} accepted the connection and has not answered: it is busy or hangs; waiting for up to {} (Ctrl-C ends)",
                self.options.host,
                linerate_units::display::duration(self.options.deadlines.turn)
            );
            (self.observer)(&TestEvent::Warning(text));
        }
    }

    /// Time without data after which the test fails, if any.
    pub(super) fn stall_limit(&self) -> Option<Duration> {
        let receives = self.parameters.direction == TestDirection::Reverse;
        let receiving = self.options.receive_timeout.filter(|_| receives);
        let any = self.parameters.end.time_limit().is_none().then_some(self.options.stall_timeout);
        [receiving, any].into_iter().flatten().min()
    }

    /// Limit by which a server ends the test in spite of itself: `--rcv-timeout` for a client that only receives, and, in
    /// a test whose end is not a time, [`stall_timeout`](super::ClientOptions::stall_timeout) and the longest test of iperf3.
    pub(super) fn expired_limit(&mut self, now: MonotonicTime) -> Option<Error> {
        let measurement = self.measurement.as_mut()?;
        let stalled = measurement.stalled_for(now);
        let receives = self.parameters.direction == TestDirection::Reverse;
        if self.options.receive_timeout.is_some_and(|limit| receives && stalled >= limit) {
            return Some(Error::new(ErrorCode::IDLE_RECEIVER));
        }
        if self.parameters.end.time_limit().is_some() {
            return None;
        }
        if stalled >= self.options.stall_timeout {
            let detail = format!("no data moved for {} s", self.options.stall_timeout.as_secs_f64());
            return Some(Error::new(ErrorCode::STREAM_WRITE).with_detail(detail));
        }
        let is_exact = !matches!(self.parameters.end, EndCondition::Time(_));
        let longest = self.options.max_exact_time;
        (is_exact && measurement.wall_time(now) >= longest).then(|| {
            let detail = format!("not complete after {} s", longest.as_secs_f64());
            Error::new(ErrorCode::TEST_DURATION_EXPIRED).with_detail(detail)
        })
    }
}

/// Byte limits of a test at the end `side`.
///
/// An iperf3 sends whole blocks only, and as a receiver does not count an incomplete one: with it, the last block is
/// completed. Two linerates move the exact number.
pub(crate) fn byte_limits(parameters: &TestParameters, side: EndpointRole, peer_is_linerate: bool) -> ByteLimits {
    let exact = match parameters.end {
        EndCondition::Time(_) => return ByteLimits::default(),
        EndCondition::Bytes(bytes) => bytes,
        EndCondition::Blocks(blocks) => blocks * parameters.block_size,
    };
    let block = parameters.block_size.get().max(1);
    let whole = ByteCount::new(exact.get().div_ceil(block).saturating_mul(block));
    let send = if peer_is_linerate { exact } else { whole };
    // The client ends the test; a server only awaits the sender's surplus.
    let receive = if side == EndpointRole::Client { exact } else { send };
    ByteLimits { send: Some(send), receive: Some(receive) }
}
