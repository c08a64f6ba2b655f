//! Decides when a silent guest is asked, and when it is given up. Without IO: the time is an argument.

use core::time::Duration;

use linerate_units::MonotonicTime;

/// Maximum time for a guest to report its running processes.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// Excess of a wait over the requested time from which this process was stopped, not the guest.
const MIN_STOP_EXCESS: Duration = Duration::from_secs(2);

/// Watches for messages of a guest.
#[derive(Debug)]
pub(super) struct SilenceWatchdog {
    limit: Duration,
    heard: MonotonicTime,
    asked: Option<MonotonicTime>,
    looked: MonotonicTime,
    expected: MonotonicTime,
}

/// Action on a guest's silence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WatchdogAction {
    /// None, but check again after this time.
    Wait(Duration),
    /// Ask which processes run.
    Ask,
    /// Give up: it has been silent for this long, and has not answered.
    GiveUp(Duration),
}

impl SilenceWatchdog {
    /// Starts to watch now.
    pub(super) fn new(limit: Duration, now: MonotonicTime) -> Self {
        Self { limit, heard: now, asked: None, looked: now, expected: now }
    }

    /// Records a message that shows that the guest goes on.
    pub(super) fn record_message(&mut self, now: MonotonicTime) {
        self.heard = now;
        self.asked = None;
    }

    /// Records the answer with the running processes: returns how long the guest had been silent, unless it has gone on
    /// since it was asked.
    pub(super) fn record_answer(&mut self, now: MonotonicTime) -> Option<Duration> {
        self.asked.map(|_| now - self.heard)
    }

    /// Decides on the action now.
    pub(super) fn next_action(&mut self, now: MonotonicTime) -> WatchdogAction {
        // While this process was stopped (Ctrl-Z), it received no messages.
        if now - self.expected > MIN_STOP_EXCESS {
            let missed = now - self.looked;
            self.heard = self.heard + missed;
            self.asked = self.asked.map(|asked| asked + missed);
        }
        self.looked = now;
        let verdict = match self.asked {
            Some(asked) if now - asked >= ANSWER_TIMEOUT => WatchdogAction::GiveUp(now - self.heard),
            Some(asked) => WatchdogAction::Wait(ANSWER_TIMEOUT.saturating_sub(now - asked)),
            None if now - self.heard >= self.limit => WatchdogAction::Ask,
            None => WatchdogAction::Wait(self.limit.saturating_sub(now - self.heard)),
        };
        if verdict == WatchdogAction::Ask {
            self.asked = Some(now);
        }
        self.expected = match verdict {
            WatchdogAction::Wait(time) => now + time,
            _ => now,
        };
        verdict
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(60);

    fn at(seconds: u64) -> MonotonicTime {
        MonotonicTime::from_nanos(seconds * 1_000_000_000)
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_guest_that_sends_messages_is_not_asked() {
        let mut watchdog = SilenceWatchdog::new(LIMIT, at(0));
        for second in 0..1000 {
            assert_eq!(watchdog.next_action(at(second)), WatchdogAction::Wait(LIMIT));
            watchdog.record_message(at(second + 1));
        }
    }

    #[test]
    fn silence_leads_to_a_question_and_then_to_the_end() {
        let mut watchdog = SilenceWatchdog::new(LIMIT, at(0));
        assert_eq!(watchdog.next_action(at(0)), WatchdogAction::Wait(LIMIT));
        assert_eq!(watchdog.next_action(at(60)), WatchdogAction::Ask);
        assert_eq!(watchdog.next_action(at(60)), WatchdogAction::Wait(seconds(5)));
        assert_eq!(watchdog.next_action(at(65)), WatchdogAction::GiveUp(seconds(65)));
    }

    #[test]
    fn an_answer_counts_unless_the_guest_has_gone_on() {
        let mut watchdog = SilenceWatchdog::new(LIMIT, at(0));
        assert_eq!(watchdog.record_answer(at(1)), None, "there was no question");
        watchdog.next_action(at(0));
        assert_eq!(watchdog.next_action(at(60)), WatchdogAction::Ask);
        assert_eq!(watchdog.record_answer(at(61)), Some(seconds(61)));
        watchdog.record_message(at(62));
        assert_eq!(watchdog.record_answer(at(62)), None);
        assert_eq!(watchdog.next_action(at(62)), WatchdogAction::Wait(LIMIT));
    }

    #[test]
    fn time_in_which_this_process_was_stopped_does_not_count() {
        let mut watchdog = SilenceWatchdog::new(LIMIT, at(0));
        assert_eq!(watchdog.next_action(at(0)), WatchdogAction::Wait(LIMIT));
        watchdog.record_message(at(10));
        assert_eq!(watchdog.next_action(at(10)), WatchdogAction::Wait(LIMIT));
        // Stopped at 20, continued at 1020: the wait of 60 s took 1010 s.
        assert_eq!(watchdog.next_action(at(1020)), WatchdogAction::Wait(LIMIT));
        assert_eq!(watchdog.next_action(at(1080)), WatchdogAction::Ask);
    }
}
