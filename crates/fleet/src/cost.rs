//! Cost of a timetable, before anything runs.

use core::time::Duration;
use std::collections::BTreeMap;

use linerate_units::{ByteCount, Ratio};
use serde::Serialize;

use crate::description::FleetDescription;
use crate::timetable::{self, Timetable};

/// Cost of a cycle in which every session runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FleetCost {
    /// Hosts with at least one session.
    pub hosts: usize,
    /// Largest number of exclusive sessions at once.
    pub concurrent: usize,
    /// Largest number of exclusive sessions of one host.
    pub sessions_of_a_host: usize,
    /// Share of the period during which that host is in one of them.
    pub busy_ratio: Option<Ratio>,
    /// Data of a cycle, where the rate of a session is known: at most this.
    #[serde(rename = "data_bytes")]
    pub data: ByteCount,
    /// Exclusive sessions of unknown rate.
    pub of_unknown_rate: usize,
}

impl FleetCost {
    /// Computes the cost.
    #[must_use]
    pub fn of(timetable: &Timetable, description: &FleetDescription) -> Self {
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
        Self {
            hosts,
            concurrent: slots.values().max().copied().unwrap_or_default(),
            sessions_of_a_host,
            busy_ratio: Ratio::of(longest.as_secs_f64(), timetable.period.as_secs_f64()),
            data: ByteCount::from_f64(data),
            of_unknown_rate,
        }
    }
}
