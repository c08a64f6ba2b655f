//! Cost of a timetable, before anything runs.

use core::time::Duration;
use std::collections::BTreeMap;

use linerate_documents::fleet_plan::FleetCost;
use linerate_units::{ByteCount, Ratio};

use crate::description::FleetDescription;
use crate::timetable::{self, Timetable};

/// Computes the cost of a timetable.
#[must_use]
pub fn fleet_cost(timetable: &Timetable, description: &FleetDescription) -> FleetCost {
    let mut busy: BTreeMap<&str, (usize, Duration)> = BTreeMap::new();
    let mut slots: BTreeMap<u32, usize> = BTreeMap::new();
    let (mut data, mut of_unknown_rate) = (0.0, 0);
    for planned in &timetable.sessions {
        *slots.entry(planned.slot).or_default() += 1;
        for host in &planned.session.hosts {
            let entry = busy.entry(host).or_default();
            *entry = (entry.0 + 1, entry.1 + planned.session.duration);
        }
        match timetable::session_rate(description, &planned.session) {
            Some(rate) => data += rate.bytes_per_second() * planned.session.transfer.as_secs_f64(),
            None => of_unknown_rate += 1,
        }
    }
    let light = timetable.light.iter().flat_map(|session| session.hosts.iter().map(|host| &**host));
    let hosts = light.chain(busy.keys().copied()).collect::<std::collections::BTreeSet<_>>().len();
    let (sessions_of_a_host, longest) = busy.values().max().copied().unwrap_or_default();
    FleetCost {
        hosts,
        concurrent: slots.values().max().copied().unwrap_or_default(),
        sessions_of_a_host,
        busy_ratio: Ratio::of(longest.as_secs_f64(), timetable.period.as_secs_f64()),
        data: ByteCount::from_f64(data),
        of_unknown_rate,
    }
}
