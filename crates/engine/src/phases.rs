//! Helpers of measurements with several phases: interruptible waits, termination, notes and unknown values.

use core::time::Duration;

use linerate_model::path::UnknownValue;
use linerate_model::report::TestTermination;
use linerate_sys::clock;
use linerate_sys::poll::{self, PollInterest};
use linerate_sys::signals::{InterruptSignals, Signal};
use linerate_units::MonotonicTime;

use crate::probe::{AnsweringService, ProbeError, ProbeSession, ProbeTarget};

/// Reason why a measurement stops.
#[derive(Debug)]
pub(crate) enum AbortReason {
    /// Interrupted by a signal.
    Interrupted,
    /// Failed: the remaining phases would be meaningless.
    Failed(ProbeError),
}

impl From<ProbeError> for AbortReason {
    fn from(error: ProbeError) -> Self {
        match error {
            ProbeError::Interrupted => Self::Interrupted,
            error => Self::Failed(error),
        }
    }
}

/// Kind of server at the far end.
pub(crate) enum FarService {
    /// A server with probe sessions.
    Probes(Box<ProbeSession>),
    /// An iperf3 server.
    Tests {
        /// True for a linerate older than probe sessions.
        outdated: bool,
    },
    /// Neither, with the reason.
    Neither(ProbeError),
}

/// Note about an outdated far end.
pub(crate) const OUTDATED_NOTE: &str =
    "The far end is a linerate without probe sessions: a newer version reports more.";

/// Determines the kind of the far end; without a server it is an error, unless the target allows it.
pub(crate) fn far_end(target: &ProbeTarget, stop: Option<InterruptSignals>) -> Result<FarService, AbortReason> {
    match ProbeSession::open(target, stop) {
        Ok(session) => Ok(FarService::Probes(Box::new(session))),
        Err(ProbeError::NoProbeService(AnsweringService::Iperf3)) => Ok(FarService::Tests { outdated: false }),
        Err(ProbeError::NoProbeService(AnsweringService::WithoutProbes)) => Ok(FarService::Tests { outdated: true }),
        Err(
            error @ (ProbeError::NoProbeService(AnsweringService::Something | AnsweringService::Silence)
            | ProbeError::Unreachable(_)),
        ) if target.without_server => Ok(FarService::Neither(error)),
        Err(error) => Err(error.into()),
    }
}

/// Returns `Err` after a signal.
pub(crate) fn check(stop: Option<InterruptSignals>) -> Result<(), AbortReason> {
    if stop.and_then(|stop| stop.pending()).is_some() { Err(AbortReason::Interrupted) } else { Ok(()) }
}

/// Sleeps for `time`, or until a signal.
pub(crate) fn wait(stop: Option<InterruptSignals>, time: Duration) -> Result<(), AbortReason> {
    let Some(signals) = stop else {
        clock::sleep_until(clock::monotonic_now() + time);
        return Ok(());
    };
    let _ = poll::wait_for(&signals, PollInterest::READ, Some(time));
    check(stop)
}

/// Sleeps until `time`, or until a signal.
pub(crate) fn wait_until(stop: Option<InterruptSignals>, time: MonotonicTime) -> Result<(), AbortReason> {
    let left = time.since(clock::monotonic_now());
    if left.is_zero() { check(stop) } else { wait(stop, left) }
}

/// Sleeps for `time`, or until the user ends the phase; returns true in that case.
pub(crate) fn wait_phase(stop: Option<InterruptSignals>, time: Duration) -> Result<bool, AbortReason> {
    /// Longest time in which a request is not noticed.
    const SLICE: Duration = Duration::from_millis(100);
    let end = clock::monotonic_now() + time;
    loop {
        let left = end.since(clock::monotonic_now());
        if left.is_zero() {
            return check(stop).map(|()| false);
        }
        wait(stop, left.min(SLICE))?;
        if is_phase_ended(stop) {
            return Ok(true);
        }
    }
}

/// True once after the user has asked to end the present phase.
pub(crate) fn is_phase_ended(stop: Option<InterruptSignals>) -> bool {
    stop.is_some_and(|stop| stop.take_phase_end())
}

/// Termination for the document, and the error; an interrupted measurement has none.
pub(crate) fn termination_of(
    result: Result<(), AbortReason>,
    stop: Option<InterruptSignals>,
) -> (TestTermination, Option<ProbeError>) {
    match result {
        Ok(()) => (TestTermination::Complete, None),
        Err(AbortReason::Interrupted) => {
            let signal = stop.and_then(|stop| stop.pending()).map(Signal::describe);
            (TestTermination::Interrupted { signal }, None)
        }
        Err(AbortReason::Failed(error)) => (TestTermination::Failed { message: error.to_string() }, Some(error)),
    }
}

/// Adds a note; returns `false` when it exists already.
pub(crate) fn add_note(notes: &mut Vec<String>, text: &str) -> bool {
    let is_new = notes.iter().all(|note| note != text);
    if is_new {
        notes.push(text.to_owned());
    }
    is_new
}

/// Adds the reason why a key is `null`; the first reason is kept.
pub(crate) fn add_unknown(all: &mut Vec<UnknownValue>, key: &str, reason: impl Into<String>) {
    if all.iter().all(|unknown| unknown.key != key) {
        all.push(UnknownValue { key: key.to_owned(), reason: reason.into() });
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::report::Outcome;

    use super::*;

    #[test]
    fn notes_and_reasons_are_added_once() {
        let (mut notes, mut unknown) = (Vec::new(), Vec::new());
        assert!(add_note(&mut notes, "one") && !add_note(&mut notes, "one") && add_note(&mut notes, "two"));
        add_unknown(&mut unknown, "up.mtu", "first");
        add_unknown(&mut unknown, "up.mtu", "second");
        assert_eq!((notes.len(), unknown.len(), unknown[0].reason.as_str()), (2, 1, "first"));
    }

    #[test]
    fn each_ending_has_its_termination() {
        let failed = || Err(AbortReason::Failed(ProbeError::NotOpened));
        assert_eq!(termination_of(Ok(()), None), (TestTermination::Complete, None));
        assert_eq!(termination_of(Err(ProbeError::Interrupted.into()), None).0.outcome(), Outcome::Interrupted);
        let (termination, error) = termination_of(failed(), None);
        let message = error.expect("an error").to_string();
        assert_eq!(termination, TestTermination::Failed { message });
    }
}
