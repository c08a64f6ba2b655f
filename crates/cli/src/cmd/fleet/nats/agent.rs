//! `linerate fleet agent --nats`: the description comes from the servers, results go there, and tasks are taken.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use linerate_fleet::{FleetDescription, Timetable};
use linerate_nats::{ClockOffset, MemberRecord, Membership, NatsError, NatsFleet, NatsSettings};
use linerate_sys::clock::monotonic_now;
use linerate_sys::poll::{PollInterest, wait_for};
use linerate_units::display;

use super::shipping::ResultShipping;
use super::task_loop::TaskLoop;
use super::{published, random_identity};
use crate::cmd::fleet::AgentArguments;
use crate::cmd::fleet::agent::{AgentState, AgentTools, FleetAgent, refuse};
use crate::cmd::fleet::plan::check_address;
use crate::console;
use crate::exit::ExitStatus;

/// Time between attempts to reach servers that do not answer.
const RECONNECT_TIME: Duration = Duration::from_secs(5);

/// Time after which the end of the agent is noticed.
const TICK: Duration = Duration::from_millis(250);

/// Description with its timetable.
type Published = (u64, FleetDescription, Timetable);

/// Agent that is a member of a fleet.
struct FleetMember<'a> {
    address: &'a str,
    fleet: &'a NatsFleet,
    instance: &'a str,
    tools: &'a AgentTools,
    state: AgentState,
    /// Description that replaces the one in effect.
    next: Mutex<Option<Published>>,
    /// Longest clock difference of the description in effect.
    guard: Mutex<Duration>,
    /// True when another agent has the name.
    is_expelled: AtomicBool,
    /// True when the membership ends.
    is_over: AtomicBool,
}

pub(crate) fn run(arguments: &AgentArguments) -> ExitStatus {
    let tools = match AgentTools::new(arguments, Vec::new()) {
        Ok(tools) => tools,
        Err(exit) => return exit,
    };
    match serve(arguments, &tools) {
        Ok(()) => ExitStatus::Success,
        Err(reason) => refuse(&reason),
    }
}

fn serve(arguments: &AgentArguments, tools: &AgentTools) -> Result<(), String> {
    let settings = arguments.nats.settings();
    let Some(fleet) = connect(&settings, tools)? else { return Ok(()) };
    let first = published(&fleet)?;
    check_address(&first.1, &arguments.address)?;
    let log = arguments.results.open_log()?;
    let publisher = fleet.publisher(&arguments.address).map_err(|error| error.to_string())?;
    let shipping = ResultShipping::new(&log, &settings.fleet, publisher)?;
    let record = MemberRecord {
        name: arguments.address.clone(),
        instance: random_identity()?,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        clock: None,
    };
    let membership = fleet.join(record.clone()).map_err(|error| error.to_string())?;
    console::note(&format!("member {} of the fleet {} on {}", record.name, settings.fleet, fleet.servers()));
    let member = FleetMember {
        address: &record.name,
        fleet: &fleet,
        instance: &record.instance,
        tools,
        state: AgentState::default(),
        next: Mutex::new(None),
        guard: Mutex::new(first.2.clock_guard),
        is_expelled: AtomicBool::new(false),
        is_over: AtomicBool::new(false),
    };
    member.run(first, membership, shipping);
    if member.is_expelled.into_inner() { Err("it ended: another agent has its name".to_owned()) } else { Ok(()) }
}

/// Connects; waits for servers that do not answer, until the agent ends.
fn connect(settings: &NatsSettings, tools: &AgentTools) -> Result<Option<NatsFleet>, String> {
    let mut is_reported = false;
    while !tools.is_over() {
        match NatsFleet::connect(settings) {
            Ok(fleet) => return Ok(Some(fleet)),
            Err(error) if error.is_transient() => {
                if !is_reported {
                    console::note(&format!("warning: {error}; trying until a server answers"));
                }
                is_reported = true;
                drop(wait_for(&tools.interrupts, PollInterest::READ, Some(RECONNECT_TIME)));
            }
            Err(error) => return Err(error.to_string()),
        }
    }
    Ok(None)
}

