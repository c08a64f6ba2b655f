//! Body of the fuzz target, shared with the short deterministic run among the tests.

use std::collections::BTreeSet;

use linerate_units::WallTime;

use crate::{FleetDescription, Timetable, fleet_cost, session_command};

/// Fuzz target: takes any bytes; panics on a violated invariant.
pub type FleetFuzzTarget = fn(&[u8]);

/// Every target by name, as in `fuzz/fuzz_targets` and `fuzz/corpus`.
pub const TARGETS: &[(&str, FleetFuzzTarget)] = &[("fleet_description", fleet_description)];

/// Starts that are looked at.
const STARTS: usize = 100;

/// Parses a description: what is refused is named, and of what is accepted no host is in two sessions of a slot, each session has
/// its command, and starts are in order.
///
/// # Panics
///
/// When one of these invariants is violated.
pub fn fleet_description(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let description = match FleetDescription::read(&text) {
        Ok(description) => description,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let timetable = match Timetable::new(&description) {
        Ok(timetable) => timetable,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let mut taken = BTreeSet::new();
    for planned in &timetable.sessions {
        assert!(planned.phase < planned.every, "{planned:?}");
        assert!(session_command(&description, &planned.session).is_some(), "{planned:?}");
        for host in &planned.session.hosts {
            assert!(taken.insert((planned.slot, host)), "{host} is in two sessions of slot {}", planned.slot);
        }
    }
    let starts: Vec<WallTime> = timetable.starts(WallTime::default()).take(STARTS).map(|start| start.at).collect();
    assert!(starts.is_sorted(), "{starts:?}");
    let cost = fleet_cost(&timetable, &description);
    assert!(cost.sessions_of_a_host <= timetable.sessions.len());
}
