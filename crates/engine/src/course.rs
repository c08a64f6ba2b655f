//! The course of a measurement that has several parts: letting time pass, ending early, and what is remarked on the way.

use core::time::Duration;

use linerate_model::schema::path::Unknown;
use linerate_model::schema::throughput::{Outcome, Termination};
use linerate_sys::clock;
use linerate_sys::poll::{self, Interest};
use linerate_sys::signals::{Interrupts, Signal};
use linerate_units::MonotonicTime;

use crate::probe::{Answering, ProbeError, ProbeSession, Target};

/// Why a measurement goes no further.
#[derive(Debug)]
pub(crate) enum Halt {
    /// The user has had enough.
    Interrupted,
    /// The rest would make no sense.
    Failed(ProbeError),
}

impl From<ProbeError> for Halt {
    fn from(error: ProbeError) -> Self {
        match error {
            ProbeError::Interrupted => Self::Interrupted,
            error => Self::Failed(error),
        }
    }
}

/// Who answers at the far end.
pub(crate) enum FarEnd {
    /// A server with probe sessions.
    Probes(Box<ProbeSession>),
    /// A server of iperf3's tests.
    Tests {
        /// It is a linerate all the same, an old one.
        outdated: bool,
    },
    /// Neither; why.
    Neither(ProbeError),
}

/// What a reader is told of a far end that is outdated.
pub(crate) const OUTDATED: &str = "The far end is a linerate from before probe sessions: a newer one there tells more.";

/// Asks who is there.
pub(crate) fn far_end(target: &Target, stop: Option<Interrupts>) -> Result<FarEnd, Halt> {
    match ProbeSession::open(target, stop) {
        Ok(session) => Ok(FarEnd::Probes(Box::new(session))),
        Err(ProbeError::NoProbeService(Answering::Iperf3)) => Ok(FarEnd::Tests { outdated: false }),
        Err(ProbeError::NoProbeService(Answering::WithoutProbes)) => Ok(FarEnd::Tests { outdated: true }),
        Err(
            error
            @ (ProbeError::NoProbeService(Answering::Something | Answering::Silence) | ProbeError::Unreachable(_)),
        ) => Ok(FarEnd::Neither(error)),
        Err(error) => Err(error.into()),
    }
}

/// Whether to go on.
pub(crate) fn check(stop: Option<Interrupts>) -> Result<(), Halt> {
    if stop.and_then(|stop| stop.pending()).is_some() { Err(Halt::Interrupted) } else { Ok(()) }
}

/// Lets time pass, unless the user has had enough.
pub(crate) fn wait(stop: Option<Interrupts>, time: Duration) -> Result<(), Halt> {
    let Some(signals) = stop else {
        clock::sleep_until(clock::monotonic_now() + time);
        return Ok(());
    };
    let _ = poll::wait_for(&signals, Interest::READ, Some(time));
    check(stop)
}

/// Lets time pass until then, unless the user has had enough.
pub(crate) fn wait_until(stop: Option<Interrupts>, time: MonotonicTime) -> Result<(), Halt> {
    let left = time.since(clock::monotonic_now());
    if left.is_zero() { check(stop) } else { wait(stop, left) }
}

/// How a measurement is going to end unless something happens.
pub(crate) const fn complete() -> Termination {
    Termination { outcome: Outcome::Complete, signal: None, message: None }
}

/// How it ended, as its document says it; and the error, which an interrupted measurement has not.
pub(crate) fn ending(result: Result<(), Halt>, stop: Option<Interrupts>) -> (Termination, Option<ProbeError>) {
    match result {
        Ok(()) => (complete(), None),
        Err(Halt::Interrupted) => {
            let signal = stop.and_then(|stop| stop.pending()).map(Signal::describe);
            (Termination { outcome: Outcome::Interrupted, signal, message: None }, None)
        }
        Err(Halt::Failed(error)) => {
            let message = Some(error.to_string());
            (Termination { outcome: Outcome::Failed, signal: None, message }, Some(error))
        }
    }
}

/// Adds what a reader should know; whether it had not been said before.
pub(crate) fn add_note(notes: &mut Vec<String>, text: &str) -> bool {
    let is_new = notes.iter().all(|note| note != text);
    if is_new {
        notes.push(text.to_owned());
    }
    is_new
}

/// Adds why a key stays `null`; the first reason holds.
pub(crate) fn add_unknown(all: &mut Vec<Unknown>, key: &str, reason: impl Into<String>) {
    if all.iter().all(|unknown| unknown.key != key) {
        all.push(Unknown { key: key.to_owned(), reason: reason.into() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remarks_are_made_once() {
        let (mut notes, mut unknown) = (Vec::new(), Vec::new());
        assert!(add_note(&mut notes, "one") && !add_note(&mut notes, "one") && add_note(&mut notes, "two"));
        add_unknown(&mut unknown, "up.mtu", "first");
        add_unknown(&mut unknown, "up.mtu", "second");
        assert_eq!((notes.len(), unknown.len(), unknown[0].reason.as_str()), (2, 1, "first"));
    }

    #[test]
    fn each_end_has_its_words() {
        let failed = || Err(Halt::Failed(ProbeError::NotOpened));
        assert_eq!(ending(Ok(()), None), (complete(), None));
        assert_eq!(ending(Err(ProbeError::Interrupted.into()), None).0.outcome, Outcome::Interrupted);
        let (termination, error) = ending(failed(), None);
        assert_eq!(termination.outcome, Outcome::Failed);
        assert_eq!(termination.message, error.map(|error| error.to_string()));
    }
}
