//! Descriptions that are read, and those that are refused.

use linerate_fleet::{FleetDescription, SessionDirections, Timetable};

const VALID: &str = r#"{
  "addresses": { "a": { "address": "192.0.2.1" }, "b": { "address": "192.0.2.2" }, "c": { "address": "2001:db8::3" } },
  "groups": {
    "pairs": { "type": "disjoint", "a-addresses": [ { "name": "a" } ], "b-addresses": [ { "name": "b" }, { "name": "c" } ],
               "unidirectional": true }
  },
  "tests": { "t": { "type": "throughput", "spec": { "source": "{% address[0] %}", "dest": "{% address[1] %}", "duration": "PT30S" } },
             "l": { "type": "latencybg", "spec": {} } },
  "schedules": { "s": { "repeat": "PT4H", "slip": "PT4H", "sliprand": true } },
  "archives": { "x": { "archiver": "http", "data": { "schema": 2 } } },
  "tasks": { "one": { "group": "pairs", "test": "t", "schedule": "s", "archives": [ "x" ], "reference": { "display-task-name": "T" } },
             "two": { "group": "pairs", "test": "l" } },
  "_meta": { "display-name": "Example", "other": { "free": true } }
}"#;

fn refused(text: &str) -> String {
    match FleetDescription::read(text).and_then(|description| Timetable::new(&description).map(drop)) {
        Ok(()) => panic!("it is accepted: {text}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_description_of_psconfig_is_read() {
    let description = FleetDescription::read(VALID).expect("valid");
    let timetable = Timetable::new(&description).expect("a timetable");
    assert_eq!((timetable.sessions.len(), timetable.light.len()), (2, 2));
    assert!(timetable.sessions.iter().all(|one| one.session.directions == SessionDirections::Forward));
    assert_eq!(timetable.period.as_secs(), 4 * 3600);
    // 30 s, 3 s more, and a guard of 2 s before and after.
    assert_eq!(timetable.slot.as_secs(), 37);
}

#[test]
fn what_cannot_be_used_is_named() {
    for (from, to, part) in [
        (r#""address": "192.0.2.1""#, r#""addres": "192.0.2.1""#, "unknown field `addres`"),
        (r#""b": { "address": "192.0.2.2" }"#, r#""a": { "address": "192.0.2.2" }"#, "\"a\" is there twice"),
        (r#""a": { "address""#, r#""a b": { "address""#, "\"a b\" is no name"),
        (
            r#"[ { "name": "a" } ]"#,
            r#"[ { "name": "z" } ]"#,
            "group \"pairs\" names the address \"z\", which is not there",
        ),
        (r#"[ { "name": "a" } ]"#, r#"[ { "class": "z" } ]"#, "unknown field `class`"),
        (r#""group": "pairs", "test": "t""#, r#""group": "all", "test": "t""#, "task \"one\" names the group \"all\""),
        (r#""test": "l""#, r#""test": "m""#, "task \"two\" names the test \"m\""),
        (r#""schedule": "s""#, r#""schedule": "x""#, "names the schedule \"x\""),
        (r#""type": "throughput""#, r#""type": "dns""#, "test \"t\": linerate has no test \"dns\""),
        (r#""type": "disjoint""#, r#""type": "list""#, "unknown variant `list`"),
        (r#""192.0.2.1""#, r#""--push""#, "address \"a\": \"--push\" is no host name or address"),
        (r#""192.0.2.1""#, r#""ssh:root@a""#, "\"ssh:root@a\" is no host name or address"),
        (r#""192.0.2.1""#, r#""lab:wifi""#, "\"lab:wifi\" is no host name or address"),
        (r#""duration": "PT30S""#, r#""udp": true"#, "test \"t\": linerate's tests of goodput are over TCP"),
        ("PT30S", "30 s", "\"30 s\" is no ISO 8601 duration"),
        (r#""repeat": "PT4H""#, r#""repeat": "P9999W""#, "schedule \"s\": "),
        ("PT30S", "PT584542046090S", "is longer than the"),
        (r#""display-name": "Example""#, r#""linerate": { "clock-guard": "P2D" }"#, "the clock guard: "),
        (r#""repeat": "PT4H""#, r#""repeat": "PT0S""#, "schedule \"s\": it repeats after no time at all"),
        (
            r#""a": { "address": "192.0.2.1" }"#,
            r#""a": { "address": "192.0.2.1", "host": "h" }"#,
            "names the host \"h\"",
        ),
        (r#""address": "192.0.2.1""#, r#""address": "192.0.2.1", "labels": {}"#, "unknown field `labels`"),
        (r#""display-name": "Example""#, r#""linerate": { "uplink": {} }"#, "unknown field `uplink`"),
        (r#""display-name": "Example""#, r#""linerate": { "uplinks": { "u": {} } }"#, "missing field `capacity`"),
        (
            r#""display-name": "Example""#,
            r#""linerate": { "uplinks": { "u": { "capacity": "0" } } }"#,
            "uplink \"u\": the capacity is missing or 0",
        ),
        (
            r#""address": "192.0.2.1""#,
            r#""address": "192.0.2.1", "no-agent": true, "_meta": { "linerate": { "rate": "fast" } }"#,
            "fast",
        ),
    ] {
        assert!(VALID.contains(from), "{from}");
        let message = refused(&VALID.replacen(from, to, 1));
        assert!(message.contains(part), "{part}: {message}");
    }
    assert!(refused("{}").contains("missing field `addresses`"));
    assert!(refused("").contains("docs/fleet.md"));
    let without = VALID
        .replace("\"192.0.2.1\"", "\"192.0.2.1\", \"no-agent\": true")
        .replace("\"192.0.2.2\"", "\"192.0.2.2\", \"no-agent\": true");
    assert!(refused(&without).contains("no agent runs at \"a\" or \"b\""));
}

#[test]
fn disabled_entries_have_no_sessions() {
    for (from, to, left) in [
        (r#"{ "name": "b" }"#, r#"{ "name": "b", "disabled": true }"#, 1),
        (r#""address": "192.0.2.1""#, r#""address": "192.0.2.1", "disabled": true"#, 0),
        (r#""group": "pairs", "test": "t""#, r#""disabled": true, "group": "pairs", "test": "t""#, 0),
    ] {
        let description = FleetDescription::read(&VALID.replacen(from, to, 1)).expect("valid");
        assert_eq!(Timetable::new(&description).expect("a timetable").sessions.len(), left, "{from}");
    }
}
