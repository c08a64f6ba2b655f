//! Time limits of the control connection.

use core::time::Duration;

use linerate_units::MonotonicTime;

/// How long to wait for a peer that owes something.
///
/// Nothing limits the wait for a server that may be queueing (before 09, 0A and 01): every iperf3 client waits there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadlines {
    /// For the next byte of a message, and for its first one (iperf3 `nread_read_timeout`: 10 s).
    pub message_idle: Duration,
    /// For a whole message (iperf3 `nread_overall_timeout`: 30 s).
    pub message_total: Duration,
    /// For the next state byte where the peer has nothing left to wait for. iperf3 waits without end.
    pub reply: Duration,
}

impl Default for Deadlines {
    /// iperf3's 10 s and 30 s, and a minute for state bytes: they queue behind the test's own data.
    fn default() -> Self {
        Self {
            message_idle: Duration::from_secs(10),
            message_total: Duration::from_secs(30),
            reply: Duration::from_secs(60),
        }
    }
}

/// A running wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timer {
    idle: Duration,
    last_byte: MonotonicTime,
    end: MonotonicTime,
}

impl Timer {
    /// A wait for a message.
    pub(crate) fn message(now: MonotonicTime, deadlines: &Deadlines) -> Self {
        Self { idle: deadlines.message_idle, last_byte: now, end: now + deadlines.message_total }
    }

    /// A wait for one state byte.
    pub(crate) fn reply(now: MonotonicTime, deadlines: &Deadlines) -> Self {
        Self { idle: deadlines.reply, last_byte: now, end: now + deadlines.reply }
    }

    /// Bytes have come.
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
