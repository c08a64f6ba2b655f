//! Decisions of `--follow`: when to check a shaper and when to set it up again. No I/O.

use std::time::Duration;

use linerate_sys::route_events::RouteEvent;
use linerate_units::{MonotonicTime, display};

/// Quiet time after which a burst of events is over.
pub(super) const PAUSE_IN_BURST: Duration = Duration::from_millis(300);

/// Maximum time from the first event of a burst to its check.
pub(super) const MAX_BURST: Duration = Duration::from_secs(2);

/// First pause after a setup; each further one is twice as long.
pub(super) const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// Maximum of these pauses.
pub(super) const MAX_PAUSE: Duration = Duration::from_secs(60);

/// Quiet time after a pause that resets the back-off.
pub(super) const QUIET_TIME: Duration = Duration::from_secs(300);

/// Consecutive replacements by another program that count as contention.
pub(super) const CONTENTION_THRESHOLD: u32 = 7;

/// Pause between two attempts under contention.
pub(super) const CONTENTION_PAUSE: Duration = Duration::from_secs(600);

/// State of the interface according to events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InterfacePresence {
    /// No such interface.
    Absent,
    /// The interface exists.
    There {
        /// Interface index: a new interface of the same name has a new index.
        index: u32,
        /// True when it is up and has a carrier.
        is_up: bool,
    },
}

/// Next action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FollowAction {
    /// Wait for events, at most this long; `None`: without limit.
    Wait(Option<Duration>),
    /// Check the active shaper against the plan.
    Look,
    /// Set the shaper up again.
    Reapply,
}

/// Reason for a possible mismatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MismatchCause {
    /// The interface has appeared or come up.
    Came,
    /// Another program changed the queueing.
    Replaced,
}

/// Event for the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FollowEvent {
    /// The interface does not exist.
    Absent,
    /// The interface has no carrier or is down.
    Down,
    /// The interface appeared and was shaped.
    ShapedAnew,
    /// Another program changed the queueing and the shaper was set up again; the number of times in a row.
    ShapedAgain(u32),
    /// The shaper was set up and does not match the plan; time until the next attempt.
    NotAsPlanned(Duration),
    /// Check or setup failed: error text and time until the next attempt.
    Failed(String, Duration),
    /// Another program keeps replacing the shaper.
    Contended,
}

impl FollowEvent {
    /// Journal line. `owner`: manager of the interface.
    pub(super) fn text(&self, device: &str, owner: Option<&str>) -> String {
        match self {
            Self::Absent => format!("{device} does not exist: waiting for it"),
            Self::Down => format!("{device} is down or has no carrier: waiting for it"),
            Self::ShapedAnew => format!("{device} has appeared: shaped"),
            Self::ShapedAgain(1) => format!("another program changed the queueing of {device}: shaped again"),
            Self::ShapedAgain(times) => {
                format!(
                    "another program changed the queueing of {device} for the {} time in a row: shaped again",
                    ordinal(*times)
                )
            }
            Self::NotAsPlanned(pause) => format!(
                "{device} was shaped again, but does not match the plan; next attempt in {}",
                display::duration(*pause)
            ),
            Self::Failed(text, pause) => {
                format!("shaping {device} again: {text}; next attempt in {}", display::duration(*pause))
            }
            Self::Contended => {
                let who = match owner {
                    Some(owner) => format!("{device} is managed by {owner}; configure it to leave the queueing alone"),
                    None => "it has no known manager; look for scripts and services that call tc".to_owned(),
                };
                format!(
                    "another program keeps replacing the queueing of {device}: {who}. Until then it is shaped again at \
                     most once per {}",
                    display::duration(CONTENTION_PAUSE)
                )
            }
        }
    }
}

