//! Laws of timetables over random fleets.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use linerate_fleet::{FleetDescription, PlannedSession, SessionDirections, Timetable, fleet_cost};
use linerate_units::WallTime;
use proptest::prelude::*;
use serde_json::{Value, json};

/// Fleet of these hosts, in one mesh; host number N is behind uplink N modulo the number of uplinks.
fn mesh(hosts: impl IntoIterator<Item = u32>, uplinks: u32, capacity: &str) -> Value {
    let (mut addresses, mut names) = (json!({}), Vec::new());
    for host in hosts {
        let name = format!("host-{host}.example");
        addresses[&name] = json!({ "address": name });
        if uplinks > 0 {
            let own = json!({ "uplink": format!("site-{}", host % uplinks), "rate": "1G" });
            addresses[&name]["_meta"] = json!({ "linerate": own });
        }
        names.push(json!({ "name": name }));
    }
    let links: BTreeMap<String, Value> =
        (0..uplinks).map(|site| (format!("site-{site}"), json!({ "capacity": capacity }))).collect();
    json!({
        "addresses": addresses,
        "groups": { "all": { "type": "mesh", "addresses": names } },
        "tests": { "goodput": { "type": "throughput", "spec": { "duration": "PT10S" } } },
        "schedules": { "often": { "repeat": "PT1H" } },
        "tasks": { "goodput": { "group": "all", "test": "goodput", "schedule": "often" } },
        "_meta": { "linerate": { "uplinks": links } }
    })
}

fn read(description: &Value) -> FleetDescription {
    FleetDescription::read(&description.to_string()).expect("a valid description")
}

fn timetable(description: &Value) -> Timetable {
    Timetable::new(&read(description)).expect("a timetable")
}

/// Sessions of each slot.
fn by_slot(timetable: &Timetable) -> BTreeMap<u32, Vec<&PlannedSession>> {
    let mut slots: BTreeMap<u32, Vec<&PlannedSession>> = BTreeMap::new();
    for planned in &timetable.sessions {
        slots.entry(planned.slot).or_default().push(planned);
    }
    slots
}

fn pair(planned: &PlannedSession) -> [Arc<str>; 2] {
    planned.session.addresses.clone()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_host_and_no_uplink_has_too_much(
        hosts in prop::collection::btree_set(0_u32..500, 2..40),
        uplinks in 0_u32..6,
        capacity in prop::sample::select(vec!["1G", "2G", "2500M", "10G"]),
    ) {
        let description = read(&mesh(hosts.iter().copied(), uplinks, capacity));
        let timetable = Timetable::new(&description).expect("a timetable");
        let most = linerate_units::parse::rate(capacity).expect("a rate").bits_per_second();
        for (slot, sessions) in by_slot(&timetable) {
            let mut seen = BTreeSet::new();
            let mut loads: BTreeMap<&str, f64> = BTreeMap::new();
            for planned in sessions {
                for host in &planned.session.hosts {
                    prop_assert!(seen.insert(host), "{} is in two sessions of slot {}", host, slot);
                }
                let behind = planned.session.addresses.each_ref()
                    .map(|name| description.addresses[&**name].meta.linerate.uplink.as_deref());
                if behind[0] != behind[1] {
                    for uplink in behind.into_iter().flatten() {
                        *loads.entry(uplink).or_default() += 1e9;
                    }
                }
            }
            for (uplink, load) in loads {
                prop_assert!(load <= most, "{} carries {} in slot {}", uplink, load, slot);
            }
        }
    }

    #[test]
    fn every_pair_meets_once_a_cycle(
        hosts in prop::collection::btree_set(0_u32..500, 0..40), uplinks in 0_u32..4,
    ) {
        let timetable = timetable(&mesh(hosts.iter().copied(), uplinks, "1G"));
        let pairs: Vec<[Arc<str>; 2]> = timetable.sessions.iter().map(pair).collect();
        let distinct: BTreeSet<&[Arc<str>; 2]> = pairs.iter().collect();
        prop_assert_eq!(pairs.len(), hosts.len() * hosts.len().saturating_sub(1) / 2);
        prop_assert_eq!(distinct.len(), pairs.len());
        let both = |one: &PlannedSession| one.session.directions == SessionDirections::Both;
        prop_assert!(timetable.sessions.iter().all(both));
        prop_assert!(timetable.sessions.iter().all(|one| one.slot < timetable.rounds * timetable.laps));
        prop_assert!(timetable.period >= timetable.cycle());
    }

    #[test]
    fn the_order_of_the_description_decides_nothing(
        hosts in prop::collection::btree_set(0_u32..500, 2..30), uplinks in 0_u32..4,
    ) {
        let forwards = timetable(&mesh(hosts.iter().copied(), uplinks, "2G"));
        let backwards = timetable(&mesh(hosts.iter().rev().copied(), uplinks, "2G"));
        prop_assert_eq!(forwards, backwards);
    }

    #[test]
    fn starts_are_in_order_and_leave_room_for_the_clocks(
        hosts in prop::collection::btree_set(0_u32..500, 2..12), seconds in 0_u64..4_000_000_000,
    ) {
        let timetable = timetable(&mesh(hosts, 0, "1G"));
        let after = WallTime::from_unix(Duration::from_secs(seconds));
        let starts: Vec<_> = timetable.starts(after).take(2 * timetable.sessions.len()).collect();
        prop_assert!(starts.windows(2).all(|two| two[0].at <= two[1].at) && starts[0].at >= after);
        let mut free: BTreeMap<Arc<str>, Duration> = BTreeMap::new();
        for start in &starts {
            let begin = start.at.since_unix_epoch();
            for host in &start.session.hosts {
                // The other's clock is ahead by the whole guard, and this host's behind by as much.
                let least = free.get(host).copied().unwrap_or_default();
                prop_assert!(begin >= least + 2 * timetable.clock_guard, "{}", host);
                free.insert(Arc::clone(host), begin + start.session.duration);
            }
        }
        // Each session comes once in each cycle: the first two cycles have each twice.
        let mut counts: BTreeMap<[Arc<str>; 2], usize> = BTreeMap::new();
        for start in &starts {
            *counts.entry(start.session.addresses.clone()).or_default() += 1;
        }
        prop_assert!(counts.values().all(|count| *count == 2), "{:?}", counts);
    }
}

