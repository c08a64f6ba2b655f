//! When a silent guest is asked, and when it is given up. Without IO: the time is an argument.

use core::time::Duration;

use linerate_units::MonotonicTime;

/// How long a guest may take to say which processes run in it.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// A wait that took this much longer than asked for: this process was stopped, not the guest.
const STOPPED_FOR: Duration = Duration::from_secs(2);

/// Watches that something is heard from a guest.
#[derive(Debug)]
pub(super) struct Watchdog {
    limit: Duration,
    heard: MonotonicTime,
    asked: Option<MonotonicTime>,
    looked: MonotonicTime,
    expected: MonotonicTime,
}

/// What to do about a guest's silence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nothing, but look again after this time.
    Wait(Duration),
    /// Ask which processes run.
    Ask,
    /// Give up: it has been silent for this long, and has not answered.
    GiveUp(Duration),
}

impl Watchdog {
    /// Begins to listen now.
    pub(super) fn new(limit: Duration, now: MonotonicTime) -> Self {
        Self { limit, heard: now, asked: None, looked: now, expected: now }
    }

    /// The guest has said something that shows that it goes on.
    pub(super) fn hear(&mut self, now: MonotonicTime) {
        self.heard = now;
        self.asked = None;
    }

    /// The guest has answered which processes run: for how long it had been silent, unless it has gone on since it was
    /// asked.
    pub(super) fn hear_answer(&mut self, now: MonotonicTime) -> Option<Duration> {
        self.asked.map(|_| now - self.heard)
    }

    /// What to do now.
    pub(super) fn look(&mut self, now: MonotonicTime) -> Verdict {
        // While this process did not run (Ctrl-Z), the guest could not be heard.
        if now - self.expected > STOPPED_FOR {
            let missed = now - self.looked;
            self.heard = self.heard + missed;
            self.asked = self.asked.map(|asked| asked + missed);
        }
        self.looked = now;
        let verdict = match self.asked {
            Some(asked) if now - asked >= ANSWER_WITHIN => Verdict::GiveUp(now - self.heard),
            Some(asked) => Verdict::Wait(ANSWER_WITHIN.saturating_sub(now - asked)),
            None if now - self.heard >= self.limit => Verdict::Ask,
            None => Verdict::Wait(self.limit.saturating_sub(now - self.heard)),
        };
        if verdict == Verdict::Ask {
            self.asked = Some(now);
        }
        self.expected = match verdict {
            Verdict::Wait(time) => now + time,
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
    fn a_guest_that_talks_is_left_alone() {
        let mut watchdog = Watchdog::new(LIMIT, at(0));
        for second in 0..1000 {
            assert_eq!(watchdog.look(at(second)), Verdict::Wait(LIMIT));
            watchdog.hear(at(second + 1));
        }
    }

    #[test]
    fn silence_leads_to_a_question_and_then_to_the_end() {
        let mut watchdog = Watchdog::new(LIMIT, at(0));
        assert_eq!(watchdog.look(at(0)), Verdict::Wait(LIMIT));
        assert_eq!(watchdog.look(at(60)), Verdict::Ask);
        assert_eq!(watchdog.look(at(60)), Verdict::Wait(seconds(5)));
        assert_eq!(watchdog.look(at(65)), Verdict::GiveUp(seconds(65)));
    }

    #[test]
    fn an_answer_counts_unless_the_guest_has_gone_on() {
        let mut watchdog = Watchdog::new(LIMIT, at(0));
        assert_eq!(watchdog.hear_answer(at(1)), None, "nobody asked");
        watchdog.look(at(0));
        assert_eq!(watchdog.look(at(60)), Verdict::Ask);
        assert_eq!(watchdog.hear_answer(at(61)), Some(seconds(61)));
        watchdog.hear(at(62));
        assert_eq!(watchdog.hear_answer(at(62)), None);
        assert_eq!(watchdog.look(at(62)), Verdict::Wait(LIMIT));
    }

    #[test]
    fn time_in_which_this_process_was_stopped_does_not_count() {
        let mut watchdog = Watchdog::new(LIMIT, at(0));
        assert_eq!(watchdog.look(at(0)), Verdict::Wait(LIMIT));
        watchdog.hear(at(10));
        assert_eq!(watchdog.look(at(10)), Verdict::Wait(LIMIT));
        // Stopped at 20, continued at 1020: the wait of 60 s took 1010 s.
        assert_eq!(watchdog.look(at(1020)), Verdict::Wait(LIMIT));
        assert_eq!(watchdog.look(at(1080)), Verdict::Ask);
    }
}
