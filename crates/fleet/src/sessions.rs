//! Sessions that follow from a description: which pairs run which test, and what that takes.

use core::time::Duration;
use std::sync::Arc;

use linerate_documents::fleet_plan::{SessionDirections, TestSession, TestWeight};
use linerate_documents::fleet_result::FleetTestKind;
use linerate_units::{BitRate, display};

use crate::description::{FleetDescription, ScheduleEntry, TaskEntry, TestEntry};
use crate::identity::hash;
use crate::pairs::{self, AddressPair};
use crate::plain_host::is_plain_host;
use crate::{FleetError, round_robin};

/// Largest number of hosts of a timetable.
pub(crate) const MAX_HOSTS: usize = round_robin::MAX_HOSTS;

/// Set-up, exchange of results and end of a transfer: what it takes beyond its duration.
const TRANSFER_OVERHEAD: Duration = Duration::from_secs(3);

/// Duration of a transfer that names none, as iperf3's.
const DEFAULT_TRANSFER: Duration = Duration::from_secs(10);

/// Time of the measurements of the path in `diagnose`.
const PATH_MEASUREMENT: Duration = Duration::from_secs(40);

/// Phases of `load`: idle, down, up and both.
const LOAD_PHASES: u32 = 4;

/// Sessions of all tasks, in the order of their names; tasks and addresses that are disabled have none.
pub(crate) fn sessions(description: &FleetDescription) -> Result<Vec<TestSession>, FleetError> {
    check_references(description)?;
    let mut sessions = Vec::new();
    for (name, task) in description.tasks.iter().filter(|(_, task)| !task.disabled) {
        let owner = format!("task {name:?}");
        let group = description.groups.get(&task.group).ok_or_else(|| unknown(&owner, "group", &task.group))?;
        let test = description.tests.get(&task.test).ok_or_else(|| unknown(&owner, "test", &task.test))?;
        let task_name: Arc<str> = name.as_str().into();
        for pair in pairs::of_group(description, &task.group, group)? {
            sessions.push(session(description, (&task_name, task), test, pair)?);
        }
    }
    Ok(sessions)
}

pub(crate) fn unknown(owner: &str, kind: &'static str, name: &str) -> FleetError {
    FleetError::Unknown { owner: owner.to_owned(), kind, name: name.to_owned() }
}

/// Checks the names in entries that no session may use.
fn check_references(description: &FleetDescription) -> Result<(), FleetError> {
    let uplinks = &description.meta.linerate.uplinks;
    for (name, entry) in &description.addresses {
        let owner = format!("address {name:?}");
        if !is_plain_host(&entry.address) {
            let reason = format!("{:?} is no host name or address, with or without a port", entry.address);
            return Err(FleetError::unusable(owner, reason));
        }
        if let Some(host) = entry.host.as_ref().filter(|host| !description.hosts.contains_key(*host)) {
            return Err(unknown(&owner, "host", host));
        }
        if let Some(uplink) = entry.meta.linerate.uplink.as_ref().filter(|uplink| !uplinks.contains_key(*uplink)) {
            return Err(unknown(&owner, "uplink", uplink));
        }
    }
    let zero = uplinks.iter().find(|(_, uplink)| uplink.capacity.is_none_or(BitRate::is_zero));
    if let Some((name, _)) = zero {
        return Err(FleetError::unusable(format!("uplink {name:?}"), "the capacity is missing or 0: write \"10G\""));
    }
    check_times(description)?;
    for (name, schedule) in &description.schedules {
        if schedule.repeat.is_some_and(|repeat| repeat.is_zero()) {
            return Err(FleetError::unusable(format!("schedule {name:?}"), "it repeats after no time at all"));
        }
    }
    Ok(())
}

/// Longest transfer, and largest difference of clocks.
const MAX_TRANSFER: Duration = Duration::from_secs(24 * 3600);

/// Longest time between two runs.
const MAX_REPEAT: Duration = Duration::from_secs(366 * 24 * 3600);