impl FleetMember<'_> {
    /// Runs tests, renews the membership and ships results until the end.
    fn run(&self, first: Published, membership: Membership, mut shipping: ResultShipping) {
        self.check_clock(membership.record().clock);
        let revision = first.0;
        thread::scope(|scope| {
            let renewal = scope.spawn(move || self.keep_membership(membership, revision));
            scope.spawn(move || shipping.run(self.tools.interrupts, || self.is_over.load(Ordering::Relaxed)));
            self.follow(first);
            self.tools.keeper.finish();
            self.is_over.store(true, Ordering::Relaxed);
            if let Ok(Some(membership)) = renewal.join() {
                // Without an answer, the entry ends by itself.
                drop(membership.leave());
            }
        });
    }

    /// Runs the tests of one description after the other.
    fn follow(&self, first: Published) {
        let mut current = first;
        while !self.is_ended() {
            let (_, description, timetable) = &current;
            let agent =
                FleetAgent { address: self.address, description, timetable, tools: self.tools, state: &self.state };
            agent.announce();
            thread::scope(|scope| {
                let tasks = TaskLoop { agent: &agent, fleet: self.fleet, instance: self.instance };
                scope.spawn(move || tasks.run());
                agent.follow_timetable();
            });
            // First: a description that comes between is taken, and only ends the next round early.
            self.state.is_replaced.store(false, Ordering::Relaxed);
            if let Some(next) = self.next.lock().unwrap_or_else(PoisonError::into_inner).take() {
                current = next;
            }
        }
    }

    fn is_ended(&self) -> bool {
        self.tools.is_over() || self.is_expelled.load(Ordering::Relaxed)
    }

    /// Waits; false when the membership ends.
    fn pause(&self, time: Duration) -> bool {
        let end = monotonic_now() + time;
        loop {
            if self.is_over.load(Ordering::Relaxed) || self.is_ended() {
                return false;
            }
            let now = monotonic_now();
            if now >= end {
                return true;
            }
            drop(wait_for(&self.tools.interrupts, PollInterest::READ, Some(TICK.min(end - now))));
        }
    }

    /// Renews the membership, compares the clocks and looks for another description; returns the membership at the end.
    fn keep_membership(&self, mut membership: Membership, mut revision: u64) -> Option<Membership> {
        let mut is_cut_off = false;
        while self.pause(membership.interval()) {
            match membership.renew() {
                Ok(()) if is_cut_off => {
                    console::note("the servers answer again");
                    is_cut_off = false;
                }
                Ok(()) => {}
                Err(error @ NatsError::NameTaken { .. }) => {
                    console::note(&format!("warning: {error}"));
                    self.is_expelled.store(true, Ordering::Relaxed);
                    self.state.is_replaced.store(true, Ordering::Relaxed);
                    return None;
                }
                Err(error) => {
                    if !is_cut_off {
                        console::note(&format!("warning: {error}; the timetable goes on without them"));
                    }
                    is_cut_off = true;
                    continue;
                }
            }
            self.check_clock(membership.record().clock);
            self.look_for_description(&mut revision);
        }
        Some(membership)
    }

    /// Takes up a changed description. One that is not valid, or without this address, changes nothing.
    fn look_for_description(&self, revision: &mut u64) {
        let Ok(Some(stored)) = self.fleet.description() else { return };
        if stored.revision == *revision {
            return;
        }
        *revision = stored.revision;
        let usable = published(self.fleet).and_then(|found| check_address(&found.1, self.address).map(|()| found));
        match usable {
            Ok(found) => {
                *revision = found.0;
                console::note(&format!("takes up revision {} of the description", found.0));
                *self.guard.lock().unwrap_or_else(PoisonError::into_inner) = found.2.clock_guard;
                *self.next.lock().unwrap_or_else(PoisonError::into_inner) = Some(found);
                self.state.is_replaced.store(true, Ordering::Relaxed);
            }
            Err(reason) => console::note(&format!("warning: {reason}; the revision before stays in effect")),
        }
    }

    /// Lets no test start while the clock is off by more than the guard.
    fn check_clock(&self, clock: Option<ClockOffset>) {
        let guard = *self.guard.lock().unwrap_or_else(PoisonError::into_inner);
        let obstacle = clock.and_then(|clock| clock_obstacle(clock, guard));
        let mut current = self.state.obstacle.lock().unwrap_or_else(PoisonError::into_inner);
        match (&obstacle, current.is_some()) {
            (Some(reason), false) => console::note(&format!("warning: {reason}: tests are skipped until it is set")),
            (None, true) => console::note("the clock agrees with the server's again"),
            _ => {}
        }
        *current = obstacle;
    }
}

/// Reason why tests would not be at the times of the others.
fn clock_obstacle(clock: ClockOffset, guard: Duration) -> Option<String> {
    if clock.certain() <= guard {
        return None;
    }
    let direction = if clock.offset_ns < 0 { "behind" } else { "ahead of" };
    let [offset, guard] = [Duration::from_nanos(clock.offset_ns.unsigned_abs()), guard].map(display::duration);
    Some(format!("this host's clock is {offset} {direction} the server's, more than the guard of {guard}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_off_by_more_than_the_guard_is_an_obstacle() {
        let guard = Duration::from_secs(2);
        let of = |offset_ns, error_ns| clock_obstacle(ClockOffset { offset_ns, error_ns }, guard);
        assert_eq!(of(1_900_000_000, 0), None);
        // A slow answer is no sign of a wrong clock.
        assert_eq!(of(-2_500_000_000, 600_000_000), None);
        let expected = "this host's clock is 3.00 s behind the server's, more than the guard of 2.00 s";
        assert_eq!(of(-3_000_000_000, 1_000_000).as_deref(), Some(expected));
        assert!(of(60_000_000_000, 1_000_000).is_some_and(|reason| reason.contains("ahead of")));
    }
}
