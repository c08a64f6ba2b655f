//! `linerate fleet agent`: runs the tests that one address starts, at their times.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use linerate_fleet::{FleetDescription, SessionStart, TestSession, TestWeight, Timetable, session_command};
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

/// Parts of an agent that outlive a description.
pub(super) struct AgentTools {
    pub(super) program: TestProgram,
    pub(super) interrupts: InterruptSignals,
    pub(super) keeper: ResultKeeper,
    /// Time of the end, with `--for`.
    end: Option<MonotonicTime>,
    /// Threads that export the results; they end with the agent.
    _exporter: Exporter,
}

/// State that the transport of the description sets while the agent runs.
#[derive(Debug, Default)]
pub(super) struct AgentState {
    /// True when the agent has another description, or another agent has its name.
    pub(super) is_replaced: AtomicBool,
    /// Reason why no test may start.
    pub(super) obstacle: Mutex<Option<String>>,
}

/// Agent of one address with one description.
pub(super) struct FleetAgent<'a> {
    pub(super) address: &'a str,
    pub(super) description: &'a FleetDescription,
    pub(super) timetable: &'a Timetable,
    pub(super) tools: &'a AgentTools,
    pub(super) state: &'a AgentState,
}

pub(super) fn run(arguments: &AgentArguments) -> ExitStatus {
    let Some(file) = &arguments.file else { return refuse("no description is given") };
    let prepared = plan::read(file).and_then(|description| {
        plan::check_address(&description, &arguments.address)?;
        let timetable = Timetable::new(&description).map_err(|error| error.to_string())?;
        Ok((description, timetable))
    });
    let (description, timetable) = match prepared {
        Ok(prepared) => prepared,
        Err(reason) => return refuse(&reason),
    };
    let tools = match AgentTools::new(arguments, other_hosts(&description, &arguments.address)) {
        Ok(tools) => tools,
        Err(exit) => return exit,
    };
    let (description, timetable, state) = (&description, &timetable, &AgentState::default());
    let agent = FleetAgent { address: &arguments.address, description, timetable, tools: &tools, state };
    if !agent.announce() {
        return ExitStatus::Success;
    }
    agent.follow_timetable();
    tools.keeper.finish();
    ExitStatus::Success
}

/// Hosts of the description that `/probe` may measure from here.
pub(super) fn other_hosts(description: &FleetDescription, own: &str) -> Vec<ProbeHost> {
    let others = description.addresses.iter().filter(|(name, _)| *name != own);
    others.map(|(name, entry)| ProbeHost { name: name.clone(), address: entry.address.clone() }).collect()
}

pub(super) fn refuse(reason: &str) -> ExitStatus {
    console::error(&format!("fleet agent: {reason}"), None);
    ExitStatus::Unable
}

impl AgentTools {
    /// Tools of an agent; `/probe` measures `hosts`.
    pub(super) fn new(arguments: &AgentArguments, hosts: Vec<ProbeHost>) -> Result<Self, ExitStatus> {
        let opened = arguments.results.open_log().and_then(|log| Ok((log, TestProgram::new(&arguments.tls)?)));
        let (log, program) = opened.map_err(|reason| refuse(&reason))?;
        // The exporter's threads leave the signals to this one.
        let interrupts = interrupts()?;
        let exporter = Exporter::start(&arguments.export, &log, hosts).map_err(|reason| refuse(&reason))?;
        let keeper = ResultKeeper::new(log, arguments.results.json);
        let end = arguments.duration.map(|duration| monotonic_now() + duration);
        Ok(Self { program, interrupts, keeper, end, _exporter: exporter })
    }

    /// True when the agent ends, whatever its description.
    pub(super) fn is_over(&self) -> bool {
        self.interrupts.pending().is_some()
            || self.keeper.is_unheard()
            || self.end.is_some_and(|end| monotonic_now() >= end)
    }
}

impl AgentState {
    pub(super) fn obstacle(&self) -> Option<String> {
        self.obstacle.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl<'a> FleetAgent<'a> {
    /// Shows the next tests; false when none starts here.
    pub(super) fn announce(&self) -> bool {
        let now = realtime_now();
        let own = [self.timetable.next_exclusive(self.address, now), self.timetable.next_light(self.address, now)];
        if own.iter().all(Option::is_none) {
            console::note(
                "no test starts at this address: the agents of the others start them, and need a `linerate serve` here",
            );
            return false;
        }
        for start in own.iter().flatten() {
            console::note(&format!("next: {}", text::start_line(start)));
        }
        true
    }

    /// Runs the tests of the timetable until the end.
    pub(super) fn follow_timetable(&self) {
        let (timetable, address) = (self.timetable, self.address);
        thread::scope(|scope| {
            scope.spawn(|| self.perform(LIGHT_LIMIT, |after| timetable.next_light(address, after)));
            self.perform(timetable.clock_guard, |after| timetable.next_exclusive(address, after));
        });
    }

    /// Runs one test after the other until the end.
    fn perform(&self, guard: Duration, next: impl Fn(WallTime) -> Option<SessionStart<'a>>) {
        let wait = PlannedWait { interrupts: &self.tools.interrupts, guard };
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
                    self.tools.keeper.keep(&planned(&start).skipped(missed(late, start.at < busy_until)));
                }
                WaitEnding::ClockSet => after = realtime_now(),
                WaitEnding::Over => return,
            }
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.tools.is_over() || self.state.is_replaced.load(Ordering::Relaxed)
    }

    /// Runs a test now, or records why it may not start.
    pub(super) fn start(&self, start: &SessionStart<'_>) {
        if let Some(obstacle) = self.state.obstacle() {
            self.tools.keeper.keep(&planned(start).skipped(obstacle));
            return;
        }
        let Some(words) = session_command(self.description, start.session) else { return };
        let (test, limit) = (planned(start), time_limit(start.session));
        let _mark = self.tools.keeper.mark(&test);
        let ending = self.tools.program.run(&words, limit, self.tools.interrupts);
        if let Some(run) = &ending.run {
            recorder::keep_silently(run);
        }
        self.tools.keeper.keep(&test.ended(ending));
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

/// Longest time of a test.
pub(super) fn time_limit(session: &TestSession) -> Duration {
    match session.weight {
        TestWeight::Exclusive => session.duration,
        TestWeight::Light => LIGHT_LIMIT,
    }
}

pub(super) fn planned(start: &SessionStart<'_>) -> PlannedTest {
    let session = start.session;
    PlannedTest {
        task: session.task.to_string(),
        test: session.kind.clone(),
        source: session.starter_address().to_owned(),
        destination: session.other_address().to_owned(),
        at: start.at,
        is_light: session.weight == TestWeight::Light,
    }
}