/// Checks that no time is longer than a timetable can have.
fn check_times(description: &FleetDescription) -> Result<(), FleetError> {
    let guard = description.meta.linerate.clock_guard.map(|guard| ("the clock guard".to_owned(), guard, MAX_TRANSFER));
    let transfer = |(name, test): (&String, &TestEntry)| {
        test.spec.duration.map(|duration| (format!("test {name:?}"), duration, MAX_TRANSFER))
    };
    let repeat = |(name, schedule): (&String, &ScheduleEntry)| {
        schedule.repeat.map(|repeat| (format!("schedule {name:?}"), repeat, MAX_REPEAT))
    };
    let tests = description.tests.iter().filter_map(transfer);
    let mut times = guard.into_iter().chain(tests).chain(description.schedules.iter().filter_map(repeat));
    match times.find(|(_, time, most)| time > most) {
        None => Ok(()),
        Some((owner, time, most)) => {
            let [time, most] = [time, most].map(display::duration);
            Err(FleetError::unusable(owner, format!("{time} is longer than the {most} that a timetable takes")))
        }
    }
}

fn session(
    description: &FleetDescription,
    (name, task): (&Arc<str>, &TaskEntry),
    test: &TestEntry,
    AddressPair { addresses, hosts, directions }: AddressPair,
) -> Result<TestSession, FleetError> {
    let owner = || format!("test {:?}", task.test);
    if test.spec.udp {
        return Err(FleetError::unusable(owner(), "linerate's tests of goodput are over TCP: leave out `udp`"));
    }
    let (weight, duration, transfer) = extent(test, directions).ok_or_else(|| {
        let reason = format!(
            "linerate has no test {:?}; it runs throughput, diagnose and load, and latency, latencybg, rtt, trace and mtu",
            test.kind.name()
        );
        FleetError::unusable(owner(), reason)
    })?;
    let repeat = match &task.schedule {
        None => None,
        Some(schedule) => {
            let found = description.schedules.get(schedule);
            found.ok_or_else(|| unknown(&format!("task {name:?}"), "schedule", schedule))?.repeat
        }
    };
    let mut session = TestSession {
        identity: hash(&[name, &addresses[0], &addresses[1]]),
        task: Arc::clone(name),
        kind: test.kind.clone(),
        addresses,
        hosts,
        starter: 0,
        directions,
        weight,
        duration,
        transfer,
        repeat,
    };
    session.starter = starter(description, &session)?;
    Ok(session)
}

/// Time of each transfer of a test.
pub(crate) fn transfer_time(test: &TestEntry) -> Duration {
    test.spec.duration.unwrap_or(DEFAULT_TRANSFER)
}

/// Weight of a test, the longest time that it takes, and the time with data in it.
fn extent(test: &TestEntry, directions: SessionDirections) -> Option<(TestWeight, Duration, Duration)> {
    let each = transfer_time(test);
    let runs = if test.spec.parallel > Some(1) { 2 } else { 1 };
    let count = if directions == SessionDirections::Both { 2 * runs } else { runs };
    Some(match &test.kind {
        FleetTestKind::Throughput => (TestWeight::Exclusive, (each + TRANSFER_OVERHEAD) * count, each * count),
        FleetTestKind::Diagnose => {
            (TestWeight::Exclusive, PATH_MEASUREMENT + (each + TRANSFER_OVERHEAD) * count, each * count)
        }
        FleetTestKind::Load => {
            (TestWeight::Exclusive, each * LOAD_PHASES + TRANSFER_OVERHEAD, each * (LOAD_PHASES - 1))
        }
        other => (TestWeight::of(other)?, each, Duration::ZERO),
    })
}

/// Index of the address that starts: one with an agent, and of two each for half of its pairs.
fn starter(description: &FleetDescription, session: &TestSession) -> Result<usize, FleetError> {
    let has_agent = [0, 1].map(|index| description.has_agent(&session.addresses[index]));
    match has_agent {
        [true, true] => Ok(usize::from(session.identity % 2 == 1)),
        [true, false] => Ok(0),
        [false, true] => Ok(1),
        [false, false] => {
            let [first, second] = &session.addresses;
            let reason =
                format!("no agent runs at {first:?} or {second:?}, so no one starts the test: exclude the pair");
            Err(FleetError::unusable(format!("task {:?}", session.task), reason))
        }
    }
}
