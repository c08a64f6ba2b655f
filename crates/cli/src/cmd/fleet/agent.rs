//! `linerate fleet agent`: runs the tests that one address starts, at their times.
//!
//! Each test is a linerate of its own, which keeps its run in the history: a test that fails or is late ends alone.

use std::path::Path;
use std::process::ExitStatus as ProgramStatus;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use linerate_fleet::{FleetDescription, SessionStart, TestWeight, Timetable, session_command};
use linerate_history::utc_time::rfc3339;
use linerate_sys::clock::{monotonic_now, realtime_now};
use linerate_sys::command_stream::{CommandEnding, OutputEvent, StreamedCommand, stream};
use linerate_sys::poll::{PollInterest, wait_for};
use linerate_sys::process::own_program;
use linerate_sys::signals::InterruptSignals;
use linerate_units::{MonotonicTime, WallTime, display};
use serde::Serialize;
use serde_json::json;

use super::{AgentArguments, plan, text};
use crate::cmd::measurement::interrupts;
use crate::console;
use crate::exit::ExitStatus;

/// Longest sleep: steps of the clock and a suspended host are noticed after it.
const TICK: Duration = Duration::from_secs(1);

/// Time that a light test may take; it has no slot.
const LIGHT_LIMIT: Duration = Duration::from_secs(60);

/// Variables by which a test finds the history and the state of this process.
const PASSED_VARIABLES: [&str; 4] = ["LINERATE_HISTORY", "LINERATE_STATE", "XDG_DATA_HOME", "XDG_STATE_HOME"];

/// Outcome of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum SessionOutcome {
    Done,
    Failed,
    Skipped,
}

/// Agent of one address.
struct FleetAgent<'a> {
    arguments: &'a AgentArguments,
    description: &'a FleetDescription,
    timetable: &'a Timetable,
    program: String,
    environment: Vec<(&'static str, String)>,
    interrupts: InterruptSignals,
    /// Time of the end, with `--for`.
    end: Option<MonotonicTime>,
    /// Events come from two threads, a line each.
    output: Mutex<()>,
    /// True when the output can be written no longer: the pipe has no reader, or the disk is full.
    is_unheard: AtomicBool,
}

pub(super) fn run(arguments: &AgentArguments) -> ExitStatus {
    let prepared = plan::read(&arguments.file).and_then(|description| {
        plan::check_address(&description, &arguments.address)?;
        Timetable::new(&description).map(|timetable| (description, timetable)).map_err(|error| error.to_string())
    });
    let (description, timetable) = match prepared {
        Ok(prepared) => prepared,
        Err(reason) => return refuse(&reason),
    };
    let program = match own_program() {
        Ok(program) => program.to_string_lossy().into_owned(),
        Err(error) => return refuse(&error.to_string()),
    };
    let interrupts = match interrupts() {
        Ok(interrupts) => interrupts,
        Err(exit) => return exit,
    };
    let now = realtime_now();
    let own = [timetable.next_exclusive(&arguments.address, now), timetable.next_light(&arguments.address, now)];
    if own.iter().all(Option::is_none) {
        console::note(
            "no test starts at this address: the agents of the others start them, and need a `linerate serve` here",
        );
        return ExitStatus::Success;
    }
    for start in own.iter().flatten() {
        console::note(&format!("next: {}", text::start_line(start)));
    }
    let variable = |name: &'static str| std::env::var(name).ok().map(|value| (name, value));
    let environment = PASSED_VARIABLES.into_iter().filter_map(variable).collect();
    let end = arguments.duration.map(|duration| monotonic_now() + duration);
    let (description, timetable, output) = (&description, &timetable, Mutex::default());
    let is_unheard = AtomicBool::new(false);
    let agent =
        FleetAgent { arguments, description, timetable, program, environment, interrupts, end, output, is_unheard };
    thread::scope(|scope| {
        scope.spawn(|| agent.perform(|after| timetable.next_light(&arguments.address, after)));
        agent.perform(|after| timetable.next_exclusive(&arguments.address, after));
    });
    ExitStatus::Success
}

fn refuse(reason: &str) -> ExitStatus {
    console::error(&format!("fleet agent: {reason}"), None);
    ExitStatus::Unable
}

impl<'a> FleetAgent<'a> {
    /// Runs one test after the other until the end.
    fn perform(&self, next: impl Fn(WallTime) -> Option<SessionStart<'a>>) {
        let mut after = realtime_now();
        while let Some(start) = next(after) {
            match self.wait_until(start.at) {
                WaitEnding::Due => self.start(&start),
                WaitEnding::Missed(late) => {
                    let detail =
                        format!("this host was asleep, or its clock was set: {} late", display::duration(late));
                    self.report(&start, SessionOutcome::Skipped, &detail);
                }
                WaitEnding::ClockSet => {
                    after = realtime_now();
                    continue;
                }
                WaitEnding::Over => return,
            }
            after = WallTime::from_unix(start.at.since_unix_epoch() + Duration::from_nanos(1)).max(realtime_now());
        }
    }

