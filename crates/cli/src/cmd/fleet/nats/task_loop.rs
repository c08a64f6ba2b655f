//! Tasks of an agent: tests that someone asked for, in slots that the timetable leaves free.

use std::time::Duration;

use linerate_fleet::{SessionStart, TestSession, TestWeight, Timetable, session_resources};
use linerate_nats::{FleetTask, HeldLocks, NatsError, NatsFleet, ReceivedTask, TaskQueue};
use linerate_sys::clock::realtime_now;
use linerate_sys::poll::{PollInterest, wait_for};
use linerate_units::WallTime;

use super::run_task::no_slot;
use crate::cmd::fleet::agent::{FleetAgent, planned, time_limit};
use crate::console;
use crate::planned::{PlannedTest, PlannedWait, WaitEnding};

/// Time before a start in which the locks are taken.
const LOCK_TIME: Duration = Duration::from_secs(3);

/// Wait for a task, and between attempts.
const WAIT: Duration = Duration::from_secs(1);

/// Delay of a wait that need not be in time.
const ANY_DELAY: Duration = Duration::from_secs(366 * 24 * 3600);

/// Tasks of an agent with one description.
pub(super) struct TaskLoop<'a> {
    pub(super) agent: &'a FleetAgent<'a>,
    pub(super) fleet: &'a NatsFleet,
    /// Random number of this process.
    pub(super) instance: &'a str,
}

/// End of an attempt to run a task.
enum TaskAttempt {
    /// It ran, or its reason why not is recorded.
    Ended,
    /// Another test has a host or an uplink, or the time is over: the next slot.
    NextSlot,
    /// The agent ends.
    Over,
}

/// Session of a task; its addresses are in either order.
pub(super) fn find_session<'a>(timetable: &'a Timetable, task: &FleetTask) -> Option<&'a TestSession> {
    let mut pair = task.addresses.each_ref().map(String::as_str);
    pair.sort_unstable();
    let planned = timetable.sessions.iter().map(|planned| &planned.session);
    let mut sessions = planned.chain(&timetable.light);
    sessions.find(|session| *session.task == *task.task && session.addresses.each_ref().map(|name| &**name) == pair)
}

impl TaskLoop<'_> {
    /// Runs tasks until the end.
    pub(super) fn run(&self) {
        let (mut queue, mut reported) = (None, String::new());
        while !self.agent.is_over() {
            match self.next(&mut queue) {
                Ok(Some(task)) => self.perform(task),
                Ok(None) => {}
                Err(error) => {
                    // A lost connection is reported by the membership, and an error that stays once.
                    let text = error.to_string();
                    if !error.is_transient() && text != reported {
                        console::note(&format!("warning: {text}"));
                        reported = text;
                    }
                    self.pause(WAIT);
                }
            }
        }
    }

    fn next(&self, queue: &mut Option<TaskQueue>) -> Result<Option<ReceivedTask>, NatsError> {
        if queue.is_none() {
            *queue = Some(self.fleet.tasks(self.agent.address)?);
        }
        queue.as_ref().map_or(Ok(None), |queue| queue.next(WAIT))
    }

    fn pause(&self, time: Duration) {
        drop(wait_for(&self.agent.tools.interrupts, PollInterest::READ, Some(time)));
    }

    /// Runs a task and removes it from the queue; gives it back when the agent ends.
    fn perform(&self, received: ReceivedTask) {
        let session = find_session(self.agent.timetable, &received.task)
            .filter(|session| session.starter_address() == self.agent.address);
        let is_ended = if let Some(session) = session {
            self.run_session(session, &received.task)
        } else {
            self.refuse(&received.task);
            true
        };
        let done = if is_ended { received.finish() } else { received.give_back() };
        if let Err(error) = done {
            console::note(&format!("warning: {error}; it may run once more"));
        }
    }

    /// Records that the description has no such test.
    fn refuse(&self, task: &FleetTask) {
        let [first, second] = &task.addresses;
        let other = if *first == *self.agent.address { second } else { first };
        let test = self.agent.description.tasks.get(&task.task).map(|entry| entry.test.clone());
        let record = PlannedTest {
            task: task.task.clone(),
            test: test.map_or_else(|| "unknown".into(), Into::into),
            source: self.agent.address.to_owned(),
            destination: other.clone(),
            at: realtime_now(),
            is_light: true,
        };
        let reason = "the description has no such test that starts here".to_owned();
        self.agent.tools.keeper.keep(&record.skipped(reason));
    }

    /// True when it ended, false when the agent ends.
    fn run_session(&self, session: &TestSession, task: &FleetTask) -> bool {
        loop {
            match self.attempt(session, task) {
                TaskAttempt::Ended => return true,
                TaskAttempt::Over => return false,
                TaskAttempt::NextSlot => self.pause(WAIT),
            }
        }
    }

    fn attempt(&self, session: &TestSession, task: &FleetTask) -> TaskAttempt {
        let agent = self.agent;
        let now = realtime_now();
        if session.weight == TestWeight::Light || agent.state.obstacle().is_some() {
            return self.start(session, now);
        }
        let earliest = WallTime::from_unix(now.since_unix_epoch() + WAIT);
        let Some(at) = agent.timetable.next_free(agent.description, session, earliest) else {
            let start = SessionStart { at: now, session };
            agent.tools.keeper.keep(&planned(&start).skipped(no_slot(session)));
            return TaskAttempt::Ended;
        };
        let lock_time = WallTime::from_unix(at.since_unix_epoch().saturating_sub(LOCK_TIME));
        if let Some(other) = self.wait(lock_time, ANY_DELAY) {
            return other;
        }
        let locks = match self.lock(session, task, at) {
            Ok(Some(locks)) => locks,
            Ok(None) => return TaskAttempt::NextSlot,
            Err(error) => {
                console::note(&format!("warning: {error}; the task waits"));
                return TaskAttempt::NextSlot;
            }
        };
        let attempt = self.wait(at, agent.timetable.clock_guard).unwrap_or_else(|| self.start(session, at));
        if let Err(error) = locks.release() {
            console::note(&format!("warning: {error}; the lock ends by itself"));
        }
        attempt
    }

    /// Starts the test; a description that changes meanwhile lets it end, a signal does not.
    fn start(&self, session: &TestSession, at: WallTime) -> TaskAttempt {
        self.agent.start(&SessionStart { at, session });
        if self.agent.tools.interrupts.pending().is_some() { TaskAttempt::Over } else { TaskAttempt::Ended }
    }

    /// Waits; the attempt that ends when it cannot be in time.
    fn wait(&self, at: WallTime, guard: Duration) -> Option<TaskAttempt> {
        let wait = PlannedWait { interrupts: &self.agent.tools.interrupts, guard };
        match wait.until(at, || self.agent.is_over()) {
            WaitEnding::Due => None,
            WaitEnding::Over => Some(TaskAttempt::Over),
            WaitEnding::Missed(_) | WaitEnding::ClockSet => Some(TaskAttempt::NextSlot),
        }
    }

    /// Locks of the hosts and uplinks, for as long as the test may take.
    fn lock(&self, session: &TestSession, task: &FleetTask, at: WallTime) -> Result<Option<HeldLocks>, NatsError> {
        let agent = self.agent;
        let until = at.since_unix_epoch() + time_limit(session) + agent.timetable.clock_guard;
        let ttl = until.saturating_sub(realtime_now().since_unix_epoch());
        let holder = format!("{} {} {}", self.instance, task.id, at.since_unix_epoch().as_nanos());
        self.fleet.lock(&session_resources(agent.description, session), &holder, ttl)
    }
}
