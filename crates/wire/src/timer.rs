//! Time limits of the control connection.

use core::time::Duration;

use linerate_units::MonotonicTime;

/// Time limits for awaited messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlDeadlines {
    /// Limit for the next byte of a message, and for its first one (iperf3 `nread_read_timeout`: 10 s).
    pub message_idle: Duration,
    /// Limit for a whole message (iperf3 `nread_overall_timeout`: 30 s).
    pub message_total: Duration,
    /// Limit for the next state byte where the peer has nothing left to wait for. iperf3 waits without a limit.
    pub reply: Duration,
    /// Limit for each state byte for which a server may let its clients queue: 09, 0A and 01. Every iperf3 client waits
    /// without a limit.
    pub turn: Duration,
}

impl Default for ControlDeadlines {
    /// iperf3's 10 s and 30 s, a minute for state bytes, which queue behind the test's own data, and ten for a turn.
    fn default() -> Self {
        Self {
            message_idle: Duration::from_secs(10),
            message_total: Duration::from_secs(30),
            reply: Duration::from_secs(60),
            turn: Duration::from_secs(600),
        }
    }
}

/// Timer of one wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitTimer {
    idle: Duration,
    last_byte: MonotonicTime,
    end: MonotonicTime,
}

impl WaitTimer {
    /// Timer for a message.
    pub(crate) fn message(now: MonotonicTime, deadlines: &ControlDeadlines) -> Self {
        Self { idle: deadlines.message_idle, last_byte: now, end: now + deadlines.message_total }
    }

    /// Timer for one state byte.
    pub(crate) fn reply(now: MonotonicTime, deadlines: &ControlDeadlines) -> Self {
        Self { idle: deadlines.reply, last_byte: now, end: now + deadlines.reply }
    }

    /// Timer for a state byte for which clients may queue.
    pub(crate) fn turn(now: MonotonicTime, deadlines: &ControlDeadlines) -> Self {
        Self { idle: deadlines.turn, last_byte: now, end: now + deadlines.turn }
    }

    /// Restarts the idle limit when bytes are received.
    pub(crate) fn progress(&mut self, now: MonotonicTime) {
        self.last_byte = now;
    }

    pub(crate) fn deadline(&self) -> MonotonicTime {
        (self.last_byte + self.idle).min(self.end)
    }

    pub(crate) fn expired(&self, now: MonotonicTime) -> bool {
        now >= self.deadline()
    }
}