/// Share of the pairs of the other hosts that a host which joins moves, where the cycle keeps its rounds.
fn moved_by_one(uplinks: u32, capacity: &str) -> (f64, f64) {
    let (mut shares, mut worst) = (Vec::new(), 0.0_f64);
    for start in 0..12 {
        for count in [20_u32, 24, 30, 38, 45] {
            let first = start * 1000;
            let before = timetable(&mesh(first..first + count, uplinks, capacity));
            let after = timetable(&mesh(first..=first + count, uplinks, capacity));
            if before.rounds != after.rounds {
                continue;
            }
            let slots: BTreeMap<_, _> = after.sessions.iter().map(|one| (pair(one), one.slot)).collect();
            let changed = before.sessions.iter().filter(|one| slots[&pair(one)] != one.slot).count();
            #[expect(clippy::cast_precision_loss, reason = "a few hundred")]
            let share = changed as f64 / before.sessions.len() as f64;
            shares.push(share);
            worst = worst.max(share);
        }
    }
    assert!(shares.len() > 20, "{} comparisons", shares.len());
    #[expect(clippy::cast_precision_loss, reason = "a few dozen")]
    let count = shares.len() as f64;
    (shares.iter().sum::<f64>() / count, worst)
}

#[test]
fn a_host_that_joins_moves_few_pairs() {
    let (mean, worst) = moved_by_one(0, "1G");
    assert!(mean < 0.1 && worst < 0.5, "without uplinks: {mean:.3}, at worst {worst:.3}");
    let (mean, worst) = moved_by_one(4, "2G");
    assert!(mean < 0.25 && worst < 0.7, "with uplinks: {mean:.3}, at worst {worst:.3}");
}

#[test]
fn a_thousand_hosts() {
    let timetable = timetable(&mesh(0..1000, 0, "1G"));
    assert_eq!(timetable.sessions.len(), 499_500);
    assert_eq!((timetable.rounds, timetable.laps), (1249, 1));
}

/// A task that is to run less often runs in some cycles only, each pair in its own.
#[test]
fn a_rare_task_is_spread_over_the_cycles() {
    let mut description = mesh(0..8, 0, "1G");
    description["schedules"]["daily"] = json!({ "repeat": "P1D" });
    description["tasks"]["rare"] = json!({ "group": "all", "test": "goodput", "schedule": "daily" });
    let timetable = timetable(&description);
    assert_eq!(timetable.period, Duration::from_secs(3600));
    let starts: Vec<_> = timetable
        .starts(WallTime::default())
        .take_while(|one| one.at.since_unix_epoch() < Duration::from_secs(86_400))
        .collect();
    let of = |task: &str| starts.iter().filter(|one| *one.session.task == *task).count();
    assert_eq!((of("goodput"), of("rare")), (24 * 28, 28));
    let hours: BTreeSet<u64> = starts
        .iter()
        .filter(|one| *one.session.task == *"rare")
        .map(|one| one.at.since_unix_epoch().as_secs() / 3600)
        .collect();
    assert!(hours.len() > 10, "{hours:?}");
}

#[test]
fn a_cycle_that_takes_longer_than_its_schedule_takes_its_time() {
    let mut description = mesh(0..30, 0, "1G");
    description["schedules"]["often"]["repeat"] = json!("PT1M");
    let timetable = timetable(&description);
    // 10 s in each direction, 3 s more for each, and a guard of 2 s before and after.
    assert_eq!(timetable.slot, Duration::from_secs(30));
    assert_eq!(timetable.period, Duration::from_secs(30 * 37));
}

