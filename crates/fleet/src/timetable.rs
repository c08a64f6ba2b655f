//! Timetable: which session runs when.
//!
//! A round is a set of pairs without a common host ([`RoundRobin`]). A round whose pairs would load a shared uplink beyond its
//! capacity is divided over several laps, one for each session of a host. A slot is a round of a lap; all slots are equally long,
//! and the cycle of all slots begins at multiples of the period since 1970, so that every host knows the time without asking.

use core::time::Duration;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use linerate_documents::fleet_plan::{PlannedSession, TestSession, TestWeight};
use linerate_units::{BitRate, WallTime};

use crate::FleetError;
use crate::description::FleetDescription;
use crate::round_robin::RoundRobin;
use crate::sessions;

/// Largest difference of two clocks where the description has none: NTP over the Internet, with a margin.
const DEFAULT_CLOCK_GUARD: Duration = Duration::from_secs(2);

/// Sessions of all hosts over time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timetable {
    /// Length of a slot: the longest session, and the guard before and after it.
    pub slot: Duration,
    /// Largest difference of two hosts' clocks.
    pub clock_guard: Duration,
    /// Slots of a lap.
    pub rounds: u32,
    /// Laps of a cycle.
    pub laps: u32,
    /// Time from the beginning of a cycle to that of the next.
    pub period: Duration,
    /// Exclusive sessions, by slot.
    pub sessions: Vec<PlannedSession>,
    /// Light sessions, which have no slot.
    pub light: Vec<TestSession>,
}

/// Start of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionStart<'a> {
    /// Time.
    pub at: WallTime,
    /// Session.
    pub session: &'a TestSession,
}

impl Timetable {
    /// Makes the timetable of a description.
    ///
    /// # Errors
    ///
    /// A name that is not there, an entry that cannot be used, or too many hosts.
    pub fn new(description: &FleetDescription) -> Result<Self, FleetError> {
        let (exclusive, light): (Vec<_>, Vec<_>) =
            sessions::sessions(description)?.into_iter().partition(|session| session.weight == TestWeight::Exclusive);
        let hosts: HashSet<&str> = exclusive.iter().flat_map(|one| one.hosts.iter().map(|host| &**host)).collect();
        let count = hosts.len();
        let round_robin = RoundRobin::new(hosts).ok_or(FleetError::TooManyHosts(count))?;
        let clock_guard = description.meta.linerate.clock_guard.unwrap_or(DEFAULT_CLOCK_GUARD);
        let slot = exclusive.iter().map(|one| one.duration).max().unwrap_or_default() + 2 * clock_guard;
        let rounds = round_robin.size;
        let assigned = assign_slots(description, &round_robin, exclusive);
        let laps = assigned.iter().map(|(slot, _)| slot / rounds + 1).max().unwrap_or(1);
        let asked = assigned.iter().filter_map(|(_, one)| one.repeat).min().unwrap_or_default();
        let period = asked.max(slot * rounds * laps);
        let mut sessions: Vec<PlannedSession> =
            assigned.into_iter().map(|(slot, session)| planned(session, slot, period)).collect();
        sessions.sort_by(|one, other| (one.slot, &one.session).cmp(&(other.slot, &other.session)));
        Ok(Self { slot, clock_guard, rounds, laps, period, sessions, light })
    }

    /// Time from the beginning of a cycle to the end of its last slot.
    #[must_use]
    pub fn cycle(&self) -> Duration {
        self.slot * self.rounds * self.laps
    }

    /// Starts of exclusive sessions from `after` on, in order of time, without an end before the year 2554.
    pub fn starts(&self, after: WallTime) -> impl Iterator<Item = SessionStart<'_>> {
        let (first, last) = (self.cycle_at(after), u128::from(u64::MAX) / self.period.as_nanos().max(1));
        let cycles = if self.sessions.is_empty() { 0..0 } else { first..last };
        cycles.flat_map(|cycle| self.cycle_starts(cycle)).filter(move |start| start.at >= after)
    }

    /// Number of the cycle at a time.
    fn cycle_at(&self, time: WallTime) -> u128 {
        time.since_unix_epoch().as_nanos() / self.period.as_nanos().max(1)
    }

    fn cycle_starts(&self, cycle: u128) -> impl Iterator<Item = SessionStart<'_>> {
        let due = move |one: &&PlannedSession| one.is_due(cycle);
        self.sessions.iter().filter(due).filter_map(move |planned| self.start_in(planned, cycle))
    }

    fn start_in<'a>(&self, planned: &'a PlannedSession, cycle: u128) -> Option<SessionStart<'a>> {
        let begin = u64::try_from(cycle * self.period.as_nanos()).ok()?;
        let at = Duration::from_nanos(begin) + self.slot * planned.slot + self.clock_guard;
        Some(SessionStart { at: WallTime::from_unix(at), session: &planned.session })
    }

    /// Next exclusive session from `after` on that the agent of this address starts.
    #[must_use]
    pub fn next_exclusive(&self, address: &str, after: WallTime) -> Option<SessionStart<'_>> {
        let own = self.sessions.iter().filter(|planned| planned.session.starter_address() == address);
        let starts = own.filter_map(|planned| {
            let (every, phase) = (u128::from(planned.every), u128::from(planned.phase));
            let due = (self.cycle_at(after) + phase).next_multiple_of(every) - phase;
            let start = self.start_in(planned, due)?;
            if start.at >= after { Some(start) } else { self.start_in(planned, due + every) }
        });
        starts.min_by_key(|start| start.at)
    }

    /// Next light session from `after` on that the agent of this address starts.
    #[must_use]
    pub fn next_light(&self, address: &str, after: WallTime) -> Option<SessionStart<'_>> {
        let own = self.light.iter().filter(|session| session.starter_address() == address);
        let starts = own.map(|session| SessionStart { at: next_light_start(session, after), session });
        starts.min_by(|one, other| (one.at, one.session).cmp(&(other.at, other.session)))
    }
}