    /// Sleeps until a time of the wall clock.
    fn wait_until(&self, at: WallTime) -> WaitEnding {
        let (wall, monotonic) = (realtime_now(), monotonic_now());
        loop {
            if self.is_over() {
                return WaitEnding::Over;
            }
            let expected = wall.since_unix_epoch() + (monotonic_now() - monotonic);
            match left(realtime_now(), at, WallTime::from_unix(expected), self.timetable.clock_guard) {
                // An error would repeat at once: the sleep is what matters.
                Ok(left) => drop(wait_for(&self.interrupts, PollInterest::READ, Some(left.min(TICK)))),
                Err(ending) => return ending,
            }
        }
    }

    fn is_over(&self) -> bool {
        self.interrupts.pending().is_some()
            || self.is_unheard.load(Ordering::Relaxed)
            || self.end.is_some_and(|end| monotonic_now() >= end)
    }

    fn start(&self, start: &SessionStart<'_>) {
        let Some(mut words) = session_command(self.description, start.session) else { return };
        let options = words.iter().position(|word| word == "--").unwrap_or(words.len());
        words.splice(options..options, ["--quiet".to_owned(), "--brief".to_owned()]);
        let arguments: Vec<&str> = words.iter().map(String::as_str).collect();
        let environment: Vec<(&str, &str)> =
            self.environment.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let limit = match start.session.weight {
            TestWeight::Exclusive => start.session.duration,
            TestWeight::Light => LIGHT_LIMIT,
        };
        let command = StreamedCommand {
            program: &self.program,
            arguments: &arguments,
            directory: Path::new("/"),
            environment: &environment,
            interrupts: Some(&self.interrupts),
            deadline: Some(monotonic_now() + limit),
        };
        let mut last = String::new();
        let ending = stream(&command, &mut |event| {
            if let OutputEvent::Line(line) = event {
                line.clone_into(&mut last);
            }
        });
        match ending {
            Ok(CommandEnding::Status(status)) => self.report(start, outcome(status), &last),
            Ok(CommandEnding::TooLate) => {
                let detail = format!("it took longer than {}, and was ended", display::duration(limit));
                self.report(start, SessionOutcome::Failed, &detail);
            }
            Ok(CommandEnding::Interrupted(_)) => self.report(start, SessionOutcome::Failed, "interrupted"),
            Err(error) => self.report(start, SessionOutcome::Failed, &error.to_string()),
        }
    }

    fn report(&self, start: &SessionStart<'_>, outcome: SessionOutcome, detail: &str) {
        let _one_at_a_time = self.output.lock();
        let session = start.session;
        let line = if self.arguments.json {
            let event = json!({
                "at": rfc3339(start.at),
                "task": session.task,
                "addresses": session.addresses,
                "outcome": outcome,
                "detail": detail,
            });
            format!("{event}\n")
        } else {
            let mark = match outcome {
                SessionOutcome::Done => "",
                SessionOutcome::Failed => "failed: ",
                SessionOutcome::Skipped => "skipped: ",
            };
            format!("{}\n  {mark}{detail}\n", text::start_line(start))
        };
        if !console::relay_data(line.as_bytes()) {
            self.is_unheard.store(true, Ordering::Relaxed);
        }
    }
}

/// Time that is left until `at`, or the end of the wait. `expected` is the time that the clock would show had it not been set.
fn left(now: WallTime, at: WallTime, expected: WallTime, guard: Duration) -> Result<Duration, WaitEnding> {
    let [now, at, expected] = [now, at, expected].map(WallTime::since_unix_epoch);
    match (now.checked_sub(at), at.checked_sub(now)) {
        (Some(late), _) if late > guard => Err(WaitEnding::Missed(late)),
        // Set back, it would have this host sleep through what the others do.
        (None, Some(_)) if now + guard < expected => Err(WaitEnding::ClockSet),
        (None, Some(left)) => Ok(left),
        _ => Err(WaitEnding::Due),
    }
}

/// End of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WaitEnding {
    /// It is time.
    Due,
    /// The time is over by this much.
    Missed(Duration),
    /// The clock was set back.
    ClockSet,
    /// The agent ends.
    Over,
}

/// A missed threshold is a result, and so is a part of one.
fn outcome(status: ProgramStatus) -> SessionOutcome {
    if matches!(status.code(), Some(0 | 1)) { SessionOutcome::Done } else { SessionOutcome::Failed }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_that_jump_end_a_wait() {
        let at = |seconds| WallTime::from_unix(Duration::from_secs(seconds));
        let (guard, second) = (Duration::from_secs(2), Duration::from_secs(1));
        for (now, expected, ending) in [
            (90, 90, Ok(10 * second)),
            (100, 100, Err(WaitEnding::Due)),
            (102, 102, Err(WaitEnding::Due)),
            // Asleep, or set forward.
            (103, 91, Err(WaitEnding::Missed(3 * second))),
            (95, 90, Ok(5 * second)),
            // Set back: by no more than clocks differ, and by more.
            (88, 90, Ok(12 * second)),
            (50, 90, Err(WaitEnding::ClockSet)),
        ] {
            assert_eq!(left(at(now), at(100), at(expected), guard), ending, "{now} instead of {expected}");
        }
    }
}