fn ordinal(number: u32) -> String {
    let ending = match (number % 10, number % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{number}{ending}")
}

/// A pending check.
#[derive(Clone, Copy, Debug)]
struct PendingCheck {
    /// Time of its first event.
    since: MonotonicTime,
    at: MonotonicTime,
}

/// Decides when to check and reapply a shaper.
#[derive(Debug)]
pub(super) struct ShaperFollower {
    device: String,
    others: Vec<String>,
    presence: InterfacePresence,
    due: Option<PendingCheck>,
    must_reapply: bool,
    cause: MismatchCause,
    /// Earliest time of the next check or setup.
    earliest: MonotonicTime,
    /// Pause after the next attempt.
    pause: Duration,
    /// Consecutive replacements by other programs.
    replaced: u32,
    /// Last reported failure.
    told_failure: Option<String>,
    sayings: Vec<FollowEvent>,
}

impl ShaperFollower {
    /// Starts after a setup; a check is due at once, as events may have been missed.
    pub(super) fn new(device: &str, others: &[String], presence: InterfacePresence, now: MonotonicTime) -> Self {
        let mut follower = Self {
            device: device.to_owned(),
            others: others.to_vec(),
            presence,
            due: Some(PendingCheck { since: now, at: now }),
            must_reapply: false,
            cause: MismatchCause::Replaced,
            earliest: now,
            pause: FIRST_PAUSE,
            replaced: 0,
            told_failure: None,
            sayings: Vec::new(),
        };
        match presence {
            InterfacePresence::Absent => follower.handle_absence(FollowEvent::Absent),
            InterfacePresence::There { is_up: false, .. } => follower.sayings.push(FollowEvent::Down),
            InterfacePresence::There { .. } => {}
        }
        follower
    }

    /// Takes the journal events since the last call.
    pub(super) fn take_events(&mut self) -> Vec<FollowEvent> {
        std::mem::take(&mut self.sayings)
    }

    /// Handles a network event.
    pub(super) fn handle_event(&mut self, now: MonotonicTime, event: &RouteEvent) {
        let is_ours = |name: &String| *name == self.device;
        match event {
            RouteEvent::Appeared { index, name, is_up } if is_ours(name) => self.handle_appearance(now, *index, *is_up),
            RouteEvent::Renamed { index, to, .. } if is_ours(to) => self.handle_appearance(now, *index, true),
            RouteEvent::Gone { index, .. } | RouteEvent::Renamed { index, .. }
                if self.is_followed_interface(*index) =>
            {
                self.presence = InterfacePresence::Absent;
                self.handle_absence(FollowEvent::Absent);
            }
            RouteEvent::Up { index, .. } if self.is_followed_interface(*index) => {
                self.presence = InterfacePresence::There { index: *index, is_up: true };
                // Events while it was down are not part of this burst.
                self.due = None;
                self.schedule_check(now);
            }
            RouteEvent::Down { index, .. } if self.is_followed_interface(*index) => {
                self.presence = InterfacePresence::There { index: *index, is_up: false };
                self.sayings.push(FollowEvent::Down);
            }
            RouteEvent::QueueingChanged { index, .. } if self.is_followed_interface(*index) => self.schedule_check(now),
            RouteEvent::Lost => self.schedule_check(now),
            RouteEvent::QueueingChanged { name: Some(name), .. }
            | RouteEvent::Gone { name, .. }
            | RouteEvent::Down { name, .. }
            | RouteEvent::Renamed { from: name, .. }
                if self.others.contains(name) =>
            {
                self.schedule_check(now);
            }
            _ => {}
        }
    }

    fn is_followed_interface(&self, number: u32) -> bool {
        matches!(self.presence, InterfacePresence::There { index, .. } if index == number)
    }

    fn handle_appearance(&mut self, now: MonotonicTime, index: u32, is_up: bool) {
        self.presence = InterfacePresence::There { index, is_up };
        self.cause = MismatchCause::Came;
        // Contention on the old interface does not count for a new one.
        self.earliest = self.earliest.min(now + MAX_PAUSE);
        self.schedule_check(now);
    }

    fn handle_absence(&mut self, saying: FollowEvent) {
        self.due = None;
        self.must_reapply = false;
        self.told_failure = None;
        self.sayings.push(saying);
    }

    fn schedule_check(&mut self, now: MonotonicTime) {
        if self.presence == InterfacePresence::Absent {
            return;
        }
        let since = self.due.map_or(now, |due| due.since);
        self.due = Some(PendingCheck { since, at: (now + PAUSE_IN_BURST).min(since + MAX_BURST) });
    }

    /// Returns the next action. Events from now on belong to the check after this one.
    pub(super) fn next(&mut self, now: MonotonicTime) -> FollowAction {
        let InterfacePresence::There { is_up: true, .. } = self.presence else { return FollowAction::Wait(None) };
        if self.must_reapply && now >= self.earliest {
            return FollowAction::Reapply;
        }
        let at = match self.due {
            _ if self.must_reapply => self.earliest,
            Some(due) => due.at.max(self.earliest),
            None => return FollowAction::Wait(None),
        };
        if now < at {
            return FollowAction::Wait(Some(at - now));
        }
        self.due = None;
        FollowAction::Look
    }

    /// Handles the result of a check, or its error.
    pub(super) fn handle_check(&mut self, now: MonotonicTime, found: Result<bool, String>) {
        if found != Ok(true) && now >= self.earliest + QUIET_TIME {
            self.pause = FIRST_PAUSE;
            self.replaced = 0;
        }
        match found {
            Ok(true) => {
                self.cause = MismatchCause::Replaced;
                self.told_failure = None;
            }
            Ok(false) => self.must_reapply = true,
            Err(text) => self.handle_failure(now, &text),
        }
    }

    /// Handles the result of a setup.
    pub(super) fn handle_setup(&mut self, now: MonotonicTime, done: Result<bool, String>) {
        self.must_reapply = false;
        match done {
            Ok(true) => {
                self.told_failure = None;
                self.count_replacement();
                let _ = self.increase_pause(now);
            }
            Ok(false) => {
                let pause = self.increase_pause(now);
                self.schedule_check_at(self.earliest, now);
                self.report_failure(FollowEvent::NotAsPlanned(pause), "not as planned");
            }
            Err(text) => self.handle_failure(now, &text),
        }
    }

    fn count_replacement(&mut self) {
        if self.cause == MismatchCause::Came {
            self.sayings.push(FollowEvent::ShapedAnew);
        } else {
            self.replaced = self.replaced.saturating_add(1);
            self.sayings.push(FollowEvent::ShapedAgain(self.replaced));
        }
        if self.replaced == CONTENTION_THRESHOLD && self.cause == MismatchCause::Replaced {
            self.sayings.push(FollowEvent::Contended);
        }
        self.cause = MismatchCause::Replaced;
    }

    fn handle_failure(&mut self, now: MonotonicTime, text: &str) {
        // It disappeared meanwhile: already reported, and checked when it reappears.
        if self.presence == InterfacePresence::Absent {
            return;
        }
        let pause = self.increase_pause(now);
        self.schedule_check_at(self.earliest, now);
        self.report_failure(FollowEvent::Failed(text.to_owned(), pause), text);
    }

    /// Reports a repeated failure once.
    fn report_failure(&mut self, saying: FollowEvent, text: &str) {
        if self.told_failure.as_deref() != Some(text) {
            self.told_failure = Some(text.to_owned());
            self.sayings.push(saying);
        }
    }

    fn schedule_check_at(&mut self, at: MonotonicTime, now: MonotonicTime) {
        self.due = Some(PendingCheck { since: now, at });
    }

    fn increase_pause(&mut self, now: MonotonicTime) -> Duration {
        let pause = if self.replaced >= CONTENTION_THRESHOLD { CONTENTION_PAUSE } else { self.pause };
        self.earliest = now + pause;
        self.pause = (self.pause * 2).min(MAX_PAUSE);
        pause
    }
}

#[cfg(test)]
mod tests;
