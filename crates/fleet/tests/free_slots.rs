//! Laws of the slots that a timetable leaves free.

use std::collections::BTreeMap;
use std::time::Duration;

use linerate_fleet::{FleetDescription, SessionStart, TestSession, Timetable, session_resources};
use linerate_units::WallTime;
use proptest::prelude::*;
use serde_json::{Value, json};

/// Mesh of `hosts` behind uplinks of 2 Gbit/s, its test once in `repeat`, and a mesh of the first `few` of them more often.
fn description(hosts: u32, uplinks: u32, [repeat, often]: [&str; 2], few: usize) -> FleetDescription {
    let (mut addresses, mut names) = (json!({}), Vec::new());
    for host in 0..hosts {
        let name = format!("h{host}");
        let mut own = json!({ "rate": "1G" });
        if uplinks > 0 {
            own["uplink"] = json!(format!("u{}", host % uplinks));
        }
        addresses[&name] = json!({ "address": name, "_meta": { "linerate": own } });
        names.push(json!({ "name": name }));
    }
    let links: BTreeMap<String, Value> =
        (0..uplinks).map(|uplink| (format!("u{uplink}"), json!({ "capacity": "2G" }))).collect();
    let text = json!({
        "addresses": addresses,
        "groups": { "all": { "type": "mesh", "addresses": names }, "few": { "type": "mesh", "addresses": names[..few] } },
        "tests": { "goodput": { "type": "throughput", "spec": { "duration": "PT10S" } }, "delay": { "type": "rtt", "spec": {} } },
        "schedules": { "rare": { "repeat": repeat }, "often": { "repeat": often } },
        "tasks": { "rare": { "group": "all", "test": "goodput", "schedule": "rare" },
                   "often": { "group": "few", "test": "goodput", "schedule": "often" },
                   "delay": { "group": "few", "test": "delay" } },
        "_meta": { "linerate": { "uplinks": links } }
    });
    FleetDescription::read(&text.to_string()).expect("a valid description")
}

fn uplinks<'a>(description: &'a FleetDescription, session: &TestSession) -> Vec<&'a str> {
    let of = |name: &str| description.addresses[name].meta.linerate.uplink.as_deref();
    let [one, other] = [of(&session.addresses[0]), of(&session.addresses[1])];
    if one == other { Vec::new() } else { one.into_iter().chain(other).collect() }
}

/// Tests of the timetable that run at the same time as a further run at `at`, clocks apart by the guard included.
fn at_once<'a>(timetable: &'a Timetable, session: &TestSession, at: WallTime) -> Vec<SessionStart<'a>> {
    let (begin, guard) = (at.since_unix_epoch(), timetable.clock_guard);
    let from = WallTime::from_unix(begin.saturating_sub(timetable.slot));
    let until = begin + session.duration + 2 * guard;
    let later = |start: &SessionStart<'_>| start.at.since_unix_epoch() + start.session.duration + 2 * guard > begin;
    timetable.starts(from).take_while(|start| start.at.since_unix_epoch() < until).filter(later).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_free_slot_collides_with_no_test(
        hosts in 2_u32..12, sites in 0_u32..4, seconds in 0_u64..4_000_000_000, chosen in any::<prop::sample::Index>(),
        repeats in prop::sample::select(vec![["PT1H", "PT10M"], ["PT2H", "PT1H"], ["PT6H", "PT15M"]]),
    ) {
        let description = description(hosts, sites, repeats, 2);
        let timetable = Timetable::new(&description).expect("a timetable");
        let session = &timetable.sessions[chosen.index(timetable.sessions.len())].session;
        let after = WallTime::from_unix(Duration::from_secs(seconds));
        let Some(at) = timetable.next_free(&description, session, after) else {
            // A cycle that fills its period, as 12 hosts behind one uplink do in ten minutes.
            prop_assert!(timetable.cycle() + timetable.slot > timetable.period);
            return Ok(());
        };
        prop_assert!(at >= after);
        let mut loads: BTreeMap<&str, u32> = BTreeMap::new();
        for start in at_once(&timetable, session, at) {
            for host in &start.session.hosts {
                prop_assert!(!session.hosts.contains(host), "{} at {:?}", host, start.at);
            }
            for uplink in uplinks(&description, start.session) {
                *loads.entry(uplink).or_default() += 1;
            }
        }
        for uplink in uplinks(&description, session) {
            prop_assert!(loads.get(uplink).copied().unwrap_or_default() < 2, "{} has two tests already", uplink);
        }
        // No earlier slot was passed over: the one before has a collision or begins before `after`.
        let before = at.since_unix_epoch().saturating_sub(timetable.slot);
        if before >= after.since_unix_epoch() && before.as_nanos() / timetable.period.as_nanos()
            == at.since_unix_epoch().saturating_sub(timetable.clock_guard).as_nanos() / timetable.period.as_nanos() {
            prop_assert!(!at_once(&timetable, session, WallTime::from_unix(before)).is_empty());
        }
        // The same on every host, and again at the time itself.
        prop_assert_eq!(timetable.next_free(&description, session, at), Some(at));
    }
}

#[test]
fn a_full_timetable_has_no_free_slot_and_a_light_test_needs_none() {
    // Each host but one is in a test in each slot of both tasks.
    let full =
        |hosts: &u32| Timetable::new(&description(*hosts, 0, ["PT1S"; 2], 2)).is_ok_and(|one| one.rounds == *hosts);
    let hosts = (3..100).find(full).expect("a prime");
    let description = description(hosts, 0, ["PT1S"; 2], hosts as usize);
    let timetable = Timetable::new(&description).expect("a timetable");
    let after = WallTime::from_unix(Duration::from_secs(1_700_000_000));
    assert_eq!(timetable.next_free(&description, &timetable.sessions[0].session, after), None);
    assert_eq!(timetable.next_free(&description, &timetable.light[0], after), Some(after));
}

#[test]
fn the_resources_of_a_test_are_its_hosts_and_the_uplinks_between_them() {
    let description = description(4, 2, ["PT1H"; 2], 2);
    let timetable = Timetable::new(&description).expect("a timetable");
    let of = |first: &str, second: &str| {
        let is_pair = |session: &TestSession| *session.addresses[0] == *first && *session.addresses[1] == *second;
        let planned = timetable.sessions.iter().find(|one| is_pair(&one.session)).expect("there");
        session_resources(&description, &planned.session)
    };
    assert_eq!(of("h0", "h1"), ["host h0", "host h1", "uplink u0", "uplink u1"]);
    assert_eq!(of("h0", "h2"), ["host h0", "host h2"]);
}
