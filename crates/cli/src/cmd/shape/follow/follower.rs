//! When to look at a shaper, when to set it up again, and when to leave that be: decisions alone, without effects.

use std::time::Duration;

use linerate_sys::route_events::RouteEvent;
use linerate_units::{MonotonicTime, display};

/// A burst of events is over when nothing has come for this long.
pub(super) const PAUSE_IN_BURST: Duration = Duration::from_millis(300);

/// A burst that does not end is looked at this long after it began.
pub(super) const LONGEST_BURST: Duration = Duration::from_secs(2);

/// The first pause after setting up again; each further one is twice as long.
pub(super) const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// The longest of these pauses.
pub(super) const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// After the end of a pause and this much quiet, all is as in the beginning.
pub(super) const QUIET: Duration = Duration::from_secs(300);

/// Having set up this often, each time because somebody else had replaced it, is a quarrel.
pub(super) const QUARREL: u32 = 7;

/// How long to wait between two attempts in a quarrel.
pub(super) const PAUSE_IN_QUARREL: Duration = Duration::from_secs(600);

/// The interface, as far as events told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Presence {
    /// It is not there.
    Absent,
    /// It is.
    There {
        /// Its number: another one with the same name has another number.
        index: u32,
        /// Whether it is up and has a carrier.
        is_up: bool,
    },
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Wait for events, for so long; `None`: for as long as it takes.
    Wait(Option<Duration>),
    /// Look whether what stands is as planned.
    Look,
    /// Set it up again.
    Reapply,
}

/// Why what stands may not be as planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    /// The interface has come, or come up.
    Came,
    /// Somebody changed it.
    Replaced,
}

/// Something to tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Saying {
    /// The interface is not there, or not any more.
    Absent,
    /// It has no carrier, or was taken down.
    Down,
    /// It came, and the shaper was set up on it.
    ShapedAnew,
    /// Somebody had changed the queueing, and it was set up again; it had happened so often before, without quiet.
    ShapedAgain(u32),
    /// It was set up, and what then stood was not as planned; the next attempt is after this time.
    NotAsPlanned(Duration),
    /// Looking or setting up failed, with this text; the next attempt is after this time.
    Failed(String, Duration),
    /// Somebody else replaces it again and again.
    Contended,
}

impl Saying {
    /// As a line of a journal. `owner`: who looks after the interface.
    pub(super) fn text(&self, device: &str, owner: Option<&str>) -> String {
        match self {
            Self::Absent => format!("{device} is not there: waiting until it comes"),
            Self::Down => format!("{device} is down or has no carrier: waiting until it is up"),
            Self::ShapedAnew => format!("{device} has come: shaped"),
            Self::ShapedAgain(1) => format!("somebody changed the queueing of {device}: shaped again"),
            Self::ShapedAgain(times) => {
                format!(
                    "somebody changed the queueing of {device}, for the {} time in a row: shaped again",
                    nth(*times)
                )
            }
            Self::NotAsPlanned(pause) => format!(
                "{device} was shaped again, but what stands is not what was planned; next attempt in {}",
                display::duration(*pause)
            ),
            Self::Failed(text, pause) => {
                format!("shaping {device} again: {text}; next attempt in {}", display::duration(*pause))
            }
            Self::Contended => {
                let who = match owner {
                    Some(owner) => format!("{device} belongs to {owner}; have it leave the queueing alone"),
                    None => "no manager of interfaces claims it; look for scripts and services that call tc".to_owned(),
                };
                format!(
                    "somebody replaces the queueing of {device} again and again: {who}. Until then it is shaped again once \
                     in {} at most",
                    display::duration(PAUSE_IN_QUARREL)
                )
            }
        }
    }
}

