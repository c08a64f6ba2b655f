//! `linerate fleet agent`: runs the tests that one address starts, at their times.

use std::thread;
use std::time::Duration;

use linerate_fleet::{FleetDescription, SessionStart, TestWeight, Timetable, session_command};
use linerate_sys::clock::{monotonic_now, realtime_now};
use linerate_sys::signals::InterruptSignals;
use linerate_units::{MonotonicTime, WallTime, display};

use super::{AgentArguments, plan, text};
use crate::cmd::measurement::interrupts;
use crate::console;
use crate::exit::ExitStatus;
use crate::export::{Exporter, ProbeHost};
use crate::planned::{PlannedTest, PlannedWait, ResultKeeper, TestProgram, WaitEnding};
use crate::recorder;

/// Time that a light test may take; it has no slot.
const LIGHT_LIMIT: Duration = Duration::from_secs(60);

/// Longest sleep of which each missed test is recorded; of a longer one it is the first.
const MAX_RECORDED_SLEEP: Duration = Duration::from_secs(600);

/// Agent of one address.
struct FleetAgent<'a> {
    description: &'a FleetDescription,
    program: TestProgram,
    interrupts: InterruptSignals,
    keeper: ResultKeeper,
    /// Time of the end, with `--for`.
    end: Option<MonotonicTime>,
}

pub(super) fn run(arguments: &AgentArguments) -> ExitStatus {
    let prepared = plan::read(&arguments.file).and_then(|description| {
        plan::check_address(&description, &arguments.address)?;
        let timetable = Timetable::new(&description).map_err(|error| error.to_string())?;
        Ok((description, timetable, arguments.results.open_log()?, TestProgram::new()?))
    });
    let (description, timetable, log, program) = match prepared {
        Ok(prepared) => prepared,
        Err(reason) => {
            console::error(&format!("fleet agent: {reason}"), None);
            return ExitStatus::Unable;
        }
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
    // It ends its threads at signals, for which it needs those to be blocked.
    let exporter = match Exporter::start(&arguments.export, &log, other_hosts(&description, &arguments.address)) {
        Ok(exporter) => exporter,
        Err(reason) => {
            console::error(&format!("fleet agent: {reason}"), None);
            return ExitStatus::Unable;
        }
    };
    let keeper = ResultKeeper::new(log, arguments.results.json);
    let end = arguments.duration.map(|duration| monotonic_now() + duration);
    let (description, timetable) = (&description, &timetable);
    let agent = FleetAgent { description, program, interrupts, keeper, end };
    thread::scope(|scope| {
        scope.spawn(|| agent.perform(LIGHT_LIMIT, |after| timetable.next_light(&arguments.address, after)));
        agent.perform(timetable.clock_guard, |after| timetable.next_exclusive(&arguments.address, after));
    });
    agent.keeper.finish();
    drop(exporter);
    ExitStatus::Success
}

/// Hosts of the description that `/probe` may measure from here.
fn other_hosts(description: &FleetDescription, own: &str) -> Vec<ProbeHost> {
    let others = description.addresses.iter().filter(|(name, _)| *name != own);
    others.map(|(name, entry)| ProbeHost { name: name.clone(), address: entry.address.clone() }).collect()
}

impl<'a> FleetAgent<'a> {
    /// Runs one test after the other until the end.
    fn perform(&self, guard: Duration, next: impl Fn(WallTime) -> Option<SessionStart<'a>>) {
        let wait = PlannedWait { interrupts: &self.interrupts, guard };
        let mut after = realtime_now();
        // End of the test before.
        let mut busy_until = after;
        while let Some(start) = next(after) {
            after = WallTime::from_unix(start.at.since_unix_epoch() + Duration::from_nanos(1));
            match wait.until(start.at, || self.is_over()) {
                WaitEnding::Due => {
                    self.start(&start);
                    busy_until = realtime_now();
                }
                WaitEnding::Missed(late) => {
                    if late > MAX_RECORDED_SLEEP {
                        after = realtime_now();
                    }
                    self.keeper.keep(&planned(&start).skipped(missed(late, start.at < busy_until)));
                }
                WaitEnding::ClockSet => after = realtime_now(),
                WaitEnding::Over => return,
            }
        }
    }

    fn is_over(&self) -> bool {
        self.interrupts.pending().is_some()
            || self.keeper.is_unheard()
            || self.end.is_some_and(|end| monotonic_now() >= end)
    }

    fn start(&self, start: &SessionStart<'_>) {
        let Some(words) = session_command(self.description, start.session) else { return };
        let limit = match start.session.weight {
            TestWeight::Exclusive => start.session.duration,
            TestWeight::Light => LIGHT_LIMIT,
        };
        let ending = self.program.run(&words, limit, self.interrupts);
        if let Some(run) = &ending.run {
            recorder::keep_silently(run);
        }
        self.keeper.keep(&planned(start).ended(ending));
    }
}

/// Reason why a test was not started.
fn missed(late: Duration, was_busy: bool) -> String {
    let cause = if was_busy {
        "the test before it took until then".to_owned()
    } else {
        format!("this host was asleep, or its clock was set: {} late", display::duration(late))
    };
    if late > MAX_RECORDED_SLEEP { format!("{cause}; later tests until now were not started either") } else { cause }
}

fn planned(start: &SessionStart<'_>) -> PlannedTest {
    let session = start.session;
    PlannedTest {
        task: session.task.to_string(),
        test: session.kind.to_string(),
        source: session.starter_address().to_owned(),
        destination: session.other_address().to_owned(),
        at: start.at,
        is_light: session.weight == TestWeight::Light,
    }
}