#[test]
fn the_cost_is_that_of_a_cycle() {
    let description = read(&mesh(0..5, 5, "10G"));
    let timetable = Timetable::new(&description).expect("a timetable");
    let cost = fleet_cost(&timetable, &description);
    assert_eq!((cost.hosts, cost.sessions_of_a_host, cost.of_unknown_rate), (5, 4, 0));
    // 10 pairs, 2 x 10 s at 1 Gbit/s.
    assert_eq!(cost.data.get(), 25_000_000_000);
    let unknown = read(&mesh(0..5, 0, "10G"));
    let cost = fleet_cost(&Timetable::new(&unknown).expect("a timetable"), &unknown);
    assert_eq!((cost.data.get(), cost.of_unknown_rate), (0, 10));
}

/// Two addresses of a host are never measured at the same time, nor against each other.
#[test]
fn addresses_of_one_host_share_it() {
    let mut description = mesh(0..4, 0, "1G");
    for host in 0..4 {
        let (name, second) = (format!("host-{host}.example"), format!("host-{host}-v6.example"));
        description["hosts"][&name] = json!({});
        description["addresses"][&name]["host"] = json!(name);
        description["addresses"][&second] = json!({ "address": second, "host": name });
        description["groups"]["all"]["addresses"].as_array_mut().expect("a list").push(json!({ "name": second }));
    }
    let timetable = timetable(&description);
    assert_eq!(timetable.sessions.len(), 6 * 4);
    for sessions in by_slot(&timetable).values() {
        let hosts: Vec<&Arc<str>> = sessions.iter().flat_map(|one| &one.session.hosts).collect();
        assert_eq!(hosts.iter().collect::<BTreeSet<_>>().len(), hosts.len());
    }
}

/// A time that the timetable does not reach has no start, and no endless search.
#[test]
fn the_far_future_has_no_starts() {
    let mut description = mesh(0..3, 0, "1G");
    description["schedules"]["yearly"] = json!({ "repeat": "P366D" });
    description["tasks"]["rare"] = json!({ "group": "all", "test": "goodput", "schedule": "yearly" });
    let timetable = timetable(&description);
    let year_9999 = WallTime::from_unix(Duration::from_secs(253_370_764_800));
    assert_eq!(timetable.starts(year_9999).next(), None);
    for address in ["host-0.example", "host-1.example", "host-2.example"] {
        assert_eq!(timetable.next_exclusive(address, year_9999), None);
    }
    let found = |after| timetable.starts(after).find(|start| *start.session.task == *"rare").map(|start| start.at);
    let first = found(WallTime::default()).expect("within a year");
    let own = ["host-0.example", "host-1.example", "host-2.example"]
        .iter()
        .filter_map(|address| timetable.next_exclusive(address, first))
        .map(|start| start.at)
        .min();
    assert_eq!(own, Some(first), "the same start by both ways");
}

/// Each session has one starter, whose agent finds exactly its own.
#[test]
fn agents_share_the_sessions() {
    let mut description = mesh(0..6, 0, "1G");
    description["tests"]["delay"] = json!({ "type": "latencybg", "spec": {} });
    description["tasks"]["delay"] = json!({ "group": "all", "test": "delay" });
    for test in
        description["tests"].as_object_mut().expect("tests").values_mut().filter(|test| test["type"] == "throughput")
    {
        test["spec"]["congestion"] = json!("cubic");
        test["spec"]["window-size"] = json!(65536);
    }
    let description = read(&description);
    let timetable = Timetable::new(&description).expect("a timetable");
    let (mut started, mut light) = (BTreeSet::new(), BTreeSet::new());
    for address in description.addresses.keys() {
        let mut after = WallTime::default();
        while let Some(start) =
            timetable.next_exclusive(address, after).filter(|start| start.at.since_unix_epoch() < timetable.period)
        {
            assert!(started.insert(start.session.clone()), "{:?} is started twice", start.session);
            let command = linerate_fleet::session_command(&description, start.session).expect("its command");
            assert_eq!(command[..4], ["test", start.session.other_address(), "-t", "10s"].map(str::to_owned));
            assert!(command.ends_with(&["--congestion=cubic", "--window", "65536"].map(str::to_owned)), "{command:?}");
            after = WallTime::from_unix(start.at.since_unix_epoch() + Duration::from_nanos(1));
        }
        let mut after = WallTime::default();
        while let Some(start) =
            timetable.next_light(address, after).filter(|start| start.at.since_unix_epoch() < Duration::from_secs(300))
        {
            assert!(light.insert(start.session.clone()) && start.at >= after, "{:?}", start.session);
            after = WallTime::from_unix(start.at.since_unix_epoch() + Duration::from_nanos(1));
        }
    }
    assert_eq!((started.len(), light.len()), (15, 15));
}