fn nth(number: u32) -> String {
    let ending = match (number % 10, number % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{number}{ending}")
}

/// A look that is due.
#[derive(Clone, Copy, Debug)]
struct Due {
    /// When its first event came.
    since: MonotonicTime,
    at: MonotonicTime,
}

/// Decides.
#[derive(Debug)]
pub(super) struct Follower {
    device: String,
    others: Vec<String>,
    presence: Presence,
    due: Option<Due>,
    must_reapply: bool,
    cause: Cause,
    /// Nothing is looked at or set up before.
    earliest: MonotonicTime,
    /// The pause after the next attempt.
    pause: Duration,
    /// How often somebody else has replaced it without quiet in between.
    replaced: u32,
    /// The failure that was told last.
    told_failure: Option<String>,
    sayings: Vec<Saying>,
}

impl Follower {
    /// A shaper has just been set up; a look is due at once, as something may have happened since.
    pub(super) fn new(device: &str, others: &[String], presence: Presence, now: MonotonicTime) -> Self {
        let mut follower = Self {
            device: device.to_owned(),
            others: others.to_vec(),
            presence,
            due: Some(Due { since: now, at: now }),
            must_reapply: false,
            cause: Cause::Replaced,
            earliest: now,
            pause: FIRST_PAUSE,
            replaced: 0,
            told_failure: None,
            sayings: Vec::new(),
        };
        match presence {
            Presence::Absent => follower.leave(Saying::Absent),
            Presence::There { is_up: false, .. } => follower.sayings.push(Saying::Down),
            Presence::There { .. } => {}
        }
        follower
    }

    /// What there is to tell since the last call.
    pub(super) fn take_sayings(&mut self) -> Vec<Saying> {
        std::mem::take(&mut self.sayings)
    }

    /// Takes an event in.
    pub(super) fn hear(&mut self, now: MonotonicTime, event: &RouteEvent) {
        let is_ours = |name: &String| *name == self.device;
        match event {
            RouteEvent::Appeared { index, name, is_up } if is_ours(name) => self.come(now, *index, *is_up),
            RouteEvent::Renamed { index, to, .. } if is_ours(to) => self.come(now, *index, true),
            RouteEvent::Gone { index, .. } | RouteEvent::Renamed { index, .. } if self.is_it(*index) => {
                self.presence = Presence::Absent;
                self.leave(Saying::Absent);
            }
            RouteEvent::Up { index, .. } if self.is_it(*index) => {
                self.presence = Presence::There { index: *index, is_up: true };
                // What came while it was down is no part of this burst.
                self.due = None;
                self.expect_look(now);
            }
            RouteEvent::Down { index, .. } if self.is_it(*index) => {
                self.presence = Presence::There { index: *index, is_up: false };
                self.sayings.push(Saying::Down);
            }
            RouteEvent::QueueingChanged { index, .. } if self.is_it(*index) => self.expect_look(now),
            RouteEvent::Lost => self.expect_look(now),
            RouteEvent::QueueingChanged { name: Some(name), .. }
            | RouteEvent::Gone { name, .. }
            | RouteEvent::Down { name, .. }
            | RouteEvent::Renamed { from: name, .. }
                if self.others.contains(name) =>
            {
                self.expect_look(now);
            }
            _ => {}
        }
    }

    fn is_it(&self, number: u32) -> bool {
        matches!(self.presence, Presence::There { index, .. } if index == number)
    }

    fn come(&mut self, now: MonotonicTime, index: u32, is_up: bool) {
        self.presence = Presence::There { index, is_up };
        self.cause = Cause::Came;
        // A new interface has nothing to do with a quarrel about the old one.
        self.earliest = self.earliest.min(now + LONGEST_PAUSE);
        self.expect_look(now);
    }

    fn leave(&mut self, saying: Saying) {
        self.due = None;
        self.must_reapply = false;
        self.told_failure = None;
        self.sayings.push(saying);
    }

    fn expect_look(&mut self, now: MonotonicTime) {
        if self.presence == Presence::Absent {
            return;
        }
        let since = self.due.map_or(now, |due| due.since);
        self.due = Some(Due { since, at: (now + PAUSE_IN_BURST).min(since + LONGEST_BURST) });
    }

    /// What to do now. Events that come from here on are for the look after the one that this may ask for.
    pub(super) fn next(&mut self, now: MonotonicTime) -> Step {
        let Presence::There { is_up: true, .. } = self.presence else { return Step::Wait(None) };
        if self.must_reapply && now >= self.earliest {
            return Step::Reapply;
        }
        let at = match self.due {
            _ if self.must_reapply => self.earliest,
            Some(due) => due.at.max(self.earliest),
            None => return Step::Wait(None),
        };
        if now < at {
            return Step::Wait(Some(at - now));
        }
        self.due = None;
        Step::Look
    }

    /// What a look has found; or why it has found nothing.
    pub(super) fn looked(&mut self, now: MonotonicTime, found: Result<bool, String>) {
        if found != Ok(true) && now >= self.earliest + QUIET {
            self.pause = FIRST_PAUSE;
            self.replaced = 0;
        }
        match found {
            Ok(true) => {
                self.cause = Cause::Replaced;
                self.told_failure = None;
            }
            Ok(false) => self.must_reapply = true,
            Err(text) => self.fail(now, &text),
        }
    }

    /// What came of setting it up again.
    pub(super) fn reapplied(&mut self, now: MonotonicTime, done: Result<bool, String>) {
        self.must_reapply = false;
        match done {
            Ok(true) => {
                self.told_failure = None;
                self.count();
                let _ = self.wait_longer(now);
            }
            Ok(false) => {
                let pause = self.wait_longer(now);
                self.look_at(self.earliest, now);
                self.tell_failure(Saying::NotAsPlanned(pause), "not as planned");
            }
            Err(text) => self.fail(now, &text),
        }
    }

    fn count(&mut self) {
        if self.cause == Cause::Came {
            self.sayings.push(Saying::ShapedAnew);
        } else {
            self.replaced = self.replaced.saturating_add(1);
            self.sayings.push(Saying::ShapedAgain(self.replaced));
        }
        if self.replaced == QUARREL && self.cause == Cause::Replaced {
            self.sayings.push(Saying::Contended);
        }
        self.cause = Cause::Replaced;
    }

    fn fail(&mut self, now: MonotonicTime, text: &str) {
        // It went away under our hands: that is told already, and it is looked at when it comes back.
        if self.presence == Presence::Absent {
            return;
        }
        let pause = self.wait_longer(now);
        self.look_at(self.earliest, now);
        self.tell_failure(Saying::Failed(text.to_owned(), pause), text);
    }

    /// The same failure again and again is told once.
    fn tell_failure(&mut self, saying: Saying, text: &str) {
        if self.told_failure.as_deref() != Some(text) {
            self.told_failure = Some(text.to_owned());
            self.sayings.push(saying);
        }
    }

    fn look_at(&mut self, at: MonotonicTime, now: MonotonicTime) {
        self.due = Some(Due { since: now, at });
    }

    fn wait_longer(&mut self, now: MonotonicTime) -> Duration {
        let pause = if self.replaced >= QUARREL { PAUSE_IN_QUARREL } else { self.pause };
        self.earliest = now + pause;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        pause
    }
}

#[cfg(test)]
mod tests;