/// Time between light sessions of a pair whose task has no schedule.
const DEFAULT_LIGHT_REPEAT: Duration = Duration::from_secs(300);

/// Next time from `after` on with the session's own remainder: pairs are spread over the period.
fn next_light_start(session: &TestSession, after: WallTime) -> WallTime {
    let repeat = session.repeat.unwrap_or(DEFAULT_LIGHT_REPEAT).as_nanos().max(1);
    let phase = u128::from(session.identity) % repeat;
    let after = after.since_unix_epoch().as_nanos();
    let next = after + (phase + repeat - after % repeat) % repeat;
    WallTime::from_unix(Duration::from_nanos(u64::try_from(next).unwrap_or(u64::MAX)))
}

fn planned(session: TestSession, slot: u32, period: Duration) -> PlannedSession {
    let repeats = session.repeat.map_or(1, |repeat| repeat.as_nanos() / period.as_nanos().max(1));
    let every = u32::try_from(repeats).unwrap_or(u32::MAX).max(1);
    let phase = u32::try_from((session.identity >> 8) % u64::from(every)).unwrap_or_default();
    PlannedSession { session, slot, every, phase }
}

/// Hosts and shares of uplinks that are taken in each slot.
#[derive(Default)]
struct TakenSlots<'a> {
    /// Slot and index of a host.
    hosts: HashSet<(u32, u32)>,
    uplinks: HashMap<(u32, &'a str), f64>,
}

/// Slot of each session: its round, in the first lap where both hosts and the uplinks have room. The order is that of names'
/// hashes, so that a further session moves only those of its own round.
fn assign_slots(
    description: &FleetDescription,
    round_robin: &RoundRobin,
    mut sessions: Vec<TestSession>,
) -> Vec<(u32, TestSession)> {
    // The identity comes first in the order of sessions; equal ones of other names are next to each other.
    sessions.sort_unstable();
    let mut taken = TakenSlots::default();
    let mut assigned = Vec::with_capacity(sessions.len());
    for session in sessions {
        let Some(indexes) = round_robin.indexes_of(&session.hosts) else { continue };
        let loads = uplink_loads(description, &session);
        let mut slot = round_robin.round(indexes);
        while !taken.is_free(slot, indexes, &loads) {
            slot += round_robin.size;
        }
        taken.take(slot, indexes, &loads);
        assigned.push((slot, session));
    }
    assigned
}

/// Load of an uplink.
pub(crate) struct UplinkLoad<'a> {
    pub(crate) uplink: &'a str,
    pub(crate) demand: f64,
    capacity: f64,
}

impl UplinkLoad<'_> {
    /// True when the uplink carries this next to what it carries already.
    pub(crate) fn fits(&self, used: f64) -> bool {
        // Rates are decimal fractions: a sum that is the capacity must fit.
        used + self.demand <= self.capacity * (1.0 + 1e-9)
    }
}

/// Loads of the uplinks that a session crosses. A test of unknown rate takes all of an uplink.
pub(crate) fn uplink_loads<'a>(description: &'a FleetDescription, session: &TestSession) -> Vec<UplinkLoad<'a>> {
    let [first, second] = [0, 1].map(|index| uplink(description, &session.addresses[index]));
    if first == second {
        return Vec::new();
    }
    let rate = session_rate(description, session).map_or(f64::INFINITY, BitRate::bits_per_second);
    let loads = [first, second].into_iter().flatten().filter_map(|uplink| {
        let capacity = description.meta.linerate.uplinks.get(uplink)?.capacity?.bits_per_second();
        Some(UplinkLoad { uplink, demand: rate.min(capacity), capacity })
    });
    loads.collect()
}

fn uplink<'a>(description: &'a FleetDescription, address: &str) -> Option<&'a str> {
    description.addresses.get(address)?.meta.linerate.uplink.as_deref()
}

/// Largest rate of a session: that of the slower host's link, or the one that the test asks for.
pub(crate) fn session_rate(description: &FleetDescription, session: &TestSession) -> Option<BitRate> {
    let link = |address: &Arc<str>| description.addresses.get(&**address)?.meta.linerate.rate;
    let task = description.tasks.get(&*session.task);
    let asked = task.and_then(|task| description.tests.get(&task.test)?.spec.bandwidth);
    #[expect(clippy::cast_precision_loss, reason = "a rate, not a count")]
    let asked = asked.map(|bits| BitRate::from_bits_per_second(bits as f64));
    let known = session.addresses.iter().filter_map(link).chain(asked);
    known.min_by(|one, other| one.bits_per_second().total_cmp(&other.bits_per_second()))
}

impl<'a> TakenSlots<'a> {
    fn is_free(&self, slot: u32, indexes: [u32; 2], loads: &[UplinkLoad<'_>]) -> bool {
        indexes.iter().all(|index| !self.hosts.contains(&(slot, *index)))
            && loads.iter().all(|load| load.fits(self.uplinks.get(&(slot, load.uplink)).copied().unwrap_or_default()))
    }

    fn take(&mut self, slot: u32, indexes: [u32; 2], loads: &[UplinkLoad<'a>]) {
        self.hosts.extend(indexes.map(|index| (slot, index)));
        for load in loads {
            *self.uplinks.entry((slot, load.uplink)).or_default() += load.demand;
        }
    }
}
