//! Slots that the timetable leaves free for a pair, for tests that someone asks for.

use core::time::Duration;
use std::collections::HashMap;

use linerate_documents::fleet_plan::{PlannedSession, TestSession, TestWeight};
use linerate_units::WallTime;

use crate::description::FleetDescription;
use crate::timetable::{Timetable, UplinkLoad, uplink_loads};

/// Longest time that a search looks ahead.
const MAX_SEARCH: Duration = Duration::from_secs(31 * 24 * 3600);

/// Largest number of slots that a search looks at.
const MAX_SLOTS: usize = 1_000_000;

/// Session of the timetable in the way of another one.
struct Neighbour<'a> {
    planned: &'a PlannedSession,
    has_host: bool,
    loads: Vec<UplinkLoad<'a>>,
}

/// Names of what two tests must not use at once: the hosts of a session, and the uplinks between them.
#[must_use]
pub fn session_resources(description: &FleetDescription, session: &TestSession) -> Vec<String> {
    let hosts = session.hosts.iter().map(|host| format!("host {host}"));
    let uplinks = uplink_loads(description, session).into_iter().map(|load| format!("uplink {}", load.uplink));
    let mut names: Vec<String> = hosts.chain(uplinks).collect();
    names.sort();
    names.dedup();
    names
}

impl Timetable {
    /// Next start from `after` on for a further run of a session: in a slot in which neither of its hosts is in a test of the
    /// timetable, and no uplink that it crosses would have too much. A light session may start at once.
    ///
    /// `None` when the timetable leaves no such slot within 31 days.
    #[must_use]
    pub fn next_free(
        &self,
        description: &FleetDescription,
        session: &TestSession,
        after: WallTime,
    ) -> Option<WallTime> {
        if session.weight == TestWeight::Light {
            return Some(after);
        }
        if self.slot.is_zero() || session.duration + 2 * self.clock_guard > self.slot {
            return None;
        }
        let own = uplink_loads(description, session);
        let neighbours = self.neighbours(description, session, &own);
        let (slot, period, time) = (self.slot.as_nanos(), self.period.as_nanos(), after.since_unix_epoch().as_nanos());
        let count = (period / slot).max(1);
        let end = time + MAX_SEARCH.as_nanos();
        let starts = (time / period..).flat_map(|cycle| (0..count).map(move |index| (cycle, index)));
        let guard = self.clock_guard.as_nanos();
        let timed = starts.map(|(cycle, index)| (cycle, index, cycle * period + index * slot + guard));
        let within = timed.skip_while(|(.., at)| *at < time).take_while(|(.., at)| *at <= end).take(MAX_SLOTS);
        let mut free = within.filter(|(cycle, index, _)| {
            let planned = u32::try_from(*index).ok().and_then(|index| neighbours.get(&index));
            planned.is_none_or(|planned| has_room(planned, &own, *cycle))
        });
        let (.., at) = free.next()?;
        Some(WallTime::from_unix(Duration::from_nanos(u64::try_from(at).ok()?)))
    }

    /// Sessions of each slot that share a host or an uplink with this one.
    fn neighbours<'a>(
        &'a self,
        description: &'a FleetDescription,
        session: &TestSession,
        own: &[UplinkLoad<'_>],
    ) -> HashMap<u32, Vec<Neighbour<'a>>> {
        let mut slots: HashMap<u32, Vec<Neighbour<'a>>> = HashMap::new();
        for planned in &self.sessions {
            let has_host = planned.session.hosts.iter().any(|host| session.hosts.contains(host));
            let mut loads = if own.is_empty() { Vec::new() } else { uplink_loads(description, &planned.session) };
            loads.retain(|load| own.iter().any(|one| one.uplink == load.uplink));
            if has_host || !loads.is_empty() {
                slots.entry(planned.slot).or_default().push(Neighbour { planned, has_host, loads });
            }
        }
        slots
    }
}

fn has_room(neighbours: &[Neighbour<'_>], own: &[UplinkLoad<'_>], cycle: u128) -> bool {
    let due = || neighbours.iter().filter(|one| one.planned.is_due(cycle));
    let fits = |load: &UplinkLoad<'_>| {
        let used: f64 = due()
            .flat_map(|one| &one.loads)
            .filter(|other| other.uplink == load.uplink)
            .map(|other| other.demand)
            .sum();
        load.fits(used)
    };
    !due().any(|one| one.has_host) && own.iter().all(fits)
}
